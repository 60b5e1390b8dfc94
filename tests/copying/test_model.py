from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from nodecopy import (
    Graph,
    Interactions,
    Jaccard,
    NearestNeighbours,
    NodeCopying,
    SameLabel,
    Weighted,
    datasets,
)
from nodecopy._core.random import sample_key, seed_sequence
from nodecopy.copying import DonorRows
from nodecopy.copying import rows as row_copying
from nodecopy.copying.model import EdgeTrackingSampler
from nodecopy.errors import InputError, NotFittedError
from tests.copying import oracles
from tests.copying.oracles import all_donors, dense, with_keep
from tests.strategies import graphs, interactions

RULES = ["maximum", "one-endpoint"]
ARROWS = Graph([[0, 1, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [1, 1, 0, 0]], directed=True)


class Ring:
    """A donor rule of the user: the donor is the node itself or the next one."""

    def fit(self, data: Graph | Interactions) -> DonorRows:
        n = data.rows.n_rows
        similarity = np.eye(n) + np.roll(np.eye(n), 1, axis=1)
        return DonorRows.from_similarity(sparse.csr_array(similarity))


def random_graph(n: int = 40, seed: int = 0, **others: Any) -> Graph:
    return Graph(sparse.random_array((n, n), density=0.1, rng=seed).astype(bool), **others)


def ring(symmetrise: str = "maximum", **others: Any) -> NodeCopying[Graph]:
    return NodeCopying(Ring(), symmetrise=symmetrise).fit(random_graph(**others))


@given(graphs(), st.sampled_from(RULES), st.integers(0, 2**40))
def test_with_keep_one_the_sample_is_the_observed_graph(graph: Graph, symmetrise: str, seed: int) -> None:
    model = NodeCopying(SameLabel(np.zeros(graph.n_nodes, int)), 1.0, symmetrise).fit(graph)
    assert model.sample(rng=seed) == graph


@given(interactions(), st.integers(0, 2**40))
def test_the_items_of_a_user_are_those_of_its_donor(log: Interactions, seed: int) -> None:
    model = NodeCopying[Interactions](Jaccard()).fit(log)
    sample = model.sample(rng=seed)
    assert np.array_equal(dense(sample.rows), dense(log.rows)[model.draw_donors(rng=seed)])


@pytest.mark.parametrize("number", [0, 3])
def test_samples_follow_their_donors(number: int) -> None:
    seed = 5
    for directed, symmetrise in [(True, "maximum"), (False, "maximum"), (False, "one-endpoint")]:
        model = ring(symmetrise, directed=directed)
        A, donors = dense(model.graph_.rows), model.draw_donors(rng=seed, sample=number)
        sample = dense(list(model.sample_many(number + 1, rng=seed))[number].rows)
        if directed:
            assert np.array_equal(sample, A[donors])
        elif symmetrise == "maximum":
            assert np.array_equal(sample, oracles.maximum(A, donors))
        else:
            key = sample_key(seed_sequence(seed), number)
            assert np.array_equal(sample, oracles.one_endpoint(A, donors, key))


@pytest.mark.parametrize("symmetrise", RULES)
@pytest.mark.parametrize("directed", [False, True])
def test_compiled_samples_are_equal(symmetrise: str, directed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rules: list[Any] = [
        Ring(),
        SameLabel(np.arange(40) % 7),
        NearestNeighbours(4, np.arange(40.0)[:, None]),
        Jaccard(),
    ]
    for rule in rules:
        model = NodeCopying(rule, 0.3, symmetrise).fit(random_graph(directed=directed))
        with monkeypatch.context() as patch:
            plain = model.sample(rng=1)
            patch.setattr(row_copying, "MIN_COMPILED_SIZE", 0)
            assert model.sample(rng=1) == plain


def test_keep_is_the_share_of_nodes_that_are_their_own_donors() -> None:
    """Everybody's donor is somebody else: own donors come from keep alone.

    20,000 fair-ish coins stay within 6 standard deviations but once in 5e8 runs.
    """
    n, keep = 20_000, 0.3
    similarity = sparse.csr_array((np.ones(n), np.roll(np.arange(n), 1), np.arange(n + 1)), shape=(n, n))
    model = NodeCopying(Weighted(similarity), keep).fit(Graph(sparse.csr_array((n, n))))
    own = np.mean(model.draw_donors(rng=0) == np.arange(n))
    assert abs(own - keep) < 6 * math.sqrt(keep * (1 - keep) / n)


# The probability of a sample
def outcomes(model: NodeCopying[Any]) -> dict[bytes, tuple[float, Any]]:
    """Every distinct sample with its probability, by going through all donor vectors."""
    found: dict[bytes, tuple[float, Any]] = defaultdict(lambda: (0.0, None))
    for donors, probability in all_donors(
        with_keep(model.distribution_.probabilities().toarray(), model.keep)
    ):
        sample = model.copy(donors)
        name = dense(sample.rows).tobytes()
        found[name] = found[name][0] + probability, sample
    return found


WEIGHTED_ARROWS = Graph([[0, 2, 0, 0], [0, 0, 1, 0], [0, 2, 0, 0], [0, 1, 0, 0]], directed=True)
LOG = Interactions([[1, 0, 1], [1, 0, 0], [1, 0, 1], [0, 0, 0]])


@pytest.mark.parametrize("keep", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("data", [ARROWS, WEIGHTED_ARROWS, LOG, Graph(np.zeros((4, 4)), directed=True)])
@pytest.mark.parametrize(
    "donors", [SameLabel([0, 0, 0, 1]), NearestNeighbours(2, np.arange(4.0)[:, None]), Jaccard(), Ring()]
)
def test_log_probability_by_enumeration(donors: Any, data: Any, keep: float) -> None:
    model = NodeCopying(donors, keep).fit(data)
    found = outcomes(model)
    for probability, sample in found.values():
        assert model.log_probability(sample) == pytest.approx(math.log(probability), abs=1e-12)
    total = sum(math.exp(model.log_probability(sample)) for _, sample in found.values())
    assert total == pytest.approx(1, abs=1e-12)
    if keep == 0.3 and data is ARROWS:
        assert len(found) > 1


def test_impossible_samples() -> None:
    model = NodeCopying(SameLabel([0, 0, 1, 1])).fit(ARROWS)
    foreign_row = ARROWS.replace(adjacency=np.ones((4, 4)))
    wrong_donor = model.copy([3, 1, 2, 3])  # node 3 is no donor of node 0
    heavier = ARROWS.replace(adjacency=2 * ARROWS.adjacency)
    for sample in (foreign_row, wrong_donor, heavier):
        assert model.log_probability(sample) == -math.inf
    assert model.log_probability(ARROWS) == pytest.approx(4 * math.log(1 / 2))


def test_a_failed_fit_leaves_nothing_fitted() -> None:
    model = NodeCopying(SameLabel())
    with pytest.raises(InputError):
        model.fit(ARROWS)
    with pytest.raises(NotFittedError):
        model.sample(rng=0)


@given(graphs(), st.integers(0, 2**40))
def test_without_symmetrising_the_copied_rows_are_the_sample(graph: Graph, seed: int) -> None:
    rule = SameLabel(np.zeros(graph.n_nodes, int))
    model = NodeCopying(rule, symmetrise="none").fit(graph)
    sample = model.sample(rng=seed)
    assert sample.directed
    assert np.array_equal(dense(sample.rows), dense(graph.rows)[model.draw_donors(rng=seed)])
    union = NodeCopying(rule, symmetrise="maximum").fit(graph)
    assert graph.directed or union.sample(rng=seed) == sample.undirected()


RATINGS = Interactions(
    np.arange(1, 13).reshape(4, 3) % 5, ["ann", "bob", "cleo", "dan"], ["jam", "tea", "oat"]
)


@pytest.mark.parametrize("rule", ["jaccard", "same-label"])
@pytest.mark.parametrize("keep", [0.0, 0.25])
def test_donors_of_a_node_are_those_that_are_drawn(rule: str, keep: float) -> None:
    """Shares in 4,000 draws; the largest of the standard errors is 0.8 %."""
    club = datasets.load("karate")
    model = NodeCopying(rule, keep=keep).fit(club)
    of = {donor: p for donor, p, *_ in model.donors_of(34, 34).donors}
    drawn = [model.draw_donors(rng=0, sample=number)[33] for number in range(4000)]
    shares = np.bincount(drawn, minlength=34) / 4000
    assert np.allclose([of.get(node, 0.0) for node in club.node_ids.tolist()], shares, atol=0.035)
    assert sum(of.values()) == pytest.approx(1)
    assert [row[2:] for row in model.donors_of(34, 40).donors if row[0] == 34] == [(17, 17)]


def test_donors_of_users_are_users() -> None:
    donors = NodeCopying().fit(datasets.load("library")).donors_of("reader 001", 3)
    assert [donor[:6] for donor, *_ in donors.donors] == ["reader"] * 3
    assert "donors of reader 001" in repr(donors)
    with pytest.raises(InputError, match="node of donors_of must hold known ids; got 'x'"):
        NodeCopying().fit(datasets.load("library")).donors_of("x")


def test_the_edges_that_small_classes_lose() -> None:
    """Self-loops are dropped: e / n for e edges inside a class of n nodes; docs/model.md has 3.9 and 12."""
    club = datasets.load("karate")
    labels = np.asarray(club.label_codes)
    inside = [club.subgraph(np.flatnonzero(labels == label)) for label in (0, 1)]
    loss = sum(part.n_edges / part.n_nodes for part in inside)
    model = NodeCopying(SameLabel()).fit(club)
    probabilities = model.distribution_.probabilities() @ club.adjacency
    expected = (probabilities.sum() - probabilities.diagonal().sum()) / 2
    assert club.n_edges - expected == pytest.approx(loss)
    counts = [sample.n_edges for sample in model.sample_many(2000, rng=0)]
    error = np.std(counts) / math.sqrt(len(counts))
    assert abs(np.mean(counts) - expected) < 3 * error < loss / 3
    assert (round(loss, 1), round(float(np.std(counts)))) == (3.9, 12)


EDGES = st.lists(
    st.tuples(st.integers(0, 7), st.integers(0, 7), st.sampled_from([0.5, 1.0, 2.0])), min_size=1, max_size=25
)


def fit_both(
    edges: list[tuple[int, int, float]], directed: bool, symmetrise: str = "maximum"
) -> tuple[NodeCopying[Graph], EdgeTrackingSampler]:
    first, second, weights = (np.array(column) for column in zip(*edges, strict=True))
    graph = Graph.from_edges(first, second, weights, node_ids=np.arange(8), directed=directed)
    model = NodeCopying(SameLabel(np.arange(8) % 2), keep=0.2, symmetrise=symmetrise).fit(graph)
    return model, EdgeTrackingSampler(model, first, second, weights)


@given(EDGES, st.booleans(), st.sampled_from(["maximum", "one-endpoint"]), st.integers(0, 99))
def test_sampled_edges_are_those_of_the_model_with_the_weights_of_their_origins(
    edges: list[tuple[int, int, float]], directed: bool, symmetrise: str, seed: int
) -> None:
    model, sampler = fit_both(edges, directed, symmetrise)
    for sample, (first, second, origin) in zip(
        model.sample_many(3, rng=seed), sampler.sample_many(3, rng=seed), strict=True
    ):
        assert np.array_equal(first, sample.rows.row_numbers)
        assert np.array_equal(second, sample.rows.indices)
        weights = np.ones(len(first)) if sample.rows.weights is None else sample.rows.weights
        assert [edges[number][2] for number in origin] == weights.tolist()


@given(EDGES, st.integers(0, 99))
def test_the_origin_is_an_edge_of_the_donor(edges: list[tuple[int, int, float]], seed: int) -> None:
    model, sampler = fit_both(edges, directed=True)
    donors = model.draw_donors(rng=seed)
    for node, target, number in zip(*sampler.sample(rng=seed), strict=True):
        assert edges[number][:2] == (donors[node], target)


def test_of_parallel_edges_the_heaviest_and_then_the_last_is_the_origin() -> None:
    edges: Any = [(0, 1, 2.0), (0, 1, 0.5), (0, 1, 2.0), (0, 3, 1.0)]
    model, _ = fit_both(edges, directed=True)
    model.set_params(keep=1.0).fit(model.graph_)
    first, second, weights = (np.array(column) for column in zip(*edges, strict=True))
    origin = EdgeTrackingSampler(model, first, second, weights).sample(rng=0)[2]
    assert origin.tolist() == [2, 3]


def test_donors_are_chosen_by_what_the_graph_has(caplog: pytest.LogCaptureFixture) -> None:
    club = datasets.load("karate")
    default = NodeCopying().fit(club)
    assert "donors: SameLabel(labels=None), since 34 of 34 nodes have a label. Set donors" in caplog.text
    assert default.sample(rng=0) == NodeCopying(SameLabel()).fit(club).sample(rng=0)
    assert NodeCopying().fit(RATINGS).sample(rng=0) == NodeCopying(Jaccard()).fit(RATINGS).sample(rng=0)


@pytest.mark.parametrize(
    ("call", "error", "fragment"),
    [
        (lambda: NodeCopying(Ring(), keep=math.nan).fit(ARROWS), InputError, "between 0 and 1; got nan"),
        (lambda: NodeCopying(SameLabel).fit(ARROWS), InputError, "donors of NodeCopying must be"),  # type: ignore[arg-type]
        (lambda: NodeCopying(Ring()).fit(np.eye(3)), InputError, "graph of NodeCopying must be a Graph"),
        (lambda: ring().copy([0, 1]), InputError, "one entry per node, 40 in all; got 2"),
        (lambda: ring().copy(np.full(40, 40)), InputError, "donors must lie between 0 and 39"),
        (lambda: NodeCopying(Ring()).sample(rng=0), NotFittedError, "not fitted yet"),
        (lambda: ring().log_probability(ring().graph_), InputError, "needs a directed graph"),
        (lambda: ring(directed=True).log_probability(ARROWS), InputError, "must have the nodes and the type"),
    ],
)
def test_errors(call: Any, error: type[Exception], fragment: str) -> None:
    with pytest.raises(error, match=fragment):
        call()


def test_damaged_states_are_errors() -> None:
    model = NodeCopying(SameLabel([0, 0, 1]), keep=0.4, symmetrise="maximum").fit(Graph(np.ones((3, 3))))
    state = model.get_state()
    wrong_parts: list[dict[str, Any]] = [
        {"keep_": np.nan}, {"symmetrise_": "bogus"}, {"distribution_": None}, {"graph_": Graph([[0]])},
    ]  # fmt: skip
    for wrong in wrong_parts:
        with pytest.raises(InputError, match="of NodeCopying must"):
            NodeCopying(model.donors).set_state(state | wrong)
