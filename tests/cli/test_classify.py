from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nodecopy import Graph, datasets
from nodecopy.io.tables import read_table
from tests.cli.conftest import Run
from tests.cli.labelled_files import TABLES, rows, write_files

QUICK = ("--n-rounds", "1")


@pytest.fixture
def files(run: Run) -> Graph:
    """Twelve people of two kinds; the last two of each have no label."""
    return write_files(n=12, n_labelled=8)


def test_nodes_without_a_label_are_predicted(run: Run, files: Graph) -> None:
    ran = run("classify", "graph.csv", *TABLES, *QUICK, "--out", "predictions.csv").ok()
    predictions = rows("predictions.csv")
    assert [row["id"] for row in predictions] == ["p08", "p09", "p10", "p11"]
    assert [row["predicted"] for row in predictions] == ["cat", "dog", "cat", "dog"]
    for row in predictions:
        p = {"cat": float(row["p_cat"]), "dog": float(row["p_dog"])}
        assert sum(p.values()) == pytest.approx(1, abs=1e-5)
        assert max(p, key=lambda name: p[name]) == row["predicted"]
        total, aleatoric, epistemic = (
            float(row[f"{kind}_uncertainty"]) for kind in ("total", "aleatoric", "epistemic")
        )
        assert total == pytest.approx(aleatoric + epistemic, abs=1e-6)
    assert "written to predictions.csv" in ran.err


@pytest.mark.parametrize(
    ("method", "suffix"),
    [
        *(("mlp", "tsv"), ("gcn", "parquet"), ("appnp", "tsv"), ("sbm-gcn", "csv")),
        *(("dfnet", "tsv"), ("label-propagation", "parquet"), ("dgi", "tsv"), ("sgc", "csv")),
    ],
)
def test_methods_and_formats(run: Run, files: Graph, method: str, suffix: str) -> None:
    options = ("--method", method, "--validation", "0.3", "--out", f"predictions.{suffix}")
    run("classify", "graph.csv", *TABLES, *options).ok()
    table = read_table(Path(f"predictions.{suffix}"), lambda *_: True)
    columns = dict(zip(table.names or (), table.columns, strict=True))
    assert list(columns["id"]) == ["p08", "p09", "p10", "p11"]
    total = np.asarray(columns["p_cat"], float) + np.asarray(columns["p_dog"], float)
    assert total == pytest.approx(1, abs=1e-5)


def test_json_holds_the_summary(run: Run, files: Graph) -> None:
    arguments = ("classify", "graph.csv", *TABLES, *QUICK, "--seed", "3", "--json")
    result = run(*arguments).json()
    assert (result["train"], result["validation"], result["predicted"]) == (8, 0, 4)
    assert result["classes"] == {"cat": 2, "dog": 2}
    assert {entry["id"] for entry in result["most_uncertain"]} == {"p08", "p09", "p10", "p11"}
    assert run(*arguments).json() == result


def test_rounds_of_self_training_are_described(run: Run, files: Graph) -> None:
    arguments = ("classify", "graph.csv", *TABLES, "--n-rounds", "2")
    result = run(*arguments, "--json").json()
    assert (result["method"], result["validation"]) == ("self-training", 0)
    rounds = result["self_training"]
    assert tuple(rounds["vote"]) == ("features", "two hops", "propagated", "connections", "labels")
    assert (rounds["n_rounds"], len(rounds["round_likelihood"])) == (2, 3)
    assert rounds["round_likelihood"][rounds["round"]] == max(rounds["round_likelihood"])
    assert rounds["pseudo_labels"].keys() == rounds["held_out_recall"].keys() == {"cat", "dog"}
    weighted = run(*arguments, "--class-weight", "cat=3, dog=1.5", "--json").json()["self_training"]
    assert weighted["class_weight"] == {"cat": 3.0, "dog": 1.5}
    assert "must be f1, or such as" in run(*arguments, "--class-weight", "cat=x").err


def test_the_fitted_classifier_is_kept(run: Run, files: Graph) -> None:
    from nodecopy import load

    assert run("classify", "graph.csv", *TABLES, *QUICK, "--save", "model.npz").code == 0
    loaded = load("model.npz")
    assert loaded.node_ids_.tolist() == files.node_ids.tolist()
    assert type(loaded).__name__ == "SelfTraining"
    np.testing.assert_allclose(loaded.predict_proba(files), loaded.predict_proba(), atol=1e-6)
    trained = run("classify", "graph.csv", *TABLES, *QUICK, "--json").json()
    ran = run(
        "classify", "graph.csv", "--features", "features.csv", "--load", "model.npz", "--out", "all.csv"
    ).ok()
    predicted = {row["id"]: row["predicted"] for row in rows("all.csv")}
    assert len(predicted) == 12
    assert all(predicted[entry["id"]] == entry["predicted"] for entry in trained["most_uncertain"])
    assert "accuracy" not in ran.err + ran.out
    ran = run("classify", "graph.csv", *TABLES, "--load", "model.npz")
    assert "accuracy: on all labelled nodes, which may include" in ran.err
    ran = run("classify", "graph.csv", *TABLES, "--directed", "--load", "model.npz").ok()
    assert "its edges are used without directions, as in fit" in ran.err
    ran = run("classify", "graph.csv", "--labels", "labels.csv", "--load", "model.npz")
    assert ran.code == 2
    assert ran.err.endswith("got none. Give --features FILE.\n")


def test_a_dataset_is_split_as_in_the_experiments(run: Run) -> None:
    from nodecopy._core.random import child
    from nodecopy.classify import GCN
    from nodecopy.experiments.spec import TrialSeeds, trial_seed

    arguments = ("classify", "digits", "--labels-per-class", "2", "--method", "gcn", "--seed", "1")
    ran = run(*arguments, "--json", "--out", "predictions.csv")
    result = ran.json()
    assert (result["train"], result["validation"], result["predicted"]) == (20, 500, 1000)
    graph, seed = datasets.load("digits"), trial_seed(1, "digits", 0, labels=2)
    split = datasets.label_split(graph.label_codes, 2, 500, 1000, rng=child(seed, TrialSeeds.SPLIT))
    fitted = GCN().fit(graph, split.train, rng=child(seed, TrialSeeds.METHOD))
    assert [int(row["id"]) for row in rows("predictions.csv")] == split.test.tolist()
    assert result["accuracy"] == (fitted.predict() == graph.label_codes)[split.test].mean()
    assert result["accuracy"] > 0.5
    assert result["by_class"]["3"] == fitted.report(split.test).by_class()["3"]
