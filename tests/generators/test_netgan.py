"""NetGAN: gathered and N-wide forms agree, walks are walks, training learns, and what a user may do wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.random import SeedSequence
from torch import Tensor
from torch.nn.functional import one_hot

from nodecopy import Graph, GraphModel, Interactions, datasets
from nodecopy.errors import InputError
from nodecopy.generators import NetGAN
from nodecopy.generators.netgan import transition_counts
from nodecopy.generators.walks import LSTM, PENALTY, Critic, Drawn, RealWalks, WalkGenerator, taken_rows
from tests.contracts.graph_models import GraphModelContract, community_graph

CPU = torch.device("cpu")
SMALL: dict[str, Any] = {
    "walk_length": 3,
    "batch_size": 16,
    "hidden": 8,
    "critic_hidden": 8,
    "embedding": 6,
    "n_transitions": 4000,
}


def drawn(seed: int = 0) -> Drawn:
    return Drawn(SeedSequence(seed), CPU)


def ring(n_nodes: int) -> Graph:
    return Graph.from_edges(np.arange(n_nodes), (np.arange(n_nodes) + 1) % n_nodes)


class TestContract(GraphModelContract):
    @pytest.fixture(scope="class")
    @classmethod
    def model(cls) -> GraphModel[Graph]:
        return NetGAN(max_iterations=4, evaluate_every=2, **SMALL)

    @pytest.fixture(scope="class", params=[False, True], ids=["binary", "weighted"])
    @classmethod
    def observed(cls, request: pytest.FixtureRequest) -> Graph:
        return community_graph(weighted=request.param)


def test_real_walks_follow_edges_evenly() -> None:
    adjacency = datasets.load("karate").adjacency
    walks = RealWalks(adjacency, CPU).draw(20_000, 3, drawn()).numpy()
    assert walks.shape == (20_000, 3)
    assert (np.asarray(adjacency[walks[:, :-1].ravel(), walks[:, 1:].ravel()]) > 0).all()
    starts = np.bincount(walks[:, 0], minlength=34)
    assert np.abs(starts - 20_000 / 34).max() < 5 * np.sqrt(20_000 / 34)
    after = walks[walks[:, 0] == 33, 1]
    counts = np.bincount(after, minlength=34)[adjacency.indices[slice(*adjacency.indptr[33:35])]]
    mean = len(after) / len(counts)
    assert np.abs(counts - mean).max() < 5 * np.sqrt(mean)


def test_the_layer_is_the_lstm_of_torch() -> None:
    layer = LSTM(5, 3, drawn())
    inputs, state = drawn(1).normal(7, 5), (drawn(2).normal(7, 3), drawn(3).normal(7, 3))
    with torch.no_grad():
        layer.weights[2].copy_(drawn(4).normal(12))
    order = torch.cat([torch.arange(6), torch.arange(9, 12), torch.arange(6, 9)])  # content before output
    first, second = (weight.T[order] for weight in layer.weights[:2])
    expected = torch.lstm_cell(
        inputs, state, first, second, (layer.weights[2] + layer.forget)[order], torch.zeros(12)
    )
    for mine, theirs in zip(layer.step(layer.gates(inputs), state), expected, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_straight_through_gradients_are_those_of_one_hot_vectors() -> None:
    logits, table = drawn().normal(4, 9).requires_grad_(), drawn(1).normal(9, 5).requires_grad_()
    node, outer = torch.tensor([3, 3, 0, 8]), drawn(2).normal(4, 5)

    def gradients(rows: Tensor) -> tuple[Tensor, ...]:
        return torch.autograd.grad((rows * outer).sum(), (logits, table))

    soft = logits.softmax(dim=1)
    hard = (one_hot(node, 9) - soft).detach() + soft
    expected = gradients(hard @ table)
    rows = taken_rows(table, node, logits.softmax(dim=1))
    assert torch.equal(rows, table[node])
    for mine, theirs in zip(gradients(rows), expected, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_critic_loss_is_that_of_n_wide_walks() -> None:
    """Values and the gradients of every weight, second derivatives included."""
    critic, n_nodes = Critic(11, 4, 5, drawn()), 11
    real, fake = (torch.randint(n_nodes, (6, 3), generator=drawn(seed).source) for seed in (1, 2))
    wide = [one_hot(walks, n_nodes).float() for walks in (real, fake)]
    between = (wide[0] + drawn(3).uniform(6, 1, 1) * (wide[1] - wide[0])).requires_grad_()
    (slopes,) = torch.autograd.grad(critic.scores(between @ critic.down).sum(), between, create_graph=True)
    penalty = ((slopes.square().sum(dim=(1, 2)).sqrt() - 1) ** 2).mean()
    scores = [critic.scores(walks @ critic.down).mean() for walks in wide]
    expected = scores[1] - scores[0] + PENALTY * penalty
    found = critic.loss(real, fake, drawn(3))
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)
    pairs = zip(*(torch.autograd.grad(loss, critic.weights[:-1]) for loss in (found, expected)), strict=True)
    for mine, theirs in pairs:
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-6)


def test_both_ways_to_make_walks_have_the_same_distribution() -> None:
    """Node numbers by inversion, embedded ones by Gumbel noise; the second node tells, given the first."""
    generator, n = WalkGenerator(3, 4, 2, drawn()), 20_000
    with torch.no_grad():
        for weight in generator.weights:
            weight.copy_(drawn(5).normal(*weight.shape))
    numbers = generator.draw(n, 2, drawn(1)).numpy()
    rows = generator.embedded(n, 2, torch.tensor(5.0), torch.eye(3), drawn(2)).argmax(dim=2).numpy()
    counts = [np.bincount(walks @ [3, 1], minlength=9) for walks in (numbers, rows)]
    deviation = np.sqrt(counts[0] + counts[1] + 1)
    assert (np.abs(counts[0] - counts[1]) < 5 * deviation).all()
    assert np.count_nonzero(counts[0] > 200) >= 4


def test_the_generator_gets_gradients_and_the_critic_none() -> None:
    generator, critic = WalkGenerator(9, 4, 5, drawn()), Critic(9, 4, 5, drawn(1))
    walks = generator.embedded(8, 3, torch.tensor(5.0), critic.down.detach(), drawn(2))
    critic.scores(walks).mean().backward(inputs=generator.weights)  # type: ignore[no-untyped-call]
    for weight in generator.weights:
        assert weight.grad is not None
        assert weight.grad.abs().max() > 0
    assert all(weight.grad is None for weight in critic.weights)


def test_transitions_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = WalkGenerator(7, 4, 5, drawn())
    walks = generator.draw(50, 4, drawn(1)).numpy()
    expected = np.zeros((7, 7), int)
    np.add.at(expected, (walks[:, :-1], walks[:, 1:]), 1)
    found = transition_counts(generator, 148, 4, drawn(1))
    assert np.array_equal(found.toarray(), expected + expected.T)
    monkeypatch.setattr("nodecopy.generators.netgan.CHOICES_AT_ONCE", {"cpu": 70})
    monkeypatch.setattr("nodecopy.generators.netgan.TRANSITIONS_AT_ONCE", 60)
    in_chunks = transition_counts(generator, 148, 4, drawn(1))
    assert in_chunks.sum() == found.sum() == 300


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.filterwarnings("ignore:.*capturable:UserWarning")
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_gpu)])
def test_training_learns_the_edges_of_a_ring(device: str) -> None:
    """Share of a generator's transitions that are edges: two of seven by chance."""
    graph, shares = ring(8), []
    sizes = SMALL | {"batch_size": 32, "hidden": 16, "critic_hidden": 16, "embedding": 8}
    for iterations in (1, 160):
        model = NetGAN(learning_rate=0.02, max_iterations=iterations, device=device, **sizes)
        counts = model.fit(graph, rng=0).counts_
        shares.append(counts.multiply(graph.adjacency).sum() / counts.sum())
    assert shares[0] < 0.35
    assert shares[1] > 0.5


def test_training_stops_by_overlap_and_by_watch() -> None:
    karate, seen = datasets.load("karate"), []
    model = NetGAN(overlap=0.0, max_iterations=9, evaluate_every=3, **SMALL)
    assert model.fit(karate, rng=0, watch=lambda step, _: seen.append(step)).steps_ == 3
    model.overlap = 1.0
    assert model.fit(karate, rng=0, watch=lambda step, _: step == 6).steps_ == 6
    assert model.fit(karate, rng=0, watch=lambda step, _: seen.append(step)).steps_ == 9
    assert seen == [3, 3, 6, 9]
    assert model.sample(rng=0).n_edges == karate.n_edges


def test_no_global_generator_is_touched() -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    NetGAN(max_iterations=2, **SMALL).fit(ring(5), rng=0)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    "graph",
    [Graph.from_edges([0], [1]), Graph.from_edges([0, 1, 2, 4, 5], [1, 2, 0, 5, 6], node_ids=range(9))],
    ids=["an edge", "components and isolated nodes"],
)
def test_odd_graphs(graph: Graph) -> None:
    for sample in NetGAN(max_iterations=2, **SMALL).fit(graph, rng=0).sample_many(5, rng=0):
        assert sample.n_edges == graph.n_edges
        assert not sample.degrees[graph.degrees == 0].any()


def test_few_transitions_make_few_edges() -> None:
    model = NetGAN(max_iterations=1, **SMALL | {"n_transitions": 10}).fit(datasets.load("karate"), rng=0)
    assert 0 < model.sample(rng=0).n_edges <= 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"overlap": -0.1}, r"overlap of NetGAN .* got -0\.1"),
        ({"max_iterations": 0}, "max_iterations of NetGAN .* got 0"),
        ({"evaluate_every": 0}, "evaluate_every of NetGAN .* got 0"),
        ({"n_transitions": 1e6}, r"n_transitions of NetGAN .* got 1000000\.0"),
        ({"walk_length": 1}, "walk_length of NetGAN .* at least 2; got 1"),
        ({"batch_size": 0}, "batch_size of NetGAN .* got 0"),
        ({"critic_steps": None}, "critic_steps of NetGAN .* got None"),
        ({"learning_rate": "fast"}, "learning_rate of NetGAN .* got 'fast'"),
        ({"device": "abacus"}, "device .* got 'abacus'"),
    ],
)
def test_wrong_settings(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        NetGAN(**options).fit(ring(5))


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (Graph(np.zeros((0, 0))), "graph of NetGAN must have an edge"),
        (Graph(np.zeros((3, 3))), "graph of NetGAN must have an edge; got Graph"),
        (community_graph(directed=True), "graph of NetGAN must be undirected"),
        (Interactions(np.eye(3)), "graph of NetGAN must be a Graph; got Interactions"),
    ],
)
def test_graphs_that_cannot_be_fitted(graph: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        NetGAN().fit(graph, rng=0)


def test_training_that_overflows() -> None:
    with pytest.raises(InputError, match=r"settings of NetGAN must not be so large .* learning_rate of 1e"):
        NetGAN(learning_rate=1e30, max_iterations=4, n_transitions=2000).fit(datasets.load("karate"), rng=0)
