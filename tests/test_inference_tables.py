"""The generated parts of the page on inference, from made-up results."""

from __future__ import annotations

import csv
from pathlib import Path

from tests import inference_tables
from tests.coverage_cells import Row
from tests.level_tables import describe_levels, level_table
from tests.sharpness_tables import Sharpness, describe_sharpness, find_sharpness

ROOT = Path(__file__).parents[1]


def make_rows(method: str, nodes: str = "200", **scores: tuple[float, float, float]) -> list[Row]:
    """Return rows of coverage, ratio and bias in percent; keys are statistics."""
    place = {"dataset": "sbm", "nodes": nodes, "degree": "15", "method": method, "n": "20"}
    return [
        {**place, "score": f"{name} {kind}", "mean": str(value)}
        for name, values in scores.items()
        for kind, value in zip(("covered", "ratio", "bias", "warned"), (*values, 10.0), strict=True)
    ]


ROWS = [
    *make_rows("copying", density=(95, 100, 0), degree_variance=(99, 130, 250), triangles=(88, 95, -300)),
    *make_rows("dot-product", density=(95, 103, 0), degree_variance=(99, 180, 0), triangles=(95, 120, 0)),
    *make_rows("sbm", density=(94, 98, 0), degree_variance=(70, 20, 0), triangles=(95, 99, 0)),
]


def test_cells_outside_of_the_limits_are_bold_and_listed_with_the_reason() -> None:
    table = inference_tables.coverage_table(ROWS).splitlines()[-1]
    assert table.startswith(
        "| sbm, 200 nodes, degree 15 | 95.0, 1.00 | - | **99.0, 1.30** | **88.0, 0.95** |"
    )
    misses = inference_tables.list_misses(ROWS)
    assert misses.startswith("1 of 3 cells are inside the limits (1 of 3 of sbm, dc-sbm, dot-product and")
    assert "The lowest coverage of all is 88.0 %. Of the 2 others, 0 have coverage above 98 %" in misses
    assert "| degree variance | 99.0 | 1.30 | +2.5 | 10 | degrees of samples vary more" in misses
    assert "| triangles | 88.0 | 0.95 | -3.0 | 10 | samples differ" in misses


def test_cells_without_a_warning_are_named() -> None:
    rows = [*ROWS, *make_rows("copying", nodes="1000", transitivity=(98.4, 120, 0))]
    text = inference_tables.describe_missing_warnings(rows)
    assert text.startswith("`bootstrap` did not warn in 3 of these 3 cells. 1 of them have intervals that")
    assert "coverage of 98.4 to 98.4 %, with ratios of 1.20 to 1.20" in text
    assert text.endswith("; triangles of sbm, 200 nodes, degree 15 (coverage 88.0 %, ratio 0.95).")


def test_rows_with_fewer_networks_say_so() -> None:
    rows = [{**row, "n": "4"} for row in make_rows("copying", nodes="5000", density=(95, 100, 0))]
    last = inference_tables.coverage_table(rows).splitlines()[-1]
    assert last.startswith("| sbm, 5,000 nodes, degree 15, 100 networks | 95.0, 1.00 |")


def test_statistics_that_subsampling_is_not_meant_for_are_in_brackets() -> None:
    rows = make_rows("subsampling", density=(95, 100, 0), triangles=(10, 20, 0))
    last = inference_tables.nodes_table(rows).splitlines()[-1]
    assert last.startswith(
        "| sbm, 200 nodes | Subsampling of 30 % of the nodes | 95.0, 1.00 | - | - | (10.0, 0.20) |"
    )


def test_the_benchmark_is_a_table() -> None:
    text = "Graph(3 nodes)\nours, two workers      72.9 ms per sample     1.0 times ours\n"
    text += "igraph, simple     1532.9 ms of CPU per sample    17.1 times ours\n"
    lines = inference_tables.speed_table(text).splitlines()
    assert lines[2] == "| ours, two workers | 73 ms | wall-clock | 1.0 |"
    assert lines[3] == "| igraph, simple | 1533 ms | CPU | 17.1 |"


def test_methods_are_pooled() -> None:
    lines = inference_tables.methods_table(ROWS, "coverage").splitlines()
    assert any("Fitted block model | 0.20 to 0.99, 86 % | - |" in line for line in lines)


def test_estimated_communities_have_a_sentence_and_are_not_pooled() -> None:
    rows = [
        *ROWS,
        *make_rows("copying", found_modularity=(95, 90, 0)),
        *make_rows("copying", nodes="1000", found_modularity=(10, 20, 0)),
    ]
    assert inference_tables.methods_table(rows, "coverage") == inference_tables.methods_table(
        ROWS, "coverage"
    )
    assert inference_tables.list_misses(rows) == inference_tables.list_misses(ROWS)
    text = inference_tables.describe_estimated_communities(rows)
    assert "covers in 1 of 2 cells (coverage 95 to 95 %, ratios 0.90 to 0.90)" in text
    assert "In the others (coverage 10 to 10 %, ratios 0.20 to 0.20)" in text


def test_sharpness_counts_cells_where_all_cover() -> None:
    text = describe_sharpness(ROWS)
    assert "in 3 cells" in text
    assert "by up to 1.30 (node copying), 1.80 (dot product graph) and 5.00 (block model)." in text
    assert "All three cover at least 90 % in 1 cells. In 1 of them (100%) the factor" in text


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
    text = describe_sharpness(rows)
    assert "is at most that of both others in 1 cells (100%); if the mean" in text
    assert (
        "In the other 0 (0%) it is larger by more than these errors explain, and in 0 it is smaller" in text
    )


def test_levels_are_listed_by_network_and_null_model() -> None:
    scores = ("transitivity", "assortativity", "modularity")
    rows = [
        {"dataset": "sbm", "method": "copying", "score": f"{score} rejected", "mean": "5.04"}
        for score in scores
    ]
    assert level_table(rows).endswith("| sbm | Node copying, degree classes | 5.0 | 5.0 | 5.0 |")


def test_fitted_models_have_a_sentence() -> None:
    blocks = make_rows("sbm", degree_variance=(25, 20, 0), triangles=(74, 55, 0))
    rows: list[Row] = [{**row, "dataset": "dc-sbm"} for row in blocks]
    rows += make_rows("dot-product", degree_variance=(99, 180, 0), triangles=(91, 120, 0))
    text = inference_tables.describe_fitted_models(rows)
    assert "variance of degrees cover 25 % and those of triangles 74 %" in text
    assert "is 91 % (triangles of sbm with 200 nodes and mean degree 15); it overstates" in text
    assert "the variance of degrees by up to 1.80." in text
    assert 'symmetrise="maximum"' not in text
    rows += make_rows("copying-maximum", density=(20, 47, 0), triangles=(10, 447, 0))
    assert inference_tables.describe_fitted_models(rows).endswith("0.47 to 4.47 times the true ones.")


def test_levels_have_sentences() -> None:
    with (ROOT / "results/level.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    changed = [
        {**row, "mean": "9.9" if row["dataset"] == row["method"] == "configuration" else row["mean"]}
        for row in rows
    ]
    assert "to 9.9 %. (The configuration model" in describe_levels(changed)
    assert "to 9.9 %" not in describe_levels(rows)


def test_without_results_every_part_says_how_to_get_them() -> None:
    parts = inference_tables.inference_tables(lambda experiment: [])
    assert all(text.startswith("Not computed yet; `nodecopy reproduce") for text in parts.values())
