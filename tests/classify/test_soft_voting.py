from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodecopy.classify import GCN, SGC, Classifier, LabelPropagation, SelfTraining, SoftVoting, Trial
from nodecopy.classify.self_training import VotingNetworks
from nodecopy.errors import InputError
from tests.contracts.classifiers import ClassifierContract, planted_graph


class TestSoftVoting(ClassifierContract):
    @pytest.fixture(scope="class")
    @classmethod
    def classifier(cls) -> Classifier:
        return SoftVoting([GCN(n_epochs=30), SGC()])


@pytest.mark.parametrize("weights", [None, [1, 3], np.array([0.0, 2.0]), [1e308, 1e308]])
def test_probabilities_are_the_weighted_mean(weights: Any) -> None:
    graph, train = planted_graph(), [0, 1, 2]
    voters = [GCN(n_epochs=20), SGC()]
    shares = np.array([1, 1] if weights is None or weights[0] > 3 else weights, float)
    own = [voter.fit(graph, train, rng=0) for voter in voters]
    fitted = SoftVoting([GCN(n_epochs=20), SGC()], weights).fit(graph, train, rng=0)
    expected = np.average([voter.predict_proba() for voter in own], axis=0, weights=shares)
    np.testing.assert_allclose(fitted.predict_proba(), expected, atol=1e-6)
    np.testing.assert_allclose(fitted.predict_proba(graph), expected, atol=1e-5)


def test_disagreement_is_epistemic_uncertainty() -> None:
    graph = planted_graph()
    alone = SGC().fit(graph, [0, 1, 2]).uncertainty().epistemic
    voted = SoftVoting([SGC(), SGC(n_steps=0)]).fit(graph, [0, 1, 2]).uncertainty().epistemic
    assert alone.max() < 1e-6 < voted.max()


def test_a_voter_that_predicts_on_one_graph_only_makes_the_vote_do_so() -> None:
    graph = planted_graph()
    fitted = SoftVoting([SGC(), LabelPropagation()]).fit(graph, [0, 1, 2])
    with pytest.raises(InputError, match="only if all of its classifiers do; got SGC, LabelPropagation"):
        fitted.predict(graph)


def test_it_is_a_base_of_self_training() -> None:
    graph = planted_graph()
    base = SoftVoting([SGC(), LabelPropagation()])
    assert SelfTraining(base, 2).fit(graph, [0, 1, 2], rng=0).score() > 0.8


def test_a_decision_of_all_classifiers_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "nodecopy"):
        SoftVoting([SGC(), SGC(n_steps=0)]).fit(planted_graph(), [0, 1, 2])
    assert sum(message.startswith("features:") for message in caplog.messages) == 1


def test_scalings_of_word_counts_say_whose_they_are(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "nodecopy"):
        SoftVoting([GCN(n_epochs=2), SGC()]).fit(planted_graph(), [0, 1, 2], rng=0)
    scaled, own = (message for message in caplog.messages if message.startswith("features:"))
    assert "scaled to a length of one, as usual" in scaled
    assert "used as they are for SGC, as usual" in own


def test_its_device_is_that_of_its_networks() -> None:
    assert SoftVoting([SGC(), GCN(device="cuda")]).network_device() == "cuda"
    assert SoftVoting([SGC(), GCN()]).network_device() == "cpu"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([[]], "classifiers of SoftVoting must be a list of at least one classifier"),
        ([[SGC]], "classifiers of SoftVoting must be a list of at least one classifier"),
        ([SGC()], "classifiers of SoftVoting must be a list of at least one classifier"),
        ([{SGC()}], "classifiers of SoftVoting must be a list of at least one classifier"),
        ([[SGC()], [1, 2]], "weights of SoftVoting must hold one entry per classifier"),
        ([[SGC(), SGC()], [1, -1]], "weights of SoftVoting must be at least 0, and one above 0"),
        ([[SGC(), SGC()], [0, 0]], "weights of SoftVoting must be at least 0, and one above 0"),
        ([[SGC()], [np.nan]], "weights of SoftVoting must hold finite numbers"),
    ],
)
def test_wrong_parameters(arguments: list[Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        SoftVoting(*arguments).fit_trials([Trial(planted_graph(), [0, 1, 2])])


def test_damaged_networks_are_refused() -> None:
    trained = SGC().fit(planted_graph(), [0, 1, 2]).prediction_.networks
    assert trained is not None
    VotingNetworks((trained,), np.ones(1)).check(3)
    with pytest.raises(InputError, match="weights of the vote must be at least 0 with a sum of 1"):
        VotingNetworks((trained,), np.array([0.5])).check(3)
    with pytest.raises(InputError, match="networks of the vote must predict"):
        VotingNetworks(("no network",), np.ones(1)).check(3)  # type: ignore[arg-type]
