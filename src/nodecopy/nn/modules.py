"""Modules of users, such as those of PyTorch Geometric, as networks on graphs."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any, TypeAlias
from weakref import WeakSet

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from nodecopy._core.arrays import Rows
from nodecopy._core.checks import check_finite, show
from nodecopy._core.messages import warn_about_data
from nodecopy.errors import InputError
from nodecopy.graph import Graph, class_codes
from nodecopy.nn.networks import TrainingConfig
from nodecopy.nn.training import AdamStepper, Targets, choose_threads

SUM_TOLERANCE = 1e-4
"""How far the sum of a row may be from 1 for outputs that are taken for probabilities."""
MAX_NOISE = 1e-3
"""How much probabilities may differ between two evaluations, by rounding on a GPU."""
Edges: TypeAlias = tuple[Tensor, Tensor | None]
"""Edges ``[2, n_edges]`` and, if there are any, their weights."""
WEIGHTS_UNUSED = "the weights of the graph are not used: {} takes no edge_weight."
FORWARD = "forward(x, edge_index) or forward(x, edge_index, edge_weight)"


class ModuleNetwork:
    """A module that predicts the classes of nodes, as a function of graphs.

    Parameters
    ----------
    module
        A module with ``forward(x, edge_index)`` or ``forward(x, edge_index, edge_weight)`` that returns one
        row per node and one column per class: logits, log-probabilities or probabilities. ``x`` is dense and
        has the data type of the module's parameters, ``edge_index`` holds 64-bit integers, and every edge of
        an undirected graph is in it twice, as :func:`nodecopy.to_pyg` returns them.
    owner
        What has the parameter, for errors.
    """

    def __init__(self, module: Any, owner: str) -> None:
        if not isinstance(module, torch.nn.Module):
            raise InputError(owner, f"must be a trained torch.nn.Module with {FORWARD}; got {show(module)}.")
        self.module, self.name = module, type(module).__name__
        parameter = inspect.signature(module.forward).parameters.get("edge_weight")
        # The models of PyG take weights, but those that say so ignore them.
        self.takes_weights = parameter is not None and bool(getattr(module, "supports_edge_weight", True))
        self.needs_weights = parameter is not None and parameter.default is parameter.empty
        tensors = [*module.parameters(), *module.buffers()]
        self.device = tensors[0].device if tensors else torch.device("cpu")
        self.dtype = next((part.dtype for part in tensors if part.is_floating_point()), torch.float32)

    def features(self, graph: Graph) -> Tensor:
        """Return the features of a graph, dense, on the device and with the data type of the module."""
        if graph.features is None or not graph.features.shape[1]:
            least = "features" if graph.features is None else "at least one feature"
            raise InputError(
                f"a graph must have {least} to be classified by {self.name}; this one has none. If it "
                "was trained on one feature per node, use graph.replace(features=np.eye(graph.n_nodes))."
            )
        return self.dense_tensor(graph.features)

    def dense_tensor(self, features: Any) -> Tensor:
        """Return a feature matrix, dense, on the device and with the data type of the module."""
        is_sparse = isinstance(features, sparse.csr_array)
        dense: NDArray[Any] = features.toarray() if is_sparse else np.array(features)
        if self.dtype != torch.float64:
            with np.errstate(over="ignore"):
                dense = dense.astype(np.float32)
            check_finite(dense, "features in single precision")
        return torch.from_numpy(dense).to(self.device, self.dtype)

    def edge_index(self, rows: Any, columns: Any) -> Tensor:
        """Return edges as a tensor ``[2, n_edges]`` on the device of the module."""
        return torch.from_numpy(np.stack([rows, columns]).astype(np.int64)).to(self.device)

    def log_probabilities(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Return the logarithms of the class probabilities, ``[n_nodes, n_classes]``, in evaluation mode."""
        return self.check_output(self.evaluate(x, edge_index, edge_weight), len(x))

    def evaluate(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Any:
        """Return the unchecked output of the module in evaluation mode."""
        with evaluation_mode(self.module):
            return self.forward(x, edge_index, edge_weight)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Any:
        """Return the unchecked output of the module in the mode that it is in.

        Edges without weights have the weight 1 in a module whose ``edge_weight`` has no default.
        """
        if edge_weight is None and self.needs_weights:
            edge_weight = x.new_ones(edge_index.shape[1])
        weights = {} if edge_weight is None else {"edge_weight": edge_weight}
        try:
            return self.module(x, edge_index, **weights)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            got = f"x ({x.dtype}, {list(x.shape)}) and edge_index ({edge_index.dtype})"
            raise InputError(
                self.name,
                f"must accept {got}, as {FORWARD}; it raised {type(error).__name__}: {error}. "
                "Wrap it in a module whose forward converts them.",
            ) from error

    def sample_probabilities(self, x: Tensor, edges: Edges, n_samples: int) -> list[Tensor]:
        """Return class probabilities with ``n_samples`` dropout masks, or one without dropout for 0.

        A module whose first two samples are equal has no dropout, and one sample is returned.
        """
        if not n_samples:
            return [self.log_probabilities(x, *edges).exp()]
        samples: list[Tensor] = []
        with evaluation_mode(self.module, dropout=True):
            for _ in range(n_samples):
                samples.append(self.check_output(self.forward(x, *edges), len(x)).exp())
                if len(samples) == 2 and torch.equal(*samples):
                    return samples[:1]
        return samples

    def edges(self, graph: Graph) -> Edges:
        """Return the edges of a graph and, for modules that take them, the weights of a weighted graph."""
        if graph.rows.weights is not None and not self.takes_weights:
            warn_about_data(WEIGHTS_UNUSED.format(self.name))
        return self.edges_of_rows(graph.rows)

    def edges_of_rows(self, rows: Rows) -> Edges:
        """Return the edges in the rows of an adjacency, and their weights as :meth:`edges` does."""
        weights = None
        if rows.weights is not None and self.takes_weights:
            weights = torch.tensor(rows.weights).to(self.device, self.dtype)
        return self.edge_index(rows.row_numbers, rows.indices), weights

    def predict(self, graph: Graph) -> NDArray[np.float32]:
        """Return the class probabilities of all nodes of a graph."""
        with torch.no_grad():
            result = self.log_probabilities(self.features(graph), *self.edges(graph)).exp()
        probabilities: NDArray[np.float32] = result.cpu().numpy().astype(np.float32)
        return probabilities

    def predict_first(self, graph: Graph) -> NDArray[np.float32]:
        """Return the class probabilities on the first graph; warn if a second evaluation gives others."""
        first, second = self.predict(graph), self.predict(graph)
        if not np.allclose(first, second, atol=MAX_NOISE):
            warn_about_data(
                f"predictions of {self.name} are random even in evaluation mode. Does its forward call "
                "functional.dropout without training=self.training?"
            )
        return first

    def check_output(self, output: Any, n_nodes: int) -> Tensor:
        """Return the logarithms of the probabilities that a module returned in one of three forms."""
        is_tensor = isinstance(output, Tensor)
        if not is_tensor or output.ndim != 2 or len(output) != n_nodes or output.shape[1] < 2:
            got = f"shape {list(output.shape)}" if is_tensor else f"a {type(output).__name__}"
            raise InputError(
                self.name,
                f"must return one tensor with {n_nodes} rows, one per node, and at least two "
                f"columns, one per class; got {got}. Wrap it in a module whose forward returns the logits.",
            )
        # The loss of a confident prediction is zero in single precision, and so is its gradient.
        output = output.float() if output.device.type == "mps" else output.double()
        if holds_probabilities(output):
            return torch.log(output.clamp_min(torch.finfo(output.dtype).tiny))
        logarithms: Tensor = output.log_softmax(dim=1)  # leaves log-probabilities as they are
        if logarithms.isnan().any():
            node = int(logarithms.isnan().any(dim=1).nonzero()[0])
            raise InputError(
                self.name, f"must return finite logits; got {output[node].tolist()} at node {node}."
            )
        return logarithms


def holds_probabilities(output: Tensor) -> bool:
    """Return whether the rows of an output are probabilities; otherwise they are logits."""
    sums = output.detach().sum(dim=1)
    return bool((output >= 0).all() and ((sums - 1).abs() < SUM_TOLERANCE).all())


@contextmanager
def evaluation_mode(module: torch.nn.Module, *, dropout: bool = False) -> Iterator[None]:
    """Switch off dropout, batch statistics and the caches of PyG's layers; restore all of them at the end.

    A layer such as ``GCNConv(cached=True)`` would otherwise use the edges of its first call for every graph.
    ``dropout`` leaves dropout on: everything is in training mode but layers with running statistics.
    """
    before = []
    for part in module.modules():
        state: dict[str, Any] = {"training": part.training}
        if isinstance(getattr(part, "cached", None), bool):
            caches = {key: value for key, value in vars(part).items() if key.startswith("_cached_")}
            state |= {"cached": part.cached, **caches}
            vars(part).update(dict.fromkeys(caches, None), cached=False)
        part.training = dropout and not hasattr(part, "running_mean")
        before.append((part, state))
    try:
        yield
    finally:
        for part, state in before:
            vars(part).update(state)


def label_columns(graph: Graph, n_columns: int, owner: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the classes of a module's output columns, and the column of every node's label (-1 for none).

    With as many columns as distinct labels, the columns are these in ascending order, as in
    :class:`~nodecopy.graph.Graph`; with more, column k is the label k. Without labels the classes are
    0, 1, 2, ...
    """
    if graph.labels is None:
        return np.arange(n_columns), np.full(graph.n_nodes, -1)
    classes, codes = class_codes(graph.labels)
    if len(classes) != n_columns:
        n_named = n_columns if graph.label_names is None else len(graph.label_names)
        if classes.max(initial=-1) >= n_columns or n_named < n_columns:
            raise InputError(
                owner,
                f"must have one output column per class: the graph has labels of {len(classes)} "
                f"classes; got {n_columns} columns. Number the labels as the module was trained on them.",
            )
        classes, codes = np.arange(n_columns), graph.labels
    names = classes if graph.label_names is None else np.array(graph.label_names)[classes]
    return names, codes


# Training of modules of users, one after another: seeds, the loop, and early stopping.


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
            owner,
            f"must build a network from the numbers of features and classes; called with "
            f"{n_features} and {n_classes}, it raised {type(error).__name__}: {error}",
        ) from error
    if not isinstance(module, torch.nn.Module):
        raise InputError(owner, f"must return a torch.nn.Module with {FORWARD}; got {show(module)}.")
    if module in _built:
        raise InputError(
            owner,
            f"must return a new module in each call; got the same {type(module).__name__} again. "
            "Build it inside the function.",
        )
    _built.add(module)
    return ModuleNetwork(module.to(device), owner)


def train_module(
    network: ModuleNetwork,
    x: Tensor,
    edges: Edges,
    targets: Targets,
    recipe: TrainingConfig,
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
        raise InputError(network.name, "must have parameters to train; got none.")
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
        raise InputError(
            f"forward of {network.name}", "must not change x in place; got another x afterwards."
        )
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

    def check(self, epoch: int, recipe: TrainingConfig) -> None:
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
            name,
            f"must return {n_classes} columns, one per class of the training nodes; got "
            f"{output.shape[1]}. Use the second argument of the factory as the number of columns.",
        )
