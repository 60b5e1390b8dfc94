"""Networks with robust aggregation: GNNGuard and Soft Median."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import torch
from torch import Tensor

from nodecopy._core.lookup import check_name
from nodecopy._core.params import Configurable
from nodecopy.classify import Classifier, CustomNetwork
from nodecopy.defend.base import Defence

MIN_SIMILARITY = 0.1
"""GNNGuard removes edges between less similar nodes."""
TEMPERATURE = 0.2
"""Of Soft Median; the lower, the fewer neighbours count."""
N_HIDDEN, DROPOUT = 16, 0.5


class RobustNetwork(torch.nn.Module):
    """Two layers that aggregate transformed features over neighbours; subclasses write :meth:`aggregate`."""

    def __init__(self, n_features: int, n_classes: int) -> None:
        super().__init__()
        self.first = torch.nn.Linear(n_features, N_HIDDEN, bias=False)
        self.second = torch.nn.Linear(N_HIDDEN, n_classes, bias=False)
        self.biases = torch.nn.ParameterList(
            [torch.nn.Parameter(torch.zeros(size)) for size in (N_HIDDEN, n_classes)]
        )

    def aggregate(self, inputs: Tensor, transformed: Tensor, source: Tensor, target: Tensor) -> Tensor:
        """Return transformed features, aggregated at the targets of edges; each node has a loop."""
        raise NotImplementedError

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        loops = torch.arange(len(x), device=x.device)
        is_loop = edge_index[0] == edge_index[1]
        source, target = (torch.cat([ends[~is_loop], loops]) for ends in edge_index)
        x = torch.dropout(x, DROPOUT, self.training)
        hidden = torch.relu(self.aggregate(x, self.first(x), source, target) + self.biases[0])
        hidden = torch.dropout(hidden, DROPOUT, self.training)
        logits: Tensor = self.aggregate(hidden, self.second(hidden), source, target) + self.biases[1]
        return logits


class GuardedNetwork(RobustNetwork):
    """A GCN whose edges are weighted by the similarity of their ends in each layer."""

    def aggregate(self, inputs: Tensor, transformed: Tensor, source: Tensor, target: Tensor) -> Tensor:
        n = len(inputs)
        is_loop = source == target
        rows = torch.nn.functional.normalize(inputs.detach(), dim=1)
        cosine = (rows[source] * rows[target]).sum(dim=1)
        cosine = torch.where((cosine < MIN_SIMILARITY) | is_loop, 0.0, cosine)
        total = torch.zeros(n, device=cosine.device).index_add(0, target, cosine)
        attention = cosine / total[target].clamp_min(1e-12)
        n_left = torch.zeros(n, device=cosine.device).index_add(0, target, (cosine > 0).float())
        attention = torch.where(is_loop, 1.0 / (n_left[target] + 1.0), attention)
        weight = torch.where(attention > 0, attention.exp(), 0.0)  # as in the authors' code
        degrees = torch.zeros(n, device=weight.device).index_add(0, target, weight)
        weight = weight * (degrees[source] * degrees[target]).rsqrt()
        return torch.zeros_like(transformed).index_add(0, target, weight[:, None] * transformed[source])


class SoftMedianNetwork(RobustNetwork):
    """A GCN that weighs neighbours by their distance to the median of all neighbours in each layer."""

    def aggregate(self, inputs: Tensor, transformed: Tensor, source: Tensor, target: Tensor) -> Tensor:
        n, n_units = transformed.shape
        degrees = torch.zeros(n, device=inputs.device).index_add(0, target, torch.ones_like(target).float())
        weight = (degrees[source] * degrees[target]).rsqrt()
        total = torch.zeros(n, device=inputs.device).index_add(0, target, weight)
        values = transformed[source]
        median = weighted_median(values.detach(), weight, target, total)
        distance = (values - median[target]).norm(dim=1) / (TEMPERATURE * n_units**0.5)
        nearest = torch.full((n,), torch.inf, device=inputs.device)
        nearest = nearest.scatter_reduce(0, target, distance.detach(), "amin")
        kernel = weight * (nearest[target] - distance).exp()
        kernel_sum = torch.zeros(n, device=inputs.device).index_add(0, target, kernel)
        kernel = kernel / kernel_sum[target] * total[target]
        return torch.zeros_like(transformed).index_add(0, target, kernel[:, None] * values)


def weighted_median(values: Tensor, weight: Tensor, target: Tensor, total: Tensor) -> Tensor:
    """Return the weighted median of each column over the edges of every target, ``[n_targets, n_columns]``.

    Every target has an edge.

    Parameters
    ----------
    values
        ``[n_edges, n_columns]``.
    weight, target
        Of each edge.
    total
        The sum of the weights at each target.
    """
    order = values.argsort(dim=0, stable=True)
    order = order.gather(0, target[order].argsort(dim=0, stable=True))  # by target, then by value
    by_target = target[order[:, 0]]
    cumulative = weight[order].double().cumsum(dim=0)
    start = torch.searchsorted(by_target, torch.arange(len(total), device=target.device))
    before = torch.cat([torch.zeros_like(cumulative[:1]), cumulative])[start]  # [n_targets, n_columns]
    is_below = cumulative - before[by_target] < total[by_target, None] / 2 - 1e-9
    n_below = torch.zeros_like(before).index_add(0, by_target, is_below.double()).long()
    last = torch.cat([start[1:], start.new_tensor([len(target)])]) - 1
    position = torch.minimum(start[:, None] + n_below, last[:, None])
    return values.gather(0, order.gather(0, position))


NETWORKS: dict[str, type[RobustNetwork]] = {"guarded": GuardedNetwork, "soft-median": SoftMedianNetwork}


class RobustNetworkFactory(Configurable):
    """A factory of networks by name, since files hold names and no classes of networks.

    Parameters
    ----------
    network
        A key of ``NETWORKS``.
    """

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
    expects_targets: ClassVar[bool] = False

    _: KW_ONLY
    n_epochs: int = 200
    learning_rate: float = 0.01
    weight_decay: float = 5e-4
    device: str = "cpu"

    def build_classifier(self) -> Classifier:
        """Return the network, not yet trained."""
        settings = {
            name: getattr(self, name) for name in ("n_epochs", "learning_rate", "weight_decay", "device")
        }
        return CustomNetwork(RobustNetworkFactory(type(self).network), **settings)


class GNNGuard(RobustNetworkDefence):
    """Weigh edges by the similarity of their ends in every layer of a GCN (Zhang and Zitnik, 2020).

    Edges between nodes whose features, or hidden layers, have a cosine below 0.1 are removed. The authors'
    memory between layers and their learned pruning are left out, as in their default.

    Parameters are those of :class:`RobustNetworkDefence`.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.defend import GNNGuard
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> split = datasets.label_split(digits.labels, 5, validation=0, test=200, rng=0)
    >>> GNNGuard(n_epochs=50).fit(digits, split.train, rng=0).correct([7, 3]).tolist()
    [7, 3]
    """

    network = "guarded"


class SoftMedianGCN(RobustNetworkDefence):
    """Replace the mean over neighbours in a GCN by the Soft Median (Geisler et al., 2021).

    A neighbour counts the less, the further it is from the median of the neighbours, dimension by dimension.
    The temperature is 0.2. The authors' sparsified diffusion of the graph is left out.

    Parameters are those of :class:`RobustNetworkDefence`.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.defend import SoftMedianGCN
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> split = datasets.label_split(digits.labels, 5, validation=0, test=200, rng=0)
    >>> SoftMedianGCN(n_epochs=50).fit(digits, split.train, rng=0).correct([7, 3]).tolist()
    [7, 3]
    """

    network = "soft-median"
