"""The adaptive attack on the evidence defence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodecopy import Graph
from nodecopy.classify import GCN
from nodecopy.defend import AdaptiveEvidenceAttack, EvidenceDefence
from nodecopy.defend.adaptive import TargetEvidence
from nodecopy.defend.evidence import EvidenceCorrection
from nodecopy.errors import InputError
from tests.contracts.attacks import AttackContract
from tests.contracts.classifiers import planted_graph
from tests.defend.test_evidence_defence import rewired

QUICK: dict[str, Any] = {"n_epochs": 25, "learning_rate": 0.05}
DEFENCE = EvidenceDefence(GCN(**QUICK), n_donors=4, uncertain_share=1.0, retrain=True)
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


def likelihood_of(evidence: TargetEvidence, neighbours: Any) -> tuple[Any, Any]:
    """The log-likelihood of a neighbourhood, and a change that changes nothing."""
    log_likelihood = np.log(evidence.factors[neighbours]).sum(axis=0)
    return log_likelihood, np.ones((1, *log_likelihood.shape))


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_neighbourhoods_are_predicted_as_graphs_are(share: float) -> None:
    graph = planted_graph()
    fitted = EvidenceDefence(GCN(**QUICK), n_donors=4, uncertain_share=share, retrain=True)
    fitted.fit(graph, TRAIN, rng=0)
    ((_, correction),) = fitted.train_corrections([fitted.trial_], [np.array([40])])
    assert isinstance(correction, EvidenceCorrection)
    evidence = TargetEvidence(correction, 40, np.arange(60))
    for part in ([1, 30], [50], []):
        corrected, always = evidence.predict(*likelihood_of(evidence, part))
        expected = fitted.correct_proba([40], graph=rewired(graph, 40, part))[0]
        np.testing.assert_allclose(np.exp(corrected[0]), expected, atol=1e-5)
        np.testing.assert_allclose(np.exp(always).sum(axis=1), 1)


def test_every_flip_is_the_best_one() -> None:
    """Each of three flips against an evaluation of the defence for every flip."""
    graph = planted_graph()
    attack = AdaptiveEvidenceAttack(DEFENCE)
    flips = attack.attack(graph, [40], budget=3, train=TRAIN, rng=0).flips
    edits = attack.prepare(graph, np.array([40]), TRAIN, _surrogate_seed(0))()
    evidence, code = TargetEvidence(edits.correction, 40, np.arange(60)), int(edits.codes[40])
    others, neighbours = np.delete(np.arange(60), 40).tolist(), edits.neighbours(40)
    for _, flipped in flips.tolist():
        losses = {}
        for node in others:
            rows = np.setxor1d(neighbours, [node])
            losses[node] = evidence.losses(code, *likelihood_of(evidence, rows))[0]
        assert losses[flipped] == pytest.approx(max(losses.values()), abs=1e-9)
        neighbours = np.setxor1d(neighbours, [flipped])
        others.remove(flipped)
    assert len(flips) == 3


def test_new_neighbours_are_drawn_in_large_graphs() -> None:
    graph = planted_graph()
    few = AdaptiveEvidenceAttack(DEFENCE, n_candidates=5).attack(graph, [40], budget=4, train=TRAIN, rng=0)
    assert 1 <= len(few.flips) <= 4


def test_more_flips_raise_the_loss() -> None:
    graph = planted_graph().replace()
    targets = [40, 41, 42]
    attack = AdaptiveEvidenceAttack(EvidenceDefence(GCN(**QUICK), n_donors=4, uncertain_share=1.0))
    truth = np.asarray(graph.named_labels())[targets]
    fitted = EvidenceDefence(GCN(**QUICK), n_donors=4, uncertain_share=1.0, retrain=True)
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
