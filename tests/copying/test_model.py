from __future__ import annotations

import math
import pickle
import threading
import weakref
from collections import defaultdict
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from nodecopy import Graph, Interactions, Jaccard, NearestNeighbours, NodeCopying, SameLabel, Weighted
from nodecopy._core.csr import Rows
from nodecopy._core.random import pair_coins, sample_key, seed_sequence
from nodecopy.copying import DonorRows, row_copying
from nodecopy.errors import InputError, NotFittedError
from tests.copying import oracles
from tests.copying.oracles import all_donors, dense, with_keep
from tests.strategies import graphs, interactions

RULES = ["maximum", "one-endpoint"]
ARROWS = Graph([[0, 1, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [1, 1, 0, 0]], directed=True)


class Ring:
    """A law of one's own: the donor is the node itself or the next one."""

    def fit(self, data: Graph | Interactions) -> DonorRows:
        n = data.rows.n_rows
        similarity = np.eye(n) + np.roll(np.eye(n), 1, axis=1)
        return DonorRows.from_similarity(sparse.csr_array(similarity))


def random_graph(n: int = 40, seed: int = 0, **others: Any) -> Graph:
    return Graph(sparse.random_array((n, n), density=0.1, rng=seed).astype(bool), **others)


def ring(symmetrise: str = "maximum", **others: Any) -> NodeCopying[Graph]:
    return NodeCopying(Ring(), symmetrise=symmetrise).fit(random_graph(**others))


@settings(deadline=None)
@given(graphs(), st.sampled_from(RULES), st.integers(0, 2**40))
def test_all_keep_their_own(graph: Graph, symmetrise: str, seed: int) -> None:
    model = NodeCopying(SameLabel(np.zeros(graph.n_nodes, int)), 1.0, symmetrise).fit(graph)
    assert model.sample(rng=seed) == graph


@settings(deadline=None)
@given(interactions(), st.integers(0, 2**40))
def test_a_user_gets_the_donors_items(log: Interactions, seed: int) -> None:
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


def test_copy_gives_the_sample_for_given_donors() -> None:
    for symmetrise in RULES:
        model = ring(symmetrise)
        assert model.copy(model.draw_donors(rng=9), rng=9) == model.sample(rng=9)
    model = ring(directed=True)
    assert (model.copy(np.full(40, 3)).degrees == model.graph_.degrees[3]).all()


def test_one_endpoint_keeps_edges_both_agree_on() -> None:
    """In a complete graph with one donor each pair's coin alone decides, and both halves agree on it."""
    model = NodeCopying(Weighted(np.eye(9)), symmetrise="one-endpoint").fit(Graph(np.ones((9, 9))))
    donors = np.zeros(9, int)  # everybody copies node 0: adjacent to all but node 0
    sample, key = model.copy(donors, rng=3), sample_key(seed_sequence(3), 0)
    wanted = np.ones((9, 9)) - np.eye(9)
    decides_other = pair_coins(key, np.zeros(9, int), np.arange(9))
    wanted[0] = wanted[:, 0] = np.where(decides_other, 0, 1)  # row 0 says yes, every other row says no
    wanted[0, 0] = 0
    assert np.array_equal(sample.adjacency.toarray(), wanted)


@pytest.mark.parametrize("symmetrise", RULES)
@pytest.mark.parametrize("directed", [False, True])
def test_compiled_samples_are_the_same(
    symmetrise: str, directed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    laws: list[Any] = [
        Ring(),
        SameLabel(np.arange(40) % 7),
        NearestNeighbours(4, np.arange(40.0)[:, None]),
        Jaccard(),
    ]
    for law in laws:
        model = NodeCopying(law, 0.3, symmetrise).fit(random_graph(directed=directed))
        with monkeypatch.context() as patch:
            plain = model.sample(rng=1)
            patch.setattr(row_copying, "COMPILED_FROM", 0)
            assert model.sample(rng=1) == plain


def test_keep_is_the_share_of_nodes_that_keep_their_own() -> None:
    """Everybody's law is somebody else: own donors come from keep alone.

    20,000 fair-ish coins stay within 6 standard deviations but once in 5e8 runs.
    """
    n, keep = 20_000, 0.3
    similarity = sparse.csr_array((np.ones(n), np.roll(np.arange(n), 1), np.arange(n + 1)), shape=(n, n))
    model = NodeCopying(Weighted(similarity), keep).fit(Graph(sparse.csr_array((n, n))))
    own = np.mean(model.draw_donors(rng=0) == np.arange(n))
    assert abs(own - keep) < 6 * math.sqrt(keep * (1 - keep) / n)


# Reproducibility


@pytest.mark.parametrize("symmetrise", RULES)
def test_a_sample_depends_on_seed_and_number_alone(symmetrise: str) -> None:
    model = ring(symmetrise)
    ten = list(model.sample_many(10, rng=4))
    for n, workers in [(10, 2), (10, 3), (3, 1), (3, 2), (1, 3)]:
        assert list(model.sample_many(n, rng=4, workers=workers)) == ten[:n]
    assert model.sample(rng=4) == ten[0]
    assert all(first != second for first, second in pairwise(ten))
    assert model.sample(rng=5) != ten[0]


def test_a_seed_sequence_is_not_used_up() -> None:
    model, seed = ring(), np.random.SeedSequence(7)
    first, second = model.sample(rng=seed), model.sample(rng=seed)
    assert first == second == model.sample(rng=7)
    assert seed.n_children_spawned == 0
    seed.spawn(3)
    assert model.sample(rng=seed) == first
    assert model.sample(rng=seed.spawn(1)[0]) != first


def test_a_generator_moves_on() -> None:
    model, generator = ring(), np.random.default_rng(7)
    first, second = model.sample(rng=generator), model.sample(rng=generator)
    assert first != second
    assert model.sample(rng=np.random.default_rng(7)) == first


def test_no_seed_gives_something_new() -> None:
    model = ring()
    assert model.sample(rng=None) != model.sample(rng=None)


def test_the_global_generator_stays_where_it_was() -> None:
    before = pickle.dumps(np.random.get_state())  # noqa: NPY002
    ring("one-endpoint").sample(rng=None)
    assert pickle.dumps(np.random.get_state()) == before  # noqa: NPY002


# Streaming


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_few_samples_are_alive_at_once(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[weakref.ref[Graph]] = []
    plain = Graph.with_rows

    def with_rows(self: Graph, rows: Rows) -> Graph:
        graph = plain(self, rows)
        made.append(weakref.ref(graph))
        return graph

    monkeypatch.setattr(Graph, "with_rows", with_rows)
    stream = ring().sample_many(10**12, rng=0, workers=workers)
    assert made == []  # nothing happens before the first is asked for
    for _sample in islice(stream, 30):
        assert sum(ref() is not None for ref in list(made)) <= workers + 1
    assert len(made) <= 30 + workers


def test_closing_the_stream_stops_the_threads() -> None:
    before = threading.active_count()
    stream: Any = ring().sample_many(10**12, rng=0, workers=3)
    next(stream)
    assert threading.active_count() > before
    stream.close()
    assert threading.active_count() == before


def test_no_samples() -> None:
    for workers in (1, 2):
        assert list(ring().sample_many(0, rng=0, workers=workers)) == []


def test_an_error_in_a_thread_reaches_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ring()
    monkeypatch.setattr(Graph, "with_rows", lambda self, rows: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        list(model.sample_many(4, rng=0, workers=2))


# What survives


@settings(deadline=None, max_examples=40)
@given(graphs(labelled=True), st.sampled_from(RULES))
def test_nodes_keep_who_they_are(graph: Graph, symmetrise: str) -> None:
    model = NodeCopying(SameLabel(), symmetrise=symmetrise).fit(graph)
    sample = model.sample(rng=1)
    assert sample.replace(adjacency=graph.adjacency) == graph
    assert sample.label_names == graph.label_names
    assert sample == Graph(  # what came out passes every check of what comes in
        sample.adjacency, graph.features, graph.named_labels(), graph.node_ids, graph.directed
    )
    assert pickle.loads(pickle.dumps(sample)) == sample


def test_users_and_items_keep_who_they_are() -> None:
    log = Interactions([[1, 1], [0, 1], [2, 0]], ["ann", "bob", "cleo"], ["jam", "tea"])
    sample = NodeCopying[Interactions](Jaccard(include_self=False)).fit(log).sample(rng=2)
    assert sample.user_ids.tolist() == ["ann", "bob", "cleo"]
    assert sample.item_ids.tolist() == ["jam", "tea"]
    assert pickle.loads(pickle.dumps(sample)) == sample


@pytest.mark.parametrize("law", [SameLabel([0, 0, 1, 1]), Jaccard(), Ring(), NearestNeighbours(2, np.eye(4))])
def test_models_pickle(law: Any) -> None:
    model = NodeCopying(law, 0.25).fit(ARROWS)
    again = pickle.loads(pickle.dumps(model))
    assert again.sample(rng=6) == model.sample(rng=6)
    assert pickle.loads(pickle.dumps(NodeCopying(law, 0.25))).fit(ARROWS).sample(rng=6) == model.sample(rng=6)


def test_samples_cannot_be_changed() -> None:
    sample = ring().sample(rng=0)
    with pytest.raises(ValueError, match="read-only"):
        sample.adjacency.data[0] = 5


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
    "law",
    [SameLabel([0, 0, 0, 1]), NearestNeighbours(2, np.arange(4.0)[:, None]), Jaccard(), Ring()],
)
def test_log_probability_by_enumeration(law: Any, data: Any, keep: float) -> None:
    model = NodeCopying(law, keep).fit(data)
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


# Errors


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (NodeCopying(Ring(), keep=1.4), "keep of NodeCopying must be a number between 0 and 1; got 1.4."),
        (
            NodeCopying(Ring(), keep=math.nan),
            "keep of NodeCopying must be a number between 0 and 1; got nan.",
        ),
        (NodeCopying(Ring(), keep="a"), "keep of NodeCopying must be a number between 0 and 1; got 'a'."),  # type: ignore[arg-type]
        (
            NodeCopying(Ring(), symmetrise="max"),
            "symmetrise of NodeCopying must be one of 'maximum', 'one-endpoint', 'none'; got 'max'.",
        ),
        (NodeCopying("same"), "law of NodeCopying must be a donor law such as SameLabel.*; got 'same'."),  # type: ignore[arg-type]
        (NodeCopying(SameLabel), "law of NodeCopying must be a donor law such as SameLabel.*; got <class"),  # type: ignore[arg-type]
        (NodeCopying(SameLabel([0])), "labels of SameLabel must hold one entry per node, 4 in all; got 1."),
    ],
)
def test_settings_are_checked_by_fit(model: NodeCopying[Graph], message: str) -> None:
    with pytest.raises(InputError, match=message):
        model.fit(ARROWS)


def test_only_graphs_and_interactions_are_fitted() -> None:
    with pytest.raises(InputError, match="graph of NodeCopying must be a Graph or Interactions; got ndarray"):
        NodeCopying(Ring()).fit(np.eye(3))  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": -1, "rng": 0}, "n of sample_many must be an integer of at least 0; got -1."),
        ({"n": 1.5, "rng": 0}, "n of sample_many must be an integer of at least 0; got 1.5."),
        ({"n": 1, "rng": 0, "workers": 0}, "workers of sample_many must be an integer of at least 1; got 0."),
        ({"n": 1, "rng": "x"}, "rng must be a non-negative integer, .*; got 'x'."),
        ({"n": 1, "rng": -3}, "rng must be a non-negative integer, .*; got -3."),
        ({"n": 1, "rng": True}, "rng must be a non-negative integer, .*; got True."),
    ],
)
def test_sample_many_complains_before_the_first_sample(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ring().sample_many(**arguments)


def test_other_arguments() -> None:
    model = ring()
    with pytest.raises(InputError, match="sample of draw_donors must be an integer of at least 0; got -1"):
        model.draw_donors(rng=0, sample=-1)
    with pytest.raises(InputError, match="donors must hold one entry per node, 40 in all; got 2"):
        model.copy([0, 1])
    with pytest.raises(InputError, match="donors must lie between 0 and 39; got 40"):
        model.copy(np.full(40, 40))
    with pytest.raises(InputError, match="donors must hold integers; got float64"):
        model.copy(np.zeros(40))
    with pytest.raises(
        InputError, match="n of monte_carlo_adjacency must be an integer of at least 1; got 0"
    ):
        model.monte_carlo_adjacency(0, rng=0)


def test_nothing_works_before_fit() -> None:
    model: NodeCopying[Graph] = NodeCopying(Ring())
    for call in (
        lambda: model.sample(rng=0),
        lambda: model.sample_many(1, rng=0),
        lambda: model.draw_donors(rng=0),
        lambda: model.copy([0]),
        lambda: model.expected_adjacency(),
        lambda: model.monte_carlo_adjacency(1, rng=0),
        lambda: model.log_probability(ARROWS),
    ):
        with pytest.raises(NotFittedError, match=r"not fitted yet: call fit\(graph\) first"):
            call()


def test_a_failed_fit_leaves_nothing_fitted() -> None:
    model = NodeCopying(SameLabel())
    with pytest.raises(InputError):
        model.fit(ARROWS)
    with pytest.raises(NotFittedError):
        model.sample(rng=0)


@pytest.mark.parametrize(
    "sample",
    [
        Graph(np.zeros((3, 3)), directed=True),
        Graph(np.zeros((4, 4))),
        Interactions(np.zeros((4, 4))),
    ],
)
def test_log_probability_wants_the_same_kind(sample: Any) -> None:
    model = NodeCopying(Ring()).fit(ARROWS)
    with pytest.raises(InputError, match=r"sample must be like the observed data, Graph\(4 nodes.*; got "):
        model.log_probability(sample)


def test_log_probability_wants_the_same_items() -> None:
    model = NodeCopying[Interactions](Jaccard()).fit(LOG)
    with pytest.raises(
        InputError, match=r"sample must be like the observed data.*; got Interactions\(4 users, 5 items"
    ):
        model.log_probability(Interactions(np.zeros((4, 5))))


def test_log_probability_is_unknown_for_undirected_graphs() -> None:
    model = ring()
    with pytest.raises(InputError, match="log_probability needs a directed graph or interactions"):
        model.log_probability(model.graph_)


@settings(deadline=None)
@given(graphs(), st.integers(0, 2**40))
def test_without_symmetrising_the_copied_rows_are_the_sample(graph: Graph, seed: int) -> None:
    law = SameLabel(np.zeros(graph.n_nodes, int))
    model = NodeCopying(law, symmetrise="none").fit(graph)
    sample = model.sample(rng=seed)
    assert sample.directed
    assert np.array_equal(dense(sample.rows), dense(graph.rows)[model.draw_donors(rng=seed)])
    assert graph.directed or NodeCopying(law).fit(graph).sample(rng=seed) == sample.undirected()
