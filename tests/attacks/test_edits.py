"""Edits against a dense adjacency."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodecopy import Graph, datasets
from nodecopy.attacks.perturbation import Edits
from nodecopy.errors import InputError
from tests.attacks import oracles
from tests.attacks.oracles import small_graphs


@given(small_graphs(), st.data())
@settings(deadline=None, max_examples=40)
def test_edits_equal_flips_of_a_dense_adjacency(graph: Graph, data: st.DataObject) -> None:
    edits, dense = Edits(graph), graph.adjacency.toarray()
    nodes = st.integers(0, graph.n_nodes - 1)
    for owner in range(data.draw(st.integers(0, 6))):
        first, second = data.draw(st.lists(nodes, min_size=2, max_size=2, unique=True))
        edits.owner = owner
        edits.flip(first, second)
        assert edits.is_added[-1] == (dense[first, second] == 0)
        dense = oracles.flip(dense, first, second)
    assert edits.owners == list(range(len(edits.flips)))
    assert np.array_equal(edits.adjacency().toarray(), dense)
    assert edits.degrees.tolist() == dense.sum(axis=0).tolist()
    for node in range(graph.n_nodes):
        assert edits.neighbours(node).tolist() == np.flatnonzero(dense[node]).tolist()
        assert [edits.has_edge(node, other) for other in range(graph.n_nodes)] == (dense[node] > 0).tolist()


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ((0, 34), "node of flip must be an integer between 0 and 33; got 34"),
        ((-1, 2), "node of flip must be an integer between 0 and 33; got -1"),
        ((0.5, 2), "node of flip must be an integer between 0 and 33; got 0.5"),
        ((2, 2), "nodes of flip must be two different nodes; got 2 twice"),
    ],
)
def test_wrong_flips(pair: Any, message: str) -> None:
    edits = Edits(datasets.load("karate"))
    with pytest.raises(InputError, match=message):
        edits.flip(*pair)
    assert edits.flips == []
