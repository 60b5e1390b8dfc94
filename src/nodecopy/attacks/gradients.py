"""A trained network as a function of a few rows of its adjacency, and its gradient with respect to them.

An attacker who may rewire the nodes r_1, ..., r_R adds rows V_1, ..., V_R to the adjacency:
A' = A + sum_i (e_i V_i^T + V_i e_i^T). Every product with A' is then the product with the sparse A and
vectors beside it, so the gradient with respect to V, ``[R, n_nodes]``, needs no N x N matrix. Modules of
users are in :mod:`.module_gradients`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.random import SeedSequence
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from nodecopy._core.csr import IntArray
from nodecopy._core.validation import check_integer, check_numbers, check_sequence
from nodecopy.attacks.base import Nodes, TargetedAttack
from nodecopy.attacks.edits import Edits
from nodecopy.attacks.module_gradients import AttackedModule
from nodecopy.attacks.rewired_networks import Loss, RewiredNetwork
from nodecopy.attacks.surrogate import SurrogateLabels, gcn_weights, surrogate_features
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.nn.devices import check_device
from nodecopy.nn.stack import SparseStack


class RewiredGCN(RewiredNetwork):
    """The logits of a two-layer GCN while some rows of the adjacency are changed.

    Parameters
    ----------
    projected
        ``[n_nodes, n_hidden]``: features times the first layer's weights.
    second
        ``[n_hidden, n_classes]``: the second layer's weights.
    edits
        The graph as the attack has left it so far.
    rows
        Nodes that may be rewired, ``[R]``.
    """

    def __init__(self, projected: Tensor, second: Tensor, edits: Edits, rows: NDArray[np.int64]) -> None:
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
        """Return (A' + I) times a dense matrix."""
        out = (self.adjacency @ dense[None])[0] + dense + V.T @ dense[self.rows]
        return out.index_add(0, self.rows, V @ dense)

    def _closed_rows(self, V: Tensor, nodes: Tensor) -> Tensor:
        """Return some rows of A' + I, ``[P, n_nodes]``."""
        chosen = torch.zeros(len(self.degrees), len(nodes), dtype=V.dtype, device=V.device)
        chosen[nodes, torch.arange(len(nodes), device=V.device)] = 1
        return self._propagate(V, chosen).T


class GradientEdits(Edits):
    """Edits of a graph with a trained network.

    Parameters
    ----------
    graph, labels
        The graph, and the class numbers of its nodes.
    rewire
        Returns the network on the edits made so far, with some rows that may be rewired.
    """

    def __init__(self, graph: Graph, labels: SurrogateLabels, rewire: Rewire, device: torch.device) -> None:
        super().__init__(graph)
        self.codes = torch.from_numpy(labels.codes).to(device)
        self.train = torch.from_numpy(labels.train).to(device)
        self.rewire = rewire
        self.donors: dict[int, IntArray] = {}


Rewire: TypeAlias = Callable[[Edits, NDArray[np.int64]], RewiredNetwork]


@dataclass(kw_only=True, eq=False, repr=False)
class GradientAttack(TargetedAttack):
    """Repeatedly flip the pairs whose gradient promises the steepest rise of a loss.

    A subclass writes ``attack_target``, which calls :meth:`greedy_flips` with its loss. The parameters are
    described in :class:`.FGA`.
    """

    flips_per_step: int = 1
    surrogate: Any = None
    scale: str = "auto"
    together: bool = True
    device: str = "cpu"

    def prepare(
        self, graph: Graph, targets: Nodes, train: ArrayLike | None, seed: SeedSequence
    ) -> Callable[[], GradientEdits]:
        name = type(self).__name__
        check_integer(self.flips_per_step, f"flips_per_step of {name}", low=1)
        labels = SurrogateLabels.from_graph(graph, targets, train, name)
        if isinstance(self.surrogate, torch.nn.Module):
            module = AttackedModule(self.surrogate, graph, f"surrogate of {name}")
            labels, device = replace(labels, codes=module.codes), module.network.device
            return lambda: GradientEdits(graph, labels, module.rewire, device)
        scale = "rows" if self.scale == "auto" and self.surrogate is not None else self.scale
        features = surrogate_features(graph, scale, "rows", name)
        if self.surrogate is None:
            first, second = gcn_weights(graph, features, labels, seed, self.device)
        else:
            shape = features.shape[1], labels.n_classes
            first, second = _check_surrogate(self.surrogate, shape, f"surrogate of {name}")
        device = check_device(self.device)
        projected = torch.from_numpy(features.astype(np.float64) @ first).to(device)
        rewire = partial(RewiredGCN, projected, torch.from_numpy(second).to(device))
        return lambda: GradientEdits(graph, labels, rewire, device)

    def greedy_flips(
        self,
        edits: GradientEdits,
        rows: NDArray[np.int64],
        loss: Loss,
        budget: int,
    ) -> None:
        """Flip at most ``budget`` pairs; stop where no flip promises a higher loss.

        Parameters
        ----------
        edits
            The graph as the attack has left it so far.
        rows
            Nodes at which pairs may be flipped.
        loss
            The loss to raise, as a function of the network and the changes V of its adjacency at ``rows``.
        budget
            Number of flips granted.
        """
        network = edits.rewire(edits, rows)
        for row, node in choose_flips(network, loss, budget, flips_per_step=self.flips_per_step):
            edits.flip(int(rows[row]), node)


def choose_flips(
    network: RewiredNetwork, loss: Loss, budget: int, *, flips_per_step: int = 1
) -> list[tuple[int, int]]:
    """Return at most ``budget`` pairs (row, node) to flip, in the order of :meth:`.greedy_flips`."""
    left, V = network.free_pairs(), torch.zeros_like(network.present)
    flips: list[tuple[int, int]] = []
    while len(flips) < budget:
        gain = network.gains(loss, V, left).flatten()
        steepest = gain.topk(min(budget - len(flips), flips_per_step, len(gain)))
        best = steepest.indices[steepest.values > 0]
        if not len(best):
            break
        V.view(-1)[best] = 1 - 2 * network.present.view(-1)[best]
        left.view(-1)[best] = False
        flips += [divmod(entry, V.shape[1]) for entry in best.tolist()]
    return flips


def _check_surrogate(surrogate: Any, shape: tuple[int, int], name: str) -> list[NDArray[np.float64]]:
    """Return the two layers of a surrogate as arrays that map features to classes."""
    given = check_sequence(surrogate, name, "a module or two matrices")
    layers = [check_numbers(layer, name).astype(np.float64) for layer in given]
    shapes = [layer.shape for layer in layers]
    n_hidden = shapes[0][-1] if shapes and shapes[0] else 0
    if shapes != [(shape[0], n_hidden), (n_hidden, shape[1])]:
        raise InputError(
            f"{name} must be two matrices, {shape[0]} features by hidden and hidden by {shape[1]} classes; "
            f"got shapes {shapes}."
        )
    return layers
