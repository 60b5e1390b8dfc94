"""The input and the result of corrections: an attacked graph with its predictions, and corrected ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from nodecopy._core.csr import IntArray
from nodecopy._core.validation import type_name
from nodecopy.classify import Classifier, Prediction, Trial
from nodecopy.classify.ensemble import TrainedNetworks
from nodecopy.errors import InputError
from nodecopy.features.node_embeddings import NodeEmbeddings
from nodecopy.graph import Graph


@dataclass(frozen=True, eq=False)
class AttackedState:
    """The input of a correction: an attacked graph and the classifier's predictions on it.

    Parameters
    ----------
    graph
        The attacked graph, as the classifier sees it.
    probabilities
        The classifier's predictions for all nodes.
    classifier
        The classifier; :meth:`predict` returns its predictions on other graphs.
    networks
        Its networks; ``None`` for a classifier from outside the package.
    seed
        Seed of whatever the correction draws.
    complete_graph
        The graph with all edges; it differs from ``graph`` where the classifier was trained again without
        the edges of the nodes that are corrected.
    trial
        The problem on which the classifier was trained; ``None`` where that is not known.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.defend import WithoutEdges
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> state = WithoutEdges().fit(digits, range(100), rng=0).state_
    >>> state.graph.n_nodes, state.probabilities.shape
    (300, (300, 10))
    """

    graph: Graph
    probabilities: NDArray[np.float32]
    classifier: Any
    networks: TrainedNetworks | None
    seed: SeedSequence
    complete_graph: Graph
    trial: Trial | None = None

    @cached_property
    def embeddings(self) -> NodeEmbeddings:
        """Return the embeddings of the nodes of ``graph``."""
        return NodeEmbeddings(self.graph)

    def predict(self, graph: Graph) -> NDArray[np.float32]:
        """Return the classifier's predictions on another graph."""
        return evaluate(self.classifier, self.networks, graph).probabilities


class Correction:
    """Corrected predictions of the nodes of one graph; a defence prepares one for each graph.

    A subclass that computes the predictions of some nodes on demand overrides :meth:`predict_proba`.

    Parameters
    ----------
    probabilities
        The corrected probabilities of all nodes.

    Examples
    --------
    >>> import numpy as np
    >>> from nodecopy.defend import Correction
    >>> Correction(np.array([[0.9, 0.1], [0.2, 0.8]])).predict_proba(np.array([1])).tolist()
    [[0.2, 0.8]]
    """

    def __init__(self, probabilities: NDArray[np.floating[Any]]) -> None:
        self.probabilities = probabilities

    def predict_proba(self, nodes: IntArray) -> NDArray[np.floating[Any]]:
        """Return the corrected probabilities of some nodes, given by position."""
        rows: NDArray[np.floating[Any]] = self.probabilities[nodes]
        return rows

    def details(self, nodes: IntArray) -> dict[str, Any]:
        """Return further results for some nodes by name; none by default."""
        return {}


def predicts_graphs(classifier: Classifier) -> bool:
    """Return whether a classifier without networks defines ``predict_graph``."""
    return type(classifier).predict_graph is not Classifier.predict_graph


def evaluate(classifier: Any, networks: TrainedNetworks | None, graph: Graph) -> Prediction:
    """Return the prediction of trained networks, or of a classifier without any, on a graph."""
    if networks is not None:
        return networks.predict(graph, classifier.network_device())
    if isinstance(classifier, Classifier):
        if not predicts_graphs(classifier):
            raise InputError(
                f"classifier must predict on other graphs than that of fit to be corrected; got "
                f"{classifier!r}. Define predict_graph(graph) in {type(classifier).__name__}."
            )
        return classifier.prediction_on(graph)
    if not hasattr(classifier, "predict_proba"):
        raise InputError(f"classifier must have predict_proba(graph); got {type_name(classifier)}.")
    return Prediction.from_array(classifier.predict_proba(graph), graph, "predict_proba of the classifier")
