"""Defences for unknown targets: score the suspicion of all nodes, and correct the most suspicious ones."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np

from nodecopy._core.arrays import Array, Bools, FloatArray, Floats, IntArray, Ints
from nodecopy._core.checks import check_settings
from nodecopy._core.messages import warn_about_data
from nodecopy.classify import Classifier
from nodecopy.defend.base import AttackedState, Correction, Defence
from nodecopy.defend.copying import CopyingCorrection, DonorDefence, choose_copier
from nodecopy.defend.evidence import MIN_PROBABILITY, EvidenceCorrection, EvidenceDefence
from nodecopy.graph import Graph

# The share of nodes that are corrected without validation nodes, and that lose their edges before retraining.
DEFAULT_SHARE = 0.07
MIN_SUSPICION = 1e-3  # no node looks attacked if all scores are lower; the highest is 0.9 to 2 on Cora
MAX_ACCURACY_LOSS = 0.005  # largest loss of accuracy at the validation nodes that corrections may cause


@dataclass(eq=False)
class DetectedCorrection(Correction):
    """Predictions of all nodes, the most suspicious of which are corrected."""

    probabilities: FloatArray
    suspicion: Floats
    is_corrected: Bools
    source: Any

    def details(self) -> dict[str, Any]:
        return {"suspicion": self.suspicion, "corrected": self.is_corrected}

    def find_donors(self, nodes: IntArray) -> Ints:
        return np.asarray(self.source.find_donors(nodes))

    def attack_probability(self, nodes: IntArray) -> Floats:
        return np.asarray(self.suspicion[nodes])

    def explain(self, nodes: IntArray, *arguments: Any) -> Any:
        reports = zip(self.source.explain(nodes, *arguments), self.suspicion[nodes].tolist(), strict=True)
        return [replace(report, attacked=attacked) for report, attacked in reports]

    def certify(self, nodes: IntArray) -> Bools:
        return np.zeros(len(nodes), bool)  # its edges decide whether a node is corrected at all


class DetectingDefence(Defence):
    """The base class of defences that detect attacked nodes; ``share`` is the share of nodes to correct."""

    share: float | None = None
    detects = True

    def check_parameters(self, graph: Graph) -> None:
        super().check_parameters(graph)
        if self.share is not None:
            check_settings(self, share=(0.0, 1.0))

    def score_suspicion(self, *, graph: Graph | None = None) -> Floats:
        """Return a score of every node; attacked nodes tend to have the highest ones.

        For :class:`WholeGraphDefence`, it is the probability that the node was attacked. ``graph`` is the
        attacked graph, by default the one given to ``fit``.
        """
        correction: Any = self.prepare_graph(graph)[2]
        return np.asarray(correction.suspicion)


@dataclass(eq=False, repr=False, kw_only=True)
class SuspectCorrection(DetectingDefence, DonorDefence):
    """Detect attacked nodes, and correct them by copying.

    The nodes with the highest :meth:`score_suspicion` are corrected as in :class:`.CopyingDefence`. All
    others are predicted with the neighbourhoods of donors whose neighbourhoods are similar to their own.

    Parameters
    ----------
    share
        Share of all nodes that are corrected: the larger, the more attacked nodes are detected and the more
        others lose accuracy. By default as many as possible while the accuracy at the validation nodes falls
        at most 0.5 points below the classifier's own, or below the best attainable if that is lower; 7 %
        without validation nodes.
    retrain
        Whether corrections come from a classifier that is trained again without the edges of the most
        suspicious nodes. It needs :meth:`fit`.
    classifier, donors, n_donors, n_graphs, mode, device
        As in :class:`.CopyingDefence`.

    Examples
    --------
    >>> from nodecopy import datasets, defend
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> defend.SuspectCorrection(share=0.05).fit(digits, range(100), rng=0).score() > 0.8
    True
    """

    share: float | None = None
    mode: str = "swap-features"

    def prepare_correction(self, state: AttackedState) -> Correction:
        copying = self.prepare_copying(state)
        scores, copied, similar = copying.score_nodes()
        if scores.max() < MIN_SUSPICION:
            warn_about_data(
                f"the highest suspicion score is {scores.max():.2g}: no node looks attacked, or the "
                "classifier has learned too little. The share of nodes is corrected anyway."
            )
        if self.retrain:
            share = DEFAULT_SHARE if self.share is None else self.share
            copied, similar = self._copy_retrained(copying, select_highest(scores, share))
        order = np.argsort(-scores, kind="stable")
        is_corrected = np.zeros(len(order), bool)
        is_corrected[order[: choose_n_corrected(self.share, state, order, copied, similar)]] = True
        probabilities = np.where(is_corrected[:, None], copied, similar)
        return DetectedCorrection(probabilities, scores, is_corrected, copying)

    def _copy_retrained(self, copying: CopyingCorrection, suspects: IntArray) -> tuple[Array, Array]:
        retrained = self.retrain_without(copying.state, suspects)
        # Similar donors are chosen, and copied, in the graph with all edges.
        complete = replace(copying.state, classifier=retrained.classifier, networks=retrained.networks)
        copier = choose_copier(complete, self.mode)
        similar = replace(copying.with_similar_donors(), state=complete, copier=copier)
        nodes = np.arange(complete.graph.n_nodes)
        return self.prepare_copying(retrained).average_copies(nodes), similar.average_copies(nodes)


def choose_n_corrected(
    share: float | None, state: AttackedState, order: IntArray, corrected: Array, uncorrected: Array
) -> int:
    """Return how many nodes, in ``order``, are corrected, by ``share`` or by validation nodes."""
    trial: Any = state.trial
    if share is not None or trial is None or not trial.has_validation:
        return round((DEFAULT_SHARE if share is None else share) * len(order))
    codes, validation_nodes = trial.codes, order[np.isin(order, trial.validation)]
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


@dataclass(eq=False, repr=False)
class WholeGraphDefence(DetectingDefence, EvidenceDefence):
    """Correct predictions without knowing which nodes were attacked.

    The probability that a node was attacked (:meth:`score_suspicion`) is that of :class:`.EvidenceDefence`,
    in which neighbours count by their features, since the attack may have misled the classifier. Suspicious
    nodes are those with a probability above the average. The evidence of each node is multiplied by the
    classifier's prediction to the power of the probability that the node was not attacked.

    Parameters
    ----------
    classifier, device
        As in :class:`.EvidenceDefence`.
    share
        Share of all nodes that are treated as attacked, the most suspicious ones: the classifier's prediction
        does not count there. Give it if you know that there was an attack. The larger, the more attacked
        nodes are corrected, and the more others lose accuracy.
    uncertain_share
        As in :class:`.EvidenceDefence`.
    retrain
        Whether suspicious nodes are judged again, after the classifier was trained without their edges. It
        needs :meth:`fit`.

    Examples
    --------
    >>> from nodecopy import datasets, defend
    >>> from nodecopy.classify import GCN
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> defend.WholeGraphDefence(GCN()).fit(digits, range(100), rng=0).score() > 0.8
    True
    """

    classifier: Classifier | str | None = None
    _: KW_ONLY
    share: float | None = None
    uncertain_share: float = 1.0
    retrain: bool = False
    device: str = "cpu"

    def prepare_correction(self, state: AttackedState) -> Correction:
        nodes = np.arange(state.graph.n_nodes)
        evidence = EvidenceCorrection(state, float(self.uncertain_share), trusts_classifier=False)
        suspicion = evidence.attack_probability(nodes)
        is_suspicious = (suspicion > suspicion.mean()) & (state.graph.degrees > 0)
        unattacked = 1 - suspicion
        if self.share is not None:
            is_suspicious = np.isin(nodes, select_highest(suspicion, self.share))
            unattacked[is_suspicious] = 0
        p, suspects = evidence.predict_proba(nodes), np.flatnonzero(is_suspicious)
        if self.retrain:
            evidence = replace(evidence, state=self.retrain_without(state, suspects))
            p[suspects] = evidence.predict_proba(suspects)
        p = p * np.maximum(state.probabilities, MIN_PROBABILITY) ** unattacked[:, None]
        return DetectedCorrection(p / p.sum(axis=1, keepdims=True), suspicion, is_suspicious, evidence)


def select_highest(scores: Floats, share: float) -> IntArray:
    """Return the positions of the highest scores; ties go to the lowest positions."""
    return np.argsort(-scores, kind="stable")[: round(share * len(scores))]
