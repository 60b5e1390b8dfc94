"""The evidence of all nodes where the targets are unknown."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax

from nodecopy._core.csr import IntArray
from nodecopy._core.notices import log_decision
from nodecopy._core.validation import check_real
from nodecopy.classify import Classifier
from nodecopy.defend.base import check_nodes
from nodecopy.defend.corrections import AttackedState
from nodecopy.defend.detection import DetectedCorrection
from nodecopy.defend.donors import DonorFinder
from nodecopy.defend.evidence import Array
from nodecopy.defend.evidence_correction import MIN_PROBABILITY, EvidenceCorrection
from nodecopy.defend.evidence_defence import ATTACKED_SHARE, EvidenceDefence
from nodecopy.defend.pruning import remove_edges_of
from nodecopy.defend.suspicion import score_suspicion
from nodecopy.graph import Graph

MAX_NODES_WITH_DONORS = 50_000
"""Largest graph in which the donors of all nodes are found; the time grows with the square."""
PRUNED_SHARE = 0.07
"""Share of the nodes, the most suspicious ones, whose edges are removed before training again."""
CLASSIFIER_WEIGHT = 0.5
"""Exponent of the classifier's prediction for nodes that are not suspicious, which repeats the evidence."""


@dataclass(eq=False)
class WholeGraphCorrection(DetectedCorrection):
    """Predictions of all nodes by the classifier and all evidence; of the most suspicious, by the evidence.

    Parameters
    ----------
    probabilities, suspicion, is_corrected
        As in :class:`.DetectedCorrection`; the suspicious nodes count as corrected.
    evidence
        What all evidence says of each node.
    """

    evidence: EvidenceCorrection


@dataclass(eq=False, repr=False)
class WholeGraphDefence(EvidenceDefence):
    """Correct predictions without knowing which nodes were attacked; :meth:`correct` takes all nodes.

    Every node gets a suspicion score (:func:`.score_suspicion`), in which doubtful edges count most. The
    most suspicious nodes are predicted by all evidence, as in :class:`.EvidenceDefence`. For the others, the
    evidence is multiplied by the square root of the prediction that the classifier made before it was
    trained again, if it is.

    Parameters
    ----------
    classifier, n_donors, device
        As in :class:`.EvidenceDefence`. In graphs of more than 50,000 nodes no donors are used.
    share
        Share of all nodes that count as suspicious. The larger it is, the more attacked nodes are
        corrected, and the more others lose the classifier's prediction.
    uncertain_share
        As in :class:`.EvidenceDefence`; by default the edges of all nodes count.
    retrain
        Whether the classifier is trained again without the edges of the 7 % most suspicious nodes, by the
        score in which all edges count alike, before anything is corrected. It needs :meth:`fit`.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import GCN
    >>> from nodecopy.defend import WholeGraphDefence
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> split = datasets.label_split(digits.labels, 5, validation=0, test=200, rng=0)
    >>> WholeGraphDefence(GCN()).fit(digits, split.train, rng=0).correct([7, 3]).tolist()
    [7, 3]
    """

    expects_targets = False

    classifier: Classifier | None = None
    _: KW_ONLY
    share: float = 0.15
    n_donors: int = 10
    uncertain_share: float = 1.0
    retrain: bool = False
    device: str = "cpu"

    def check_parameters(self, graph: Graph) -> None:
        super().check_parameters(graph)
        check_real(self.share, "share of WholeGraphDefence", low=0.0, high=1.0)

    def prepare_correction(self, state: AttackedState) -> Any:
        nodes = np.arange(state.graph.n_nodes)
        defence = self._without_donors_if_large(state.graph)
        evidence = defence.build_correction(state, ATTACKED_SHARE)
        suspicion, without_doubt = score_all(evidence)
        if self.retrain:
            # Many doubtful edges of a clean graph are genuine ones between classes, which training needs.
            evidence = defence._retrain(state, select_highest(without_doubt, PRUNED_SHARE))
        is_suspicious = np.zeros(len(nodes), bool)
        is_suspicious[select_highest(suspicion, self.share)] = True
        own = np.log(np.maximum(state.probabilities, MIN_PROBABILITY))
        log_p = evidence.predict_log_proba(nodes) + CLASSIFIER_WEIGHT * ~is_suspicious[:, None] * own
        return WholeGraphCorrection(softmax(log_p, axis=1), suspicion, is_suspicious, evidence)

    def certify(self, nodes: ArrayLike, *, graph: Graph | None = None) -> NDArray[np.bool_]:
        """Return that no node is certified, since its edges decide whether it is corrected at all."""
        state, _ = self.get_state_and_correction(graph)
        return np.zeros(len(check_nodes(state.graph, nodes)), bool)

    def _retrain(self, state: AttackedState, suspects: IntArray) -> EvidenceCorrection:
        """Return the evidence of a classifier that is trained without the suspects' edges."""
        trial = self.check_retrainable(state.trial)
        pruned = trial.with_graph(remove_edges_of(trial.graph, suspects))
        (prediction,) = self.fit_trials([pruned], keep_networks=True)
        classifier = self._fitted_classifier(pruned, prediction)
        retrained = self.build_attacked_state(classifier, pruned.graph, prediction, trial)
        return self.build_correction(retrained, ATTACKED_SHARE)

    def _without_donors_if_large(self, graph: Graph) -> WholeGraphDefence:
        if not self.n_donors or graph.n_nodes <= MAX_NODES_WITH_DONORS:
            return self
        log_decision(
            f"donors: none are used, since the graph has {graph.n_nodes:,} nodes; the time to find those of "
            "all nodes grows with the square of their number."
        )
        return replace(self, n_donors=0)


def select_highest(scores: NDArray[np.float64], share: float) -> IntArray:
    """Return the positions of a share of the scores, the highest ones; ties go to the lowest positions."""
    return np.argsort(-scores, kind="stable")[: round(share * len(scores))]


def score_all(evidence: EvidenceCorrection) -> tuple[Array, Array]:
    """Return two suspicion scores of every node: with doubtful edges counting most, and with all alike."""
    state, nodes = evidence.state, np.arange(evidence.state.graph.n_nodes)
    expected = np.exp(evidence.without_edges(nodes))
    similar: Array = expected
    if evidence.finder is not None:
        search = state.embeddings.search("neighbourhoods", parameter="donors", owner="suspicion")
        finder = DonorFinder(search, evidence.finder.n_donors)
        similar = evidence.predictions[finder.find(nodes)].mean(axis=1)
    embeddings = state.embeddings.features, state.embeddings.expected
    inputs = state.graph, *embeddings, evidence.predictions, expected, similar
    rows = state.graph.rows
    is_edge = np.ones(len(rows.indices), bool)
    # As seen from the first node: the probability of a random pair, if pairs and edges were equally frequent.
    doubt = expit(-evidence.credibility.log_odds(rows.row_numbers, rows.indices, is_edge=is_edge))
    return score_suspicion(*inputs, doubt), score_suspicion(*inputs)
