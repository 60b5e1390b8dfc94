"""A network of the user, built by a factory and trained as the package's own networks are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.random import SeedSequence
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from torch import Tensor

from nodecopy._core.arrays import Rows
from nodecopy._core.checks import check_finite, check_integer, check_numbers, check_sequence, check_vector
from nodecopy._core.files import PathLike
from nodecopy._core.messages import log_decision, mute_data_warnings, warn_about_data
from nodecopy._core.parallel import track
from nodecopy._core.random import Rng
from nodecopy.classify.base import Classifier, ClassifierSeeds, Trial, warn_if_not_learned
from nodecopy.classify.batch import TrialBatch, fit_by_classes
from nodecopy.classify.ensemble import MAX_STEPS, Prediction, check_scalings, entropy
from nodecopy.classify.networks import ANY_DATA, change_recipe
from nodecopy.errors import InputError
from nodecopy.features.scaling import FeatureScaling, WeightScaling
from nodecopy.graph import Graph
from nodecopy.io import convert_graph, training_nodes
from nodecopy.nn.modules import (
    WEIGHTS_UNUSED,
    Edges,
    Factory,
    ModuleEarlyStopping,
    ModuleNetwork,
    build_network,
    label_columns,
    seed_global_generators,
    train_module,
)
from nodecopy.nn.networks import KIPF, TrainingConfig, check_features
from nodecopy.nn.training import check_device, choose_threads

# Modules of users that are trained on graphs of trials, and kept to predict again.


OWNER = "factory of CustomNetwork"
"""What is named in errors, unless another parameter took the factory."""


class TrainedModule(NamedTuple):
    """A trained module, and the seed of its dropout masks in predictions."""

    network: ModuleNetwork
    seed: int


class ModuleBatch(TrialBatch):
    """Trials for which modules of a factory are trained, one after another.

    Parameters
    ----------
    trials, recipe, device, keep_networks
        As in :class:`TrialBatch`; of the recipe, what concerns the data and the training.
    factory
        A function of the numbers of features and classes that returns a new module.
    owner
        The parameter that took the factory, for errors.
    """

    def __init__(
        self,
        trials: Sequence[Trial],
        recipe: TrainingConfig,
        device: str,
        factory: Factory,
        *,
        owner: str = OWNER,
        keep_networks: bool = False,
    ) -> None:
        super().__init__(trials, recipe, device, keep_networks=keep_networks)
        self.factory, self.owner = factory, owner
        self._inputs: dict[torch.dtype, Tensor] = {}
        self._is_warned, self._n_entries = False, math.prod(self.features.shape)
        if any(trial.graph.directed for trial in trials):
            log_decision(
                "directed edges: edge_index is that of to_pyg, so that layers of PyG read the in-neighbours "
                "of a node, where GCN and APPNP of nodecopy read its out-neighbours. Give the graph with its "
                "edges reversed to read those."
            )
        self._observed_rows = {id(part): Rows.from_matrix(part, "adjacency") for part in self.observed}

    def train(
        self, adjacencies: Sequence[sparse.csr_array], seeds: Sequence[SeedSequence]
    ) -> list[TrainedModule]:
        per_trial = len(adjacencies) // len(self.trials)
        return [
            self._train_module(number // per_trial, adjacencies[number], seeds[number])
            for number in track(range(len(adjacencies)), "training network")
        ]

    def _train_module(self, number: int, adjacency: sparse.csr_array, seed: SeedSequence) -> TrainedModule:
        """Train a module for the trial of a number; it depends on the seed alone."""
        trials = [self.trials[number]]
        first, second = (int(word) >> 1 for word in seed.generate_state(2, np.uint64))
        with seed_global_generators(first, self.device), choose_threads(self._n_entries, self.device):
            network = build_network(
                self.factory, self.features.shape[1], self.n_classes, self.device, self.owner
            )
            self._warn_of_weights(network)
            x, early_stopping = self._input(network), None
            if self.recipe.patience:
                early_stopping = ModuleEarlyStopping(
                    x, self._observed_edges(network, number), self.validation(trials), self.recipe.patience
                )
            rows = self._observed_rows.get(id(adjacency)) or Rows.from_matrix(adjacency, "adjacency")
            train_module(
                network,
                x,
                network.edges_of_rows(rows),
                self.targets(trials),
                self.recipe,
                n_classes=self.n_classes,
                early_stopping=early_stopping,
            )
        return TrainedModule(network, second)

    def predict(self, networks: Sequence[TrainedModule], n_weight_samples: int = 0) -> list[Prediction]:
        per_trial, predictions = len(networks) // len(self.trials), []
        for number, scaling in enumerate(self.weight_scalings):
            part = networks[number * per_trial : (number + 1) * per_trial]
            network = part[0].network
            edges = self._observed_edges(network, number)
            prediction = average_modules(part, self._input(network), edges, n_weight_samples)
            if self.keep_networks:
                ensemble = ModuleEnsemble(
                    self.factory,
                    (self.features.shape[1], self.n_classes),
                    tuple(_copy_state(trained.network) for trained in part),
                    np.array([trained.seed for trained in part]),
                    n_weight_samples,
                    self.feature_scaling,
                    scaling,
                )
                prediction = replace(prediction, networks=ensemble)
            predictions.append(prediction)
        return predictions

    def _input(self, network: ModuleNetwork) -> Tensor:
        """Return the scaled features, which modules of one data type share."""
        if network.dtype not in self._inputs:
            self._inputs[network.dtype] = network.dense_tensor(self.features)
        return self._inputs[network.dtype]

    def _warn_of_weights(self, network: ModuleNetwork) -> None:
        """Warn once if edges have weights that the module does not take."""
        is_weighted = any(rows.weights is not None for rows in self._observed_rows.values())
        if is_weighted and not network.takes_weights and not self._is_warned:
            self._is_warned = True
            warn_about_data(WEIGHTS_UNUSED.format(network.name))

    def _observed_edges(self, network: ModuleNetwork, number: int) -> Edges:
        return network.edges_of_rows(self._observed_rows[id(self.observed[number])])


@dataclass(frozen=True, eq=False)
class ModuleEnsemble:
    """The trained modules behind a prediction: all that is needed to predict again.

    Parameters
    ----------
    factory
        The function that builds the modules.
    sizes
        The numbers of features and classes that it takes.
    weights
        The state of each module: parameters and buffers by name.
    seeds
        The seed of each module's dropout masks.
    n_weight_samples
        Dropout samples of each module; 0 switches dropout off.
    feature_scaling, weight_scaling
        How features and edge weights were scaled for training, and are for predictions.
    """

    factory: Factory
    sizes: tuple[int, int]
    weights: tuple[dict[str, NDArray[Any]], ...]
    seeds: NDArray[np.int64]
    n_weight_samples: int
    feature_scaling: FeatureScaling
    weight_scaling: WeightScaling

    def check(self, n_classes: int) -> None:
        """Raise an error unless every module has a seed and finite numbers; torch compares the shapes."""
        check_scalings(self.feature_scaling, self.weight_scaling)
        check_integer(self.n_weight_samples, "n_weight_samples", low=0, high=MAX_STEPS)
        states = check_sequence(self.weights, "weights", "the states of modules")
        seeds = check_vector(self.seeds, "seeds", length=len(states), per="module")
        sizes = check_sequence(self.sizes, "sizes", "the numbers of features and classes")
        if not states or seeds.dtype.kind not in "iu" or len(sizes) != 2 or sizes[1] != n_classes:
            raise InputError("networks", "must have states, seeds and the numbers of features and classes.")
        check_integer(sizes[0], "sizes", low=0, high=max(sum(w.size for w in s.values()) for s in states))
        for name, array in (item for state in states for item in state.items()):
            if not check_numbers(array, name).dtype.isnative:
                raise InputError(name, f"must be in the byte order of this machine; got {array.dtype}.")
            check_finite(array, name)

    def predict(self, graph: Graph, device: str) -> Prediction:
        """Return the prediction on a graph, with the modules' own dropout masks."""
        check_features(graph)
        given: Any = graph.features
        if given.shape[1] != self.sizes[0]:
            raise InputError(
                f"features of the graph must have {self.sizes[0]} columns, as in fit; got {given.shape[1]}."
            )
        networks = self.build_modules(check_device(device))
        network = networks[0].network
        x = network.dense_tensor(self.feature_scaling.apply(given))
        rows = Rows.from_matrix(self.weight_scaling.apply(graph.adjacency), "adjacency")
        return average_modules(networks, x, network.edges_of_rows(rows), self.n_weight_samples)

    def build_modules(self, device: torch.device) -> list[TrainedModule]:
        """Return modules with these weights, to predict with."""
        modules = []
        for state, seed in zip(self.weights, self.seeds.tolist(), strict=True):
            with seed_global_generators(seed, device):
                network = build_network(self.factory, *self.sizes, device, OWNER)
            try:
                network.module.load_state_dict({name: torch.tensor(value) for name, value in state.items()})
            except RuntimeError as error:
                first = " ".join(str(error).split("\n\t")[:2])  # one difference is enough
                raise InputError(OWNER, f"must build the networks that were trained. {first}") from error
            modules.append(TrainedModule(network, seed))
        return modules


@torch.no_grad()
def average_modules(
    networks: Iterable[TrainedModule], x: Tensor, edges: Edges, n_weight_samples: int
) -> Prediction:
    """Return the mean prediction of modules on a graph, over all of them and their dropout samples."""
    means, entropies = [], []
    for network, seed in networks:
        with seed_global_generators(seed, x.device), choose_threads(x.numel(), x.device):
            samples = torch.stack(network.sample_probabilities(x, edges, n_weight_samples))
        means.append(samples.mean(dim=0))
        entropies.append(entropy(samples).mean(dim=0))
    mean, mean_entropy = torch.stack(means).mean(dim=0), torch.stack(entropies).mean(dim=0)
    return Prediction(mean.float().cpu().numpy(), mean_entropy.float().cpu().numpy())


def _copy_state(network: ModuleNetwork) -> dict[str, NDArray[Any]]:
    """Return parameters and buffers as arrays; NumPy has no type for those in half precision."""
    state = network.module.state_dict()
    is_half = {torch.float16, torch.bfloat16}
    return {
        name: (value.float() if value.dtype in is_half else value).cpu().numpy().copy()
        for name, value in state.items()
    }


EXAMPLE = "lambda n_features, n_classes: torch_geometric.nn.GAT(n_features, 16, 2, n_classes)"


@dataclass(eq=False, repr=False)
class CustomNetwork(Classifier):
    """Classify nodes by a network of your own, such as a model of PyTorch Geometric.

    It is the base of :class:`BayesianGCN` and :class:`SelfTraining` that takes any network; those wrap a bare
    factory in it. Networks are trained one after another, in training mode, by Adam and the cross-entropy of
    the training nodes, and predict in evaluation mode.

    Parameters
    ----------
    factory
        A function of the numbers of features and classes, or a class with such a constructor, that returns a
        new ``torch.nn.Module`` with ``forward(x, edge_index)`` or ``forward(x, edge_index, edge_weight)``. It
        returns logits, log-probabilities or probabilities, one row per node and one column per class. ``x``
        is the scaled features as a dense tensor. ``edge_index`` holds both directions of undirected edges.
        Of directed edges it holds sources and targets, as :func:`nodecopy.to_pyg` returns them: layers of PyG
        then read the in-neighbours of a node, where :class:`GCN` and :class:`APPNP` read its out-neighbours,
        and ``fit`` logs this. ``edge_weight`` is given for weighted graphs only, and is 1 for other graphs if
        it has no default.
    n_epochs
        Epochs of training, at most.
    learning_rate, weight_decay
        Of Adam; the decay applies to all parameters.
    patience
        Epochs without a lower validation loss before training stops and takes back the best weights. 0
        trains for ``n_epochs`` and takes the last weights, without validation nodes.
    features, weights
        Scaling of features and edge weights, as in :class:`NetworkClassifier`.
    device
        ``"cpu"`` or ``"cuda"``.

    Notes
    -----
    Weights and dropout masks are drawn from torch's global generators, which are seeded for each network and
    restored afterwards. On a GPU the sums of PyG's layers have no fixed order, so results differ by rounding.

    A file of :meth:`save` holds the trained weights and the name of the factory, not its code:
    ``nodecopy.load(path, classes=[factory])`` takes the function again.

    Examples
    --------
    >>> from torch_geometric.nn import GraphSAGE
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import BayesianGCN, CustomNetwork
    >>> def build(n_features, n_classes):
    ...     return GraphSAGE(n_features, 16, 2, n_classes, dropout=0.5)
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> CustomNetwork(build, n_epochs=50).fit(digits, range(100), rng=0).score() > 0.8
    True

    The same network in an ensemble over sampled graphs:

    >>> ensemble = BayesianGCN(n_graphs=3, base=CustomNetwork(build, n_epochs=50))
    >>> ensemble.fit(digits, range(100), rng=0).score() > 0.8
    True
    """

    factory: Factory
    _: KW_ONLY
    n_epochs: int = 200
    learning_rate: float = 0.01
    weight_decay: float = 5e-4
    patience: int = 0
    features: str = "auto"
    weights: str = "auto"
    device: str = "cpu"

    owner = OWNER  # without an annotation, so that it is no parameter
    """The parameter that took the factory, for errors."""

    @property
    def uses_validation(self) -> bool:
        return self.patience > 0

    def build_batch(self, trials: Sequence[Trial], *, keep_networks: bool = False) -> ModuleBatch:
        """Return trials for which networks can be trained."""
        check_factory(self.factory, self.owner)
        recipe = change_recipe(replace(KIPF, **ANY_DATA), self)
        return ModuleBatch(
            trials, recipe, self.device, self.factory, owner=self.owner, keep_networks=keep_networks
        )

    @fit_by_classes
    def fit_trials(self, trials: Sequence[Trial], *, keep_networks: bool = False) -> list[Prediction]:
        batch = self.build_batch(trials, keep_networks=keep_networks)
        return batch.predict(batch.train(batch.observed, batch.seeds(ClassifierSeeds.NETWORKS)))


def wrap_factory(base: Any, device: str, owner: str) -> Any:
    """Return a bare factory as a :class:`CustomNetwork`, and anything that is not callable as it is."""
    if not callable(base):
        return base
    check_factory(base, f"base of {owner}")
    network = CustomNetwork(base, device=device)
    network.owner = f"base of {owner}"
    return network


def check_factory(factory: Any, name: str) -> None:
    """Raise an error for what is no factory of networks."""
    is_classifier = isinstance(factory, type) and issubclass(factory, Classifier)
    if callable(factory) and not isinstance(factory, torch.nn.Module) and not is_classifier:
        return
    got = f"a {type(factory).__name__}, which is one module" if callable(factory) else repr(factory)
    if is_classifier:
        got = f"the class {factory.__name__}: use {factory.__name__}()"
    raise InputError(
        name,
        f"must be a function of the numbers of features and classes that returns a new network, such "
        f"as {EXAMPLE}; got {got}.",
    )


# A user's own trained module as a classifier.


@dataclass(eq=False, repr=False)
class ModuleClassifier(Classifier):
    """A module that was trained elsewhere, such as a model of PyTorch Geometric, as a classifier.

    ``fit`` trains nothing: it predicts on the observed graph, and ``train`` only says which nodes the module
    was trained on, so that :meth:`score` leaves them out. The module is evaluated on its own device, without
    dropout and without the caches of PyG's layers; its state is restored after every call.

    Parameters
    ----------
    module
        A trained ``torch.nn.Module`` with ``forward(x, edge_index)`` or
        ``forward(x, edge_index, edge_weight)``, which returns logits, log-probabilities or probabilities, one
        row per node and one column per class. ``x`` is the graph's features, dense and as they are.
        ``edge_index`` holds both directions of undirected edges; ``edge_weight`` is given for weighted graphs
        only.
    classes
        Names of the output columns, as the graph names its labels. By default the distinct labels of the
        graph in ascending order; if there are more columns than those, column k is the label k.

    Examples
    --------
    >>> import torch
    >>> from torch_geometric.nn import GCN
    >>> from nodecopy import datasets, to_pyg
    >>> from nodecopy.classify import ModuleClassifier
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> data, _ = to_pyg(digits), torch.manual_seed(0)
    >>> network = GCN(data.num_features, 16, 2, out_channels=10)
    >>> steps = torch.optim.Adam(network.parameters(), lr=0.01)
    >>> for _ in range(100):
    ...     steps.zero_grad()
    ...     logits = network(data.x, data.edge_index)
    ...     torch.nn.functional.cross_entropy(logits[:100], data.y[:100]).backward()
    ...     steps.step()
    >>> ModuleClassifier(network).fit(digits, range(100)).score() > 0.8
    True
    """

    module: Any
    classes: ArrayLike | None = None

    def fit(
        self,
        graph: Graph,
        train: ArrayLike | None = None,
        *,
        validation: ArrayLike | None = None,
        rng: Rng = None,
    ) -> Self:
        """Predict on the observed graph; nothing is trained.

        Parameters
        ----------
        graph
            The observed graph. It needs labels only if ``train`` or ``validation`` is given.
        train, validation
            Nodes on which the module was trained and chosen: positions, a boolean mask or node ids. They are
            left out by :meth:`score`. By default ``train`` is the ``train_mask`` of a ``Data`` with labels.
        rng
            Not used.
        """
        train_mask = training_nodes(graph, train)
        graph = convert_graph(graph, f"graph of {type(self).__name__}")
        train = train_mask if graph.labels is not None else train
        vars(self).pop("trial_", None)
        if train is not None or validation is not None:
            with mute_data_warnings():  # the module may know classes that no node of train has
                self.trial_ = Trial(graph, train, validation, rng)
        network = self.build_network()
        n_features = network.features(graph).shape[1]
        probabilities = network.predict_first(graph)
        self.classes_ = self._check_classes(graph, probabilities.shape[1])
        self.prediction_ = Prediction.from_array(probabilities, graph, network.name)
        self.node_ids_, self.n_features_ = graph.node_ids, n_features
        self.feature_encoder_, self.temperature_ = graph.feature_encoder, 1.0
        warn_if_not_learned(self.prediction_, self.classes_.tolist())
        return self

    def predict_trial(self, trial: Trial) -> NDArray[np.float32]:
        """Return the module's predictions for the classes of a trial; nothing is trained."""
        probabilities = self.build_network().predict(trial.graph)
        columns = self._check_classes(trial.graph, probabilities.shape[1]).tolist()
        names = trial.graph.label_names
        classes = (trial.classes if names is None else np.array(names)[trial.classes]).tolist()
        if missing := [name for name in classes if name not in columns]:
            raise InputError(
                "classes of ModuleClassifier", f"must hold every class of the graph; got no {missing[0]!r}."
            )
        chosen = probabilities[:, [columns.index(name) for name in classes]]
        total = np.maximum(chosen.sum(axis=1, keepdims=True), np.finfo(np.float32).tiny)
        return chosen / total if len(classes) < len(columns) else chosen

    def predict_graph(self, graph: Graph) -> NDArray[np.float32]:
        """Return the module's predictions on a graph with as many features."""
        self.check_fitted()
        network = self.build_network()
        if graph.features is not None and graph.features.shape[1] != self.n_features_:
            raise InputError(
                f"features of the graph must have {self.n_features_} columns, as in fit; got "
                f"{graph.features.shape[1]}."
            )
        return network.predict(graph)

    def score(self, nodes: ArrayLike | None = None, *, graph: Graph | None = None) -> float:
        self.check_fitted()
        if graph is None and not hasattr(self, "trial_"):
            raise InputError(
                "train",
                "must be given to fit, or graph to score: it is not known which nodes the module was "
                "trained on.",
            )
        return super().score(nodes, graph=graph)

    def save(self, path: PathLike) -> None:
        """Raise an error: a file of nodecopy does not hold the code of a module."""
        self.check_fitted()
        raise InputError(
            "module of ModuleClassifier cannot be saved by nodecopy: save it by torch.save, and its "
            "predictions by to_pandas()."
        )

    def build_network(self) -> ModuleNetwork:
        """Return the checked module as a function of graphs."""
        return ModuleNetwork(self.module, f"module of {type(self).__name__}")

    def _check_classes(self, graph: Graph, n_columns: int) -> NDArray[Any]:
        """Return the names of the output columns."""
        if self.classes is None:
            return label_columns(graph, n_columns, type(self.module).__name__)[0]
        names = check_vector(self.classes, "classes of ModuleClassifier")
        if len(names) != n_columns or len(np.unique(names)) != n_columns:
            raise InputError(
                "classes of ModuleClassifier",
                f"must be {n_columns} different names, one per output column; got {names.tolist()}.",
            )
        return names
