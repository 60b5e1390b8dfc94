"""Edits against a dense adjacency."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nodecopy import Graph
from nodecopy.attacks.edits import Edits
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
