from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nodecopy import Graph, read_graph, write_graph
from nodecopy._core.random import child, seed_sequence
from nodecopy.attacks import Perturbation
from nodecopy.defend import EvidenceDefence
from nodecopy.io.tables import write_table
from tests.cli.conftest import Run
from tests.cli.labelled_files import TABLES, rows, write_files


@pytest.fixture
def files(run: Run) -> Graph:
    return write_files()


def test_evidence_is_the_default_and_is_told(run: Run, files: Graph) -> None:
    """Probabilities are those of the class, and every edge of the node has its credibility and a reason."""
    options = ("--nodes", "p04")
    result = run("defend", "graph.csv", *TABLES, *options, "--json").json()
    train = np.array([number for number in range(29) if number != 4])
    defence = EvidenceDefence(retrain=True)
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


def test_attacked_nodes_are_detected_where_none_are_given(run: Run, files: Graph) -> None:
    ran = run("defend", "graph.csv", *TABLES, "--json")
    result = ran.json()
    number = result["corrected"]
    listed = f"the most suspicious nodes, {number} of 30, are corrected and listed"
    assert 0 < number < 30
    assert listed in "".join(result["notices"])
    ran = run("defend", "graph.csv", *TABLES, "--scores", "scores.csv")
    assert "method: WholeGraphDefence(" in ran.err
    assert listed in ran.err
    lines = [line.split() for line in ran.out.splitlines()]
    head = next(line for line in lines if line[:2] == ["node", "suspicion"])
    first = lines[lines.index(head) + 1]
    assert first[0] == rows("scores.csv")[0]["id"]
    assert float(first[1]) == pytest.approx(float(rows("scores.csv")[0]["suspicion"]), rel=0.01)


def test_scores_of_all_nodes(run: Run, files: Graph) -> None:
    options = ("--suspects", "0.1", "--out", "corrections.csv", "--scores", "scores.csv")
    ran = run("defend", "graph.csv", *TABLES, *options).ok()
    assert "suspicion scores written to scores.csv" in ran.err
    table = rows("scores.csv")
    assert {row["id"] for row in table} == set(files.node_ids.tolist())
    suspicion = [float(row["suspicion"]) for row in table]
    assert suspicion == sorted(suspicion, reverse=True)
    corrected = [row["id"] for row in table if row["corrected"] == "1"]
    assert corrected == [row["id"] for row in table][:3] == [row["id"] for row in rows("corrections.csv")]


def test_flips_from_a_table(run: Run, files: Graph) -> None:
    """The same corrections as from .npz, and a table without targets needs them."""
    results = []
    for file in ("flips.npz", "flips.csv"):
        attack = ("--method", "dice", "--nodes", "p04,p07", "--flips", file)
        run("attack", "graph.csv", *TABLES, *attack).ok()
        ran = run("defend", "graph.csv", *TABLES, "--flips", file, "--json")
        results.append(ran.json())
    assert results[0] == results[1]
    assert list(rows("flips.csv")[0]) == ["first", "second", "change", "target"]
    Path("own.csv").write_text("first,second\np04,p05\n")
    ran = run("defend", "graph.csv", *TABLES, "--flips", "own.csv")
    assert (ran.code, "own.csv must name the attacked nodes in a column target" in ran.err) == (2, True)
    ran = run("defend", "graph.csv", *TABLES, "--flips", "own.csv", "--nodes", "p04").ok()


def shuffled(run: Run) -> Graph:
    """Ids that are whole numbers, none where it stands; node 900 has no label, node 700 no edges."""
    names = np.random.default_rng(1).permutation(np.arange(100, 130))
    names[names == 129] = 900
    first = np.repeat(np.arange(30), 2)
    write_graph(Graph.from_edges(names[first], names[(first + np.tile([2, 4], 30)) % 30]), "graph.csv")
    labelled = np.append(names[names != 900], 700)
    kinds = np.append(np.where(np.arange(30) % 2, "dog", "cat")[names != 900], "dog")
    write_table("labels.csv", {"id": labelled, "label": kinds})
    draws = np.random.default_rng(0).random((31, 3))
    write_table("features.csv", {"id": np.append(names, 700)} | dict(zip("abc", draws.T, strict=True)))
    graph = read_graph("graph.csv", features="features.csv", labels="labels.csv", allow_isolated=True)
    assert not (graph.node_ids == np.arange(31)).any()
    return graph


WITH_ISOLATED = (*TABLES, "--allow-isolated")
METHODS = ("dice", "nettack", "fga", "random")


@pytest.mark.parametrize("method", METHODS)
def test_ids_are_the_users_from_end_to_end(run: Run, method: str) -> None:
    """What is printed, written, kept and read again; edges by id are those that the attack flipped."""
    graph = shuffled(run)
    options = ("--method", method, "--nodes", "107,103", "--out", "attacked.csv", "--flips", "flips.npz")
    ran = run("attack", "graph.csv", *WITH_ISOLATED, *options).ok()
    assert [line.split()[0] for line in ran.out.splitlines()] == ["node", "107", "103"]
    lost = "700" not in {end for row in rows("attacked.csv") for end in (row["source"], row["target"])}
    assert ("not in the table of edges: 700\n" in ran.err) == lost
    result = run("attack", "graph.csv", *WITH_ISOLATED, *options, "--json").json()
    assert (result["targets"], {flip["target"] for flip in result["flips"]}) == ([107, 103], {107, 103})
    edges = {frozenset((row["source"], row["target"])) for row in rows("graph.csv")}
    for flip in result["flips"]:
        edge = frozenset((str(flip["first"]), str(flip["second"])))
        assert (edge not in edges) == flip["added"]
        edges ^= {edge}
    assert edges == {frozenset((row["source"], row["target"])) for row in rows("attacked.csv")}
    assert set(map(int, frozenset.union(*edges))) <= set(graph.node_ids.tolist())
    defend_options = ("--out", "corrections.csv")
    ran = run("defend", "graph.csv", *WITH_ISOLATED, "--flips", "flips.npz", *defend_options)
    assert [row["id"] for row in rows("corrections.csv")] == ["107", "103"]
    assert [line.split()[0] for line in ran.out.splitlines()[-2:]] == ["107", "103"]
    ran = run("defend", "attacked.csv", *WITH_ISOLATED, "--suspects", "1.0", *defend_options)
    assert {int(row["id"]) for row in rows("corrections.csv")} == set(graph.node_ids.tolist())


@pytest.mark.parametrize("method", ["nettack", "dice"])
def test_attack_then_defend(run: Run, files: Graph, method: str) -> None:
    options = ("--method", method, "--nodes", "p04,p07", "--out", "attacked.npz", "--flips", "flips.npz")
    ran = run("attack", "graph.csv", *TABLES, *options).ok()
    assert ran.out.split()[:7] == ["node", "label", "degree", "budget", "flips", "added", "removed"]
    assert "flips written to flips.npz" in ran.err
    flips = Perturbation.load("flips.npz")
    assert files.node_ids[flips.targets].tolist() == ["p04", "p07"]
    assert read_graph("attacked.npz") == flips.apply(files)
    settings = ("--flips", "flips.npz", "--out", "corrections.csv")
    ran = run("defend", "graph.csv", *TABLES, *settings).ok()
    corrections = rows("corrections.csv")
    assert [row["id"] for row in corrections] == ["p04", "p07"]
    for row in corrections:
        assert float(row["p_cat"]) + float(row["p_dog"]) == pytest.approx(1, abs=1e-5)
        assert row["after"] == max(("cat", "dog"), key=lambda name: float(row[f"p_{name}"]))
    result = run("defend", "attacked.npz", "--nodes", "p04,p07", "--json").json()
    for node, row in zip(result["nodes"], corrections, strict=True):
        assert node["after"] == row["after"]
        assert node["p_before"] == pytest.approx(float(row["p_before"]), abs=1e-5)
        probabilities = {name: float(row[f"p_{name}"]) for name in ("cat", "dog")}
        assert node["probabilities"] == pytest.approx(probabilities, abs=1e-5)
    assert (result["corrected"], result["labelled"], result["train"]) == (2, 2, 27)
    after = np.array([row["after"] for row in corrections])
    assert result["accuracy_after"] == np.mean(after == ["cat", "dog"])


def test_misled_targets_are_named(run: Run, files: Graph) -> None:
    """Fifteen flips mislead p04, none do not."""
    arguments = ("attack", "graph.csv", *TABLES, "--nodes", "p04", "--method", "fga", "--budget", "15")
    ran = run(*arguments)
    heads, row = (line.split() for line in ran.out.splitlines())
    assert dict(zip(heads, row, strict=True)).items() >= {"before": "cat", "after": "dog"}.items()
    assert "1 of 1 targets misled" in ran.err
    result = run(*arguments, "--json").json()
    expected = {"target": "p04", "before": "cat", "after": "dog", "misled": True}
    assert (result["misled"], result["predictions"]) == (1, [expected])
    result = run(*arguments[:-1], "0", "--json").json()
    assert (result["misled"], result["predictions"][0]["after"]) == (0, "cat")


def test_classes_that_are_numbers_are_printed_as_json(run: Run) -> None:
    result = run("attack", "digits", "--n-targets", "1", "--method", "dice", "--json").json()
    assert isinstance(result["predictions"][0]["before"], int)
