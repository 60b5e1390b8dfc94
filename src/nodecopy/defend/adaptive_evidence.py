"""An adaptive attack on the evidence defence: greedy search with exact evaluation of the defence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.csr import IntArray
from nodecopy._core.validation import check_integer, check_type
from nodecopy.attacks import Edits, TargetedAttack
from nodecopy.attacks.base import Nodes
from nodecopy.attacks.surrogate import SurrogateLabels
from nodecopy.classify import Trial
from nodecopy.defend.evidence_correction import EvidenceCorrection
from nodecopy.defend.evidence_defence import EvidenceDefence
from nodecopy.graph import Graph

STEPS_BETWEEN_SEARCHES = 5
"""All nodes are evaluated as new neighbours in every fifth step; in between only the best of them."""
TIE_WEIGHT = 1e-3
"""Weight of the loss without the limit of the evidence, which orders flips that the limit makes equal."""


class EvidenceEdits(Edits):
    """Edits of a graph with the defence that is attacked."""

    def __init__(self, graph: Graph, codes: NDArray[np.int64], correction: EvidenceCorrection) -> None:
        super().__init__(graph)
        self.codes, self.correction = codes, correction


@dataclass(eq=False, repr=False)
class AdaptiveEvidenceAttack(TargetedAttack):
    """Attack :class:`EvidenceDefence` by flips of the target's edges, evaluated by the defence itself.

    The attacker trains the defence on the graph without the edges of the targets, as the defence with
    ``retrain`` does. In each step the flip is made that raises the loss of the corrected prediction most:
    every edge of the target is tried for removal, and every other node, or the best of them, as a new
    neighbour. The default budget is the target's degree.

    Parameters
    ----------
    defence
        The defence; by default ``EvidenceDefence(retrain=True)``.
    n_candidates
        Number of new neighbours that are tried in the steps between full searches.
    together
        As in :class:`.TargetedAttack`.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import GCN
    >>> from nodecopy.defend import AdaptiveEvidenceAttack, EvidenceDefence
    >>> digits = datasets.load("digits").subgraph(range(200))
    >>> attack = AdaptiveEvidenceAttack(EvidenceDefence(GCN(), retrain=True))
    >>> attack.attack(digits, [7], budget=2, rng=0).spent.tolist()
    [2]
    """

    defence: EvidenceDefence | None = None
    n_candidates: int = 64
    together: bool = True

    def prepare(
        self, graph: Graph, targets: Nodes, train: ArrayLike | None, seed: SeedSequence
    ) -> Callable[[], EvidenceEdits]:
        name = type(self).__name__
        check_integer(self.n_candidates, f"n_candidates of {name}", low=1)
        defence = EvidenceDefence(retrain=True) if self.defence is None else self.defence
        check_type(defence, EvidenceDefence, f"defence of {name}", "an EvidenceDefence")
        labels = SurrogateLabels.from_graph(graph, targets, train, name)
        defence = type(defence)(**(defence.get_params(deep=False) | {"retrain": True}))
        trial = Trial(graph, labels.train, rng=seed)
        ((_, correction),) = defence.train_corrections([trial], [targets])
        assert isinstance(correction, EvidenceCorrection)
        return lambda: EvidenceEdits(graph, trial.codes, correction)

    def attack_target(self, edits: Edits, target: int, budget: int, rng: Generator) -> None:
        assert isinstance(edits, EvidenceEdits)
        code, candidates = edits.codes[target], np.zeros(0, np.int64)
        flipped = np.zeros(edits.graph.n_nodes, bool)
        flipped[target] = True
        best = self._losses(edits, target, code, [edits.neighbours(target)])[0]
        for step in range(budget):
            neighbours = edits.neighbours(target)
            removable = neighbours[~flipped[neighbours]]
            if step % STEPS_BETWEEN_SEARCHES == 0:
                is_free = ~flipped
                is_free[neighbours] = False
                candidates = np.flatnonzero(is_free)
            else:
                candidates = candidates[~flipped[candidates]]
            flips = np.concatenate([removable, candidates])
            if not len(flips):
                return
            changed = [np.setdiff1d(neighbours, [node]) for node in removable.tolist()]
            changed += [np.append(neighbours, node) for node in candidates.tolist()]
            losses = self._losses(edits, target, code, changed)
            chosen = int(losses.argmax())
            if losses[chosen] <= best:
                return
            best = losses[chosen]
            edits.flip(target, int(flips[chosen]))
            flipped[flips[chosen]] = True
            order = np.argsort(-losses[len(removable) :], kind="stable")
            candidates = candidates[order[: self.n_candidates]]

    def _losses(self, edits: Any, target: int, code: int, neighbourhoods: list[IntArray]) -> Any:
        """Return the loss of the corrected prediction with each neighbourhood."""
        limited, free = edits.correction.predict_neighbourhoods(target, neighbourhoods)
        return -limited[:, code] - TIE_WEIGHT * free[:, code]
