from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodecopy.errors import InputError
from nodecopy.report.plots import EDGE_COLOURS, MAX_NEIGHBOURS, TRUE_CLASS, draw_attacked_node

pytest.importorskip("matplotlib")

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

    assert [same_color(bar.get_facecolor(), TRUE_CLASS) for bar in below[0].patches] == [True, False]


def test_images_stand_for_nodes_and_long_lists_are_cut() -> None:
    many = {"before": [(1, "own")] * (MAX_NEIGHBOURS + 2)}
    panels = draw_attacked_node(
        0, many, {"before": [1.0, 0.0]}, LABELS, ["a", "b"], images=np.zeros((4, 2, 2))
    )
    assert len(panels[0, 0].images) == MAX_NEIGHBOURS + 1
    assert [text.get_text() for text in panels[0, 0].texts] == ["and 2 more"]


def test_a_node_without_neighbours() -> None:
    panels = draw_attacked_node(0, {"now": []}, {"now": [0.5, 0.5]}, LABELS, ["a", "b"])
    assert colours(panels[0, 0]) == []


def test_stages_must_agree() -> None:
    with pytest.raises(InputError, match="must have the same stages"):
        draw_attacked_node(0, STAGES, {"before": [1.0, 0.0]}, LABELS, ["a", "b"])
