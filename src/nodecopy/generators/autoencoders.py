"""Graph autoencoders: a GCN encodes nodes, and inner products of decoded vectors are logits of edges."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike
from scipy import sparse
from torch import Tensor
from torch.nn.functional import leaky_relu, normalize, softplus

from nodecopy._core.arrays import Floats, Singles, freeze
from nodecopy._core.checks import check_settings, check_type
from nodecopy._core.random import Rng, child, seed_sequence
from nodecopy.errors import InputError
from nodecopy.generators.base import binary_adjacency, check_node_rows, check_pairs, list_edges, replace_edges
from nodecopy.generators.edges import (
    LOGITS_AT_ONCE,
    BlockwiseLoss,
    EdgeDistribution,
    calibrate_scores,
    check_trained,
    expected_edges,
    split_triangle,
)
from nodecopy.graph import Graph
from nodecopy.io import GraphLike, convert_graph
from nodecopy.models import GraphModel
from nodecopy.nn.networks import (
    MAX_DROPOUT,
    NEGATIVE_SLOPE,
    Networks,
    SparseStack,
    TrainingConfig,
    add_identity_features,
    draw_glorot,
    normalise_adjacency,
)
from nodecopy.nn.training import AdamStepper, check_device

Loss = Callable[[Tensor], Tensor]
SAMPLERS = ["raw", "calibrated", "corrected"]
WEIGHTS_SEED, NOISE_SEED, DECODER_SEED, PAIRS_SEED = range(4)  # children of the seed of a fit
N_DECODER_HIDDEN = 32  # width of the hidden layer of the decoder of Graphite
HALF_ROOT = 0.5**0.5  # vectors scaled by it have inner products of half the size


class Decoder:
    """Decodes embeddings into the vectors whose inner products are logits; here the identity."""

    weights: Sequence[Tensor] = ()

    def __call__(self, z: Tensor) -> Tensor:
        return z


@dataclass(kw_only=True, eq=False, repr=False)
class GraphAutoencoder(GraphModel[Graph]):
    """The base class of graph autoencoders; :class:`.GAE` documents the parameters and attributes.

    The encoder has ``_n_heads`` outputs per latent dimension; two are a mean and a log standard deviation.
    """

    n_hidden: int = 32
    n_latent: int = 16
    n_epochs: int = 200
    learning_rate: float = 0.01
    pairs: str = "all"
    sampler: str = "corrected"
    balanced: bool = True
    device: str = "cpu"

    embeddings_: Singles = field(init=False)
    decoded_: Singles = field(init=False)
    _n_heads: ClassVar[int] = 1
    _limits: ClassVar[dict[str, Any]] = {}
    _distribution: EdgeDistribution | None = field(default=None, init=False)

    def fit(self, graph: GraphLike, *, rng: Rng = None) -> Self:
        """Train on a graph or any object that :func:`.as_graph` converts.

        ``rng`` is the seed or generator of initial weights, noise and sampled pairs.
        """
        name = f"graph of {type(self).__name__}"
        graph = convert_graph(graph, name)
        device, seed = self._check(), seed_sequence(rng)
        adjacency = binary_adjacency(graph.undirected())
        if not adjacency.nnz:
            raise InputError(name, f"must have an edge between two different nodes; got {graph!r}.")
        matrix: Any = add_identity_features(graph).features
        features = SparseStack([sparse.csr_array(matrix)], device)
        n_outputs, weights_seed = self._n_heads * self.n_latent, child(seed, WEIGHTS_SEED)
        encoder = Networks.initialise(self._encoder_config(), features, n_outputs, [weights_seed])
        with torch.no_grad():  # Glorot's limit is that of a single head
            width = self.n_hidden + self.n_latent
            encoder.weights[1] *= ((width + (self._n_heads - 1) * self.n_latent) / width) ** 0.5
        decoder = self._build_decoder(graph, features, np.random.default_rng(child(seed, DECODER_SEED)))
        graphs = SparseStack([normalise_adjacency(adjacency)], device)
        pair_loss: BlockwiseLoss = PairLoss(adjacency, device)
        if self.pairs == "sampled":
            pair_loss = SampledPairLoss(adjacency, device, np.random.default_rng(child(seed, PAIRS_SEED)))
        noise = np.random.default_rng(child(seed, NOISE_SEED))
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
        check_settings(self, sampler_=SAMPLERS, balanced_=bool)
        n_nodes = check_type(self.graph_, Graph, "graph_", "a Graph").n_nodes
        self.embeddings_ = freeze(check_node_rows(self.embeddings_, "embeddings_", n_nodes, np.float32))
        self.decoded_ = freeze(check_node_rows(self.decoded_, "decoded_", n_nodes, np.float32))

    def embeddings(self) -> Singles:
        """Return the embeddings, one read-only row per node."""
        self.check_fitted()
        return self.embeddings_

    def with_sampler(self, sampler: str) -> Self:
        """Return a copy of the trained model with another sampler."""
        self.check_fitted()
        other = copy(self)
        other.sampler = other.sampler_ = sampler
        check_settings(other, sampler=SAMPLERS)
        other._distribution = None
        return other

    @property
    def distribution_(self) -> EdgeDistribution:
        """The distribution of samples, calibrated at the first use."""
        self.check_fitted()
        if self._distribution is None:
            self._distribution = self._calibrate()
        return self._distribution

    def draw(self, seed: SeedSequence) -> Graph:
        first, second = self.distribution_.draw(np.random.default_rng(seed))
        return replace_edges(self.graph_, first, second)

    def sample_many(self, n: int, *, rng: Rng = None, workers: int = 1) -> Iterator[Graph]:
        _ = self.distribution_  # calibrated once, before threads share it
        return super().sample_many(n, rng=rng, workers=workers)

    def edge_probabilities(self, first: ArrayLike, second: ArrayLike) -> Floats:
        """Return the probabilities of edges between the nodes at ``first[k]`` and ``second[k]``."""
        distribution = self.distribution_
        return distribution.probabilities(*check_pairs(first, second, len(distribution.decoded)))

    def _encoder_config(self) -> TrainingConfig:
        return TrainingConfig(n_hidden=self.n_hidden, dropout=0.0)

    def _build_decoder(self, graph: Graph, features: SparseStack, rng: Generator) -> Decoder:
        return Decoder()

    def _embed(self, encoded: Tensor, decoder: Any) -> Tensor:
        return encoded[:, : self.n_latent]

    def _compute_loss(self, encoded: Tensor, decoder: Any, pair_loss: Loss, noise: Generator) -> Tensor:
        if self._n_heads == 1:
            return pair_loss(decoder(encoded))
        z, divergence = draw_normal(encoded, noise)
        return pair_loss(decoder(z)) + divergence / len(z)

    def _check(self) -> torch.device:
        check_settings(self, n_hidden=1, n_latent=1, n_epochs=1, learning_rate=0.0, pairs=["all", "sampled"])
        check_settings(self, sampler=SAMPLERS, balanced=bool, **self._limits)
        return check_device(self.device)

    def _set_fitted(self, graph: Graph, embeddings: Tensor, decoded: Tensor) -> None:
        check_trained(self, [decoded], "Lower it, or scale the features.")
        self.graph_ = graph.undirected()
        self.embeddings_ = freeze(embeddings.detach().cpu().numpy().copy())
        self.decoded_ = freeze(decoded.detach().cpu().numpy().copy())
        self.sampler_, self.balanced_, self._distribution = self.sampler, self.balanced, None

    def _calibrate(self) -> EdgeDistribution:
        distribution = EdgeDistribution(self.decoded_)
        if self.sampler_ == "raw":
            return distribution
        # A model trained on a GPU may be used without one.
        vectors = torch.tensor(self.decoded_, device=self.device if torch.cuda.is_available() else "cpu")
        edges = np.stack(list_edges(self.graph_))
        calibration = calibrate_scores(vectors, edges, balanced=self.balanced_)
        distribution = replace(distribution, calibration=calibration)
        if self.sampler_ == "calibrated":
            return distribution
        return replace(distribution, scale=self.graph_.n_edges / expected_edges(vectors, calibration))


class GAE(GraphAutoencoder):
    """The graph autoencoder: embeddings Z of a two-layer GCN, with inner products Z Z^T as logits of edges.

    Z = S ReLU(S X W0) W1 with S = D^-1/2 (A + I) D^-1/2. Training minimises the weighted cross-entropy over
    all pairs (:class:`.PairLoss`), without dropout or early stopping.

    Parameters
    ----------
    n_hidden, n_latent
        Widths of the hidden layer and of the embeddings.
    n_epochs, learning_rate
        Epochs and learning rate of Adam.
    pairs
        ``"all"`` (default) for the authors' loss; ``"sampled"`` for a loss over edges and as many random
        pairs, for more than about 10,000 nodes.
    sampler
        How inner products become edges: ``"raw"``, ``"calibrated"`` or ``"corrected"`` (default).
    balanced
        Whether edges together weigh as much in the calibration as all other pairs (default).
    device
        ``"cpu"`` or ``"cuda"``, the device of the training; samples are drawn on the CPU.

    Attributes
    ----------
    embeddings_, decoded_
        One row per node, before and after the decoder; the same here.
    sampler_, balanced_
        The ``sampler`` and ``balanced`` of the fit.

    Notes
    -----
    Edges of samples are independent. A pair has the score p = sigma(f_i . f_j), with decoded vectors f, and
    the probability

    - ``"raw"``: p. Since edges have a large weight in training, samples are very dense.
    - ``"calibrated"``: sigma(a p + b), from a logistic regression of "is an edge" on p over all pairs. With
      ``balanced=False`` the expected number of edges is the observed one.
    - ``"corrected"``: the calibrated probability, scaled so that the expected number of edges is the observed
      one (or lower, if that would take probabilities above one).

    Without features, X is the identity. Directions and weights are ignored. Memory grows with nodes and
    edges, the time of an epoch and of a sample with pairs of nodes.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import GAE
    >>> model = GAE(n_latent=4).fit(datasets.load("karate"), rng=0)
    >>> model.embeddings().shape
    (34, 4)
    >>> 50 < model.sample(rng=1).n_edges < 106  # 78 observed edges
    True
    """


class VGAE(GraphAutoencoder):
    """The variational :class:`GAE`: each node has a normal distribution, whose mean is its embedding.

    A second head of the GCN gives the logarithm of the standard deviation s. Every epoch draws z = mean +
    noise * s and adds the mean divergence of nodes from the standard normal distribution, divided by N once
    more as in the authors' code. Parameters, attributes and notes are those of :class:`GAE`.

    >>> from nodecopy import datasets
    >>> from nodecopy.generators import VGAE
    >>> VGAE(n_latent=4, n_epochs=50).fit(datasets.load("karate"), rng=0).embeddings().shape
    (34, 4)
    """

    _n_heads = 2


@dataclass(kw_only=True, eq=False, repr=False)
class Graphite(GraphAutoencoder):
    """The :class:`VGAE` with a decoder of graph convolutions on an intermediate graph.

    Embeddings Z, with rows scaled to unit length, give the weighted graph Z Z^T + 1 1^T, normalised by its
    degrees to T. The decoder takes one step of feedback from it,

        Z* = (1 - feedback) Z + feedback T (ReLU(T Z W1) + ReLU(T X W0)) W2,

    and the logits are Z* Z*^T. Other parameters, attributes and notes are those of :class:`.GAE`.

    Parameters
    ----------
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

    feedback: float = 0.5
    _limits: ClassVar = {"feedback": (0.0, 1.0)}

    def _build_decoder(self, graph: Graph, features: SparseStack, rng: Generator) -> Decoder:
        return FeedbackDecoder(features, self.n_latent, self.feedback, rng)


class FeedbackDecoder(Decoder):
    """The decoder of :class:`Graphite`."""

    def __init__(self, features: SparseStack, n_latent: int, feedback: float, rng: Generator) -> None:
        self.features, self.feedback, n_hidden = features, feedback, N_DECODER_HIDDEN
        shapes = (features.shape[2], n_hidden), (n_latent, n_hidden), (n_hidden, n_latent)
        self.weights = [draw_glorot([rng], rows, columns, features.device) for rows, columns in shapes]

    def __call__(self, z: Tensor) -> Tensor:
        by_features, by_z, output = self.weights
        factor = torch.cat([normalize(z, dim=1), torch.ones_like(z[:, :1])], dim=1)
        factor = factor * (factor @ factor.sum(dim=0)).rsqrt()[:, None]  # T is factor @ factor.T

        def propagate(h: Tensor) -> Tensor:
            return factor @ (factor.T @ h)

        update = torch.relu(propagate(z @ by_z[0])) + torch.relu(propagate((self.features @ by_features)[0]))
        return (1 - self.feedback) * z + self.feedback * propagate(update @ output[0])


def draw_normal(heads: Tensor, rng: Generator) -> tuple[Tensor, Tensor]:
    """Draw from N(mean, s^2), given mean and log s, and return the divergence from N(0, 1)."""
    n_nodes, width = heads.shape
    noise = rng.standard_normal((n_nodes, width // 2), dtype=np.float32)
    result: tuple[Tensor, Tensor] = _NormalDraw.apply(heads, torch.from_numpy(noise).to(heads))  # type: ignore[no-untyped-call]
    return result


class _NormalDraw(torch.autograd.Function):
    """Has its own gradient, since autograd takes three times as many passes."""

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


class PairLoss(BlockwiseLoss):
    """Weighted cross-entropy of the logits Z Z^T against A + I, as in Kipf and Welling's code.

    Entry (i, j) has the weight ``positive_weight`` = (N^2 - sum A) / sum A where A + I is one, otherwise one,
    and the mean over all N^2 entries is multiplied by N^2 / (2 (N^2 - sum A)). A is binary and symmetric with
    an empty diagonal.
    """

    def __init__(
        self, adjacency: sparse.csr_array, device: torch.device, logits_at_once: int | None = None
    ) -> None:
        n_nodes, n_ones = adjacency.shape[0], adjacency.nnz
        with_diagonal = sparse.csr_array(adjacency + sparse.eye_array(n_nodes, dtype=np.float32))
        self.positives = SparseStack([with_diagonal], device)
        self.positive_weight = (n_nodes**2 - n_ones) / n_ones
        self.scale = 1 / (2 * (n_nodes**2 - n_ones))
        cores = torch.get_num_threads() if device.type == "cpu" else 1
        self.logits_at_once = logits_at_once or cores * LOGITS_AT_ONCE[device.type]

    def gradients(self, *tensors: Tensor) -> tuple[Tensor]:
        (z,) = tensors
        gradient = self._sum_as_non_edges(z)
        logits = torch.sparse.sampled_addmm(self.positives.tensor, z, z.T, beta=0).values()
        slopes = -self.positive_weight * torch.sigmoid(-logits) - torch.sigmoid(logits)
        gradient += self.positives.product(z[None], slopes)[0]
        return (2 * self.scale * gradient,)  # twice: a node is both the first and the second of pairs

    def _sum_as_non_edges(self, z: Tensor) -> Tensor:
        """Return half the gradient of sum softplus(z_i . z_j), by sigma(x) = (1 + tanh(x/2)) / 2."""
        by_row = HALF_ROOT * z
        by_column = by_row.T.contiguous()
        gradient, column_gradient = torch.empty_like(by_row), torch.zeros_like(by_column)
        buffer = z.new_empty(max(len(z), min(len(z) ** 2, self.logits_at_once)))
        for block in split_triangle(len(z), self.logits_at_once):
            rows, columns = by_row[block], by_column[:, block.start :]
            halves = buffer[: len(rows) * columns.shape[1]].view(len(rows), -1)
            torch.mm(rows, columns, out=halves)
            slopes = halves.tanh_()
            torch.mm(slopes, by_row[block.start :], out=gradient[block])
            column_gradient[:, block.stop :].addmm_(rows.T, slopes[:, len(rows) :])
        return HALF_ROOT * (gradient + column_gradient.T) + z.sum(dim=0) / 2


class SampledPairLoss(BlockwiseLoss):
    """The mean cross-entropy over edges plus that over as many random pairs."""

    def __init__(self, adjacency: sparse.csr_array, device: torch.device, rng: Generator) -> None:
        n_nodes, self.rng = adjacency.shape[0], rng
        self.positives = SparseStack([adjacency], device)
        self.identities = np.tile(np.arange(n_nodes), (-(-adjacency.nnz // n_nodes), 1))

    def gradients(self, *tensors: Tensor) -> tuple[Tensor]:
        (z,) = tensors
        logits = torch.sparse.sampled_addmm(self.positives.tensor, z, z.T, beta=0).values()
        slopes = torch.sigmoid(-logits) * (-2 / len(logits))  # twice: a row is both ends of its edges
        gradient = self.positives.product(z[None], slopes)[0]
        permutations, inverses = (numbers.to(z.device) for numbers in self.draw_permutations())
        partners = z[permutations]
        sampled = (z * partners).sum(dim=-1)
        weights = (sampled.sigmoid() / sampled.numel())[..., None]
        gradient += (weights * partners).sum(dim=0)
        gradient += (weights * z).flatten(0, 1)[inverses].sum(dim=0)
        return (gradient,)

    def draw_permutations(self) -> tuple[Tensor, Tensor]:
        permutations = self.rng.permuted(self.identities, axis=1)
        inverses = np.empty_like(permutations)
        np.put_along_axis(inverses, permutations, self.identities, axis=1)
        inverses += np.arange(len(inverses))[:, None] * inverses.shape[1]
        return torch.from_numpy(permutations), torch.from_numpy(inverses)


class PresenceLoss(BlockwiseLoss):
    """Cross-entropy of the logits Z W + b against "is not zero"; zeros and others weigh the same."""

    def __init__(
        self, features: sparse.csr_array, device: torch.device, logits_at_once: int | None = None
    ) -> None:
        present = sparse.csr_array(features, copy=True)
        present.eliminate_zeros()
        n_rows, n_columns = present.shape
        self.scale = 1 / (n_rows * n_columns)
        self.positive_weight = (n_rows * n_columns - present.nnz) / present.nnz
        self.rows_at_once = max(1, (logits_at_once or LOGITS_AT_ONCE[device.type]) // n_columns)
        row = np.repeat(np.arange(n_rows), np.diff(present.indptr)) % self.rows_at_once
        self._indptr = present.indptr
        self._positions = torch.from_numpy(row * n_columns + present.indices).to(device)

    def gradients(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        z, weight, bias = tensors
        by_z, by_weight, by_bias = torch.empty_like(z), torch.zeros_like(weight), torch.zeros_like(bias)
        for start in range(0, len(z), self.rows_at_once):
            block = slice(start, min(len(z), start + self.rows_at_once))
            logits = torch.addmm(bias, z[block], weight)
            present = self._positions[self._indptr[block.start] : self._indptr[block.stop]]
            slopes = logits.sigmoid_()
            flat = slopes.view(-1)
            flat[present] = self.positive_weight * (flat[present] - 1)
            torch.mm(slopes, weight.T, out=by_z[block])
            by_weight.addmm_(z[block].T, slopes)
            by_bias += slopes.sum(dim=0)
        return self.scale * by_z, self.scale * by_weight, self.scale * by_bias


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
