"""A user's own trained module as a classifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.formats import PathLike
from nodecopy._core.notices import mute_data_warnings
from nodecopy._core.random import Rng
from nodecopy._core.validation import check_vector
from nodecopy.classify.base import Classifier
from nodecopy.classify.diagnostics import warn_if_not_learned
from nodecopy.classify.ensemble import Prediction
from nodecopy.classify.trial import Trial
from nodecopy.conversion import convert_graph, training_nodes
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.nn.module_networks import ModuleNetwork, label_columns


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
                f"classes of ModuleClassifier must hold every class of the graph; got no {missing[0]!r}."
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
                "train must be given to fit, or graph to score: it is not known which nodes the module was "
                "trained on."
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
                f"classes of ModuleClassifier must be {n_columns} different names, one per output column; "
                f"got {names.tolist()}."
            )
        return names
