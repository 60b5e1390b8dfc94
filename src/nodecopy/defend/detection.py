"""Copying where nobody tells who was attacked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.csr import IntArray
from nodecopy._core.validation import check_real
from nodecopy.classify import Classifier
from nodecopy.defend.base import Case
from nodecopy.defend.copying_correction import CopyingDefence, Donors
from nodecopy.defend.pruning import without_edges_of
from nodecopy.graph import Graph, class_codes

SHARE = 0.07
"""Of the nodes that are taken for attacked where no validation nodes decide."""
COST = 0.005
"""Share of the validation nodes that corrections may lose."""


@dataclass(frozen=True, eq=False)
class _Answers:
    """What is said of every node, how attacked it looks, and whether it is taken for attacked."""

    probabilities: NDArray[np.floating[Any]]
    suspicion: NDArray[np.float64]
    corrected: NDArray[np.bool_]
    donors: Donors


class SuspectCorrection(CopyingDefence):
    """A copying defence that finds the attacked nodes itself; :meth:`correct` may be asked for all nodes.

    The most suspicious nodes (:meth:`suspects`) are corrected. All others are predicted with the
    neighbourhoods of donors, too, but of donors that live as they do (``"neighbourhoods"``), which makes
    up for those that are corrected without need.

    Parameters
    ----------
    share
        How many nodes are taken for attacked, as a share of all: the more, the more victims are found,
        and the more others pay for it. ``None``: as many as leave the accuracy at the validation nodes
        what it is without any corrections, or hardly less; a small share where there are none.
    retrain
        Whether corrections come from a classifier that is trained anew, without the edges of the most
        suspicious nodes. Needs :meth:`fit`.
    classifier, donors, n_donors, n_graphs, place, device
        As in :class:`.CopyingDefence`.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.defend import SuspectCorrection
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> split = datasets.label_split(digits.labels, 5, validation=0, test=200, rng=0)
    >>> SuspectCorrection(share=0.05).fit(digits, split.train, rng=0).correct([7, 3]).shape
    (2, 10)
    """

    told = False

    def __init__(
        self,
        classifier: Classifier | None = None,
        donors: Any = "expected",
        n_donors: int = 10,
        n_graphs: int | None = None,
        *,
        share: float | None = None,
        retrain: bool = False,
        place: str = "donor",
        device: str = "cpu",
    ) -> None:
        super().__init__(classifier, donors, n_donors, n_graphs, retrain=retrain, place=place, device=device)
        self.share = share

    def suspects(self, *, graph: Graph | None = None) -> NDArray[np.float64]:
        answers: _Answers = self._prepared(graph)[0]
        return answers.suspicion

    suspects.__doc__ = CopyingDefence.suspects.__doc__

    def _nearest(self, prepared: Any, nodes: IntArray) -> NDArray[np.int64]:
        donors = prepared.donors if isinstance(prepared, _Answers) else prepared
        return super()._nearest(donors, nodes)

    def _check(self, n_nodes: int) -> None:
        super()._check(n_nodes)
        if self.share is not None:
            check_real(self.share, "share of SuspectCorrection", low=0.0, high=1.0)

    def _corrector(self, case: Case) -> Any:
        donors = super()._corrector(case)
        scores, copied, similar = self._suspicion(donors)
        order = np.argsort(-scores, kind="stable")
        if self.retrain:
            share = SHARE if self.share is None else self.share
            copied, similar = self._again(case, order[: round(share * len(order))])
        corrected = _rank(order) < self._n_corrected(case, order, copied, similar)
        return _Answers(np.where(corrected[:, None], copied, similar), scores, corrected, donors)

    def _again(self, case: Case, suspects: IntArray) -> tuple[NDArray[Any], NDArray[Any]]:
        """Both copied predictions of a classifier that never saw the suspects' edges."""
        known = self._retrainable(case.trial)
        pruned = replace(known, graph=without_edges_of(known.graph, suspects))
        (prediction,) = self.fit_trials([pruned], keep_networks=True)
        unpoisoned = super()._corrector(self._case(pruned.graph, prediction, case.seed, known))
        nodes = np.arange(case.graph.n_nodes)
        alike = self._alike(replace(case, networks=prediction.networks, predict=unpoisoned.case.predict))
        return self._copied(unpoisoned, nodes), self._copied(alike, nodes)

    def _n_corrected(self, case: Case, order: IntArray, copied: NDArray[Any], similar: NDArray[Any]) -> int:
        """How many of the nodes, the most suspicious first, are corrected."""
        if self.share is not None:
            return round(self.share * len(order))
        watched = None if case.trial is None else case.trial.validation
        if case.trial is None or watched is None or not len(watched):
            return round(SHARE * len(order))
        labels: Any = case.trial.graph.labels
        _, truth = class_codes(labels)
        right = [(part.argmax(axis=1) == truth).astype(int) for part in (case.probabilities, copied, similar)]
        among = order[np.isin(order, watched)]
        plain, corrected, kept = (part[among] for part in right)
        gains = (kept - plain).sum() + np.concatenate([[0], np.cumsum(corrected - kept)])
        allowed = np.flatnonzero(gains >= min(0, gains.max()) - COST * len(among))
        most = allowed[-1]
        return len(order) if most == len(among) else int(_rank(order)[among[most]])

    def _corrected(self, corrector: Any, nodes: IntArray) -> NDArray[np.floating[Any]]:
        answers: _Answers = corrector
        return answers.probabilities[nodes]

    def _details(self, corrector: Any, nodes: IntArray) -> dict[str, Any]:
        return {"suspicion": corrector.suspicion[nodes], "corrected": corrector.corrected[nodes]}


def _rank(order: IntArray) -> NDArray[np.int64]:
    """The place of every node in an order."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place
