"""Features that are propagated along edges, and a logistic regression on them, which predicts on any graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import softmax

from nodecopy._core.csr import unit_rows
from nodecopy._core.validation import as_array, check_finite, check_integer, check_real, check_type
from nodecopy.classify.ensemble import MAX_STEPS, Prediction, check_scalings, entropy
from nodecopy.errors import InputError
from nodecopy.features.node_embeddings import leading_directions, rarity_weights
from nodecopy.features.scaling import FeatureScaling, WeightScaling
from nodecopy.graph import Graph
from nodecopy.nn.feature_matrices import check_features
from nodecopy.nn.stack import normalise_adjacency


@dataclass(frozen=True, eq=False)
class PropagatedFeatures:
    """How the features of a graph are reduced and propagated; fitted to one graph and applied to any.

    Parameters
    ----------
    feature_scaling, weight_scaling
        Of features and edge weights.
    rarity
        The TF-IDF weight of each feature.
    directions
        The directions of features that are kept, ``[n_features, rank]``; ``None`` keeps all.
    restart, n_steps
        As in :class:`SGC`.
    length
        The length of propagated rows, such that their mean squared distance from their mean is one in the
        graph that this was fitted to.
    """

    feature_scaling: FeatureScaling
    weight_scaling: WeightScaling
    rarity: NDArray[np.float64]
    directions: NDArray[np.float64] | None
    restart: float
    n_steps: int
    length: float

    @classmethod
    def fit(
        cls, graph: Graph, *, rank: int, restart: float, n_steps: int, features: str, weights: str
    ) -> tuple[PropagatedFeatures, NDArray[np.float64]]:
        """Return what is fitted to a graph, and its propagated features."""
        check_features(graph)
        scaling = FeatureScaling.fit(graph.features, features, encoder=graph.feature_encoder, counts="none")
        scaled = scaling.apply(graph.features)
        rarity = rarity_weights(scaled)
        directions = leading_directions(_weigh(scaled, rarity), rank)
        weight_scaling = WeightScaling.fit(graph.adjacency, weights)
        fitted = cls(scaling, weight_scaling, rarity, directions, restart, n_steps, 1.0)
        rows = fitted.apply(graph)
        variance = float(np.square(rows - rows.mean(axis=0)).sum(axis=1).mean())
        length = 1 / np.sqrt(variance or 1.0)
        fitted = cls(scaling, weight_scaling, rarity, directions, restart, n_steps, float(length))
        return fitted, rows * length

    def apply(self, graph: Graph) -> NDArray[np.float64]:
        """Return the propagated features of a graph with as many features."""
        weighted = _weigh(self.feature_scaling.apply(graph.features), self.rarity)
        reduced = weighted.toarray() if self.directions is None else unit_rows(weighted @ self.directions)
        own = np.asarray(reduced, np.float32)
        matrix = normalise_adjacency(self.weight_scaling.apply(graph.adjacency))
        rows = own
        for _ in range(self.n_steps):
            rows = np.asarray((1 - self.restart) * (matrix @ rows) + self.restart * own)
        propagated: NDArray[np.float64] = unit_rows(rows.astype(np.float64)) * self.length
        return propagated

    @property
    def rank(self) -> int:
        """Return the dimension of propagated features."""
        return len(self.rarity) if self.directions is None else int(self.directions.shape[1])

    def check(self) -> None:
        """Raise an error unless the parts fit each other, as in a whole file."""
        check_scalings(self.feature_scaling, self.weight_scaling)
        check_real(self.restart, "restart", low=0, high=1)
        check_integer(self.n_steps, "n_steps", low=0, high=MAX_STEPS)
        check_real(self.length, "length", low=0)
        _check_floats(self.rarity, "rarity", (None,))
        if self.directions is not None:
            _check_floats(self.directions, "directions", (len(self.rarity), None))


@dataclass(frozen=True, eq=False)
class PropagatedRegression:
    """A logistic regression on propagated features, with all that is needed to predict again.

    Parameters
    ----------
    features
        How features are propagated.
    coefficients, intercepts
        Of the regression, ``[rank, n_classes]`` and ``[n_classes]``.
    """

    features: PropagatedFeatures
    coefficients: NDArray[np.float64]
    intercepts: NDArray[np.float64]

    def predict(self, graph: Graph, device: str) -> Prediction:
        """Return the prediction on a graph; it is computed on the CPU, whatever the device."""
        check_features(graph)
        width, given = len(self.features.rarity), graph.features
        if given is not None and given.shape[1] != width:
            raise InputError(
                f"features of the graph must have {width} columns, as in fit; got {given.shape[1]}."
            )
        return self.classify(self.features.apply(graph))

    def classify(self, rows: NDArray[np.float64]) -> Prediction:
        """Return the prediction for propagated features."""
        probabilities = softmax(rows @ self.coefficients + self.intercepts, axis=1).astype(np.float32)
        return Prediction(probabilities, entropy(probabilities))

    def check(self, n_classes: int) -> None:
        """Raise an error unless the parts fit each other and the number of classes, as in a whole file."""
        check_type(self.features, PropagatedFeatures, "features of the regression", "propagated features")
        self.features.check()
        _check_floats(self.coefficients, "coefficients", (self.features.rank, n_classes))
        _check_floats(self.intercepts, "intercepts", (n_classes,))


def _weigh(features: sparse.csr_array, rarity: NDArray[np.float64]) -> sparse.csr_array:
    """Return features weighted by rarity, with rows of length one."""
    weighted = sparse.csr_array(features, dtype=np.float64)
    weighted.data = weighted.data * rarity[weighted.indices]
    return sparse.csr_array(unit_rows(weighted))


def _check_floats(array: NDArray[np.float64], name: str, shape: tuple[int | None, ...]) -> None:
    """Raise an error unless this is an array of finite floats; ``None`` in the shape stands for any length."""
    array = as_array(array, name)
    is_right = len(shape) == array.ndim and all(
        expected in (None, length) for expected, length in zip(shape, array.shape, strict=True)
    )
    if array.dtype.kind != "f" or not is_right:
        raise InputError(f"{name} must be floats of shape {shape}; got {array.dtype} of {array.shape}.")
    check_finite(array, name)
