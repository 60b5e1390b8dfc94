"""The training and the samples of graph autoencoders: a GCN encodes nodes, inner products score pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import partial
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import torch
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from torch import Tensor

from nodecopy._core.csr import freeze
from nodecopy._core.random import Rng, child, seed_sequence
from nodecopy._core.validation import check_choice, check_integer, check_real, check_type, show
from nodecopy.conversion import GraphLike, convert_graph
from nodecopy.errors import InputError
from nodecopy.generators.base import binary_adjacency, check_node_rows, check_pairs, list_edges, replace_edges
from nodecopy.generators.edge_distribution import EdgeDistribution, calibrate_scores, expected_edges
from nodecopy.generators.losses import PairLoss, SampledPairLoss
from nodecopy.graph import Graph
from nodecopy.models import GraphModel
from nodecopy.nn.devices import check_device
from nodecopy.nn.feature_matrices import add_identity_features
from nodecopy.nn.networks import Networks, Recipe
from nodecopy.nn.stack import SparseStack, normalise_adjacency
from nodecopy.nn.steps import AdamStepper

Loss: TypeAlias = Callable[[Tensor], Tensor]
SAMPLERS = ("raw", "calibrated", "corrected")


class AutoencoderSeeds(IntEnum):
    """Children of the seed of a fit, by purpose."""

    WEIGHTS = 0
    NOISE = 1
    DECODER = 2
    PAIRS = 3


class Decoder:
    """A decoder of embeddings into the vectors whose inner products are logits; here the identity."""

    weights: Sequence[Tensor] = ()

    def __call__(self, z: Tensor) -> Tensor:
        return z


@dataclass(kw_only=True, eq=False, repr=False)
class GraphAutoencoder(GraphModel[Graph]):
    """The base class of graph autoencoders; :class:`.GAE` documents the parameters and attributes.

    A subclass may change the number of outputs of the encoder per latent dimension (``_n_heads``; two are
    the mean and the logarithm of the standard deviation of a normal distribution), the encoder, the decoder,
    the loss and the embeddings.
    """

    n_hidden: int = 32
    n_latent: int = 16
    n_epochs: int = 200
    learning_rate: float = 0.01
    pairs: str = "all"
    sampler: str = "corrected"
    balanced: bool = True
    device: str = "cpu"

    embeddings_: NDArray[np.float32] = field(init=False)
    decoded_: NDArray[np.float32] = field(init=False)
    _n_heads: ClassVar[int] = 1
    _distribution: EdgeDistribution | None = field(default=None, init=False)

    def fit(self, graph: GraphLike, *, rng: Rng = None) -> Self:
        """Train on every edge of the graph.

        Parameters
        ----------
        graph
            The observed graph, or what :func:`.as_graph` converts.
        rng
            Seed or generator of the initial weights, and of the noise and the sampled pairs of each epoch.
        """
        graph = convert_graph(graph, f"graph of {type(self).__name__}")
        device, seed = self._check(), seed_sequence(rng)
        adjacency = binary_adjacency(graph.undirected())
        if not adjacency.nnz:
            name = type(self).__name__
            raise InputError(f"graph of {name} must have an edge between two different nodes; got {graph!r}.")
        matrix: Any = add_identity_features(graph).features
        features = SparseStack([sparse.csr_array(matrix)], device)
        weights_seed = child(seed, AutoencoderSeeds.WEIGHTS)
        n_outputs = self._n_heads * self.n_latent
        encoder = Networks.initialise(self._encoder_recipe(), features, n_outputs, [weights_seed])
        with torch.no_grad():  # Glorot's limit is that of a single head
            width = self.n_hidden + self.n_latent
            encoder.weights[1] *= ((width + (self._n_heads - 1) * self.n_latent) / width) ** 0.5
        decoder_rng = np.random.default_rng(child(seed, AutoencoderSeeds.DECODER))
        decoder = self._build_decoder(graph, features, decoder_rng)
        graphs = SparseStack([normalise_adjacency(adjacency)], device)
        pair_loss = partial(self._build_pair_loss(adjacency, device, seed), with_value=False)
        noise = np.random.default_rng(child(seed, AutoencoderSeeds.NOISE))
        stepper = AdamStepper([*encoder.weights, *decoder.weights], self.learning_rate)

        def loss(epoch: int) -> Tensor:
            return self._compute_loss(encoder.logits(graphs, None, epoch)[0], decoder, pair_loss, noise)

        for epoch in range(self.n_epochs):
            stepper.step(partial(loss, epoch))
        with torch.no_grad():
            z = self._embed(encoder.logits(graphs, None, None)[0], decoder)
            self._set_fitted(graph, z, decoder(z))
        return self

    def _check_state(self) -> None:
        state = vars(self)  # files of old versions lack the settings
        self.sampler_ = state.get("sampler_", self.sampler)
        self.balanced_ = state.get("balanced_", self.balanced)
        self._check_sampler(self.sampler_, self.balanced_)
        n_nodes = check_type(self.graph_, Graph, "graph_", "a Graph").n_nodes
        self.embeddings_ = freeze(check_node_rows(self.embeddings_, "embeddings_", n_nodes, np.float32))
        self.decoded_ = freeze(check_node_rows(self.decoded_, "decoded_", n_nodes, np.float32))

    def embeddings(self) -> NDArray[np.float32]:
        """Return the embeddings, one row per node, read-only: means if nodes have distributions."""
        self.check_fitted()
        return self.embeddings_

    def with_sampler(self, sampler: str) -> Self:
        """Return a copy of the trained model with another sampler, without training it again."""
        self.check_fitted()
        other = copy(self)
        other.sampler = sampler
        other._check_sampler(sampler, other.balanced_)
        other.sampler_, other._distribution = sampler, None
        return other

    @property
    def distribution_(self) -> EdgeDistribution:
        """The distribution of samples, calibrated at the first use because embeddings do not need it."""
        self.check_fitted()
        if self._distribution is None:
            self._distribution = self._calibrate()
        return self._distribution

    def draw(self, seed: SeedSequence) -> Graph:
        first, second = self.distribution_.draw(np.random.default_rng(seed))
        return replace_edges(self.graph_, first, second)

    def sample_many(self, n: int, *, rng: Rng = None, workers: int = 1) -> Iterator[Graph]:
        """Return an iterator over ``n`` samples, see :meth:`.GraphModel.sample_many`."""
        _ = self.distribution_  # calibrated once, before threads share it
        return super().sample_many(n, rng=rng, workers=workers)

    def edge_probabilities(self, first: ArrayLike, second: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of an edge between the nodes at ``first[k]`` and ``second[k]``."""
        distribution = self.distribution_
        return distribution.probabilities(*check_pairs(first, second, len(distribution.decoded)))

    def _encoder_recipe(self) -> Recipe:
        return Recipe(n_hidden=self.n_hidden, dropout=0.0)

    def _build_decoder(self, graph: Graph, features: SparseStack, rng: Generator) -> Decoder:
        return Decoder()

    def _embed(self, encoded: Tensor, decoder: Any) -> Tensor:
        """Return the embeddings, given the output of the trained encoder."""
        return encoded[:, : self.n_latent]

    def _compute_loss(self, encoded: Tensor, decoder: Any, pair_loss: Loss, noise: Generator) -> Tensor:
        """Return the loss of one epoch, up to a constant: only its gradient is used."""
        if self._n_heads == 1:
            return pair_loss(decoder(encoded))
        z, divergence = draw_normal(encoded, noise)
        return pair_loss(decoder(z)) + divergence / len(z)

    def _build_pair_loss(
        self, adjacency: sparse.csr_array, device: torch.device, seed: SeedSequence
    ) -> PairLoss | SampledPairLoss:
        if self.pairs == "all":
            return PairLoss(adjacency, device)
        rng = np.random.default_rng(child(seed, AutoencoderSeeds.PAIRS))
        return SampledPairLoss(adjacency, device, rng)

    def _check(self) -> torch.device:
        name = type(self).__name__
        for setting in ("n_hidden", "n_latent", "n_epochs"):
            check_integer(getattr(self, setting), f"{setting} of {name}", low=1)
        check_real(self.learning_rate, f"learning_rate of {name}", low=0.0)
        check_choice(self.pairs, f"pairs of {name}", ("all", "sampled"))
        self._check_sampler(self.sampler, self.balanced)
        return check_device(self.device)

    def _check_sampler(self, sampler: Any, balanced: Any) -> None:
        name = type(self).__name__
        check_choice(sampler, f"sampler of {name}", SAMPLERS)
        if not isinstance(balanced, bool):
            raise InputError(f"balanced of {name} must be True or False; got {show(balanced)}.")

    def _set_fitted(self, graph: Graph, embeddings: Tensor, decoded: Tensor) -> None:
        if not bool(decoded.isfinite().all()):
            name = type(self).__name__
            raise InputError(
                f"features and settings of {name} must not be so large that training overflows; "
                "scale the features or lower the learning_rate."
            )
        self.graph_ = graph.undirected()
        self.embeddings_ = freeze(embeddings.detach().cpu().numpy().copy())
        self.decoded_ = freeze(decoded.detach().cpu().numpy().copy())
        self.sampler_, self.balanced_, self._distribution = self.sampler, self.balanced, None

    def _calibrate(self) -> EdgeDistribution:
        distribution = EdgeDistribution(self.decoded_)
        if self.sampler_ == "raw":
            return distribution
        # A model that was trained on a GPU may be used on a machine without a GPU.
        vectors = torch.tensor(self.decoded_, device=self.device if torch.cuda.is_available() else "cpu")
        edges = np.stack(list_edges(self.graph_))
        calibration = calibrate_scores(vectors, edges, balanced=self.balanced_)
        distribution = replace(distribution, calibration=calibration)
        if self.sampler_ == "calibrated":
            return distribution
        return replace(distribution, scale=self.graph_.n_edges / expected_edges(vectors, calibration))


def draw_normal(heads: Tensor, rng: Generator) -> tuple[Tensor, Tensor]:
    """Draw each entry from N(mean, s^2) and return the divergence of all from N(0, 1).

    Parameters
    ----------
    heads
        The means and next to them the logarithms of s, ``[N, 2 d]``.
    rng
        Generator of the noise.

    Returns
    -------
    z, divergence
        The draws, ``[N, d]``, and the KL divergence, summed over dimensions and averaged over nodes.
    """
    n_nodes, width = heads.shape
    noise = rng.standard_normal((n_nodes, width // 2), dtype=np.float32)
    result: tuple[Tensor, Tensor] = _NormalDraw.apply(heads, torch.from_numpy(noise).to(heads))  # type: ignore[no-untyped-call]
    return result


class _NormalDraw(torch.autograd.Function):
    """A gradient of its own, because autograd takes three times as many passes over the data."""

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
