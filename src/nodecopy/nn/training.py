"""The one training loop: B models, each with its own labelled nodes, stopped each on its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch.nn import functional

from nodecopy._core.csr import IntArray
from nodecopy.nn.adam import Descent
from nodecopy.nn.lowrank import LowRank, LowRankStack
from nodecopy.nn.networks import Matrix, Networks, Stack
from nodecopy.nn.stack import SparseStack


class Targets:
    """Labelled nodes of B models: which rows of the logits count, and what they should say.

    Models may have different numbers of labelled nodes; short lists are padded with weight zero.
    """

    def __init__(self, nodes: Sequence[IntArray], codes: Sequence[IntArray], device: torch.device) -> None:
        longest = max(len(chosen) for chosen in nodes)
        self.rows = np.zeros((len(nodes), longest), np.int64)
        labels, weights = np.zeros_like(self.rows), np.zeros(self.rows.shape, np.float32)
        for b, (chosen, code) in enumerate(zip(nodes, codes, strict=True)):
            self.rows[b, : len(chosen)], labels[b, : len(chosen)] = chosen, code
            weights[b, : len(chosen)] = 1.0 / len(chosen)
        self.labels = torch.from_numpy(labels).to(device)
        self.weights = torch.from_numpy(weights).to(device)

    def losses(self, logits: Tensor) -> Tensor:
        """Mean cross-entropy of each model, ``[B]``; ``logits`` hold these rows only."""
        n_models, n_rows, n_classes = logits.shape
        entropy = functional.cross_entropy(
            logits.reshape(-1, n_classes), self.labels.reshape(-1), reduction="none"
        )
        return (entropy.view(n_models, n_rows) * self.weights).sum(dim=1)


class View:
    """The logits of some nodes, computing the last product for those nodes alone where that is exact."""

    def __init__(self, networks: Networks, matrices: Sequence[Matrix], rows: IntArray) -> None:
        device = networks.features.values.device
        self.networks, self.graphs = networks, stacked(networks, matrices)
        self.last, self.rows = None, torch.from_numpy(rows).to(device)
        plain = [matrix for matrix in matrices if isinstance(matrix, sparse.csr_array)]
        if plain and networks.recipe.propagation == "convolution" and networks.recipe.drop_edges == 0:
            chosen = [sparse.csr_array(m[r]) for m, r in zip(plain, rows, strict=True)]
            self.last = SparseStack(chosen, device)

    def logits(self, step: int | None) -> Tensor:
        out = self.networks.logits(self.graphs, self.last, step)
        if self.last is not None:
            return out
        return out.gather(1, self.rows[:, :, None].expand(-1, -1, out.shape[2]))


class Objective(Protocol):
    """What B networks are to descend, perhaps with other weights beside their own."""

    @property
    def groups(self) -> list[dict[str, Any]]:
        """The other weights, as ``torch.optim`` takes them."""

    def losses(self, step: int) -> Tensor:
        """The loss of each model, ``[B]``, with the masks of a step."""


class Labelled:
    """The plain objective: the cross-entropy of labelled nodes."""

    def __init__(self, networks: Networks, matrices: Sequence[Matrix], targets: Targets) -> None:
        self.view, self.targets = View(networks, matrices, targets.rows), targets

    @property
    def groups(self) -> list[dict[str, Any]]:
        return []

    def losses(self, step: int) -> Tensor:
        return self.targets.losses(self.view.logits(step))


class Observer(Protocol):
    """Looks on while networks are trained, and may change their graphs."""

    def before(self, epoch: int, networks: Networks) -> Sequence[Matrix] | None:
        """Other graphs from this epoch on, or none."""

    def after(self, epoch: int, networks: Networks) -> None:
        """Called when the epoch's step is done."""


def stacked(networks: Networks, matrices: Sequence[Matrix]) -> Stack | None:
    """The graphs of B networks on their device; an MLP needs none."""
    device = networks.features.values.device
    if networks.recipe.propagation == "none":
        return None
    plain = [matrix for matrix in matrices if isinstance(matrix, sparse.csr_array)]
    if plain:
        return SparseStack(plain, device)
    return LowRankStack([matrix for matrix in matrices if isinstance(matrix, LowRank)], device)


def train(
    networks: Networks,
    matrices: Sequence[Matrix],
    targets: Targets,
    *,
    watch: Watch | None = None,
    observer: Observer | None = None,
    objective: Objective | None = None,
) -> None:
    """Train B networks in place by Adam on their own labelled nodes, or down another objective.

    With a watch, each model keeps the weights of its lowest validation loss and stops on its own; the
    loop ends when all have stopped.
    """
    recipe = networks.recipe
    objective = objective or Labelled(networks, matrices, targets)
    descent = Descent([*networks.groups, *objective.groups], recipe.learning_rate)
    for epoch in range(recipe.n_epochs):
        others = observer.before(epoch, networks) if observer is not None else None
        if others is not None:
            objective = Labelled(networks, others, targets)
        descent.step(lambda: objective.losses(epoch).sum())  # noqa: B023, called at once
        networks.constrain()
        if observer is not None:
            observer.after(epoch, networks)
        if watch is not None and watch.all_stopped(epoch):
            break
    if watch is not None:
        watch.restore()


class Watch:
    """The best weights of each model by its loss on validation nodes, perhaps of other graphs.

    The recipe's patience says how many epochs it waits for a better one.
    """

    def __init__(self, networks: Networks, matrices: Sequence[Matrix], validation: Targets) -> None:
        assert networks.recipe.patience
        self.networks, self.validation, self.patience = networks, validation, networks.recipe.patience
        self.view = View(networks, matrices, validation.rows)
        n_models = networks.first.shape[0]
        device = networks.first.device
        self.best_loss = torch.full((n_models,), torch.inf, device=device)
        self.best_epoch = torch.zeros(n_models, dtype=torch.int64, device=device)
        self.best = [weight.detach().clone() for weight in networks.weights]

    @torch.no_grad()
    def all_stopped(self, epoch: int) -> bool:
        losses = self.validation.losses(self.view.logits(None))
        running = epoch - self.best_epoch <= self.patience
        better = running & (losses < self.best_loss)
        self.best_loss = torch.where(better, losses, self.best_loss)
        self.best_epoch = torch.where(better, epoch, self.best_epoch)
        for best, weight in zip(self.best, self.networks.weights, strict=True):
            best.copy_(torch.where(better[:, None, None], weight, best))
        # Asking the device costs a wait, so it is asked every tenth epoch only.
        return epoch % 10 == 9 and not bool((epoch - self.best_epoch <= self.patience).any())

    @torch.no_grad()
    def restore(self) -> None:
        for best, weight in zip(self.best, self.networks.weights, strict=True):
            weight.copy_(best)
