"""Gradient attacks on modules of users.

Where ``forward`` takes ``edge_weight``, pairs that may be connected are edges of weight zero, and the
gradient with respect to the weights goes through the module's own normalisation. This is exact only if an
edge of weight zero counts for nothing, which is checked for every target: means over neighbours count it, and
some modules ignore their weights. All other modules are evaluated again for candidates, which are selected
by the gradient with respect to the features.
"""

from __future__ import annotations

import copy
import time

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from nodecopy._core.notices import log_decision, warn_about_data
from nodecopy.attacks.edits import Edits
from nodecopy.attacks.rewired_networks import Loss, RewiredNetwork
from nodecopy.graph import Graph
from nodecopy.nn.module_networks import ModuleNetwork, label_columns

N_CANDIDATES = 64
"""Edges to add, and edges to remove, that are evaluated for each flip where there is no gradient."""
MAX_SECONDS_PER_FLIP = 2.0
"""Estimated seconds from which on the decision is a warning."""
TOLERANCE = 1e-4
"""Largest difference of log-probabilities between absent edges and edges of weight zero."""


class AttackedModule:
    """A trained module and the graph on which it is attacked.

    Parameters
    ----------
    module
        See :class:`.ModuleNetwork`.
    graph
        The clean graph.
    owner
        What the module is called in errors.

    Attributes
    ----------
    codes
        The output column of every node's label.
    """

    def __init__(self, module: torch.nn.Module, graph: Graph, owner: str) -> None:
        self.network = ModuleNetwork(module, owner)
        self.x = self.network.features(graph)
        start = time.perf_counter()
        n_columns = self.network.predict_first(graph).shape[1]
        n_candidates = min(2 * N_CANDIDATES, graph.n_nodes)
        self.seconds_per_flip = n_candidates * (time.perf_counter() - start) / 2
        self.codes = label_columns(graph, n_columns, self.network.name)[1]
        self._is_logged = False

    def rewire(self, edits: Edits, rows: NDArray[np.int64]) -> RewiredNetwork:
        """Return the module with rows that may be rewired: with gradients where these are exact."""
        if self.network.takes_weights:
            weighted = WeightedModule(self.network, self.x, edits, rows)
            if weighted.is_exact():
                return weighted
        if not self._is_logged:
            notify = warn_about_data if self.seconds_per_flip > MAX_SECONDS_PER_FLIP else log_decision
            notify(
                f"{self.network.name} is attacked without gradients of edges: for each flip (at least "
                f"{self.seconds_per_flip:.1g} s), up to {2 * N_CANDIDATES} candidates are evaluated, "
                "since its forward has no edge_weight, ignores it, or counts edges of weight zero. To use "
                "gradients, multiply the messages by edge_weight."
            )
            self._is_logged = True
        return RewiredModule(self.network, self.x, edits, rows)


class RewiredModule(RewiredNetwork):
    """A module on a graph of which some rows are changed, evaluated again for every candidate.

    Parameters
    ----------
    network
        The module.
    x
        The features of all nodes.
    edits
        The graph as the attack has left it so far.
    rows
        Nodes that may be rewired, ``[R]``.
    """

    def __init__(self, network: ModuleNetwork, x: Tensor, edits: Edits, rows: NDArray[np.int64]) -> None:
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
        """Return the log-probabilities of all nodes after the flips V."""
        pairs = self.free & (self.present + V > 0.5)
        return self.network.log_probabilities(x, self.join_edges(pairs))

    def join_edges(self, pairs: Tensor) -> Tensor:
        """Return the edges that touch no row, and both directions of the pairs in a mask."""
        row, node = pairs.nonzero(as_tuple=True)
        ends = torch.stack([self.rows[row], node])
        return torch.cat([self.fixed, ends, ends.flip(0)], dim=1)

    def gains(self, loss: Loss, V: Tensor, left: Tensor) -> Tensor:
        candidates = self.select_candidates(loss, V, left)
        gains = torch.full_like(V, -torch.inf)
        with torch.no_grad():
            before = loss(self, V)
            for row, node in candidates.tolist():
                after = V.clone()
                after[row, node] = 1 - 2 * self.present[row, node]
                gains[row, node] = loss(self, after) - before
        return gains

    def select_candidates(self, loss: Loss, V: Tensor, left: Tensor) -> Tensor:
        """Return the pairs with the highest scores, ``[n, 2]``.

        A new neighbour is scored by the gradient with respect to the features of the node and its present
        neighbours times the mean features of the new neighbour and its own neighbours.
        """
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
        chosen = [
            torch.where(left & (self.present == kind), scores, -torch.inf)
            .flatten()
            .topk(min(N_CANDIDATES, n))
            for kind in (0, 1)
        ]
        entries = torch.cat([best.indices[best.values > -torch.inf] for best in chosen])
        return torch.stack([entries // n, entries % n], dim=1)


class WeightedModule(RewiredModule):
    """A module whose gradient with respect to the weights of edges, absent ones included, is exact."""

    def evaluate(self, V: Tensor, x: Tensor) -> Tensor:
        changed = (self.present + V)[self.free]
        weights = torch.cat([torch.ones_like(self.fixed[0], dtype=x.dtype), changed, changed])
        return self.network.log_probabilities(x, self.join_edges(self.free), weights)

    def is_exact(self) -> bool:
        """Return whether edges of weight zero count for nothing."""
        V = torch.zeros_like(self.present)
        with torch.no_grad():
            with_zeros, without = self.logits(V), RewiredModule.evaluate(self, V, self.x)
        return torch.allclose(with_zeros, without, rtol=TOLERANCE, atol=TOLERANCE)

    def gains(self, loss: Loss, V: Tensor, left: Tensor) -> Tensor:
        gains = RewiredNetwork.gains(self, loss, V, left)
        if gains[left].isfinite().all():
            return gains
        return RewiredModule.gains(self, loss, V, left)  # the degree of an isolated node has no inverse
