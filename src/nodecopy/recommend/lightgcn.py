"""LightGCN (He et al., 2020): free embeddings, averaged over propagation steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy import sparse

from nodecopy._core.validation import check_integer
from nodecopy.interactions import Interactions
from nodecopy.nn.stack import SparseStack
from nodecopy.recommend.bpr import BPRRecommender, EmbeddingNetwork, Embeddings


@dataclass(eq=False)
class LightGCN(BPRRecommender):
    """Average free embeddings over 0, 1, ..., ``n_layers`` propagation steps of D^-1/2 A D^-1/2.

    The other parameters and the attributes are those of :class:`.BPRRecommender`.

    Parameters
    ----------
    n_layers
        Number of propagation steps, 2 by default.
    regularisation
        Weight of half the squared free embeddings of a batch, per pair; 0.001 by default.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.recommend import LightGCN
    >>> library = datasets.load("library")
    >>> items, scores = LightGCN(n_factors=8, n_epochs=2).fit(library, rng=0).recommend(["reader 001"], 3)
    >>> items.shape
    (1, 3)
    """

    n_layers: int = 2
    regularisation: float = 0.001

    def check_params(self) -> None:
        super().check_params()
        check_integer(self.n_layers, "n_layers of LightGCN", low=1)

    def build_network(self, interactions: Interactions) -> EmbeddingNetwork:
        return _LightGCN(interactions.n_users, interactions.n_items, self.n_factors, self.n_layers)


class _LightGCN(EmbeddingNetwork):
    def __init__(self, n_users: int, n_items: int, n_factors: int, n_layers: int) -> None:
        super().__init__(n_users, n_items, n_factors)
        self.n_layers = n_layers

    def prepare_graph(self, matrix: sparse.csr_array, device: torch.device) -> SparseStack:
        """Return the propagation matrix; degrees are sums of entries, which may be probabilities."""
        both = sparse.csr_array(sparse.block_array([[None, matrix], [matrix.T, None]], format="csr"))
        degrees = np.asarray(both.sum(axis=1), np.float64)
        scale = np.divide(1.0, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)
        row = np.repeat(np.arange(len(degrees)), np.diff(both.indptr))
        both.data = both.data * scale[row] * scale[both.indices]
        return SparseStack([both], device)

    def forward(self, graph: SparseStack, draws: torch.Generator | None = None) -> Embeddings:
        layer = total = self.free[None]
        for _ in range(self.n_layers):
            layer = graph @ layer
            total = total + layer
        mean = total[0] / (self.n_layers + 1)
        return mean[: self.n_users], mean[self.n_users :]
