"""The training loop: B models, each with its own labelled nodes and its own early stopping."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor
from torch.nn import functional

from nodecopy._core.csr import IntArray
from nodecopy.nn.compiled_networks import CompiledTrainer
from nodecopy.nn.networks import Matrix, Networks, Stack
from nodecopy.nn.stack import LowRankStack, SparseStack
from nodecopy.nn.steps import AdamStepper
from nodecopy.nn.threads import share_threads


class Targets:
    """Labelled nodes of B models: rows of the logits, their classes, and their weights in the loss.

    Models may have different numbers of labelled nodes; short lists are padded with weight zero.

    Parameters
    ----------
    nodes
        The labelled nodes of each model.
    labels
        For each model the class of each node, or the probabilities of the classes.
    device
        Where the loss is computed.
    weights
        For each model the weight of each node, scaled to a sum of one; equal by default.
    """

    def __init__(
        self,
        nodes: Sequence[IntArray],
        labels: Sequence[NDArray[Any]],
        device: torch.device,
        weights: Sequence[NDArray[Any] | None] | None = None,
    ) -> None:
        longest = max(len(chosen) for chosen in nodes)
        self.rows = np.zeros((len(nodes), longest), np.int64)
        padded = np.zeros((*self.rows.shape, *labels[0].shape[1:]), labels[0].dtype)
        scaled = np.zeros(self.rows.shape, np.float32)
        for b, (chosen, label) in enumerate(zip(nodes, labels, strict=True)):
            self.rows[b, : len(chosen)], padded[b, : len(chosen)] = chosen, label
            weight = None if weights is None else weights[b]
            scaled[b, : len(chosen)] = 1.0 / len(chosen) if weight is None else weight / weight.sum()
        self.labels = torch.from_numpy(padded).to(device)
        self.weights = torch.from_numpy(scaled).to(device)

    def losses(self, logits: Tensor) -> Tensor:
        """Return the mean cross-entropy of each model, ``[B]``; ``logits`` hold these rows only."""
        n_models, n_rows, n_classes = logits.shape
        entropy = functional.cross_entropy(
            logits.reshape(-1, n_classes), self.labels.flatten(0, 1), reduction="none"
        )
        return (entropy.view(n_models, n_rows) * self.weights).sum(dim=1)


class Objective(Protocol):
    """The losses that B networks minimise, possibly with further weights."""

    @property
    def parameter_groups(self) -> Sequence[dict[str, Any]]:
        """The further weights, as ``torch.optim`` takes them."""

    def losses(self, step: int) -> Tensor:
        """Return the loss of each model, ``[B]``, with the masks of a step."""


class CrossEntropy:
    """The default objective: the cross-entropy of labelled nodes.

    The last product is computed for the labelled nodes alone if that gives the same result.
    """

    parameter_groups: Sequence[dict[str, Any]] = ()

    def __init__(self, networks: Networks, matrices: Sequence[Any], targets: Targets) -> None:
        device = networks.features.device
        self.networks, self.targets, self.graphs = networks, targets, stack_matrices(networks, matrices)
        self.last, self.rows = None, torch.from_numpy(targets.rows).to(device)
        recipe = networks.recipe
        if recipe.propagation == "convolution" and recipe.rank is None and recipe.drop_edges == 0:
            chosen = [sparse.csr_array(m[rows]) for m, rows in zip(matrices, targets.rows, strict=True)]
            self.last = SparseStack(chosen, device)

    def losses(self, step: int | None) -> Tensor:
        logits = self.networks.logits(self.graphs, self.last, step)
        if self.last is None:
            logits = logits.gather(1, self.rows[:, :, None].expand(-1, -1, logits.shape[2]))
        return self.targets.losses(logits)


class TrainingCallback(Protocol):
    """Observe training before and after every epoch, and optionally change the graphs."""

    def before_epoch(self, epoch: int, networks: Networks) -> Sequence[Matrix] | None:
        """Return propagation matrices to train on from this epoch on, or None to keep those before."""

    def after_epoch(self, epoch: int, networks: Networks) -> None:
        """Do something after the step of the epoch."""


def stack_matrices(networks: Networks, matrices: Sequence[Any]) -> Stack | None:
    """Return the propagation matrices of B networks on their device, or None for perceptrons."""
    device = networks.features.device
    if networks.recipe.propagation == "none":
        return None
    return SparseStack(matrices, device) if networks.recipe.rank is None else LowRankStack(matrices, device)


def build_predictor(networks: Networks, matrices: Sequence[Any]) -> Callable[[int | None], Tensor]:
    """Return a function of a step that computes the logits of all nodes, with the masks of the step."""
    if networks.recipe.is_compiled(networks.features.device):
        compiled = networks.compile(matrices)
        return lambda step: torch.stack([network.logits(step) for network in compiled])
    graphs = stack_matrices(networks, matrices)
    return lambda step: networks.logits(graphs, None, step)


def build_losses(
    networks: Networks, matrices: Sequence[Any], targets: Targets
) -> Callable[[int | None], Tensor]:
    """Return a function of a step that computes the cross-entropy of labelled nodes of each network."""
    if not networks.recipe.is_compiled(networks.features.device):
        return CrossEntropy(networks, matrices, targets).losses
    compiled = networks.compile(matrices, targets.rows)
    return lambda step: targets.losses(torch.stack([network.logits(step) for network in compiled]))


class TorchSteps:
    """Training steps on an objective, the cross-entropy of labelled nodes by default."""

    def __init__(
        self,
        networks: Networks,
        matrices: Sequence[Matrix],
        targets: Targets,
        objective: Objective | None = None,
    ) -> None:
        self.networks, self.targets = networks, targets
        self.objective = objective or CrossEntropy(networks, matrices, targets)
        groups = [*networks.parameter_groups, *self.objective.parameter_groups]
        self.stepper = AdamStepper(groups, networks.recipe.learning_rate, models_first=True)

    def change_graphs(self, matrices: Sequence[Matrix]) -> None:
        """Continue with the cross-entropy on other graphs."""
        self.objective = CrossEntropy(self.networks, matrices, self.targets)

    def take(self, epoch: int) -> None:
        """Take the step of an epoch."""
        self.stepper.step(lambda: self.objective.losses(epoch).sum())


class CompiledSteps:
    """Training steps on the cross-entropy of labelled nodes in compiled code, one network after another."""

    def __init__(self, networks: Networks, matrices: Sequence[Any], targets: Targets) -> None:
        self.networks, self.targets = networks, targets
        labels = targets.labels.numpy()
        if labels.ndim == 2:
            labels = np.eye(networks.weights[1].shape[2], dtype=np.float32)[labels]
        self.trainers = [
            CompiledTrainer(network, probabilities.astype(np.float32), weights)
            for network, probabilities, weights in zip(
                networks.compile(matrices, targets.rows), labels, targets.weights.numpy(), strict=True
            )
        ]

    def change_graphs(self, matrices: Sequence[Matrix]) -> None:
        """Continue on other graphs."""
        compiled = self.networks.compile(matrices, self.targets.rows)
        for trainer, network in zip(self.trainers, compiled, strict=True):
            trainer.change_network(network)

    def take(self, epoch: int) -> None:
        """Take the step of an epoch."""
        for trainer in self.trainers:
            trainer.step(epoch)


def train(
    networks: Networks,
    matrices: Sequence[Matrix],
    targets: Targets,
    *,
    early_stopping: EarlyStopping | None = None,
    callback: TrainingCallback | None = None,
    objective: Objective | None = None,
    stop: Event | None = None,
) -> None:
    """Train B networks in place by Adam on their own labelled nodes, or on another objective.

    With early stopping, each model takes back the weights of its lowest validation loss; the loop ends when
    all models have stopped, or before its next epoch once ``stop`` is set.
    """
    steps: TorchSteps | CompiledSteps
    if objective is None and networks.recipe.is_compiled(networks.features.device):
        steps = CompiledSteps(networks, matrices, targets)
    else:
        steps = TorchSteps(networks, matrices, targets, objective)
    with share_threads(networks):
        for epoch in range(networks.recipe.n_epochs):
            if stop is not None and stop.is_set():
                return
            others = callback.before_epoch(epoch, networks) if callback is not None else None
            if others is not None:
                steps.change_graphs(others)
            steps.take(epoch)
            networks.constrain()
            if callback is not None:
                callback.after_epoch(epoch, networks)
            if early_stopping is not None and early_stopping.update(epoch):
                break
    if early_stopping is not None:
        early_stopping.restore()


class EarlyStopping:
    """The weights of each model with the lowest loss on validation nodes, possibly of other graphs.

    A model stops after as many epochs without a lower loss as the recipe's patience says.
    """

    def __init__(self, networks: Networks, matrices: Sequence[Matrix], validation: Targets) -> None:
        assert networks.recipe.patience
        self.networks, self.patience = networks, networks.recipe.patience
        self.compute_losses = build_losses(networks, matrices, validation)
        n_models, device = len(networks.weights[0]), networks.features.device
        self.best_loss = torch.full((n_models,), torch.inf, device=device)
        self.best_epoch = torch.zeros(n_models, dtype=torch.int64, device=device)
        self.best = [weight.detach().clone() for weight in networks.weights]

    @torch.no_grad()
    def update(self, epoch: int) -> bool:
        """Compare the losses after an epoch with the lowest; return whether all models have stopped."""
        losses = self.compute_losses(None)
        running = epoch - self.best_epoch <= self.patience
        better = running & (losses < self.best_loss)
        self.best_loss = torch.where(better, losses, self.best_loss)
        self.best_epoch = torch.where(better, epoch, self.best_epoch)
        for best, weight in zip(self.best, self.networks.weights, strict=True):
            best.copy_(torch.where(better[:, None, None], weight, best))
        # Reading a result waits for the device, so it is read every tenth epoch only.
        return epoch % 10 == 9 and not bool((epoch - self.best_epoch <= self.patience).any())

    @torch.no_grad()
    def restore(self) -> None:
        """Take back the best weights of each model."""
        for best, weight in zip(self.best, self.networks.weights, strict=True):
            weight.copy_(best)
