"""Figures of graphs, samples, predictions, attacked nodes and coverage."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

from nodecopy import Graph, datasets
from nodecopy.errors import InputError
from nodecopy.report.plots import (
    DARK,
    EDGE_COLOURS,
    GREEN,
    MAX_NEIGHBOURS,
    ORANGE,
    IntervalQuality,
    StatisticSamples,
    certainty_curve,
    draw_accuracy_by_certainty,
    draw_attacked_node,
    draw_coverage,
    draw_graphs,
    draw_sample_statistics,
)


def test_each_graph_has_axes_with_its_edges() -> None:
    karate = datasets.load("karate")
    other = karate.with_rows(Graph.from_edges([1, 1], [2, 10], node_ids=karate.node_ids).rows)
    first, second = draw_graphs({"observed": karate, "other": other})
    observed, new = first.collections[:2]
    assert (len(observed.get_segments()), len(new.get_segments())) == (156, 0)
    observed, new = second.collections[:2]  # 1-2 is an edge of the club, 1-10 is not
    assert (len(observed.get_segments()), len(new.get_segments())) == (2, 2)
    assert DARK != ORANGE
    assert second.get_title() == "other\n2 edges"


def test_a_graph_or_a_list_of_graphs() -> None:
    """Both raised an AttributeError about items."""
    ring = Graph.from_edges([0, 1, 2], [1, 2, 0])
    titles = [panel.get_title().split("\n")[0] for panel in draw_graphs([ring, ring, ring])]
    assert titles == ["observed", "sample 1", "sample 2"]
    assert len(draw_graphs(nx.cycle_graph(4))) == 1
    with pytest.raises(InputError, match="graphs must hold at least one graph"):
        draw_graphs([])


def test_a_panel_for_each_graph_and_statistic() -> None:
    panels = {
        "degree": StatisticSamples(2.0, {"one": [1.0, 3.0, 5.0], "other": [2.0]}),
        "edges": StatisticSamples(20.0, {"other": [1.0, 40.0]}),
    }
    figure = draw_sample_statistics({"first": panels, "second": panels}, highlight=["one"])
    assert [axes.get_title() for axes in figure.axes] == ["degree", "edges"] * 2
    degree, edges = figure.axes[:2]
    assert [text.get_text() for text in degree.get_yticklabels()] == ["one", "other"]
    observed, span, mean = degree.lines[:3]
    assert set(observed.get_xdata()) == {2.0}
    assert list(span.get_xdata()) == [1, 5]
    assert (list(mean.get_xdata()), list(mean.get_ydata())) == ([3], [0])
    assert [line.get_color() for line in degree.lines[1:]] == [ORANGE, ORANGE, DARK, DARK]
    assert (degree.get_xscale(), edges.get_xscale()) == ("linear", "log")


def test_the_curve_counts_hits_among_the_most_certain() -> None:
    correct = np.arange(200) < 150
    share, accuracy = certainty_curve(correct, np.arange(200))
    assert share[[0, -1]].tolist() == [0.05, 1.0]
    assert accuracy[share <= 0.75].tolist() == [1.0] * 71
    assert accuracy[-1] == 0.75
    backwards = certainty_curve(correct, -np.arange(200))[1]
    assert backwards[0] == 0
    assert backwards[-1] == 0.75


def test_a_line_for_each_classifier() -> None:
    predictions = {"one": ([True, False], [0.1, 0.2]), "two": ([True, True], [0.3, 0.2])}
    axes = draw_accuracy_by_certainty(predictions)
    assert draw_accuracy_by_certainty(predictions, axes=axes) is axes
    axes = draw_accuracy_by_certainty(predictions)
    assert [line.get_label() for line in axes.lines] == ["one", "two"]
    assert axes.lines[0].get_ydata()[-1] == 50


LABELS = [0, 0, 1, 1]
STAGES: dict[str, Any] = {
    "before": [(1, "own")],
    "attacked": [(1, "own"), (2, "added"), (3, "added")],
    "corrected": [(1, "copied")],
}
CHANCES = {"before": [0.9, 0.1], "attacked": [0.2, 0.8], "corrected": [0.7, 0.3]}


def colours(axes: Any) -> list[str]:
    return [line.get_color() for line in axes.get_lines()]


def test_a_column_for_each_stage() -> None:
    above, below = draw_attacked_node(0, STAGES, CHANCES, LABELS, ["cat", "dog"])
    own, added, copied = (EDGE_COLOURS[origin] for origin in ("own", "added", "copied"))
    assert [axes.get_title() for axes in above] == list(STAGES)
    assert [colours(axes) for axes in above] == [[own], [own, added, added], [copied]]
    heights = [[bar.get_height() for bar in axes.patches] for axes in below]
    assert heights == list(CHANCES.values())
    assert [text.get_text() for text in above[1].texts] == ["cat", "cat", "dog", "dog"]
    from matplotlib.colors import same_color

    assert [same_color(bar.get_facecolor(), GREEN) for bar in below[0].patches] == [True, False]


def test_images_stand_for_nodes_and_long_lists_are_cut() -> None:
    many = {"before": [(1, "own")] * (MAX_NEIGHBOURS + 2)}
    chances, images = {"before": [1.0, 0.0]}, np.zeros((4, 2, 2))
    panels = draw_attacked_node(0, many, chances, LABELS, ["a", "b"], images=images)
    assert len(panels[0, 0].images) == MAX_NEIGHBOURS + 1
    assert [text.get_text() for text in panels[0, 0].texts] == ["and 2 more"]


def test_points_lie_at_their_ratios_and_are_filled_if_they_cover() -> None:
    panel = {
        "copying": {"density": IntervalQuality(95, 1.1), "triangles": IntervalQuality(80, 0.5)},
        "blocks": {"triangles": IntervalQuality(97, 1.0)},
    }
    figure = draw_coverage({"200 nodes": {"sbm": panel, "graphon": {}}})
    assert len(figure.axes) == 2
    points = [line for line in figure.axes[0].lines if line.get_marker() in "os" and len(line.get_xdata())]
    places = {(line.get_xdata()[0], line.get_ydata()[0]): line.get_markerfacecolor() for line in points}
    assert places.keys() == {(1.1, 0), (0.5, 1), (1.0, 1)}
    assert places[0.5, 1] == "none" != places[1.1, 0]
