"""Attacks by gradients of a trained network with respect to a few rows of the adjacency.

An attacker who may rewire the nodes r_1, ..., r_R adds rows V_1, ..., V_R to the adjacency:
A' = A + sum_i (e_i V_i^T + V_i e_i^T). Every product with A' is then the product with the sparse A and
vectors beside it, so the gradient with respect to V, ``[R, n_nodes]``, needs no N x N matrix.
"""

from __future__ import annotations

import copy
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike
from scipy import sparse
from torch import Tensor
from torch.nn import functional

from nodecopy._core.arrays import Floats, IntArray, Ints
from nodecopy._core.checks import (
    as_array,
    check_indices,
    check_integer,
    check_numbers,
    check_sequence,
    check_settings,
)
from nodecopy._core.messages import log_decision, warn_about_data
from nodecopy.attacks.base import TargetedAttack
from nodecopy.attacks.nettack import SurrogateLabels, surrogate_features, train_weights
from nodecopy.attacks.perturbation import Edits
from nodecopy.errors import InputError
from nodecopy.features.embeddings import NodeEmbeddings
from nodecopy.features.neighbours import NeighbourSearch
from nodecopy.graph import Graph
from nodecopy.nn.modules import ModuleNetwork, label_columns
from nodecopy.nn.networks import KIPF, SparseStack, normalise_adjacency
from nodecopy.nn.training import check_device

AUTHORS_NODE = 0  # the node that the code of the authors of node copying rewired, whatever the target was
N_CANDIDATES = 64  # edges to add, and to remove, that are evaluated for each flip without a gradient
MAX_SECONDS_PER_FLIP = 2.0  # a search that takes longer is a warning
TOLERANCE = 1e-4  # largest difference of log-probabilities between absent edges and edges of weight zero


class RewiredNetwork(ABC):
    """A trained network while R rows of the adjacency change; ``present`` are these rows before."""

    def __init__(self, rows: Tensor, present: Tensor) -> None:
        self.rows, self.present = rows, present

    @abstractmethod
    def logits(self, V: Tensor) -> Tensor:
        """Return the logits of all nodes after a change V of the rows."""

    @abstractmethod
    def copied_logits(self, V: Tensor, donors: Tensor, target: int) -> Tensor:
        """Return the logits ``[P, n_classes]`` at each donor if it had the target's features."""

    def free_pairs(self) -> Tensor:
        """Return a mask ``[R, n_nodes]`` of the pairs that may be flipped: no loops, each pair once."""
        free = torch.ones_like(self.present, dtype=torch.bool)
        free[:, self.rows] = torch.ones(len(self.rows), len(self.rows), device=free.device).tril(-1).bool()
        return free

    def gains(self, loss: Loss, V: Tensor, left: Tensor) -> Tensor:
        """Return how much the flip of each pair in ``left`` promises to raise a loss, ``[R, n_nodes]``."""
        V = V.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(loss(self, V), V, materialize_grads=True)
        # An edge can only be removed, another pair only connected.
        return torch.where(left, gradient * (1 - 2 * self.present), -torch.inf)


Loss = Callable[[RewiredNetwork, Tensor], Tensor]  # to raise, given the change V of the adjacency


class AttackedModule:
    """A trained module of a user and the graph on which it is attacked."""

    def __init__(self, module: torch.nn.Module, graph: Graph, owner: str) -> None:
        self.network = ModuleNetwork(module, owner)
        self.x = self.network.features(graph)
        start = time.perf_counter()
        n_columns = self.network.predict_first(graph).shape[1]
        n_candidates = min(2 * N_CANDIDATES, graph.n_nodes)
        self.seconds_per_flip = n_candidates * (time.perf_counter() - start) / 2
        self.codes = label_columns(graph, n_columns, self.network.name)[1]
        self._is_logged = False

    def rewire(self, edits: Edits, rows: Ints) -> RewiredNetwork:
        if self.network.takes_weights:
            weighted = WeightedModule(self.network, self.x, edits, rows)
            if weighted.is_exact():
                return weighted
        if not self._is_logged:
            notify = warn_about_data if self.seconds_per_flip > MAX_SECONDS_PER_FLIP else log_decision
            cost = f"for each flip (at least {self.seconds_per_flip:.1g} s), up to {2 * N_CANDIDATES}"
            way_out = "To use gradients, multiply the messages by edge_weight in forward."
            sign = f"{self.network.name} is attacked without gradients of edges"
            notify(f"{sign}: {cost} candidates are evaluated. {way_out}")
            self._is_logged = True
        return RewiredModule(self.network, self.x, edits, rows)


class RewiredModule(RewiredNetwork):
    """A module on a graph of which some rows are changed, evaluated again for every candidate."""

    def __init__(self, network: ModuleNetwork, x: Tensor, edits: Edits, rows: Ints) -> None:
        adjacency = edits.adjacency()
        present = torch.from_numpy(adjacency[rows].toarray()).to(x.device, x.dtype)
        super().__init__(torch.from_numpy(rows).to(x.device), present)
        self.network, self.x, self.adjacency = network, x, adjacency
        self.free = self.free_pairs()
        edges = adjacency.tocoo()
        is_fixed = ~(np.isin(edges.row, rows) | np.isin(edges.col, rows))
        self.fixed = network.edge_index(edges.row[is_fixed], edges.col[is_fixed])

    def logits(self, V: Tensor) -> Tensor:
        return self.evaluate(V, self.x)

    def copied_logits(self, V: Tensor, donors: Tensor, target: int) -> Tensor:
        copied = []
        for donor in donors.tolist():
            x = self.x.clone()
            x[donor] = self.x[target]
            copied.append(self.evaluate(V, x)[donor])
        return torch.stack(copied)

    def evaluate(self, V: Tensor, x: Tensor) -> Tensor:
        pairs = self.free & (self.present + V > 0.5)
        return self.network.log_probabilities(x, self.join_edges(pairs))

    def join_edges(self, pairs: Tensor) -> Tensor:
        """Return the edges that touch no row, and pairs in both directions."""
        row, node = pairs.nonzero(as_tuple=True)
        ends = torch.stack([self.rows[row], node])
        return torch.cat([self.fixed, ends, ends.flip(0)], dim=1)

    def gains(self, loss: Loss, V: Tensor, left: Tensor) -> Tensor:
        gains = torch.full_like(V, -torch.inf)
        candidates = self.select_candidates(loss, V, left).tolist()
        with torch.no_grad():
            before = loss(self, V)
            for row, node in candidates:
                after = V.clone()
                after[row, node] = 1 - 2 * self.present[row, node]
                gains[row, node] = loss(self, after) - before
        return gains

    def select_candidates(self, loss: Loss, V: Tensor, left: Tensor) -> Tensor:
        """Return the pairs with the highest scores: gradient of features times mean features, ``[n, 2]``."""
        differentiable = copy.copy(self)
        differentiable.x = self.x.detach().clone().requires_grad_()
        value = loss(differentiable, V)
        (gradient,) = torch.autograd.grad(value, differentiable.x, materialize_grads=True)
        closed = self.present + V
        closed[torch.arange(len(V)), self.rows] = 1
        products = ((closed @ gradient) @ self.x.T).detach().double().cpu().numpy()
        n = len(self.x)
        reach = self.adjacency + sparse.eye_array(n, format="csr")
        means = (reach @ products.T).T / reach.sum(axis=1)
        scores = torch.from_numpy(means).to(V) * (1 - 2 * self.present)
        kinds = [torch.where(left & (self.present == kind), scores, -torch.inf) for kind in (0, 1)]
        chosen = [kind.flatten().topk(min(N_CANDIDATES, n)) for kind in kinds]
        entries = torch.cat([best.indices[best.values > -torch.inf] for best in chosen])
        return torch.stack([entries // n, entries % n], dim=1)


class WeightedModule(RewiredModule):
    """A module with exact gradients with respect to the weights of edges, absent ones included."""

    def evaluate(self, V: Tensor, x: Tensor) -> Tensor:
        changed = (self.present + V)[self.free]
        weights = torch.cat([torch.ones_like(self.fixed[0], dtype=x.dtype), changed, changed])
        return self.network.log_probabilities(x, self.join_edges(self.free), weights)

    def is_exact(self) -> bool:
        V = torch.zeros_like(self.present)
        with torch.no_grad():
            with_zeros, without = self.logits(V), RewiredModule.evaluate(self, V, self.x)
        return torch.allclose(with_zeros, without, rtol=TOLERANCE, atol=TOLERANCE)

    def gains(self, loss: Loss, V: Tensor, left: Tensor) -> Tensor:
        gains = RewiredNetwork.gains(self, loss, V, left)
        if gains[left].isfinite().all():
            return gains
        return RewiredModule.gains(self, loss, V, left)  # the degree of an isolated node has no inverse


class RewiredGCN(RewiredNetwork):
    """The logits of a two-layer GCN; ``projected`` are the features times the first layer's weights."""

    def __init__(self, projected: Tensor, second: Tensor, edits: Edits, rows: Ints) -> None:
        device = projected.device
        self.projected, self.second = projected, second
        self.adjacency = SparseStack([edits.adjacency()], device, torch.float64)
        self.degrees = torch.from_numpy(edits.degrees + 1.0).to(device)
        self.rows = torch.from_numpy(rows).to(device)
        unchanged = torch.zeros(len(rows), len(projected), dtype=torch.float64, device=device)
        present = self._closed_rows(unchanged, self.rows).contiguous()
        present[torch.arange(len(rows)), self.rows] = 0
        super().__init__(self.rows, present)

    def logits(self, V: Tensor) -> Tensor:
        scale = self._scale(V)
        hidden = torch.relu(scale * self._propagate(V, scale * self.projected))
        return scale * self._propagate(V, scale * (hidden @ self.second))

    def copied_logits(self, V: Tensor, donors: Tensor, target: int) -> Tensor:
        scale = self._scale(V)
        inputs = self._propagate(V, scale * self.projected)
        reach = self._closed_rows(V, donors)  # [P, n_nodes]
        swapped = scale[donors] * (self.projected[target] - self.projected[donors])  # [P, n_hidden]
        hidden = torch.relu(scale * inputs)
        summed = (reach * scale[:, 0]) @ hidden
        # The swap changes the hidden layer at the donor and its neighbours only. Elsewhere reach is zero,
        # and both this correction and its derivative vanish, so leaving it out changes no gradient.
        which, near = reach.detach().nonzero(as_tuple=True)
        weight = reach[which, near, None]
        swapped_hidden = torch.relu(scale[near] * (inputs[near] + weight * swapped[which]))
        summed = summed.index_add(0, which, weight * scale[near] * (swapped_hidden - hidden[near]))
        return scale[donors] * (summed @ self.second)

    def _scale(self, V: Tensor) -> Tensor:
        degrees = (self.degrees + V.sum(dim=0)).index_add(0, self.rows, V.sum(dim=1))
        return degrees.rsqrt()[:, None]

    def _propagate(self, V: Tensor, dense: Tensor) -> Tensor:
        out = (self.adjacency @ dense[None])[0] + dense + V.T @ dense[self.rows]
        return out.index_add(0, self.rows, V @ dense)

    def _closed_rows(self, V: Tensor, nodes: Tensor) -> Tensor:
        chosen = torch.zeros(len(self.degrees), len(nodes), dtype=V.dtype, device=V.device)
        chosen[nodes, torch.arange(len(nodes), device=V.device)] = 1
        return self._propagate(V, chosen).T


class GradientEdits(Edits):
    """Edits with a function ``rewire`` that returns the network with rows that may be rewired."""

    def __init__(self, graph: Graph, labels: SurrogateLabels, rewire: Any, device: torch.device) -> None:
        super().__init__(graph)
        self.codes = torch.from_numpy(labels.codes).to(device)
        self.train = torch.from_numpy(labels.train).to(device)
        self.rewire = rewire
        self.donors: dict[int, IntArray] = {}


@dataclass(kw_only=True, eq=False, repr=False)
class GradientAttack(TargetedAttack):
    """Repeatedly flip the pair whose gradient promises the steepest rise of a loss; see :class:`FGA`."""

    surrogate: Any = None
    scale: str = "auto"
    together: bool = True
    device: str = "cpu"

    def prepare(
        self, graph: Graph, targets: Ints, train: ArrayLike | None, seed: SeedSequence
    ) -> Callable[[], GradientEdits]:
        name = type(self).__name__
        labels = SurrogateLabels.from_graph(graph, targets, train, name)
        if isinstance(self.surrogate, torch.nn.Module):
            module = AttackedModule(self.surrogate, graph, f"surrogate of {name}")
            labels, device = replace(labels, codes=module.codes), module.network.device
            return lambda: GradientEdits(graph, labels, module.rewire, device)
        scale = "rows" if self.scale == "auto" and self.surrogate is not None else self.scale
        features = surrogate_features(graph, scale, "rows", name)
        if self.surrogate is None:
            matrix = normalise_adjacency(graph.adjacency)
            layers = train_weights(KIPF, features, matrix, labels.train, labels, seed, self.device)
        else:
            shape = features.shape[1], labels.n_classes
            layers = _check_surrogate(self.surrogate, shape, f"surrogate of {name}")
        device = check_device(self.device)
        projected = torch.from_numpy(features.astype(np.float64) @ layers[0]).to(device)
        rewire = partial(RewiredGCN, projected, torch.from_numpy(layers[1]).to(device))
        return lambda: GradientEdits(graph, labels, rewire, device)

    def greedy_flips(self, edits: GradientEdits, rows: Ints, loss: Loss, budget: int) -> None:
        network = edits.rewire(edits, rows)
        for row, node in choose_flips(network, loss, budget):
            edits.flip(int(rows[row]), node)


def choose_flips(network: RewiredNetwork, loss: Loss, budget: int) -> list[tuple[int, int]]:
    """Return at most ``budget`` pairs (row, node) to flip; fewer if no other promises a higher loss."""
    left, V = network.free_pairs(), torch.zeros_like(network.present)
    flips: list[tuple[int, int]] = []
    while len(flips) < budget:
        steepest = network.gains(loss, V, left).flatten().topk(1)
        if not steepest.values > 0:
            break
        entry = int(steepest.indices)
        V.view(-1)[entry] = 1 - 2 * network.present.view(-1)[entry]
        left.view(-1)[entry] = False
        flips.append(divmod(entry, V.shape[1]))
    return flips


def _check_surrogate(surrogate: Any, shape: tuple[int, int], name: str) -> list[Floats]:
    given = check_sequence(surrogate, name, "a module or two matrices")
    layers = [check_numbers(layer, name).astype(np.float64) for layer in given]
    shapes = [layer.shape for layer in layers]
    n_hidden = shapes[0][-1] if shapes and shapes[0] else 0
    if shapes != [(shape[0], n_hidden), (n_hidden, shape[1])]:
        allowed = f"two matrices, {shape[0]} features by hidden and hidden by {shape[1]} classes"
        raise InputError(name, f"must be {allowed}; got shapes {shapes}.")
    return layers


@dataclass(kw_only=True, eq=False, repr=False)
class FGA(GradientAttack):
    """Fast gradient attack (Chen et al., 2018): flip the target's pairs along the gradient of its loss.

    The gradient is that of a GCN, trained once on the clean graph, or of a module of yours, with respect to
    the target's row of the adjacency. The default budget is 20 flips.

    Parameters
    ----------
    loss
        ``"target"``: the target's own loss, as in the attack's paper. ``"training-set"``: the run behind
        the FGA row of the node-copying paper, whose code always rewired node 0 along the gradient of the
        loss of the training set, with a budget of ``"degree"``, and so hardly touched the targets.
    surrogate
        The model that an attacker knows: a trained ``torch.nn.Module`` with ``forward(x, edge_index)`` or
        ``forward(x, edge_index, edge_weight)``, which is attacked itself; or the two weight matrices of a GCN
        (features by hidden, hidden by classes). By default the attacker trains a GCN. A module that takes no
        ``edge_weight``, ignores it or counts edges of weight zero is evaluated for up to 128 candidates per
        flip, which takes as many times longer.
    scale
        How the GCN scales features. ``"auto"`` (default): word counts by ``"rows"``, others are standardised;
        with weight matrices it is ``"rows"``. Also ``"standardise"``, ``"binary"`` and ``"none"``.
    together
        As in :class:`.TargetedAttack`.
    device
        ``"cpu"`` or ``"cuda"``, where gradients are computed; a module stays on its own device.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.attacks import FGA
    >>> digits = datasets.load("digits").subgraph(range(200))
    >>> FGA().attack(digits, [7], budget=2, rng=0).spent.tolist()
    [2]
    """

    default_budget = 20

    loss: str = "target"

    def prepare(
        self, graph: Graph, targets: Ints, train: ArrayLike | None, seed: SeedSequence
    ) -> Callable[[], GradientEdits]:
        check_settings(self, loss=["target", "training-set"])
        return super().prepare(graph, targets, train, seed)

    def attack_target(self, edits: Edits, target: int, budget: int, rng: Generator) -> None:
        assert isinstance(edits, GradientEdits)
        node = target if self.loss == "target" else AUTHORS_NODE
        nodes = torch.tensor([target]) if self.loss == "target" else edits.train
        classes = edits.codes[nodes]

        def loss(network: RewiredNetwork, V: Tensor) -> Tensor:
            return functional.cross_entropy(network.logits(V)[nodes], classes)

        self.greedy_flips(edits, np.array([node]), loss, budget)


@dataclass(eq=False, repr=False)
class AdaptiveCopyingAttack(GradientAttack):
    """Attack the copying defence by flipping edges at the donors that it would choose.

    Flips are greedy along the exact gradient of the loss of the defence's prediction. Donors are chosen on
    the clean graph and taken as fixed, which is exact for defences whose donors do not depend on edges
    (``"features"``), and an attacker's guess for others. The default budget is the target's degree.

    Parameters
    ----------
    donors
        How the donors are chosen: ``"features"``, ``"neighbourhoods"`` or ``"expected"``, as in the
        defence; a function that returns an embedding of a graph, one row per node; or an array of positions
        with the donors of a target in each row.
    n_donors
        Number of donors of each target; not used where ``donors`` is an array.
    surrogate, scale, together, device
        As in :class:`.FGA`.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.attacks import AdaptiveCopyingAttack
    >>> digits = datasets.load("digits").subgraph(range(200))
    >>> AdaptiveCopyingAttack(n_donors=3).attack(digits, [7], budget=2, rng=0).spent.tolist()
    [2]
    """

    donors: Any = "features"
    _: KW_ONLY
    n_donors: int = 10

    def prepare(
        self, graph: Graph, targets: Ints, train: ArrayLike | None, seed: SeedSequence
    ) -> Callable[[], GradientEdits]:
        donors = dict(zip(targets.tolist(), self._find_donors(graph, targets), strict=True))
        start = super().prepare(graph, targets, train, seed)

        def start_with_donors() -> GradientEdits:
            edits = start()
            edits.donors = donors
            return edits

        return start_with_donors

    def attack_target(self, edits: Edits, target: int, budget: int, rng: Generator) -> None:
        assert isinstance(edits, GradientEdits)
        donors, true_class = edits.donors[target], edits.codes[target]

        def loss(network: RewiredNetwork, V: Tensor) -> Tensor:
            copied = network.copied_logits(V, torch.from_numpy(donors).to(V.device), target)
            return -copied.softmax(dim=1).mean(dim=0)[true_class].log()

        self.greedy_flips(edits, np.unique(donors), loss, budget)

    def _find_donors(self, graph: Graph, targets: Ints) -> IntArray:
        owner = type(self).__name__
        if not isinstance(self.donors, str) and not callable(self.donors):
            donors = as_array(self.donors, f"donors of {owner}")
            if donors.ndim != 2 or len(donors) != len(targets) or not donors.shape[1]:
                message = f"must have {len(targets)} rows, one per target, and columns; got {donors.shape}."
                raise InputError(f"donors of {owner}", message)
            positions = check_indices(donors.ravel(), f"donors of {owner}", size=graph.n_nodes)
            return positions.reshape(donors.shape)
        check_integer(self.n_donors, f"n_donors of {owner}", low=1, high=graph.n_nodes - 1)
        if callable(self.donors):
            search = NeighbourSearch(self.donors(graph), owner=owner)
        else:
            search = NodeEmbeddings(graph).search(self.donors, parameter="donors", owner=owner)
        _, nearest = search.nearest(self.n_donors, of=targets, include_self=False)
        return nearest.reshape(len(targets), self.n_donors).astype(np.int64)
