"""A small page with every kind of section, whose ids try to break out of it."""

from __future__ import annotations

import csv
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodecopy import Graph, Interactions, NodeCopying, SameLabel, compare
from nodecopy.links import LinkPredictor
from nodecopy.recommend import CopyEASE
from nodecopy.recommend.ease import default_donors, donor_matrix
from nodecopy.report import page as page_sections
from nodecopy.report.page import CopiedSample, Section, copied_samples, result_tables_section
from nodecopy.report.sections import (
    AttackedNode,
    HeldOutPredictions,
    Stage,
    attack_section,
    classification_section,
    links_section,
    recommendations_section,
)

CRAFTED = (
    "</script><script>window.broken = true</script>",
    '<img src=x onerror="window.broken = true">',
    "'\"&amp;\\u003c` ${window.broken = true} $title",
    "<!-- <script>",
    "\u2028 Zoë 東京 🦊 \u202e",
    "]]> \\",
)
N_NODES = 40
COLUMNS = (
    *("experiment", "dataset", "labels", "attack", "score", "method", "n", "mean", "std"),
    *("published", "published_std", "difference", "verdict", "best", "commit", "machine", "date"),
)


def sections_of(file: Path) -> list[Section]:
    """The sections that a page was written with."""
    text = file.read_text(encoding="utf-8").partition('id="data">')[2].partition("</script>")[0]
    page_sections: list[Section] = json.loads(text)["sections"]
    return page_sections


class Unsure(NamedTuple):
    total: NDArray[Any]
    aleatoric: NDArray[Any]
    epistemic: NDArray[Any]


class Predicted(NamedTuple):
    """The prediction of a classifier, without a classifier."""

    probabilities: NDArray[Any]

    def uncertainty(self) -> Unsure:
        p = self.probabilities
        total = -(p * np.log(p)).sum(axis=1)
        return Unsure(total, 0.75 * total, 0.25 * total)


def graph(*, directed: bool = False) -> Graph:
    """Two circles with chords, joined by one edge; labels are crafted as ids are, one node has none."""
    half = N_NODES // 2
    around = [(i, (i + 1) % half) for i in range(half)] + [(i, (i + 7) % half) for i in range(0, half, 3)]
    pairs = np.array([*around, *((a + half, b + half) for a, b in around), (0, half)])
    ids = np.array([*CRAFTED, *(f"node {i}" for i in range(len(CRAFTED), N_NODES))])
    names = np.array([CRAFTED[0]] * half + ["b"] * (half - 1) + [""])
    return Graph.from_edges(ids[pairs[:, 0]], ids[pairs[:, 1]], node_ids=ids, labels=names, directed=directed)


def samples(observed: Graph, n: int = 2) -> dict[str, CopiedSample]:
    model = NodeCopying(SameLabel()).fit(observed)
    return {f"sample {number}": sample for number, sample in enumerate(copied_samples(model, n, 5))}


def predicted(n_nodes: int = N_NODES) -> Predicted:
    chances = np.linspace(0.05, 0.95, n_nodes)
    return Predicted(np.column_stack([chances, 1 - chances]))


def log() -> Interactions:
    draws = np.random.default_rng(0)
    matrix = draws.random((12, 9)) < 0.45
    matrix[:, 0] = True
    users = [*CRAFTED, *(f"user {i}" for i in range(len(CRAFTED), 12))]
    return Interactions(matrix.astype(float), users, [*CRAFTED, "ink", "oil", "salt"])


def attacked() -> AttackedNode:
    stages = (
        Stage("before", [(1, "own"), (2, "own")], np.array([0.9, 0.1], np.float32)),
        Stage("attacked", [(20, "added"), (1, "own")], np.array([0.2, 0.8], np.float32)),
        Stage("with copied neighbours", [(4, "copied")], np.array([0.7, 0.3], np.float32)),
    )
    codes = np.repeat([0, 1], N_NODES // 2)
    classes = np.array([CRAFTED[1], "b"])
    evidence = weighed_evidence(classes.tolist()) if find_spec("torch") else None
    return AttackedNode(0, 2, 3, classes, codes, np.array([4, 3]), stages, evidence)


def weighed_evidence(classes: list[str]) -> Any:
    from nodecopy.defend import EdgeReport, NodeReport

    edges = (("node 20", -2.0, 0.1), (CRAFTED[1], 1.5, 0.8))
    features, edge_evidence, both = (0.8, 0.2), (0.0, -0.5), (0.9, 0.1)
    a, b, c = (dict(zip(classes, part, strict=True)) for part in (both, features, edge_evidence))
    reports = tuple(EdgeReport(other, "b", odds, credibility) for other, odds, credibility in edges)
    return NodeReport(CRAFTED[0], "b", CRAFTED[1], a, 0.9, b, c, reports)


def write_results(folder: Path) -> Path:
    """A table as ``nodecopy reproduce`` writes it: one method of ours, one that only the paper has."""
    rows = [
        ["table9", "cora", 5, "", "accuracy", "gcn", 50, 69.2, 4.2, 70.0, 3.7, -0.8, "level", True],
        ["table9", "cora", 10, "", "accuracy", "gcn", 50, 74.9, 2.9, 76.0, 2.2, -1.1, "behind", True],
        ["table9", "cora", 5, "", "accuracy", CRAFTED[0], 0, "", "", 74.6, 2.8, "", "", False],
    ]
    folder.mkdir(exist_ok=True)
    with (folder / "table9.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        commits = ("abc", "abc; def", "")
        lines = zip(rows, commits, strict=True)
        writer.writerows([COLUMNS, *([*row, commit, "a machine", "2026-01-01"] for row, commit in lines)])
    return folder


def every_section(folder: Path) -> list[Section]:
    observed, prediction, uncertainty = graph(), predicted(), predicted().uncertainty()
    interactions = log()
    model = NodeCopying(SameLabel()).fit(observed)
    truth = np.repeat([0, 1], N_NODES // 2)
    evaluations = {CRAFTED[1]: HeldOutPredictions(prediction.probabilities, truth, uncertainty.total)}
    return [
        page_sections.graphs_section(
            "The graph",
            observed,
            samples(observed),
            predicted=np.array(["a", "b"])[prediction.probabilities.argmax(axis=1)],
            uncertainty=uncertainty.total,
            text=CRAFTED[0],
        ),
        page_sections.statistics_section(
            {"samples": compare(observed, model.sample_many(4, rng=0))}, text=CRAFTED[1]
        ),
        links_section(LinkPredictor().fit(observed, rng=0), graph="The graph"),
        classification_section(
            observed.node_ids,
            [CRAFTED[0], "b"],
            prediction,
            np.arange(N_NODES),
            truth=truth,
            evaluations=evaluations,
            graph="The graph",
        ),
        attack_section(
            attacked(), observed.node_ids, images=np.random.default_rng(0).random((N_NODES, 4, 4))
        ),
        recommendations_section(
            interactions,
            CopyEASE().fit(interactions),
            donor_matrix(default_donors(), interactions),
            np.arange(interactions.n_users),
            k=3,
        ),
        result_tables_section(write_results(folder / "results")),
    ]
