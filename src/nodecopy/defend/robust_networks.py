"""Controls with robust aggregation, and an attack on them by gradients of the weights of edges."""

from __future__ import annotations

import copy
from collections.abc import Callable, MutableMapping
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np
import torch
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike
from scipy import sparse
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from nodecopy._core.arrays import Ints
from nodecopy._core.checks import check_settings, check_type
from nodecopy._core.estimator import Configurable
from nodecopy._core.imports import check_name
from nodecopy.attacks import Edits, TargetedAttack
from nodecopy.attacks.gradients import Loss, RewiredModule, RewiredNetwork, choose_flips
from nodecopy.attacks.nettack import SurrogateLabels
from nodecopy.classify import Classifier, CustomNetwork, Trial
from nodecopy.defend.base import Defence
from nodecopy.graph import Graph
from nodecopy.nn.modules import ModuleEnsemble, ModuleNetwork
from nodecopy.nn.networks import SparseStack
from nodecopy.nn.training import check_device, choose_threads

MIN_SIMILARITY = 0.1  # GNNGuard removes edges between less similar nodes
TEMPERATURE = 0.2  # of Soft Median; the lower, the fewer neighbours count
N_HIDDEN, DROPOUT = 16, 0.5
MAX_DENSITY = 0.35  # largest share of non-zero features for which a sparse product is faster on a CPU
N_COMPARED = 2**20  # features that are compared at once, few enough for the cache of a processor


SentMessages = tuple[Tensor | slice, Tensor | slice]  # masks of edges for either layer
ALL_MESSAGES: SentMessages = slice(None), slice(None)


class WeightedEdges(NamedTuple):
    """Edges and weights, of which zero counts as no edge; every node has a loop of weight 1."""

    source: Tensor
    target: Tensor
    weight: Tensor
    n_nodes: int

    @classmethod
    def with_loops(cls, edge_index: Tensor, edge_weight: Tensor | None, n_nodes: int) -> Self:
        loops = torch.arange(n_nodes, device=edge_index.device)
        is_edge = edge_index[0] != edge_index[1]
        source, target = (torch.cat([ends[is_edge], loops]) for ends in edge_index)
        weight = torch.ones(len(source), device=source.device)
        if edge_weight is not None:
            weight = torch.cat([edge_weight[is_edge], edge_weight.new_ones(n_nodes)])
        return cls(source, target, weight, n_nodes)

    def select(self, mask: Tensor | slice) -> Self:
        return self._replace(source=self.source[mask], target=self.target[mask], weight=self.weight[mask])

    def sum_at_targets(self, values: Tensor) -> Tensor:
        return values.new_zeros(self.n_nodes, *values.shape[1:]).index_add(0, self.target, values)


# For features in use: how often they were changed in place, and their entries if most are zero.
_sparse_features: MutableMapping[Tensor, tuple[int, SparseStack | None]] = WeakTensorKeyDictionary()


def _find_sparse_entries(x: Tensor) -> SparseStack | None:
    """Return the entries of features, or None if too few are zero for a sparse product."""
    version, entries = _sparse_features.get(x, (-1, None))
    if version != x._version:
        entries = None
        if x.count_nonzero() <= MAX_DENSITY * x.numel():
            entries = SparseStack([sparse.csr_array(x.detach().cpu().numpy())], x.device, x.dtype)
        _sparse_features[x] = x._version, entries
    return entries


class RobustNetwork(torch.nn.Module):
    """Two layers of a GCN; subclasses replace how edges are weighed, or how messages are combined.

    Gradients with respect to weights are exact in evaluation mode; in training, parts are detached.
    """

    # Features, edges, how often either was changed in place, and the similarity of the ends of edges.
    _compared: tuple[Tensor, Tensor, tuple[int, int], Tensor] | None = None
    n_hops: ClassVar[int] = 1  # the logits of a node depend on the hidden layer of nodes within so many hops

    def __init__(self, n_features: int, n_classes: int) -> None:
        super().__init__()
        self.first = torch.nn.Linear(n_features, N_HIDDEN, bias=False)
        self.second = torch.nn.Linear(N_HIDDEN, n_classes, bias=False)
        self.biases = torch.nn.ParameterList([torch.zeros(size) for size in (N_HIDDEN, n_classes)])

    def compare(self, inputs: Tensor, edges: WeightedEdges) -> Tensor:
        """Return the similarity of the ends of each edge; here 1."""
        return torch.ones_like(edges.weight)

    def weigh(self, similarity: Tensor, edges: WeightedEdges) -> Tensor:
        """Return the weight of the message along each edge."""
        degrees = edges.sum_at_targets(edges.weight)
        return edges.weight * (degrees[edges.source] * degrees[edges.target]).rsqrt()

    def combine(self, weight: Tensor, transformed: Tensor, edges: WeightedEdges) -> Tensor:
        return edges.sum_at_targets(weight[:, None] * transformed[edges.source])

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        edges = WeightedEdges.with_loops(edge_index, edge_weight, len(x))
        return self.propagate(self.compare_features(x, edge_index, edges), self.transform(x), edges)

    def transform(self, x: Tensor) -> Tensor:
        entries = None if x.requires_grad else _find_sparse_entries(x)
        if entries is None:
            return self.drop_and_multiply(x)
        factors = None
        if self.training:
            factors = torch.dropout(torch.ones_like(entries.values), DROPOUT, train=True)
        return entries.product(self.first.weight.T[None], factors)[0]

    def drop_and_multiply(self, x: Tensor) -> Tensor:
        transformed: Tensor = self.first(torch.dropout(x, DROPOUT, self.training))
        return transformed

    def compare_features(self, x: Tensor, edge_index: Tensor, edges: WeightedEdges) -> Tensor:
        if x.requires_grad:
            return self.compare(x, edges)
        versions, last = (x._version, edge_index._version), self._compared
        if last is None or last[0] is not x or last[1] is not edge_index or last[2] != versions:
            last = self._compared = x, edge_index, versions, self.compare(x, edges)
        return last[3]

    def propagate(
        self, similarity: Tensor, transformed: Tensor, edges: WeightedEdges, sent: SentMessages = ALL_MESSAGES
    ) -> Tensor:
        """Return the logits; those of a node need messages within ``n_hops`` hops, then to itself."""
        first, second = sent
        messages = self.combine(self.weigh(similarity, edges)[first], transformed, edges.select(first))
        hidden = torch.relu(messages + self.biases[0])
        # An edge that the first layer removes is not in the second either.
        similarity = torch.where(similarity < MIN_SIMILARITY, 0.0, self.compare(hidden, edges))
        hidden = torch.dropout(hidden, DROPOUT, self.training)
        weight = self.weigh(similarity, edges)[second]
        messages = self.combine(weight, self.second(hidden), edges.select(second))
        logits: Tensor = messages + self.biases[1]
        return logits

    def smoothed(self) -> RobustNetwork:
        """Return a network with the same weights whose gradients an attacker follows for several flips."""
        return self


class GuardedNetwork(RobustNetwork):
    """A GCN whose edges are weighted by the similarity of their ends in each layer."""

    n_hops = 2  # the degrees of neighbours depend on their similarity to their own neighbours

    def compare(self, inputs: Tensor, edges: WeightedEdges) -> Tensor:
        rows = torch.nn.functional.normalize(inputs.detach() if self.training else inputs, dim=1)
        size = max(1, N_COMPARED // rows.shape[1])
        parts = zip(torch.split(edges.source, size), torch.split(edges.target, size), strict=True)
        return torch.cat([torch.linalg.vecdot(rows[source], rows[target]) for source, target in parts])

    def weigh(self, similarity: Tensor, edges: WeightedEdges) -> Tensor:
        source, target, edge_weight, _ = edges
        is_loop = source == target
        cosine = torch.where((similarity < MIN_SIMILARITY) | is_loop, 0.0, similarity)
        is_left = cosine > 0
        total = edges.sum_at_targets(edge_weight * cosine)[target]
        total = total + (1 - edge_weight) * cosine  # the attention of an edge does not depend on its weight
        attention = cosine / total.clamp_min(1e-12)
        n_left = edges.sum_at_targets(edge_weight * is_left)
        attention = torch.where(is_loop, 1.0 / (n_left[target] + 1.0), attention)
        weight = edge_weight * torch.where(is_left | is_loop, attention.exp(), 0.0)  # as in the authors' code
        degrees = edges.sum_at_targets(weight)
        return weight * (degrees[source] * degrees[target]).rsqrt()


class SoftMedianNetwork(RobustNetwork):
    """A GCN that weighs neighbours by their distance to the median of all neighbours in each layer."""

    def combine(self, weight: Tensor, transformed: Tensor, edges: WeightedEdges) -> Tensor:
        target, values = edges.target, transformed[edges.source]
        total = edges.sum_at_targets(weight)
        compared = values.detach() if self.training else values  # attacks differentiate the median too
        median = weighted_median(compared, weight.detach(), target, total.detach())
        distance = (values - median[target]).norm(dim=1) / (TEMPERATURE * values.shape[1] ** 0.5)
        present = torch.where(edges.weight > 0, distance.detach(), torch.inf)
        nearest = present.new_full((edges.n_nodes,), torch.inf).scatter_reduce(0, target, present, "amin")
        kernel = weight * (nearest[target] - distance).clamp_max(0.0).exp()
        kernel = kernel / edges.sum_at_targets(kernel)[target] * total[target]
        return edges.sum_at_targets(kernel[:, None] * values)

    def smoothed(self) -> RobustNetwork:
        """Return the GCN with these weights: a median moves only after several flips, its sum at each."""
        network = RobustNetwork(self.first.in_features, self.second.out_features).to(self.first.weight.device)
        network.load_state_dict(self.state_dict())
        return network.train(self.training)


def weighted_median(values: Tensor, weight: Tensor, target: Tensor, total: Tensor) -> Tensor:
    """Return the weighted median of each column over the edges of every target; of none, it is arbitrary.

    ``total`` is the sum of the weights at each target.
    """
    # The order of each column by target, then by value, in one sort of integers made of both.
    bits = values.detach().T.float().contiguous().view(torch.int32).long()
    bits = torch.where(bits < 0, -(bits & 0x7FFF_FFFF), bits)  # floats hold their sign and their magnitude
    order = ((target.long() << 32) + bits).argsort(dim=1, stable=True)
    cumulative = weight[order].double().cumsum(dim=1)
    ends = torch.bincount(target, minlength=len(total)).cumsum(dim=0)
    starts = torch.cat([ends.new_zeros(1), ends[:-1]])
    before = torch.cat([torch.zeros_like(cumulative[:, :1]), cumulative], dim=1)[:, starts]
    position = torch.searchsorted(cumulative, before + total / 2 - 1e-9)
    position = torch.minimum(torch.maximum(position, starts), ends - 1).clamp_min(0)
    return values.gather(0, order.gather(1, position).T)


NETWORKS: dict[str, type[RobustNetwork]] = {"guarded": GuardedNetwork, "soft-median": SoftMedianNetwork}


class RobustNetworkFactory(Configurable):
    """A factory of networks by name, since files hold no classes."""

    def __init__(self, network: str) -> None:
        self.network = network

    def __call__(self, n_features: int, n_classes: int) -> RobustNetwork:
        return NETWORKS[check_name(self.network, NETWORKS, "network")](n_features, n_classes)


@dataclass(eq=False, repr=False)
class RobustNetworkDefence(Defence):
    """The base class of defences whose network aggregates robustly; corrections are its predictions.

    Parameters
    ----------
    n_epochs, learning_rate, weight_decay, device
        As in :class:`.CustomNetwork`.
    """

    network: ClassVar[str]

    _: KW_ONLY
    n_epochs: int = 200
    learning_rate: float = 0.01
    weight_decay: float = 5e-4
    device: str = "cpu"

    def build_classifier(self) -> Classifier:
        return CustomNetwork(RobustNetworkFactory(self.network), **self.get_params(deep=False))


class GNNGuard(RobustNetworkDefence):
    """Weigh edges by the similarity of their ends in every layer of a GCN (Zhang and Zitnik, 2020).

    Edges between nodes whose features have a cosine below 0.1 are removed, and from the second layer also
    those between nodes whose hidden units do. The memory between layers and learned pruning are left out, as
    in the authors' default. Unlike there, features have dropout. Parameters are those of
    :class:`RobustNetworkDefence`.

    Examples
    --------
    >>> from nodecopy import datasets, defend
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> defend.GNNGuard(n_epochs=50).fit(digits, range(100), rng=0).score() > 0.8
    True
    """

    network = "guarded"


class SoftMedianGCN(RobustNetworkDefence):
    """Replace the mean over neighbours in a GCN by the Soft Median (Geisler et al., 2021).

    Neighbours far from the median, dimension by dimension, get less weight. The temperature is 0.2. The
    authors' sparsified diffusion of the graph is left out. Parameters are those of
    :class:`RobustNetworkDefence`.

    Examples
    --------
    >>> from nodecopy import datasets, defend
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> defend.SoftMedianGCN(n_epochs=50).fit(digits, range(100), rng=0).score() > 0.8
    True
    """

    network = "soft-median"


class NetworkEdits(Edits):
    """Edits with the trained network that is attacked, and the scaled features ``x``."""

    def __init__(self, graph: Graph, codes: Ints, network: ModuleNetwork, x: Tensor) -> None:
        super().__init__(graph)
        assert isinstance(network.module, RobustNetwork)
        self.codes, self.network, self.x = torch.from_numpy(codes).to(x.device), network, x
        self.module, self.smoothed = network.module, network.module.smoothed()
        with torch.no_grad():
            self.transformed = self.module.transform(x)


class RewiredRobustNetwork(RewiredModule):
    """A robust network on a graph of which one row is changed; only the logits of that node are computed.

    The ``n_candidates`` steepest flips of the network, and of the smoothed one, are evaluated. ``smoothed``
    is the same for the smoothed network, where it is None and gains are gradients.
    """

    def __init__(self, edits: NetworkEdits, row: int, n_candidates: int) -> None:
        super().__init__(edits.network, edits.x, edits, np.array([row]))
        self.module, self.transformed, self.n_candidates = edits.module, edits.transformed, n_candidates
        self.edges = WeightedEdges.with_loops(self.join_edges(self.free), None, len(self.x))
        with torch.no_grad():
            self.similarity = self.module.compare(self.x, self.edges)
        self.smoothed: RewiredRobustNetwork | None = None
        smoothed = copy.copy(self)
        smoothed.module = edits.smoothed
        self.smoothed = smoothed

    def logits(self, V: Tensor) -> Tensor:
        changed = (self.present + V)[self.free]
        weight = self.edges.weight.clone()
        weight[self.fixed.shape[1] :][: 2 * len(changed)] = torch.cat([changed, changed])
        edges, similarity, first = self.edges._replace(weight=weight), self.similarity, ALL_MESSAGES[0]
        if not V.requires_grad:
            n_hops = self.module.n_hops
            distance = self.count_hops(edges.select(weight > 0), n_hops + 1)[edges.target]
            needed = (weight > 0) & (distance <= n_hops + 1)  # the degrees of sources depend on their edges
            edges, similarity, first = edges.select(needed), similarity[needed], distance[needed] <= n_hops
        sent = first, edges.target == self.rows
        return self.module.propagate(similarity, self.transformed, edges, sent).double().log_softmax(dim=1)

    def count_hops(self, edges: WeightedEdges, n_hops: int) -> Tensor:
        """Return the distance of every node to the row, at most ``n_hops + 1``."""
        distance = torch.full((edges.n_nodes,), n_hops + 1, device=self.rows.device)
        distance[self.rows] = 0
        for hop in range(1, n_hops + 1):
            reached = edges.source[distance[edges.target] < hop]
            distance[reached] = distance[reached].clamp_max(hop)
        return distance

    def gains(self, loss: Loss, V: Tensor, left: Tensor) -> Tensor:
        if self.smoothed is None:
            return RewiredNetwork.gains(self, loss, V, left)
        return super().gains(loss, V, left)

    def select_candidates(self, loss: Loss, V: Tensor, left: Tensor) -> Tensor:
        is_candidate = torch.zeros_like(left)
        for network in (self, self.smoothed):
            assert network is not None
            gains = RewiredNetwork.gains(network, loss, V, left).flatten()
            is_candidate.view(-1)[gains.topk(min(self.n_candidates, len(gains))).indices] = True
        return (is_candidate & left).nonzero()

    def flip(self, flips: list[tuple[int, int]]) -> Tensor:
        V = torch.zeros_like(self.present)
        for pair in flips:
            V[pair] = 1 - 2 * self.present[pair]
        return V


@dataclass(eq=False, repr=False)
class AdaptiveNetworkAttack(TargetedAttack):
    """Attack :class:`GNNGuard` or :class:`SoftMedianGCN` by flips of the target's edges.

    The attacker trains the network on the clean graph and plans greedy flips twice: by evaluating some flips,
    and along the gradients of a smoothed network with the same weights. The plan that raises the loss more is
    carried out. The default budget is the target's degree.

    Parameters
    ----------
    defence
        The defence; by default ``GNNGuard()``.
    n_candidates
        Number of flips with the steepest gradients of the network, and of the smoothed one, that are
        evaluated in each step of the first plan.
    together
        As in :class:`.TargetedAttack`.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.defend import AdaptiveNetworkAttack, SoftMedianGCN
    >>> digits = datasets.load("digits").subgraph(range(200))
    >>> attack = AdaptiveNetworkAttack(SoftMedianGCN(n_epochs=50))
    >>> attack.attack(digits, [7], budget=2, rng=0).spent.tolist()
    [2]
    """

    defence: RobustNetworkDefence | None = None
    n_candidates: int = 16
    together: bool = True

    def prepare(
        self, graph: Graph, targets: Ints, train: ArrayLike | None, seed: SeedSequence
    ) -> Callable[[], NetworkEdits]:
        check_settings(self, n_candidates=1)
        name = type(self).__name__
        defence = GNNGuard() if self.defence is None else self.defence
        check_type(defence, RobustNetworkDefence, f"defence of {name}", "a GNNGuard or SoftMedianGCN")
        labels = SurrogateLabels.from_graph(graph, targets, train, name)
        trial = Trial(graph, labels.train, rng=seed)
        (prediction,) = defence.train_classifiers([trial])
        ensemble = prediction.networks
        assert isinstance(ensemble, ModuleEnsemble)
        network = ensemble.build_modules(check_device(defence.device))[0][0]
        network.module.eval()
        x = network.dense_tensor(ensemble.feature_scaling.apply(graph.features))
        return lambda: NetworkEdits(graph, trial.codes, network, x)

    def attack_target(self, edits: Edits, target: int, budget: int, rng: Generator) -> None:
        assert isinstance(edits, NetworkEdits)
        true_class = edits.codes[target]

        def loss(network: RewiredNetwork, V: Tensor) -> Tensor:
            return -network.logits(V)[target, true_class]

        with choose_threads(edits.transformed.numel(), edits.x.device):
            network = RewiredRobustNetwork(edits, target, self.n_candidates)
            assert network.smoothed is not None
            plans = [choose_flips(part, loss, budget) for part in (network, network.smoothed)]
            with torch.no_grad():
                best = max(plans, key=lambda flips: float(loss(network, network.flip(flips))))
        for _, node in best:
            edits.flip(target, node)
