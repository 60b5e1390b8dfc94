"""The generated tables and sentences of the documentation, from made-up results."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.result_tables import inference as inference_tables
from docs.result_tables import pages
from docs.result_tables.cells import Row
from docs.result_tables.defence import worst_table
from docs.result_tables.sharpness import Sharpness, describe_sharpness, find_sharpness


def make_rows(method: str, nodes: str = "200", **scores: tuple[float, float, float]) -> list[Row]:
    """Return rows of coverage, ratio and bias in percent; keys are statistics."""
    place = {"dataset": "sbm", "nodes": nodes, "degree": "15", "method": method, "n": "20"}
    return [
        {**place, "score": f"{name} {kind}", "mean": str(value)}
        for name, values in scores.items()
        for kind, value in zip(("covered", "ratio", "bias", "warned"), (*values, 10.0), strict=True)
    ]


ROWS = [
    *make_rows(
        "class-copying", density=(95, 100, 0), degree_variance=(99, 130, 250), triangles=(88, 95, -300)
    ),
    *make_rows("dot-product", density=(95, 103, 0), degree_variance=(99, 180, 0), triangles=(95, 120, 0)),
    *make_rows("sbm", density=(94, 98, 0), degree_variance=(70, 20, 0), triangles=(95, 99, 0)),
]


def test_cells_outside_of_the_limits_are_bold_and_listed_with_the_reason() -> None:
    table = inference_tables.coverage_table(ROWS).splitlines()[-1]
    assert table.startswith("| sbm, 200 nodes, degree 15 | 95.0, 1.00 | - | **99.0, 1.30** | **88.0, 0.95**")
    misses = inference_tables.list_misses(ROWS)
    assert misses.startswith("1 of 3 cells are inside the limits (1 of 3 of sbm, dc-sbm, dot-product and")
    assert "The lowest coverage of all is 88.0 %. Of the 2 others, 0 have coverage above 98 %" in misses
    assert "| degree variance | 99.0 | 1.30 | +2.5 | 10 | degrees of samples vary more" in misses
    assert "| triangles | 88.0 | 0.95 | -3.0 | 10 | samples differ" in misses


def test_estimated_communities_have_a_sentence_and_are_not_pooled() -> None:
    rows = [
        *ROWS,
        *make_rows("class-copying", found_modularity=(95, 90, 0)),
        *make_rows("class-copying", nodes="1000", found_modularity=(10, 20, 0)),
    ]
    tables = [inference_tables.methods_table(given, "coverage") for given in (rows, ROWS)]
    assert tables[0] == tables[1]
    assert inference_tables.list_misses(rows) == inference_tables.list_misses(ROWS)
    text = inference_tables.describe_estimated_communities(rows)
    assert "covers in 1 of 2 cells (coverage 95 to 95 %, ratios 0.90 to 0.90)" in text
    assert "In the others (coverage 10 to 10 %, ratios 0.20 to 0.20)" in text


def test_errors_of_the_truth_move_factors_on_one_side_alike() -> None:
    # 1.03 and 1.02 are factors on the same side of 1: whatever the truth is, the second is closer to it.
    assert Sharpness([1.03, 1.02, 1.02], [0, 0, 0], True).compare(0, 0) == (False, False)
    assert Sharpness([1.05, 1.04, 1.04], [0, 0, 0], True).compare(2, 0) == (False, False)
    assert Sharpness([1.05, 1.04, 1.04], [0.005, 0.005, 0.005], True).compare(2, 2) == (True, False)
    # 1.03 and 0.98 are on different sides: a true deviation that is larger by 1 % makes them equal.
    assert Sharpness([1.03, 0.98, 1.5], [0, 0, 0], True).compare(0, 0) == (False, False)
    assert Sharpness([1.03, 0.98, 1.5], [0, 0, 0], True).compare(2, 0) == (True, False)
    assert Sharpness([1.2, 0.98, 1.5], [0.005, 0.005, 0.005], True).compare(2, 2) == (False, False)
    assert Sharpness([1.0, 1.3, 0.8], [0.005, 0.005, 0.005], True).compare(2, 2) == (True, True)


def test_errors_of_ratios_are_those_of_means_over_trials() -> None:
    rows: list[Row] = [{**row, "std": "8.9443"} for row in ROWS]
    errors = find_sharpness(rows)["sbm", "200", "15", "density"].errors
    assert [round(error, 4) for error in errors] == [0.02, 0.0194, 0.0204]
    assert "is at most that of both others in 1 cells (100%); if the mean" in describe_sharpness(rows)


def test_tables_of_few_labels_show_means_and_gains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header = "dataset,labels,visible_validation,score,method,n,mean,best,seconds,published"
    rows = [
        "cora,5,500,accuracy,gcn,50,68.5,False,,,,",
        "cora,5,500,accuracy,sgc,50,75.71,False,1.25,,,",
        "cora,5,500,accuracy,default,50,76.24,True,2,,0.53,0.0004,-1.2,0.03",
    ]
    path = tmp_path / "few-labels.csv"
    for over in ("sgc", "self-training"):
        header += f",gain_over_{over},p_over_{over}"
    path.write_text("\n".join([header, *rows, ""]))
    monkeypatch.setattr(pages, "RESULTS", tmp_path)
    lines = pages.few_labels_table("dataset", "accuracy", labels="5").splitlines()
    assert lines[0] == "| accuracy | cora |"
    alone, default = "SGC", "SelfTraining(), the default"
    for line in ("| GCN | 68.5 |", f"| {alone} | 75.7 |", f"| {default} | **76.2** |"):
        assert line in lines
    assert lines[-3:] == [
        f"| {default} | **76.2** |",
        "| gain of the default over SGC | +0.5, p < 0.001 |",
        "| gain of the default over self-training of GCNs | -1.2, p = 0.03 |",
    ]
    assert pages.gains_table("5").splitlines()[2:] == [
        f"| {default} over {alone} | +0.5, p < 0.001 |",
        f"| {default} over self-training of GCNs | -1.2, p = 0.03 |",
    ]
    assert "ahead of self-training of GCNs in 0 of 1 computed columns and behind in 1; gains of -1.2" in (
        pages.describe_columns()
    )


def test_the_table_of_public_splits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "RESULTS", tmp_path)
    assert pages.public_splits_table().startswith("Not computed yet")
    path = tmp_path / "public-splits.csv"
    path.write_text(
        "dataset,score,method,mean,published,best\n"
        "gowalla,recall@20,copy-ease,19.3,,True\n"
        "gowalla,ndcg@20,copy-ease,16.01,,True\n"
        "gowalla,recall@20,ease,17.6,17.65,False\n"
        "gowalla,ndcg@20,ease,14.6,14.67,False\n"
        "yelp2018,recall@20,bspm-em,,7.2,False\n",
        encoding="utf-8",
    )
    lines = pages.public_splits_table().splitlines()
    assert lines[0] == "| recall@20 / ndcg@20 | gowalla | yelp2018 |"
    assert "| EASE | 17.60 / 14.60 (17.65 / 14.67) | - |" in lines
    assert "| CopyEASE | **19.30** / **16.01** | - |" in lines
    assert "| BSPM-EM (its paper) | - | (7.20 / -) |" in lines


def test_the_lowest_accuracy_is_that_of_the_worst_attack() -> None:
    runs = [("evidence-5", "evidence", "73"), ("expected-5", "evidence", "71.25"), ("fga-5", "gnnguard", "3")]
    rows = [
        {"dataset": "cora", "attack": attack, "method": method, "score": "accuracy", "mean": mean, "n": "10"}
        for attack, method, mean in runs
    ]
    (line,) = worst_table(rows).splitlines()[2:]  # GNNGuard was not run under the attack that knows it
    assert line == "| Evidence, edges of uncertain nodes | 71.2, expected donors | - | - | - |"
    assert worst_table([]).startswith("Not computed yet")
