from __future__ import annotations

import math
import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import nodecopy
from nodecopy import (
    Balanced,
    Graph,
    Interactions,
    Jaccard,
    NearestNeighbours,
    NodeCopying,
    SameLabel,
    Weighted,
    datasets,
)
from nodecopy._core.random import pair_coins, sample_key, seed_sequence
from nodecopy.copying import DonorRows
from nodecopy.copying import rows as row_copying
from nodecopy.errors import InputError, NotFittedError
from tests.contracts.graph_models import community_graph
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


@settings(deadline=None)
@given(graphs(), st.sampled_from(RULES), st.integers(0, 2**40))
def test_with_keep_one_the_sample_is_the_observed_graph(graph: Graph, symmetrise: str, seed: int) -> None:
    model = NodeCopying(SameLabel(np.zeros(graph.n_nodes, int)), 1.0, symmetrise).fit(graph)
    assert model.sample(rng=seed) == graph


@settings(deadline=None)
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


# Ids, labels and pickles


@pytest.mark.filterwarnings("ignore:.*by which donors are drawn:nodecopy.errors.DataWarning")
@settings(deadline=None, max_examples=40)
@given(graphs(labelled=True), st.sampled_from(RULES))
def test_ids_labels_and_features_stay(graph: Graph, symmetrise: str) -> None:
    model = NodeCopying(SameLabel(), symmetrise=symmetrise).fit(graph)
    sample = model.sample(rng=1)
    assert sample.replace(adjacency=graph.adjacency) == graph
    assert sample.label_names == graph.label_names
    assert sample == Graph(  # what came out passes every check of what comes in
        sample.adjacency, graph.features, graph.named_labels(), graph.node_ids, graph.directed
    )
    assert pickle.loads(pickle.dumps(sample)) == sample


def test_ids_of_users_and_items_stay() -> None:
    log = Interactions([[1, 1], [0, 1], [2, 0]], ["ann", "bob", "cleo"], ["jam", "tea"])
    sample = NodeCopying[Interactions](Jaccard(include_self=False)).fit(log).sample(rng=2)
    assert sample.user_ids.tolist() == ["ann", "bob", "cleo"]
    assert sample.item_ids.tolist() == ["jam", "tea"]
    assert pickle.loads(pickle.dumps(sample)) == sample


@pytest.mark.parametrize(
    "donors", [SameLabel([0, 0, 1, 1]), Jaccard(), Ring(), NearestNeighbours(2, np.eye(4))]
)
def test_models_pickle(donors: Any) -> None:
    model = NodeCopying(donors, 0.25).fit(ARROWS)
    again = pickle.loads(pickle.dumps(model))
    assert again.sample(rng=6) == model.sample(rng=6)
    assert pickle.loads(pickle.dumps(NodeCopying(donors, 0.25))).fit(ARROWS).sample(rng=6) == model.sample(
        rng=6
    )


def test_samples_are_read_only() -> None:
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
    "donors",
    [SameLabel([0, 0, 0, 1]), NearestNeighbours(2, np.arange(4.0)[:, None]), Jaccard(), Ring()],
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
        (
            NodeCopying("same"),  # type: ignore[arg-type]
            "donors of NodeCopying must be a donor rule such as SameLabel.*; got 'same'.",
        ),
        (
            NodeCopying(SameLabel),  # type: ignore[arg-type]
            "donors of NodeCopying must be a donor rule such as SameLabel.*; got type",
        ),
        (NodeCopying(SameLabel([0])), "labels of SameLabel must hold one entry per node, 4 in all; got 1."),
    ],
)
def test_settings_are_checked_by_fit(model: NodeCopying[Graph], message: str) -> None:
    with pytest.raises(InputError, match=message):
        model.fit(ARROWS)


def test_only_graphs_and_interactions_are_fitted() -> None:
    with pytest.raises(InputError, match=r"graph of NodeCopying must be a Graph.*; got numpy\.ndarray"):
        NodeCopying(Ring()).fit(np.eye(3))


def test_wrong_arguments_are_named() -> None:
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


def test_models_that_are_not_fitted_raise() -> None:
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
    with pytest.raises(
        InputError,
        match=r"sample must have the nodes and the type of the observed data, Graph\(4 nodes.*; got ",
    ):
        model.log_probability(sample)


def test_log_probability_wants_the_same_items() -> None:
    model = NodeCopying[Interactions](Jaccard()).fit(LOG)
    with pytest.raises(
        InputError,
        match=r"sample must have the nodes and the type.*; got Interactions\(4 users, 5 items",
    ):
        model.log_probability(Interactions(np.zeros((4, 5))))


def test_log_probability_is_unknown_for_undirected_graphs() -> None:
    model = ring()
    with pytest.raises(InputError, match="log_probability needs a directed graph or interactions"):
        model.log_probability(model.graph_)


@settings(deadline=None)
@given(graphs(), st.integers(0, 2**40))
def test_without_symmetrising_the_copied_rows_are_the_sample(graph: Graph, seed: int) -> None:
    rule = SameLabel(np.zeros(graph.n_nodes, int))
    model = NodeCopying(rule, symmetrise="none").fit(graph)
    sample = model.sample(rng=seed)
    assert sample.directed
    assert np.array_equal(dense(sample.rows), dense(graph.rows)[model.draw_donors(rng=seed)])
    union = NodeCopying(rule, symmetrise="maximum").fit(graph)
    assert graph.directed or union.sample(rng=seed) == sample.undirected()


def test_states_of_old_files_take_the_settings_of_the_constructor() -> None:
    model = NodeCopying(SameLabel([0, 0, 1]), keep=0.4, symmetrise="maximum").fit(Graph(np.ones((3, 3))))
    state = {name: value for name, value in model.get_state().items() if name[:4] not in ("keep", "symm")}
    loaded = NodeCopying(model.donors, model.keep, model.symmetrise)
    loaded.set_state({})
    assert not hasattr(loaded, "keep_")  # a part that is not fitted
    loaded.set_state(state)
    assert (loaded.keep_, loaded.symmetrise_) == (0.4, "maximum")
    for wrong in (
        {"keep_": np.nan},
        {"symmetrise_": "bogus"},
        {"distribution_": None},
        {"graph_": Graph([[0]])},
    ):
        with pytest.raises(InputError, match="of NodeCopying must"):
            loaded.set_state(state | wrong)


SIMILARITY = 1 / (1 + np.abs(np.subtract.outer(np.arange(20), np.arange(20))))
RATINGS = Interactions(
    np.arange(1, 13).reshape(4, 3) % 5, ["ann", "bob", "cleo", "dan"], ["jam", "tea", "oat"]
)
DONOR_RULES: dict[str, Any] = {
    "labels": SameLabel(),
    "given labels": SameLabel(np.arange(20) % 3),
    "listed labels": SameLabel([number % 3 for number in range(20)]),
    "neighbours": NearestNeighbours(4, ties="all", include_self=False),
    "groups": NearestNeighbours(3, groups="labels", max_degree_ratio=3.0),
    "jaccard": Jaccard(include_self=False, exponent=2.0, max_donors=3),
    "dense similarity": Weighted(SIMILARITY),
    "sparse similarity": Weighted(sparse.coo_array(SIMILARITY)),
    "balanced": Balanced(NearestNeighbours(3)),
}


@pytest.mark.parametrize("name", DONOR_RULES)
@pytest.mark.parametrize("symmetrise", ["maximum", "one-endpoint", "none"])
def test_node_copying_of_graphs_samples_the_same_graphs(name: str, symmetrise: str, tmp_path: Path) -> None:
    model = NodeCopying(DONOR_RULES[name], 0.25, symmetrise).fit(community_graph(weighted=True))
    model.save(tmp_path / "model.npz")
    loaded = nodecopy.load(tmp_path / "model.npz")
    assert list(loaded.sample_many(3, rng=5)) == list(model.sample_many(3, rng=5))
    assert (loaded.keep, loaded.symmetrise, type(loaded.donors)) == (
        0.25,
        symmetrise,
        type(DONOR_RULES[name]),
    )
    assert loaded.fit(model.graph_).sample(rng=6) == model.sample(rng=6)


@pytest.mark.parametrize("donors", [SameLabel([0, 0, 1, 1]), Jaccard(), NearestNeighbours(2, np.eye(4))])
def test_node_copying_of_interactions_samples_the_same_interactions(donors: Any, tmp_path: Path) -> None:
    model = NodeCopying(donors).fit(RATINGS)
    model.save(tmp_path / "model.npz")
    loaded = NodeCopying.load(tmp_path / "model.npz")
    assert loaded.graph_ == RATINGS
    assert list(loaded.sample_many(3, rng=5)) == list(model.sample_many(3, rng=5))


def test_the_edges_that_small_classes_lose() -> None:
    """Self-loops are dropped: e / n for e edges inside a class of n nodes; docs/model.md has 3.9 and 12."""
    club = datasets.load("karate")
    labels = np.asarray(club.labels)
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
