"""Graphite (Grover et al., 2019): a decoder that spreads over the graph it is about to decode."""

from __future__ import annotations

import torch
from numpy.random import Generator
from torch import Tensor
from torch.nn.functional import normalize

from nodecopy._core.validation import check_integer, check_real
from nodecopy.generators.vgae import VGAE, Decoder
from nodecopy.graph import Graph
from nodecopy.nn.networks import glorot
from nodecopy.nn.stack import SparseStack


class Graphite(VGAE):
    """The :class:`VGAE` with a decoder of graph convolutions on an intermediate graph.

    Embeddings Z, their rows scaled to length one, give the weighted graph Z Z^T + 1 1^T, normalised by its
    degrees to T. The decoder takes one step of feedback from it,

        Z* = (1 - feedback) Z + feedback T (ReLU(T Z W1) + ReLU(T X W0)) W2,

    and the logits are Z* Z*^T. T has rank latent + 1 and is kept as its factor, so all but the last product
    takes time and memory that grow with nodes. All that is not named here is as in :class:`.GAE`.

    Parameters
    ----------
    decoder_hidden
        Width of the hidden layer of the decoder.
    feedback
        Share of the decoder's update, the autoregressive scalar of the authors; 0 is the VGAE.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import Graphite
    >>> Graphite(epochs=20).fit(datasets.load("karate"), rng=0).embeddings().shape
    (34, 16)
    """

    def __init__(
        self,
        *,
        hidden: int = 32,
        latent: int = 16,
        decoder_hidden: int = 32,
        feedback: float = 0.5,
        epochs: int = 200,
        learning_rate: float = 0.01,
        pairs: str = "all",
        sampler: str = "corrected",
        balanced: bool = True,
        device: str = "cpu",
    ) -> None:
        super().__init__(
            hidden=hidden,
            latent=latent,
            epochs=epochs,
            learning_rate=learning_rate,
            pairs=pairs,
            sampler=sampler,
            balanced=balanced,
            device=device,
        )
        self.decoder_hidden, self.feedback = decoder_hidden, feedback

    def _decoder(self, graph: Graph, features: SparseStack, draws: Generator) -> Decoder:
        return _Feedback(features, self.latent, self.decoder_hidden, self.feedback, draws)

    def _check(self, graph: Graph) -> torch.device:
        check_integer(self.decoder_hidden, "decoder_hidden of Graphite", low=1)
        check_real(self.feedback, "feedback of Graphite", low=0.0, high=1.0)
        return super()._check(graph)


class _Feedback(Decoder):
    def __init__(
        self, features: SparseStack, latent: int, hidden: int, feedback: float, draws: Generator
    ) -> None:
        self.features, self.feedback = features, feedback
        shapes = (features.shape[2], hidden), (latent, hidden), (hidden, latent)
        device = features.values.device
        self.weights = [glorot([draws], rows, columns, device) for rows, columns in shapes]

    def __call__(self, z: Tensor) -> Tensor:
        by_features, by_z, out = self.weights
        factor = intermediate_graph(z)

        def spread(h: Tensor) -> Tensor:
            return factor @ (factor.T @ h)

        update = torch.relu(spread(z @ by_z[0])) + torch.relu(spread((self.features @ by_features)[0]))
        return (1 - self.feedback) * z + self.feedback * spread(update @ out[0])


def intermediate_graph(z: Tensor) -> Tensor:
    """The factor F of the normalised intermediate graph T = F F^T."""
    factor = torch.cat([normalize(z, dim=1), torch.ones_like(z[:, :1])], dim=1)
    degrees = factor @ factor.sum(dim=0)
    return factor * degrees.rsqrt()[:, None]
