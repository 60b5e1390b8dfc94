"""Detection of attacked nodes where the targets are unknown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nodecopy import Graph, datasets
from nodecopy.classify import GCN
from nodecopy.defend import CopyingDefence, Defence, SuspectCorrection
from nodecopy.defend.base import remove_edges_of
from nodecopy.defend.unknown import choose_n_corrected
from nodecopy.errors import DataWarning, InputError
from tests.contracts.classifiers import planted_graph
from tests.contracts.defences import DefenceContract

QUICK: dict[str, Any] = {"n_epochs": 25, "learning_rate": 0.05}


class TestSuspectCorrection(DefenceContract):
    @pytest.fixture(scope="class")
    @classmethod
    def classifier(cls) -> Defence:
        return SuspectCorrection(GCN(**QUICK), n_donors=4, share=0.2)


def test_error_names_a_wrong_share() -> None:
    with pytest.raises(InputError, match="share of SuspectCorrection must be a number between 0 and 1"):
        SuspectCorrection(share=1.5).fit(planted_graph(), [0, 1, 2], rng=0)


@pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")
def test_scores_without_a_suspicious_node_warn() -> None:
    defence = SuspectCorrection(GCN(preset="kipf", n_epochs=1, learning_rate=1e-6), n_donors=4, share=0.2)
    with pytest.warns(DataWarning, match=r"highest suspicion score is .*: no node looks attacked"):
        defence.fit(planted_graph(), [0, 1, 2], rng=0).correct([4])


@pytest.fixture(scope="module")
def attacked() -> tuple[CopyingDefence, Graph, Any]:
    """The edges of thirty digits are replaced by random ones."""
    digits = datasets.load("digits").subgraph(np.arange(800))
    split = datasets.label_split(digits.labels, 10, validation=0, test=200, rng=0)
    targets = split.test[:30]
    draw = np.random.default_rng(0)
    adjacency = digits.adjacency.toarray()
    adjacency[targets] = adjacency[:, targets] = 0
    others = draw.integers(digits.n_nodes, size=(30, 8))
    adjacency[targets[:, None], others] = 1
    graph = digits.replace(adjacency=np.maximum(adjacency, adjacency.T))
    gcn = GCN(n_epochs=60).fit(graph, split.train, rng=0)
    return CopyingDefence().from_classifier(gcn, graph, rng=0), graph, targets


def test_attacked_nodes_are_detected_and_corrected(attacked: tuple[CopyingDefence, Graph, Any]) -> None:
    defence, graph, targets = attacked
    scores = defence.score_suspicion()
    assert scores.shape == (graph.n_nodes,)
    chosen = np.argsort(-scores)[:30]
    assert len(np.intersect1d(chosen, targets)) >= 24
    labels = np.array(graph.labels)
    before = defence.predict_proba().argmax(axis=1) == labels
    after = correct_share(defence, graph, 0.07).argmax(axis=1) == labels
    assert after[targets].mean() > before[targets].mean() + 0.2
    assert after.mean() > before.mean() - 0.01


def correct_share(defence: CopyingDefence, graph: Graph, share: float) -> Any:
    """Return the predictions of all nodes if a share of them is corrected."""
    suspicious = SuspectCorrection(share=share).from_classifier(defence.classifier_, graph, rng=0)
    np.testing.assert_allclose(suspicious.score_suspicion(), defence.score_suspicion(), atol=1e-6)
    return suspicious.correct_proba(np.arange(graph.n_nodes))


def test_share_of_nodes_is_corrected(attacked: tuple[CopyingDefence, Graph, Any]) -> None:
    defence, graph, _ = attacked
    every = defence.correct_proba(np.arange(graph.n_nodes))
    np.testing.assert_allclose(correct_share(defence, graph, 1.0), every, atol=1e-6)
    changed = (correct_share(defence, graph, 0.0) != correct_share(defence, graph, 0.1)).any(axis=1)
    assert 0 < changed.sum() <= round(0.1 * graph.n_nodes)


@pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")  # after so few epochs
@pytest.mark.filterwarnings("ignore:the highest suspicion score")  # after one epoch
def test_validation_nodes_decide_how_many_are_corrected() -> None:
    """Of four nodes the third correction makes a correct one wrong, so two are corrected."""
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3], features=np.eye(4) + np.eye(4, k=1), labels=[0, 0, 1, 1])
    fitted = SuspectCorrection(GCN(n_epochs=1), n_donors=1).fit(graph, [0, 3], validation=[1, 2], rng=0)
    order = np.array([1, 0, 2, 3])
    zero, one = np.array([[1.0, 0.0]] * 4), np.array([[0.0, 1.0]] * 4)
    right = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    state = replace(fitted.state_, probabilities=right)
    assert choose_n_corrected(None, state, order, zero, right) == 2
    assert choose_n_corrected(None, state, order, one, right) == 0
    assert choose_n_corrected(None, state, order, right, zero) == 4
    without_trial = replace(state, trial=None)
    assert choose_n_corrected(None, without_trial, order, zero, right) == 0  # a small share of four


def test_retrained_corrections_equal_training_without_the_suspects(
    attacked: tuple[CopyingDefence, Graph, Any],
) -> None:
    graph = attacked[1]
    split = datasets.label_split(graph.labels, 10, validation=0, test=200, rng=0)
    parameters: Any = {"share": 0.2, "n_donors": 5}
    defence = SuspectCorrection(GCN(n_epochs=60), retrain=True, **parameters).fit(graph, split.train, rng=0)
    scores = defence.score_suspicion()
    suspects = np.argsort(-scores, kind="stable")[: round(0.2 * graph.n_nodes)]
    pruned = remove_edges_of(graph, suspects)
    retrained = CopyingDefence(GCN(n_epochs=60), n_donors=5).fit(pruned, split.train, rng=0)
    np.testing.assert_allclose(defence.correct_proba(suspects), retrained.correct_proba(suspects), atol=1e-5)
    again = defence.correct_proba(suspects, graph=graph.replace(labels=None))
    np.testing.assert_allclose(again, defence.correct_proba(suspects), atol=1e-6)
