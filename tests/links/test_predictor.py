"""Missing and doubtful links: quality on graphs with known answers, contracts, and bad input."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
from scipy.special import logit

import nodecopy
from nodecopy import Graph, Interactions, datasets
from nodecopy.errors import InputError, NotFittedError
from nodecopy.generators import DegreeCorrectedSBM
from nodecopy.links import LinkPredictor
from nodecopy.links.signals import AdditiveModel
from nodecopy.metrics.classification import area_under_roc

KARATE = datasets.load("karate")


def planted(n: int = 120, *, directed: bool = False, features: bool = False) -> Graph:
    """Return four communities with dense insides and few edges across."""
    draws = np.random.default_rng(4)
    labels = np.arange(n) % 4
    p = np.where(labels[:, None] == labels, 0.35, 0.01)
    dense = draws.random((n, n)) < p
    np.fill_diagonal(dense, False)
    x = np.eye(4)[labels] + 0.4 * draws.normal(size=(n, 4)) if features else None
    return Graph(dense if directed else np.triu(dense), x, labels, directed=directed)


def held_out(graph: Graph, share: float = 0.1) -> tuple[Graph, Any, Any]:
    """Return a graph without some edges, these edges, and as many absent pairs, by position."""
    draws = np.random.default_rng(8)
    first, second, _ = graph.edges()
    is_test = draws.random(len(first)) < share
    train = Graph.from_edges(
        first[~is_test], second[~is_test], node_ids=graph.node_ids, directed=graph.directed
    )
    dense = graph.adjacency.toarray() > 0
    np.fill_diagonal(dense, True)
    absent = np.argwhere(~dense)
    pairs = absent[draws.choice(len(absent), int(is_test.sum()), replace=False)]
    rest = graph.replace(adjacency=train.adjacency)
    return rest, np.stack([first[is_test], second[is_test]], axis=1), pairs


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("features", [False, True], ids=["structure", "features"])
def test_held_out_edges_are_more_probable_than_other_pairs(directed: bool, features: bool) -> None:
    graph = planted(directed=directed, features=features)
    train, edges, pairs = held_out(graph)
    model, is_edge = LinkPredictor().fit(train, rng=0), np.arange(2 * len(edges)) < len(edges)
    labels: Any = graph.label_codes
    both = np.concatenate([edges, pairs])
    # Nothing is better than the communities, which are not known to the model.
    best = area_under_roc(labels[both[:, 0]] == labels[both[:, 1]], is_edge)
    assert area_under_roc(model.score(both), is_edge) > best - 0.08


def test_planted_edges_are_doubtful() -> None:
    graph = planted(features=True)
    labels: Any = graph.label_codes
    first, second, _ = graph.edges()
    p = LinkPredictor().fit(graph, rng=0).edge_probabilities()
    assert area_under_roc(-p, labels[first] != labels[second]) > 0.9


def test_probabilities_are_calibrated() -> None:
    """As many absent pairs are hidden edges as the probabilities promise; the standard error is 5 %."""
    train, edges, _ = held_out(planted(400), 0.2)
    model = LinkPredictor().fit(train, rng=0)
    absent = np.argwhere(np.triu(train.adjacency.toarray() == 0, 1))
    p = model.score(absent)
    # Probabilities are for the density of the graph; hidden edges are rarer than edges.
    p = 1 / (1 + np.exp(-logit(p)) * train.n_edges / len(edges))
    is_edge = np.isin(absent @ [400, 1], edges @ [400, 1])
    for chosen in (p > 0, p > np.quantile(p, 0.8), p > np.quantile(p, 0.95)):
        assert p[chosen].mean() == pytest.approx(is_edge[chosen].mean(), rel=0.25)


def test_missing_links_are_the_most_probable_of_all_absent_pairs() -> None:
    model = LinkPredictor().fit(KARATE, rng=0)
    absent = np.argwhere(np.triu(KARATE.adjacency.toarray() == 0, 1))
    p = model.score(KARATE.node_ids[absent])
    links = model.missing(len(absent) + 10)
    assert np.allclose(links.probabilities[:20], np.sort(p)[::-1][:20])
    assert (np.diff(links.probabilities) <= 0).all()
    assert {tuple(pair) for pair in links.positions.tolist()} <= {tuple(pair) for pair in absent.tolist()}
    assert np.array_equal(model.score(links), links.probabilities)


def test_doubtful_links_are_edges_judged_without_themselves() -> None:
    # A bridge between two cliques has nothing that speaks for it once it is gone.
    first, second = np.triu_indices(8, 1)
    cliques = Graph.from_edges([*first, *first + 8, 0], [*second, *second + 8, 15])
    model = LinkPredictor().fit(cliques, rng=0)
    assert model.doubtful(1).positions.tolist() == [[0, 15]]
    assert model.score([[15, 0]]) < 0.2 < 0.8 < model.score([[1, 2]])
    assert model.doubtful(1000).probabilities[-1] == model.edge_probabilities().max()


def test_reasons_add_up_to_the_probability() -> None:
    model = LinkPredictor().fit(KARATE, rng=0)
    pairs: list[Any] = [[1, 2], [1, 10], model.missing(1), model.doubtful(1)]
    for pair in pairs:
        why = model.explain(pair)
        total = logit(why.base_rate) + sum(contribution for _, _, contribution in why.reasons)
        assert why.probability == pytest.approx(1 / (1 + np.exp(-total)))
        assert why.probability == pytest.approx(model.score(pair)[0])
        for end, donor, _ in why.donors:
            other = why.second if end == why.first else why.first
            positions = np.flatnonzero(np.isin(KARATE.node_ids, [donor, other]))
            assert KARATE.adjacency[positions[0], positions[1]]


def test_denoise_removes_and_adds_what_is_listed() -> None:
    model = LinkPredictor().fit(KARATE, rng=0)
    changed = model.denoise(remove=0.1, add=5)
    assert changed.n_edges == 78 - 8 + 5
    dense: Any = changed.adjacency.toarray()
    assert (dense == dense.T).all()
    assert not dense[tuple(model.doubtful(8).positions.T)].any()
    assert dense[tuple(model.missing(5).positions.T)].all()
    assert changed.labels.tolist() == np.asarray(KARATE.labels).tolist()
    assert model.denoise() == KARATE


def test_self_loops_and_weights_survive_denoising() -> None:
    graph = planted(40, directed=True)
    weighted = graph.adjacency.toarray() * np.random.default_rng(0).integers(1, 5, (40, 40))
    weighted[3, 3] = 7.0
    graph = Graph(weighted, directed=True)
    model = LinkPredictor().fit(graph, rng=0)
    changed = model.denoise(remove=4, add=2)
    assert changed.adjacency[3, 3] == 7.0
    assert changed.n_edges == graph.n_edges - 2
    assert len(model.edge_probabilities()) == graph.n_edges
    assert model.edge_probabilities()[graph.rows.row_numbers == graph.rows.indices].tolist() == [1.0]


def test_interactions_are_pairs_of_users_and_items() -> None:
    library = datasets.load("library")
    model = LinkPredictor().fit(library, rng=0)
    links = model.missing(20)
    dense = library.matrix.toarray()
    assert (dense[tuple(links.positions.T)] == 0).all()
    assert links.first[0] in library.user_ids
    assert links.second[0] in library.item_ids
    assert np.allclose(model.score(np.stack([links.first, links.second], axis=1)), links.probabilities)
    changed = model.denoise(remove=3, add=20)
    assert isinstance(changed, Interactions)
    assert changed.n_interactions == library.n_interactions + 17
    assert model.explain(model.missing(1)).reasons


def test_confidence_moves_edges() -> None:
    confidence = np.full(78, 0.9)
    confidence[5] = 0.02
    model = LinkPredictor().fit(KARATE, edge_confidence=confidence, rng=0)
    assert model.edge_probabilities().argmin() == 5
    # With a confidence equal to the density, an edge is judged by its signals alone.
    density = 78 / (34 * 33 / 2)
    same = LinkPredictor().fit(KARATE, edge_confidence=np.full(78, density), rng=0)
    first, second, _ = KARATE.edges()
    assert np.allclose(same.edge_probabilities(), same.score(np.stack([first, second], axis=1)))


def test_counts_of_looks_are_confidence() -> None:
    counts = np.arange(78) % 5
    first = LinkPredictor().fit(KARATE, edge_confidence=counts, n_looks=4, rng=0)
    second = LinkPredictor().fit(KARATE, edge_confidence=(counts + 1) / 6, rng=0)
    assert np.array_equal(first.edge_probabilities(), second.edge_probabilities())


def test_without_donors_nothing_is_copied() -> None:
    model = LinkPredictor(n_donors=0).fit(KARATE, rng=0)
    why = model.explain([1, 10])
    assert not [reason for reason in why.reasons if "copied" in reason[0]]
    assert why.donors == []


def test_a_saved_predictor_gives_the_same_answers(tmp_path: Path) -> None:
    confidence = np.linspace(0.2, 1.0, 78)
    for graph, given in ((KARATE, confidence), (datasets.load("library"), None)):
        model = LinkPredictor().fit(graph, edge_confidence=given, rng=0)
        pair = model.missing(1).pairs()[0]
        model.save(tmp_path / "links.npz")
        loaded = nodecopy.load(tmp_path / "links.npz")
        assert np.allclose(loaded.missing(5).probabilities, model.missing(5).probabilities)
        assert np.array_equal(loaded.edge_probabilities(), model.edge_probabilities())
        assert loaded.explain(pair).to_dict() == model.explain(pair).to_dict()


def test_graphs_of_networkx_keep_their_names() -> None:
    network = networkx.les_miserables_graph()
    model = LinkPredictor().fit(network, rng=0)
    assert model.missing(3).first[0] in network
    assert model.score([["Valjean", "Javert"]]) > model.score([["Napoleon", "Javert"]])


def judge(graph: Any, **settings: Any) -> float:
    """Return the largest probability of the edges and of the missing edges that are listed."""
    model = LinkPredictor().fit(graph, rng=0, **settings)
    p = np.concatenate([links.probabilities for links in (model.missing(3), model.doubtful(3))])
    assert ((p > 0) & (p < 1)).all()
    return float(p.max())


def club() -> LinkPredictor:
    return LinkPredictor().fit(KARATE, rng=0)


LACKS_PAIRS = np.ones((6, 6)) - np.eye(6) - np.eye(6)[:, ::-1]
INPUT: dict[str, tuple[Any, str]] = {  # what is done, and a part of the error; none if there is an answer
    "no nodes": (lambda: judge(Graph(np.zeros((0, 0)))), "at least 2 edges; got 0"),
    "no edges": (lambda: judge(Graph(np.zeros((5, 5)))), "at least 2 edges; got 0"),
    "one edge": (lambda: judge(Graph.from_edges([0], [1])), "at least 2 edges; got 1"),
    "self-loops only": (lambda: judge(Graph(np.eye(4))), "at least 2 edges; got 0"),
    "complete": (lambda: judge(Graph(np.ones((5, 5)))), "complete"),
    "complete log": (lambda: judge(Interactions(np.ones((2, 3)))), "complete"),
    "two edges": (lambda: judge(Graph.from_edges([0, 1], [1, 2])), ""),
    "nearly complete": (lambda: judge(Graph(LACKS_PAIRS)), ""),
    "small log": (lambda: judge(Interactions([[1, 1, 0], [0, 1, 1]])), ""),
    "isolated nodes": (lambda: judge(Graph.from_edges([0] * 4, [1, 2, 3, 4], node_ids=range(9))), ""),
    "constant features": (lambda: judge(KARATE.replace(features=np.ones((34, 3)))), ""),
    "zero features": (lambda: judge(KARATE.replace(features=np.zeros((34, 3)))), ""),
    "repeated edges": (lambda: judge(networkx.MultiGraph([(0, 1), (0, 1), (1, 2), (2, 3)])), ""),
    "repeated pairs": (
        lambda: np.testing.assert_equal(np.ptp(club().score([[1, 2], [1, 2], [2, 1]])), 0),
        "",
    ),
    "no pairs": (lambda: club().score(np.zeros((0, 2), int)), ""),
    "unknown number": (lambda: club().score([[1, 99]]), "99"),
    "unknown id": (lambda: club().score([["1", "nobody"]]), "nobody"),
    "a node with itself": (lambda: club().score([[1, 1]]), "two different"),
    "three columns": (lambda: club().score([[1, 2, 3]]), "two columns"),
    "two pairs to explain": (lambda: club().explain([[1, 2], [2, 3]]), "single pair"),
    "more than all edges": (lambda: club().denoise(remove=79), "remove of denoise"),
    "no links": (lambda: club().missing(0), "k of missing"),
    "fewer than no donors": (lambda: LinkPredictor(-1).fit(KARATE), "n_donors of LinkPredictor"),
    "confidence as counts": (lambda: judge(KARATE, edge_confidence=[0.8] * 78, n_looks=9), "counts of looks"),
    "counts as confidence": (lambda: judge(KARATE, edge_confidence=np.full(78, 3)), r"looks \(n_looks=3\)"),
    "confidence above looks": (lambda: judge(KARATE, edge_confidence=[4] * 78, n_looks=3), "between 0 and 3"),
    "missing confidence": (lambda: judge(KARATE, edge_confidence=[np.nan] * 78), "got nan"),
    "short confidence": (lambda: judge(KARATE, edge_confidence=[0.5]), "78"),
    "unfitted": (lambda: LinkPredictor().missing(1), r"fit\(graph\) first"),
    "looks alone": (lambda: judge(KARATE, n_looks=3), "n_looks must be given with"),
}


@pytest.mark.parametrize(("task", "fragment"), INPUT.values(), ids=INPUT)
def test_odd_input_has_a_clear_answer(task: Any, fragment: str) -> None:
    with pytest.raises((InputError, NotFittedError), match=fragment) if fragment else nullcontext():
        task()


def test_a_large_search_finds_what_a_full_one_finds() -> None:
    """Approximate donors and a limited number of candidates lose little of the best links."""
    graph = DegreeCorrectedSBM().fit(planted(300), rng=0).sample(rng=1)
    model = LinkPredictor().fit(graph, rng=0)
    absent = np.argwhere(np.triu(graph.adjacency.toarray() == 0, 1))
    best = np.sort(model.score(absent))[::-1][:50]
    assert model.missing(50).probabilities.mean() > 0.95 * best.mean()


def learn(x: np.ndarray, y: np.ndarray, log: list[bool], offset: float | np.ndarray = 0.0) -> AdditiveModel:
    full = np.full(len(x), offset) if np.ndim(offset) == 0 else np.asarray(offset)
    return AdditiveModel.fit(x, y, is_logarithmic=log, offset=full, weights=np.ones(len(x)))


def test_a_function_that_is_not_monotonic_is_learnt() -> None:
    draws = np.random.default_rng(0)
    x = draws.uniform(-2, 2, (20_000, 1))
    truth = 3 * np.abs(x[:, 0]) - 3
    y = draws.random(len(x)) < 1 / (1 + np.exp(-truth))
    model = learn(x, y, [False])
    assert np.abs(model.log_odds(x) - truth).mean() < 0.25


def test_an_offset_undoes_the_sampling_of_pairs() -> None:
    draws = np.random.default_rng(1)
    x = draws.normal(size=(200_000, 1))
    y = draws.random(len(x)) < 1 / (1 + np.exp(-(2 * x[:, 0] - 4)))
    # One in ten pairs without an edge is kept where x > 0, one in fifty elsewhere.
    kept = np.where(x[:, 0] > 0, 0.1, 0.02)
    chosen = y | (draws.random(len(x)) < kept)
    offset = -np.log(kept[chosen])
    model = learn(x[chosen], y[chosen], [False], offset)
    middle = np.abs(x[:, 0]) < 1.5
    assert np.abs(model.log_odds(x[middle]) - (2 * x[middle, 0] - 4)).mean() < 0.2


def test_contributions_are_centred_and_constant_outside() -> None:
    draws = np.random.default_rng(2)
    x = draws.exponential(size=(2000, 2))
    y = draws.random(len(x)) < x[:, 0] / (1 + x[:, 0])
    model = learn(x, y, [True, False])
    assert np.allclose(model.contributions(x[~y]).mean(axis=0), 0)
    far = np.array([[x[:, 0].max(), 1.0], [1e6, 1.0]])
    assert model.log_odds(far)[0] == pytest.approx(model.log_odds(far)[1])
    assert np.allclose(model.log_odds(x), model.intercept + model.contributions(x).sum(axis=1))


def test_constant_signals_contribute_nothing() -> None:
    x = np.column_stack([np.zeros(100), np.ones(100)])
    model = learn(x, np.arange(100) < 20, [True, False])
    assert np.allclose(model.contributions(x), 0)
    assert model.log_odds(x)[0] == pytest.approx(np.log(20 / 80), abs=0.1)
