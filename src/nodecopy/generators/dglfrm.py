"""Deep generative latent feature relational models (Mehta et al., 2019), with overlapping communities.

Each node has a binary vector b of memberships, with a stick-breaking prior: a node is in community k with
probability pi_k = v_1 ... v_k, v ~ Beta(alpha, 1). A GCN infers b, a small network decodes it into f, and
f_i . f_j is the logit of an edge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import torch
from numpy.random import Generator
from scipy import sparse
from torch import Tensor
from torch.nn.functional import leaky_relu, softplus

from nodecopy.generators.autoencoders import Decoder, GraphAutoencoder, Loss, PresenceLoss, draw_normal
from nodecopy.graph import Graph
from nodecopy.nn.networks import MAX_DROPOUT, NEGATIVE_SLOPE, SparseStack, TrainingConfig, draw_glorot

TEMPERATURE, PRIOR_TEMPERATURE = 1.0, 0.5  # temperatures of the relaxed memberships and of their prior
DECODER_WIDTHS = (32, 16)  # of the two layers that turn memberships into f
UNIFORM_MARGIN = 1e-4  # distance of uniform numbers from 0 and 1, for moderate logits


@dataclass(kw_only=True, eq=False, repr=False)
class DGLFRMB(GraphAutoencoder):
    """DGLFRM-B: the embedding of a node consists of its binary memberships in communities.

    Training draws the v of the stick-breaking prior from Kumaraswamy distributions and memberships from
    relaxed Bernoulli distributions with logits GCN + logit(pi). It minimises the weighted cross-entropy of
    pairs (:class:`.PairLoss`) and features (:class:`.PresenceLoss`) and the divergences from the prior.

    Parameters
    ----------
    n_hidden, n_latent
        Widths of the hidden layer and of the memberships, the largest number of communities.
    alpha
        Parameter of the prior Beta(alpha, 1): the expected number of communities of a node.
    n_epochs, learning_rate, dropout
        Epochs and learning rate of Adam, and the dropout rate of the encoder.
    sampler, balanced, device
        As in :class:`.GAE`.

    Attributes
    ----------
    embeddings_, decoded_
        The probabilities of membership, and the vectors f; one row per node.
    sampler_, balanced_
        As in :class:`.GAE`.

    Notes
    -----
    Defaults are those of the node copying paper. As in the authors' paper, v is drawn once per epoch for the
    whole graph. Probabilities of memberships are decoded; the authors average several draws.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import DGLFRMB
    >>> model = DGLFRMB(n_latent=8, alpha=3, n_epochs=20).fit(datasets.load("karate"), rng=0)
    >>> model.embeddings().shape
    (34, 8)
    """

    n_hidden: int = 64
    n_latent: int = 100
    n_epochs: int = 1000
    pairs: str = field(default="all", init=False)
    alpha: float = 50.0
    dropout: float = 0.5
    _limits: ClassVar = {"alpha": (1e-30, 1e30), "dropout": (0.0, MAX_DROPOUT)}

    def _encoder_config(self) -> TrainingConfig:
        return TrainingConfig(n_hidden=self.n_hidden, dropout=self.dropout, activation="leaky")

    def _build_decoder(self, graph: Graph, features: SparseStack, rng: Generator) -> Decoder:
        targets = None if graph.features is None else sparse.csr_array(graph.features)
        if targets is not None and not targets.count_nonzero():
            targets = None
        return CommunityDecoder(self.n_latent, self.alpha, targets, rng, features.device)

    def _embed(self, encoded: Tensor, decoder: CommunityDecoder) -> Tensor:
        logits, *heads = encoded.chunk(self._n_heads, dim=1)
        memberships = (logits + _logit_from_log(decoder.expected_log_sticks())).sigmoid()
        return memberships * heads[0] if heads else memberships

    def _compute_loss(
        self, encoded: Tensor, decoder: CommunityDecoder, pair_loss: Loss, noise: Generator
    ) -> Tensor:
        n_nodes, logits = len(encoded), encoded[:, : self.n_latent]
        prior = _logit_from_log(decoder.log_sticks(_draw_uniforms(noise, logits[0])))
        posterior = logits + prior
        relaxed = (posterior + torch.logit(_draw_uniforms(noise, logits))) / TEMPERATURE
        of_memberships = relaxed_divergence(relaxed, posterior, prior).sum(dim=1).mean() / n_nodes
        of_sticks = kumaraswamy_divergence(*decoder.stick_parameters(), self.alpha).sum() / n_nodes**2
        z, divergence = relaxed.sigmoid(), of_memberships + of_sticks
        if self._n_heads == 1:
            return decoder.loss(z, pair_loss) + divergence
        strengths, of_strengths = draw_normal(encoded[:, self.n_latent :], noise)
        return decoder.loss(z * strengths, pair_loss) + divergence + of_strengths / n_nodes


class DGLFRM(DGLFRMB):
    """DGLFRM: each membership of a node has a strength, a normally distributed number.

    Two more heads of the GCN give the mean and the log standard deviation of the strengths r, and z = b * r
    replaces b. Embeddings are the products of the means of b and r. Parameters are those of
    :class:`DGLFRMB`; the authors use ``n_hidden=32, n_latent=50, alpha=10, n_epochs=500`` for Cora.

    >>> from nodecopy import datasets
    >>> from nodecopy.generators import DGLFRM
    >>> model = DGLFRM(n_hidden=8, n_latent=6, n_epochs=20).fit(datasets.load("karate"), rng=0)
    >>> model.embeddings().shape
    (34, 6)
    """

    _n_heads = 3


class CommunityDecoder(Decoder):
    """The stick-breaking prior, and the decoders of pairs and of features."""

    def __init__(
        self,
        n_latent: int,
        alpha: float,
        features: sparse.csr_array | None,
        rng: Generator,
        device: torch.device,
    ) -> None:
        shapes = [(n_latent, DECODER_WIDTHS[0]), DECODER_WIDTHS]
        if features is not None:
            shapes.append((n_latent, features.shape[1]))
        self.layers = [draw_glorot([rng], *shape, device) for shape in shapes]
        self.biases = [torch.zeros(columns, device=device, requires_grad=True) for _, columns in shapes]
        # The inverse of softplus, log(e^x - 1), in a form that does not overflow.
        starts = [x + math.log(-math.expm1(-x)) for x in (alpha, 1.0)]
        self.sticks = [torch.full((n_latent,), start, device=device, requires_grad=True) for start in starts]
        self.weights = [*self.layers, *self.biases, *self.sticks]
        self.feature_loss = None if features is None else PresenceLoss(features, device)

    def __call__(self, z: Tensor) -> Tensor:
        hidden = leaky_relu(z @ self.layers[0][0] + self.biases[0], NEGATIVE_SLOPE)
        return hidden @ self.layers[1][0] + self.biases[1]

    def loss(self, z: Tensor, pair_loss: Loss) -> Tensor:
        loss = pair_loss(self(z))
        if self.feature_loss is None:
            return loss
        return loss + self.feature_loss(z, self.layers[2][0], self.biases[2])

    def stick_parameters(self) -> tuple[Tensor, Tensor]:
        return softplus(self.sticks[0]), softplus(self.sticks[1])

    def log_sticks(self, u: Tensor) -> Tensor:
        """Return log pi for uniform numbers u: the cumulative sum of log v, v = (1 - u^(1/b))^(1/a)."""
        a, b = self.stick_parameters()
        return ((-torch.expm1(u.log() / b)).log() / a).cumsum(dim=-1)

    def expected_log_sticks(self) -> Tensor:
        """Return E[log pi]: the mean of log v is -(digamma(b + 1) + Euler's constant) / a."""
        a, b = self.stick_parameters()
        return (-(torch.digamma(b + 1) + np.euler_gamma) / a).cumsum(dim=-1)


def _draw_uniforms(rng: Generator, like: Tensor) -> Tensor:
    numbers = rng.uniform(UNIFORM_MARGIN, 1 - UNIFORM_MARGIN, like.shape)
    return torch.from_numpy(numbers.astype(np.float32)).to(like.device)


def _logit_from_log(log_p: Tensor) -> Tensor:
    return log_p - (-torch.expm1(log_p)).log()


def kumaraswamy_divergence(a: Tensor, b: Tensor, alpha: float) -> Tensor:
    """Return KL(Kumaraswamy(a, b) || Beta(alpha, 1)) of each entry (Nalisnick and Smyth, 2017)."""
    mean_log = np.euler_gamma + torch.digamma(b) + 1 / b
    return (alpha - a) / a * mean_log + (a * b).log() - math.log(alpha) - (b - 1) / b


def relaxed_divergence(relaxed: Tensor, posterior: Tensor, prior: Tensor) -> Tensor:
    """Estimate the divergence of relaxed Bernoulli logits from one draw (Maddison et al., 2017)."""

    def log_density(logits: Tensor, temperature: float) -> Tensor:
        x = logits - temperature * relaxed
        return math.log(temperature) + x - 2 * softplus(x)

    return log_density(posterior, TEMPERATURE) - log_density(prior, PRIOR_TEMPERATURE)
