from __future__ import annotations

import pytest

from nodecopy.errors import InputError
from nodecopy.report import IntervalQuality, draw_coverage

pytest.importorskip("matplotlib")


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


def test_nothing_to_draw_is_an_error() -> None:
    with pytest.raises(InputError, match="rows must hold at least one panel"):
        draw_coverage({})
