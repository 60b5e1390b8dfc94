"""Logits in closed form against brute force."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from nodecopy import Graph
from nodecopy.attacks.nettack import LinearLogits
from tests.attacks import oracles
from tests.attacks.oracles import linear_logits, small_graphs

WEIGHTS = np.random.default_rng(0).normal(size=(5, 3))


@given(small_graphs(), st.data())
@settings(deadline=None, max_examples=40)
def test_logits_equal_brute_force_before_and_after_flips(graph: Graph, data: st.DataObject) -> None:
    """Direct and indirect pairs, before and after flips of edges and features."""
    assert isinstance(graph.features, np.ndarray)
    adjacency, features = graph.adjacency.toarray().astype(float), graph.features.copy()
    n, state = graph.n_nodes, LinearLogits(graph, sparse.csr_array(features), WEIGHTS)
    nodes = st.integers(0, n - 1)
    for _ in range(4):
        u = data.draw(nodes)
        np.testing.assert_allclose(
            state.logits(u), linear_logits(adjacency, features, WEIGHTS)[u], rtol=0, atol=1e-10
        )
        for m in {u, data.draw(nodes)}:
            after = state.after_flips(u, m)
            for other in set(range(n)) - {m, u if m != u else m}:
                brute = linear_logits(oracles.flip(adjacency, m, other), features, WEIGHTS)[u]
                np.testing.assert_allclose(after[other], brute, rtol=0, atol=1e-10)
        first, second = data.draw(st.lists(nodes, min_size=2, max_size=2, unique=True))
        adjacency = oracles.flip(adjacency, first, second)
        state.flip(first, second)
        node, feature = data.draw(nodes), data.draw(st.integers(0, 4))
        features[node, feature] = 1 - features[node, feature]
        state.flip_feature(node, feature)
        assert np.array_equal(state.has_feature(node), features[node] > 0)
        assert np.array_equal(state.adjacency().toarray(), adjacency)
