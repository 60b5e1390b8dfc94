"""Figures of graphs, samples and predictions, and the HTML page of ``nodecopy report``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodecopy._core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from nodecopy.report.attack_plots import draw_attacked_node as draw_attacked_node
    from nodecopy.report.graph_plots import draw_graphs as draw_graphs
    from nodecopy.report.prediction_plots import certainty_curve as certainty_curve
    from nodecopy.report.prediction_plots import draw_accuracy_by_certainty as draw_accuracy_by_certainty
    from nodecopy.report.statistic_plots import StatisticSamples as StatisticSamples
    from nodecopy.report.statistic_plots import draw_sample_statistics as draw_sample_statistics

_MODULES = {
    "StatisticSamples": "statistic_plots",
    "certainty_curve": "prediction_plots",
    "draw_accuracy_by_certainty": "prediction_plots",
    "draw_attacked_node": "attack_plots",
    "draw_graphs": "graph_plots",
    "draw_sample_statistics": "statistic_plots",
}

__all__ = list(_MODULES)
__getattr__, __dir__ = lazy_exports(__name__, _MODULES)
