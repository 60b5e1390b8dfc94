from nodecopy.report.attack_plots import draw_attacked_node as draw_attacked_node
from nodecopy.report.coverage_plots import IntervalQuality as IntervalQuality
from nodecopy.report.coverage_plots import draw_coverage as draw_coverage
from nodecopy.report.graph_plots import draw_graphs as draw_graphs
from nodecopy.report.prediction_plots import certainty_curve as certainty_curve
from nodecopy.report.prediction_plots import draw_accuracy_by_certainty as draw_accuracy_by_certainty
from nodecopy.report.statistic_plots import StatisticSamples as StatisticSamples
from nodecopy.report.statistic_plots import draw_sample_statistics as draw_sample_statistics

__all__: list[str]
