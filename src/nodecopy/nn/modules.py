"""Modules of users, such as those of PyTorch Geometric: one wrapper to evaluate, train and keep them.

:class:`ModuleNetwork` is a module as a function of graphs, :class:`ModuleEngine` trains modules of a factory,
and :class:`ModuleEnsemble` predicts again with their weights.
"""

from __future__ import annotations

import inspect
import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import RLock
from typing import Any, TypeAlias
from weakref import WeakSet

import numpy as np
import torch
from numpy.random import SeedSequence
from scipy import sparse
from torch import Tensor

from nodecopy._core.arrays import Array, Ints, Rows, Singles
from nodecopy._core.checks import check_finite, check_integer, check_numbers, check_vector, show
from nodecopy._core.messages import warn_about_data
from nodecopy._core.parallel import track
from nodecopy.errors import InputError
from nodecopy.features.scaling import FeatureScaling, WeightScaling
from nodecopy.graph import Graph, class_codes
from nodecopy.nn.engine import MAX_STEPS, Averages, Scalings, row_entropy
from nodecopy.nn.networks import TrainingConfig, check_features
from nodecopy.nn.training import (
    EPOCHS_BETWEEN_CHECKS,
    AdamStepper,
    LabelledNodes,
    Targets,
    check_device,
    choose_threads,
)

SUM_TOLERANCE = 1e-4  # how far the sum of a row may be from 1 for outputs that are taken for probabilities
MAX_NOISE = 1e-3  # how much probabilities may differ between two evaluations, by rounding on a GPU
FORWARD = "forward(x, edge_index) or forward(x, edge_index, edge_weight)"
OWNER = "factory of CustomNetwork"  # what is named in errors, unless another parameter took the factory
Edges = tuple[Tensor, Tensor | None]  # edges ``[2, n_edges]`` and, if there are any, their weights
Factory = Callable[[int, int], torch.nn.Module]  # of the numbers of features and classes
TrainedModule: TypeAlias = "tuple[ModuleNetwork, int]"  # a module, and the seed of its dropout masks
_generators = RLock()  # held while the global generators are seeded, so that threads do not share draws
_built: WeakSet[torch.nn.Module] = WeakSet()  # modules that factories have returned


class ModuleNetwork:
    """A module that predicts the classes of nodes, as a function of graphs."""

    def __init__(self, module: Any, owner: str) -> None:
        if not isinstance(module, torch.nn.Module):
            raise InputError(owner, f"must be a trained torch.nn.Module with {FORWARD}; got {show(module)}.")
        self.module, self.name = module, type(module).__name__
        parameter = inspect.signature(module.forward).parameters.get("edge_weight")
        # PyG models that set supports_edge_weight=False accept weights but ignore them.
        self.takes_weights = parameter is not None and bool(getattr(module, "supports_edge_weight", True))
        self.needs_weights = parameter is not None and parameter.default is parameter.empty
        tensors = [*module.parameters(), *module.buffers()]
        self.device = tensors[0].device if tensors else torch.device("cpu")
        self.dtype = next((part.dtype for part in tensors if part.is_floating_point()), torch.float32)

    def features(self, graph: Graph) -> Tensor:
        check_features(graph)
        return self.dense_tensor(graph.features)

    def dense_tensor(self, features: Any) -> Tensor:
        is_sparse = isinstance(features, sparse.csr_array)
        dense: Array = features.toarray() if is_sparse else np.array(features)
        if self.dtype != torch.float64:
            with np.errstate(over="ignore"):
                dense = dense.astype(np.float32)
            check_finite(dense, "features in single precision")
        return torch.from_numpy(dense).to(self.device, self.dtype)

    def edge_index(self, rows: Any, columns: Any) -> Tensor:
        return torch.from_numpy(np.stack([rows, columns]).astype(np.int64)).to(self.device)

    def edges(self, rows: Rows) -> Edges:
        weights = None
        if rows.weights is not None and self.takes_weights:
            weights = torch.tensor(rows.weights).to(self.device, self.dtype)
        return self.edge_index(rows.row_numbers, rows.indices), weights

    def warn_of_weights(self, *graphs: Rows) -> None:
        if not self.takes_weights and any(rows.weights is not None for rows in graphs):
            warn_about_data(f"the weights of the graph are not used: {self.name} takes no edge_weight.")

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Any:
        if edge_weight is None and self.needs_weights:
            edge_weight = x.new_ones(edge_index.shape[1])
        weights = {} if edge_weight is None else {"edge_weight": edge_weight}
        try:
            return self.module(x, edge_index, **weights)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            inputs = f"x ({x.dtype}, {list(x.shape)}) and edge_index ({edge_index.dtype}), as {FORWARD}"
            got = f"{type(error).__name__}: {error}. Wrap it in a module that converts them."
            raise InputError(self.name, f"must accept {inputs}; it raised {got}") from error

    def log_probabilities(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        with evaluation_mode(self.module):
            return self.check_output(self.forward(x, edge_index, edge_weight), len(x))

    def sample_probabilities(self, x: Tensor, edges: Edges, n_samples: int) -> list[Tensor]:
        """Return probabilities with ``n_samples`` dropout masks, or one without dropout for 0."""
        if not n_samples:
            return [self.log_probabilities(x, *edges).exp()]
        samples: list[Tensor] = []
        with evaluation_mode(self.module, dropout=True):
            for _ in range(n_samples):
                samples.append(self.check_output(self.forward(x, *edges), len(x)).exp())
                if len(samples) == 2 and torch.equal(*samples):
                    return samples[:1]
        return samples

    def predict(self, graph: Graph) -> Singles:
        self.warn_of_weights(graph.rows)
        with torch.no_grad():
            result = self.log_probabilities(self.features(graph), *self.edges(graph.rows)).exp()
        return np.asarray(result.cpu().numpy(), np.float32)

    def predict_first(self, graph: Graph) -> Singles:
        """Return class probabilities; warn if a second evaluation gives others."""
        first, second = self.predict(graph), self.predict(graph)
        if not np.allclose(first, second, atol=MAX_NOISE):
            question = "Does its forward call functional.dropout without training=self.training?"
            warn_about_data(f"predictions of {self.name} are random even in evaluation mode. {question}")
        return first

    def check_output(self, output: Any, n_nodes: int) -> Tensor:
        """Return the log-probabilities that a module returned in one of three forms."""
        is_tensor = isinstance(output, Tensor)
        if not is_tensor or output.ndim != 2 or len(output) != n_nodes or output.shape[1] < 2:
            got = f"shape {list(output.shape)}" if is_tensor else f"a {type(output).__name__}"
            allowed = f"one tensor with {n_nodes} rows, one per node, and at least two columns, for classes"
            raise InputError(self.name, f"must return {allowed}; got {got}. Wrap it to return the logits.")
        # The loss of a confident prediction is zero in single precision, and so is its gradient.
        output = output.float() if output.device.type == "mps" else output.double()
        if _holds_probabilities(output):
            return torch.log(output.clamp_min(torch.finfo(output.dtype).tiny))
        logarithms: Tensor = output.log_softmax(dim=1)  # leaves log-probabilities as they are
        if logarithms.isnan().any():
            node = int(logarithms.isnan().any(dim=1).nonzero()[0])
            got = f"{output[node].tolist()} at node {node}"
            raise InputError(self.name, f"must return finite logits; got {got}.")
        return logarithms


def _holds_probabilities(output: Tensor) -> bool:
    sums = output.detach().sum(dim=1)
    return bool((output >= 0).all() and ((sums - 1).abs() < SUM_TOLERANCE).all())


@contextmanager
def evaluation_mode(module: torch.nn.Module, *, dropout: bool = False) -> Iterator[None]:
    """Switch off dropout, batch statistics and the caches of PyG's layers; restore all of them at the end.

    A cached layer would use the edges of its first call for every graph. With ``dropout`` all layers are in
    training mode, except those with running statistics.
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


def label_columns(graph: Graph, n_columns: int, owner: str) -> tuple[Array, Ints]:
    """Return the classes of a module's output columns, and the column of every node's label (-1 for none).

    With as many columns as distinct labels, the columns are the labels in ascending order; with more, column
    k is label k. Without labels the classes are 0, 1, 2, ...
    """
    if graph.label_codes is None:
        return np.arange(n_columns), np.full(graph.n_nodes, -1)
    classes, codes = class_codes(graph.label_codes)
    if len(classes) != n_columns:
        n_named = n_columns if graph.label_names is None else len(graph.label_names)
        if classes.max(initial=-1) >= n_columns or n_named < n_columns:
            classes_of = f"one output column per class, of which the graph has {len(classes)}"
            raise InputError(owner, f"must have {classes_of}; got {n_columns} columns. Renumber the labels.")
        classes, codes = np.arange(n_columns), graph.label_codes
    names = classes if graph.label_names is None else np.array(graph.label_names)[classes]
    return names, codes


@contextmanager
def seed_global_generators(seed: int, device: torch.device) -> Iterator[None]:
    """Seed the global generators of torch, NumPy and Python inside the block, and restore them at its end."""
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
    """Return a new module of a factory on a device; errors name its ``owner``."""
    try:
        module: Any = factory(n_features, n_classes)
    except Exception as error:
        got = f"called with {n_features} and {n_classes}, it raised {type(error).__name__}: {error}"
        raise InputError(owner, f"must build a network from these numbers; {got}") from error
    if not isinstance(module, torch.nn.Module):
        raise InputError(owner, f"must return a torch.nn.Module with {FORWARD}; got {show(module)}.")
    if module in _built:
        name = type(module).__name__
        raise InputError(owner, f"must return a new module in each call; got the same {name} again.")
    _built.add(module)
    return ModuleNetwork(module.to(device), owner)


def train_module(
    network: ModuleNetwork,
    x: Tensor,
    edges: Edges,
    targets: Targets,
    config: TrainingConfig,
    n_classes: int,
    validation: tuple[Edges, Targets] | None = None,
) -> None:
    """Train a module by Adam, with the same decay for all parameters.

    It is evaluated once before, to check its output and initialise lazy layers.
    """
    module, last = network.module, torch.zeros(())
    with torch.no_grad(), evaluation_mode(module):
        output = network.forward(x, *edges)
        width = network.check_output(output, len(x)).shape[1]
    if width != n_classes:
        allowed = f"{n_classes} columns, the second argument of the factory"
        raise InputError(network.name, f"must return {allowed}; got {width}.")
    weights = [weight for weight in module.parameters() if weight.requires_grad]
    if not weights:
        raise InputError(network.name, "must have parameters to train; got none.")
    is_probability, rows = _holds_probabilities(output), torch.from_numpy(targets.rows[0]).to(x.device)

    def loss() -> Tensor:
        nonlocal last
        output = network.forward(x, *edges)
        if not isinstance(output, Tensor):  # only evaluation mode has been checked
            network.check_output(output, len(x))
        if not output.requires_grad:
            got = "one without gradient. Is it detached, or computed under torch.no_grad()?"
            raise InputError(f"the output of {network.name} must depend on its parameters; got {got}")
        logits = output[rows].float()
        if is_probability:
            logits = logits.clamp_min(torch.finfo(logits.dtype).tiny).log()
        value = targets.losses(logits[None])[0]
        last = value.detach()
        return value

    best_loss, best_epoch, best = math.inf, 0, dict[str, Any]()
    groups = [{"params": weights, "weight_decay": config.weight_decay}]
    stepper, version = AdamStepper(groups, config.learning_rate), x._version
    module.train()
    with torch.enable_grad(), choose_threads(x.numel(), x.device):
        for epoch in range(config.n_epochs):
            stepper.step(loss)
            is_checked = (epoch + 1) % EPOCHS_BETWEEN_CHECKS == 0
            if (is_checked or epoch == config.n_epochs - 1) and not bool(last.isfinite()):
                got = f"{float(last)} by epoch {epoch + 1}. Lower learning_rate, or scale the features."
                raise InputError(f"the training loss of {network.name} must stay finite; got {got}")
            if validation is None:
                continue
            value = _validation_loss(network, x, *validation)
            if value < best_loss:
                best_loss, best_epoch = value, epoch
                best = {name: part.clone() for name, part in module.state_dict().items()}
            if epoch - best_epoch > config.patience:
                break
    if x._version != version:
        raise InputError(f"forward of {network.name}", "must not change x in place; got another x.")
    module.zero_grad(set_to_none=True)
    if validation is not None:
        module.load_state_dict(best)


@torch.no_grad()
def _validation_loss(network: ModuleNetwork, x: Tensor, edges: Edges, targets: Targets) -> float:
    logarithms = network.log_probabilities(x, *edges)[torch.from_numpy(targets.rows[0]).to(x.device)]
    return float(targets.losses(logarithms[None])[0])


class ModuleEngine:
    """Modules of a factory, which are trained one after another, as by an ``Engine``."""

    def __init__(
        self,
        factory: Factory,
        owner: str,
        config: TrainingConfig,
        features: sparse.csr_array,
        n_classes: int,
        observed: Sequence[sparse.csr_array],
        device: torch.device,
    ) -> None:
        self.factory, self.owner, self.config, self.features = factory, owner, config, features
        self.n_classes, self.observed, self.device = n_classes, observed, device
        self._inputs: dict[torch.dtype, Tensor] = {}
        self._is_warned = False

    def train(
        self,
        adjacencies: Sequence[sparse.csr_array],
        targets: Sequence[LabelledNodes],
        seeds: Sequence[SeedSequence],
        *,
        validation: Sequence[LabelledNodes] | None = None,
    ) -> list[TrainedModule]:
        """Return modules trained on graphs; each depends on its seed alone."""
        per_graph, sizes = len(adjacencies) // len(self.observed), (self.features.shape[1], self.n_classes)
        trained = []
        for number in track(range(len(adjacencies)), "training network"):
            first, second = (int(word) >> 1 for word in seeds[number].generate_state(2, np.uint64))
            threads = choose_threads(math.prod(self.features.shape), self.device)
            with seed_global_generators(first, self.device), threads:
                network = build_network(self.factory, *sizes, self.device, self.owner)
                if not self._is_warned:
                    network.warn_of_weights(*(Rows.from_matrix(a, "adjacency") for a in self.observed))
                    self._is_warned = True
                x, edges = self._input(network), self._edges(network, adjacencies[number])
                labelled, watched = Targets([targets[number]], self.device), None
                if validation is not None:
                    observed = self._edges(network, self.observed[number // per_graph])
                    watched = observed, Targets([validation[number]], self.device)
                train_module(network, x, edges, labelled, self.config, self.n_classes, watched)
            trained.append((network, second))
        return trained

    def predict(self, networks: Sequence[TrainedModule], n_weight_samples: int = 0) -> list[Averages]:
        per_graph, results = len(networks) // len(self.observed), []
        for number, adjacency in enumerate(self.observed):
            part = networks[number * per_graph : (number + 1) * per_graph]
            x, edges = self._input(part[0][0]), self._edges(part[0][0], adjacency)
            results.append(_average_modules(part, x, edges, n_weight_samples))
        return results

    def keep(
        self, networks: Sequence[TrainedModule], models: slice, n_weight_samples: int, scalings: Scalings
    ) -> ModuleEnsemble:
        sizes, part, states = (self.features.shape[1], self.n_classes), networks[models], []
        for network, _ in part:
            state = network.module.state_dict()  # in a type that NumPy has
            for name, value in state.items():
                is_half = value.dtype in (torch.float16, torch.bfloat16)
                state[name] = (value.float() if is_half else value).cpu().numpy().copy()
            states.append(dict(state))
        seeds = np.array([seed for _, seed in part])
        return ModuleEnsemble(self.factory, sizes, tuple(states), seeds, n_weight_samples, *scalings)

    def _input(self, network: ModuleNetwork) -> Tensor:
        if network.dtype not in self._inputs:
            self._inputs[network.dtype] = network.dense_tensor(self.features)
        return self._inputs[network.dtype]

    def _edges(self, network: ModuleNetwork, adjacency: sparse.csr_array) -> Edges:
        return network.edges(Rows.from_matrix(adjacency, "adjacency"))


@dataclass(frozen=True, eq=False)
class ModuleEnsemble:
    """Trained modules that predict on graphs, as an ``Ensemble`` does."""

    factory: Factory
    sizes: tuple[int, int]
    weights: tuple[dict[str, Array], ...]
    seeds: Ints
    n_weight_samples: int
    feature_scaling: FeatureScaling
    weight_scaling: WeightScaling

    def __post_init__(self) -> None:
        """Raise an error unless every module has a seed and numbers; torch compares the shapes."""
        check_integer(self.n_weight_samples, "n_weight_samples", low=0, high=MAX_STEPS)
        check_vector(self.seeds, "seeds", length=len(self.weights), per="module")
        n_features, n_classes = self.sizes
        largest = max(sum(part.size for part in state.values()) for state in self.weights)
        for size in (n_features, n_classes):
            check_integer(size, "sizes", low=0, high=largest)
        for name, part in (item for state in self.weights for item in state.items()):
            check_numbers(part, name)

    @property
    def n_classes(self) -> int:
        return self.sizes[1]

    def predict(self, graph: Graph, device: str) -> Averages:
        check_features(graph, self.sizes[0])
        networks = self.build_modules(check_device(device))
        network = networks[0][0]
        x = network.dense_tensor(self.feature_scaling.apply(graph.features))
        rows = Rows.from_matrix(self.weight_scaling.apply(graph.adjacency), "adjacency")
        return _average_modules(networks, x, network.edges(rows), self.n_weight_samples)

    def build_modules(self, device: torch.device) -> list[TrainedModule]:
        modules = []
        for state, seed in zip(self.weights, self.seeds.tolist(), strict=True):
            with seed_global_generators(seed, device):
                network = build_network(self.factory, *self.sizes, device, OWNER)
            try:
                network.module.load_state_dict({name: torch.tensor(value) for name, value in state.items()})
            except RuntimeError as error:
                first = " ".join(str(error).split("\n\t")[:2])  # one difference is enough
                raise InputError(OWNER, f"must build the networks that were trained. {first}") from error
            modules.append((network, seed))
        return modules


@torch.no_grad()
def _average_modules(
    networks: Iterable[TrainedModule], x: Tensor, edges: Edges, n_weight_samples: int
) -> Averages:
    means, entropies = [], []
    for network, seed in networks:
        with seed_global_generators(seed, x.device), choose_threads(x.numel(), x.device):
            samples = torch.stack(network.sample_probabilities(x, edges, n_weight_samples))
        means.append(samples.mean(dim=0))
        entropies.append(row_entropy(samples).mean(dim=0))
    mean, mean_entropy = torch.stack(means).mean(dim=0), torch.stack(entropies).mean(dim=0)
    return mean.float().cpu().numpy(), mean_entropy.float().cpu().numpy()
