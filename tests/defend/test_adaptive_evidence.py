"""The adaptive attack on the evidence defence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodecopy import Graph
from nodecopy.classify import GCN
from nodecopy.defend import AdaptiveEvidenceAttack, EvidenceDefence
from nodecopy.errors import InputError
from tests.contracts.attacks import AttackContract
from tests.contracts.classifiers import planted_graph

QUICK: dict[str, Any] = {"n_epochs": 25, "learning_rate": 0.05}
DEFENCE = EvidenceDefence(GCN(**QUICK), n_donors=4, retrain=True)
TRAIN = np.arange(9)


class TestAdaptiveEvidenceAttack(AttackContract):
    budget = 2

    def build(self, *, together: bool = True) -> AdaptiveEvidenceAttack:
        return AdaptiveEvidenceAttack(DEFENCE, together=together)

    def test_attacks_alone_do_not_depend_on_other_targets(self, graph: Graph) -> None:
        """They do: the defence is trained without the edges of all targets."""
        alone, together = self.run(graph, together=False), self.run(graph)
        first = alone.targets[0]
        assert np.array_equal(alone.of(first).flips, together.of(first).flips)


def test_every_flip_is_the_best_one() -> None:
    graph = planted_graph()
    attack = AdaptiveEvidenceAttack(DEFENCE)
    flips = attack.attack(graph, [40], budget=1, train=TRAIN, rng=0).flips
    start = attack.prepare(graph, np.array([40]), TRAIN, _surrogate_seed(0))
    edits = start()
    neighbours = edits.neighbours(40)
    losses = {}
    for node in np.delete(np.arange(60), 40).tolist():
        changed = np.setxor1d(neighbours, [node])
        losses[node] = attack._losses(edits, 40, int(edits.codes[40]), [changed])[0]
    assert flips.tolist() == [[40, max(losses, key=losses.get)]]  # type: ignore[arg-type]


def test_more_flips_raise_the_loss() -> None:
    graph = planted_graph().replace()
    targets = [40, 41, 42]
    attack = AdaptiveEvidenceAttack(EvidenceDefence(GCN(**QUICK), n_donors=4, max_evidence=50.0))
    truth = np.asarray(graph.named_labels())[targets]
    fitted = EvidenceDefence(GCN(**QUICK), n_donors=4, max_evidence=50.0, retrain=True)
    fitted.fit(graph, TRAIN, rng=3)
    columns = [fitted.classes_.tolist().index(name) for name in truth]
    before, after = (
        fitted.correct_proba(targets, graph=attacked)[range(3), columns].mean()
        for attacked in (graph, attack.attack(graph, targets, budget=6, train=TRAIN, rng=0).apply(graph))
    )
    assert after < before - 0.1


def test_errors_name_wrong_parameters() -> None:
    graph = planted_graph()
    with pytest.raises(InputError, match="defence of AdaptiveEvidenceAttack must be an EvidenceDefence"):
        AdaptiveEvidenceAttack(GCN()).attack(graph, [1])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="n_candidates of AdaptiveEvidenceAttack must be"):
        AdaptiveEvidenceAttack(n_candidates=0).attack(graph, [1])


def _surrogate_seed(seed: int) -> Any:
    from nodecopy._core.random import child, seed_sequence
    from nodecopy.attacks.base import AttackSeeds

    return child(seed_sequence(seed), AttackSeeds.SURROGATE)
