from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodecopy.classify import DGI, Classifier, Trial
from nodecopy.classify import regressions as dgi
from nodecopy.classify import regressions as infomax_embedding
from nodecopy.errors import InputError
from nodecopy.nn.infomax import train_infomax
from tests.contracts.classifiers import ClassifierContract, planted_graph


class TestDGI(ClassifierContract):
    is_random = False

    @pytest.fixture(scope="class")
    @classmethod
    def classifier(cls) -> Classifier:
        return DGI(16, n_epochs=60, learning_rate=0.01)


def test_trials_on_one_graph_share_their_embeddings(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []

    def train(features: Any, *others: Any, **options: Any) -> Any:
        calls.append(features)
        return train_infomax(features, *others, **options)

    monkeypatch.setattr(infomax_embedding, "train_infomax", train)
    graph, other = planted_graph(), planted_graph()
    small = DGI(4, n_epochs=2)
    small.fit_trials([Trial(graph, [0, 1, 2]), Trial(graph, [3, 4, 5]), Trial(other, [0, 1, 2])])
    assert len(calls) == 2
    small.fit(graph, [1, 2, 3])  # in a further round of self-training, say
    assert len(calls) == 2
    small.set_params(n_epochs=3).fit(graph, [1, 2, 3])
    assert len(calls) == 3


def test_the_penalty_is_chosen_by_validation() -> None:
    graph, small = planted_graph(), DGI(8, n_epochs=30, learning_rate=0.01)
    assert small.fit(graph, [0, 1, 2]).prediction_.details["C"] == dgi.DEFAULT_STRENGTH
    scores = {}
    for strength in dgi.STRENGTHS:
        scores[strength] = small.set_params(C=strength).fit(graph, [0, 1, 2, 4]).score(range(30, 60))
    chosen = small.set_params(C=None).fit(graph, [0, 1, 2, 4], validation=range(30, 60))
    assert chosen.prediction_.details["C"] == max(scores, key=lambda strength: scores[strength])
    assert len(set(scores.values())) > 1


def test_other_seeds_are_other_embeddings() -> None:
    first, second = (
        DGI(8, n_epochs=3, seed=seed).fit(planted_graph(), [0, 1, 2]).predict_proba() for seed in (0, 1)
    )
    assert not np.array_equal(first, second)


def test_without_a_seed_embeddings_are_drawn_from_that_of_fit() -> None:
    graph, small = planted_graph(), DGI(8, n_epochs=3, seed=None)
    first, again, other = (small.fit(graph, [0, 1, 2], rng=rng).predict_proba() for rng in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    trials = [Trial(graph, [0, 1, 2], rng=rng) for rng in (0, 1)]
    for prediction, alone in zip(small.fit_trials(trials), (first, other), strict=True):
        assert np.array_equal(prediction.probabilities, alone)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_hidden": 0}, "n_hidden of DGI must be an integer of at least 1; got 0"),
        ({"C": 0}, "C of DGI must be above 0; got 0"),
        ({"device": "abacus"}, "device must be"),
        ({"seed": -1}, "seed of DGI must be an integer of at least 0; got -1"),
    ],
)
def test_wrong_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        DGI(**parameters).fit(planted_graph(), [0, 1, 2])
