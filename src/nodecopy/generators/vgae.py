"""Graph autoencoders (Kipf and Welling, 2016): a GCN embeds nodes so that inner products tell edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from numpy.random import Generator, SeedSequence
from scipy import sparse
from torch import Tensor

from nodecopy._core.csr import Rows
from nodecopy._core.random import Rng, child, seed_sequence
from nodecopy._core.validation import check_choice, check_integer, check_real
from nodecopy.errors import InputError
from nodecopy.generators.edge_model import EdgeModel
from nodecopy.generators.pair_loss import PairLoss, SampledPairLoss
from nodecopy.graph import Graph
from nodecopy.nn.adam import Descent
from nodecopy.nn.devices import checked_device
from nodecopy.nn.features import with_features
from nodecopy.nn.networks import Networks, Recipe
from nodecopy.nn.stack import SparseStack, normalised

WEIGHTS, NOISE, DECODER, PAIRS = range(4)
"""What the children of a seed are for."""


class Decoder:
    """From embeddings to the vectors whose inner products are logits: here they are the same."""

    weights: Sequence[Tensor] = ()

    def __call__(self, z: Tensor) -> Tensor:
        return z


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
    pairs
        ``"all"``, the authors' loss; or ``"sampled"``, edges and as many random pairs, drawn anew in every
        epoch (:class:`.SampledPairLoss`), for graphs of more than some ten thousand nodes.
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
    - *Memory* grows with nodes and edges, never with pairs of nodes. Time does grow with pairs: in every
      epoch, unless they are sampled, and in every sample of a graph.

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
        pairs: str = "all",
        sampler: str = "corrected",
        balanced: bool = True,
        device: str = "cpu",
    ) -> None:
        self.hidden, self.latent, self.epochs = hidden, latent, epochs
        self.learning_rate, self.pairs, self.device = learning_rate, pairs, device
        self.sampler, self.balanced = sampler, balanced

    def fit(self, graph: Graph, *, rng: Rng = None) -> Self:
        """Train on every edge of the graph; ``rng`` draws the first weights (and VGAE's noise)."""
        device, seed = self._check(graph), seed_sequence(rng)
        adjacency = _pattern(graph)
        if not adjacency.nnz:
            raise InputError(f"graph must have an edge between two different nodes; got {graph!r}.")
        told: Any = with_features(graph).features
        features = SparseStack([sparse.csr_array(told)], device)
        encoder = Networks(self._recipe(), features, self._heads * self.latent, [child(seed, WEIGHTS)])
        with torch.no_grad():  # Glorot's limit is meant for one head, not for several side by side
            width = self.hidden + self.latent
            encoder.second *= ((width + (self._heads - 1) * self.latent) / width) ** 0.5
        decoder = self._decoder(graph, features, np.random.default_rng(child(seed, DECODER)))
        graphs = SparseStack([normalised(adjacency)], device)
        pairs = partial(self._pair_loss(adjacency, device, seed), with_value=False)
        noise = np.random.default_rng(child(seed, NOISE))
        descent = Descent([*encoder.weights, *decoder.weights], self.learning_rate)

        def loss(step: int) -> Tensor:
            return self._loss(encoder.logits(graphs, None, step)[0], decoder, pairs, noise)

        for step in range(self.epochs):
            descent.step(partial(loss, step))
        with torch.no_grad():
            z = self._embedded(encoder.logits(graphs, None, None)[0], decoder)
            self._learned(graph, z, decoder(z))
        return self

    def _recipe(self) -> Recipe:
        return Recipe(hidden=self.hidden, dropout=0.0)

    def _pair_loss(
        self, adjacency: sparse.csr_array, device: torch.device, seed: SeedSequence
    ) -> PairLoss | SampledPairLoss:
        if self.pairs == "all":
            return PairLoss(adjacency, device)
        return SampledPairLoss(adjacency, device, np.random.default_rng(child(seed, PAIRS)))

    def _decoder(self, graph: Graph, features: SparseStack, draws: Generator) -> Decoder:
        return Decoder()

    def _embedded(self, encoded: Tensor, decoder: Any) -> Tensor:
        """What is kept of the encoder's output once trained."""
        return encoded[:, : self.latent]

    def _loss(
        self, encoded: Tensor, decoder: Any, pairs: Callable[[Tensor], Tensor], noise: Generator
    ) -> Tensor:
        """One epoch's loss, up to a constant: only its gradient is used."""
        return pairs(decoder(encoded))

    def _check(self, graph: Graph) -> torch.device:
        name = type(self).__name__
        self._checked(graph)
        check_integer(self.hidden, f"hidden of {name}", low=1)
        check_integer(self.latent, f"latent of {name}", low=1)
        check_integer(self.epochs, f"epochs of {name}", low=1)
        check_real(self.learning_rate, f"learning_rate of {name}", low=0.0)
        check_choice(self.pairs, f"pairs of {name}", ("all", "sampled"))
        self._check_sampler()
        return checked_device(self.device)


class VGAE(GAE):
    """The variational :class:`GAE`: each node has a normal distribution, its mean is the embedding.

    A second head of the GCN gives the logarithm of the standard deviation s. Training draws
    z = mean + noise * s anew in every epoch and adds the divergence from the standard normal
    distribution, the mean over nodes divided by N once more. This follows the authors' code, in which
    the divergence hardly counts.

    Parameters are those of :class:`GAE`.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import VGAE
    >>> VGAE(latent=4, epochs=50).fit(datasets.load("karate"), rng=0).embeddings().shape
    (34, 4)
    """

    _heads = 2

    def _loss(
        self, encoded: Tensor, decoder: Any, pairs: Callable[[Tensor], Tensor], noise: Generator
    ) -> Tensor:
        z, divergence = drawn_normal(encoded, noise)
        return pairs(decoder(z)) + divergence / len(z)


def drawn_normal(heads: Tensor, draws: Generator) -> tuple[Tensor, Tensor]:
    """One draw of N(mean, s^2) for each entry, and the divergence of all from N(0, 1).

    Parameters
    ----------
    heads
        The means and beside them the logarithms of s, ``[N, 2 d]``.
    draws
        Draws the noise.

    Returns
    -------
    z, divergence
        ``[N, d]``; and KL, added up over dimensions, the mean over nodes.
    """
    n_nodes, width = heads.shape
    noise = draws.standard_normal((n_nodes, width // 2), dtype=np.float32)
    found: tuple[Tensor, Tensor] = _DrawnNormal.apply(heads, torch.from_numpy(noise).to(heads))  # type: ignore[no-untyped-call]
    return found


class _DrawnNormal(torch.autograd.Function):
    """By hand, since autograd takes three times as many passes for the same short formula."""

    @staticmethod
    def forward(ctx: Any, heads: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_s = heads.chunk(2, dim=1)
        s = log_s.exp()
        ctx.save_for_backward(mean, s, noise)
        divergence = (mean.square().sum() + s.square().sum()) / 2 - log_s.sum()
        return torch.addcmul(mean, s, noise), divergence / len(mean) - mean.shape[1] / 2

    @staticmethod
    def backward(ctx: Any, by_z: Tensor, by_divergence: Tensor) -> tuple[Tensor, None]:
        mean, s, noise = ctx.saved_tensors
        gradient = torch.cat([mean, s * s - 1], dim=1) * (by_divergence / len(mean))
        by_mean, by_log_s = gradient.chunk(2, dim=1)
        by_mean += by_z
        by_log_s.addcmul_(by_z * s, noise)
        return gradient, None


def _pattern(graph: Graph) -> sparse.csr_array:
    """Which nodes are neighbours: A without directions and weights."""
    rows = graph.undirected().rows
    return Rows(rows.indptr, rows.indices, None, rows.n_columns).csr
