"""NetGAN and CELL: walks, losses against dense formulas, and when training stops."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import torch
from numpy.random import SeedSequence
from scipy import sparse
from torch import Tensor
from torch.nn.functional import one_hot

from nodecopy import Graph, datasets
from nodecopy.generators import CELL, VGAE, NetGAN
from nodecopy.generators.autoencoders import PairLoss
from nodecopy.generators.walks import (
    LSTM,
    PENALTY_WEIGHT,
    Critic,
    ObservedWalks,
    TorchRandom,
    TransitionLoss,
    WalkGenerator,
    count_transitions,
    gather_rows,
    stationary_distribution,
)
from nodecopy.metrics import statistics
from tests.contracts.graph_models import GraphModelContract, community_graph
from tests.generators.helpers import RecordSizes, random_adjacency

CPU = torch.device("cpu")


def torch_random(seed: int = 0) -> TorchRandom:
    return TorchRandom(SeedSequence(seed), CPU)


def test_observed_walks_follow_edges_uniformly() -> None:
    adjacency = datasets.load("karate").adjacency
    walks = ObservedWalks(adjacency, CPU).draw(20_000, 3, torch_random()).numpy()
    assert walks.shape == (20_000, 3)
    assert (np.asarray(adjacency[walks[:, :-1].ravel(), walks[:, 1:].ravel()]) > 0).all()
    starts = np.bincount(walks[:, 0], minlength=34)
    assert np.abs(starts - 20_000 / 34).max() < 5 * np.sqrt(20_000 / 34)
    after = walks[walks[:, 0] == 33, 1]
    counts = np.bincount(after, minlength=34)[adjacency.indices[slice(*adjacency.indptr[33:35])]]
    mean = len(after) / len(counts)
    assert np.abs(counts - mean).max() < 5 * np.sqrt(mean)


def test_the_layer_is_that_of_torch() -> None:
    layer = LSTM(5, 3, torch_random())
    inputs, state = torch_random(1).normal(7, 5), (torch_random(2).normal(7, 3), torch_random(3).normal(7, 3))
    with torch.no_grad():
        layer.weights[2].copy_(torch_random(4).normal(12))
    order = torch.cat([torch.arange(6), torch.arange(9, 12), torch.arange(6, 9)])  # content before output
    first, second = (weight.T[order] for weight in layer.weights[:2])
    reference = torch.lstm_cell(
        inputs, state, first, second, (layer.weights[2] + layer.forget)[order], torch.zeros(12)
    )
    for actual, expected in zip(layer.step(layer.gates(inputs), state), reference, strict=True):
        torch.testing.assert_close(actual, expected)


def test_straight_through_gradients_are_those_of_one_hot_vectors() -> None:
    logits = torch_random().normal(4, 9).requires_grad_()
    table = torch_random(1).normal(9, 5).requires_grad_()
    node, outer = torch.tensor([3, 3, 0, 8]), torch_random(2).normal(4, 5)

    def gradients(rows: Tensor) -> tuple[Tensor, ...]:
        return torch.autograd.grad((rows * outer).sum(), (logits, table))

    soft = logits.softmax(dim=1)
    hard = (one_hot(node, 9) - soft).detach() + soft
    reference = gradients(hard @ table)
    rows = gather_rows(table, node, logits.softmax(dim=1))
    assert torch.equal(rows, table[node])
    for actual, expected in zip(gradients(rows), reference, strict=True):
        torch.testing.assert_close(actual, expected)


def test_critic_loss_is_that_of_one_hot_walks() -> None:
    """Values and the gradients of every weight, second derivatives included."""
    critic, n_nodes = Critic(11, 4, 5, torch_random()), 11
    real, fake = (torch.randint(n_nodes, (6, 3), generator=torch_random(seed).source) for seed in (1, 2))
    wide = [one_hot(walks, n_nodes).float() for walks in (real, fake)]
    between = (wide[0] + torch_random(3).uniform(6, 1, 1) * (wide[1] - wide[0])).requires_grad_()
    total = critic.scores(between @ critic.embedding).sum()
    (slopes,) = torch.autograd.grad(total, between, create_graph=True)
    penalty = ((slopes.square().sum(dim=(1, 2)).sqrt() - 1) ** 2).mean()
    scores = [critic.scores(walks @ critic.embedding).mean() for walks in wide]
    reference = scores[1] - scores[0] + PENALTY_WEIGHT * penalty
    loss = critic.loss(real, fake, torch_random(3))
    assert loss.item() == pytest.approx(reference.item(), rel=1e-5)
    gradients = [torch.autograd.grad(value, critic.weights[:-1]) for value in (loss, reference)]
    for actual, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-6)


def test_both_ways_to_draw_walks_have_the_same_distribution() -> None:
    """Node positions by inversion, embedded ones by Gumbel noise; walks of two nodes are compared."""
    generator, n = WalkGenerator(3, 4, 2, torch_random()), 20_000
    with torch.no_grad():
        for weight in generator.weights:
            weight.copy_(torch_random(5).normal(*weight.shape))
    numbers = generator.draw(n, 2, torch_random(1)).numpy()
    embedded = generator.draw_embedded(n, 2, torch.tensor(5.0), torch.eye(3), torch_random(2))
    rows = embedded.argmax(dim=2).numpy()
    counts = [np.bincount(walks @ [3, 1], minlength=9) for walks in (numbers, rows)]
    deviation = np.sqrt(counts[0] + counts[1] + 1)
    assert (np.abs(counts[0] - counts[1]) < 5 * deviation).all()
    assert np.count_nonzero(counts[0] > 200) >= 4


SMALL: dict[str, Any] = {"walk_length": 3, "batch_size": 16, "n_hidden": 8, "n_transitions": 4000}


def ring(n_nodes: int) -> Graph:
    return Graph.from_edges(np.arange(n_nodes), (np.arange(n_nodes) + 1) % n_nodes)


def test_transitions_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = WalkGenerator(7, 4, 5, torch_random())
    walks = generator.draw(50, 4, torch_random(1)).numpy()
    expected = np.zeros((7, 7), int)
    np.add.at(expected, (walks[:, :-1], walks[:, 1:]), 1)
    counts = count_transitions(generator, 148, 4, torch_random(1))
    assert np.array_equal(counts.toarray(), expected + expected.T)
    monkeypatch.setattr("nodecopy.generators.walks.WALK_LOGITS_AT_ONCE", {"cpu": 70})
    monkeypatch.setattr("nodecopy.generators.walks.TRANSITIONS_AT_ONCE", 60)
    in_chunks = count_transitions(generator, 148, 4, torch_random(1))
    assert in_chunks.sum() == counts.sum() == 300


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.filterwarnings("ignore:.*capturable:UserWarning")
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_gpu)])
def test_training_learns_the_edges_of_a_ring(device: str) -> None:
    """Share of a generator's transitions that are edges: two of seven by chance."""
    graph, shares = ring(8), []
    sizes = SMALL | {"batch_size": 32, "n_hidden": 16}
    for n_steps in (1, 160):
        model = NetGAN(learning_rate=0.02, n_steps=n_steps, device=device, **sizes)
        counts = model.fit(graph, rng=0).counts_
        shares.append(counts.multiply(graph.adjacency).sum() / counts.sum())
    assert shares[0] < 0.35
    assert shares[1] > 0.5


def factors(n_nodes: int = 23, rank: int = 4, spread: float = 1.0) -> tuple[Tensor, Tensor]:
    source = torch.Generator().manual_seed(1)
    return (
        spread * torch.randn(n_nodes, rank, generator=source),
        spread * torch.randn(rank, n_nodes, generator=source),
    )


def test_stationary_distribution_is_the_eigenvector() -> None:
    down, up = factors(spread=1.5)
    P = (down @ up).double().softmax(dim=1).numpy()
    values, vectors = np.linalg.eig(P.T)
    leading = vectors[:, values.real.argmax()].real
    pi, normalisers = stationary_distribution(down, up, torch.full((23,), 1 / 23))
    np.testing.assert_allclose(pi, leading / leading.sum(), atol=2e-6)
    np.testing.assert_allclose(normalisers, (down @ up).logsumexp(dim=1), rtol=1e-5)


def test_scores_are_those_of_the_dense_formula() -> None:
    model = CELL(rank=3, n_steps=15).fit(community_graph(), rng=0)
    P = torch.from_numpy(model.down_ @ model.up_).double().softmax(dim=1).numpy()
    pi = np.linalg.matrix_power(P, 2000)[0]
    expected = pi[:, None] * P + (pi[:, None] * P).T
    np.testing.assert_allclose(np.concatenate(list(model._score_blocks())), expected, rtol=1e-3, atol=1e-8)


@pytest.mark.skipif(
    not os.environ.get("NODECOPY_DATA"), reason="NODECOPY_DATA does not name the folder of the real files"
)
@pytest.mark.slow
def test_statistics_on_cora() -> None:
    """Half of the edges and most of the structure: hubs, negative assortativity, hundreds of triangles."""
    cora = datasets.load("cora").largest_component()
    model = CELL().fit(cora, rng=0)
    values = statistics(model.sample(rng=1), observed=cora, path_length=False)
    assert values["n_edges"] == cora.n_edges
    assert 0.5 <= values["edge_overlap"] < 0.7
    assert 90 < values["max_degree"] < 200
    assert values["triangles"] > 400
    assert values["assortativity"] < -0.03
    assert values["power_law_exponent"] == pytest.approx(1.885, abs=0.05)


def test_an_interrupted_fit_keeps_the_previous_one() -> None:
    model = CELL(n_steps=20).fit(datasets.load("karate"), rng=0)
    before, overlap = model.sample(rng=0), model.overlap_

    def stop(step: int, sample: Graph) -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.fit(datasets.load("digits").subgraph(np.arange(60)), rng=0, callback=stop)
    assert model.sample(rng=0) == before
    assert model.overlap_ == overlap


class TestContract(GraphModelContract):
    models = (CELL(rank=3, n_steps=20, evaluate_every=5), NetGAN(n_steps=4, evaluate_every=2, **SMALL))
    graphs = tuple(community_graph(weighted=weighted) for weighted in (False, True))


@pytest.mark.parametrize("logits_at_once", [1, 50, None])
@pytest.mark.parametrize("spread", [0.1, 1.0, 6.0])
def test_transition_loss_is_the_dense_one(logits_at_once: int | None, spread: float) -> None:
    adjacency, start = random_adjacency(), factors(spread=spread)
    down, up = (factor.double().requires_grad_() for factor in start)
    dense = -(torch.from_numpy(adjacency.toarray()) * (down @ up).log_softmax(dim=1)).sum() / adjacency.nnz
    (3 * dense).backward()  # type: ignore[no-untyped-call]
    tensors = [factor.clone().requires_grad_() for factor in start]
    (3 * TransitionLoss(adjacency, CPU, logits_at_once)(*tensors)).backward()  # type: ignore[no-untyped-call]
    for actual, expected in zip(tensors, (down, up), strict=True):
        torch.testing.assert_close(actual.grad.double(), expected.grad, rtol=1e-4, atol=1e-6 * spread)  # type: ignore[union-attr]


@pytest.mark.parametrize(("kind", "n_nodes"), [(PairLoss, 30_000), (TransitionLoss, 6_000)])
def test_no_n_by_n_matrix_is_held(kind: Any, n_nodes: int) -> None:
    """30,000 nodes would need 3.6 GB for one matrix of logits."""
    line = sparse.eye_array(n_nodes, k=1, format="csr", dtype=np.float32)
    loss = kind(sparse.csr_array(line + line.T), CPU)
    shapes = [(n_nodes, 1)] if kind is PairLoss else [(n_nodes, 1), (1, n_nodes)]
    with RecordSizes() as record:  # type: ignore[no-untyped-call]
        loss(*(torch.zeros(shape, requires_grad=True) for shape in shapes)).backward()
    assert 0 < record.largest <= max(loss.logits_at_once, 3 * n_nodes)


@pytest.mark.parametrize("kind", [CELL, NetGAN])
def test_the_step_limit_and_the_callback_end_training(kind: Any) -> None:
    karate, steps = datasets.load("karate"), []
    model = kind(overlap=0.0, n_steps=8, evaluate_every=3, **(SMALL if kind is NetGAN else {}))
    assert model.fit(karate, rng=0).n_steps_ == 3
    model.overlap = 1.0
    assert model.fit(karate, rng=0, callback=lambda step, _: step == 6).n_steps_ == 6
    assert model.fit(karate, rng=0, callback=lambda step, _: steps.append(step)).n_steps_ == 8
    assert steps == [3, 6, 8]
    assert model.sample(rng=0).n_edges == karate.n_edges


@pytest.mark.parametrize(
    "model", [CELL(rank=2, n_steps=30), NetGAN(n_steps=2, **SMALL)], ids=["CELL", "NetGAN"]
)
@pytest.mark.parametrize(
    "graph",
    [
        Graph.from_edges([0], [1]),
        Graph.from_edges([0, 0, 0], [1, 2, 3]),
        Graph.from_edges([0, 1, 2, 4, 5], [1, 2, 0, 5, 6], node_ids=range(9)),
    ],
    ids=["one edge", "a star", "components and isolated nodes"],
)
def test_trees_components_and_isolated_nodes(model: Any, graph: Graph) -> None:
    for sample in model.fit(graph, rng=0).sample_many(5, rng=0):
        assert sample.n_edges == graph.n_edges
        assert not sample.degrees[graph.degrees == 0].any()


@pytest.mark.parametrize("model", [VGAE(n_epochs=2), NetGAN(n_steps=2, **SMALL)], ids=["VGAE", "NetGAN"])
def test_the_global_generator_of_torch_is_not_used(model: Any) -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    model.fit(ring(5), rng=0)
    assert torch.equal(torch.get_rng_state(), before)
