from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodecopy import Graph, Interactions, Jaccard, SameLabel, datasets
from nodecopy.errors import InputError
from nodecopy.links import rank_donors

KARATE = datasets.load("karate")


def test_labels_that_explain_the_edges_are_the_best_donors() -> None:
    labels = np.arange(80) % 2
    draws = np.random.default_rng(0)
    dense = np.triu(draws.random((80, 80)) < np.where(labels[:, None] == labels, 0.3, 0.02), 1)
    rules: list[Any] = [SameLabel(draws.permutation(labels)), SameLabel(labels)]
    ranked = rank_donors(Graph(dense), rules, rng=0)
    assert ranked[0].donors is rules[1]
    # Knowing the labels gives 0.8; the standard error of an area is below 0.06 with 50 edges.
    assert ranked[0].area > 0.68
    assert abs(ranked[1].area - 0.5) < 0.18


@pytest.mark.parametrize(
    "data",
    [
        KARATE,
        KARATE.replace(features=np.eye(34)),
        KARATE.replace(labels=None, directed=True),
        datasets.load("library"),
    ],
    ids=["labels", "features", "directed", "interactions"],
)
def test_the_default_rules_fit_all_data(data: Any) -> None:
    ranked = rank_donors(data, rng=0)
    areas = [row.area for row in ranked]
    assert areas == sorted(areas, reverse=True)
    assert len({repr(row.donors) for row in ranked}) == len(ranked) >= 2
    assert rank_donors(data, rng=0)[0].area == areas[0]


@pytest.mark.parametrize(
    ("data", "rules", "fragment"),
    [
        (Graph(np.zeros((3, 3))), None, "2 edges"),
        (Interactions(np.ones((2, 2))), None, "2 edges"),
        (KARATE, [], "at least one"),
        (KARATE, Jaccard(), "list"),
    ],
)
def test_wrong_arguments(data: Any, rules: Any, fragment: str) -> None:
    with pytest.raises(InputError, match=fragment):
        rank_donors(data, rules, rng=0)
