"""Feature matrices of networks."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from nodecopy._core.validation import check_finite
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.nn.networks import Recipe


def build_feature_matrix(graph: Graph, recipe: Recipe) -> sparse.csr_array:
    """Return the features of a graph, scaled as a recipe says, in single precision."""
    if graph.features is None:
        raise InputError("a graph must have features to be classified; this one has none.")
    if not graph.features.shape[1]:
        raise InputError("a graph must have at least one feature to be classified; this one has none.")
    return scale_features(graph.features, recipe)


def add_identity_features(graph: Graph) -> Graph:
    """Return the graph; without features it gets the identity matrix, one feature for each node."""
    if graph.features is not None and graph.features.shape[1]:
        return graph
    return graph.replace(features=sparse.eye_array(graph.n_nodes, dtype=np.float32, format="csr"))


def scale_features(features: Any, recipe: Recipe) -> sparse.csr_array:
    """Return rows of features, each scaled as a recipe says, in single precision."""
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
