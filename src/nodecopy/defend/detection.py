"""Corrections where the targets are unknown: detect suspicious nodes and correct those."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.csr import IntArray
from nodecopy._core.notices import warn_about_data
from nodecopy._core.validation import check_choice, check_real
from nodecopy.defend.copiers import MODES
from nodecopy.defend.copying_correction import CopyingCorrection, DonorDefence, choose_copier
from nodecopy.defend.corrections import AttackedState, Correction
from nodecopy.defend.donors import DonorFinder
from nodecopy.defend.pruning import remove_edges_of
from nodecopy.graph import Graph

DEFAULT_SHARE = 0.07
"""Share of nodes that are corrected where there are no validation nodes."""
MIN_SUSPICION = 1e-3
"""No node looks attacked if all scores are lower; the highest is 0.9 to 2 on Cora and Citeseer."""
MAX_ACCURACY_LOSS = 0.005
"""Largest loss of accuracy at the validation nodes that corrections may cause."""


@dataclass(eq=False)
class DetectedCorrection(Correction):
    """Predictions of all nodes, of which the most suspicious are corrected.

    Parameters
    ----------
    probabilities
        The predictions.
    suspicion
        The score of every node.
    is_corrected
        Whether each node is among the corrected ones.
    """

    probabilities: NDArray[np.floating[Any]]
    suspicion: NDArray[np.float64]
    is_corrected: NDArray[np.bool_]

    def details(self, nodes: IntArray) -> dict[str, Any]:
        return {"suspicion": self.suspicion[nodes], "corrected": self.is_corrected[nodes]}


@dataclass(eq=False)
class DetectedCopying(DetectedCorrection):
    """Predictions of all nodes, of which the most suspicious are corrected by copying.

    Parameters
    ----------
    probabilities, suspicion, is_corrected
        As in :class:`DetectedCorrection`.
    finder
        Finds the donors of the corrected nodes.
    """

    finder: DonorFinder


@dataclass(eq=False, repr=False, kw_only=True)
class SuspectCorrection(DonorDefence):
    """Detect attacked nodes and correct them by copying; :meth:`correct` may be called for all nodes.

    The nodes with the highest :meth:`score_suspicion` are corrected as in :class:`.CopyingDefence`. All
    others are predicted with copied neighbourhoods too, but of donors whose neighbourhoods are similar to
    their own, which makes up for the nodes that are corrected without need.

    Parameters
    ----------
    share
        Share of all nodes that are corrected: the larger, the more attacked nodes are detected and the more
        others lose accuracy. ``None`` corrects as many as possible while the accuracy at the validation nodes
        falls at most 0.5 points below the classifier's own accuracy on the validation nodes, or below the
        best attainable if every choice loses; and 7 % of the nodes where there are no validation nodes.
    retrain
        Whether corrections come from a classifier that is trained again without the edges of the most
        suspicious nodes. It needs :meth:`fit`.
    classifier, donors, n_donors, n_graphs, mode, device
        As in :class:`.CopyingDefence`.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.defend import SuspectCorrection
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> split = datasets.label_split(digits.labels, 5, validation=0, test=200, rng=0)
    >>> SuspectCorrection(share=0.05).fit(digits, split.train, rng=0).correct([7, 3]).tolist()
    [7, 3]
    """

    expects_targets = False

    share: float | None = None
    mode: str = "swap-features"

    def check_parameters(self, graph: Graph) -> None:
        super().check_parameters(graph)
        check_choice(self.mode, "mode of SuspectCorrection", MODES)
        if self.share is not None:
            check_real(self.share, "share of SuspectCorrection", low=0.0, high=1.0)

    def prepare_correction(self, state: AttackedState) -> DetectedCopying:
        copying = self.build_correction(state, choose_copier(state, self.mode))
        scores, copied, similar = copying.score_nodes()
        if scores.max() < MIN_SUSPICION:
            warn_about_data(
                f"the highest suspicion score is {scores.max():.2g}: no node looks attacked, or the "
                "classifier has learned too little to tell. The share of nodes is corrected anyway."
            )
        order = np.argsort(-scores, kind="stable")
        if self.retrain:
            share = DEFAULT_SHARE if self.share is None else self.share
            copied, similar = self._retrained_copies(copying, order[: round(share * len(order))])
        n_corrected = choose_n_corrected(self.share, state, order, copied, similar)
        is_corrected = np.zeros(len(order), bool)
        is_corrected[order[:n_corrected]] = True
        probabilities = np.where(is_corrected[:, None], copied, similar)
        return DetectedCopying(probabilities, scores, is_corrected, copying.finder)

    def _retrained_copies(
        self, copying: CopyingCorrection, suspects: IntArray
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return both copied predictions of a classifier that is trained without the suspects' edges."""
        state = copying.state
        trial = self.check_retrainable(state.trial)
        pruned = trial.with_graph(remove_edges_of(trial.graph, suspects))
        (prediction,) = self.fit_trials([pruned], keep_networks=True)
        retrained = self.build_attacked_state(self.build_classifier(), pruned.graph, prediction, trial)
        corrected = self.build_correction(retrained, choose_copier(retrained, self.mode))
        # Similar donors are chosen, and copied, in the graph with all edges.
        complete = replace(state, classifier=retrained.classifier, networks=retrained.networks)
        similar = replace(
            copying.with_similar_donors(), state=complete, copier=choose_copier(complete, self.mode)
        )
        nodes = np.arange(state.graph.n_nodes)
        return corrected.average_copies(nodes), similar.average_copies(nodes)


def choose_n_corrected(
    share: float | None,
    state: AttackedState,
    order: IntArray,
    corrected: NDArray[Any],
    uncorrected: NDArray[Any],
) -> int:
    """Return how many nodes are corrected, the most suspicious first.

    Parameters
    ----------
    share
        The share of nodes; ``None`` leaves the choice to the validation nodes of the trial.
    state
        The classifier's own predictions, and the trial.
    order
        All nodes, the most suspicious first.
    corrected, uncorrected
        Predictions of all nodes if they are corrected, and if they are not.
    """
    validation = None if state.trial is None else state.trial.validation
    if share is not None or state.trial is None or validation is None or not len(validation):
        return round((DEFAULT_SHARE if share is None else share) * len(order))
    codes = state.trial.codes
    validation_nodes = order[np.isin(order, validation)]
    own, after, before = (
        (part.argmax(axis=1) == codes).astype(int)[validation_nodes]
        for part in (state.probabilities, corrected, uncorrected)
    )
    # The gain in correct validation nodes if the n most suspicious of them are corrected, for every n.
    gains = (before - own).sum() + np.concatenate([[0], np.cumsum(after - before)])
    min_gain = min(0, gains.max()) - MAX_ACCURACY_LOSS * len(validation_nodes)
    n_validation_corrected = np.flatnonzero(gains >= min_gain)[-1]
    if n_validation_corrected == len(validation_nodes):
        return len(order)
    return int(np.flatnonzero(order == validation_nodes[n_validation_corrected])[0])
