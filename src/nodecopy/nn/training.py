"""The training loop of B networks, each with its own labelled nodes and its own early stopping."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Event, Lock
from types import SimpleNamespace
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch.nn import functional

from nodecopy._core.arrays import Array, IntArray
from nodecopy.errors import InputError
from nodecopy.nn.compiled import CompiledTrainer, compile_networks
from nodecopy.nn.networks import LowRankStack, Matrix, Networks, SparseStack, Stack

ADAM_LANES = 16  # entries that Adam updates together on a CPU; a remainder is rounded differently
EPOCHS_BETWEEN_CHECKS = 10  # reading a loss waits for the device, so it is read every tenth epoch only
LARGE = 2**20  # entries of a layer from which all threads share an operation, if there is one network only
Part = TypeVar("Part")
Result = TypeVar("Result")


class LabelledNodes(NamedTuple):
    """The labelled nodes of one network."""

    nodes: IntArray
    labels: Array
    weights: Array | None = None


class Targets:
    """Labelled nodes of B models: rows of the logits, their classes, and their weights in the loss."""

    def __init__(self, models: Sequence[LabelledNodes], device: torch.device) -> None:
        longest, labels = max(len(model.nodes) for model in models), models[0].labels
        self.rows = np.zeros((len(models), longest), np.int64)
        padded = np.zeros((*self.rows.shape, *labels.shape[1:]), labels.dtype)
        scaled = np.zeros(self.rows.shape, np.float32)
        for b, (chosen, label, weight) in enumerate(models):
            self.rows[b, : len(chosen)], padded[b, : len(chosen)] = chosen, label
            scaled[b, : len(chosen)] = 1.0 / len(chosen) if weight is None else weight / weight.sum()
        self.labels = torch.from_numpy(padded).to(device)
        self.weights = torch.from_numpy(scaled).to(device)

    def losses(self, logits: Tensor) -> Tensor:
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


def train(
    networks: Networks,
    matrices: Sequence[Matrix],
    targets: Targets,
    early_stopping: EarlyStopping | None = None,
    objective: Objective | None = None,
    stop: Event | None = None,
) -> None:
    """Train B networks in place by Adam on their own labelled nodes, or on another objective."""
    steps: TorchSteps | CompiledSteps
    if objective is None and networks.config.is_compiled(networks.features.device):
        steps = CompiledSteps(networks, matrices, targets)
    else:
        steps = TorchSteps(networks, matrices, targets, objective)
    with share_threads(networks):
        for epoch in range(networks.config.n_epochs):
            if stop is not None and stop.is_set():
                return
            steps.take(epoch)
            networks.constrain()
            if early_stopping is not None and early_stopping.update(epoch):
                break
    if early_stopping is not None:
        early_stopping.restore()


class EarlyStopping:
    """The weights of each model with the lowest loss on validation nodes, possibly of other graphs."""

    def __init__(self, networks: Networks, matrices: Sequence[Matrix], validation: Targets) -> None:
        self.networks, self.patience = networks, networks.config.patience
        n_models, device = len(networks.weights[0]), networks.features.device
        self.compute_losses: Callable[[], Tensor]
        if networks.config.is_compiled(device):
            parts = compile_networks(networks, matrices, validation.rows)
            self.compute_losses = lambda: validation.losses(
                torch.stack([part.logits(None) for part in parts])
            )
        else:
            objective = CrossEntropy(networks, matrices, validation)
            self.compute_losses = lambda: objective.losses(None)
        self.best_loss = torch.full((n_models,), torch.inf, device=device)
        self.best_epoch = torch.zeros(n_models, dtype=torch.int64, device=device)
        self.best = [weight.detach().clone() for weight in networks.weights]

    @torch.no_grad()
    def update(self, epoch: int) -> bool:
        losses = self.compute_losses()
        running = epoch - self.best_epoch <= self.patience
        better = running & (losses < self.best_loss)
        self.best_loss = torch.where(better, losses, self.best_loss)
        self.best_epoch = torch.where(better, epoch, self.best_epoch)
        for best, weight in zip(self.best, self.networks.weights, strict=True):
            best.copy_(torch.where(better[:, None, None], weight, best))
        if (epoch + 1) % EPOCHS_BETWEEN_CHECKS:
            return False
        return not bool((epoch - self.best_epoch <= self.patience).any())

    @torch.no_grad()
    def restore(self) -> None:
        for best, weight in zip(self.best, self.networks.weights, strict=True):
            weight.copy_(best)


class CrossEntropy:
    """The cross-entropy of labelled nodes, the default objective."""

    parameter_groups: Sequence[dict[str, Any]] = ()

    def __init__(self, networks: Networks, matrices: Sequence[Any], targets: Targets) -> None:
        device, config = networks.features.device, networks.config
        self.networks, self.targets, self.graphs = networks, targets, stack_matrices(networks, matrices)
        self.last, self.rows = None, torch.from_numpy(targets.rows).to(device)
        if config.propagation == "convolution" and config.rank is None:
            chosen = [sparse.csr_array(m[rows]) for m, rows in zip(matrices, targets.rows, strict=True)]
            self.last = SparseStack(chosen, device)

    def losses(self, step: int | None) -> Tensor:
        logits = self.networks.logits(self.graphs, self.last, step)
        if self.last is None:
            logits = logits.gather(1, self.rows[:, :, None].expand(-1, -1, logits.shape[2]))
        return self.targets.losses(logits)


def stack_matrices(networks: Networks, matrices: Sequence[Any]) -> Stack | None:
    """Return the propagation matrices of B networks on their device, or None for perceptrons."""
    device = networks.features.device
    if networks.config.propagation == "none":
        return None
    return SparseStack(matrices, device) if networks.config.rank is None else LowRankStack(matrices, device)


def build_predictor(networks: Networks, matrices: Sequence[Any]) -> Callable[[int | None], Tensor]:
    """Return a function that computes the logits of all nodes with the masks of a step."""
    if networks.config.is_compiled(networks.features.device):
        compiled = compile_networks(networks, matrices)
        return lambda step: torch.stack([network.logits(step) for network in compiled])
    graphs = stack_matrices(networks, matrices)
    return lambda step: networks.logits(graphs, None, step)


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
        self.stepper = AdamStepper(groups, networks.config.learning_rate, models_first=True)

    def take(self, epoch: int) -> None:
        self.stepper.step(lambda: self.objective.losses(epoch).sum())


class CompiledSteps:
    """Training steps on the cross-entropy in compiled code, one network after another."""

    def __init__(self, networks: Networks, matrices: Sequence[Any], targets: Targets) -> None:
        self.networks, self.targets = networks, targets
        labels = targets.labels.numpy()
        if labels.ndim == 2:
            labels = np.eye(networks.weights[1].shape[2], dtype=np.float32)[labels]
        compiled = compile_networks(networks, matrices, targets.rows)
        self.trainers = [
            CompiledTrainer(network, probabilities.astype(np.float32), weights)
            for network, probabilities, weights in zip(compiled, labels, targets.weights.numpy(), strict=True)
        ]

    def take(self, epoch: int) -> None:
        for trainer in self.trainers:
            trainer.step(epoch)


class AdamStepper:
    """Weights that are changed by steps of Adam, given as ``torch.optim`` takes them.

    With ``models_first`` the first axis of every weight numbers independent models, padded on a CPU to a
    multiple of :data:`ADAM_LANES`: a model has the same bits alone and beside others.
    """

    def __init__(
        self,
        weights: Iterable[Any],
        learning_rate: float,
        betas: tuple[float, float] = (0.9, 0.999),
        models_first: bool = False,
    ) -> None:
        self._optimiser = torch.optim.Adam(weights, lr=learning_rate, betas=betas, fused=True)
        self._weights = [weight for group in self._optimiser.param_groups for weight in group["params"]]
        self._padded: list[tuple[Tensor, Tensor]] = []
        for group in self._optimiser.param_groups if models_first else ():
            group["params"] = [self._pad(weight) for weight in group["params"]]

    def step(self, loss: Callable[[], Tensor]) -> None:
        """Compute a loss and take one step along its gradient; other weights in the loss do not change."""
        self._optimiser.zero_grad(set_to_none=True)
        for weight, _ in self._padded:
            weight.grad = None
        loss().backward(inputs=self._weights)  # type: ignore[no-untyped-call]
        for weight, padded in self._padded:
            size = weight[0].numel()
            padded[:, :size] = weight.detach().flatten(1)
            if weight.grad is not None:
                padded.grad = torch.zeros_like(padded)
                padded.grad[:, :size] = weight.grad.flatten(1)
        self._optimiser.step()
        for weight, padded in self._padded:
            weight.data.copy_(padded[:, : weight[0].numel()].view_as(weight))

    def _pad(self, weight: Tensor) -> Tensor:
        size = weight[0].numel()
        if weight.device.type != "cpu" or size % ADAM_LANES == 0:
            return weight
        padded = weight.new_zeros(len(weight), size + -size % ADAM_LANES)
        self._padded.append((weight, padded))
        return padded


_nesting = SimpleNamespace(lock=Lock(), depth=0, n_threads=1)  # open blocks, and threads before the first


def _forget_threads() -> None:
    """Use one thread in a forked process, which has no copy of the threads."""
    _nesting.lock, _nesting.depth = Lock(), 0
    torch.set_num_threads(1)


os.register_at_fork(after_in_child=_forget_threads)


@contextmanager
def one_thread_per_operation() -> Iterator[int]:
    """Let torch compute operations on one thread inside the block; yields how many it had before."""
    with _nesting.lock:
        n_threads = torch.get_num_threads()
        if not _nesting.depth:
            _nesting.n_threads = n_threads
        _nesting.depth += 1
        torch.set_num_threads(1)
    try:
        yield n_threads
    finally:
        with _nesting.lock:
            _nesting.depth -= 1
            torch.set_num_threads(n_threads if _nesting.depth else _nesting.n_threads)


def choose_threads(n_entries: int, device: torch.device) -> AbstractContextManager[object]:
    """Return the context for a network whose largest layer has ``n_entries`` entries."""
    if n_entries >= LARGE or device.type != "cpu":
        return nullcontext()
    return one_thread_per_operation()


def share_threads(networks: Networks) -> AbstractContextManager[object]:
    """Return the context for networks: one thread per operation, unless one is large."""
    features = networks.features
    n_entries = max(int(features.entries.max()), features.shape[1] * networks.config.n_hidden)
    return choose_threads(n_entries if len(features.entries) == 1 else 0, features.device)


def map_on_threads(
    function: Callable[[Part], Result], parts: Sequence[Part], on_error: Callable[[], None] | None = None
) -> list[Result]:
    """Return the results of a function for all parts, computed on as many threads as torch has."""
    with (
        one_thread_per_operation() as n_threads,
        ThreadPoolExecutor(n_threads, initializer=torch.set_num_threads, initargs=(1,)) as pool,
    ):
        futures = [pool.submit(function, part) for part in parts]
        try:
            return [future.result() for future in futures]
        except BaseException:
            if on_error is not None:
                on_error()
            for future in futures:
                future.cancel()
            raise


def check_device(name: str) -> torch.device:
    """Return the device of that name, or raise an error if it is not available."""
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError, ValueError, OverflowError):
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise InputError("device", f"must be 'cpu' or 'cuda' (perhaps with a number); got {name!r}.")
    if device.type == "cuda" and torch.cuda._is_in_bad_fork():
        reason = "a process that was forked after CUDA was used. Start processes by 'spawn'"
        raise InputError(f"device {name!r} cannot be used in {reason}.")
    if device.type == "cuda" and (device.index or 0) >= (n := torch.cuda.device_count()):
        raise InputError(
            f"device {name!r} is not available: this machine has {n or 'no'} CUDA devices. Use 'cpu'."
        )
    return device
