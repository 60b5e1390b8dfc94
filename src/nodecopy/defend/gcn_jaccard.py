"""GCN-Jaccard: a GCN on the graph without edges between dissimilar nodes (Wu et al., 2019)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.validation import check_real
from nodecopy.classify import Classifier
from nodecopy.defend.base import Defence
from nodecopy.defend.pruning import keep_edges
from nodecopy.errors import InputError
from nodecopy.graph import Graph

EDGES_PER_BLOCK = 2**16
"""Number of edges whose similarity is computed together."""


@dataclass(eq=False, repr=False)
class GCNJaccard(Defence):
    """Train a GCN on the graph without edges between nodes with few common features (Wu et al., 2019).

    Corrected predictions are the GCN's own.

    Parameters
    ----------
    threshold
        Smallest Jaccard similarity of the features of two neighbours whose edge is kept. A node has a feature
        where it is not zero, so this is for sparse features. Edges between two nodes without any feature are
        kept.
    classifier
        The classifier to train; ``GCN()`` by default.
    device
        ``"cpu"`` or ``"cuda"``, for the default classifier; another one has its own.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.defend import GCNJaccard
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> split = datasets.label_split(digits.labels, 5, validation=0, test=200, rng=0)
    >>> GCNJaccard(0.1).fit(digits, split.train, rng=0).correct([7, 3]).tolist()
    [7, 3]
    """

    threshold: float = 0.01
    _: KW_ONLY
    classifier: Classifier | None = None
    device: str = "cpu"

    def check_parameters(self, graph: Graph) -> None:
        check_real(self.threshold, "threshold of GCNJaccard", low=0.0, high=1.0)
        if graph.features is None:
            raise InputError("a graph must have features for GCNJaccard; this one has none.")

    def preprocess(self, graph: Graph) -> Graph:
        """Return the graph without the edges below the threshold."""
        self.check_parameters(graph)
        return keep_edges(graph, jaccard_similarities(graph) >= self.threshold)


def jaccard_similarities(graph: Graph) -> NDArray[np.float64]:
    """Return the Jaccard similarity of the ends of every stored entry of A; one if both have no features."""
    features: Any = graph.features
    present = sparse.csr_array(features, copy=True)
    present.eliminate_zeros()
    present.data = np.ones(present.nnz, np.float32)
    sizes = np.diff(present.indptr)
    first, second = graph.rows.row_numbers, graph.rows.indices
    common: list[NDArray[Any]] = [np.zeros(0)]
    for start in range(0, len(first), EDGES_PER_BLOCK):
        part = slice(start, start + EDGES_PER_BLOCK)
        common.append((present[first[part]] * present[second[part]]).sum(axis=1))
    both = np.concatenate(common)
    either = sizes[first] + sizes[second] - both
    similarities: NDArray[np.float64] = np.divide(both, either, out=np.ones(len(both)), where=either > 0)
    return similarities
