"""Controls: corrections without copying, which show what copying itself contributes."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
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


@dataclass(eq=False, repr=False)
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

    classifier: Classifier | None = None
    donors: Any = "expected"
    n_donors: int = 10
    n_graphs: int | None = None
    _: KW_ONLY
    retrain: bool = False
    trust_edges: bool = False
    device: str = "cpu"

    def check_parameters(self, graph: Graph) -> None:
        check_donor_numbers(self.n_donors, self.n_graphs, graph.n_nodes, "DonorAverage")

    def prepare_correction(self, state: AttackedState) -> Correction:
        copier = DonorPredictions(state.probabilities)
        return CopyingCorrection.from_parameters(state, copier, self, trust_edges=self.trust_edges)

    def nearest_donors(self, nodes: ArrayLike, *, graph: Graph | None = None) -> NDArray[np.int64]:
        """Return the donors of some nodes, ``[len(nodes), n_donors]``, nearest first."""
        return find_donors(self, nodes, graph)


@dataclass(eq=False, repr=False)
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

    classifier: Classifier | None = None
    _: KW_ONLY
    retrain: bool = False
    device: str = "cpu"

    def prepare_correction(self, state: AttackedState) -> Correction:
        # The prediction of a node without edges depends on itself only, so all nodes lose theirs at once.
        n = state.graph.n_nodes
        no_edges = sparse.csr_array((n, n), dtype=np.float32)
        return FixedCorrection(state.predict(state.graph.replace(adjacency=no_edges)))
