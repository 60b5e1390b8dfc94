from __future__ import annotations

import numpy as np
import pytest

from nodecopy.errors import InputError
from nodecopy.report.plots import certainty_curve, draw_accuracy_by_certainty


def test_the_curve_counts_hits_among_the_most_certain() -> None:
    correct = np.arange(200) < 150
    share, accuracy = certainty_curve(correct, np.arange(200))
    assert share[[0, -1]].tolist() == [0.05, 1.0]
    assert accuracy[share <= 0.75].tolist() == [1.0] * 71
    assert accuracy[-1] == 0.75
    backwards = certainty_curve(correct, -np.arange(200))[1]
    assert backwards[0] == 0
    assert backwards[-1] == 0.75


def test_nodes_and_uncertainty_must_agree() -> None:
    with pytest.raises(InputError, match="uncertainty must hold one entry per node, 2 in all; got 3"):
        certainty_curve([True, False], [1, 2, 3])
    with pytest.raises(InputError, match="at least one node"):
        certainty_curve([], [])


def test_a_line_for_each_classifier() -> None:
    pytest.importorskip("matplotlib")
    predictions = {"one": ([True, False], [0.1, 0.2]), "two": ([True, True], [0.3, 0.2])}
    axes = draw_accuracy_by_certainty(predictions)
    assert draw_accuracy_by_certainty(predictions, axes=axes) is axes
    axes = draw_accuracy_by_certainty(predictions)
    assert [line.get_label() for line in axes.lines] == ["one", "two"]
    assert axes.lines[0].get_ydata()[-1] == 50
