"""Embeddings by a layer that Deep Graph Infomax trains without labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from nodecopy._core.csr import unit_rows
from nodecopy._core.random import generator
from nodecopy.classify.embedding_regression import check_floats
from nodecopy.classify.ensemble import check_scalings
from nodecopy.features.recent_graphs import RecentGraphs
from nodecopy.features.scaling import FeatureScaling, WeightScaling
from nodecopy.graph import Graph
from nodecopy.nn.feature_matrices import check_features
from nodecopy.nn.infomax import train_infomax
from nodecopy.nn.stack import normalise_adjacency


@dataclass(frozen=True, eq=False)
class InfomaxEmbedding:
    """One graph convolution with trained weights: fitted to one graph and applied to any.

    Parameters
    ----------
    feature_scaling, weight_scaling
        Of features and edge weights.
    weights, bias, slope
        Of the layer, ``[n_features, n_hidden]`` and ``[n_hidden]``, and the slope of its PReLU, ``[1]``.
    n_epochs
        Epochs of its training.
    """

    feature_scaling: FeatureScaling
    weight_scaling: WeightScaling
    weights: NDArray[np.float32]
    bias: NDArray[np.float32]
    slope: NDArray[np.float32]
    n_epochs: int

    @classmethod
    def fit(
        cls, graph: Graph, seed: Any, *, features: str, weights: str, device: torch.device, **training: Any
    ) -> tuple[InfomaxEmbedding, NDArray[np.float32]]:
        """Return what is trained on a graph, and the embeddings of its nodes.

        With an integer as the seed, it is trained once for graphs that differ in labels only. ``training``
        holds the parameters of :func:`~nodecopy.nn.infomax.train_infomax`.
        """
        check_features(graph)
        scaling = FeatureScaling.fit(graph.features, features, encoder=graph.feature_encoder)
        weight_scaling = WeightScaling.fit(graph.adjacency, weights)

        def train() -> tuple[InfomaxEmbedding, NDArray[np.float32]]:
            matrix = normalise_adjacency(weight_scaling.apply(graph.adjacency))
            layer = train_infomax(
                scaling.apply(graph.features), matrix, rng=generator(seed), device=device, **training
            )
            trained = cls(scaling, weight_scaling, *layer)
            return trained, trained.apply(graph)

        if not isinstance(seed, (int, np.integer)):
            return train()
        key = (int(seed), scaling.kind, weight_scaling.kind, str(device), *training.items())
        return _RECENT.find(graph, key, train)

    def apply(self, graph: Graph) -> NDArray[np.float32]:
        """Return the embeddings of the nodes of a graph, with unit length."""
        matrix = normalise_adjacency(self.weight_scaling.apply(graph.adjacency))
        outputs = matrix @ (self.feature_scaling.apply(graph.features) @ self.weights) + self.bias
        return np.asarray(unit_rows(np.where(outputs > 0, outputs, self.slope * outputs)))

    @property
    def n_features(self) -> int:
        """Return the number of features of a graph that this is applied to."""
        return len(self.weights)

    @property
    def rank(self) -> int:
        """Return the dimension of the embedding."""
        return len(self.bias)

    def check(self) -> None:
        """Raise an error unless the parts fit each other, as in a whole file."""
        check_scalings(self.feature_scaling, self.weight_scaling)
        check_floats(self.bias, "bias", (None,))
        check_floats(self.weights, "weights", (None, len(self.bias)))
        check_floats(self.slope, "slope", (1,))


_RECENT = RecentGraphs[tuple[InfomaxEmbedding, NDArray[np.float32]]]()
