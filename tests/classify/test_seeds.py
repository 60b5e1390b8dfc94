"""No two purposes of a trial share a stream of random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import pytest
from numpy.random import SeedSequence

from nodecopy import Graph, GraphModel
from nodecopy._core.random import Rng, seed_sequence
from nodecopy.classify import APPNP, GCN, MLP, SBMGCN, BayesianGCN, Classifier, DFNet
from nodecopy.classify.base import MAX_ROUNDS, ClassifierSeeds
from nodecopy.nn.networks import Networks
from tests.contracts.classifiers import planted_graph

Keys = list[tuple[str, tuple[int, ...]]]


class Recording(GraphModel[Graph]):
    """A graph model that samples the observed graph and records the keys of its seeds."""

    keys: Keys = []  # noqa: RUF012

    def fit(self, graph: Graph, *, rng: Rng = None) -> Self:
        self.graph_ = graph
        self.keys.append(("graph model", seed_sequence(rng).spawn_key))
        return self

    def draw(self, seed: SeedSequence) -> Graph:
        self.keys.append(("sampled graph", seed.spawn_key))
        return self.graph_


def record(monkeypatch: pytest.MonkeyPatch, classifier: Classifier) -> Keys:
    """Fit a classifier and return the purpose and the key of every seed that it uses."""
    Recording.keys.clear()
    initialise = Networks.initialise.__func__  # type: ignore[attr-defined]

    def initialise_and_record(
        cls: type[Networks], recipe: Any, features: Any, n_classes: int, seeds: Sequence[SeedSequence]
    ) -> Any:
        Recording.keys.extend((f"network with {recipe.propagation}", seed.spawn_key) for seed in seeds)
        return initialise(cls, recipe, features, n_classes, seeds)

    monkeypatch.setattr(Networks, "initialise", classmethod(initialise_and_record))
    classifier.fit(planted_graph(), range(9), validation=range(9, 20), rng=0)
    return list(Recording.keys)


@pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")  # after so few epochs
@pytest.mark.parametrize(
    ("classifier", "n_seeds"),
    [
        (MLP(n_epochs=1), 1),
        (GCN(n_epochs=1), 1),
        (APPNP(n_epochs=1), 1),
        (DFNet(widths=(2,), n_epochs=1), 1),
        (SBMGCN(base=GCN(preset="g3nn", n_epochs=1)), 2),
        (BayesianGCN(Recording(), 2, 1, n_rounds=12, base=GCN(n_epochs=1)), 1 + 12 * (2 + 1 + 2)),
        (BayesianGCN(Recording(), 3, 1, schedule="online", base=GCN(n_epochs=2)), 1 + 3 * (1 + 1)),
    ],
    ids=["mlp", "gcn", "appnp", "dfnet", "sbm-gcn", "bayesian-rounds", "bayesian-online"],
)
def test_every_seed_has_one_purpose(
    monkeypatch: pytest.MonkeyPatch, classifier: Classifier, n_seeds: int
) -> None:
    used = record(monkeypatch, classifier)
    keys = [key for _, key in used]
    assert len(keys) == len(set(keys)) == n_seeds
    subtrees: dict[int, set[str]] = {}
    for purpose, key in used:
        subtrees.setdefault(key[0], set()).add(purpose)
    assert all(len(purposes) == 1 for purposes in subtrees.values())


def test_numbers_of_purposes_with_rounds_do_not_overlap() -> None:
    seeds = ClassifierSeeds
    assert list(seeds) == sorted(seeds)
    assert seeds.NETWORKS + MAX_ROUNDS <= seeds.GRAPHS
    assert seeds.GRAPHS + MAX_ROUNDS <= seeds.ONLINE_NETWORKS
    assert seeds.ONLINE_NETWORKS < seeds.GRAPH_MODEL < 10**7


def test_the_numbers_of_stored_results_stay() -> None:
    numbers = {seed.name: seed.value for seed in ClassifierSeeds}
    assert numbers == {
        "NETWORKS": 0,
        "LABEL_PRIOR": 1,
        "GRAPHS": 1000,
        "ONLINE_NETWORKS": 2000,
        "SELF_TRAINING": 3000,
        "GRAPH_MODEL": 10**6,
    }
