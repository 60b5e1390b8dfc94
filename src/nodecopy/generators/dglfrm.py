"""Deep generative latent feature relational models (Mehta et al., 2019): communities that overlap.

Each node has a binary vector b of memberships, member k with probability pi_k, and these break a stick:
pi_k = v_1 ... v_k with v ~ Beta(alpha, 1), so that early communities are large and late ones rare. A GCN
infers b from the graph, a small network decodes it into f, and f_i . f_j is the logit of an edge.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.random import Generator
from scipy import sparse
from torch import Tensor
from torch.nn.functional import leaky_relu, softplus

from nodecopy._core.validation import check_integer, check_real
from nodecopy.errors import InputError
from nodecopy.generators.presence_loss import PresenceLoss
from nodecopy.generators.vgae import GAE, Decoder, drawn_normal
from nodecopy.graph import Graph
from nodecopy.nn.networks import LEAK, MOST_DROPPED, Recipe, glorot
from nodecopy.nn.stack import SparseStack

TEMPERATURE, PRIOR_TEMPERATURE = 1.0, 0.5
"""Of the relaxed memberships and of their prior."""
EDGE_OF_UNIT = 1e-4
"""Uniform numbers keep this distance from 0 and 1, so that their logits stay moderate."""


class DGLFRMB(GAE):
    """DGLFRM-B: nodes are told apart by the communities they belong to, and by nothing else.

    Training draws the stick's v from Kumaraswamy distributions, memberships from relaxed Bernoulli
    distributions with logits GCN + logit(pi), and minimises the weighted cross-entropy of all pairs
    (:class:`.PairLoss`), that of the features where there are any (:class:`.PresenceLoss`), and the
    divergences from the prior.

    Parameters
    ----------
    hidden, latent
        Widths of the hidden layer and of the memberships: the most communities there can be.
    decoder
        Widths of the two layers that turn memberships into f.
    alpha
        Of the prior Beta(alpha, 1): how many communities a node is expected to have.
    epochs, learning_rate, dropout
        Of the training.
    reconstruct_features
        Whether memberships must tell the features too.
    sampler, balanced
        How inner products become the edges of samples: see :class:`.EdgeModel`.
    device
        ``"cpu"`` or ``"cuda"``, where it trains; sampling is the CPU's.

    Notes
    -----
    Defaults are those of the node copying paper. As the paper has it, v belongs to the graph and is drawn
    once an epoch; the authors' code draws it anew for every node. Once trained, embeddings are the
    probabilities of membership, and these are decoded; the authors decode several draws and average the
    logits, which predicts edges as well.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import DGLFRMB
    >>> model = DGLFRMB(latent=8, alpha=3, epochs=20).fit(datasets.load("karate"), rng=0)
    >>> model.embeddings().shape
    (34, 8)
    """

    def __init__(
        self,
        *,
        hidden: int = 64,
        latent: int = 100,
        decoder: tuple[int, int] = (32, 16),
        alpha: float = 50.0,
        epochs: int = 1000,
        learning_rate: float = 0.01,
        dropout: float = 0.5,
        reconstruct_features: bool = True,
        sampler: str = "corrected",
        balanced: bool = True,
        device: str = "cpu",
    ) -> None:
        super().__init__(
            hidden=hidden,
            latent=latent,
            epochs=epochs,
            learning_rate=learning_rate,
            sampler=sampler,
            balanced=balanced,
            device=device,
        )
        self.decoder, self.alpha, self.dropout = decoder, alpha, dropout
        self.reconstruct_features = reconstruct_features

    def _recipe(self) -> Recipe:
        return Recipe(hidden=self.hidden, dropout=self.dropout, activation="leaky")

    def _decoder(self, graph: Graph, features: SparseStack, draws: Generator) -> Decoder:
        told = _told_features(graph) if self.reconstruct_features else None
        return _Communities(self.latent, self.decoder, self.alpha, told, draws, features.values.device)

    def _embedded(self, encoded: Tensor, decoder: _Communities) -> Tensor:
        return (encoded[:, : self.latent] + logit_of_log(decoder.expected_log_sticks())).sigmoid()

    def _loss(
        self, encoded: Tensor, decoder: _Communities, pairs: Callable[[Tensor], Tensor], noise: Generator
    ) -> Tensor:
        members, divergence = self._members(encoded[:, : self.latent], decoder, noise)
        return self._total(members, decoder, pairs) + divergence

    def _members(self, logits: Tensor, decoder: _Communities, noise: Generator) -> tuple[Tensor, Tensor]:
        """Relaxed memberships, and the divergence of all that is binary or a stick."""
        n_nodes = len(logits)
        prior = logit_of_log(decoder.log_sticks(uniform(noise, logits[0])))
        posterior = logits + prior
        relaxed = (posterior + torch.logit(uniform(noise, logits))) / TEMPERATURE
        of_members = relaxed_divergence(relaxed, posterior, prior).sum(dim=1).mean() / n_nodes
        of_sticks = kumaraswamy_divergence(*decoder.stick_parameters(), self.alpha).sum() / n_nodes**2
        return relaxed.sigmoid(), of_members + of_sticks

    def _total(self, z: Tensor, decoder: _Communities, pairs: Callable[[Tensor], Tensor]) -> Tensor:
        loss = pairs(decoder(z))
        return loss if decoder.features is None else loss + decoder.feature_loss(z)

    def _check(self, graph: Graph) -> torch.device:
        name = type(self).__name__
        if not isinstance(self.decoder, tuple) or len(self.decoder) != 2:
            raise InputError(f"decoder of {name} must be a tuple of two widths; got {self.decoder!r}.")
        for width in self.decoder:
            check_integer(width, f"decoder of {name}", low=1)
        if check_real(self.alpha, f"alpha of {name}", low=0.0, high=1e30) == 0:
            raise InputError(f"alpha of {name} must be above 0; got {self.alpha!r}.")
        check_real(self.dropout, f"dropout of {name}", low=0.0, high=MOST_DROPPED)
        return super()._check(graph)


class DGLFRM(DGLFRMB):
    """DGLFRM: a member of a community is so to its own degree, a normal number.

    Two more heads of the GCN give mean and log standard deviation of r, and z = b * r takes the place of
    the memberships b; once trained, the product of their means. Parameters are those of :class:`DGLFRMB`;
    its authors' runs on Cora have ``hidden=32, latent=50, alpha=10, epochs=500``.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import DGLFRM
    >>> model = DGLFRM(hidden=8, latent=6, epochs=20).fit(datasets.load("karate"), rng=0)
    >>> model.embeddings().shape
    (34, 6)
    """

    _heads = 3

    def _embedded(self, encoded: Tensor, decoder: _Communities) -> Tensor:
        return super()._embedded(encoded, decoder) * encoded[:, self.latent : 2 * self.latent]

    def _loss(
        self, encoded: Tensor, decoder: _Communities, pairs: Callable[[Tensor], Tensor], noise: Generator
    ) -> Tensor:
        members, divergence = self._members(encoded[:, : self.latent], decoder, noise)
        degrees, of_degrees = drawn_normal(encoded[:, self.latent :], noise)
        loss = self._total(members * degrees, decoder, pairs)
        return loss + divergence + of_degrees / len(degrees)


class _Communities(Decoder):
    """The trained parts behind the encoder: the stick, the decoder of pairs and that of features."""

    def __init__(
        self,
        latent: int,
        widths: tuple[int, int],
        alpha: float,
        features: sparse.csr_array | None,
        draws: Generator,
        device: torch.device,
    ) -> None:
        sizes = [(latent, widths[0]), widths]
        if features is not None:
            sizes.append((latent, features.shape[1]))
        layers = [glorot([draws], rows, columns, device) for rows, columns in sizes]
        biases = [torch.zeros(columns, device=device, requires_grad=True) for _, columns in sizes]
        # Before softplus: log(e^x - 1), which would overflow as it stands
        starts = [x + math.log(-math.expm1(-x)) for x in (alpha, 1.0)]
        self.sticks = [torch.full((latent,), start, device=device, requires_grad=True) for start in starts]
        self.layers, self.biases = layers, biases
        self.weights = [*layers, *biases, *self.sticks]
        self.features = None if features is None else PresenceLoss(features, device)

    def __call__(self, z: Tensor) -> Tensor:
        hidden = leaky_relu(z @ self.layers[0][0] + self.biases[0], LEAK)
        return hidden @ self.layers[1][0] + self.biases[1]

    def feature_loss(self, z: Tensor) -> Tensor:
        assert self.features is not None
        return self.features(z, self.layers[2][0], self.biases[2], with_value=False)

    def stick_parameters(self) -> tuple[Tensor, Tensor]:
        return softplus(self.sticks[0]), softplus(self.sticks[1])

    def log_sticks(self, u: Tensor) -> Tensor:
        """The log of pi for uniform numbers u: v = (1 - u^(1/b))^(1/a), multiplied up."""
        a, b = self.stick_parameters()
        return ((-torch.expm1(u.log() / b)).log() / a).cumsum(dim=-1)

    def expected_log_sticks(self) -> Tensor:
        """E[log pi]: log v has the mean -(digamma(b + 1) + Euler's constant) / a."""
        a, b = self.stick_parameters()
        return (-(torch.digamma(b + 1) + np.euler_gamma) / a).cumsum(dim=-1)


def uniform(draws: Generator, like: Tensor) -> Tensor:
    """Uniform numbers in the shape of a tensor, a little away from 0 and 1."""
    numbers = draws.uniform(EDGE_OF_UNIT, 1 - EDGE_OF_UNIT, like.shape)
    return torch.from_numpy(numbers.astype(np.float32)).to(like.device)


def logit_of_log(log_p: Tensor) -> Tensor:
    """log(p / (1 - p)) from log p."""
    return log_p - (-torch.expm1(log_p)).log()


def kumaraswamy_divergence(a: Tensor, b: Tensor, alpha: float) -> Tensor:
    """KL(Kumaraswamy(a, b) || Beta(alpha, 1)) (Nalisnick and Smyth, 2017), for each entry."""
    mean_log = np.euler_gamma + torch.digamma(b) + 1 / b
    return (alpha - a) / a * mean_log + (a * b).log() - math.log(alpha) - (b - 1) / b


def relaxed_divergence(relaxed: Tensor, posterior: Tensor, prior: Tensor) -> Tensor:
    """The divergence of the logits of relaxed Bernoulli variables, estimated from one draw of the posterior.

    It is log q - log p there (Maddison et al., 2017).
    """
    return _log_density(relaxed, posterior, TEMPERATURE) - _log_density(relaxed, prior, PRIOR_TEMPERATURE)


def _log_density(relaxed: Tensor, logits: Tensor, temperature: float) -> Tensor:
    x = logits - temperature * relaxed
    return math.log(temperature) + x - 2 * softplus(x)


def _told_features(graph: Graph) -> sparse.csr_array | None:
    """The features to reconstruct; a graph without any has nothing to tell."""
    features: Any = graph.features
    matrix = None if features is None else sparse.csr_array(features)
    return matrix if matrix is not None and matrix.count_nonzero() else None
