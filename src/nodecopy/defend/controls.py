"""Controls: corrections without copying, which show what copying itself contributes."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np
from scipy import sparse

from nodecopy.classify import Classifier
from nodecopy.defend.base import Defence
from nodecopy.defend.copiers import PredictionsWithoutCopying
from nodecopy.defend.copying_correction import DonorDefence
from nodecopy.defend.corrections import AttackedState, Correction


@dataclass(eq=False, repr=False, kw_only=True)
class DonorAverage(DonorDefence):
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

    trust_edges: bool = False

    def prepare_correction(self, state: AttackedState) -> Correction:
        copier = PredictionsWithoutCopying(state.probabilities, at_donors=True)
        return self.build_correction(state, copier, trust_edges=self.trust_edges)


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
        return Correction(state.predict(state.graph.replace(adjacency=no_edges)))
