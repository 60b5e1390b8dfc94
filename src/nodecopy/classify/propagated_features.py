"""Features that are reduced in rank and propagated along edges."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.csr import unit_rows
from nodecopy._core.sparse_matrices import as_matrix
from nodecopy._core.validation import check_integer, check_real
from nodecopy.classify.embedding_regression import check_floats
from nodecopy.classify.ensemble import MAX_STEPS, check_scalings
from nodecopy.features.node_embeddings import leading_directions, rarity_weights, weigh_by_rarity
from nodecopy.features.recent_graphs import RecentGraphs
from nodecopy.features.scaling import FeatureScaling, WeightScaling, explain_no_counts
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
        """Return what is fitted to a graph, and its propagated features.

        They are computed once for graphs that differ in labels only.
        """
        check_features(graph)
        # Word counts are not scaled as for networks, which may be trained beside it.
        is_counts = not explain_no_counts(as_matrix(graph.features, "features"), graph.feature_encoder)
        scaling = FeatureScaling.fit(
            graph.features,
            features,
            encoder=graph.feature_encoder,
            counts="none",
            purpose="for SGC" if is_counts else "",
        )
        weight_scaling = WeightScaling.fit(graph.adjacency, weights)

        def compute() -> tuple[PropagatedFeatures, NDArray[np.float64]]:
            scaled = scaling.apply(graph.features)
            rarity = rarity_weights(scaled)
            directions = leading_directions(weigh_by_rarity(scaled, rarity), rank)
            fitted = cls(scaling, weight_scaling, rarity, directions, restart, n_steps, 1.0)
            rows = fitted.apply(graph)
            variance = float(np.square(rows - rows.mean(axis=0)).sum(axis=1).mean())
            length = float(1 / np.sqrt(variance or 1.0))
            return replace(fitted, length=length), rows * length

        return _RECENT.find(graph, (rank, restart, n_steps, scaling.kind, weight_scaling.kind), compute)

    def apply(self, graph: Graph) -> NDArray[np.float64]:
        """Return the propagated features of a graph with as many features."""
        weighted = weigh_by_rarity(self.feature_scaling.apply(graph.features), self.rarity)
        reduced = weighted.toarray() if self.directions is None else unit_rows(weighted @ self.directions)
        own = np.asarray(reduced, np.float32)
        matrix = normalise_adjacency(self.weight_scaling.apply(graph.adjacency))
        rows = own
        for _ in range(self.n_steps):
            rows = np.asarray((1 - self.restart) * (matrix @ rows) + self.restart * own)
        propagated: NDArray[np.float64] = unit_rows(rows.astype(np.float64)) * self.length
        return propagated

    @property
    def n_features(self) -> int:
        """Return the number of features of a graph that this is applied to."""
        return len(self.rarity)

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
        check_floats(self.rarity, "rarity", (None,))
        if self.directions is not None:
            check_floats(self.directions, "directions", (len(self.rarity), None))


_RECENT = RecentGraphs[tuple[PropagatedFeatures, NDArray[np.float64]]]()
