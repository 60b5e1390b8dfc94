from nodecopy.report.plots import IntervalQuality as IntervalQuality
from nodecopy.report.plots import StatisticSamples as StatisticSamples
from nodecopy.report.plots import certainty_curve as certainty_curve
from nodecopy.report.plots import draw_accuracy_by_certainty as draw_accuracy_by_certainty
from nodecopy.report.plots import draw_attacked_node as draw_attacked_node
from nodecopy.report.plots import draw_coverage as draw_coverage
from nodecopy.report.plots import draw_graphs as draw_graphs
from nodecopy.report.plots import draw_sample_statistics as draw_sample_statistics

__all__: list[str]
