"""NetGAN: transition counts, training, when it stops, and errors about settings and graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from nodecopy import Graph, GraphModel, Interactions, datasets
from nodecopy.errors import InputError
from nodecopy.generators import NetGAN
from nodecopy.generators.netgan import WalkGenerator, count_transitions
from tests.contracts.graph_models import GraphModelContract, community_graph
from tests.generators.test_walks import torch_random

SMALL: dict[str, Any] = {
    "walk_length": 3,
    "batch_size": 16,
    "n_hidden": 8,
    "n_critic_hidden": 8,
    "n_embedding": 6,
    "n_transitions": 4000,
}


def ring(n_nodes: int) -> Graph:
    return Graph.from_edges(np.arange(n_nodes), (np.arange(n_nodes) + 1) % n_nodes)


class TestContract(GraphModelContract):
    @pytest.fixture(scope="class")
    @classmethod
    def model(cls) -> GraphModel[Graph]:
        return NetGAN(n_steps=4, evaluate_every=2, **SMALL)

    @pytest.fixture(scope="class", params=[False, True], ids=["binary", "weighted"])
    @classmethod
    def observed(cls, request: pytest.FixtureRequest) -> Graph:
        return community_graph(weighted=request.param)


def test_transitions_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = WalkGenerator(7, 4, 5, torch_random())
    walks = generator.draw(50, 4, torch_random(1)).numpy()
    expected = np.zeros((7, 7), int)
    np.add.at(expected, (walks[:, :-1], walks[:, 1:]), 1)
    counts = count_transitions(generator, 148, 4, torch_random(1))
    assert np.array_equal(counts.toarray(), expected + expected.T)
    monkeypatch.setattr("nodecopy.generators.netgan.LOGITS_AT_ONCE", {"cpu": 70})
    monkeypatch.setattr("nodecopy.generators.netgan.TRANSITIONS_AT_ONCE", 60)
    in_chunks = count_transitions(generator, 148, 4, torch_random(1))
    assert in_chunks.sum() == counts.sum() == 300


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.filterwarnings("ignore:.*capturable:UserWarning")
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_gpu)])
def test_training_learns_the_edges_of_a_ring(device: str) -> None:
    """Share of a generator's transitions that are edges: two of seven by chance."""
    graph, shares = ring(8), []
    sizes = SMALL | {"batch_size": 32, "n_hidden": 16, "n_critic_hidden": 16, "n_embedding": 8}
    for n_steps in (1, 160):
        model = NetGAN(learning_rate=0.02, n_steps=n_steps, device=device, **sizes)
        counts = model.fit(graph, rng=0).counts_
        shares.append(counts.multiply(graph.adjacency).sum() / counts.sum())
    assert shares[0] < 0.35
    assert shares[1] > 0.5


def test_training_stops_by_overlap_and_by_callback() -> None:
    karate, steps = datasets.load("karate"), []
    model = NetGAN(overlap=0.0, n_steps=9, evaluate_every=3, **SMALL)
    assert model.fit(karate, rng=0, callback=lambda step, _: steps.append(step)).n_steps_ == 3
    model.overlap = 1.0
    assert model.fit(karate, rng=0, callback=lambda step, _: step == 6).n_steps_ == 6
    assert model.fit(karate, rng=0, callback=lambda step, _: steps.append(step)).n_steps_ == 9
    assert steps == [3, 3, 6, 9]
    assert model.sample(rng=0).n_edges == karate.n_edges


def test_the_global_generator_of_torch_is_not_used() -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    NetGAN(n_steps=2, **SMALL).fit(ring(5), rng=0)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    "graph",
    [Graph.from_edges([0], [1]), Graph.from_edges([0, 1, 2, 4, 5], [1, 2, 0, 5, 6], node_ids=range(9))],
    ids=["one edge", "components and isolated nodes"],
)
def test_trees_components_and_isolated_nodes(graph: Graph) -> None:
    for sample in NetGAN(n_steps=2, **SMALL).fit(graph, rng=0).sample_many(5, rng=0):
        assert sample.n_edges == graph.n_edges
        assert not sample.degrees[graph.degrees == 0].any()


def test_few_transitions_give_few_edges() -> None:
    model = NetGAN(n_steps=1, **SMALL | {"n_transitions": 10}).fit(datasets.load("karate"), rng=0)
    n_pairs = np.count_nonzero(np.triu(model.counts_.toarray(), 1))
    assert n_pairs <= 10
    assert model.sample(rng=0).n_edges == n_pairs


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"overlap": -0.1}, r"overlap of NetGAN .* got -0\.1"),
        ({"n_steps": 0}, "n_steps of NetGAN .* got 0"),
        ({"evaluate_every": 0}, "evaluate_every of NetGAN .* got 0"),
        ({"n_transitions": 1e6}, r"n_transitions of NetGAN .* got 1000000\.0"),
        ({"walk_length": 1}, "walk_length of NetGAN .* at least 2; got 1"),
        ({"batch_size": 0}, "batch_size of NetGAN .* got 0"),
        ({"n_critic_steps": None}, "n_critic_steps of NetGAN .* got None"),
        ({"learning_rate": "fast"}, "learning_rate of NetGAN .* got 'fast'"),
        ({"device": "abacus"}, "device .* got 'abacus'"),
    ],
)
def test_invalid_settings(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        NetGAN(**options).fit(ring(5))


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (Graph(np.zeros((0, 0))), "graph of NetGAN must have an edge"),
        (Graph(np.zeros((3, 3))), "graph of NetGAN must have an edge; got Graph"),
        (community_graph(directed=True), "graph of NetGAN must be undirected"),
        (Interactions(np.eye(3)), "graph of NetGAN must be a Graph.*; got nodecopy.Interactions"),
    ],
)
def test_graphs_that_cannot_be_fitted(graph: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        NetGAN().fit(graph, rng=0)


def test_training_that_overflows() -> None:
    with pytest.raises(InputError, match=r"settings of NetGAN must not be so large .* learning_rate of 1e"):
        NetGAN(learning_rate=1e30, n_steps=4, n_transitions=2000).fit(datasets.load("karate"), rng=0)
