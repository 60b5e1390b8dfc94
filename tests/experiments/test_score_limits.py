from __future__ import annotations

import math

import pytest

from nodecopy.experiments.store import check_score


@pytest.mark.parametrize(
    ("score", "value"),
    [
        ("accuracy", 1),
        ("accuracy without 0.1 by total", 0.5),
        ("printed novelty@20", 6.7),
        ("scaled nll", -1e-9),
        ("transitivity ratio", 1.7),
        ("transitivity covered", 0),
        ("assortativity", -0.3),
        ("brier", 1.9),
        ("of a task to come", -(10**9)),
    ],
)
def test_values_that_scores_have(score: str, value: float) -> None:
    assert check_score(score, value) == value


@pytest.mark.parametrize(
    ("score", "value"),
    [
        ("accuracy", 1.1),
        ("accuracy without 0.1 by total", 90),
        ("printed recall@20", -0.1),
        ("nll", -1),
        ("brier", 2.1),
        ("assortativity", -1.5),
        ("transitivity", math.nan),
        ("of a task to come", math.inf),
        ("of a task to come", "1"),
        ("of a task to come", True),
        ("of a task to come", None),
    ],
)
def test_values_that_scores_cannot_have(score: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"{score} must be"):
        check_score(score, value)
