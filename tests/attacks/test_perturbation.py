"""Edits, perturbations and tables of flips."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from nodecopy import Graph
from nodecopy.attacks import DICE, GlobalDICE, Nettack, Perturbation, RandomFlips
from nodecopy.attacks.perturbation import Edits
from nodecopy.errors import InputError
from tests.attacks import oracles
from tests.attacks.oracles import small_graphs
from tests.contracts.classifiers import planted_graph


def path(**changes: Any) -> Graph:
    """Four nodes in a row."""
    return Graph(np.eye(4, k=1), node_ids=["a", "b", "c", "d"]).replace(**changes)


def perturb(flips: Any, added: Any, owners: Any, **changes: Any) -> Perturbation:
    arguments: dict[str, Any] = {
        "attack": "By hand",
        "node_ids": np.array(["a", "b", "c", "d"]),
        "targets": np.array([0, 1]),
        "budgets": np.array([2, 3]),
        "flips": np.array(flips).reshape(-1, 2),
        "is_added": np.array(added, bool),
        "owners": np.array(owners, int),
        "feature_flips": np.zeros((0, 2), int),
        "feature_owners": np.zeros(0, int),
    }
    return Perturbation(**arguments | changes)


ATTACK = perturb([[0, 1], [0, 2], [1, 3]], [False, True, True], [0, 0, 1])


def test_apply_all_or_one() -> None:
    edges = {frozenset(pair) for pair in zip(*ATTACK.apply(path()).edges()[:2], strict=True)}
    assert edges == {frozenset(pair) for pair in ("bc", "cd", "ac", "bd")}
    alone = ATTACK.apply(path(), target=1)
    assert alone.n_edges == 4
    with pytest.raises(InputError, match="target must be one of the 2 attacked nodes; got 3"):
        ATTACK.apply(path(), target=3)


def test_another_graph_is_refused() -> None:
    for other, message in (
        (path(node_ids=["a", "b", "d", "c"]), "graph must have the nodes of the attacked graph"),
        (Graph(np.eye(5, k=1)), "graph must have the nodes of the attacked graph"),
        (ATTACK.apply(path()), "'a', 'b' is to be removed but is absent, so that it seems to contain"),
        (path(adjacency=np.ones((4, 4))), "the edge 'a', 'c' is to be added but is present"),
        (path(directed=True), "graph must be undirected"),
        (path(adjacency=3 * np.eye(4, k=1)), "graph must be binary"),
    ):
        with pytest.raises(InputError, match=message):
            ATTACK.apply(other)
    features = perturb([], [], [], feature_flips=np.array([[0, 2]]), feature_owners=np.array([0]))
    for wrong, message in (
        (None, "graph must have the features that were attacked; this one has none"),
        (np.ones((4, 2)), "graph must have the features that were attacked, at least 3; got 2"),
        (np.full((4, 3), 0.5), "must be 0 or 1; feature 2 of node a is 0.5"),
    ):
        with pytest.raises(InputError, match=message):
            features.apply(path(features=wrong))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_features_are_flipped_in_turn(kind: Any) -> None:
    """The flip for the second target undoes that for the first at node 0; alone, each is made."""
    flips = {"feature_flips": np.array([[0, 1], [3, 0], [0, 1]]), "feature_owners": np.array([0, 0, 1])}
    before = np.array([[1, 0], [0, 1], [1, 1], [1, 0]])
    graph = path(features=kind(before))
    for together, after in ((True, [1, 0]), (False, [1, 1])):
        features_after: Any = perturb([], [], [], together=together, **flips).apply(graph).features
        assert sparse.csr_array(features_after).toarray().tolist() == [after, [0, 1], [1, 1], [0, 0]]
    unchanged: Any = graph.features
    assert np.array_equal(sparse.csr_array(unchanged).toarray(), before)


def test_flips_of_a_later_target_can_undo_those_of_an_earlier_one() -> None:
    both = perturb([[0, 3], [3, 0], [0, 3]], [True, False, True], [0, 1, 1])
    assert both.apply(path()).n_edges == 4
    assert both.of(0).apply(path()).n_edges == 4
    assert perturb([[0, 3], [3, 0]], [True, False], [0, 1]).apply(path()) == path()
    with pytest.raises(InputError, match="to be removed but is absent"):
        both.apply(path(), target=1)


def test_frozen_and_compared() -> None:
    with pytest.raises(ValueError, match="read-only"):
        ATTACK.flips[0, 0] = 3
    assert perturb([[0, 1], [0, 2], [1, 3]], [False, True, True], [0, 0, 1]) == ATTACK
    assert perturb([[0, 1], [0, 2], [1, 3]], [False, True, True], [0, 1, 1]) != ATTACK
    assert ATTACK != "a string"


def test_files(tmp_path: Path) -> None:
    file = tmp_path / "attack.npz"
    numbers = RandomFlips().attack(Graph(np.eye(4, k=1)), [2], budget=2, rng=0)
    numbers.save(file)
    assert Perturbation.load(file).apply(Graph(np.eye(4, k=1))).n_nodes == 4
    with pytest.raises(InputError, match=r"must end in one of .*\.npz"):
        ATTACK.save(tmp_path / "attack.pkl")
    np.savez(file, targets=np.arange(3))
    with pytest.raises(InputError, match=r"must hold a perturbation that save\(\) wrote; it holds targets"):
        Perturbation.load(file)
    file.write_bytes(b"nonsense")
    with pytest.raises(InputError, match="cannot be read"):
        Perturbation.load(file)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"budgets": [1]}, "budgets of a perturbation must have the shape"),
        ({"targets": [0, 3]}, "owners of a perturbation must hold targets only"),
        ({"is_added": [0, 1, 1]}, "is_added of Perturbation must be finite and of the type .*bool"),
        ({"budgets": ["a"]}, "budgets of Perturbation must be"),
        ({"together": "no"}, "together of Perturbation must be"),
        ({"targets": [1, 1]}, "targets of a perturbation must be unique"),
        ({"feature_flips": [[9, 0]], "feature_owners": [0]}, "feature_flips .* must lie between 0 and 3"),
        ({"feature_flips": [[0, -1]], "feature_owners": [0]}, "feature_flips .* must hold columns"),
    ],
)
def test_error_names_a_wrong_value(changes: dict[str, Any], message: str) -> None:
    arrays: dict[str, Any] = {name: np.array(value) for name, value in changes.items()}
    with pytest.raises(InputError, match=message):
        replace(ATTACK, **arrays)


@given(small_graphs(), st.data())
@settings(max_examples=40)
def test_edits_equal_flips_of_a_dense_adjacency(graph: Graph, data: st.DataObject) -> None:
    edits, dense = Edits(graph), graph.adjacency.toarray()
    nodes = st.integers(0, graph.n_nodes - 1)
    for owner in range(data.draw(st.integers(0, 6))):
        first, second = data.draw(st.lists(nodes, min_size=2, max_size=2, unique=True))
        edits.owner = owner
        edits.flip(first, second)
        assert edits.is_added[-1] == (dense[first, second] == 0)
        dense = oracles.flip(dense, first, second)
    assert edits.owners == list(range(len(edits.flips)))
    assert np.array_equal(edits.adjacency().toarray(), dense)
    assert edits.degrees.tolist() == dense.sum(axis=0).tolist()
    for node in range(graph.n_nodes):
        assert edits.neighbours(node).tolist() == np.flatnonzero(dense[node]).tolist()
        assert [edits.has_edge(node, other) for other in range(graph.n_nodes)] == (dense[node] > 0).tolist()


GRAPH = planted_graph()
PATH = Graph.from_edges(["007", "b", "c"], ["b", "c", "d"])


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
@pytest.mark.parametrize("together", [True, False])
def test_written_and_read_again(suffix: str, together: bool, tmp_path: Path) -> None:
    flips = DICE(together=together).attack(GRAPH, [4, 50, 21], rng=0)
    flips.save(tmp_path / f"flips{suffix}")
    again = Perturbation.load(tmp_path / f"flips{suffix}", GRAPH)
    assert again.apply(GRAPH) == flips.apply(GRAPH)
    for name in ("targets", "flips", "is_added", "owners", "spent"):
        assert np.array_equal(getattr(again, name), getattr(flips, name))


@pytest.mark.parametrize("together", [True, False])
def test_a_pair_that_is_flipped_for_two_targets(together: bool, tmp_path: Path) -> None:
    """Alone, both flips add the edge; in one graph the second removes it."""
    flips = RandomFlips(together=together).attack(PATH, ["007", "d"], budget=3, rng=0)
    flips.save(tmp_path / "flips.csv")
    again = Perturbation.load(tmp_path / "flips.csv", PATH)
    assert again.together == together
    assert again.apply(PATH) == flips.apply(PATH)


def test_the_whole_graph_and_nothing(tmp_path: Path) -> None:
    for number, flips in enumerate(
        [GlobalDICE().attack(GRAPH, budget=6, rng=0), Nettack().attack(GRAPH, [4], budget=0, rng=0)]
    ):
        flips.save(tmp_path / f"{number}.csv")
        again = Perturbation.load(tmp_path / f"{number}.csv", GRAPH)
        assert again.targets.tolist() == []
        assert again.apply(GRAPH) == flips.apply(GRAPH)


def test_a_table_by_hand(tmp_path: Path) -> None:
    """Without a column change, what is there is removed and what is not is added; zeros in ids are kept."""
    file = tmp_path / "flips.csv"
    file.write_text("second,first,note\nb,007,x\n007,d,y\n")
    flips = Perturbation.load(file, PATH)
    assert flips.is_added.tolist() == [False, True]
    assert flips.apply(PATH) == Graph.from_edges(["b", "c", "007"], ["c", "d", "d"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("source,target\nb,c\n", "must have the columns first and second; got source, target"),
        ("first,second\nb,x\n", "second in line 2 must be the id of a node; got 'x'"),
        ("first,second,change\nb,c,toggle\n", "change in line 2 must be 'add' or 'remove'; got 'toggle'"),
        ("first,second,change\nb,c,add\n", "change in line 2 must be 'remove', since the edge is present"),
        ("first,second\nb,b\n", "two different nodes"),
    ],
)
def test_wrong_tables(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "flips.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        Perturbation.load(file, PATH)


def test_what_a_table_cannot_hold(tmp_path: Path) -> None:
    flips: Any = Nettack(features=True, structure=False).attack(GRAPH, [4], budget=1, rng=0)
    with pytest.raises(InputError, match=r"must be an \.npz file, since a table holds no flips of features"):
        flips.save(tmp_path / "flips.csv")
    DICE().attack(GRAPH, [4], rng=0).save(tmp_path / "flips.csv")
    with pytest.raises(InputError, match="graph must be given to read a table of flips"):
        Perturbation.load(tmp_path / "flips.csv")
