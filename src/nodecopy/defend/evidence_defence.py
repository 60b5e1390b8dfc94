"""A defence that combines what features, similar nodes and credible edges say of a node's class."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.csr import IntArray
from nodecopy._core.notices import mute_decisions
from nodecopy._core.validation import check_integer, check_real
from nodecopy.classify import APPNP, Classifier, SelfTraining
from nodecopy.conversion import convert_graph
from nodecopy.defend.base import Defence, check_nodes
from nodecopy.defend.corrections import AttackedState, Correction
from nodecopy.defend.donors import DonorFinder
from nodecopy.defend.evidence_correction import EvidenceCorrection
from nodecopy.defend.evidence_reports import NodeReport
from nodecopy.graph import Graph

ATTACKED_SHARE = 1 / 2
"""Prior probability that a node was attacked, given that it is to be corrected."""


@dataclass(eq=False, repr=False)
class EvidenceDefence(Defence):
    """Correct predictions at attacked nodes by their features, similar nodes and credible edges.

    Three kinds of evidence are combined. The node's features: a logistic regression and an MLP that learned
    from the classifier's predictions for other nodes, see :class:`.DistilledFeatures`. Similar nodes: the
    mean prediction for the donors of :class:`.CopyingDefence`. The node's own edges: each connects it to a
    class, and is credible as far as both ends resemble the ends of other edges. The model knows that an
    attacker connects a node to other classes than its own, often to one of them, and removes edges to its
    own class (see :func:`~nodecopy.defend.evidence.combine_evidence`). Edges count only at nodes whose class
    is uncertain by features and donors; of all others, the correction does not depend on their own edges.

    Parameters
    ----------
    classifier
        The classifier to train, by default ``SelfTraining(APPNP())``; :meth:`from_classifier` takes one that
        is trained.
    n_donors
        Number of similar nodes; 0 does without, for graphs in which the search takes too long.
    uncertain_share
        Share of the nodes whose edges count: those whose likeliest class, by features and donors, has the
        lowest probability. At all other nodes the correction does not depend on the node's own
        edges, if ``retrain`` is set. Larger values gain accuracy under attacks that do not know the
        defence, and lose it under those that do.
    retrain
        Whether :meth:`correct` trains the classifier again on the graph without the edges of the nodes that
        it corrects, so that flips of these edges change neither the predictions for other nodes nor what is
        learned from them. It needs :meth:`fit`. Recommended where the targets are known.
    device
        ``"cpu"`` or ``"cuda"``, for the default classifier; another one has its own.

    Notes
    -----
    The nodes need features that some of them share. Weights of edges are ignored by the evidence.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import GCN
    >>> from nodecopy.defend import EvidenceDefence
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> split = datasets.label_split(digits.labels, 5, validation=0, test=200, rng=0)
    >>> EvidenceDefence(GCN()).fit(digits, split.train, rng=0).correct([7, 3]).tolist()
    [7, 3]
    """

    classifier: Classifier | None = None
    _: KW_ONLY
    n_donors: int = 10
    uncertain_share: float = 0.12
    retrain: bool = False
    device: str = "cpu"

    def check_parameters(self, graph: Graph) -> None:
        name, n_others = type(self).__name__, graph.n_nodes - 1
        check_integer(self.n_donors, f"n_donors of {name}", low=0, high=n_others, high_name="n_nodes - 1")
        check_real(self.uncertain_share, f"uncertain_share of {name}", low=0.0, high=1.0)

    def build_classifier(self) -> Classifier:
        if self.classifier is None:
            return SelfTraining(APPNP(device=self.device))
        return super().build_classifier()

    def prepare_correction(self, state: AttackedState) -> EvidenceCorrection:
        return self.build_correction(state, ATTACKED_SHARE).prepare()

    def build_correction(self, state: AttackedState, attacked_share: float) -> EvidenceCorrection:
        """Return the correction with the parameters of the defence."""
        finder = None
        if self.n_donors:
            search = state.embeddings.search("expected", parameter="donors", owner=type(self).__name__)
            finder = DonorFinder(search, self.n_donors)
        return EvidenceCorrection(state, finder, float(self.uncertain_share), attacked_share, self.device)

    def certify(self, nodes: ArrayLike, *, graph: Graph | None = None) -> NDArray[np.bool_]:
        """Return for which nodes no change of their own edges can change the corrected class.

        Their features and donors leave the class less uncertain than those of ``uncertain_share`` of the
        nodes. It is a guarantee if the classifier was trained without the edges of these nodes
        (``retrain``), and does not extend to flips of other edges.

        Parameters
        ----------
        nodes, graph
            As in :meth:`correct_proba`.
        """
        graph = None if graph is None else convert_graph(graph, f"graph of {type(self).__name__}")
        correction, positions = self._correction_of(nodes, graph)
        return find_evidence(correction).certify(positions)

    def explain(self, nodes: ArrayLike, *, graph: Graph | None = None) -> list[NodeReport]:
        """Return the evidence behind the correction of some nodes, and how credible their edges are.

        Parameters
        ----------
        nodes, graph
            As in :meth:`correct_proba`.
        """
        graph = None if graph is None else convert_graph(graph, f"graph of {type(self).__name__}")
        correction, positions = self._correction_of(nodes, graph)
        before = self.check_fitted() if graph is None else self.predict_graph(graph)
        after = correction.predict_proba(positions)
        reports = find_evidence(correction).explain(
            positions, self.classes_, before.probabilities[positions], after
        )
        return reports

    def _correction_of(self, nodes: ArrayLike, graph: Graph | None) -> tuple[Correction, IntArray]:
        """Return the correction of some nodes, trained without their edges if ``retrain``, and the nodes."""
        self.check_fitted()
        if self.retrain and self.expects_targets:
            trial = self.check_retrainable(self._trial_on(graph))
            positions = check_nodes(trial.graph, nodes)
            with mute_decisions():  # they are those of fit
                ((_, correction),) = self.train_corrections([trial], [positions])
            return correction, positions
        state, correction = self.get_state_and_correction(graph)
        return correction, check_nodes(state.graph, nodes)


def find_evidence(correction: Correction) -> EvidenceCorrection:
    """Return the evidence behind a correction."""
    evidence: Any = getattr(correction, "evidence", correction)
    assert isinstance(evidence, EvidenceCorrection)
    return evidence
