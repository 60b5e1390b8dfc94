"""The report page, and the sections of graphs, statistics and tables."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nodecopy
from nodecopy import Graph, compare, datasets
from nodecopy.errors import DataWarning, InputError
from nodecopy.inference import BootstrapResult, Estimate
from nodecopy.inference.diagnosis import Diagnostic
from nodecopy.report import page
from nodecopy.report.page import (
    DATASETS,
    FROM_SOURCE,
    FROM_TARGET,
    OBSERVED,
    CopiedSample,
    result_tables_section,
)
from nodecopy.report.sections import attack_section
from tests.report import examples

D3 = "d1c22a6cd599ffcf470051630cc701b70edf50a3f3bbdab166a107dad02c020d"


class Elements(HTMLParser):
    """Tags with their attributes, and the text of the data element and of the title."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, str] = {}
        self.now = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.now = dict(attrs).get("id") or tag

    def handle_endtag(self, tag: str) -> None:
        self.now = ""

    def handle_data(self, data: str) -> None:
        self.text[self.now] = self.text.get(self.now, "") + data


def test_the_data_arrive_as_they_were(tmp_path: Path) -> None:
    sections = examples.every_section(tmp_path)
    title = examples.CRAFTED[0]
    elements = Elements(page.render_page(title, sections, origin=examples.CRAFTED[1]))
    data = json.loads(elements.text["data"])
    assert data["sections"] == sections
    assert (data["title"], data["origin"]) == (title, examples.CRAFTED[1])
    assert data["version"] == nodecopy.__version__
    assert elements.text["title"] == title


def test_a_title_may_hold_what_no_file_can(tmp_path: Path) -> None:
    """It is the name of a file, in which bytes that are not UTF-8 are halves of characters."""
    page.write_page(tmp_path / "page.html", "caf\udce9.csv", [], origin="caf\udce9.csv")
    assert "<title>caf\\udce9.csv</title>" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_crafted_texts_add_no_elements(tmp_path: Path) -> None:
    plain = Elements(page.render_page("a", []))
    sections = examples.every_section(tmp_path)
    crafted = Elements(page.render_page(examples.CRAFTED[0], sections, origin="</script>"))
    assert crafted.tags == plain.tags
    assert [tag for tag, _ in plain.tags].count("script") == 1 + len(page.SCRIPTS)


def test_nothing_is_loaded_from_elsewhere() -> None:
    elements = Elements(page.render_page("a", []))
    for _, attributes in elements.tags:
        assert "src" not in attributes
        assert (attributes.get("href") or "#")[:5] in ("#", "#main", "data:")
    policy = next(attributes["content"] for _, attributes in elements.tags if attributes.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'")


@given(
    st.text() | st.lists(st.floats(allow_nan=False, allow_infinity=False)) | st.sampled_from(examples.CRAFTED)
)
def test_json_survives_and_cannot_end_its_element(value: object) -> None:
    text = page.encode_json({"a": value})
    assert json.loads(text) == {"a": value}
    assert not set(text) & set("<>&")
    assert text.isascii()


def test_the_drawing_library_is_the_documented_build_with_its_licence() -> None:
    folder = files("nodecopy.report") / "web" / "vendor"
    assert hashlib.sha256((folder / "d3.min.js").read_bytes()).hexdigest() == D3
    assert "Copyright 2010-2026 Mike Bostock" in (folder / "d3-LICENSE.txt").read_text(encoding="utf-8")
    assert "Permission to use, copy, modify" in page.render_page("a", [])


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
    section = page.graphs_section("g", observed, samples)
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
    uncertainties = np.r_[math.nan, np.arange(39)]
    section = page.graphs_section("g", observed, {}, predicted=guess, uncertainty=uncertainties)
    label, predicted, uncertainty = section["colours"]
    assert label["classes"] == [examples.CRAFTED[0], "b"]
    assert label["codes"] == [0] * 20 + [1] * 19 + [-1]
    assert predicted["codes"] == [0, 1] * 20
    assert uncertainty["values"][:3] == [None, 0, 1]


def test_a_part_names_donors_that_are_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MAX_NODES", 10)
    observed = examples.graph()
    samples = examples.samples(observed, 1)
    section = page.graphs_section("g", observed, samples)
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
    with pytest.raises(InputError, match="must have the 40 nodes"):
        page.graphs_section("g", examples.graph(), {"sample": CopiedSample(other, np.zeros(2, int))})


def test_statistics_hold_every_value() -> None:
    path, triangle = Graph.from_edges([0, 1], [1, 2]), Graph.from_edges([0, 1, 2], [1, 2, 0])
    section = page.statistics_section({"two": compare(path, [path, triangle])})
    rows = {row["name"]: row for row in section["rows"]}
    assert section["series"] == ["two"]
    expected = {"name": "triangles", "observed": 0, "samples": [[0, 1]]}
    assert rows["triangles"] == expected | {"intervals": [[0, 1, 1]], "outside": []}
    assert rows["edge_homophily"]["observed"] is None  # no labels: undefined, and JSON knows no NaN
    assert "n_nodes" not in rows


def test_observed_statistics_have_the_intervals_that_pass_the_checks() -> None:
    graph = datasets.load("karate")
    comparison = compare(graph, [graph])

    def rows(*problems: Diagnostic) -> tuple[str, dict[str, Any]]:
        result = BootstrapResult(
            (Estimate("triangles", 5, 1.0, 0.0, 3.0, 7.0), Estimate("n_edges", 9, 1.0, 0.0, 7.0, 11.0)),
            *(100, 0.95, "normal", "edges", "a model", False, graph.node_ids, {}),
            problems=problems,
        )
        section = page.statistics_section({"a": comparison}, estimates=result)
        return section["estimates"], {
            row["name"]: row["estimate"] for row in section["rows"] if "estimate" in row
        }

    text, intervals = rows()
    assert intervals == {"triangles": [3, 7], "n_edges": [7, 11]}
    assert text.startswith("In brackets: 95 % intervals of observed statistics from 100 bootstrap samples")
    assert rows(Diagnostic("n_edges", "It is wrong."))[1] == {"triangles": [3, 7]}
    text, intervals = rows(Diagnostic(None, "35% of the ends are wrong. Use another donor rule."))
    assert intervals == {}
    assert text == "The observed statistics have no intervals, since 35 % of the ends are wrong."
    assert page.statistics_section({"a": comparison})["estimates"] == ""


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
    section = attack_section(examples.attacked(), examples.graph().node_ids)
    assert section["headline"].endswith("all evidence, the method of nodecopy defend, restores it (90 %).")
    evidence = section["evidence"]
    assert evidence["parts"] == {"features": [0.8, 0.2], "all": [0.9, 0.1]}
    assert evidence["edge_evidence"] == [0, -0.5]
    assert [(edge["neighbour"], edge["distrusted"], edge["added"]) for edge in evidence["edges"]] == [
        ("node 20", True, True),
        (examples.CRAFTED[1], False, False),
    ]
    without = replace(examples.attacked(), evidence=None)
    assert attack_section(without, examples.graph().node_ids)["evidence"] is None


def test_ours_beside_the_published(tmp_path: Path) -> None:
    titles = {"table9": {"": "A table", "gcn": "GCN"}}
    section = result_tables_section(examples.write_results(tmp_path / "results"), titles=titles)
    (experiment,) = section["experiments"]
    assert experiment["title"] == "Table 9: A table"
    (group,) = experiment["groups"]
    assert group["dataset"] == "Cora"
    assert group["columns"] == ["5 labels", "10 labels"]
    assert group["methods"] == ["GCN", examples.CRAFTED[0]]
    assert group["cells"] == [
        [[69.2, 4.2, 70, 3.7, "level", 1], [74.9, 2.9, 76, 2.2, "behind", 1]],
        [[None, None, 74.6, 2.8], None],
    ]
    assert experiment["origin"]["commit"] == ["abc", "def"]


def test_other_files_are_left_out_and_alone_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="folder must hold CSV files of results tables"):
        result_tables_section(tmp_path)
    (tmp_path / "other.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(InputError, match="folder must hold CSV files of results tables"):
        result_tables_section(tmp_path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"\xff" + content,
        lambda content: content[: len(content) * 2 // 3],
        lambda content: content.replace(b"69.2", b"much"),
        lambda content: content.replace(b"69.2", b"inf"),
        lambda content: content.replace(b"69.2", b"69.2," * 3),
        lambda content: content.replace(b"69.2", b"6" * 200_000),
    ],
)
def test_tables_that_cannot_be_read_are_left_out(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    content = (examples.write_results(tmp_path) / "table9.csv").read_bytes()
    (tmp_path / "damaged.csv").write_bytes(damage(content))
    (tmp_path / "folder.csv").mkdir()
    with (
        pytest.warns(DataWarning, match=r"damaged\.csv is left out, since it cannot be read"),
        pytest.warns(DataWarning, match=r"folder\.csv is left out, since it cannot be read"),
    ):
        section = result_tables_section(tmp_path)
    assert [experiment["name"] for experiment in section["experiments"]] == ["table9"]


def test_the_tables_of_this_repository_are_read() -> None:
    folder = Path(__file__).parents[2] / "results"
    section = result_tables_section(folder)
    names = [experiment["name"] for experiment in section["experiments"]]
    assert sorted(names) == sorted(path.stem for path in folder.glob("*.csv"))
    assert names[section["open"]] == "table2"
    assert section["experiments"][section["open"]]["title"] == "Table 2"
    datasets = {group["dataset"] for entry in section["experiments"] for group in entry["groups"]}
    assert datasets <= set(DATASETS.values())
