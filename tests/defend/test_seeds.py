"""Whatever a defence draws is independent of how its classifier was trained."""

from __future__ import annotations

from typing import Any

import pytest
from numpy.random import SeedSequence

from nodecopy.classify import GCN, BayesianGCN, Classifier
from nodecopy.classify import batch as classify_batch
from nodecopy.classify import bayesian as classify_bayesian
from nodecopy.defend import CopyingDefence, donors
from nodecopy.defend import copying_correction as defend_copying
from tests.contracts.classifiers import planted_graph

QUICK: dict[str, Any] = {"n_epochs": 1}


@pytest.mark.parametrize(
    "classifier",
    [
        GCN(**QUICK),
        BayesianGCN(n_graphs=2, n_weight_samples=1, n_rounds=12, base=GCN(**QUICK)),
        BayesianGCN(n_graphs=2, schedule="online", base=GCN(**QUICK)),
    ],
)
def test_no_seed_of_the_classifier_is_used_again(
    monkeypatch: pytest.MonkeyPatch, classifier: Classifier
) -> None:
    of_classifier, of_embedding = [], []

    def child(seed: SeedSequence, number: int) -> SeedSequence:
        of_classifier.append((*seed.spawn_key, number))
        return SeedSequence(seed.entropy, spawn_key=of_classifier[-1])

    def search(*settings: Any, seed: SeedSequence, **others: Any) -> Any:
        of_embedding.append(seed.spawn_key)
        return found(*settings, seed=seed, **others)

    found = donors.search
    monkeypatch.setattr(classify_batch, "child", child)
    monkeypatch.setattr(classify_bayesian, "child", child)
    monkeypatch.setattr(defend_copying, "search", search)
    defence = CopyingDefence(classifier, n_donors=3).fit(planted_graph(), range(9), rng=0)

    (embedding,) = of_embedding
    own = {embedding[0], defence.corrector_.draws.spawn_key[0]}
    assert len(own) == 2
    assert of_classifier
    # A subtree belongs to one of them alone, since seeds below a shared one might be the same.
    assert own.isdisjoint(key[0] for key in of_classifier)
