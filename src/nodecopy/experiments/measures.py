"""What the columns of tables show: the scores of each kind of experiment, their heads and their units."""

from __future__ import annotations

from typing import NamedTuple


class Measure(NamedTuple):
    """The head of a column, what a stored number is multiplied by to be shown, and whether the better of
    two graph models is nearer to the observed graph: of edges in common, all would be too many.
    """

    head: str
    scale: float = 100.0
    aimed_at: bool = True


SCORES = {
    "accuracy": Measure(""),
    "others": Measure("others"),
    "auc": Measure("detection"),
    "top precision": Measure("precision at the top"),
    "precision": Measure("precision"),
    "recall": Measure("recall"),
}
"""Of a classifier; the last four of one that looks for the attacked nodes itself, see :mod:`.attacked`."""
LISTS = {
    f"{metric}@{k}": Measure(f"{title}@{k}")
    for metric, title in (("recall", "Recall"), ("ndcg", "NDCG"))
    for k in (10, 20)
}
RANKING_SCORES = LISTS | {
    f"printed {score}": Measure(f"{measure.head}, printed convention") for score, measure in LISTS.items()
}
"""Of a recommender; see :mod:`nodecopy.metrics.ranking` for the two conventions."""
TABLE_1 = {
    "mean_degree": Measure("mean degree", 1),
    "max_degree": Measure("max degree", 1),
    "cross_community_share": Measure("cross-community %"),
    "claw_share": Measure("claws % (1e-4)", 1e6),
    "edge_entropy": Measure("edge entropy %"),
}
STATISTICS = TABLE_1 | {
    "degree_gini": Measure("degree Gini %"),
    "power_law_exponent": Measure("power-law exponent", 1),
    "triangles": Measure("triangles", 1),
    "transitivity": Measure("transitivity %"),
    "average_clustering": Measure("clustering %"),
    "assortativity": Measure("assortativity %"),
    "n_components": Measure("components", 1),
    "largest_component": Measure("largest component", 1),
    "path_length": Measure("path length", 1),
    "edge_overlap": Measure("edge overlap %", aimed_at=False),
}
"""Of a sampled graph; see :mod:`nodecopy.metrics.structure`."""
MEASURES = SCORES | RANKING_SCORES | STATISTICS
