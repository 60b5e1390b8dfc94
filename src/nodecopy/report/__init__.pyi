from nodecopy.report.plots import draw_accuracy_by_certainty as draw_accuracy_by_certainty
from nodecopy.report.plots import draw_attacked_node as draw_attacked_node
from nodecopy.report.plots import draw_graphs as draw_graphs
from nodecopy.report.writing import write_report as write_report

__all__: list[str]
