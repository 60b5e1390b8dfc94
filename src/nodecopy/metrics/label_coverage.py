"""Warn about statistics of labels where only some nodes have one."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from nodecopy._core.hints import Hint
from nodecopy._core.notices import warn_about_data
from nodecopy.graph import UNLABELLED, Graph
from nodecopy.metrics.structure import LABEL_NAMES


def warn_about_missing_labels(graph: Graph, names: Collection[str]) -> None:
    """Warn if some, but not all, nodes have labels on which one of the statistics ``names`` depends."""
    affected = [name for name in LABEL_NAMES if name in names]
    if graph.labels is None or not (affected or "modularity" in names):
        return
    labelled = np.flatnonzero(graph.labels != UNLABELLED)
    n_missing = graph.n_nodes - len(labelled)
    if not n_missing or not len(labelled):
        return
    effects, hints = [], []
    if "modularity" in names:
        effects.append(f"modularity counts the {n_missing:,} others as one community")
        hints = [Hint("Without {}, modularity is that of estimated communities.", labels=...)]
    if affected:
        n_edges = graph.subgraph(labelled).n_edges
        subject = f"{', '.join(affected)} {'is' if len(affected) == 1 else 'are'}"
        effects.append(f"{subject} over {n_edges:,} of {graph.n_edges:,} edges, those between labelled nodes")
    warn_about_data(
        f"{len(labelled):,} of {graph.n_nodes:,} nodes have a label: {'; '.join(effects)}. Label all nodes, "
        "such as by predicted classes, for a statistic of the whole graph.",
        *hints,
    )
