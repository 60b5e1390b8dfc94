"""How credible edges are: the odds of an edge of the graph against a random pair, by logistic regression."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.csr import IntArray, unit_rows
from nodecopy._core.logistic import fit_penalised_logistic
from nodecopy.features.node_embeddings import Matrix, NodeEmbeddings

MAX_PAIRS = 50_000
"""Largest number of edges, and of random pairs, that the regression is fitted to."""
BLOCK = 50_000
"""Number of pairs whose inputs are computed at once."""
MAX_LOG_ODDS = 10.0
PENALTY = 1.0
N_NEWTON_STEPS = 15
RANDOM_PAIRS_SEED = 0
"""Seed of the random pairs, as in :mod:`.trust`: with fixed pairs the odds depend on the graph only."""


class EdgeCredibility:
    """The log-odds that a pair of nodes is an edge of the graph rather than a random pair.

    A logistic regression is fitted to edges of the graph, most of which are genuine, and to as many random
    pairs, which stand for false edges. Its inputs are the similarity of both nodes' features, the product of
    their embeddings dimension by dimension, the similarity of the neighbourhoods expected from their
    features, and the similarity of the first node's features and expected neighbourhood to the other
    neighbours of the second node. The first node's own edges are not used.

    Parameters
    ----------
    embeddings
        Embeddings of the graph whose edges the regression is fitted to.
    """

    def __init__(self, embeddings: NodeEmbeddings) -> None:
        self.embeddings = embeddings

    @cached_property
    def neighbour_sums(self) -> Matrix:
        """Return the embedded features summed over the neighbours of each node."""
        return np.asarray(self._pattern @ self.embeddings.features)

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """Return the weights of the regression; zero where the graph has no edges."""
        graph, draws = self.embeddings.graph, np.random.default_rng(RANDOM_PAIRS_SEED)
        first, second = graph.rows.row_numbers, graph.rows.indices
        if not len(first):
            return np.zeros(self.embeddings.features.shape[1] + 6)
        if len(first) > MAX_PAIRS:
            chosen = draws.choice(len(first), MAX_PAIRS, replace=False)
            first, second = first[chosen], second[chosen]
        pairs = draws.integers(graph.n_nodes, size=(2, len(first)))
        is_edge = np.repeat([True, False], len(first))
        both = np.concatenate([first, pairs[0]]), np.concatenate([second, pairs[1]])
        inputs = self._inputs(*both, is_edge)
        outcomes = is_edge.astype(np.float64)
        return fit_penalised_logistic(inputs, outcomes, penalty=PENALTY, max_steps=N_NEWTON_STEPS)

    def log_odds(
        self, first: IntArray, second: IntArray, *, is_edge: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Return the log-odds of pairs of nodes, limited to 10 on both sides.

        Parameters
        ----------
        first, second
            The nodes that are corrected, and their neighbours.
        is_edge
            Whether each pair is an edge of that graph. The first node is then left out of the neighbours of
            the second.
        """
        blocks = [slice(i, i + BLOCK) for i in range(0, len(first), BLOCK)]
        parts = [self._inputs(first[part], second[part], is_edge[part]) @ self.weights for part in blocks]
        log_odds = np.concatenate([np.zeros(0), *parts])
        limited: NDArray[np.float64] = np.clip(log_odds, -MAX_LOG_ODDS, MAX_LOG_ODDS)
        return limited

    def _inputs(self, first: IntArray, second: IntArray, is_edge: NDArray[np.bool_]) -> Matrix:
        """Return the inputs of the regression, ``[n_pairs, rank + 6]``."""
        embedding, expected = self.embeddings.features, self.embeddings.expected
        rows: Any = self.embeddings.weighted_features
        cosine = np.asarray(rows[first].multiply(rows[second]).sum(axis=1)).ravel()
        others = self.neighbour_sums[second] - is_edge[:, None] * embedding[first]
        n_others = self._n_neighbours[second] - is_edge
        others = np.asarray(unit_rows(others * (n_others > 0)[:, None]))
        return np.column_stack(
            [
                np.ones(len(first)),
                np.sqrt(np.maximum(cosine, 0.0)),
                embedding[first] * embedding[second],
                np.einsum("ed,ed->e", expected[first], expected[second]),
                np.einsum("ed,ed->e", embedding[first], others),
                np.einsum("ed,ed->e", expected[first], others),
                n_others == 0,
            ]
        )

    @cached_property
    def _pattern(self) -> sparse.csr_array:
        """Return which nodes are neighbours of each other in either direction, as zeros and ones."""
        graph = self.embeddings.graph
        rows = graph.rows
        ones = np.ones(len(rows.indices))
        pattern = sparse.csr_array((ones, rows.indices, rows.indptr), shape=graph.adjacency.shape)
        return sparse.csr_array(pattern.maximum(pattern.T)) if graph.directed else pattern

    @cached_property
    def _n_neighbours(self) -> NDArray[np.int64]:
        return np.diff(self._pattern.indptr)
