"""Controls: corrections without copying, which show what copying itself contributes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from nodecopy.classify import Classifier
from nodecopy.defend.base import AttackedState, Correction, Defence, FixedCorrection
from nodecopy.defend.copying_correction import CopyingCorrection, find_donors
from nodecopy.defend.donors import check_donor_numbers
from nodecopy.defend.two_hop import DonorPredictions
from nodecopy.graph import Graph


class DonorAverage(Defence):
    """Correct nodes by the mean of the classifier's predictions for their donors, without copying.

    What :class:`.CopyingDefence` gains over this control, it gains by copying; the rest comes from the choice
    of donors.

    Parameters
    ----------
    classifier, donors, n_donors, n_graphs, retrain, trust_edges, device
        As in :class:`.CopyingDefence`.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.defend import DonorAverage
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> split = datasets.label_split(digits.labels, 5, validation=0, test=200, rng=0)
    >>> DonorAverage().fit(digits, split.train, rng=0).correct([7, 3]).tolist()
    [7, 3]
    """

    def __init__(
        self,
        classifier: Classifier | None = None,
        donors: Any = "expected",
        n_donors: int = 10,
        n_graphs: int | None = None,
        *,
        retrain: bool = False,
        trust_edges: bool = False,
        device: str = "cpu",
    ) -> None:
        self.classifier, self.donors, self.n_donors, self.n_graphs = classifier, donors, n_donors, n_graphs
        self.retrain, self.trust_edges, self.device = retrain, trust_edges, device

    def check_parameters(self, graph: Graph) -> None:
        check_donor_numbers(self.n_donors, self.n_graphs, graph.n_nodes, "DonorAverage")

    def prepare_correction(self, state: AttackedState) -> Correction:
        copier = DonorPredictions(state.probabilities)
        return CopyingCorrection.from_parameters(state, copier, self, trust_edges=self.trust_edges)

    def nearest_donors(self, nodes: ArrayLike, *, graph: Graph | None = None) -> NDArray[np.int64]:
        """Return the donors of some nodes, ``[len(nodes), n_donors]``, nearest first."""
        return find_donors(self, nodes, graph)


class WithoutEdges(Defence):
    """Correct nodes by the trained classifier's predictions from their features, without any edge.

    A defence with a lower accuracy than this control loses more by copied neighbourhoods than it gains.

    Parameters
    ----------
    classifier, retrain, device
        As in :class:`.CopyingDefence`.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.defend import WithoutEdges
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> split = datasets.label_split(digits.labels, 5, validation=0, test=200, rng=0)
    >>> WithoutEdges().fit(digits, split.train, rng=0).correct([7, 3]).tolist()
    [7, 3]
    """

    def __init__(
        self, classifier: Classifier | None = None, *, retrain: bool = False, device: str = "cpu"
    ) -> None:
        self.classifier, self.retrain, self.device = classifier, retrain, device

    def prepare_correction(self, state: AttackedState) -> Correction:
        # The prediction of a node without edges depends on itself only, so all nodes lose theirs at once.
        n = state.graph.n_nodes
        no_edges = sparse.csr_array((n, n), dtype=np.float32)
        return FixedCorrection(state.predict(state.graph.replace(adjacency=no_edges)))
