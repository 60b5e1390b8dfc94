from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import nodecopy
from nodecopy import datasets
from nodecopy.links import LinkPredictor
from tests.cli.conftest import Run


def test_json_is_what_the_library_says(run: Run) -> None:
    answer = run("links", "karate", "--missing", "4", "--doubtful", "3", "--explain", "2", "--json").json()
    model = LinkPredictor().fit(datasets.load("karate"), rng=0)
    for name, links in (("missing", model.missing(4)), ("doubtful", model.doubtful(3))):
        rows = answer[name]
        assert [(row["source"], row["target"]) for row in rows] == [link[:2] for link in links]
        assert np.allclose([row["probability"] for row in rows], links.probabilities)
        assert all(len(row["donors"]) <= 2 and row["reasons"] for row in rows)


def test_tables_and_files(run: Run) -> None:
    files = ("--out", "links.csv", "--denoised", "clean.csv", "--save", "model.npz")
    ran = run("links", "karate", "--missing", "2", "--doubtful", "3", "--explain", "1", *files).ok()
    assert "strongest signals" in ran.out
    with Path("links.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["kind"] for row in rows] == ["missing"] * 2 + ["doubtful"] * 3
    assert nodecopy.read_graph("clean.csv").n_edges == 77
    assert nodecopy.load("model.npz").missing(1).first[0] == int(rows[0]["source"])


def test_weights_as_confidence(run: Run) -> None:
    first, second, _ = datasets.load("karate").edges()
    weights = ["0.05"] + ["0.9"] * (len(first) - 1)
    lines = [f"{a},{b},{w}" for a, b, w in zip(first, second, weights, strict=True)]
    Path("edges.csv").write_text("source,target,weight\n" + "\n".join(lines))
    answer = run("links", "edges.csv", "--confidence", "--doubtful", "1", "--json").json()
    assert [answer["doubtful"][0][end] for end in ("source", "target")] == [first[0], second[0]]
    assert "need weights" in run("links", "karate", "--confidence").err
    Path("counts.csv").write_text(
        "source,target,weight\n" + "\n".join(f"{a},{b},2" for a, b in zip(first, second, strict=True))
    )
    assert "--confidence must lie between 0 and 1; got 2" in run("links", "counts.csv", "--confidence").err
    assert "--looks 2" in run("links", "counts.csv", "--confidence").err
    run("links", "counts.csv", "--looks", "3", "--missing", "1").ok()


def test_interactions(run: Run) -> None:
    answer = run("links", "library", "--missing", "2", "--doubtful", "0", "--json").json()
    assert answer["missing"][0]["source"].startswith("reader")
    assert "doubtful" not in answer


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (("--missing", "0", "--doubtful", "0"), "must be above 0"),
        (("--out", "links.npz"), ".csv"),
        (("--denoised", "links.png"), ".npz"),
    ],
)
def test_wrong_options(run: Run, arguments: tuple[str, ...], fragment: str) -> None:
    ran = run("links", "karate", *arguments)
    assert ran.code == 2
    assert fragment in ran.err
