"""The surrogate models that an attacker trains."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from nodecopy._core.validation import check_choice, check_unique
from nodecopy.attacks.base import Nodes, check_labels
from nodecopy.errors import InputError
from nodecopy.features.scaling import FEATURE_SCALINGS, FeatureScaling
from nodecopy.graph import UNLABELLED, Graph, class_codes, training_classes
from nodecopy.nn.devices import check_device
from nodecopy.nn.networks import KIPF, Networks, Recipe
from nodecopy.nn.stack import SparseStack, normalise_adjacency
from nodecopy.nn.training import Targets, train

PURPOSE = "for the attacker's surrogate"
"""What features are scaled for, in messages."""
LINEAR = replace(KIPF, propagation="none", activation="none", features="none", dropout=0.0)
"""Nettack's surrogate: the second power of the graph convolution, then two linear layers."""


@dataclass(frozen=True, eq=False)
class SurrogateLabels:
    """The training nodes of a surrogate and the classes of all nodes.

    Parameters
    ----------
    codes
        Class number of every node, -1 where it has no label.
    names
        Names of the classes.
    train
        Nodes on which the surrogate is trained.
    """

    codes: NDArray[np.int64]
    names: tuple[str, ...]
    train: Nodes

    @property
    def n_classes(self) -> int:
        """Return the number of classes."""
        return len(self.names)

    @classmethod
    def from_graph(
        cls, graph: Graph, targets: Nodes, train: ArrayLike | None, attack: str
    ) -> SurrogateLabels:
        """Check a graph and the training nodes; errors name the ``attack``."""
        labels = check_labels(graph, targets, attack)
        if graph.features is None or not graph.features.shape[1]:
            raise InputError(f"graph must have features for {attack}; this one has none.")
        n_labels = len(class_codes(labels)[0])
        if n_labels < 2:
            raise InputError(f"graph must have labels of at least two classes for {attack}; got {n_labels}.")
        labelled = np.flatnonzero(labels != UNLABELLED)
        if train is None:
            nodes = np.setdiff1d(labelled, targets)
        else:
            nodes = graph.positions(train, "train")
            check_unique(nodes, "train")
        unlabelled = nodes[labels[nodes] == UNLABELLED]
        if len(unlabelled):
            node_id = graph.node_ids[unlabelled].tolist()[0]
            raise InputError(
                f"train must hold labelled nodes; got the node with id {node_id!r}, which has no label."
            )
        classes, codes = training_classes(graph, labelled if train is None else nodes)
        names = classes if graph.label_names is None else np.array(graph.label_names)[classes]
        if len(left_out := targets[codes[targets] == UNLABELLED]):
            node_id = graph.node_ids[left_out].tolist()[0]
            raise InputError(
                f"targets must be of classes that some training node has, for {attack}; got the node with id "
                f"{node_id!r}. Add a node of its class to train."
            )
        return cls(codes, tuple(map(str, names)), nodes)


def linear_weights(
    graph: Graph, features: sparse.csr_array, labels: SurrogateLabels, seed: SeedSequence
) -> NDArray[np.float64]:
    """Train the surrogate Â²XW on the clean graph and return W, ``[n_features, n_classes]``.

    ``features`` is X, in single precision. Only the training rows of Â²X are needed, and two linear layers
    are one.
    """
    matrix = sparse.csr_array(normalise_adjacency(graph.adjacency))
    inputs = sparse.csr_array(matrix[labels.train] @ (matrix @ features))
    rows = np.arange(len(labels.train))
    first, second = _train_weights(LINEAR, inputs, None, rows, labels, seed)
    return np.asarray(first @ second)


def gcn_weights(
    graph: Graph, features: sparse.csr_array, labels: SurrogateLabels, seed: SeedSequence, device: str
) -> list[NDArray[np.float64]]:
    """Train a GCN with the settings of Kipf and Welling on the clean graph; return both layers."""
    matrix = normalise_adjacency(graph.adjacency)
    return _train_weights(KIPF, features, matrix, labels.train, labels, seed, device)


def surrogate_features(graph: Graph, kind: str, counts: str, owner: str) -> sparse.csr_array:
    """Return the features of a surrogate in single precision; ``"auto"`` scales word counts as ``counts``."""
    check_choice(kind, f"scale of {owner}", FEATURE_SCALINGS)
    scaling = FeatureScaling.fit(
        graph.features, kind, encoder=graph.feature_encoder, counts=counts, name="scale", purpose=PURPOSE
    )
    return scaling.apply(graph.features)


def _train_weights(
    recipe: Recipe,
    features: sparse.csr_array,
    matrix: sparse.csr_array | None,
    rows: Nodes,
    labels: SurrogateLabels,
    seed: SeedSequence,
    device: str = "cpu",
) -> list[NDArray[np.float64]]:
    missing = np.setdiff1d(np.arange(labels.n_classes), labels.codes[labels.train])
    if len(missing):
        name = labels.names[missing[0]]
        raise InputError(f"train must hold at least one node of every class; got none of class {name}.")
    torch_device = check_device(device)
    networks = Networks.initialise(recipe, SparseStack([features], torch_device), labels.n_classes, [seed])
    targets = Targets([rows], [labels.codes[labels.train]], torch_device)
    train(networks, [] if matrix is None else [matrix], targets)
    return [weight[0].detach().cpu().numpy().astype(np.float64) for weight in networks.weights]
