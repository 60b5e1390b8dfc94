from __future__ import annotations

import pytest

from nodecopy.errors import InputError
from nodecopy.report.plots import (
    HIGHLIGHTED,
    OTHER,
    StatisticSamples,
    draw_sample_statistics,
)


def test_a_panel_for_each_graph_and_statistic() -> None:
    pytest.importorskip("matplotlib")
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
    assert [line.get_color() for line in degree.lines[1:]] == [HIGHLIGHTED, HIGHLIGHTED, OTHER, OTHER]
    assert (degree.get_xscale(), edges.get_xscale()) == ("linear", "log")


@pytest.mark.parametrize(
    ("largest", "ticks"), [(40, [1, 3, 10, 30]), (1e4, [1, 100, 1e4]), (1e6, [1, 100, 1e4, 1e6])]
)
def test_log_axes_have_few_plain_ticks(largest: float, ticks: list[float]) -> None:
    pytest.importorskip("matplotlib")
    (axes,) = draw_sample_statistics({"one": {"edges": StatisticSamples(1.0, {"other": [largest]})}}).axes
    low, high = axes.get_xlim()
    assert [tick for tick in axes.get_xticks() if low <= tick <= high] == pytest.approx(ticks)
    assert not len(axes.get_xticks(minor=True))
    assert axes.xaxis.get_major_formatter()(10000.0) == "10000"


def test_graphs_must_have_the_same_statistics() -> None:
    first, second = {"degree": StatisticSamples(1.0, {})}, {"edges": StatisticSamples(1.0, {})}
    with pytest.raises(InputError, match="the same statistics of every graph"):
        draw_sample_statistics({"first": first, "second": second})
    with pytest.raises(InputError, match="at least one graph"):
        draw_sample_statistics({})
