from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nodecopy
from nodecopy import Graph
from nodecopy.cli.files import (
    describe_run,
    find_ids,
    is_dataset,
    load_graph,
    load_interactions,
    parse_nodes,
)
from nodecopy.errors import InputError


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_source_is_a_dataset_or_a_file() -> None:
    Path("folderless").touch()
    assert [is_dataset(name) for name in ("karate", "folderless", "missing.csv")] == [True, False, False]
    with pytest.raises(InputError, match=r"a source that is not a file must be .* Did you mean karate\?"):
        is_dataset("karat")


def test_graphs_of_files() -> None:
    Path("edges.csv").write_text("source,target\na,b\nb,c\nd,e\n", encoding="utf-8")
    assert load_graph("edges.csv", None, None, False, False).n_nodes == 5
    assert load_graph("edges.csv", None, None, True, False).directed
    component = load_graph("edges.csv", None, None, False, True)
    assert component.node_ids.tolist() == ["a", "b", "c"]


def test_a_dataset_of_the_other_kind_is_an_error() -> None:
    with pytest.raises(InputError, match="must be a graph for this command; library holds interactions"):
        load_graph("library", None, None, False, False)
    with pytest.raises(InputError, match="must hold interactions for this command; karate is a graph"):
        load_interactions("karate")


def test_options_of_files_are_rejected_for_datasets() -> None:
    with pytest.raises(InputError, match="--labels applies to files only; got the dataset 'karate'"):
        load_graph("karate", Path("labels.csv"), None, False, False)


def test_files_without_content() -> None:
    Path("edges.csv").write_text("source,target\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"edges\.csv must hold at least one node; it holds none"):
        load_graph("edges.csv", None, None, False, False)
    Path("log.csv").write_text("user,item,rating\nann,tea,0\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"log\.csv must hold at least one interaction; it holds none"):
        load_interactions("log.csv")


def test_nodes_are_given_as_text_or_as_a_file() -> None:
    graph = Graph(np.zeros((3, 3)), node_ids=["a", "b c", "d"])
    Path("ids.txt").write_text("d\n\nb c\n", encoding="utf-8")
    Path("a").write_text("d\n", encoding="utf-8")
    assert parse_nodes(graph, "d, b c").tolist() == [2, 1]
    assert parse_nodes(graph, "ids.txt").tolist() == [2, 1]
    assert parse_nodes(graph, "a").tolist() == [0]  # an id is never taken for a file
    for nodes, message in (
        (" ,", "must name at least one node"),
        ("a,a", "--nodes"),
        ("x", "ids of nodes; got 'x'"),
    ):
        with pytest.raises(InputError, match=message):
            parse_nodes(graph, nodes)


def test_an_unknown_id_is_an_error_with_close_ids() -> None:
    users = np.array(["ann", "anna", "bob"])
    assert find_ids(["bob", "ann"], users, "--user").tolist() == [2, 0]
    with pytest.raises(InputError) as raised:
        find_ids(["annn"], users, "--user")
    assert str(raised.value) == (
        "--user must hold ids of users; got 'annn', which is none. Did you mean ann or anna?"
    )


def test_a_run_is_described_by_version_source_and_settings() -> None:
    assert describe_run("folder/edges.csv", seed=3) == {
        "nodecopy": nodecopy.__version__,
        "source": "edges.csv",
        "seed": 3,
    }
