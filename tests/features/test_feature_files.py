from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

from nodecopy.errors import InputError
from nodecopy.features import read_feature_graph

FEATURES = "id,age,income\n007,31,30000\n008,33,90000\n009,70,31000\n010,72,88000\n"


@pytest.fixture
def features(tmp_path: Path) -> Path:
    path = tmp_path / "features.csv"
    path.write_text(FEATURES)
    return path


def test_nodes_are_joined_with_their_neighbours(features: Path, caplog: pytest.LogCaptureFixture) -> None:
    (features.parent / "labels.csv").write_text("id,label\n009,old\n007,young\n")
    with caplog.at_level(logging.INFO, "nodecopy"):
        graph = read_feature_graph(features, labels=features.parent / "labels.csv", n_neighbours=2)
    assert graph.node_ids.tolist() == ["007", "008", "009", "010"]
    assert np.array(graph.named_labels()).tolist() == ["young", "", "old", ""]
    # By scaled columns: raw incomes would join 007 with 009 and 010.
    assert graph.adjacency.toarray().tolist() == [[0, 1, 1, 0], [1, 0, 0, 1], [1, 0, 0, 1], [0, 1, 1, 0]]
    assert graph.features.tolist() == [[31, 30000], [33, 90000], [70, 31000], [72, 88000]]  # type: ignore[union-attr]
    assert graph.feature_encoder.feature_names_ == ["age", "income"]
    assert "features.csv: there are no edges, so each node is connected to its 2 nearest" in caplog.text


def test_few_nodes_have_all_others_as_neighbours(features: Path) -> None:
    assert read_feature_graph(features).n_edges == 6


def test_unknown_ids_of_labels_are_an_error(features: Path) -> None:
    (features.parent / "labels.csv").write_text("id,label\n009,old\n7,young\n")
    with pytest.raises(InputError, match=r"labels.csv: id '7' is not a node of the graph, but '007' is"):
        read_feature_graph(features, labels=features.parent / "labels.csv")


def test_one_node_has_no_neighbours(features: Path) -> None:
    features.write_text("id,age\n007,31\n")
    with pytest.raises(InputError, match="features of at least two nodes; got 1"):
        read_feature_graph(features)


def test_labels_in_the_table_of_features_are_not_features(features: Path) -> None:
    features.write_text("id,age,plan\na,31,x\nb,33,x\nc,70,y\nd,72,\n")
    graph = read_feature_graph(features, labels=features, label="plan", n_neighbours=1)
    assert graph.feature_encoder.feature_names_ == ["age"]
    assert np.array(graph.named_labels()).tolist() == ["x", "x", "y", ""]


def test_one_hot_encoded_text_is_not_taken_for_word_counts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Networks standardised such columns, while distances were measured after scaling by rows."""
    rows = [f"n{number},{'abcd'[number % 4]},{'efgh'[number // 4 % 4]}" for number in range(16)]
    (tmp_path / "f.csv").write_text("\n".join(["id,town,job", *rows]))
    with caplog.at_level(logging.INFO, "nodecopy"):
        read_feature_graph(tmp_path / "f.csv", n_neighbours=3)
    assert "features: each column is standardised to measure distances" in caplog.text
