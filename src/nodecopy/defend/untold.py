"""Copying where nobody tells who was attacked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodecopy import checks
from nodecopy.classify import Classifier
from nodecopy.defend.base import Case
from nodecopy.defend.copying import CopyingDefence
from nodecopy.defend.donors import search
from nodecopy.graph import Graph
from nodecopy.rows import IntArray


@dataclass(frozen=True, eq=False)
class _Answers:
    """What is said of every node, and how attacked it looks."""

    probabilities: NDArray[np.floating[Any]]
    suspicion: NDArray[np.float64]


class SuspectCorrection(CopyingDefence):
    """A copying defence that finds the attacked nodes itself; :meth:`correct` may be asked for all nodes.

    The most suspicious nodes (:meth:`suspects`) are corrected. All others are predicted with the
    neighbourhoods of donors, too, but of donors that live as they do (``"neighbourhoods"``), which makes
    up for those that are corrected without need.

    Parameters
    ----------
    share
        How many nodes are taken for attacked, as a share of all: the more, the more victims are found,
        and the more others pay for it.
    classifier, donors, n_donors, n_graphs, place, device
        As in :class:`.CopyingDefence`.
    """

    def __init__(
        self,
        classifier: Classifier | None = None,
        donors: Any = "expected",
        n_donors: int = 10,
        n_graphs: int | None = None,
        *,
        share: float = 0.07,
        place: str = "donor",
        device: str = "cpu",
    ) -> None:
        super().__init__(classifier, donors, n_donors, n_graphs, place=place, device=device)
        self.share = share

    def suspects(self, *, graph: Graph | None = None) -> NDArray[np.float64]:
        answers: _Answers = self._prepared(graph)[0]
        return answers.suspicion

    suspects.__doc__ = CopyingDefence.suspects.__doc__

    def _check(self, n_nodes: int) -> None:
        super()._check(n_nodes)
        checks.real(self.share, "share of SuspectCorrection", low=0.0, high=1.0)

    def _corrector(self, case: Case) -> Any:
        prepared = super()._corrector(case)
        scores, copied = self._suspicion(prepared)
        alike = search("neighbourhoods", case.graph, seed=case.seed, device=self.device, owner="suspects")
        found = self._copied(replace(prepared, search=alike), np.arange(len(scores)))
        chosen = np.argsort(-scores, kind="stable")[: round(self.share * len(scores))]
        found[chosen] = copied[chosen]
        return _Answers(found, scores)

    def _corrected(self, corrector: Any, nodes: IntArray) -> NDArray[np.floating[Any]]:
        answers: _Answers = corrector
        return answers.probabilities[nodes]

    def _details(self, corrector: Any, nodes: IntArray) -> dict[str, Any]:
        return {"suspicion": corrector.suspicion[nodes]}

    def _arguments(self) -> dict[str, Any]:
        return {**super()._arguments(), "share": self.share}
