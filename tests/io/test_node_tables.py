"""Tables of labels and features: whose ids they name, and what happens to those that are no nodes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from nodecopy import read_graph
from nodecopy.errors import DataWarning, InputError
from nodecopy.io import FeatureEncoder
from nodecopy.io.node_tables import check_known, check_numbers

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def to_file(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return to_file


def test_unknown_ids_are_listed_with_close_ones(write: Write) -> None:
    """Before, they added isolated nodes without a word, or the error blamed the other file."""
    edges = write("edges.csv", "source,target\nanna,bobby\nbobby,cleo\n")
    for kind, text in (("labels", "id,label\nana,1\nbobby,2\nzzz,1\n"), ("features", "id,x\nana,1\nzzz,2\n")):
        with pytest.raises(InputError) as raised:
            read_graph(edges, **{kind: write(f"{kind}.csv", text)})  # type: ignore[arg-type]
        assert f"{kind}.csv: 2 of" in str(raised.value)
        assert "not nodes of the graph: 'ana', 'zzz'. Did you mean 'anna'?" in str(raised.value)
        assert str(raised.value).endswith(" allow_isolated=True adds them as isolated nodes.")


def test_unknown_ids_become_isolated_nodes_on_demand(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    edges, labels = write("edges.csv", "source,target\na,b\n"), write("labels.csv", "id,label\na,1\nz,2\n")
    with caplog.at_level(logging.INFO, "nodecopy"):
        graph = read_graph(edges, labels=labels, allow_isolated=True)
    assert graph.node_ids.tolist() == ["a", "b", "z"]
    assert "ids without edges are isolated nodes (1): 'z'." in caplog.messages


def test_five_ids_are_listed() -> None:
    with pytest.raises(InputError, match=r"7 of 7 ids .*: 'x0', 'x1', 'x2', 'x3', 'x4' and 2 more\. Correct"):
        check_known([f"x{number}" for number in range(7)], {"node"}, allow_isolated=False)


def test_nodes_without_edges_at_all(write: Write) -> None:
    graph = read_graph(write("edges.csv", "source,target\n"), labels=write("labels.csv", "id,label\na,1\n"))
    assert graph.node_ids.tolist() == ["a"]


@pytest.mark.parametrize("allow_isolated", [False, True])
@pytest.mark.parametrize(
    ("edges", "labels"),
    [
        ("007,012\n012,100\n", "id,label\n7,1\n12,2\n"),
        ("7,12\n12,100\n", "id,label\n007,1\n012,2\n"),
        ("7,12\n12,100\n", "id,label\n7.0,1\n12.0,2\n"),
    ],
    ids=["lost in labels", "lost in edges", "decimals"],
)
def test_ids_that_lost_their_zeros(edges: str, labels: str, allow_isolated: bool, write: Write) -> None:
    with pytest.raises(
        InputError, match=r"labels.csv: id '.*7.*' is not a node of the graph, but '.*7' is\."
    ):
        read_graph(
            write("edges.csv", edges), labels=write("labels.csv", labels), allow_isolated=allow_isolated
        )


def test_zeros_of_frames_survive() -> None:
    edges = pandas.DataFrame({"source": ["007", "012"], "target": ["012", "100"]})
    labels = pandas.DataFrame({"id": ["007"], "label": ["x"]})
    assert read_graph(edges, labels=labels).node_ids.tolist() == ["007", "012", "100"]
    with pytest.raises(InputError, match=r"the data frame: id '7' .* but '007' is.*dtype=str"):
        read_graph(edges, labels=labels.assign(id=[7]))


def test_zeros_of_one_column_of_edges() -> None:
    edges = pandas.DataFrame({"source": [7, 8], "target": ["007", "9"]})
    with pytest.raises(InputError, match=r"got 7 in one column and '007' in another\. Read both as text"):
        read_graph(edges)
    assert read_graph(edges.assign(target=["010", "9"])).node_ids.tolist() == ["010", "7", "8", "9"]


def test_a_header_of_unfamiliar_names(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    """Before, the header was a node, an edge and a class, and the error blamed the features."""
    edges = write("edges.csv", "from_account,to_account\nann,bob\nbob,cleo\ncleo,ann\n")
    labels = write("labels.csv", "account_no,segment\nann,gold\nbob,silver\ncleo,gold\n")
    features = write("features.csv", "account_no,city\nann,Oslo\nbob,Rome\ncleo,Oslo\n")
    with caplog.at_level(logging.INFO, "nodecopy"):
        graph = read_graph(edges, labels=labels, features=features)
    assert graph.node_ids.tolist() == ["ann", "bob", "cleo"]
    assert graph.label_names == ("gold", "silver")
    assert graph.feature_encoder.feature_names_ == ["city = Oslo", "city = Rome"]
    assert [message.partition(":")[0] for message in caplog.messages] == [
        "edges.csv",
        "labels.csv",
        "features.csv",
        "features",
    ]


def test_named_columns(write: Write) -> None:
    edges = write("edges.csv", "source,target\na,b\n")
    nodes = write("nodes.csv", "since,key,group\n2001,a,x\n2002,b,y\n")
    graph = read_graph(edges, labels=nodes, id="key", label="group")
    assert graph.label_names == ("x", "y")
    assert read_graph(edges, features=nodes, id="key").features.shape == (2, 3)  # type: ignore[union-attr]
    with pytest.raises(InputError, match="there is no column 'kee'; there are since, key, group"):
        read_graph(edges, labels=nodes, id="kee")
    with pytest.raises(InputError, match="there is no column 'kee'; there are since, key, group"):
        read_graph(edges, features=nodes, id="kee")
    np.savez(edges.with_name("graph.npz"), indptr=[0, 1], indices=[0], directed=True)
    with pytest.raises(InputError, match="tables of labels and features; got no such table"):
        read_graph(edges.with_name("graph.npz"), label="group")
    for names in ({"id": "key"}, {"label": "group"}):
        with pytest.raises(InputError, match="tables of labels and features; got no such table"):
            read_graph(edges, **names)  # type: ignore[arg-type]


def test_the_column_of_labels_is_no_feature(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    nodes = write("nodes.csv", "id,x,label\na,1,0\nb,2,1\n")
    with caplog.at_level(logging.INFO, "nodecopy"):
        graph = read_graph(write("edges.csv", "source,target\na,b\n"), labels=nodes, features=nodes)
    np.testing.assert_array_equal(graph.features, [[1], [2]])
    assert any("column label is not a feature, since it holds labels" in m for m in caplog.messages)


@pytest.mark.parametrize(
    ("text", "features"),
    [
        (",id,x\n1,a,5\n2,b,6\n", [[5], [6]]),
        (",x\na,5\nb,6\n", [[5], [6]]),
        (",account,x\n1,a,5\n2,b,6\n", [[5], [6]]),
    ],
    ids=["row names beside ids", "an index of ids", "row names beside unfamiliar ids"],
)
def test_columns_without_a_name(text: str, features: list[Any], write: Write) -> None:
    graph = read_graph(write("edges.csv", "source,target\na,b\n"), features=write("features.csv", text))
    np.testing.assert_array_equal(graph.features, features)


def test_rows_of_numbered_nodes() -> None:
    check_numbers([0, 1, 2], 3)
    check_numbers(["0", "2"], 3)
    with pytest.raises(InputError, match="rows of nodes 0 to 2, but the graph has node 3"):
        check_numbers([1, 2, 3], 3)


def test_missing_labels(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    """Before, NA of R was a class."""
    edges = write("edges.csv", "source,target\nann,bob\nbob,cleo\ncleo,dan\n")
    labels = write("labels.csv", "id,label\nann,gold\nbob,NA\ncleo,nan\ndan,none\n")
    with caplog.at_level(logging.INFO, "nodecopy"):
        graph = read_graph(edges, labels=labels)
    assert graph.label_names == ("gold", "none")
    assert graph.labels is not None
    assert graph.labels.tolist() == [0, -1, -1, 1]
    assert "labels.csv: missing labels: 2 (NA, nan). Rename them if they are a class." in caplog.messages
    frame = pandas.DataFrame({"id": ["ann", "bob", "cleo"], "label": ["gold", "NA", None]})
    assert read_graph(edges, labels=frame).label_names == ("gold",)
    numbers = write("numbers.csv", "id,label\nann,3\nbob,NA\ncleo,4\n")
    assert read_graph(edges, labels=numbers).named_labels().tolist() == [3, -1, 4, -1]  # type: ignore[union-attr]


def test_ids_that_look_missing(write: Write) -> None:
    """Before, they became nodes without a word."""
    edges = write("edges.csv", "source,target\nann,bob\nbob,nan\nnull,ann\n")
    with pytest.warns(DataWarning, match="edges.csv: nan, null is read as an id"):
        assert read_graph(edges).n_nodes == 4


def test_a_column_of_labels_is_not_guessed(write: Write) -> None:
    """Before, the second column held the labels: 20 classes of ages."""
    edges = write("edges.csv", "source,target\nann,bob\n")
    labels = write("labels.csv", "account_no,age,segment\nann,31,gold\nbob,45,silver\n")
    with pytest.raises(
        InputError, match=r"it has account_no, age, segment. Name the labels with label=NAME."
    ):
        read_graph(edges, labels=labels)
    assert read_graph(edges, labels=labels, label="segment").label_names == ("gold", "silver")
    with pytest.raises(InputError, match="it has several, and no header"):
        read_graph(edges, labels=write("plain.csv", "ann,31,gold\nbob,45,silver\n"), header=False)
    classes = write("classes.csv", "person,age,class\nann,31,gold\nbob,45,silver\n")
    assert read_graph(edges, labels=classes).label_names == ("gold", "silver")


def test_labels_that_are_no_classes(write: Write) -> None:
    """Before, each balance was a class."""
    edges = write("edges.csv", "source,target\n" + "".join(f"{n},{n + 1}\n" for n in range(30)))
    balances = write("balances.csv", "id,label\n0,12.5\n1,3\n")
    with pytest.raises(InputError, match=r"got 12\.5, a measurement"):
        read_graph(edges, labels=balances)
    texts = write("texts.csv", "id,label\n" + "".join(f"{n},name {n}\n" for n in range(30)))
    with pytest.raises(InputError, match=r"there are 30 in 30 rows\. label=NAME reads them anyway"):
        read_graph(edges, labels=texts)
    assert len(read_graph(edges, labels=texts, label="label").label_names or ()) == 30


def test_labels_that_differ_only_in_case_or_blanks(write: Write) -> None:
    """Before, the other spelling was another class without a word."""
    edges = write("edges.csv", "source,target\na,b\nb,c\n")
    labels = write("labels.csv", "id,label\na,Blue team\nb,blue  team\nc,Red\n")
    with pytest.warns(DataWarning, match="labels 'Blue team' and 'blue  team' are different classes"):
        assert len(read_graph(edges, labels=labels).label_names or ()) == 3


def test_a_column_called_label_is_not_a_feature_of_labelled_nodes(write: Write) -> None:
    """Before, it was one unless the table of labels had a column of the same name, and held the answers."""
    edges = write("edges.csv", "source,target\nann,bob\n")
    features = write("features.csv", "id,age,label\nann,31,gold\nbob,45,silver\n")
    labels = write("labels.csv", "id,segment\nann,gold\n")
    graph = read_graph(edges, features=features, labels=labels)
    assert graph.feature_encoder.feature_names_ == ["age"]
    assert read_graph(edges, features=features).feature_encoder.feature_names_[0] == "age"
    assert len(read_graph(edges, features=features).feature_encoder.feature_names_) == 3


def test_hints_name_what_exists_in_python(write: Write) -> None:
    edges = write("edges.csv", "source,target\n" + "".join(f"{n},{n + 1}\n" for n in range(11)))
    notes = "".join(f"{n},{n},note {n}\n" for n in range(12))
    features = write("features.csv", f"id,age,notes\n{notes}")
    hint = r"encoder=nodecopy.io.FeatureEncoder\(ignore_columns=\['notes'\]\)"
    with pytest.raises(InputError, match=hint):
        read_graph(edges, features=features)
    encoder = FeatureEncoder(ignore_columns=["notes"])
    graph = read_graph(edges, features=features, encoder=encoder)
    assert graph.features is not None
    assert graph.features.shape == (12, 1)
