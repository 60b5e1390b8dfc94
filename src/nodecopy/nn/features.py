"""The features of a graph as networks take them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from nodecopy._core.validation import check_finite
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.nn.networks import Recipe


def feature_matrix(graph: Graph, recipe: Recipe) -> sparse.csr_array:
    """The features of a graph as a recipe wants them, in single precision."""
    if graph.features is None:
        raise InputError("a graph must have features to be classified; this one has none.")
    if not graph.features.shape[1]:
        raise InputError("a graph must have at least one feature to be classified; this one has none.")
    return prepared(graph.features, recipe)


def with_features(graph: Graph) -> Graph:
    """The graph itself; one without features gets the identity, one feature for each node."""
    if graph.features is not None and graph.features.shape[1]:
        return graph
    return graph.replace(features=sparse.eye_array(graph.n_nodes, dtype=np.float32, format="csr"))


def prepared(features: Any, recipe: Recipe) -> sparse.csr_array:
    """Rows of features as a recipe wants them, each on its own, in single precision."""
    with np.errstate(over="ignore"):
        matrix: sparse.csr_array = sparse.csr_array(features).astype(np.float32)
        total = np.asarray(abs(matrix).sum(axis=1), np.float32)
    check_finite(total, "sums of features in single precision")
    if recipe.features == "binary":
        matrix.data = (matrix.data != 0).astype(np.float32)
    if recipe.features == "rows":
        # A node without features keeps its row of zeros.
        scale = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        matrix.data = matrix.data * np.repeat(scale, np.diff(matrix.indptr))
    return matrix
