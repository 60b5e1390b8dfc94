"""Embedding networks that are trained by pairs: matrix factorisation, LightGCN and MGCCF."""

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
class BPRMF(BPRRecommender):
    """Matrix factorisation: free embeddings and nothing else (Rendle et al., 2009).

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.recommend import BPRMF
    >>> library = datasets.load("library")
    >>> items, scores = BPRMF(size=8, epochs=2).fit(library, rng=0).recommend(["reader 001"], 3)
    >>> items.shape
    (1, 3)
    """

    def _network(self, interactions: Interactions) -> EmbeddingNetwork:
        return EmbeddingNetwork(interactions.n_users, interactions.n_items, self.size)


@dataclass(eq=False)
class LightGCN(BPRRecommender):
    """Free embeddings, averaged over 0, 1, ..., ``layers`` steps of D^-1/2 A D^-1/2 (He et al., 2020).

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.recommend import LightGCN
    >>> library = datasets.load("library")
    >>> items, scores = LightGCN(size=8, epochs=2).fit(library, rng=0).recommend(["reader 001"], 3)
    >>> items.shape
    (1, 3)
    """

    layers: int = 2
    regularisation: float = 0.001

    def _check(self) -> None:
        super()._check()
        check_integer(self.layers, "layers of LightGCN", low=1)

    def _network(self, interactions: Interactions) -> EmbeddingNetwork:
        return _LightGCN(interactions.n_users, interactions.n_items, self.size, self.layers)


class _LightGCN(EmbeddingNetwork):
    def __init__(self, n_users: int, n_items: int, size: int, layers: int) -> None:
        super().__init__(n_users, n_items, size)
        self.layers = layers

    def on(self, matrix: sparse.csr_array, device: torch.device) -> SparseStack:
        """Degrees are sums of entries, so a matrix of probabilities is welcome."""
        both = sparse.csr_array(sparse.block_array([[None, matrix], [matrix.T, None]], format="csr"))
        degrees = np.asarray(both.sum(axis=1), np.float64)
        scale = np.divide(1.0, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)
        row = np.repeat(np.arange(len(degrees)), np.diff(both.indptr))
        both.data = both.data * scale[row] * scale[both.indices]
        return SparseStack([both], device)

    def forward(self, graph: SparseStack, draws: torch.Generator | None = None) -> Embeddings:
        layer = total = self.free[None]
        for _ in range(self.layers):
            layer = graph @ layer
            total = total + layer
        mean = total[0] / (self.layers + 1)
        return mean[: self.users], mean[self.users :]


@dataclass(eq=False)
class MGCCF(BPRRecommender):
    """Multi-graph convolution collaborative filtering (Sun et al., 2019), with whole neighbourhoods.

    Three parts are fused: convolutions on the bipartite graph, h <- tanh(W [h ; tanh(mean of the
    neighbours' h Q)]) with weights of their own for users and items in every layer; one step on the graphs
    of similar users and similar items, tanh(mean of e M); and a skip connection, tanh(e S). The similarity
    graphs join the pairs with the largest cosine, ``similar`` per node on average. They are made of the
    interactions the model is fitted to and stay when the bipartite graph is replaced.

    Parameters
    ----------
    layers
        Of the bipartite convolution.
    similar
        Mean degree of the similarity graphs.
    dropout
        Share of the neighbours that are dropped in every layer and step of training, 0.2 in its paper. A
        network that learnt with fewer neighbours is steadier on copied graphs, where they are others.
    fusion
        ``"sum"``, the best in its paper, or ``"concatenation"``.

    Notes
    -----
    The paper samples 15 and 10 neighbours, which changes nothing on graphs of this size but time, and adds
    up similar nodes where this takes the mean, which keeps tanh from saturating. The penalty is on
    the fused embeddings.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.recommend import MGCCF
    >>> library = datasets.load("library")
    >>> items, scores = MGCCF(size=8, epochs=2).fit(library, rng=0).recommend(["reader 001"], 3)
    >>> items.shape
    (1, 3)
    """

    learning_rate: float = 0.001
    regularisation: float = 0.02
    layers: int = 2
    similar: float = 10.0
    dropout: float = 0.2
    fusion: str = "sum"

    def _check(self) -> None:
        super()._check()
        check_integer(self.layers, "layers of MGCCF", low=1)
        check_real(self.similar, "similar of MGCCF", low=0.0)
        check_real(self.dropout, "dropout of MGCCF", low=0.0, high=0.99)
        check_choice(self.fusion, "fusion of MGCCF", ["sum", "concatenation"])

    def _network(self, interactions: Interactions) -> EmbeddingNetwork:
        return _MGCCF(self, interactions)


class _MGCCF(EmbeddingNetwork):
    def __init__(self, settings: MGCCF, interactions: Interactions) -> None:
        size, matrix = settings.size, interactions.matrix
        super().__init__(interactions.n_users, interactions.n_items, size)
        self.settings = settings
        self.neighbour = _weights(settings.layers, size, size)
        self.combine = _weights(settings.layers, 2 * size, size)
        self.similar, self.skip = _weights(1, size, size), _weights(1, size, size)
        sides = matrix, sparse.csr_array(matrix.T)
        self.alike = [_row_means(above_threshold(side, settings.similar)) for side in sides]

    def on(self, matrix: sparse.csr_array, device: torch.device) -> list[SparseStack]:
        matrices = _row_means(matrix), _row_means(sparse.csr_array(matrix.T)), *self.alike
        return [SparseStack([one], device) for one in matrices]

    def forward(self, graph: list[SparseStack], draws: torch.Generator | None = None) -> Embeddings:
        """Everywhere users come first, then items; each side listens to the other's embeddings."""
        free = self.free[: self.users], self.free[self.users :]
        h: tuple[Tensor, ...] = free
        for layer in range(self.settings.layers):
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
            is_sum = self.settings.fusion == "sum"
            fused.append(parts[0] + parts[1] + parts[2] if is_sum else torch.cat(parts, dim=1))
        return fused[0], fused[1]

    def penalised(self, embeddings: Embeddings) -> Embeddings:
        return embeddings

    def _mean(self, graph: SparseStack, values: Tensor, draws: torch.Generator | None) -> Tensor:
        """The mean over neighbours, some of them dropped in training."""
        rate, factors = self.settings.dropout, None
        if draws is not None and rate:
            kept = torch.rand(len(graph.values), generator=draws, device=values.device) >= rate
            factors = kept / (1 - rate)
        return graph.product(values[None], factors)[0]


def _weights(layers: int, rows: int, columns: int) -> nn.ParameterList:
    """A matrix for users and one for items in every layer."""
    return nn.ParameterList([nn.Parameter(torch.empty(rows, columns)) for _ in range(2 * layers)])


def _row_means(matrix: Any) -> sparse.csr_array:
    """Rows divided by their sums: products become means over neighbours, weighted where there are weights."""
    csr = sparse.csr_array(matrix, dtype=np.float64)
    sums = np.asarray(csr.sum(axis=1))
    csr.data = csr.data / np.repeat(sums, np.diff(csr.indptr))
    return csr
