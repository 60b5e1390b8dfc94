"""Graph autoencoders (Kipf and Welling, 2016): a GCN embeds nodes so that inner products tell edges."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from nodecopy import checks
from nodecopy.errors import InputError
from nodecopy.generators.edge_model import EdgeModel
from nodecopy.generators.pairs import PairLoss
from nodecopy.graph import Graph
from nodecopy.nn.descent import Descent
from nodecopy.nn.devices import checked_device
from nodecopy.nn.networks import Networks, Recipe
from nodecopy.nn.stack import SparseStack, normalised
from nodecopy.rng import Rng, child, seed_sequence
from nodecopy.rows import Rows

WEIGHTS, NOISE = range(2)
"""What the children of a seed are for."""


class GAE(EdgeModel):
    """Embed nodes by a two-layer GCN Z whose inner products Z Z^T are the logits of edges.

    Z = S ReLU(S X W0) W1 with S = D^-1/2 (A + I) D^-1/2, trained on the weighted cross-entropy over
    all pairs (:class:`.PairLoss`), whole graph, no dropout, no early stopping.

    Parameters
    ----------
    hidden, latent
        Widths of the hidden layer and of the embeddings.
    epochs, learning_rate
        Of Adam.
    sampler, balanced
        How inner products become the edges of samples: see :class:`.EdgeModel`.
    device
        ``"cpu"`` or ``"cuda"``, where it trains; sampling is the CPU's.

    Notes
    -----
    - *Features* X are used as they are, neither normalised nor made binary. A graph without features
      gets the identity, one feature for each node.
    - *Directions and weights* are not used: inner products cannot tell (i, j) from (j, i), and an edge
      is there or not. Samples have neither.
    - *Memory* grows with nodes and edges, never with pairs of nodes; time does grow with pairs.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import GAE
    >>> model = GAE(latent=4).fit(datasets.load("karate"), rng=0)
    >>> model.embeddings().shape
    (34, 4)
    >>> friends, strangers = model.edge_probabilities([33, 0], [32, 33])
    >>> bool(friends > strangers)
    True
    >>> 50 < model.sample(rng=1).n_edges < 106  # of 78 observed ones
    True
    """

    _heads = 1

    def __init__(
        self,
        *,
        hidden: int = 32,
        latent: int = 16,
        epochs: int = 200,
        learning_rate: float = 0.01,
        sampler: str = "corrected",
        balanced: bool = True,
        device: str = "cpu",
    ) -> None:
        self.hidden, self.latent, self.epochs = hidden, latent, epochs
        self.learning_rate, self.device = learning_rate, device
        self.sampler, self.balanced = sampler, balanced

    def fit(self, graph: Graph, *, rng: Rng = None) -> Self:
        """Train on every edge of the graph; ``rng`` draws the first weights (and VGAE's noise)."""
        device, seed = self._check(graph), seed_sequence(rng)
        adjacency = _pattern(graph)
        if not adjacency.nnz:
            raise InputError(f"graph must have an edge between two different nodes; got {graph!r}.")
        recipe = Recipe(hidden=self.hidden, dropout=0.0)
        features = SparseStack([_features(graph)], device)
        encoder = Networks(recipe, features, self._heads * self.latent, [child(seed, WEIGHTS)])
        with torch.no_grad():  # Glorot's limit is meant for one head, not for two side by side
            width = self.hidden + self.latent
            encoder.second *= ((width + (self._heads - 1) * self.latent) / width) ** 0.5
        graphs = SparseStack([normalised(adjacency)], device)
        pairs = partial(PairLoss(adjacency, device), with_value=False)
        noise = np.random.default_rng(child(seed, NOISE))
        descent = Descent(encoder.weights, self.learning_rate)
        for _ in range(self.epochs):
            descent.step(lambda: self._loss(encoder.logits(graphs, None, None)[0], pairs, noise))
        with torch.no_grad():
            means = encoder.logits(graphs, None, None)[0, :, : self.latent]
        self._learned(graph, means)
        return self

    def embeddings(self) -> NDArray[np.float32]:
        """One row per node (VGAE: the mean of its normal distribution); read-only."""
        return self._fitted().decoded

    def _loss(self, encoded: Tensor, pairs: Callable[[Tensor], Tensor], noise: Generator) -> Tensor:
        return pairs(encoded)

    def _check(self, graph: Graph) -> torch.device:
        name = type(self).__name__
        if not isinstance(graph, Graph):
            raise InputError(f"graph of {name} must be a Graph; got {type(graph).__name__}.")
        checks.integer(self.hidden, f"hidden of {name}", low=1)
        checks.integer(self.latent, f"latent of {name}", low=1)
        checks.integer(self.epochs, f"epochs of {name}", low=1)
        checks.real(self.learning_rate, f"learning_rate of {name}", low=0.0)
        self._check_sampler()
        return checked_device(self.device)


class VGAE(GAE):
    """The variational :class:`GAE`: each node has a normal distribution, its mean is the embedding.

    A second head of the GCN gives the logarithm of the standard deviation s. Training draws
    z = mean + noise * s anew in every epoch and adds the divergence from the standard normal
    distribution, the mean over nodes divided by N once more. This follows the authors' code, in which
    the divergence hardly counts.

    Parameters are those of :class:`GAE`.
    """

    _heads = 2

    def _loss(self, encoded: Tensor, pairs: Callable[[Tensor], Tensor], noise: Generator) -> Tensor:
        mean, log_s = encoded[:, : self.latent], encoded[:, self.latent :]
        drawn = torch.from_numpy(noise.standard_normal(mean.shape, dtype=np.float32)).to(mean.device)
        s = log_s.exp()
        divergence = -0.5 * (1 + 2 * log_s - mean**2 - s**2).sum(dim=1).mean() / len(mean)
        loss: Tensor = pairs(mean + drawn * s) + divergence
        return loss


def _pattern(graph: Graph) -> sparse.csr_array:
    """Which nodes are neighbours: A without directions and weights."""
    rows = graph.undirected().rows
    return Rows(rows.indptr, rows.indices, None, rows.n_columns).csr


def _features(graph: Graph) -> sparse.csr_array:
    features: Any = graph.features
    if features is None or not features.shape[1]:
        return sparse.csr_array(sparse.eye_array(graph.n_nodes))
    return sparse.csr_array(features)
