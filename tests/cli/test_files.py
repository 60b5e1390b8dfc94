"""What commands read: tables and their options, ids, splits of nodes; and what they must not overwrite."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nodecopy import Graph, datasets
from nodecopy._core.random import seed_sequence
from nodecopy.cli.files import load_graph, parse_nodes, split_as_in_experiments, split_file
from nodecopy.cli.options import GraphOptions
from nodecopy.datasets.splits import cross_validation_folds
from nodecopy.errors import InputError
from nodecopy.graph import UNLABELLED
from nodecopy.report.writing import split_for_report
from tests.cli.conftest import Run


def test_columns_are_named(run: Run) -> None:
    Path("edges.csv").write_text("when,a,b,much\n1,x,y,2\n1,y,z,3\n1,x,y,4\n")
    columns = ("--source", "a", "--target", "b", "--weight", "much", "--duplicates", "sum", "--json")
    result = run("stats", "edges.csv", *columns).json()
    assert (result["n_nodes"], result["n_edges"]) == (3, 2)
    assert "repeated edges: 1; their weights are added" in result["notices"][1]


def test_headers_are_decided(run: Run) -> None:
    Path("edges.csv").write_text("ann,bob\nbob,cleo\n")
    ran = run("stats", "edges.csv")
    assert "the first row (ann,bob) is data, since 'bob' occurs again. Use --header" in ran.err
    result = run("stats", "edges.csv", "--header", "--json").json()
    assert result["n_nodes"] == 2


def test_columns_of_features_are_ignored(run: Run) -> None:
    Path("edges.csv").write_text("source,target\n" + "".join(f"{n},{(n + 1) % 12}\n" for n in range(12)))
    Path("features.csv").write_text("id,x,note\n" + "".join(f"{n},{n % 5},text {n}\n" for n in range(12)))
    arguments = ("sample", "edges.csv", "--features", "features.csv")
    assert "column 'note' has another text" in run(*arguments).err
    assert run(*arguments, "--ignore-column", "note").code == 0


def test_graphs_of_files(run: Run) -> None:
    Path("edges.csv").write_text("source,target\na,b\nb,c\nd,e\n", encoding="utf-8")
    assert load_graph("edges.csv", GraphOptions()).n_nodes == 5
    assert load_graph("edges.csv", GraphOptions(directed=True)).directed
    component = load_graph("edges.csv", GraphOptions(largest_component=True))
    assert component.node_ids.tolist() == ["a", "b", "c"]


def test_nodes_are_given_as_text_or_as_a_file(run: Run) -> None:
    graph = Graph(np.zeros((3, 3)), node_ids=["a", "b c", "d"])
    Path("ids.txt").write_text("d\n\nb c\n", encoding="utf-8")
    Path("a").write_text("d\n", encoding="utf-8")
    assert parse_nodes(graph, "d, b c").tolist() == [2, 1]
    assert parse_nodes(graph, "ids.txt").tolist() == [2, 1]
    assert parse_nodes(graph, "a").tolist() == [0]  # an id is never taken for a file


def test_no_text_is_a_formula_with_spreadsheet(run: Run) -> None:
    Path("log.csv").write_text("user,item\n=HYPERLINK(1),+a\n=HYPERLINK(1),b\n-c,b\n-c,d\n@e,d\n@e,+a\n")
    command = ("recommend", "log.csv", "--model", "popularity", "--all-users", "--out", "out.csv")
    run(*command, "--spreadsheet")
    cells = [cell for line in Path("out.csv").read_text().splitlines() for cell in line.split(",")]
    assert "'=HYPERLINK(1)" in cells
    assert not any(cell.startswith(("=", "+", "@")) for cell in cells)
    run(*command)
    assert "=HYPERLINK(1)" in Path("out.csv").read_text().replace(",", "\n").splitlines()
    run("sample", "log.csv", "--spreadsheet", "--out", "samples")
    assert "'-c" in Path("samples/sample-0.csv").read_text()


def labelled(labels: list[int]) -> Graph:
    return Graph(np.zeros((len(labels), len(labels))), labels=labels)


def test_labelled_nodes_of_a_file_are_split_by_class() -> None:
    graph = labelled([0] * 10 + [1] * 2 + [-1] * 3)
    split = split_file(graph, 0.9, seed_sequence(0))
    assert split.test.tolist() == [12, 13, 14]
    assert sorted([*split.train, *split.validation]) == list(range(12))
    assert np.bincount(np.array([0] * 10 + [1] * 2)[split.train]).tolist() == [1, 1]


def test_a_report_holds_out_one_label_in_five() -> None:
    graph = labelled([0] * 10 + [1] * 5 + [-1])
    split, _ = split_for_report(graph, seed_sequence(3))
    assert np.asarray(graph.label_codes)[split.test].tolist() == [0, 0, 1]
    assert sorted([*split.train, *split.test]) == list(range(15))


def test_small_datasets_have_fewer_validation_and_test_nodes(caplog: pytest.LogCaptureFixture) -> None:
    club = datasets.load("karate")
    split, _ = split_as_in_experiments(club, "karate", 1, 0)
    assert [len(part) for part in split] == [2, 10, 22]
    assert "10 validation nodes and 22 test nodes, since karate has 32 labelled" in caplog.text
    with pytest.raises(InputError, match=r"--labels-per-class must be below \d+, .* of karate; got 500"):
        split_as_in_experiments(club, "karate", 500, 0)
    split, _ = split_as_in_experiments(club, "karate", None, 0)
    assert len(split.train) == 16
    assert "8 training nodes of each class" in caplog.text


def test_folds_leave_training_nodes_of_every_class() -> None:
    labels = np.array([0] * 7 + [1] * 2 + [2] + [UNLABELLED] * 5)
    folds = cross_validation_folds(labels, 4, np.random.default_rng(0))
    tested = np.concatenate(folds)
    assert sorted(tested.tolist()) == list(range(9))  # the only node of class 2 is never tested
    assert max(map(len, folds)) - min(map(len, folds)) <= 1
    for fold in folds:
        assert set(np.delete(labels, fold)) == {0, 1, 2, UNLABELLED}
