"""Controls with robust aggregation: GCNs that weigh edges (GNNGuard) or messages (Soft Median).

An edge of weight zero counts for nothing, so that attacks have gradients with respect to weights.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, NamedTuple, Self, TypeAlias

import torch
from scipy import sparse
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from nodecopy._core.estimator import Configurable
from nodecopy._core.imports import check_name
from nodecopy.classify import Classifier, CustomNetwork
from nodecopy.defend.base import Defence
from nodecopy.nn.stack import SparseStack

MIN_SIMILARITY = 0.1
"""GNNGuard removes edges between less similar nodes."""
TEMPERATURE = 0.2
"""Of Soft Median; the lower, the fewer neighbours count."""
N_HIDDEN, DROPOUT = 16, 0.5
MAX_DENSITY = 0.35
"""Largest share of non-zero features for which a sparse product is faster on a CPU."""
N_COMPARED = 2**20
"""Features that are compared at once, few enough for the cache of a processor."""


SentMessages: TypeAlias = tuple[Tensor | slice, Tensor | slice]
"""Masks of edges for either layer."""
ALL_MESSAGES: SentMessages = slice(None), slice(None)


class WeightedEdges(NamedTuple):
    """Edges and their weights; every node has a loop of weight 1."""

    source: Tensor
    target: Tensor
    weight: Tensor
    n_nodes: int

    @classmethod
    def with_loops(cls, edge_index: Tensor, edge_weight: Tensor | None, n_nodes: int) -> Self:
        """Replace the loops of a graph by one for each node; edges without weights have the weight 1."""
        loops = torch.arange(n_nodes, device=edge_index.device)
        is_edge = edge_index[0] != edge_index[1]
        source, target = (torch.cat([ends[is_edge], loops]) for ends in edge_index)
        if edge_weight is None:
            return cls(source, target, torch.ones(len(source), device=source.device), n_nodes)
        return cls(source, target, torch.cat([edge_weight[is_edge], edge_weight.new_ones(n_nodes)]), n_nodes)

    def select(self, mask: Tensor | slice) -> Self:
        """Return some of the edges."""
        return self._replace(source=self.source[mask], target=self.target[mask], weight=self.weight[mask])

    def sum_at_targets(self, values: Tensor) -> Tensor:
        """Return the sum of the values, one row per edge, over the edges of each target."""
        return values.new_zeros(self.n_nodes, *values.shape[1:]).index_add(0, self.target, values)


_sparse_features: MutableMapping[Tensor, tuple[int, SparseStack | None]] = WeakTensorKeyDictionary()
"""For features in use: how often they were changed in place, and their entries if most are zero."""


def find_sparse_entries(x: Tensor) -> SparseStack | None:
    """Return the entries of a feature matrix, or None if too few are zero for a sparse product."""
    version, entries = _sparse_features.get(x, (-1, None))
    if version != x._version:
        entries = None
        if x.count_nonzero() <= MAX_DENSITY * x.numel():
            matrix = sparse.csr_array(x.detach().cpu().numpy())
            entries = SparseStack([matrix], x.device, x.dtype)
        _sparse_features[x] = x._version, entries
    return entries


class RobustNetwork(torch.nn.Module):
    """Two layers of a GCN; subclasses replace how edges are weighed, or how messages are combined.

    Gradients with respect to weights are exact in evaluation mode; in training, parts are detached.
    """

    _compared: tuple[Tensor, Tensor, tuple[int, int], Tensor] | None = None
    """Features, edges, how often either was changed in place, and the similarity of the ends of edges."""
    n_hops: ClassVar[int] = 1
    """The logits of a node depend on the hidden layer of nodes within so many hops."""

    def __init__(self, n_features: int, n_classes: int) -> None:
        super().__init__()
        self.first = torch.nn.Linear(n_features, N_HIDDEN, bias=False)
        self.second = torch.nn.Linear(N_HIDDEN, n_classes, bias=False)
        self.biases = torch.nn.ParameterList(
            [torch.nn.Parameter(torch.zeros(size)) for size in (N_HIDDEN, n_classes)]
        )

    def compare(self, inputs: Tensor, edges: WeightedEdges) -> Tensor:
        """Return the similarity of the ends of each edge; 1 where a network does not compare them."""
        return torch.ones_like(edges.weight)

    def weigh(self, similarity: Tensor, edges: WeightedEdges) -> Tensor:
        """Return the weight of the message along each edge, normalised by the degrees of its ends."""
        degrees = edges.sum_at_targets(edges.weight)
        return edges.weight * (degrees[edges.source] * degrees[edges.target]).rsqrt()

    def combine(self, weight: Tensor, transformed: Tensor, edges: WeightedEdges) -> Tensor:
        """Return the messages of neighbours, combined at the targets of edges."""
        return edges.sum_at_targets(weight[:, None] * transformed[edges.source])

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        edges = WeightedEdges.with_loops(edge_index, edge_weight, len(x))
        return self.propagate(self.compare_features(x, edge_index, edges), self.transform(x), edges)

    def transform(self, x: Tensor) -> Tensor:
        """Return the features times the weights of the first layer, after dropout in training."""
        entries = None if x.requires_grad else find_sparse_entries(x)
        if entries is None:
            return self.drop_and_multiply(x)
        factors = None
        if self.training:
            factors = torch.dropout(torch.ones_like(entries.values), DROPOUT, train=True)
        return entries.product(self.first.weight.T[None], factors)[0]

    def drop_and_multiply(self, x: Tensor) -> Tensor:
        """Return the same as :meth:`transform`, by a dense product."""
        transformed: Tensor = self.first(torch.dropout(x, DROPOUT, self.training))
        return transformed

    def compare_features(self, x: Tensor, edge_index: Tensor, edges: WeightedEdges) -> Tensor:
        """Return the similarity of the ends of each edge by features; in training it is computed once."""
        if x.requires_grad:
            return self.compare(x, edges)
        versions, last = (x._version, edge_index._version), self._compared
        if last is None or last[0] is not x or last[1] is not edge_index or last[2] != versions:
            last = self._compared = x, edge_index, versions, self.compare(x, edges)
        return last[3]

    def propagate(
        self, similarity: Tensor, transformed: Tensor, edges: WeightedEdges, sent: SentMessages = ALL_MESSAGES
    ) -> Tensor:
        """Return the logits from the similarity of the ends of edges and the transformed features.

        Messages are ``sent`` along some edges in either layer. The logits of a node need those to it in the
        second layer, and those to nodes within ``n_hops`` hops in the first.
        """
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

    n_hops = 2  # the degrees of neighbours depend on how similar these are to their own neighbours

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
    """Return the weighted median of each column of ``values`` over the edges of every target.

    ``total`` is the sum of the weights at each target. A target without edges gets an arbitrary value. Values
    must not be NaN, and are ordered in single precision.
    """
    order = _order_by_target(values.detach().T, target)
    cumulative = weight[order].double().cumsum(dim=1)
    ends = torch.bincount(target, minlength=len(total)).cumsum(dim=0)
    starts = torch.cat([ends.new_zeros(1), ends[:-1]])
    before = torch.cat([torch.zeros_like(cumulative[:, :1]), cumulative], dim=1)[:, starts]
    position = torch.searchsorted(cumulative, before + total / 2 - 1e-9)
    position = torch.minimum(torch.maximum(position, starts), ends - 1).clamp_min(0)
    return values.gather(0, order.gather(1, position).T)


def _order_by_target(rows: Tensor, target: Tensor) -> Tensor:
    """Return the order of each row by target, then by value, in one sort of integers made of both."""
    bits = rows.float().contiguous().view(torch.int32).long()
    bits = torch.where(bits < 0, -(bits & 0x7FFF_FFFF), bits)  # floats hold their sign and their magnitude
    return ((target.long() << 32) + bits).argsort(dim=1, stable=True)


NETWORKS: dict[str, type[RobustNetwork]] = {"guarded": GuardedNetwork, "soft-median": SoftMedianNetwork}


class RobustNetworkFactory(Configurable):
    """A factory of networks by their key in ``NETWORKS``, since files hold names and no classes."""

    def __init__(self, network: str) -> None:
        self.network = network

    def __call__(self, n_features: int, n_classes: int) -> RobustNetwork:
        return NETWORKS[check_name(self.network, NETWORKS, "network")](n_features, n_classes)


@dataclass(eq=False, repr=False)
class RobustNetworkDefence(Defence):
    """The base class of defences whose network aggregates robustly; corrections are its predictions.

    Parameters
    ----------
    n_epochs, learning_rate, weight_decay
        As in :class:`.CustomNetwork`.
    device
        ``"cpu"`` or ``"cuda"``.
    """

    network: ClassVar[str]

    _: KW_ONLY
    n_epochs: int = 200
    learning_rate: float = 0.01
    weight_decay: float = 5e-4
    device: str = "cpu"

    def build_classifier(self) -> Classifier:
        """Return the network, not yet trained."""
        return CustomNetwork(RobustNetworkFactory(self.network), **self.get_params(deep=False))


class GNNGuard(RobustNetworkDefence):
    """Weigh edges by the similarity of their ends in every layer of a GCN (Zhang and Zitnik, 2020).

    Edges between nodes whose features have a cosine below 0.1 are removed, and from the second layer also
    those between nodes whose hidden units do. The authors' memory between layers and their learned pruning
    are left out, as in their default. Features have dropout here, which they have not in the authors' code.

    Parameters are those of :class:`RobustNetworkDefence`.

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

    A neighbour counts the less, the further it is from the median of the neighbours, dimension by dimension.
    The temperature is 0.2. The authors' sparsified diffusion of the graph is left out.

    Parameters are those of :class:`RobustNetworkDefence`.

    Examples
    --------
    >>> from nodecopy import datasets, defend
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> defend.SoftMedianGCN(n_epochs=50).fit(digits, range(100), rng=0).score() > 0.8
    True
    """

    network = "soft-median"
