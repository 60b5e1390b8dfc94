"""A logistic regression on embeddings of nodes that can be computed for any graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from nodecopy._core.validation import as_array, check_finite, type_name
from nodecopy.classify.ensemble import Prediction, entropy
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.nn.feature_matrices import check_features


class Embedding(Protocol):
    """An embedding of nodes that was fitted to one graph and can be applied to any with as many features."""

    @property
    def n_features(self) -> int:
        """Return the number of features of a graph that this is applied to."""

    @property
    def rank(self) -> int:
        """Return the dimension of the embedding."""

    def apply(self, graph: Graph) -> NDArray[np.floating]:
        """Return the embeddings of the nodes of a graph."""

    def check(self) -> None:
        """Raise an error unless the parts fit each other, as in a whole file."""


@dataclass(frozen=True, eq=False)
class EmbeddingRegression:
    """A trained logistic regression on embeddings, with all that is needed to predict again.

    Parameters
    ----------
    embedding
        How nodes are embedded.
    coefficients, intercepts
        Of the regression, ``[rank, n_classes]`` and ``[n_classes]``.
    """

    embedding: Embedding
    coefficients: NDArray[np.float64]
    intercepts: NDArray[np.float64]

    def predict(self, graph: Graph, device: str) -> Prediction:
        """Return the prediction on a graph; it is computed on the CPU, whatever the device."""
        check_features(graph)
        given: Any = graph.features
        if given.shape[1] != self.embedding.n_features:
            raise InputError(
                f"features of the graph must have {self.embedding.n_features} columns, as in fit; got "
                f"{given.shape[1]}."
            )
        return self.classify(self.embedding.apply(graph))

    def classify(self, rows: NDArray[np.floating]) -> Prediction:
        """Return the prediction for nodes with these embeddings."""
        probabilities = softmax(rows @ self.coefficients + self.intercepts, axis=1).astype(np.float32)
        return Prediction(probabilities, entropy(probabilities))

    def check(self, n_classes: int) -> None:
        """Raise an error unless the parts fit each other and the number of classes, as in a whole file."""
        if not callable(getattr(self.embedding, "apply", None)):
            raise InputError(f"embedding of the regression must embed; got {type_name(self.embedding)}.")
        self.embedding.check()
        check_floats(self.coefficients, "coefficients", (self.embedding.rank, n_classes))
        check_floats(self.intercepts, "intercepts", (n_classes,))


def check_floats(array: Any, name: str, shape: tuple[int | None, ...]) -> None:
    """Raise an error unless this is an array of finite floats; ``None`` stands for any length."""
    array = as_array(array, name)
    is_right = len(shape) == array.ndim and all(
        expected in (None, length) for expected, length in zip(shape, array.shape, strict=True)
    )
    if array.dtype.kind != "f" or not is_right:
        raise InputError(f"{name} must be floats of shape {shape}; got {array.dtype} of {array.shape}.")
    check_finite(array, name)
