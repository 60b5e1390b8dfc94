"""A synthetic graph with measurements on different scales as features and heavy-tailed edge weights."""

from __future__ import annotations

import numpy as np

from nodecopy import Graph


def measured_graph(n_nodes: int = 600, n_classes: int = 4, seed: int = 0) -> Graph:
    """Return customers in groups, who pay each other, mostly within their group.

    Age, income, balance, a share and a rating depend on the group; a serial number does not, and neither do
    the payments, which are log-normal.
    """
    draw = np.random.default_rng(seed)
    centres = draw.normal(size=(n_classes, 5))  # those of a seed are the same for any number of nodes
    labels = draw.integers(n_classes, size=n_nodes)
    scores = 0.7 * centres[labels] + draw.normal(size=(n_nodes, 5))
    features = np.column_stack(
        [
            45 + 12 * scores[:, 0],
            30_000 + 9_000 * scores[:, 1],
            500 * scores[:, 2],
            0.5 + 0.1 * scores[:, 3],
            3 + scores[:, 4],
            draw.permutation(n_nodes) * 1000.0,
        ]
    )
    source, target = draw.integers(n_nodes, size=(2, 12 * n_nodes))
    kept = (labels[source] == labels[target]) | (draw.random(len(source)) < 0.08)
    kept &= source != target
    payments = 100 * np.exp(draw.normal(scale=2.5, size=len(source)))
    return Graph.from_edges(
        source[kept],
        target[kept],
        payments[kept],
        node_ids=np.arange(n_nodes),
        features=features,
        labels=labels,
    )
