"""Feature matrices of networks."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from nodecopy.errors import InputError
from nodecopy.features.scaling import FeatureScaling
from nodecopy.graph import Graph
from nodecopy.nn.networks import Recipe


def fit_feature_scaling(graph: Graph, recipe: Recipe, *, counts: str = "unit") -> FeatureScaling:
    """Return the scaling that a recipe asks for, fitted to the features of a graph.

    ``counts`` is what ``"auto"`` is for word counts.
    """
    check_features(graph)
    return FeatureScaling.fit(graph.features, recipe.features, encoder=graph.feature_encoder, counts=counts)


def check_features(graph: Graph) -> None:
    """Raise an error if a graph has no features."""
    if graph.features is None:
        raise InputError("a graph must have features to be classified; this one has none.")
    if not graph.features.shape[1]:
        raise InputError("a graph must have at least one feature to be classified; this one has none.")


def add_identity_features(graph: Graph) -> Graph:
    """Return the graph; without features it gets the identity matrix, one feature for each node."""
    if graph.features is not None and graph.features.shape[1]:
        return graph
    return graph.replace(features=sparse.eye_array(graph.n_nodes, dtype=np.float32, format="csr"))
