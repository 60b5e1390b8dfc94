"""Graphite (Grover et al., 2019): a VGAE whose decoder propagates over an intermediate graph."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from numpy.random import Generator
from torch import Tensor
from torch.nn.functional import normalize

from nodecopy._core.validation import check_integer, check_real
from nodecopy.generators.autoencoder import Decoder, GraphAutoencoder
from nodecopy.graph import Graph
from nodecopy.nn.networks import draw_glorot
from nodecopy.nn.stack import SparseStack


@dataclass(kw_only=True, eq=False, repr=False)
class Graphite(GraphAutoencoder):
    """The :class:`VGAE` with a decoder of graph convolutions on an intermediate graph.

    Embeddings Z, with rows scaled to unit length, give the weighted graph Z Z^T + 1 1^T, normalised by its
    degrees to T. The decoder takes one step of feedback from it,

        Z* = (1 - feedback) Z + feedback T (ReLU(T Z W1) + ReLU(T X W0)) W2,

    and the logits are Z* Z*^T. T has rank n_latent + 1 and is held as its factor, so everything except the
    last product takes time and memory in proportion to nodes. All other parameters, attributes and notes are
    those of :class:`.GAE`.

    Parameters
    ----------
    n_decoder_hidden
        Width of the hidden layer of the decoder.
    feedback
        Weight of the decoder's update, the autoregressive scalar of the authors; 0 gives the VGAE.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import Graphite
    >>> Graphite(n_epochs=20).fit(datasets.load("karate"), rng=0).embeddings().shape
    (34, 16)
    """

    _n_heads = 2

    n_decoder_hidden: int = 32
    feedback: float = 0.5

    def _build_decoder(self, graph: Graph, features: SparseStack, rng: Generator) -> Decoder:
        return FeedbackDecoder(features, self.n_latent, self.n_decoder_hidden, self.feedback, rng)

    def _check(self) -> torch.device:
        check_integer(self.n_decoder_hidden, "n_decoder_hidden of Graphite", low=1)
        check_real(self.feedback, "feedback of Graphite", low=0.0, high=1.0)
        return super()._check()


class FeedbackDecoder(Decoder):
    """One step of feedback from the intermediate graph of the embeddings."""

    def __init__(
        self, features: SparseStack, n_latent: int, n_hidden: int, feedback: float, rng: Generator
    ) -> None:
        self.features, self.feedback = features, feedback
        shapes = (features.shape[2], n_hidden), (n_latent, n_hidden), (n_hidden, n_latent)
        device = features.device
        self.weights = [draw_glorot([rng], rows, columns, device) for rows, columns in shapes]

    def __call__(self, z: Tensor) -> Tensor:
        by_features, by_z, output = self.weights
        factor = factor_intermediate_graph(z)

        def propagate(h: Tensor) -> Tensor:
            return factor @ (factor.T @ h)

        update = torch.relu(propagate(z @ by_z[0])) + torch.relu(propagate((self.features @ by_features)[0]))
        return (1 - self.feedback) * z + self.feedback * propagate(update @ output[0])


def factor_intermediate_graph(z: Tensor) -> Tensor:
    """Return the factor F of the normalised intermediate graph T = F F^T."""
    factor = torch.cat([normalize(z, dim=1), torch.ones_like(z[:, :1])], dim=1)
    degrees = factor @ factor.sum(dim=0)
    return factor * degrees.rsqrt()[:, None]
