"""People's own tables, as they are: text, missing cells, measurements, amounts as weights, or no edges."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodecopy import Graph
from nodecopy.io.tables import write_table
from tests.cli.conftest import Run
from tests.measurements import measured_graph

FILES = ("edges.csv", "--features", "features.csv", "--labels", "labels.csv", "--weight", "amount")
QUICK = ("--n-rounds", "1")
N_LABELLED = 120
pytestmark = pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")


@pytest.fixture
def truth(run: Run) -> dict[str, str]:
    """Write edges with amounts, features with text and missing cells, and some labels; return all labels."""
    graph = measured_graph(400)
    names = np.array([f"customer {number:03d}" for number in range(400)])
    plans = np.array(["basic", "family", "student", "premium"])[graph.label_codes]
    source, target, amount = graph.edges()
    write_table("edges.csv", {"source": names[source], "target": names[target], "amount": amount})
    write_features("features.csv", graph, names)
    write_table("labels.csv", {"customer": names[:N_LABELLED], "plan": plans[:N_LABELLED]})
    return dict(zip(names.tolist(), plans.tolist(), strict=True))


def write_features(path: str, graph: Graph, names: Any) -> None:
    """Write age (some cells are missing), income, balance, share, rating and city."""
    draw = np.random.default_rng(2)
    columns: list[list[Any]] = np.array(graph.features)[:, :5].round(3).T.tolist()
    columns[0] = [age if draw.random() > 0.1 else "" for age in columns[0]]
    cities = draw.choice(["Oslo", "Rome", "", "Bergen"], size=len(names)).tolist()
    header = ["id", "age", "income", "balance", "share", "rating", "city"]
    with Path(path).open("w", newline="") as file:
        csv.writer(file).writerows([header, *zip(names.tolist(), *columns, cities, strict=True)])


def accuracy(path: str, truth: dict[str, str]) -> float:
    with Path(path).open() as file:
        return float(np.mean([row["predicted"] == truth[row["id"]] for row in csv.DictReader(file)]))


def test_from_tables_to_predictions_and_a_page(run: Run, truth: dict[str, str]) -> None:
    """After ``pip install 'nodecopy[torch,data]'``, two commands and no look into the source."""
    ran = run("classify", *FILES, *QUICK, "--out", "predictions.csv").ok()
    assert "one-hot encoded text: city (4 values)" in ran.err
    assert "replaced missing cells by medians and marked them: age (" in ran.err
    assert "features: each column is standardised" in ran.err
    assert "--scale-features" in ran.err
    assert "--ignore-column" in ran.err
    assert "weights: log(1 + weight / smallest weight)" in ran.err
    assert accuracy("predictions.csv", truth) > 0.85
    with Path("predictions.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 400 - N_LABELLED
    total = np.array([float(row["total_uncertainty"]) for row in rows])
    wrong = np.array([row["predicted"] != truth[row["id"]] for row in rows])
    assert total[wrong].mean() > 1.3 * total[~wrong].mean()
    ran = run("report", *FILES, "--samples", "2", "--out", "page.html").ok()
    assert "page written to page.html" in ran.err
    assert "features: each column is standardised" in ran.err
    page = Path("page.html").read_text(encoding="utf-8")
    assert f"Self-training learned from {N_LABELLED} labelled nodes and from " in page
    assert "It is evaluated by 5-fold cross-validation over the labelled nodes, since they are few" in page
    assert "premium" in page


def test_features_without_edges(run: Run, truth: dict[str, str]) -> None:
    options = ("--labels", "labels.csv", "--method", "gcn", "--n-neighbours", "7", "--out", "predictions.csv")
    ran = run("classify", "features.csv", *options).ok()
    assert "there are no edges, so each node is connected to its 7 nearest neighbours by features" in ran.err
    assert "--n-neighbours" in ran.err
    assert accuracy("predictions.csv", truth) > 0.5
    run("report", "features.csv", "--labels", "labels.csv", "--samples", "2", "--without", "attack").ok()
    assert Path("report.html").is_file()


def test_a_saved_classifier_predicts_new_rows(run: Run, truth: dict[str, str]) -> None:
    assert run("classify", *FILES, "--method", "gcn", "--save", "model.npz").code == 0
    new = measured_graph(150)  # other nodes of the same groups
    names = np.array([f"new {number}" for number in range(150)])
    source, target, amount = new.edges()
    write_table("new_edges.csv", {"source": names[source], "target": names[target], "amount": amount})
    write_features("new_features.csv", new, names)
    plans = np.array(["basic", "family", "student", "premium"])[new.label_codes]
    new_files = ["new_edges.csv", "--features", "new_features.csv", "--weight", "amount"]
    new_files += ["--load", "model.npz"]
    ran = run("classify", *new_files, "--out", "new.csv", "--json").ok()
    result = ran.json()
    assert (result["classifier"], result["predicted"]) == ("model.npz", 150)
    assert "accuracy" not in result
    assert accuracy("new.csv", dict(zip(names.tolist(), plans.tolist(), strict=True))) > 0.7
    write_table("new_labels.csv", {"id": names[:50], "plan": plans[:50]})
    ran = run("classify", *new_files, "--labels", "new_labels.csv").ok()
    assert ran.out.split()[:2] == ["predicted", "accuracy"]
    ran = run("classify", "new_features.csv", "--load", "model.npz", "--json").ok()
    assert ran.json()["predicted"] == 150
