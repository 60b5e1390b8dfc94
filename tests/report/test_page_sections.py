from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nodecopy import Graph, compare, datasets
from nodecopy.errors import InputError
from nodecopy.inference import BootstrapResult, Diagnostic, Estimate
from nodecopy.report import page as page_sections
from nodecopy.report.attacked_node import attack_section
from nodecopy.report.page import FROM_SOURCE, FROM_TARGET, OBSERVED, CopiedSample
from tests.report import examples


def edges_of(graph: dict[str, Any]) -> list[tuple[int, int]]:
    """Decode the edges as the page does."""
    steps, edges = iter(graph["steps"]), []
    for source, n in enumerate(graph["counts"]):
        target = source
        for _ in range(n):
            target += next(steps)
            edges.append((source, target))
    assert next(steps, None) is None
    return edges


@pytest.mark.parametrize("directed", [False, True])
def test_every_edge_says_where_it_came_from(directed: bool) -> None:
    observed = examples.graph(directed=directed)
    samples = examples.samples(observed)
    section = page_sections.graphs_section("g", observed, samples)
    dense = observed.adjacency.toarray() > 0
    assert section["ids"] == observed.node_ids.tolist()
    assert section["directed"] is directed
    first, *others = section["graphs"]
    assert len(edges_of(first)) == first["n_edges"] == observed.n_edges
    for graph, (title, sample) in zip(others, samples.items(), strict=True):
        assert graph["title"] == title
        assert graph["donors"] == sample.donors.tolist()
        rows = sample.graph.adjacency.toarray() > 0
        assert len(edges_of(graph)) == graph["n_edges"]
        for (i, j), flags in zip(edges_of(graph), graph["flags"], strict=True):
            assert rows[i, j]
            expected = OBSERVED * dense[i, j] + FROM_SOURCE * dense[sample.donors[i], j]
            expected += 0 if directed else FROM_TARGET * dense[sample.donors[j], i]
            assert int(flags) == expected
            assert int(flags) & (FROM_SOURCE | FROM_TARGET)  # a donor has every sampled edge


def test_labels_predictions_and_uncertainty_colour_nodes() -> None:
    observed = examples.graph()
    guess = np.array(["x", "y"])[np.arange(40) % 2]
    section = page_sections.graphs_section(
        "g", observed, {}, predicted=guess, uncertainty=np.r_[math.nan, np.arange(39)]
    )
    label, predicted, uncertainty = section["colours"]
    assert label["classes"] == [examples.CRAFTED[0], "b"]
    assert label["codes"] == [0] * 20 + [1] * 19 + [-1]
    assert predicted["codes"] == [0, 1] * 20
    assert uncertainty["values"][:3] == [None, 0, 1]


def test_whole_numbers_are_labels_too() -> None:
    graph = Graph.from_edges([0, 1], [1, 2], labels=[7, -1, 3])
    (label,) = page_sections.graphs_section("g", graph, {})["colours"]
    assert (label["classes"], label["codes"]) == (["3", "7"], [1, -1, 0])


def test_a_part_names_donors_that_are_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_sections, "MAX_NODES", 10)
    observed = examples.graph()
    samples = examples.samples(observed, 1)
    section = page_sections.graphs_section("g", observed, samples)
    assert (len(section["ids"]), section["n_nodes"]) == (10, 40)
    place = {name: number for number, name in enumerate(observed.node_ids.tolist())}
    shown = [place[name] for name in section["ids"]]
    donors = [observed.node_ids[samples["sample 0"].donors[node]] for node in shown]
    shown_donors = section["graphs"][1]["donors"]
    assert [section["ids"][donor] if isinstance(donor, int) else donor for donor in shown_donors] == donors
    assert any(isinstance(donor, str) for donor in shown_donors)
    assert not {donor for donor in shown_donors if isinstance(donor, str)} & set(section["ids"])


def test_samples_must_have_the_same_nodes() -> None:
    other = Graph(np.zeros((2, 2)))
    with pytest.raises(InputError, match="must have the 40 nodes of the observed graph; got 2 nodes"):
        page_sections.graphs_section("g", examples.graph(), {"sample": CopiedSample(other, np.zeros(2, int))})


def test_statistics_hold_every_value() -> None:
    path, triangle = Graph.from_edges([0, 1], [1, 2]), Graph.from_edges([0, 1, 2], [1, 2, 0])
    section = page_sections.statistics_section({"two": compare(path, [path, triangle])})
    rows = {row["name"]: row for row in section["rows"]}
    assert section["series"] == ["two"]
    expected = {"name": "triangles", "observed": 0, "samples": [[0, 1]]}
    assert rows["triangles"] == expected | {"intervals": [[0, 1, 1]], "outside": []}
    assert rows["edge_homophily"]["observed"] is None  # no labels: undefined, and JSON knows no NaN
    assert "n_nodes" not in rows


def test_statistics_outside_of_the_samples_have_sentences() -> None:
    path, triangle = Graph.from_edges([0, 1], [1, 2]), Graph.from_edges([0, 1, 2], [1, 2, 0])
    comparison = compare(path, [triangle, triangle])
    one = page_sections.statistics_section({"one": comparison})
    two = page_sections.statistics_section({"one": comparison, "two": compare(path, [path])})
    sentence = "triangles is 0, less than in all 2 samples (1 to 1): draw more samples to be sure."
    for section, expected in ((one, [sentence]), (two, [f"one: {sentence}"])):
        assert {row["name"]: row["outside"] for row in section["rows"]}["triangles"] == expected


def test_observed_statistics_have_the_intervals_that_pass_the_checks() -> None:
    graph = datasets.load("karate")
    comparison = compare(graph, [graph])

    def rows(*problems: Diagnostic) -> tuple[str, dict[str, Any]]:
        result = BootstrapResult(
            (Estimate("triangles", 5, 1.0, 0.0, 3.0, 7.0), Estimate("n_edges", 9, 1.0, 0.0, 7.0, 11.0)),
            *(100, 0.95, "normal", "edges", "a model", False, graph.node_ids, {}),
            problems=problems,
        )
        section = page_sections.statistics_section({"a": comparison}, estimates=result)
        return section["estimates"], {
            row["name"]: row["estimate"] for row in section["rows"] if "estimate" in row
        }

    text, intervals = rows()
    assert intervals == {"triangles": [3, 7], "n_edges": [7, 11]}
    assert text.startswith("In brackets: 95 % intervals of observed statistics from 100 bootstrap samples")
    assert rows(Diagnostic("n_edges", "It is wrong."))[1] == {"triangles": [3, 7]}
    text, intervals = rows(Diagnostic(None, "35% of the ends are wrong. Use another donor rule."))
    assert (text, intervals) == (
        "The observed statistics have no intervals, since 35 % of the ends are wrong.",
        {},
    )
    assert page_sections.statistics_section({"a": comparison})["estimates"] == ""


def test_an_attacked_node_and_those_around_it() -> None:
    images = np.zeros((40, 2, 2))
    images[0] = 4
    section = attack_section(examples.attacked(), examples.graph().node_ids, images=images)
    ids = [node["id"] for node in section["nodes"]]
    assert ids[section["node"]] == examples.CRAFTED[0]
    named = [[(ids[node], kind) for node, kind in stage["neighbours"]] for stage in section["stages"]]
    assert named[1] == [("node 20", "added"), (examples.CRAFTED[1], "own")]
    assert section["donors"] == [examples.CRAFTED[4], examples.CRAFTED[3]]
    assert section["nodes"][section["node"]]["image"] == [[255, 255], [255, 255]]
    assert [stage["probabilities"] for stage in section["stages"]] == [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]]
    assert section["text"].endswith("it is the first that changed its class, after 2 that did not.")


def test_evidence_about_the_attacked_node() -> None:
    pytest.importorskip("torch")
    section = attack_section(examples.attacked(), examples.graph().node_ids)
    assert section["headline"].endswith("all evidence, the method of nodecopy defend, restores it (90 %).")
    evidence = section["evidence"]
    assert evidence["parts"] == {"features": [0.8, 0.2], "similar nodes": [0.6, 0.4], "all": [0.9, 0.1]}
    assert evidence["edge_evidence"] == [0, -0.5]
    assert [(edge["neighbour"], edge["distrusted"], edge["added"]) for edge in evidence["edges"]] == [
        ("node 20", True, True),
        (examples.CRAFTED[1], False, False),
    ]
    without = replace(examples.attacked(), evidence=None)
    assert attack_section(without, examples.graph().node_ids)["evidence"] is None


def test_the_text_says_how_the_attacked_node_was_chosen() -> None:
    def text(**changes: Any) -> str:
        section = attack_section(replace(examples.attacked(), **changes), range(40), noun="digit")
        return str(section["text"])

    before, _, corrected = examples.attacked().stages
    assert text(n_attacked=1).endswith(
        "It is the first digit that was attacked, drawn from those that were classified correctly."
    )
    assert text(stages=(before, before, corrected)).endswith(
        "None of 3 attacked digits changed its class; this one came closest."
    )


def test_all_of_it_is_ready_for_json(tmp_path: Any) -> None:
    page_sections = examples.every_section(tmp_path)
    assert json.loads(json.dumps(page_sections, allow_nan=False)) == page_sections
