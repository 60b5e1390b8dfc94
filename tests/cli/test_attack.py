"""``nodecopy attack``, also followed by ``nodecopy defend``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from nodecopy import Graph, read_graph, write_graph
from nodecopy.attacks import Perturbation
from nodecopy.cli import attack
from nodecopy.cli import output as terminal
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


@pytest.mark.parametrize("method", ["nettack", "fga"])
def test_the_scaling_of_the_surrogate_is_printed_and_can_be_chosen(run: Run, method: str) -> None:
    shuffled(run)
    arguments = ("attack", "graph.csv", *WITH_ISOLATED, "--nodes", "107", "--method", method)
    assert "features: each column is standardised for the attacker's surrogate" in run(*arguments).err
    ran = run(*arguments, "--scale-features", "none")
    assert "scale='none'" in ran.err
    assert "standardised" not in ran.err


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
def test_targets_without_label_or_edges(run: Run, method: str) -> None:
    """One without a label, one without edges, and a budget that is more than a node can bear."""
    graph = shuffled(run)
    ran = run("attack", "graph.csv", *WITH_ISOLATED, "--method", method, "--nodes", "103,900")
    if method == "random":
        assert ran.out.splitlines()[-1].split()[:2] == ["900", "-"]
    else:
        assert (ran.code, ran.out) == (2, "")
        assert "targets must have labels" in ran.err
        assert "got the node with id 900, which has none. Add its label, such as a predicted class" in ran.err
    defended = json.loads(
        run("defend", "graph.csv", *WITH_ISOLATED, "--nodes", "700,900", "--n-donors", "3", "--json").out
    )
    assert [node["id"] for node in defended["nodes"]] == [700, 900]

    def spent(*options: str) -> list[int]:
        ran = run("attack", "graph.csv", *WITH_ISOLATED, "--method", method, "--json", *options)
        result = json.loads(ran.out)
        return [*result["budgets"], *result["spent"]]

    if method == "dice":
        assert spent("--nodes", "700") == [0, 0]
        return
    degree = () if method != "fga" else ("--budget", "degree")
    assert spent("--nodes", "700", *degree) == [0, 0]
    budget, n_flips = spent("--nodes", "700", "--budget", "2")
    assert (budget, n_flips) == (2, 2) or method == "fga"  # which stops where no flip promises a higher loss
    budget, n_flips = spent("--nodes", "103", "--budget", "500")
    assert budget == 500
    assert 0 < n_flips < graph.n_nodes


def test_graphs_that_cannot_be_attacked(run: Run, files: Graph) -> None:
    for wrong, message in (
        (files.replace(directed=True), "graph must be undirected to be attacked; got a directed one"),
        (files.replace(adjacency=2 * files.adjacency), "graph must be binary to be attacked"),
    ):
        write_graph(wrong, "wrong.npz")
        ran = run("attack", "wrong.npz", "--nodes", "p04", "--out", "attacked.npz")
        assert (ran.code, message in ran.err, Path("attacked.npz").exists()) == (2, True, False)


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


def test_a_target_without_a_label_is_not_called_misled(run: Run, files: Graph) -> None:
    options = ("--method", "random", "--nodes", "p29", "--budget", "20", "--json")
    prediction = json.loads(run("attack", "graph.csv", *TABLES, *options).out)["predictions"][0]
    assert (prediction["before"], prediction["misled"]) == ("dog", False)


def test_no_check_without_labels_to_train_on(run: Run, files: Graph) -> None:
    everyone = ",".join(files.node_ids[:29].tolist())
    ran = run("attack", "graph.csv", *TABLES, "--nodes", everyone, "--method", "random", "--budget", "1")
    assert (ran.code, "every labelled node is a target" in ran.err) == (0, True)


def test_options_of_attacks(run: Run, files: Graph) -> None:
    """Influencers flip none of the target's own edges."""
    ran = run(
        "attack", "graph.csv", *TABLES, "--method", "dice", "--nodes", "p04", "--delete", "any", "--json"
    )
    assert "delete='any'" in json.loads(ran.out)["attack"]
    ran = run("attack", "karate", "--nodes", "5", "--n-influencers", "2", "--budget", "3", "--json")
    result = json.loads(ran.out)
    assert "direct=False, n_influencers=2" in result["attack"]
    assert len(result["flips"]) == 3
    assert not any(5 in (flip["first"], flip["second"]) for flip in result["flips"])


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


def test_targets_at_random_or_from_a_file(run: Run, files: Graph) -> None:
    result = json.loads(
        run("attack", "graph.csv", *TABLES, "--method", "dice", "--n-targets", "3", "--json").out
    )
    assert len(result["targets"]) == 3
    Path("ids.txt").write_text("p01\np02\n")
    ran = run("attack", "graph.csv", *TABLES, "--method", "random", "--nodes", "ids.txt", "--json")
    assert json.loads(ran.out)["targets"] == ["p01", "p02"]


def test_ids_with_blanks_and_files_named_like_ids(run: Run) -> None:
    names = np.array(["ann lee", "bob", "cleo", "dan"])
    write_graph(Graph.from_edges(names[[0, 1, 2]], names[[1, 2, 3]]), "graph.csv")
    write_table("labels.csv", {"id": names, "label": np.array(["x", "y", "x", "y"])})
    Path("ids.txt").write_text("ann lee\n\nbob\n")
    Path("bob").write_text("cleo\ndan\n")
    for given, wanted in (("ids.txt", ["ann lee", "bob"]), ("bob", ["bob"]), ("cleo,dan", ["cleo", "dan"])):
        ran = run(
            "attack", "graph.csv", "--labels", "labels.csv", "--method", "random", "--nodes", given, "--json"
        )
        assert json.loads(ran.out)["targets"] == wanted
    Path("broken.txt").write_bytes(b"\xff\xfe\xfa")
    ran = run("attack", "graph.csv", "--labels", "labels.csv", "--nodes", "broken.txt")
    assert (ran.code, "broken.txt" in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            ["attack", "graph.csv"],
            "must have labels for this command; got none. Give --labels FILE",
        ),
        (["attack", "graph.csv", *TABLES, "--nodes", "q99"], "--nodes must hold ids of nodes; got 'q99'"),
        (["attack", "graph.csv", *TABLES, "--nodes", "7"], "--nodes must hold ids of nodes; got '7'"),
        (["attack", "graph.csv", *TABLES, "--nodes", "p01,p01"], "--nodes"),
        (["attack", "graph.csv", *TABLES, "--nodes", " , "], "--nodes must name at least one node"),
        (
            ["attack", "graph.csv", *TABLES, "--nodes", "p01", "--n-targets", "2"],
            "--n-targets applies to random",
        ),
        (
            ["attack", "graph.csv", *TABLES, "--n-targets", "99"],
            "number of candidates = 29; got 99",
        ),
        (
            ["attack", "graph.csv", *TABLES, "--budget", "few"],
            "--budget must be a whole number, 'degree'",
        ),
        (
            ["attack", "graph.csv", *TABLES, "--budget", "²"],
            "--budget must be a whole number, 'degree'",
        ),
        (["attack", "graph.csv", *TABLES, "--budget", "1.5"], "--budget must be a whole number, 'degree'"),
        (["attack", "graph.csv", *TABLES, "--delete", "any"], "--delete applies to --method dice only"),
        (
            ["attack", "graph.csv", *TABLES, "--method", "fga", "--n-influencers", "2"],
            "--n-influencers applies to --method nettack only; got --method fga. Leave it out.",
        ),
        (
            ["attack", "graph.csv", *TABLES, "--method", "dice", "--scale-features", "none"],
            "--scale-features applies to --method nettack and fga only; got --method dice. Leave it out.",
        ),
        (
            ["attack", "graph.csv", *TABLES, "--n-influencers", "0"],
            "--n-influencers must be an integer",
        ),
        (["attack", "graph.csv", *TABLES, "--out", "attacked.doc"], "attacked.doc"),
        (["attack", "graph.csv", *TABLES, "--flips", "flips.doc"], "flips.doc"),
    ],
)
def test_errors_are_one_line(run: Run, files: Graph, command: list[str], message: str) -> None:
    ran = run(*command)
    assert ran.code != 0
    assert ran.err.startswith("error: ")
    assert message in ran.err
    assert "Traceback" not in ran.err
    assert sorted(path.name for path in Path().iterdir()) == ["features.csv", "graph.csv", "labels.csv"]


def test_targets_are_counted(run: Run, files: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, a long search showed nothing until its end."""
    bars = []

    def record(items: Iterable[int], total: int, what: str) -> Iterator[int]:
        bars.append((total, what))
        return iter(items)

    monkeypatch.setattr(attack, "show_progress", record)
    monkeypatch.setattr(terminal, "LONG", 0.0)
    ran = run("attack", "graph.csv", *TABLES, "--nodes", "p04,p07")
    assert bars == [(2, "attacking")]
    assert "the other 1 targets will take about 0 seconds" in ran.err
