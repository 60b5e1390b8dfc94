"""The optional attributes of donor rules, and their defaults."""

from __future__ import annotations

from typing import Any

import numpy as np

from nodecopy import Balanced, Graph, Jaccard, KeepByDegree, NearestNeighbours, SameLabel, Weighted
from nodecopy.copying import DonorDistribution
from nodecopy.copying.donors import crosses_components, group_labels, reads_edges, restrict_rule
from nodecopy.copying.graph_batches import WithinGraphs

LABELS = np.array([0, 1, 0])
GRAPH = Graph(np.ones((3, 3)), labels=LABELS)


class Plain:
    """A donor rule of a user's own without optional attributes."""

    def fit(self, data: Any) -> DonorDistribution:
        return Jaccard().fit(data)


class Grouped(Plain):
    """A donor rule of a user's own with all of them."""

    reads_edges = crosses_components = False

    def restrict(self, nodes: slice, n_nodes: int) -> Plain:
        return Plain()

    def group_labels(self, data: Any) -> Any:
        return LABELS


def test_laws_that_read_edges() -> None:
    by_degree = NearestNeighbours(1, max_degree_ratio=2.0)
    keeping = KeepByDegree(SameLabel())
    for rule in (Jaccard(), by_degree, Balanced(by_degree), keeping, Plain(), WithinGraphs(Jaccard(), [3])):
        assert reads_edges(rule)
    for other in (SameLabel(), NearestNeighbours(1), Weighted(np.eye(3)), Balanced(SameLabel()), Grouped()):
        assert not reads_edges(other)


def test_laws_whose_donors_are_in_other_components() -> None:
    for rule in (SameLabel(), Balanced(SameLabel()), KeepByDegree(SameLabel()), Plain()):
        assert crosses_components(rule)
    for other in (Jaccard(), Balanced(Jaccard()), KeepByDegree(Jaccard()), Grouped()):
        assert not crosses_components(other)


def test_values_of_some_nodes() -> None:
    assert restrict_rule(SameLabel(LABELS), slice(1, 3), 3).labels.tolist() == [1, 0]  # type: ignore[attr-defined]
    plain = Plain()
    assert restrict_rule(plain, slice(1, 3), 3) is plain
    assert isinstance(restrict_rule(Grouped(), slice(1, 3), 3), Plain)


def test_labels_that_donors_share() -> None:
    grouped, keeping = NearestNeighbours(1, groups="labels"), KeepByDegree(SameLabel())
    for rule in (
        SameLabel(),
        grouped,
        keeping,
        Balanced(SameLabel()),
        WithinGraphs(SameLabel(), [3]),
        Grouped(),
    ):
        assert group_labels(rule, GRAPH).tolist() == [0, 1, 0]
    for other in (NearestNeighbours(1), Jaccard(), Plain()):
        assert group_labels(other, GRAPH) is None
