"""CELL: blocks against the N x N formulas, the overlap criterion, and errors about settings and graphs."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import Tensor

from nodecopy import Graph, GraphModel, Interactions, datasets
from nodecopy.errors import InputError
from nodecopy.generators import CELL
from nodecopy.generators.cell import TransitionLoss, stationary_distribution
from nodecopy.metrics import edge_overlap, statistics
from tests.contracts.graph_models import GraphModelContract, community_graph
from tests.generators.test_losses import random_adjacency

CPU = torch.device("cpu")


class TestContract(GraphModelContract):
    @pytest.fixture(scope="class")
    @classmethod
    def model(cls) -> GraphModel[Graph]:
        return CELL(rank=3, n_steps=20, evaluate_every=5)

    @pytest.fixture(scope="class", params=[False, True], ids=["binary", "weighted"])
    @classmethod
    def observed(cls, request: pytest.FixtureRequest) -> Graph:
        return community_graph(weighted=request.param)


def factors(n_nodes: int = 23, rank: int = 4, spread: float = 1.0) -> tuple[Tensor, Tensor]:
    source = torch.Generator().manual_seed(1)
    return (
        spread * torch.randn(n_nodes, rank, generator=source),
        spread * torch.randn(rank, n_nodes, generator=source),
    )


@pytest.mark.parametrize("logits_at_once", [1, 50, 10**6, None])
@pytest.mark.parametrize("spread", [0.1, 1.0, 6.0])
def test_value_and_gradient_are_the_dense_ones(logits_at_once: int | None, spread: float) -> None:
    adjacency = random_adjacency()
    loss = TransitionLoss(adjacency, CPU, logits_at_once)
    start = factors(spread=spread)
    down, up = (factor.double().requires_grad_() for factor in start)
    dense = -(torch.from_numpy(adjacency.toarray()) * (down @ up).log_softmax(dim=1)).sum() / adjacency.nnz
    (3 * dense).backward()  # type: ignore[no-untyped-call]
    tensors = [factor.clone().requires_grad_() for factor in start]
    value = loss(*tensors)
    (3 * value).backward()  # type: ignore[no-untyped-call]
    assert value.item() == pytest.approx(dense.item(), rel=1e-5)
    for actual, expected in zip(tensors, (down, up), strict=True):
        assert actual.grad is not None
        assert expected.grad is not None
        torch.testing.assert_close(actual.grad.double(), expected.grad, rtol=1e-4, atol=1e-6 * spread)


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


def test_no_n_by_n_matrix_is_held() -> None:
    n_nodes = 6_000
    ring = sparse.eye_array(n_nodes, k=1, format="csr", dtype=np.float32)
    loss = TransitionLoss(sparse.csr_array(ring + ring.T), CPU)
    down, up = torch.zeros(n_nodes, 1, requires_grad=True), torch.zeros(1, n_nodes, requires_grad=True)
    largest = 0

    class RecordSizes(torch.utils._python_dispatch.TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            nonlocal largest
            result = function(*args, **(kwargs or {}))
            if isinstance(result, Tensor) and result.layout == torch.strided:
                largest = max(largest, result.numel())
            return result

    with RecordSizes():  # type: ignore[no-untyped-call]
        value = loss(down, up)
        value.backward()  # type: ignore[no-untyped-call]
    assert value.item() == pytest.approx(np.log(n_nodes), rel=1e-5)
    assert 0 < largest <= max(loss.logits_at_once, 2 * n_nodes)


def test_training_stops_at_the_overlap() -> None:
    karate, evaluations = datasets.load("karate"), []
    model = CELL(overlap=0.6, evaluate_every=2)
    model.fit(
        karate, rng=0, callback=lambda step, sample: evaluations.append((step, edge_overlap(sample, karate)))
    )
    assert [step for step, _ in evaluations] == list(range(2, model.n_steps_ + 1, 2))
    assert all(overlap < 0.6 for _, overlap in evaluations[:-1])
    assert evaluations[-1] == (model.n_steps_, model.overlap_)
    assert model.overlap_ >= 0.6
    assert model.n_steps_ < 200
    overlaps = [edge_overlap(sample, karate) for sample in model.sample_many(20, rng=1)]
    assert np.mean(overlaps) == pytest.approx(0.6, abs=0.08)


def test_the_step_limit_and_the_callback_end_training() -> None:
    karate = datasets.load("karate")
    model = CELL(overlap=1.0, n_steps=7, evaluate_every=5).fit(karate, rng=0)
    assert (model.n_steps_, model.overlap_ < 1) == (7, True)
    assert model.sample(rng=0).n_edges == karate.n_edges
    assert CELL(overlap=1.0).fit(karate, rng=0, callback=lambda step, _: step == 20).n_steps_ == 20


@pytest.mark.parametrize(
    "graph",
    [
        Graph.from_edges([0], [1]),
        Graph.from_edges([0, 0, 0], [1, 2, 3]),
        Graph.from_edges([0, 1, 2, 4, 5], [1, 2, 0, 5, 6], node_ids=range(9)),
    ],
    ids=["one edge", "a star", "components and isolated nodes"],
)
def test_trees_components_and_isolated_nodes(graph: Graph) -> None:
    for sample in CELL(rank=2, n_steps=30).fit(graph, rng=0).sample_many(10, rng=0):
        assert sample.n_edges == graph.n_edges
        assert not sample.degrees[graph.degrees == 0].any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": 0}, "rank of CELL .* got 0"),
        ({"overlap": 1.5}, r"overlap of CELL .* got 1\.5"),
        ({"n_steps": 0}, "n_steps of CELL .* got 0"),
        ({"evaluate_every": "often"}, "evaluate_every of CELL .* got 'often'"),
        ({"learning_rate": -1}, "learning_rate of CELL .* got -1"),
        ({"weight_decay": None}, "weight_decay of CELL .* got None"),
        ({"device": "abacus"}, "device .* got 'abacus'"),
    ],
)
def test_invalid_settings(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        CELL(**options).fit(community_graph())


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (Graph(np.zeros((0, 0))), "graph of CELL must have an edge"),
        (Graph(np.zeros((3, 3))), "graph of CELL must have an edge; got Graph"),
        (community_graph(directed=True), "graph of CELL must be undirected"),
        (Interactions(np.eye(3)), "graph of CELL must be a Graph.*; got nodecopy.Interactions"),
    ],
)
def test_graphs_that_cannot_be_fitted(graph: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        CELL().fit(graph, rng=0)


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


def test_training_that_overflows() -> None:
    with pytest.raises(InputError, match=r"settings of CELL must not be so large .* learning_rate of 1e"):
        CELL(learning_rate=1e30).fit(datasets.load("karate"), rng=0)


def test_an_interrupted_fit_keeps_the_previous_one() -> None:
    model = CELL(n_steps=20).fit(datasets.load("karate"), rng=0)
    before, overlap = model.sample(rng=0), model.overlap_

    def stop(step: int, sample: Graph) -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.fit(datasets.load("digits").subgraph(np.arange(60)), rng=0, callback=stop)
    assert model.sample(rng=0) == before
    assert model.overlap_ == overlap
