"""MGCCF (Sun et al., 2019): convolutions on the bipartite graph and on graphs of similar users and items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn

from nodecopy._core.validation import check_choice, check_integer, check_real
from nodecopy.interactions import Interactions
from nodecopy.nn.stack import SparseStack
from nodecopy.recommend.bpr import BPRRecommender, EmbeddingNetwork, Embeddings
from nodecopy.recommend.similarity import above_threshold


@dataclass(eq=False)
class MGCCF(BPRRecommender):
    """Multi-graph convolution collaborative filtering (Sun et al., 2019), with full neighbourhoods.

    Three parts are fused: convolutions on the bipartite graph, h <- tanh(W [h ; tanh(mean of the
    neighbours' h Q)]), with separate weights for users and items in every layer; one step on the graphs of
    similar users and similar items, tanh(mean of e M); and a skip connection, tanh(e S). The similarity
    graphs join the pairs with the largest cosine. They are built from the training interactions and do not
    change when the bipartite graph is replaced.

    The other parameters and the attributes are those of :class:`.BPRRecommender`.

    Parameters
    ----------
    learning_rate
        Learning rate of Adam, 0.001 by default.
    regularisation
        Weight of half the squared fused embeddings of a batch, per pair; 0.02 by default.
    n_layers
        Number of layers of the bipartite convolution, 2 by default.
    similarity_degree
        Mean degree of the similarity graphs, 10 by default.
    dropout
        Share of the neighbours that are dropped in every layer and step of training; 0.2 by default, as in
        its paper. A network trained with dropout is more stable on copied graphs, where neighbours change.
    fusion
        ``"sum"`` (default, the best in its paper) or ``"concatenation"``.

    Notes
    -----
    Two things differ from its paper, which samples 15 and 10 neighbours and adds up similar nodes. Sampling
    saves no time on graphs of this size, and the mean of similar nodes keeps tanh from saturating.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.recommend import MGCCF
    >>> library = datasets.load("library")
    >>> items, scores = MGCCF(n_factors=8, n_epochs=2).fit(library, rng=0).recommend(["reader 001"], 3)
    >>> items.shape
    (1, 3)
    """

    learning_rate: float = 0.001
    regularisation: float = 0.02
    n_layers: int = 2
    similarity_degree: float = 10.0
    dropout: float = 0.2
    fusion: str = "sum"

    def check_params(self) -> None:
        super().check_params()
        check_integer(self.n_layers, "n_layers of MGCCF", low=1)
        check_real(self.similarity_degree, "similarity_degree of MGCCF", low=0.0)
        check_real(self.dropout, "dropout of MGCCF", low=0.0, high=0.99)
        check_choice(self.fusion, "fusion of MGCCF", ["sum", "concatenation"])

    def build_network(self, interactions: Interactions) -> EmbeddingNetwork:
        return _MGCCF(self, interactions)


class _MGCCF(EmbeddingNetwork):
    """Every list holds the part of users first, then that of items."""

    def __init__(self, model: MGCCF, interactions: Interactions) -> None:
        size, matrix = model.n_factors, interactions.matrix
        super().__init__(interactions.n_users, interactions.n_items, size)
        self.model = model
        self.neighbour = _weights(model.n_layers, size, size)
        self.combine = _weights(model.n_layers, 2 * size, size)
        self.similar, self.skip = _weights(1, size, size), _weights(1, size, size)
        sides = matrix, sparse.csr_array(matrix.T)
        self.similarity = [
            _divide_by_row_sums(above_threshold(side, model.similarity_degree)) for side in sides
        ]

    def prepare_graph(self, matrix: sparse.csr_array, device: torch.device) -> list[SparseStack]:
        """Return the matrices of means over neighbours, then those of means over similar nodes."""
        sides = matrix, sparse.csr_array(matrix.T)
        matrices = *map(_divide_by_row_sums, sides), *self.similarity
        return [SparseStack([part], device) for part in matrices]

    def forward(self, graph: list[SparseStack], draws: torch.Generator | None = None) -> Embeddings:
        free = self.free[: self.n_users], self.free[self.n_users :]
        h: tuple[Tensor, ...] = free
        for layer in range(self.model.n_layers):
            means = [self._mean(graph[side], h[1 - side], draws) for side in (0, 1)]
            n = [torch.tanh(means[side] @ self.neighbour[2 * layer + side]) for side in (0, 1)]
            h = tuple(
                torch.tanh(torch.cat([h[side], n[side]], dim=1) @ self.combine[2 * layer + side])
                for side in (0, 1)
            )
        fused = []
        for side in (0, 1):
            z = torch.tanh((graph[2 + side] @ free[side][None])[0] @ self.similar[side])
            s = torch.tanh(free[side] @ self.skip[side])
            parts = h[side], z, s
            is_sum = self.model.fusion == "sum"
            fused.append(parts[0] + parts[1] + parts[2] if is_sum else torch.cat(parts, dim=1))
        return fused[0], fused[1]

    def penalised_embeddings(self, embeddings: Embeddings) -> Embeddings:
        return embeddings

    def _mean(self, graph: SparseStack, values: Tensor, draws: torch.Generator | None) -> Tensor:
        """Return the mean over neighbours, of which a share is dropped in training."""
        rate, factors = self.model.dropout, None
        if draws is not None and rate:
            is_present = torch.rand(len(graph.values), generator=draws, device=values.device) >= rate
            factors = is_present / (1 - rate)
        return graph.product(values[None], factors)[0]


def _weights(n_layers: int, n_rows: int, n_columns: int) -> nn.ParameterList:
    """Return a matrix for users and one for items in every layer."""
    return nn.ParameterList([nn.Parameter(torch.empty(n_rows, n_columns)) for _ in range(2 * n_layers)])


def _divide_by_row_sums(matrix: Any) -> sparse.csr_array:
    """Return a matrix whose products are weighted means over neighbours."""
    csr = sparse.csr_array(matrix, dtype=np.float64)
    sums = np.asarray(csr.sum(axis=1))
    csr.data = csr.data / np.repeat(sums, np.diff(csr.indptr))
    return csr
