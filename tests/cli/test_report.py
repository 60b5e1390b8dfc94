from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodecopy import compare, datasets
from nodecopy._core.messages import escape_controls
from nodecopy.cli import files as sources
from nodecopy.cli import report
from nodecopy.errors import MissingExtraError
from nodecopy.io.tables import write_table
from tests.cli.conftest import Run
from tests.report import examples
from tests.report.examples import sections_of


def write_graph_files(n_known: int) -> list[str]:
    """A graph with labels of the first nodes only and features that tell its halves apart."""
    graph = examples.graph()
    source, target, _ = graph.edges()
    write_table("graph.csv", {"source": source, "target": target})
    labels = np.array(["left"] * 20 + ["right"] * 20)
    labelled = np.r_[:n_known, 20 : 20 + n_known]
    write_table("labels.csv", {"id": graph.node_ids[labelled], "label": labels[labelled]})
    draws = np.random.default_rng(0)
    columns = {f"f{i}": draws.random(40) + (i % 2 == (labels == "left")) for i in range(4)}
    write_table("features.csv", {"id": graph.node_ids, **columns})
    return ["graph.csv", "--labels", "labels.csv", "--features", "features.csv"]


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    classifiers = pytest.importorskip("nodecopy.classify.networks")
    monkeypatch.setattr(report, "N_GRAPHS", 1)
    monkeypatch.setitem(classifiers.GCN.presets, "kipf", replace(classifiers.KIPF, n_epochs=30))


def test_json_names_the_page_and_its_sections(run: Run) -> None:
    printed = json.loads(run("report", "karate", "--samples", "2", "--json", "--quiet").out)
    assert (printed["source"], printed["page"]) == ("karate", "report.html")
    sections = sections_of(Path("report.html"))
    assert [part["title"] for part in printed["sections"]] == [part["title"] for part in sections]
    assert printed["sections"][0]["headline"] == sections[0]["headline"] != ""


def test_a_graph_alone(run: Run) -> None:
    ran = run("report", "karate", "--samples", "4", "--seed", "2")
    assert ran.code == 0
    assert "written to report.html" in ran.err
    assert "no classification: it needs labels and features" in ran.err
    graphs, statistics = sections_of(Path("report.html"))
    assert [graph["title"] for graph in graphs["graphs"]] == ["observed", "sample 1", "sample 2", "sample 3"]
    assert graphs["ids"] == [str(name) for name in datasets.load("karate").node_ids]
    assert all(len(row["samples"][0]) == 4 for row in statistics["rows"])
    first = Path("report.html").read_bytes()
    run("report", "karate", "--samples", "4", "--seed", "2")
    assert Path("report.html").read_bytes() == first


def test_small_graphs_have_intervals_of_their_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    club = datasets.load("karate")
    comparison = compare(club, [club])
    result = report.bootstrap_statistics(club, comparison, 0)
    assert result is not None
    assert {estimate.name for estimate in result} == set(comparison.statistics) - {
        *("n_nodes", "path_length", "edge_overlap")
    }
    monkeypatch.setattr(report, "MAX_BOOTSTRAP_EDGES", 10)
    assert report.bootstrap_statistics(club, comparison, 0) is None


def test_a_table_of_edges_with_ids_is_the_same_graph_in_all_commands(run: Run) -> None:
    """A report took it for features, while stats read its edges."""
    source, target, _ = examples.graph().edges()
    columns = {"id": np.arange(len(source)), "from_account": source, "to_account": target, "amount": source}
    write_table("transfers.csv", columns)
    assert dict(line.split() for line in run("stats", "transfers.csv").out.splitlines())["n_nodes"] == "40"
    assert run("report", "transfers.csv", "--samples", "1").code == 0
    graphs, _ = sections_of(Path("report.html"))
    assert len(graphs["ids"]) == 40


def test_few_labels_do_not_choose_the_law(run: Run) -> None:
    """With few labels, samples on the page were nearly the graph."""
    source, *labels = write_graph_files(2)[:3]
    ran = run("report", source, *labels, "--samples", "2")
    assert "donor rule jaccard, since only 4 of 40 nodes have a label, fewer than half" in ran.err
    graphs, _ = sections_of(Path("report.html"))
    assert "drawn by the donor rule jaccard, since only 4 of 40 nodes have a label" in graphs["text"]


@pytest.mark.usefixtures("brief")
def test_ones_own_graph_with_crafted_ids(run: Run) -> None:
    ran = run("report", *write_graph_files(15), "--samples", "2", "--out", "mine.html")
    assert ran.code == 0
    graphs, _, classified, attacked = sections_of(Path("mine.html"))
    assert graphs["ids"] == sorted(examples.graph().node_ids.tolist())
    assert [colours["name"] for colours in graphs["colours"]] == ["label", "predicted class", "uncertainty"]
    assert graphs["colours"][0]["codes"].count(-1) == 10
    # Of 30 labels, too few would be held out: cross-validation tests all of them. Ten nodes have none.
    assert (classified["n_nodes"], classified["truth"].count(-1)) == (40, 10)
    assert [entry["name"] for entry in classified["evaluations"]] == ["GCN", "self-training"]
    assert [entry["n_nodes"] for entry in classified["evaluations"]] == [30, 30]
    assert "5-fold cross-validation" in classified["text"]
    assert f"Classification: {classified['headline']}" in ran.out
    assert f"One attacked node: {escape_controls(attacked['headline'])}" in ran.out
    assert classified["graph"] == graphs["title"]
    assert [stage["name"] for stage in attacked["stages"]] == ["before", "attacked", "with copied neighbours"]
    text = Path("mine.html").read_text(encoding="utf-8")
    assert examples.CRAFTED[0] not in text


@pytest.mark.usefixtures("brief")
def test_parts_may_be_left_out(run: Run) -> None:
    files = write_graph_files(20)
    run("report", *files, "--samples", "1", "--without", "attack")
    kinds = [section["kind"] for section in sections_of(Path("report.html"))]
    assert kinds == ["graphs", "statistics", "classification"]
    run("report", *files, "--samples", "1", "--without", "attack", "--without", "classification")
    assert [colours["name"] for colours in sections_of(Path("report.html"))[0]["colours"]] == ["label"]


def test_interactions_and_results_need_no_graph(run: Run, tmp_path: Path) -> None:
    log = examples.log()
    users, items, _ = log.table()
    write_table("log.csv", {"user": users, "item": items})
    folder = examples.write_results(tmp_path / "results")
    ran = run("report", "--interactions", "log.csv", "--results", folder)
    assert ran.code == 0
    recommended, tables = sections_of(Path("report.html"))
    assert sorted(user["id"] for user in recommended["users"]) == sorted(map(str, log.user_ids))
    assert tables["experiments"][0]["name"] == "table9"
    assert recommended["headline"] == ""  # twelve users are too few to evaluate
    assert f"Reproduction: {tables['headline']}" in ran.out


def test_recommendations_are_evaluated_on_held_out_interactions(run: Run) -> None:
    ran = run("report", "--interactions", "library")
    (recommended,) = sections_of(Path("report.html"))
    assert recommended["headline"].startswith("The first 10 recommendations of CopyEASE contain ")
    popular, ours = recommended["evaluations"]
    assert popular["interval"][1] < ours["recall"] < ours["interval"][1]
    assert recommended["headline"] in ran.out


def test_the_tables_of_this_repository_have_titles(run: Run) -> None:
    results = Path(__file__).parents[2] / "results"
    assert run("report", "--results", results).code == 0
    (tables,) = sections_of(Path("report.html"))
    second = next(entry for entry in tables["experiments"] if entry["name"] == "table2")
    assert second["title"] == "Table 2: Accuracy of semi-supervised node classification"
    assert second["groups"][0]["methods"][0] == "GCN"


def test_what_cannot_be_reported(run: Run) -> None:
    Path("heads.csv").write_text("user,item\n", encoding="utf-8")
    Path("edges.csv").write_text("source,target\n", encoding="utf-8")
    for arguments, message in (
        ([], "there is nothing to report"),
        (["karate", "--out", "page.pdf"], ".html"),
        (["karate", "--samples", "0"], "--samples must be"),
        (["--results", "."], "--results must be a folder with CSV files of nodecopy reproduce; . has none"),
        (["edges.csv"], "edges.csv must hold at least one node"),
        (["--interactions", "heads.csv"], "heads.csv must hold at least one interaction"),
    ):
        ran = run("report", *arguments)
        assert (ran.code, message in ran.err) == (2, True), ran.err


def test_a_page_that_cannot_be_written_is_told_before_anything_is_read(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "load_graph", None)
    Path("file").touch()
    ran = run("report", "karate", "--out", "file/page.html")
    assert (ran.code, "file/page.html must lie in a folder; " in ran.err) == (2, True)
    monkeypatch.setattr("os.access", lambda folder, mode: False)
    ran = run("report", "karate", "--out", "page.html")
    assert (ran.code, "page.html must lie in a folder that may be written to" in ran.err) == (2, True)


def test_without_torch_there_is_still_a_page(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(module: str, purpose: str) -> Any:
        raise MissingExtraError(f"{purpose} needs {module}")

    monkeypatch.setattr(report, "import_optional", missing)
    ran = run("report", *write_graph_files(15), "--samples", "1")
    assert (ran.code, "no classification: classification needs torch" in ran.err) == (0, True)
    assert len(sections_of(Path("report.html"))) == 2
