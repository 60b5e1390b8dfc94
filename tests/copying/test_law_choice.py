"""The donor rule that is chosen by labels, features and edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodecopy import Graph, Interactions, Jaccard, NearestNeighbours, SameLabel
from nodecopy.copying import choose_donors

FEW, HALF = [0, -1, -1, -1], [0, 1, -1, -1]


@pytest.mark.parametrize(
    ("labels", "features", "donors", "reason"),
    [
        (HALF, np.eye(4), SameLabel, "2 of 4 nodes have a label"),
        (FEW, np.eye(4), NearestNeighbours, "only 1 of 4 nodes have a label, fewer than half, and there are"),
        (FEW, None, Jaccard, "only 1 of 4 nodes have a label, fewer than half, and there are no features"),
        (None, None, Jaccard, "no node has a label, and there are no features"),
    ],
)
def test_the_law_of_a_graph(labels: Any, features: Any, donors: type, reason: str) -> None:
    graph = Graph(np.ones((4, 4)), features, labels)
    chosen, because = choose_donors(graph)
    assert isinstance(chosen, donors)
    assert because.startswith(reason)
    assert chosen.fit(graph).n_nodes == 4  # even with fewer nodes than the default number of neighbours


def test_the_law_of_interactions() -> None:
    assert isinstance(choose_donors(Interactions(np.eye(3)))[0], Jaccard)
