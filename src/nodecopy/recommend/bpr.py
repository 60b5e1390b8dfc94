"""Bayesian personalised ranking (Rendle et al., 2009): one training loop for every embedding network.

A network computes embeddings of users and items from its weights and a graph; their inner products are the
scores s. For every observed pair (u, i), training draws an item j that u does not have, the negative, and
minimises -ln sigma(s_ui - s_uj) plus a penalty by Adam.

:class:`EnsembleBPR` and :class:`SampledGraphBPR` are the paper's Algorithms 3 and 4, which evaluate a network
on graphs whose users are copied.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.random import Generator, SeedSequence
from scipy import sparse
from torch import Tensor, nn
from torch.nn import functional

from nodecopy._core.arrays import Array, IntArray, Ints, keep_entries
from nodecopy._core.checks import check_settings, show
from nodecopy._core.random import child
from nodecopy.copying import Jaccard, NodeCopying
from nodecopy.errors import InputError
from nodecopy.interactions import Interactions
from nodecopy.metrics import ranking
from nodecopy.nn.networks import SparseStack
from nodecopy.nn.training import AdamStepper, check_device
from nodecopy.recommend.base import EmbeddingRecommender, Recommender, cosines, fit_copy
from nodecopy.recommend.baselines import above_threshold

Embeddings = tuple[Tensor, Tensor]
EmbeddingStacks = tuple[Array, Array]  # of users and of items, [graphs, nodes, factors] each
SIMILARITY_DEGREE = 10.0  # mean degree of the similarity graphs of MGCCF
VALIDATION_LENGTH = 20  # of the lists whose recall decides when training stops
WEIGHTS, TRAINING = 0, 1  # children of the seed of a network
NEGATIVES, DROPOUT = 0, 1  # children of the seed of the training loop
NETWORK, GRAPHS = 0, 1  # children of the seed of an ensemble


class EmbeddingNetwork(nn.Module):
    """Free embeddings of users and items, which a subclass transforms on a graph.

    A subclass writes :meth:`prepare_graph` and :meth:`forward`; :class:`BPRRecommender` trains it.

    Parameters
    ----------
    n_users, n_items, n_factors
        Numbers of users and items, and the length of the embeddings.
    """

    def __init__(self, n_users: int, n_items: int, n_factors: int) -> None:
        super().__init__()
        self.n_users = n_users
        self.free = nn.Parameter(torch.empty(n_users + n_items, n_factors))

    def initialise(self, draws: torch.Generator) -> None:
        """Draw every matrix from Xavier's uniform distribution, on the CPU."""
        for weight in self.parameters():
            nn.init.xavier_uniform_(weight, generator=draws)

    def prepare_graph(self, matrix: sparse.csr_array, device: torch.device) -> Any:
        """Return a users x items matrix in the form that :meth:`forward` takes."""
        return None

    def forward(self, graph: Any, draws: torch.Generator | None = None) -> Embeddings:
        """Return the embeddings of users and items; ``draws`` is given in training only, for dropout."""
        return self.split(self.free)

    def split(self, embeddings: Tensor) -> Embeddings:
        return embeddings[: self.n_users], embeddings[self.n_users :]

    def penalised_embeddings(self, embeddings: Embeddings) -> Embeddings:
        """Return the embeddings whose squares are penalised: the free ones by default."""
        return self.split(self.free)


@dataclass(eq=False)
class BPRRecommender(EmbeddingRecommender):
    """A network trained by Bayesian personalised ranking; a subclass writes :meth:`build_network`.

    Parameters
    ----------
    n_factors
        Length of the embeddings.
    learning_rate
        Learning rate of Adam.
    batch_size
        Observed pairs per step, each with one negative.
    regularisation
        Weight of half the squared free embeddings (in :class:`MGCCF`, the fused ones) of a batch, per pair.
    n_epochs
        Largest number of passes over the observed pairs.
    evaluate_every, patience
        With validation interactions, their ``recall@20`` is computed every ``evaluate_every`` epochs, the
        best weights are kept, and training stops after ``patience`` evaluations without better ones.
    device
        ``"cpu"`` or ``"cuda"``.

    Attributes
    ----------
    user_embeddings_, item_embeddings_
        Embeddings on the training graph.
    n_epochs_, weights_
        The epoch whose weights were kept, and the weights by name.
    """

    n_factors: int = 64
    learning_rate: float = 0.005
    batch_size: int = 2048
    regularisation: float = 0.02
    n_epochs: int = 300
    evaluate_every: int = 5
    patience: int = 8
    device: str = "cpu"

    @abstractmethod
    def build_network(self, interactions: Interactions) -> EmbeddingNetwork:
        """Return a network for the users and items, its weights not yet drawn."""

    def embed(self, matrix: sparse.csr_array | None = None) -> tuple[Array, Array]:
        """Return embeddings of the trained weights on another matrix of the same users and items.

        It may hold probabilities. The default is the matrix of training.
        """
        train, device = self.check_fitted(), check_device(self.device)
        network = self.build_network(train).to(device)
        network.load_state_dict({name: torch.tensor(weight) for name, weight in self.weights_.items()})
        return _embed(network, train.matrix if matrix is None else matrix, device)

    def check_params(self) -> None:
        check_settings(self, n_factors=1, batch_size=1, n_epochs=1, evaluate_every=1, patience=1)
        check_settings(self, learning_rate=0.0, regularisation=0.0)
        check_device(self.device)

    def fit_interactions(
        self,
        interactions: Interactions,
        validation: Interactions | None,
        seed: SeedSequence,
        forbidden: sparse.csr_array | None = None,
    ) -> None:
        """Train a network; ``forbidden`` pairs, by default the observed ones, are no negatives."""
        device = check_device(self.device)
        network = self.build_network(interactions)
        network.initialise(_torch_generator(child(seed, WEIGHTS), torch.device("cpu")))
        network = network.to(device)
        forbidden = interactions.matrix if forbidden is None else forbidden
        training = _Training(self, network, interactions, forbidden, child(seed, TRAINING))
        best_recall, best_epoch, best_weights = -1.0, 0, network.state_dict()
        for epoch in range(1, self.n_epochs + 1):
            training.run_epoch()
            if validation is None or epoch % self.evaluate_every:
                continue
            recall = training.recall(validation)
            if recall > best_recall:
                best_recall, best_epoch = recall, epoch
                best_weights = {name: weight.clone() for name, weight in network.state_dict().items()}
            elif epoch - best_epoch >= self.patience * self.evaluate_every:
                break
        self.n_epochs_ = self.n_epochs if validation is None else best_epoch
        network.load_state_dict(best_weights)
        self.weights_ = {name: weight.cpu().numpy().copy() for name, weight in network.state_dict().items()}
        self.user_embeddings_, self.item_embeddings_ = _embed(network, interactions.matrix, device)


class _Training:
    """The data on the device, the generators and the optimiser."""

    def __init__(
        self, model: Any, network: Any, interactions: Interactions, forbidden: Any, seed: Any
    ) -> None:
        self.model, self.network, self.interactions = model, network, interactions
        self.sampler = NegativeSampler(forbidden)
        self.device = network.free.device
        self.graph = network.prepare_graph(interactions.matrix, self.device)
        pairs = np.stack([interactions.rows.row_numbers, interactions.rows.indices]).astype(np.int64)
        self.users, self.items = pairs[:, self.sampler.pool_sizes[pairs[0]] > 0]
        self.rng = np.random.default_rng(child(seed, NEGATIVES))
        self.draws = _torch_generator(child(seed, DROPOUT), self.device)
        self.optimiser = AdamStepper(network.parameters(), model.learning_rate)

    def run_epoch(self) -> None:
        order = self.rng.permutation(len(self.users))
        users = self.users[order]
        triples = np.stack([users, self.items[order], self.sampler.draw(users, self.rng)])
        on_device, size = torch.from_numpy(triples).to(self.device), self.model.batch_size
        for start in range(0, len(users), size):
            self.optimiser.step(partial(self.loss, *on_device[:, start : start + size]))

    def loss(self, user: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        embeddings = self.network(self.graph, self.draws)
        u, i, j = _look_up(embeddings, user, positive, negative)
        loss = functional.softplus(-(u * (i - j)).sum(dim=1)).mean()
        if self.model.regularisation:
            penalised = self.network.penalised_embeddings(embeddings)
            squares = sum(part.square().sum() for part in _look_up(penalised, user, positive, negative))
            loss = loss + self.model.regularisation / 2 * squares / len(user)
        return loss

    @torch.no_grad()
    def recall(self, validation: Interactions) -> float:
        users, items = (part.cpu().numpy() for part in self.network(self.graph))
        return validation_recall(lambda rows: users[rows] @ items.T, self.interactions, validation)


def validation_recall(score: Any, train: Interactions, validation: Interactions) -> float:
    """Return ``recall@20`` on validation interactions, with fewer items at their number."""
    metric = f"recall@{min(VALIDATION_LENGTH, train.n_items)}"
    return ranking.evaluate(score, train, validation, metrics=[metric])[metric]


def _torch_generator(seed: SeedSequence, device: torch.device) -> torch.Generator:
    return torch.Generator(device).manual_seed(int(seed.generate_state(1)[0]))


def _look_up(embeddings: Embeddings, user: Tensor, positive: Tensor, negative: Tensor) -> tuple[Tensor, ...]:
    pairs = (user, embeddings[0]), (positive, embeddings[1]), (negative, embeddings[1])
    return tuple(functional.embedding(nodes, values) for nodes, values in pairs)


@torch.no_grad()
def _embed(network: EmbeddingNetwork, matrix: sparse.csr_array, device: Any) -> tuple[Any, Any]:
    users, items = network(network.prepare_graph(matrix, device))
    embeddings = users.cpu().numpy().copy(), items.cpu().numpy().copy()
    if not all(np.isfinite(part).all() for part in embeddings):
        raise InputError("learning_rate", "must be smaller: training ended in numbers that are not finite.")
    return embeddings


@dataclass(eq=False)
class BPRMF(BPRRecommender):
    """Learn free embeddings of users and items (Rendle et al., 2009).

    Parameters and attributes are as in :class:`.BPRRecommender`.

    >>> from nodecopy import datasets
    >>> from nodecopy.recommend import BPRMF
    >>> BPRMF(n_epochs=2).fit(datasets.load("library"), rng=0).recommend(["reader 001"], 3)[0].shape
    (1, 3)
    """

    def build_network(self, interactions: Interactions) -> EmbeddingNetwork:
        return EmbeddingNetwork(interactions.n_users, interactions.n_items, self.n_factors)


@dataclass(eq=False)
class LightGCN(BPRRecommender):
    """Average free embeddings over 0, 1, ..., ``n_layers`` steps of D^-1/2 A D^-1/2 (He et al., 2020).

    Other parameters and the attributes are as in :class:`.BPRRecommender`.

    Parameters
    ----------
    n_layers
        Number of propagation steps.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.recommend import LightGCN
    >>> LightGCN(n_epochs=2).fit(datasets.load("library"), rng=0).recommend(["reader 001"], 3)[0].shape
    (1, 3)
    """

    n_layers: int = 2
    regularisation: float = 0.001

    def check_params(self) -> None:
        super().check_params()
        check_settings(self, n_layers=1)

    def build_network(self, interactions: Interactions) -> EmbeddingNetwork:
        return _LightGCN(interactions.n_users, interactions.n_items, self.n_factors, self.n_layers)


class _LightGCN(EmbeddingNetwork):
    def __init__(self, n_users: int, n_items: int, n_factors: int, n_layers: int) -> None:
        super().__init__(n_users, n_items, n_factors)
        self.n_layers = n_layers

    def prepare_graph(self, matrix: sparse.csr_array, device: torch.device) -> SparseStack:
        """Return the propagation matrix; degrees are sums of entries."""
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
        return self.split(total[0] / (self.n_layers + 1))


@dataclass(eq=False)
class MGCCF(BPRRecommender):
    """Multi-graph convolution collaborative filtering (Sun et al., 2019), with full neighbourhoods.

    Three parts are fused: convolutions on the bipartite graph, h <- tanh(W [h ; tanh(mean of the
    neighbours' h Q)]), with weights for users and for items in every layer; one step on the graphs of
    similar users and of similar items, the pairs with the largest cosines, tanh(mean of e M); and a skip
    connection, tanh(e S). Other parameters and the attributes are as in :class:`.BPRRecommender`.

    Parameters
    ----------
    n_layers
        Number of layers of the bipartite convolution.
    dropout
        Share of the neighbours that are dropped in every layer and step of training; 0.2 as in its paper.

    Notes
    -----
    The parts are added up, the best fusion in its paper, which samples 15 and 10 neighbours and takes sums
    over similar nodes, where tanh may saturate.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.recommend import MGCCF
    >>> MGCCF(n_epochs=2).fit(datasets.load("library"), rng=0).recommend(["reader 001"], 3)[0].shape
    (1, 3)
    """

    learning_rate: float = 0.001
    regularisation: float = 0.02
    n_layers: int = 2
    dropout: float = 0.2

    def check_params(self) -> None:
        super().check_params()
        check_settings(self, n_layers=1, dropout=(0.0, 0.99))

    def build_network(self, interactions: Interactions) -> EmbeddingNetwork:
        return _MGCCF(self, interactions)


class _MGCCF(EmbeddingNetwork):
    """Lists hold the part of users first, then that of items."""

    def __init__(self, model: MGCCF, interactions: Interactions) -> None:
        size, matrix = model.n_factors, interactions.matrix
        super().__init__(interactions.n_users, interactions.n_items, size)
        self.model = model
        self.neighbour = _weights(model.n_layers, size, size)
        self.combine = _weights(model.n_layers, 2 * size, size)
        self.similar, self.skip = _weights(1, size, size), _weights(1, size, size)
        sides = matrix, sparse.csr_array(matrix.T)
        self.similarity = [above_threshold(side, SIMILARITY_DEGREE) for side in sides]

    def prepare_graph(self, matrix: sparse.csr_array, device: torch.device) -> list[SparseStack]:
        """Return matrices of means over neighbours, then over similar nodes."""
        matrices = matrix, matrix.T, *self.similarity
        return [SparseStack([_divide_by_row_sums(part)], device) for part in matrices]

    def forward(self, graph: list[SparseStack], draws: torch.Generator | None = None) -> Embeddings:
        free = self.split(self.free)
        h: tuple[Tensor, ...] = free
        for layer in range(self.model.n_layers):
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
            fused.append(h[side] + z + s)
        return fused[0], fused[1]

    def penalised_embeddings(self, embeddings: Embeddings) -> Embeddings:
        return embeddings

    def _mean(self, graph: SparseStack, values: Tensor, draws: torch.Generator | None) -> Tensor:
        """Return the mean over neighbours, of which a share is dropped in training."""
        rate, factors = self.model.dropout, None
        if draws is not None and rate:
            is_present = torch.rand(len(graph.values), generator=draws, device=values.device) >= rate
            factors = is_present / (1 - rate)
        return graph.product(values[None], factors)[0]


def _weights(n_layers: int, n_rows: int, n_columns: int) -> nn.ParameterList:
    return nn.ParameterList([nn.Parameter(torch.empty(n_rows, n_columns)) for _ in range(2 * n_layers)])


def _divide_by_row_sums(matrix: Any) -> sparse.csr_array:
    csr = sparse.csr_array(matrix, dtype=np.float64)
    sums = np.asarray(csr.sum(axis=1))
    csr.data = csr.data / np.repeat(sums, np.diff(csr.indptr))
    return csr


class NegativeSampler:
    """Draw items outside the stored entries of a users x items matrix."""

    # The r-th allowed item of a user is r plus the number of forbidden items before it. The t-th forbidden
    # item f_t (t from 0) lies before it exactly if f_t - t <= r, and f_t - t does not decrease within a user:
    # one binary search over the numbers of all users finds it.

    def __init__(self, forbidden: sparse.csr_array) -> None:
        pattern = sparse.csr_array(forbidden, copy=True)
        pattern.sum_duplicates()
        n_users, n_items = pattern.shape
        n_forbidden = np.diff(pattern.indptr)
        user = np.repeat(np.arange(n_users, dtype=np.int64), n_forbidden)
        number = np.arange(pattern.nnz) - np.repeat(pattern.indptr[:-1], n_forbidden)
        self.pool_sizes: IntArray = n_items - n_forbidden
        self._indptr, self._stride = pattern.indptr.astype(np.int64), n_items + 1
        self._allowed_before = user * self._stride + (pattern.indices - number)

    def draw(self, users: IntArray, rng: Generator) -> Ints:
        """Return one item for each of the users."""
        rank = rng.integers(self.pool_sizes[users])
        keys = users.astype(np.int64) * self._stride + rank
        n_before = np.searchsorted(self._allowed_before, keys, side="right") - self._indptr[users]
        return np.asarray(rank + n_before, dtype=np.int64)


def forbid_likely_pairs(observed: sparse.csr_array, likely: Any) -> sparse.csr_array:
    """Return the observed and likely pairs, only the observed ones of users with no negatives left."""
    observed, likely = observed.astype(bool), sparse.csr_array(likely.astype(bool))
    is_exhausted = np.diff(sparse.csr_array(observed + likely).indptr) == observed.shape[1]
    likely = keep_entries(likely, ~np.repeat(is_exhausted, np.diff(likely.indptr)))
    return sparse.csr_array(observed + likely)


@dataclass(eq=False)
class EnsembleBPR(Recommender):
    """Train on the observed graph, then average the scores over graphs whose users are copied.

    Parameters
    ----------
    base
        A network such as :class:`.LightGCN`; not changed, and not trained again if it is fitted to the same
        interactions.
    donors
        Donor rule of users. The default ``Jaccard()`` is the paper's, in which a user may be its own donor.
    n_graphs
        Number of sampled graphs to average over, as in the paper; ``None`` for the exact expected graph P A.
    keep
        Probability that a user keeps its own items, see :class:`.NodeCopying`; the paper has 0.

    Notes
    -----
    Scores are not linear in the graph: the expected graph approximates the limit of many samples.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.recommend import EnsembleBPR, LightGCN
    >>> model = EnsembleBPR(LightGCN(n_epochs=2)).fit(datasets.load("library"), rng=0)
    >>> model.recommend(["reader 001"], 3)[0].shape
    (1, 3)
    """

    base: BPRRecommender
    donors: Any = field(default_factory=Jaccard)
    n_graphs: int | None = None
    keep: float = 0.0

    def check_params(self) -> None:
        name = f"base of {type(self).__name__}"
        if not isinstance(self.base, BPRRecommender):
            raise InputError(name, f"must be a network such as LightGCN(); got {show(self.base)}.")
        if self.n_graphs is not None:
            check_settings(self, n_graphs=1)
        check_settings(self, keep=(0.0, 1.0))
        self.base.check_params()

    def fit_interactions(self, interactions: Interactions, validation: Any, seed: SeedSequence) -> None:
        network = fit_copy(self.base, interactions, validation, child(seed, NETWORK))
        graphs = self.copied_matrices(interactions, child(seed, GRAPHS))
        self.copied_embeddings_ = embed_graphs(network, graphs)

    def copied_matrices(self, interactions: Interactions, seed: SeedSequence) -> Iterator[sparse.csr_array]:
        """Yield the matrices to evaluate the network on: the expected one, or samples."""
        model = NodeCopying(self.donors, self.keep).fit(interactions)
        if self.n_graphs is None:
            yield model.expected_adjacency().tocsr()
        else:
            yield from (sample.matrix for sample in model.sample_many(self.n_graphs, rng=seed))

    def embedding_stacks(self) -> EmbeddingStacks:
        return self.copied_embeddings_

    def similarity_rows(self, rows: sparse.csr_array) -> Array:
        """Return the cosine of the item embeddings, concatenated over all graphs."""
        return cosines(np.concatenate(self.embedding_stacks()[1], axis=1), rows.indices)

    def score_positions(self, positions: IntArray) -> Array:
        users, items = self.embedding_stacks()
        graphs = zip(users, items, strict=True)
        return np.asarray(sum(u[positions] @ i.T for u, i in graphs) / len(users))


def embed_graphs(network: BPRRecommender, matrices: Iterable[sparse.csr_array]) -> EmbeddingStacks:
    """Return the embeddings of a trained network on some matrices."""
    embeddings = [network.embed(matrix) for matrix in matrices]
    return np.stack([users for users, _ in embeddings]), np.stack([items for _, items in embeddings])


@dataclass(eq=False)
class SampledGraphBPR(EnsembleBPR):
    """Train without negatives that are likely in the copied graph, then average over copied graphs.

    A pair whose expectation in the copied graph exceeds a threshold is no negative, unless its user would
    have none left.

    Parameters
    ----------
    base, donors, n_graphs, keep
        As in :class:`.EnsembleBPR`, except that the network is always trained. With ``n_graphs`` the
        expectation is a mean over samples too, as in the paper.
    threshold
        The paper's b, from 0 to 1.
    test_graph
        ``"copied"``, or ``"observed"`` for the ablation with the effect of the negatives alone. It may be
        changed after the fit.

    Attributes
    ----------
    n_epochs_
        The number of epochs after which the network's weights were kept.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.recommend import LightGCN, SampledGraphBPR
    >>> model = SampledGraphBPR(LightGCN(n_epochs=2), threshold=0.3).fit(datasets.load("library"), rng=0)
    >>> model.recommend(["reader 001"], 3)[0].shape
    (1, 3)
    """

    threshold: float = 0.3
    test_graph: str = "copied"

    def check_params(self) -> None:
        super().check_params()
        check_settings(self, threshold=(0.0, 1.0), test_graph=["copied", "observed"])

    def fit_interactions(self, interactions: Interactions, validation: Any, seed: SeedSequence) -> None:
        graphs = list(self.copied_matrices(interactions, child(seed, GRAPHS)))
        expected = sparse.csr_array(sum(graphs[1:], start=graphs[0]) / len(graphs))
        forbidden = forbid_likely_pairs(interactions.matrix, expected > self.threshold)
        network = copy.copy(self.base)
        network.fit_interactions(interactions, validation, child(seed, NETWORK), forbidden)
        network.interactions_ = interactions
        self.copied_embeddings_ = embed_graphs(network, graphs)
        self.observed_embeddings_: EmbeddingStacks = embed_graphs(network, [interactions.matrix])
        self.n_epochs_ = network.n_epochs_

    def embedding_stacks(self) -> EmbeddingStacks:
        return self.observed_embeddings_ if self.test_graph == "observed" else self.copied_embeddings_
