"""Networks of users as classifiers: built by a factory and trained here, or trained elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike

from nodecopy._core.arrays import Array, Singles
from nodecopy._core.checks import check_vector
from nodecopy._core.files import PathLike
from nodecopy._core.imports import from_name
from nodecopy._core.messages import log_decision, mute_data_warnings
from nodecopy._core.random import Rng
from nodecopy.classify import CLASSIFIERS
from nodecopy.classify.base import Classifier, Prediction, Trial
from nodecopy.classify.networks import ANY_DATA, BatchClassifier, TrainingBatch
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.io import convert_graph, training_nodes
from nodecopy.nn.modules import OWNER, Factory, ModuleEngine, ModuleNetwork, label_columns
from nodecopy.nn.networks import KIPF, check_features

EXAMPLE = "lambda n_features, n_classes: torch_geometric.nn.GAT(n_features, 16, 2, n_classes)"


@dataclass(eq=False, repr=False)
class CustomNetwork(BatchClassifier):
    """Classify nodes by a network of your own, such as a model of PyTorch Geometric.

    It may be the base of :class:`BayesianGCN` and :class:`SelfTraining`, which also take a bare factory.
    Networks are trained by Adam on the cross-entropy of the training nodes.

    Parameters
    ----------
    factory
        A function of the numbers of features and classes that returns a new ``torch.nn.Module`` as in
        :class:`ModuleClassifier`, for scaled features. Layers of PyG read the in-neighbours of directed
        edges, where :class:`GCN` and :class:`APPNP` read out-neighbours.
    n_epochs, learning_rate, patience, features, weights, device
        As in :class:`NetworkClassifier`.
    weight_decay
        Of all parameters.

    Notes
    -----
    Torch's global generators are seeded for each network and restored afterwards. On a GPU, sums in PyG's
    layers have no fixed order, so results differ by rounding.

    A file holds the trained weights, not the factory: ``nodecopy.load(path, classes=[factory])`` takes it.

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

    owner = OWNER  # the parameter that took the factory, for errors; no parameter without an annotation

    @property
    def uses_validation(self) -> bool:
        return self.patience > 0

    def build_batch(self, trials: Sequence[Trial], *, keep_networks: bool = False) -> TrainingBatch:
        check_factory(self.factory, self.owner)
        config = self.change_config(replace(KIPF, **ANY_DATA))
        options: Any = {"create_engine": partial(ModuleEngine, self.factory, self.owner)}
        batch = TrainingBatch(trials, config, self.device, keep_networks=keep_networks, **options)
        if any(trial.graph.directed for trial in trials):
            order = "read in-neighbours, where GCN and APPNP of nodecopy read out-neighbours"
            log_decision(f"directed edges: edge_index is that of to_pyg, so that layers of PyG {order}.")
        return batch


def wrap_factory(base: Any, device: str, owner: str) -> Any:
    """Return the classifier of a name, a bare factory as a :class:`CustomNetwork`, and others as they are."""
    if not callable(base):
        return from_name(base, CLASSIFIERS, f"base of {owner}", device)
    network = CustomNetwork(base, device=device)
    network.owner = f"base of {owner}"
    check_factory(base, network.owner)
    return network


def check_factory(factory: Any, name: str) -> None:
    """Raise an error for what is no factory of networks."""
    is_classifier = isinstance(factory, type) and issubclass(factory, Classifier)
    if callable(factory) and not isinstance(factory, torch.nn.Module) and not is_classifier:
        return
    got = f"a {type(factory).__name__}, which is one module" if callable(factory) else repr(factory)
    if is_classifier:
        got = f"the class {factory.__name__}: use {factory.__name__}()"
    allowed = "a function of the numbers of features and classes that returns a new network, such as"
    raise InputError(name, f"must be {allowed} {EXAMPLE}; got {got}.")


@dataclass(eq=False, repr=False)
class ModuleClassifier(Classifier):
    """A module that was trained elsewhere, such as a model of PyTorch Geometric, as a classifier.

    ``fit`` trains nothing: it predicts on the observed graph, and :meth:`score` leaves out the nodes of
    ``train``. The module is evaluated on its own device, without dropout and without the caches of PyG's
    layers; its state is restored after every call.

    Parameters
    ----------
    module
        A trained ``torch.nn.Module`` with ``forward(x, edge_index)`` or
        ``forward(x, edge_index, edge_weight)``, which returns logits, log-probabilities or probabilities, one
        row per node. ``x`` is the dense features, and ``edge_index`` as in :func:`nodecopy.to_pyg`.
        ``edge_weight`` is given for weighted graphs only, or as 1 if it has no default.
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
        """Predict on the observed graph; nothing is trained, and nothing is drawn from ``rng``.

        Labels are needed only if ``train`` or ``validation``, which :meth:`score` leaves out, is given. By
        default ``train`` is the ``train_mask`` of a ``Data`` with labels.
        """
        train_mask = training_nodes(graph, train)
        graph = convert_graph(graph, f"graph of {type(self).__name__}")
        train = train_mask if graph.label_codes is not None else train
        vars(self).pop("trial_", None)
        if train is not None or validation is not None:
            with mute_data_warnings():  # the module may know classes that no node of train has
                self.trial_ = Trial(graph, train, validation, rng)
        network = self.build_network()
        self.n_features_ = network.features(graph).shape[1]
        probabilities = network.predict_first(graph)
        classes = self._check_classes(graph, probabilities.shape[1])
        self._set_fitted(graph, Prediction.from_array(probabilities, graph, network.name), classes)
        return self

    def predict_trial(self, trial: Trial) -> Singles:
        probabilities = self.build_network().predict(trial.graph)
        columns = self._check_classes(trial.graph, probabilities.shape[1]).tolist()
        names = trial.graph.label_names
        classes = (trial.classes if names is None else np.array(names)[trial.classes]).tolist()
        if missing := [name for name in classes if name not in columns]:
            message = f"must hold every class of the graph; got no {missing[0]!r}."
            raise InputError("classes of ModuleClassifier", message)
        chosen = probabilities[:, [columns.index(name) for name in classes]]
        total = np.maximum(chosen.sum(axis=1, keepdims=True), np.finfo(np.float32).tiny)
        return chosen / total if len(classes) < len(columns) else chosen

    def predict_graph(self, graph: Graph) -> Singles:
        self.check_fitted()
        check_features(graph, self.n_features_)
        return self.build_network().predict(graph)

    def score(self, nodes: ArrayLike | None = None, *, graph: Graph | None = None) -> float:
        self.check_fitted()
        if graph is None and not hasattr(self, "trial_"):
            raise InputError("train", "must be given to fit, or graph to score.")
        return super().score(nodes, graph=graph)

    def save(self, path: PathLike) -> None:
        """Raise an error: a file of nodecopy does not hold the code of a module."""
        self.check_fitted()
        raise InputError("module of ModuleClassifier cannot be saved by nodecopy: save it by torch.save.")

    def build_network(self) -> ModuleNetwork:
        return ModuleNetwork(self.module, f"module of {type(self).__name__}")

    def _check_classes(self, graph: Graph, n_columns: int) -> Array:
        if self.classes is None:
            return label_columns(graph, n_columns, type(self.module).__name__)[0]
        names = check_vector(self.classes, "classes of ModuleClassifier")
        if len(names) != n_columns or len(np.unique(names)) != n_columns:
            allowed = f"{n_columns} different names, one per output column"
            raise InputError("classes of ModuleClassifier", f"must be {allowed}; got {names.tolist()}.")
        return names
