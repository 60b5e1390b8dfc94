"""SBM-GCN and DFNet: the contract, and what they promise beyond it."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nodecopy import Graph
from nodecopy._core.random import seed_sequence
from nodecopy.classify import SBMGCN, Classifier, DFNet, Trial, ensemble, load
from nodecopy.classify.base import Problems
from nodecopy.classify.sbm_gcn import _Generative
from nodecopy.classify.single_network import recipe_for
from nodecopy.defend import CopyingDefence
from nodecopy.errors import InputError
from nodecopy.nn.networks import Networks
from nodecopy.nn.stack import SparseStack
from nodecopy.nn.training import Targets
from tests.contracts.classifiers import ClassifierContract, planted_graph

FEW: dict[str, Any] = {"epochs": 12, "widths": (4, 4), "dropout": 0.5, "learning_rate": 0.02}
WRONG: dict[type[Classifier], list[tuple[dict[str, Any], str]]] = {
    SBMGCN: [
        ({"device": "abacus"}, "device must be"),
        ({"preset": "g3n"}, "preset must be one of g3nn; got 'g3n'. Did you mean g3nn"),
        ({"settings": {"hiden": 3}}, "a setting must be one of .* Did you mean hidden"),
        ({"settings": {"hidden": 0}}, "hidden of a recipe"),
        ({"within": 1.0}, "within of SBMGCN must lie strictly between 0 and 1; got 1"),
        ({"across": 1.5}, "across of SBMGCN must be a number between 0 and 1; got 1.5"),
        ({"weight": -1.0}, "weight of SBMGCN must be a number of at least 0; got -1"),
        ({"objective": "code"}, "objective of SBMGCN must be one of 'paper', 'authors'; got 'code'"),
    ],
    DFNet: [
        ({"device": "abacus"}, "device must be"),
        ({"settings": {"width": (3,)}}, "a setting must be one of .* Did you mean widths"),
        ({"settings": {"hidden": 3}}, "a setting must be one of"),
        ({"settings": {"widths": (0,)}}, "widths of a recipe must be an integer of at least 1; got 0"),
        ({"attention": True, "settings": {"heads": 0}}, "heads of a recipe must be an integer of at least 1"),
        ({"attention": False, "settings": {"heads": 2}}, "heads of DFNet must be left out without attention"),
    ],
}


class _Contract(ClassifierContract):
    def test_wrong_settings(self, classifier: Classifier, observed: Graph, nodes: Any) -> None:
        for changes, message in WRONG[type(classifier)]:
            wrong = copy.deepcopy(classifier)
            for name, value in changes.items():
                setattr(wrong, name, value)
            with pytest.raises(InputError, match=message):
                self.fit(wrong, observed, nodes)


class TestSBMGCN(_Contract):
    @pytest.fixture(scope="class", params=["paper", "authors"])
    @classmethod
    def classifier(cls, request: pytest.FixtureRequest) -> Classifier:
        return SBMGCN(objective=request.param, hidden=16, epochs=30, patience=10, learning_rate=0.03)


class TestDFNet(_Contract):
    @pytest.fixture(scope="class", params=[True, False])
    @classmethod
    def classifier(cls, request: pytest.FixtureRequest) -> Classifier:
        settings = {**FEW, "heads": 2} if request.param else {**FEW, "patience": 5}
        return DFNet(request.param, **settings)


@pytest.mark.parametrize("classifier", [SBMGCN(), DFNet(patience=5)])
def test_validation_nodes_decide_when_to_stop(classifier: Classifier) -> None:
    with pytest.raises(InputError, match="validation must be given, since training stops by the loss"):
        classifier.fit(planted_graph(), [0, 1, 2], rng=0)


@pytest.mark.parametrize("classifier", [SBMGCN(epochs=3), DFNet(**FEW)])
def test_a_graph_without_edges(classifier: Classifier) -> None:
    graph = planted_graph().replace(adjacency=np.zeros((60, 60)))
    assert np.isfinite(classifier.fit(graph, [0, 1, 2], validation=[3, 4], rng=0).predict_proba()).all()


@pytest.mark.parametrize("objective", ["paper", "authors"])
def test_losses_against_loops_over_edges_and_pairs(objective: str) -> None:
    graph, classifier = planted_graph(), SBMGCN(0.8, 0.3, weight=2.0, objective=objective)
    train = np.array([0, 1, 2, 5])
    recipe = recipe_for("sbm-gcn", "g3nn", {"dropout": 0.0})
    problems = Problems([Trial(graph, train, np.array([7]), 0)], recipe, "cpu")
    posterior = Networks(recipe, SparseStack([problems.features], problems.device), 3, [seed_sequence(1)])
    codes = problems.codes(train)
    goal = _Generative(classifier, problems, posterior, Targets([train], [codes], problems.device))
    with torch.no_grad():
        found = goal.losses(0).item()
        q, p = (
            logits[0].double().softmax(dim=1).numpy()
            for logits in (posterior.logits(goal.graphs, None, None), goal.prior.logits(None, None, None))
        )
    labels = dict(zip(train.tolist(), codes.tolist(), strict=True))
    source = q if objective == "paper" else p
    sure = [np.eye(3)[labels[i]] if i in labels else source[i] for i in range(60)]
    first, second = graph.adjacency.nonzero()
    edges = np.mean([sure[i] @ sure[j] for i, j in zip(first, second, strict=True)])
    pairs = np.mean([sure[i] @ sure[j] for i in range(60) for j in range(60)])
    drawn = -edges * math.log(0.8 / 0.3) - pairs * math.log(0.2 / 0.7)
    unknown = [i for i in range(60) if i not in labels]
    crossed = np.mean([-(q[i] @ np.log(p[i])) for i in unknown])
    entropy = np.mean([-(q[i] @ np.log(q[i])) for i in unknown])
    known = np.mean([-np.log(p[i, k]) - 2 * np.log(q[i, k]) for i, k in labels.items()])
    hidden = drawn + crossed - entropy if objective == "paper" else (drawn + crossed + entropy) / 3
    assert found == pytest.approx(hidden + known, rel=1e-4)


def test_both_networks_learn() -> None:
    """The prior's weights are trained with the posterior's, all with decay."""
    graph = planted_graph()
    recipe = recipe_for("sbm-gcn", "g3nn", {"epochs": 2, "patience": None})
    problems = Problems([Trial(graph, np.arange(3), None, 0)], recipe, "cpu")
    made: list[_Generative] = []
    before: list[torch.Tensor] = []

    def goal(posterior: Networks, targets: Targets) -> _Generative:
        made.append(_Generative(SBMGCN(), problems, posterior, targets))
        before.extend(weight.detach().clone() for weight in made[0].prior.weights)
        return made[0]

    problems.trained(problems.observed, [seed_sequence(0)], goal=goal)
    assert not any(torch.equal(*pair) for pair in zip(made[0].prior.weights, before, strict=True))
    assert all(group["weight_decay"] == recipe.weight_decay for group in made[0].groups)


def test_many_trials_are_trained_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = planted_graph()
    trials = [Trial(graph, np.arange(3), np.arange(3, 9), seed) for seed in range(5)]
    by_hand = [one for k in (0, 2, 4) for one in DFNet(**FEW).fit_trials(trials[k : k + 2])]
    monkeypatch.setitem(ensemble.NUMBERS_AT_ONCE, "cpu", 2 * 8 * 4 * (2 * 60 + 12))
    sizes: list[int] = []
    inner = Problems._trained

    def counted(self: Problems, adjacencies: Any, seeds: Any, models: range, *others: Any) -> Networks:
        sizes.append(len(models))
        return inner(self, adjacencies, seeds, models, *others)

    monkeypatch.setattr(Problems, "_trained", counted)
    found = DFNet(**FEW).fit_trials(trials)
    assert sizes == [2, 2, 1]
    for one, other in zip(found, by_hand, strict=True):
        assert np.array_equal(one.probabilities, other.probabilities)


@pytest.mark.parametrize("classifier", [SBMGCN(epochs=3), DFNet(**FEW)])
def test_behind_a_defence(classifier: Classifier, tmp_path: Path) -> None:
    graph = planted_graph()
    fitted = CopyingDefence(classifier).fit(graph, [0, 1, 2], validation=[3, 4], rng=0)
    assert fitted.correct([10, 11]).shape == (2, 3)
    fitted.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    np.testing.assert_allclose(again.predict_proba(graph), fitted.predict_proba(graph), atol=1e-6)
