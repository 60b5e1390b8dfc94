from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from nodecopy import Graph
from nodecopy._core.random import child, seed_sequence
from nodecopy.cli.defend import _list_distrusted, _score_nodes
from nodecopy.defend import CopyingDefence, EdgeReport, EvidenceDefence, NodeReport
from tests.cli.conftest import Run
from tests.cli.labelled_files import TABLES, rows, write_files

WITHOUT_FEATURES = ("defend", "graph.csv", "--labels", "labels.csv")


@pytest.fixture
def files(run: Run) -> Graph:
    return write_files()


def test_options_of_defences(run: Run, files: Graph) -> None:
    """They do what the classes do when these are asked."""
    train = np.array([number for number in range(29) if number != 4])
    cases: list[tuple[list[str], dict[str, Any]]] = [
        (["--retrain"], {"retrain": True}),
        (["--trust-edges"], {"trust_edges": True}),
        (["--retrain", "--trust-edges"], {"retrain": True, "trust_edges": True}),
    ]
    for options, settings in cases:
        options = ["--method", "copying", "--n-donors", "4", *options]
        ran = run("defend", "graph.csv", *TABLES, "--nodes", "p04", *options, "--json")
        defence = CopyingDefence(n_donors=4, **settings)
        defence.fit(files, train, targets=[4], rng=child(seed_sequence(0), 1))
        expected = dict(zip(["cat", "dog"], defence.predict_proba()[4].tolist(), strict=True))
        assert json.loads(ran.out)["nodes"][0]["probabilities"] == pytest.approx(expected, abs=1e-6)
    for method in ("copying", "evidence"):
        options = ["--method", method, "--suspects", "0.1", "--n-donors", "4", "--retrain"]
        ran = run("defend", "graph.csv", *TABLES, *options, "--json")
        assert json.loads(ran.out)["corrected"] == 3
        assert json.loads(ran.out)["method"] == method


def test_evidence_is_the_default_and_is_told(run: Run, files: Graph) -> None:
    """Probabilities are those of the class, and every edge of the node has its credibility and a reason."""
    options = ("--nodes", "p04", "--n-donors", "4")
    result = json.loads(run("defend", "graph.csv", *TABLES, *options, "--json").out)
    train = np.array([number for number in range(29) if number != 4])
    defence = EvidenceDefence(n_donors=4, retrain=True)
    defence.fit(files, train, targets=[4], rng=child(seed_sequence(0), 1))
    (node,) = result["nodes"]
    (report,) = defence.explain([4])
    assert result["method"] == "evidence"
    assert node["probabilities"] == pytest.approx(report.probabilities, abs=1e-6)
    assert node["evidence"]["features"] == pytest.approx(report.features, abs=1e-6)
    assert {edge["neighbour"] for edge in node["evidence"]["edges"]} == {"p00", "p02", "p06", "p08"}
    for edge in node["evidence"]["edges"]:
        assert edge["distrusted"] == (edge["credibility"] < 0.5)
        assert "its ends" in edge["reason"]
    ran = run("defend", "graph.csv", *TABLES, *options, "--out", "corrections.csv")
    assert "method: EvidenceDefence(" in ran.err
    assert ran.out.splitlines()[-2].split()[:4] == ["node", "before", "after", "edges"]
    (row,) = rows("corrections.csv")
    n_distrusted = sum(edge["distrusted"] for edge in node["evidence"]["edges"])
    assert (row["n_edges"], row["n_distrusted"]) == ("4", str(n_distrusted))


def test_a_class_must_not_take_the_column_of_the_prediction_before(run: Run, files: Graph) -> None:
    labels = Path("labels.csv").read_text().replace("cat", "before")
    Path("labels.csv").write_text(labels)
    ran = run("defend", "graph.csv", *TABLES, "--nodes", "p04")
    assert ran.code == 2
    assert "a class must not be named before" in ran.err


def test_distrusted_edges_are_listed_the_least_credible_first() -> None:
    edges = tuple(EdgeReport(f"q{number}", "dog", -1.0, number / 10) for number in range(9))
    report = NodeReport("p", "dog", "cat", {}, {}, {}, {}, edges)
    assert _list_distrusted(report) == "q0, q1, q2 and 2 more"
    assert _list_distrusted(replace(report, edges=edges[5:])) == "none"


def test_attacked_nodes_are_detected_where_none_are_given(run: Run, files: Graph) -> None:
    ran = run("defend", "graph.csv", *TABLES, "--n-donors", "4", "--json")
    result = json.loads(ran.out)
    assert result["corrected"] == 4  # 15 % of 30 nodes
    listed = (
        "the 15 % most suspicious nodes, 4 of 30, are corrected and listed, whether the graph was attacked "
        "or not: a listed node need not have been attacked. --suspects sets the share."
    )
    assert listed in result["notices"]
    ran = run("defend", "graph.csv", *TABLES, "--n-donors", "4", "--scores", "scores.csv")
    assert "method: WholeGraphDefence(" in ran.err
    assert listed in ran.err
    head, first = (line.split() for line in ran.out.splitlines()[-5:-3])
    assert head[:2] == ["node", "suspicion"]
    assert first[0] == rows("scores.csv")[0]["id"]
    assert float(first[1]) == pytest.approx(float(rows("scores.csv")[0]["suspicion"]), rel=0.01)


def test_suspects_are_judged_by_labels_that_were_not_learnt_from(run: Run, files: Graph) -> None:
    result = json.loads(
        run("defend", "graph.csv", *TABLES, "--suspects", "1.0", "--n-donors", "4", "--json").out
    )
    assert (result["corrected"], result["train"]) == (30, 29)
    assert "accuracy_after" not in result  # every labelled node was learnt from


def test_corrections_against_a_label_are_named(run: Run, files: Graph) -> None:
    """A node with the label of the other class is corrected by its features and edges."""
    Path("labels.csv").write_text(
        Path("labels.csv").read_text().replace("p00,cat", "p00,dog").replace("p02,cat", "p02,dog")
    )
    options = ("--suspects", "1.0", "--n-donors", "4", "--json")
    result = json.loads(run("defend", "graph.csv", *TABLES, *options).out)
    labels = {row["id"]: row["label"] for row in rows("labels.csv")}
    contradicted = [n["id"] for n in result["nodes"] if labels.get(n["id"], n["after"]) != n["after"]]
    assert contradicted
    text = f"nodes whose corrected class is not their label: {len(contradicted)} ({contradicted[0]}"
    assert any(notice.startswith(text) for notice in result["notices"])


def test_suspects_are_found_and_corrected(run: Run, files: Graph) -> None:
    ran = run(
        "defend", "graph.csv", *TABLES, "--suspects", "0.1", "--n-donors", "4", "--out", "corrections.csv"
    )
    assert ran.code == 0, ran.err
    assert len(rows("corrections.csv")) == 3


def test_edges_count_at_the_share_of_nodes_that_is_given(run: Run, files: Graph) -> None:
    options = ("--nodes", "p04", "--n-donors", "4", "--uncertain-share", "1")
    (node,) = json.loads(run("defend", "graph.csv", *TABLES, *options, "--json").out)["nodes"]
    train = np.array([number for number in range(29) if number != 4])
    defence = EvidenceDefence(n_donors=4, uncertain_share=1.0, retrain=True)
    defence.fit(files, train, targets=[4], rng=child(seed_sequence(0), 1))
    assert node["probabilities"] == pytest.approx(defence.explain([4])[0].probabilities, abs=1e-6)
    assert "uncertain_share=0.5" in run("defend", "graph.csv", *TABLES, "--uncertain-share", "0.5").err


def test_a_node_without_a_label_is_defended(run: Run, files: Graph) -> None:
    result = json.loads(
        run("defend", "graph.csv", *TABLES, "--nodes", "p29", "--n-donors", "4", "--json").out
    )
    assert "accuracy_after" not in result
    assert result["nodes"][0]["id"] == "p29"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["defend", "graph.csv", *TABLES, "--nodes", "q99"], "--nodes must hold ids of nodes; got 'q99'"),
        (
            ["defend", "graph.csv", *TABLES, "--nodes", "p01", "--donors", "vgae"],
            "--donors applies to --method copying only; got --method evidence.",
        ),
        (
            ["defend", "graph.csv", *TABLES, "--method", "copying", "--uncertain-share", "0.5"],
            "--uncertain-share applies to --method evidence only; got --method copying.",
        ),
        (
            ["defend", "graph.csv", *TABLES, "--nodes", "p01", "--suspects", "0.1"],
            "--nodes and --suspects must not be given together",
        ),
        (
            ["defend", "graph.csv", *TABLES, "--suspects", "1.5"],
            "--suspects must be a number between 0 and 1; got 1.5.",
        ),
        (["defend", "graph.csv", *TABLES, "--flips", "missing.npz"], "missing.npz"),
        (["defend", "graph.csv", "--labels", "labels.csv", "--nodes", "p01"], "Give --features FILE"),
        (
            [*WITHOUT_FEATURES, "--suspects", "0.1", "--donors", "vgae", "--method", "copying"],
            "--suspects needs features; the graph has none.",
        ),
        (
            [*WITHOUT_FEATURES, "--donors", "vgae", "--method", "copying"],
            "detecting attacked nodes needs features; the graph has none. Give --features FILE, or the "
            "attacked nodes by --nodes",
        ),
        (
            [*WITHOUT_FEATURES, "--nodes", "p01", "--donors", "gae", "--trust-edges", "--method", "copying"],
            "--trust-edges needs features; the graph has none.",
        ),
        (
            ["defend", "graph.csv", *TABLES, "--suspects", "0.1", "--trust-edges", "--method", "copying"],
            "--trust-edges applies to known attacked nodes only; got --suspects",
        ),
        (["defend", "graph.csv", *TABLES, "--nodes", "p01", "--n-donors", "30"], "n_nodes - 1 = 29; got 30"),
    ],
)
def test_errors_are_one_line(run: Run, files: Graph, command: list[str], message: str) -> None:
    ran = run(*command)
    assert ran.code != 0
    assert ran.err.startswith("error: ")
    assert message in ran.err
    assert "Traceback" not in ran.err
    assert sorted(path.name for path in Path().iterdir()) == ["features.csv", "graph.csv", "labels.csv"]


def test_small_graphs_have_fewer_donors(run: Run) -> None:
    nodes = range(8)
    Path("edges.csv").write_text("source,target\n" + "".join(f"{i},{(i + 2) % 8}\n" for i in nodes))
    Path("features.csv").write_text("id,x\n" + "".join(f"{i},{i % 2 + i / 100}\n" for i in nodes))
    Path("labels.csv").write_text("id,label\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in nodes))
    command = ("defend", "edges.csv", *TABLES, "--nodes", "0")
    ran = run(*command, "--json")
    assert json.loads(ran.out)["n_donors"] == 7, ran.err
    assert run(*command, "--n-donors", "0").code == 0
    refused = run(*command, "--n-donors", "0", "--method", "copying")
    assert "--n-donors must be an integer between 1 and n_nodes - 1 = 7; got 0" in refused.err


def test_scores_keep_seven_significant_digits() -> None:
    """Seven decimals made all of them zero."""
    suspicion = np.array([0.0, 1.23456789e-28, 2 / 3])
    correction = SimpleNamespace(suspicion=suspicion, is_corrected=np.array([False, False, True]))
    columns = _score_nodes(correction, Graph(np.zeros((3, 3))))
    assert columns["corrected"].tolist() == [1, 0, 0]
    assert columns["suspicion"].tolist() == [0.6666667, 1.234568e-28, 0.0]


def test_scores_of_all_nodes(run: Run, files: Graph) -> None:
    options = ("--n-donors", "4", "--suspects", "0.1", "--out", "corrections.csv", "--scores", "scores.csv")
    ran = run("defend", "graph.csv", *TABLES, *options)
    assert ran.code == 0, ran.err
    assert "suspicion scores written to scores.csv" in ran.err
    table = rows("scores.csv")
    assert {row["id"] for row in table} == set(files.node_ids.tolist())
    suspicion = [float(row["suspicion"]) for row in table]
    assert suspicion == sorted(suspicion, reverse=True)
    corrected = [row["id"] for row in table if row["corrected"] == "1"]
    assert corrected == [row["id"] for row in table][:3] == [row["id"] for row in rows("corrections.csv")]
    ran = run("defend", "graph.csv", *TABLES, "--nodes", "p04", "--scores", "scores.csv")
    assert "--scores applies to --suspects only" in ran.err


def test_flips_of_an_attacked_graph_name_the_way_out(run: Run, files: Graph) -> None:
    outputs = ("--flips", "flips.npz", "--out", "attacked.csv")
    ran = run("attack", "graph.csv", *TABLES, "--method", "dice", "--nodes", "p04", *outputs)
    assert ran.code == 0, ran.err
    ran = run("defend", "attacked.csv", *TABLES, "--flips", "flips.npz")
    assert ran.code != 0
    assert (
        "seems to contain the flips already. Give the graph before the attack as SOURCE, or --nodes"
        in ran.err
    )


def test_flips_from_a_table(run: Run, files: Graph) -> None:
    """The same corrections as from .npz, and a table without targets needs them."""
    results = []
    for file in ("flips.npz", "flips.csv"):
        ran = run("attack", "graph.csv", *TABLES, "--method", "dice", "--nodes", "p04,p07", "--flips", file)
        assert ran.code == 0, ran.err
        ran = run("defend", "graph.csv", *TABLES, "--n-donors", "4", "--flips", file, "--json")
        results.append(json.loads(ran.out))
    assert results[0] == results[1]
    assert list(rows("flips.csv")[0]) == ["first", "second", "change", "target"]
    Path("own.csv").write_text("first,second\np04,p05\n")
    ran = run("defend", "graph.csv", *TABLES, "--n-donors", "4", "--flips", "own.csv")
    assert (ran.code, "own.csv must name the attacked nodes in a column target" in ran.err) == (2, True)
    ran = run("defend", "graph.csv", *TABLES, "--n-donors", "4", "--flips", "own.csv", "--nodes", "p04")
    assert ran.code == 0, ran.err
