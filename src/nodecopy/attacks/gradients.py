"""A trained GCN as a function of a few rows of its adjacency, and its gradient with respect to them.

An attacker who may rewire the nodes r_1, ..., r_R adds rows V_1, ..., V_R to the adjacency:
A' = A + sum_i (e_i V_i^T + V_i e_i^T). Every product with A' is then the product with the sparse A and
vectors beside it, so the gradient with respect to V, ``[R, n_nodes]``, needs no N x N matrix.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.random import SeedSequence
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from nodecopy._core.validation import as_array, check_integer
from nodecopy.attacks.base import Nodes, TargetedAttack
from nodecopy.attacks.edits import Edits
from nodecopy.attacks.surrogate import Knowledge, gcn_weights
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.nn.devices import checked_device
from nodecopy.nn.features import feature_matrix
from nodecopy.nn.networks import KIPF
from nodecopy.nn.stack import SparseStack


class RewiredGCN:
    """The logits of a two-layer GCN while some rows of the adjacency are changed.

    Parameters
    ----------
    projected
        ``[n_nodes, hidden]``: features times the first layer's weights.
    second
        ``[hidden, n_classes]``: the second layer's weights.
    edits
        The edges as they are.
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
        self.present = self._closed_rows(unchanged, self.rows).contiguous()
        self.present[torch.arange(len(rows)), self.rows] = 0

    def free_pairs(self) -> Tensor:
        """``[R, n_nodes]``: pairs that may be flipped, none with itself, none twice."""
        free = torch.ones_like(self.present, dtype=torch.bool)
        free[:, self.rows] = torch.ones(len(self.rows), len(self.rows), device=free.device).tril(-1).bool()
        return free

    def logits(self, V: Tensor) -> Tensor:
        """``[n_nodes, n_classes]``."""
        scale = self._scale(V)
        hidden = torch.relu(scale * self._spread(V, scale * self.projected))
        return scale * self._spread(V, scale * (hidden @ self.second))

    def copied_logits(self, V: Tensor, donors: Tensor, victim: int) -> Tensor:
        """``[P, n_classes]``: the logits at each donor with the victim's features in its place."""
        scale = self._scale(V)
        inner = self._spread(V, scale * self.projected)
        reach = self._closed_rows(V, donors)  # [P, n_nodes]
        swapped = scale[donors] * (self.projected[victim] - self.projected[donors])  # [P, hidden]
        hidden = torch.relu(scale * inner)
        summed = (reach * scale[:, 0]) @ hidden
        # The swap shows at the donor and its neighbours alone. Elsewhere reach is zero and both this
        # correction and its derivative vanish, so leaving it out there changes no gradient.
        which, near = reach.detach().nonzero(as_tuple=True)
        weight = reach[which, near, None]
        swapped_hidden = torch.relu(scale[near] * (inner[near] + weight * swapped[which]))
        summed = summed.index_add(0, which, weight * scale[near] * (swapped_hidden - hidden[near]))
        return scale[donors] * (summed @ self.second)

    def _scale(self, V: Tensor) -> Tensor:
        degrees = (self.degrees + V.sum(dim=0)).index_add(0, self.rows, V.sum(dim=1))
        return degrees.rsqrt()[:, None]

    def _spread(self, V: Tensor, dense: Tensor) -> Tensor:
        """(A' + I) times a dense matrix."""
        out = (self.adjacency @ dense[None])[0] + dense + V.T @ dense[self.rows]
        return out.index_add(0, self.rows, V @ dense)

    def _closed_rows(self, V: Tensor, nodes: Tensor) -> Tensor:
        """Some rows of A' + I, ``[P, n_nodes]``."""
        chosen = torch.zeros(len(self.degrees), len(nodes), dtype=V.dtype, device=V.device)
        chosen[nodes, torch.arange(len(nodes), device=V.device)] = 1
        return self._spread(V, chosen).T


class GradientEdits(Edits):
    """Edits of a graph on which the attacker has trained a GCN."""

    def __init__(self, graph: Graph, knowledge: Knowledge, projected: Tensor, second: Tensor) -> None:
        super().__init__(graph)
        self.codes = torch.from_numpy(knowledge.codes).to(projected.device)
        self.train = torch.from_numpy(knowledge.train).to(projected.device)
        self.projected, self.second = projected, second


class GradientAttack(TargetedAttack):
    """Flip the pairs whose gradient promises the steepest rise of a loss, again and again."""

    device: str
    flips_per_step: int
    surrogate: tuple[ArrayLike, ArrayLike] | None

    def _prepared(
        self, graph: Graph, victims: Nodes, train: ArrayLike | None, seed: SeedSequence
    ) -> Callable[[], GradientEdits]:
        name = type(self).__name__
        check_integer(self.flips_per_step, f"flips_per_step of {name}", low=1)
        knowledge = Knowledge.of(graph, victims, train, name)
        first, second = self._weights(graph, knowledge, seed)
        device = checked_device(self.device)
        projected = torch.from_numpy(feature_matrix(graph, KIPF).astype(np.float64) @ first).to(device)
        last = torch.from_numpy(second).to(device)
        return lambda: GradientEdits(graph, knowledge, projected, last)

    def _weights(self, graph: Graph, knowledge: Knowledge, seed: SeedSequence) -> list[NDArray[np.float64]]:
        """The two layers of the surrogate, given or trained."""
        if self.surrogate is None:
            return gcn_weights(graph, knowledge, seed, self.device)
        name = f"surrogate of {type(self).__name__}"
        layers = [as_array(layer, name).astype(np.float64) for layer in self.surrogate]
        shapes = [layer.shape for layer in layers]
        n_features = feature_matrix(graph, KIPF).shape[1]
        hidden = shapes[0][-1] if shapes and shapes[0] else 0
        if shapes != [(n_features, hidden), (hidden, knowledge.n_classes)]:
            raise InputError(
                f"{name} must be two matrices, {n_features} features by hidden and hidden by "
                f"{knowledge.n_classes} classes; got shapes {shapes}."
            )
        return layers

    def _climb(
        self,
        edits: GradientEdits,
        rows: NDArray[np.int64],
        loss: Callable[[RewiredGCN, Tensor], Tensor],
        budget: int,
    ) -> None:
        """Flip at most ``budget`` pairs at some rows; stop where no flip promises a higher loss."""
        network = RewiredGCN(edits.projected, edits.second, edits, rows)
        left = network.free_pairs()
        V = torch.zeros_like(network.present).requires_grad_()
        while budget > 0:
            (gradient,) = torch.autograd.grad(loss(network, V), V)
            # An edge can only be removed, another pair only connected.
            gain = torch.where(left, gradient * (1 - 2 * network.present), -torch.inf).flatten()
            steepest = gain.topk(min(budget, self.flips_per_step, len(gain)))
            best = steepest.indices[steepest.values > 0]
            if not len(best):
                return
            budget -= len(best)
            with torch.no_grad():
                V.view(-1)[best] = 1 - 2 * network.present.view(-1)[best]
                left.view(-1)[best] = False
            for place in best.tolist():
                row, node = divmod(place, V.shape[1])
                edits.flip(int(rows[row]), node)
