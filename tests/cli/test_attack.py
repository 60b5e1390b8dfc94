"""``nodecopy attack``, also followed by ``nodecopy defend``."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("torch")

from nodecopy import Graph, read_graph, write_graph
from nodecopy.attacks import Perturbation
from nodecopy.io.tables import write_table
from tests.cli.conftest import Run
from tests.cli.labelled_files import TABLES, rows, write_files


@pytest.fixture
def files(run: Run) -> Graph:
    return write_files()


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
    ran = run("attack", "graph.csv", *WITH_ISOLATED, *options)
    assert ran.code == 0, ran.err
    assert [line.split()[0] for line in ran.out.splitlines()] == ["node", "107", "103"]
    lost = "700" not in {end for row in rows("attacked.csv") for end in (row["source"], row["target"])}
    assert ("not in the table of edges: 700\n" in ran.err) == lost
    result = json.loads(run("attack", "graph.csv", *WITH_ISOLATED, *options, "--json").out)
    assert (result["targets"], {flip["target"] for flip in result["flips"]}) == ([107, 103], {107, 103})
    edges = {frozenset((row["source"], row["target"])) for row in rows("graph.csv")}
    for flip in result["flips"]:
        edge = frozenset((str(flip["first"]), str(flip["second"])))
        assert (edge not in edges) == flip["added"]
        edges ^= {edge}
    assert edges == {frozenset((row["source"], row["target"])) for row in rows("attacked.csv")}
    assert set(map(int, frozenset.union(*edges))) <= set(graph.node_ids.tolist())
    defend_options = ("--n-donors", "3", "--out", "corrections.csv")
    ran = run("defend", "graph.csv", *WITH_ISOLATED, "--flips", "flips.npz", *defend_options)
    assert [row["id"] for row in rows("corrections.csv")] == ["107", "103"]
    assert [line.split()[0] for line in ran.out.splitlines()[-2:]] == ["107", "103"]
    ran = run("defend", "attacked.csv", *WITH_ISOLATED, "--suspects", "1.0", *defend_options)
    assert {int(row["id"]) for row in rows("corrections.csv")} == set(graph.node_ids.tolist())


@pytest.mark.parametrize("method", METHODS)
def test_attack_then_defend(run: Run, files: Graph, method: str) -> None:
    options = ("--method", method, "--nodes", "p04,p07", "--out", "attacked.npz", "--flips", "flips.npz")
    ran = run("attack", "graph.csv", *TABLES, *options)
    assert ran.code == 0, ran.err
    assert ran.out.split()[:7] == ["node", "label", "degree", "budget", "flips", "added", "removed"]
    assert "flips written to flips.npz" in ran.err
    flips = Perturbation.load("flips.npz")
    assert files.node_ids[flips.targets].tolist() == ["p04", "p07"]
    assert read_graph("attacked.npz") == flips.apply(files)
    ran = run(
        "defend", "graph.csv", *TABLES, "--flips", "flips.npz", "--n-donors", "4", "--out", "corrections.csv"
    )
    assert ran.code == 0, ran.err
    corrections = rows("corrections.csv")
    assert [row["id"] for row in corrections] == ["p04", "p07"]
    for row in corrections:
        assert float(row["p_cat"]) + float(row["p_dog"]) == pytest.approx(1, abs=1e-5)
        assert row["after"] == max(("cat", "dog"), key=lambda name: float(row[f"p_{name}"]))
    result = json.loads(run("defend", "attacked.npz", "--nodes", "p04,p07", "--n-donors", "4", "--json").out)
    for node, row in zip(result["nodes"], corrections, strict=True):
        assert (node["after"], node["p_before"]) == (
            row["after"],
            pytest.approx(float(row["p_before"]), abs=1e-5),
        )
        assert node["probabilities"] == pytest.approx(
            {name: float(row[f"p_{name}"]) for name in ("cat", "dog")}, abs=1e-5
        )
    assert (result["corrected"], result["labelled"], result["train"]) == (2, 2, 27)
    assert result["accuracy_after"] == np.mean(
        [row["after"] for row in corrections] == np.array(["cat", "dog"])
    )


def test_attack_as_json(run: Run, files: Graph) -> None:
    options = ("--method", "random", "--nodes", "p04", "--budget", "2", "--independent", "--json")
    result = json.loads(run("attack", "graph.csv", *TABLES, *options).out)
    assert (result["targets"], result["budgets"], result["spent"]) == (["p04"], [2], [2])
    assert all("p04" in (flip["first"], flip["second"]) for flip in result["flips"])
    assert result == json.loads(run("attack", "graph.csv", *TABLES, *options).out)


def test_misled_targets_are_named(run: Run, files: Graph) -> None:
    """Fifteen flips mislead p04, none do not; --no-check trains no classifier."""
    arguments = ("attack", "graph.csv", *TABLES, "--nodes", "p04", "--method", "fga", "--budget", "15")
    ran = run(*arguments)
    heads, row = (line.split() for line in ran.out.splitlines())
    assert dict(zip(heads, row, strict=True)).items() >= {"before": "cat", "after": "dog"}.items()
    assert "1 of 1 targets misled" in ran.err
    for options in ((), ("--independent",)):
        result = json.loads(run(*arguments, *options, "--json").out)
        expected = {"target": "p04", "before": "cat", "after": "dog", "misled": True}
        assert (result["misled"], result["predictions"]) == (1, [expected])
    result = json.loads(run(*arguments[:-1], "0", "--json").out)
    assert (result["misled"], result["predictions"][0]["after"]) == (0, "cat")
    result = json.loads(run(*arguments, "--no-check", "--json").out)
    assert not {"misled", "predictions"} & result.keys()


def test_a_graph_without_features(run: Run, files: Graph) -> None:
    labels = ("--labels", "labels.csv")
    ran = run("attack", "graph.csv", *labels, "--nodes", "p04", "--flips", "flips.npz")
    assert ran.code == 0, ran.err
    for donors in ("neighbourhoods", "gae"):
        options = (
            "--flips",
            "flips.npz",
            "--method",
            "copying",
            "--donors",
            donors,
            "--n-donors",
            "4",
            "--json",
        )
        ran = run("defend", "graph.csv", *labels, *options)
        assert ran.code == 0, ran.err
        assert json.loads(ran.out)["nodes"][0]["id"] == "p04"
