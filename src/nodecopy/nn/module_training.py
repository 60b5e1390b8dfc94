"""Training of modules of users, one after another: seeds, the loop, and early stopping."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any, TypeAlias
from weakref import WeakSet

import numpy as np
import torch
from torch import Tensor

from nodecopy._core.validation import show
from nodecopy.errors import InputError
from nodecopy.nn.module_networks import FORWARD, Edges, ModuleNetwork, holds_probabilities
from nodecopy.nn.networks import Recipe
from nodecopy.nn.steps import AdamStepper
from nodecopy.nn.threads import choose_threads
from nodecopy.nn.training import Targets

Factory: TypeAlias = Callable[[int, int], torch.nn.Module]
"""A function of the numbers of features and classes that returns a new module."""
EPOCHS_BETWEEN_CHECKS = 10
"""Reading the loss waits for the device, so it is read every tenth epoch only."""
_generators = RLock()
"""Held while the global generators are seeded, so that threads do not draw each other's numbers."""
_built: WeakSet[torch.nn.Module] = WeakSet()
"""The modules that factories have returned, as long as somebody keeps them."""


@contextmanager
def seed_global_generators(seed: int, device: torch.device) -> Iterator[None]:
    """Seed the global generators of torch, NumPy and Python inside the block, and restore them at its end.

    Modules draw their weights and dropout masks from these. Other threads wait at the beginning of the block.
    """
    devices = []
    if device.type == "cuda":
        devices = [torch.cuda.current_device() if device.index is None else device.index]
    with _generators, torch.random.fork_rng(devices):
        before_numpy, before_python = np.random.get_state(), random.getstate()  # noqa: NPY002
        torch.default_generator.manual_seed(seed)
        for number in devices:
            torch.cuda.default_generators[number].manual_seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002, a module may draw from it
        random.seed(seed)
        try:
            yield
        finally:
            np.random.set_state(before_numpy)  # noqa: NPY002
            random.setstate(before_python)


def build_network(
    factory: Factory, n_features: int, n_classes: int, device: torch.device, owner: str
) -> ModuleNetwork:
    """Return a new module of a factory on a device, or raise an error that names its ``owner``."""
    try:
        module: Any = factory(n_features, n_classes)
    except Exception as error:
        raise InputError(
            f"{owner} must build a network from the numbers of features and classes; called with "
            f"{n_features} and {n_classes}, it raised {type(error).__name__}: {error}"
        ) from error
    if not isinstance(module, torch.nn.Module):
        raise InputError(f"{owner} must return a torch.nn.Module with {FORWARD}; got {show(module)}.")
    if module in _built:
        raise InputError(
            f"{owner} must return a new module in each call; got the same {type(module).__name__} again. "
            "Build it inside the function."
        )
    _built.add(module)
    return ModuleNetwork(module.to(device), owner)


def train_module(
    network: ModuleNetwork,
    x: Tensor,
    edges: Edges,
    targets: Targets,
    recipe: Recipe,
    *,
    n_classes: int,
    early_stopping: ModuleEarlyStopping | None = None,
) -> None:
    """Train a module by Adam, in training mode and with the same decay for all parameters.

    It is evaluated once before, which checks its output and initialises lazy layers. On a CPU, operations
    have one thread unless the matrix of features is large.
    """
    with torch.no_grad():
        output = network.evaluate(x, *edges)
        _check_width(network.check_output(output, len(x)), n_classes, network.name)
    weights = [weight for weight in network.module.parameters() if weight.requires_grad]
    if not weights:
        raise InputError(f"{network.name} must have parameters to train; got none.")
    loss = ModuleLoss(network, x, edges, targets, is_probability=holds_probabilities(output))
    groups = [{"params": weights, "weight_decay": recipe.weight_decay}]
    stepper, version = AdamStepper(groups, recipe.learning_rate), x._version
    network.module.train()
    with torch.enable_grad(), choose_threads(x.numel(), x.device):
        for epoch in range(recipe.n_epochs):
            stepper.step(loss)
            is_last = epoch == recipe.n_epochs - 1
            if is_last or epoch % EPOCHS_BETWEEN_CHECKS == EPOCHS_BETWEEN_CHECKS - 1:
                loss.check(epoch, recipe)
            if early_stopping is not None and early_stopping.update(epoch, network):
                break
    if x._version != version:
        raise InputError(f"forward of {network.name} must not change x in place; got another x afterwards.")
    network.module.zero_grad(set_to_none=True)
    if early_stopping is not None:
        early_stopping.restore(network)


class ModuleLoss:
    """The cross-entropy of labelled nodes, as a function of the weights of a module.

    Parameters
    ----------
    network
        The module.
    x, edges
        Features and edges of the graph.
    targets
        The labelled nodes.
    is_probability
        Whether the module returns probabilities; otherwise logits or log-probabilities.
    """

    def __init__(
        self, network: ModuleNetwork, x: Tensor, edges: Edges, targets: Targets, *, is_probability: bool
    ) -> None:
        self.network, self.x, self.edges, self.targets = network, x, edges, targets
        self.rows = torch.from_numpy(targets.rows[0]).to(x.device)
        self.is_probability = is_probability
        self.last: Tensor | None = None

    def __call__(self) -> Tensor:
        output = self.network.forward(self.x, *self.edges)
        if not isinstance(output, Tensor):  # only evaluation mode has been checked
            self.network.check_output(output, len(self.x))
        if not output.requires_grad:
            raise InputError(
                f"the output of {self.network.name} must depend on its parameters; got one without gradient. "
                "Is it detached, or computed under torch.no_grad()?"
            )
        logits = output[self.rows].float()
        if self.is_probability:
            logits = logits.clamp_min(torch.finfo(logits.dtype).tiny).log()
        loss = self.targets.losses(logits[None])[0]
        self.last = loss.detach()
        return loss

    def check(self, epoch: int, recipe: Recipe) -> None:
        """Raise an error if the last loss is not finite: the weights will never recover."""
        if self.last is not None and not bool(self.last.isfinite()):
            raise InputError(
                f"the training loss of {self.network.name} must stay finite; got {float(self.last)} by epoch "
                f"{epoch + 1}. Lower learning_rate ({recipe.learning_rate:g}), or scale the features."
            )


class ModuleEarlyStopping:
    """The state of a module with the lowest loss on validation nodes of the observed graph.

    Parameters
    ----------
    x, edges
        Features and edges of the observed graph.
    targets
        The validation nodes.
    patience
        Epochs without a lower loss before training stops.
    """

    def __init__(self, x: Tensor, edges: Edges, targets: Targets, patience: int) -> None:
        self.x, self.edges, self.targets, self.patience = x, edges, targets, patience
        self.rows = torch.from_numpy(targets.rows[0]).to(x.device)
        self.best_loss, self.best_epoch, self.best = float("inf"), 0, dict[str, Any]()

    @torch.no_grad()
    def update(self, epoch: int, network: ModuleNetwork) -> bool:
        """Compare the loss after an epoch with the lowest; return whether training stops."""
        logarithms = network.log_probabilities(self.x, *self.edges)[self.rows]
        loss = float(self.targets.losses(logarithms[None])[0])
        if loss < self.best_loss:
            self.best_loss, self.best_epoch = loss, epoch
            # Running statistics belong to the state as well.
            self.best = {name: value.clone() for name, value in network.module.state_dict().items()}
        return epoch - self.best_epoch > self.patience

    def restore(self, network: ModuleNetwork) -> None:
        """Take back the best state."""
        network.module.load_state_dict(self.best)


def _check_width(output: Tensor, n_classes: int, name: str) -> None:
    """Raise an error if an output does not have one column per class."""
    if output.shape[1] != n_classes:
        raise InputError(
            f"{name} must return {n_classes} columns, one per class of the training nodes; got "
            f"{output.shape[1]}. Use the second argument of the factory as the number of columns."
        )
