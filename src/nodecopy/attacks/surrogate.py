"""The models that an attacker trains for himself, on the one engine."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from nodecopy._core.validation import check_indices, check_unique
from nodecopy.attacks.base import Nodes, known_labels
from nodecopy.errors import InputError
from nodecopy.graph import UNLABELLED, Graph, class_codes
from nodecopy.nn.devices import checked_device
from nodecopy.nn.features import feature_matrix
from nodecopy.nn.networks import KIPF, Networks, Recipe
from nodecopy.nn.stack import SparseStack, normalised
from nodecopy.nn.training import Targets, train

LINEAR = replace(KIPF, spread="none", activation="none", features="plain", dropout=0.0)
"""Nettack's surrogate: the second power of the graph convolution, then two linear layers."""


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What a surrogate learns from: checked nodes and their classes.

    Parameters
    ----------
    codes
        The class number of every node, -1 where unknown.
    names
        Of the classes.
    train
        Nodes that it is trained on.
    """

    codes: NDArray[np.int64]
    names: tuple[str, ...]
    train: Nodes

    @property
    def n_classes(self) -> int:
        return len(self.names)

    @classmethod
    def of(cls, graph: Graph, victims: Nodes, train: ArrayLike | None, purpose: str) -> Knowledge:
        labels = known_labels(graph, victims, purpose)
        if graph.features is None or not graph.features.shape[1]:
            raise InputError(f"graph must have features for {purpose}; this one has none.")
        classes, codes = class_codes(labels)
        if len(classes) < 2:
            raise InputError(
                f"graph must have labels of at least two classes for {purpose}; got {len(classes)}."
            )
        if train is None:
            nodes = np.setdiff1d(np.flatnonzero(labels != UNLABELLED), victims)
        else:
            nodes = check_indices(train, "train", size=graph.n_nodes)
            check_unique(nodes, "train")
        unknown = nodes[codes[nodes] < 0]
        if len(unknown):
            name = graph.node_ids[unknown].tolist()[0]
            raise InputError(
                f"train must hold labelled nodes; got the node with id {name!r}, which has no label."
            )
        names = tuple(
            map(str, classes if graph.label_names is None else np.array(graph.label_names)[classes])
        )
        return cls(codes, names, nodes)


def linear_weights(graph: Graph, knowledge: Knowledge, seed: SeedSequence) -> NDArray[np.float64]:
    """``[n_features, n_classes]`` weights W of the surrogate Â²XW, trained on the clean graph.

    Only the training rows of Â²X are needed, and two linear layers are one.
    """
    spread = sparse.csr_array(normalised(graph.adjacency))
    twice = sparse.csr_array(spread[knowledge.train] @ (spread @ feature_matrix(graph, LINEAR)))
    rows = np.arange(len(knowledge.train))
    first, second = _trained(LINEAR, twice, None, rows, knowledge, seed)
    return np.asarray(first @ second)


def gcn_weights(
    graph: Graph, knowledge: Knowledge, seed: SeedSequence, device: str
) -> list[NDArray[np.float64]]:
    """Both layers of a GCN with the settings of Kipf and Welling, trained on the clean graph."""
    matrix = normalised(graph.adjacency)
    return _trained(KIPF, feature_matrix(graph, KIPF), matrix, knowledge.train, knowledge, seed, device)


def _trained(
    recipe: Recipe,
    features: sparse.csr_array,
    matrix: sparse.csr_array | None,
    rows: Nodes,
    knowledge: Knowledge,
    seed: SeedSequence,
    device: str = "cpu",
) -> list[NDArray[np.float64]]:
    missing = np.setdiff1d(np.arange(knowledge.n_classes), knowledge.codes[knowledge.train])
    if len(missing):
        name = knowledge.names[missing[0]]
        raise InputError(f"train must hold at least one node of every class; got none of class {name}.")
    place = checked_device(device)
    networks = Networks(recipe, SparseStack([features], place), knowledge.n_classes, [seed])
    targets = Targets([rows], [knowledge.codes[knowledge.train]], place)
    train(networks, [] if matrix is None else [matrix], targets)
    return [weight[0].detach().cpu().numpy().astype(np.float64) for weight in networks.weights]
