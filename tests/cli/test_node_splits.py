from __future__ import annotations

import numpy as np
import pytest

from nodecopy import Graph, datasets
from nodecopy._core.random import child, seed_sequence
from nodecopy.cli.files import (
    cross_validation_folds,
    split_as_in_experiments,
    split_file,
    split_for_attack,
    split_for_report,
)
from nodecopy.errors import InputError
from nodecopy.experiments.spec import TrialSeeds, trial_seed
from nodecopy.graph import UNLABELLED


def labelled(labels: list[int]) -> Graph:
    return Graph(np.zeros((len(labels), len(labels))), labels=labels)


def test_labelled_nodes_of_a_file_are_split_by_class() -> None:
    graph = labelled([0] * 10 + [1] * 2 + [-1] * 3)
    split = split_file(graph, 0.9, seed_sequence(0))
    assert split.test.tolist() == [12, 13, 14]
    assert sorted([*split.train, *split.validation]) == list(range(12))
    assert np.bincount(np.array([0] * 10 + [1] * 2)[split.train]).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (Graph(np.zeros((2, 2))), "the graph must have labels to learn from; got none. Give --labels FILE"),
        (labelled([0, 1]), "some nodes must have no label, to be predicted; every node has one."),
    ],
)
def test_files_that_cannot_be_split(graph: Graph, message: str) -> None:
    with pytest.raises(InputError) as raised:
        split_file(graph, 0.0, seed_sequence(0))
    assert message in str(raised.value)


def test_every_labelled_node_of_a_small_graph_may_be_attacked() -> None:
    split, _ = split_for_attack(labelled([0, -1, 1, 1]), "edges.csv", 0)
    assert [part.tolist() for part in split] == [[0, 2, 3], [], [0, 2, 3]]
    with pytest.raises(InputError, match="the graph must have labels for this command"):
        split_for_attack(Graph(np.zeros((2, 2))), "edges.csv", 0)


def test_a_report_holds_out_one_label_in_five() -> None:
    graph = labelled([0] * 10 + [1] * 5 + [-1])
    split, _ = split_for_report(graph, "edges.csv", 3)
    assert np.asarray(graph.labels)[split.test].tolist() == [0, 0, 1]
    assert sorted([*split.train, *split.test]) == list(range(15))


def test_a_dataset_is_split_as_in_trial_0() -> None:
    pytest.importorskip("sklearn")
    digits = datasets.load("digits")
    split, root = split_as_in_experiments(digits, "digits", 2, 1)
    assert root.spawn_key == trial_seed(1, "digits", 0, labels=2).spawn_key
    expected = datasets.label_split(digits.labels, 2, 500, 1000, rng=child(root, TrialSeeds.SPLIT))
    assert [part.tolist() for part in split] == [part.tolist() for part in expected]


def test_small_datasets_have_fewer_validation_and_test_nodes(caplog: pytest.LogCaptureFixture) -> None:
    club = datasets.load("karate")
    with caplog.at_level("INFO", "nodecopy"):
        split, _ = split_as_in_experiments(club, "karate", 1, 0)
    assert [len(part) for part in split] == [2, 10, 22]
    assert "10 validation nodes and 22 test nodes, since karate has 32 labelled" in caplog.text
    with pytest.raises(InputError, match=r"--labels-per-class must be below \d+, .* of karate; got 500"):
        split_as_in_experiments(club, "karate", 500, 0)


def test_folds_leave_training_nodes_of_every_class() -> None:
    labels = np.array([0] * 7 + [1] * 2 + [2] + [UNLABELLED] * 5)
    folds = cross_validation_folds(labels, 4, np.random.default_rng(0))
    tested = np.concatenate(folds)
    assert sorted(tested.tolist()) == list(range(9))  # the only node of class 2 is never tested
    assert max(map(len, folds)) - min(map(len, folds)) <= 1
    for fold in folds:
        assert set(np.delete(labels, fold)) == {0, 1, 2, UNLABELLED}
