from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodecopy import Graph, datasets
from nodecopy.errors import InputError

pytest.importorskip("torch")
pytest.importorskip("sklearn")

from nodecopy.classify import GCN
from nodecopy.defend import CopyingDefence
from nodecopy.report import attacked_node
from nodecopy.report.attacked_node import MAX_ATTACKED, MAX_DEGREE, PREFERRED_DEGREE, attack_and_correct


@pytest.fixture(scope="module")
def digits() -> Any:
    return datasets.load("digits")


@pytest.fixture(scope="module")
def split(digits: Any) -> Any:
    return datasets.label_split(digits.labels, 5, validation=0, test=300, rng=0)


def test_the_attacked_digit_is_misled_and_corrected(digits: Any, split: Any) -> None:
    repair = attack_and_correct(digits, split.train, split.test, rng=0)
    before, attacked, repaired = repair.stages
    own = digits.adjacency[[repair.node]].indices.tolist()
    assert repair.node in split.test
    assert before.neighbours == [(node, "own") for node in own]
    assert PREFERRED_DEGREE <= len(own) == repair.n_flips <= MAX_DEGREE
    assert {node for node, kind in attacked.neighbours if kind == "added"}.isdisjoint(own)
    assert {kind for _, kind in repaired.neighbours} == {"copied"}
    truth = repair.codes[repair.node]
    predicted = [stage.probabilities.argmax() for stage in repair.stages]
    assert predicted[0] == predicted[2] == truth != predicted[1]
    assert 1 <= repair.n_attacked <= MAX_ATTACKED
    assert repair.node not in repair.donors
    assert np.array_equal(repair.classes, np.arange(10))
    assert repair.evidence is not None
    assert repair.evidence.corrected == truth
    neighbours = {node for node, _ in attacked.neighbours}
    assert {edge.neighbour for edge in repair.evidence.edges} == neighbours


def test_the_node_that_came_closest_is_shown_if_none_is_misled(
    digits: Any, split: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[int, float]] = []

    def harmless(graph: Graph, node: int, train: Any, rng: Any) -> tuple[Graph, Any]:
        defence: Any = CopyingDefence().fit(graph, train, rng=len(calls))
        calls.append((node, float(defence.predict_proba()[node, digits.labels[node]])))
        return graph, defence

    monkeypatch.setattr(attacked_node, "MAX_ATTACKED", 4)
    monkeypatch.setattr(attacked_node, "_attack", harmless)
    repair = attack_and_correct(digits, split.train, split.test, rng=0)
    clean: Any = GCN().fit(digits, split.train, rng=0).predict_proba()
    losses = {node: clean[node, digits.labels[node]] - after for node, after in calls}
    assert repair.n_attacked == len(calls) == 4
    assert losses[repair.node] == max(losses.values())


def test_somebody_must_be_fit_to_be_attacked(digits: Any, split: Any) -> None:
    with pytest.raises(InputError, match="an attack needs a node with 1 to 8 neighbours"):
        attack_and_correct(digits, split.train, [], rng=0)
