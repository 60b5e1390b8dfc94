"""The generated parts of the page on inference, from made-up results."""

from __future__ import annotations

from tests import inference_tables
from tests.inference_tables import Row


def make_rows(method: str, nodes: str = "200", **scores: tuple[float, float, float]) -> list[Row]:
    """Return rows of coverage, ratio and bias in percent; keys are statistics."""
    place = {"dataset": "sbm", "nodes": nodes, "degree": "15", "method": method}
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
    assert misses.startswith("1 of 3 cells")
    assert "The lowest coverage of all is 88.0 %. Of the 2 others, 0 have coverage above 98 %" in misses
    assert "| degree variance | 99.0 | 1.30 | +2.5 | 10 | degrees of samples vary more" in misses
    assert "| triangles | 88.0 | 0.95 | -3.0 | 10 | samples differ" in misses


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
    text = inference_tables.describe_sharpness(ROWS)
    assert "in 3 cells" in text
    assert "by up to 1.30 (node copying), 1.80 (dot product graph) and 5.00 (block model)." in text
    assert "All three cover at least 90 % in 1 cells; in 1 of them" in text


def test_levels_are_listed_by_network_and_null_model() -> None:
    scores = ("transitivity", "assortativity", "modularity")
    rows = [
        {"dataset": "sbm", "method": "copying", "score": f"{score} rejected", "mean": "5.04"}
        for score in scores
    ]
    assert inference_tables.level_table(rows).endswith(
        "| sbm | Node copying, degree classes | 5.0 | 5.0 | 5.0 |"
    )


def test_without_results_every_part_says_how_to_get_them() -> None:
    parts = inference_tables.inference_tables(lambda experiment: [])
    assert all(text.startswith("Not computed yet; `nodecopy reproduce") for text in parts.values())
