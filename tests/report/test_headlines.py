from __future__ import annotations

from typing import Any

from nodecopy import Graph, compare
from nodecopy.report import headlines

PATH, TRIANGLE = Graph.from_edges([0, 1], [1, 2]), Graph.from_edges([0, 1, 2], [1, 2, 0])


def summary(name: str, accuracy: float, half: float, **values: Any) -> dict[str, Any]:
    interval = [accuracy - half, accuracy + half]
    given = {"n_nodes": 1000, "n_splits": 1, "majority": 0.3, "has_learned": True}
    return {"name": name, "accuracy": accuracy, "interval": interval} | given | values


def test_graphs() -> None:
    assert headlines.graphs_headline(6309, [(6215, 621)]) == (
        "The pictured sample has 6,215 edges (observed: 6,309), of which 10 % are observed edges."
    )
    assert headlines.graphs_headline(5, []) == ""


def test_statistics_within_the_range_of_samples() -> None:
    same = compare(TRIANGLE, [TRIANGLE, TRIANGLE])
    n = sum(row.p_value >= 0 for row in same if row.name not in ("n_nodes", "edge_overlap"))
    assert headlines.statistics_headline({"a": same}) == (f"The 2 samples keep all {n} statistics.")


def test_statistics_outside_the_range_are_named() -> None:
    other = compare(TRIANGLE, [PATH, PATH])
    sentence = headlines.statistics_headline({"a": other})
    assert sentence.startswith("The 2 samples keep ")
    assert " statistics; on average, " in sentence
    assert "triangles are 0 instead of 1" in sentence
    assert sentence.endswith(" others differ.")
    two = headlines.statistics_headline({"a": other, "b": compare(TRIANGLE, [TRIANGLE])})
    assert two.startswith("The 2 samples by a keep ")
    assert " The sample by b keeps " in two


def test_the_largest_changes_come_first() -> None:
    """A triangle with a tail against a path with as many nodes: the mean degree says what the edges say."""
    observed = Graph.from_edges([0, 1, 2, 2, 3, 4], [1, 2, 0, 3, 4, 5])
    dense = Graph.from_edges([0, 1, 2, 2, 3, 4, 0, 0, 1, 1], [1, 2, 0, 3, 4, 5, 3, 4, 3, 4])
    sentence = headlines.statistics_headline({"a": compare(observed, [dense, dense])})
    assert sentence.index("triangles are 7 times as many") < sentence.index("times as large")
    assert "mean degree" not in sentence


def test_classification() -> None:
    gcn, ours = summary("GCN", 0.78, 0.03), summary("self-training", 0.82, 0.028)
    assert headlines.classification_headline([gcn, ours]) == (
        "Self-training is right on 82 ± 3 % of 1,000 held-out nodes; GCN on 78 ± 3 %."
    )
    assert "1,000 held-out nodes in 6 splits." in headlines.classification_headline([ours | {"n_splits": 6}])
    assert headlines.classification_headline([]) == "No label is held out, so the accuracy is unknown."


def test_a_model_that_did_not_learn() -> None:
    bad = summary("self-training", 0.45, 0.12, majority=0.41, has_learned=False, n_nodes=62)
    assert headlines.classification_headline([bad]) == (
        "The model did not learn: self-training is right on 45 ± 12 % of 62 held-out nodes, not clearly more "
        "than the 41 % of always predicting the largest class."
    )


def test_attacks() -> None:
    classes = ["a", "b"]
    stages = [[0.9, 0.1], [0.6, 0.4], [0.95, 0.05]]
    assert headlines.attack_headline(classes, 0, stages, 1) == (
        "1 flipped edge does not change the prediction a (90 % before, 60 % after). Copied neighbours "
        "keep it (95 %)."
    )
    failed = headlines.attack_headline(classes, 0, [[0.9, 0.1], [0.1, 0.9], [0.2, 0.8]], 4)
    assert failed.endswith("from a to b. Copied neighbours do not correct it: they give b.")
    evidence = [[0.9, 0.1], [0.1, 0.9], [0.2, 0.8], [0.7, 0.3]]
    assert headlines.attack_headline(classes, 0, evidence, 4).endswith(
        "they give b; all evidence, the method of nodecopy defend, restores it (70 %)."
    )
    assert headlines.attack_headline(classes, 1, evidence, 4).endswith("does not correct it: it gives a.")


def test_recommendations() -> None:
    lists = [
        {"name": "Popularity", "recall": 0.2, "interval": [0.17, 0.23], "k": 10},
        {"name": "CopyEASE", "recall": 0.5, "interval": [0.46, 0.54], "k": 10},
    ]
    assert headlines.recommendations_headline(lists) == (
        "The first 10 recommendations of CopyEASE contain 50 ± 4 % of a user's held-out items; Popularity "
        "20 ± 3 %."
    )
    assert headlines.recommendations_headline([]) == ""


def test_tables() -> None:
    assert headlines.tables_headline(["level", "above", "ahead", "below"]) == (
        "Of 4 results with published numbers, 1 are level with them, 1 ahead, 0 behind and 2 statistics "
        "differ, at 2 standard errors."
    )
    assert headlines.tables_headline([]) == ""
