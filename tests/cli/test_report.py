from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence
from numpy.typing import NDArray

from nodecopy import Graph, datasets
from nodecopy._core.messages import escape_controls
from nodecopy.datasets import Split
from nodecopy.errors import InputError, MissingExtraError
from nodecopy.graph import UNLABELLED
from nodecopy.io.tables import write_table
from nodecopy.metrics.classification import accuracy
from nodecopy.report import write_report, writing
from nodecopy.report.sections import N_LINKS
from nodecopy.report.writing import Classification, classify_for_report
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
    monkeypatch.setitem(classifiers.GCN.presets, "kipf", replace(classifiers.KIPF, n_epochs=30))


def test_json_names_the_page_and_its_sections(run: Run) -> None:
    printed = run("report", "karate", "--samples", "2", "--json", "--quiet").json()
    assert (printed["source"], printed["page"]) == ("karate", "report.html")
    sections = sections_of(Path("report.html"))
    assert [part["title"] for part in printed["sections"]] == [part["title"] for part in sections]
    assert printed["sections"][0]["headline"] == sections[0]["headline"] != ""


def test_a_graph_alone(run: Run) -> None:
    ran = run("report", "karate", "--samples", "4", "--seed", "2").ok()
    assert "written to report.html" in ran.err
    assert "no classification: it needs labels and features" in ran.err
    graphs, statistics, links = sections_of(Path("report.html"))
    assert [graph["title"] for graph in graphs["graphs"]] == ["observed", "sample 1", "sample 2", "sample 3"]
    assert graphs["ids"] == [str(name) for name in datasets.load("karate").node_ids]
    assert all(len(row["samples"][0]) == 4 for row in statistics["rows"])
    assert [len(links["lists"][kind]) for kind in ("doubtful", "missing")] == [N_LINKS] * 2
    first = Path("report.html").read_bytes()
    run("report", "karate", "--samples", "4", "--seed", "2")
    assert Path("report.html").read_bytes() == first


@pytest.mark.usefixtures("brief")
def test_ones_own_graph_with_crafted_ids(run: Run) -> None:
    ran = run("report", *write_graph_files(15), "--samples", "2", "--out", "mine.html").ok()
    graphs, _, _, classified, attacked = sections_of(Path("mine.html"))
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


def test_interactions_and_results_need_no_graph(run: Run, tmp_path: Path) -> None:
    log = examples.log()
    users, items, _ = log.table()
    write_table("log.csv", {"user": users, "item": items})
    folder = examples.write_results(tmp_path / "results")
    ran = run("report", "--interactions", "log.csv", "--results", folder).ok()
    recommended, tables = sections_of(Path("report.html"))
    assert sorted(user["id"] for user in recommended["users"]) == sorted(map(str, log.user_ids))
    assert tables["experiments"][0]["name"] == "table9"
    assert recommended["headline"] == ""  # twelve users are too few to evaluate
    assert f"Reproduction: {tables['headline']}" in ran.out


def test_without_torch_there_is_still_a_page(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(module: str, purpose: str) -> Any:
        raise MissingExtraError(f"{purpose} needs {module}")

    monkeypatch.setattr(writing, "import_optional", missing)
    ran = run("report", *write_graph_files(15), "--samples", "1")
    assert (ran.code, "no classification: classification needs torch" in ran.err) == (0, True)
    assert len(sections_of(Path("report.html"))) == 3


def two_groups(n: int, *, n_labelled: int) -> Graph:
    """Two groups with random edges inside them and features that tell them apart."""
    draws = np.random.default_rng(0)
    labels = np.arange(n) % 2
    adjacency = np.triu(draws.random((n, n)) < 12 / n * (labels[:, None] == labels), 1)
    features = draws.normal(size=(n, 4)) + 2 * labels[:, None]
    labels = np.where(np.arange(n) < n_labelled, labels, UNLABELLED)
    return Graph((adjacency | adjacency.T).astype(float), labels=labels, features=features)


def classify_groups(graph: Graph, train: NDArray[np.int64], test: NDArray[np.int64]) -> Classification:
    split = Split(train, np.zeros(0, np.int64), test)
    return classify_for_report(graph, split, SeedSequence(0), ("auto", "auto"))


def test_python_writes_the_page_of_the_command(run: Run, tmp_path: Path) -> None:
    short = ("--without", "classification", "--without", "attack", "--samples", "5")
    run("report", "karate", *short, "--colours", "#d08770,#5E81AC").ok()
    path, club = tmp_path / "page.html", datasets.load("karate")
    parts = ["classification", "attack"]
    write_report(club, path, without=parts, n_samples=5, colours=["#d08770", "#5E81AC"])
    assert sections_of(path) == sections_of(Path("report.html"))
    assert "{--class-0:#d08770;--class-1:#5E81AC;}" in path.read_text(encoding="utf-8")
    assert (
        "--colours must be written as #rrggbb; got 'red'" in run("report", "karate", "--colours", "red").err
    )
    write_report(datasets.load("library"), path)
    assert [section["kind"] for section in sections_of(path)] == ["recommendations"]
    with pytest.raises(InputError, match="without must be one of"):
        write_report(datasets.load("karate"), path, without=["samples"])


def test_few_labels_are_cross_validated(brief: None) -> None:
    graph = two_groups(60, n_labelled=20)
    result = classify_groups(graph, np.arange(16), np.arange(16, 20))
    assert result.n_folds == 5
    assert result.train.tolist() == list(range(20))
    assert sorted(result.tested.tolist()) == list(range(20))
    assert result.evaluations is not None
    assert list(result.evaluations) == ["GCN", "self-training"]
    ours = result.evaluations["self-training"]
    assert ours.splits is not None
    assert np.bincount(ours.splits).tolist() == [4] * 5
    # The prediction of a labelled node is that of the fold that held its label out.
    assert np.array_equal(result.prediction.probabilities[result.tested], ours.probabilities)
    assert accuracy(ours.probabilities, ours.codes) > 0.8
    assert result.nodes.tolist() == list(range(60))
