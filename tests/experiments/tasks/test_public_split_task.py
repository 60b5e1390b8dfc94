"""Recommenders on a fixed split of the embedded library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nodecopy import datasets
from nodecopy.datasets import Split
from nodecopy.errors import InputError
from nodecopy.experiments import config as toml
from nodecopy.experiments import rendering
from nodecopy.experiments.runner import FIT_CACHE, run
from nodecopy.experiments.spec import Column, Published
from nodecopy.experiments.store import Store
from nodecopy.experiments.summary import summarise
from nodecopy.interactions import Interactions
from nodecopy.io import write_interactions
from nodecopy.recommend import EASE, Popularity

RECALL = Column("recall@20")
TOML = """
title = "Books"
task = "public-split"
[protocol]
datasets = ["gowalla"]
trials = 1
verdict_of = "ease"
[methods.popularity]
title = "popularity"
class = "nodecopy.recommend.Popularity"
[methods.ease]
title = "EASE"
class = "nodecopy.recommend.EASE"
search = [{ regularisation = 100.0 }, { regularisation = 0.01 }]
gain_over = ["popularity"]
[methods.other]
title = "Other"
[published.gowalla]
popularity = ["99.9", "-"]
other = ["0.1", "99.99"]
"""


@pytest.fixture
def split(monkeypatch: pytest.MonkeyPatch) -> Split[Interactions]:
    """Return the library in the place of Gowalla, whose files may not be there."""
    library = datasets.load("library")
    train, _, test = datasets.interaction_split(library, (0.8, 0.0, 0.2), rng=0)
    parts = datasets.fixed_split(train, test)
    monkeypatch.setattr(datasets, "load_split", lambda name: parts)
    return parts


def test_settings_are_chosen_on_validation_and_fitted_to_all_of_train(
    split: Split[Interactions], tmp_path: Path
) -> None:
    table, store = toml.parse(TOML, "books"), Store(tmp_path)
    run(table, store)
    records = {cell.method: store.read_finished(cell, [0])[0] for cell in table.cells(0)}
    rest = split.train.difference(split.validation)
    recalls = [
        EASE(value).fit(rest).evaluate(split.validation, metrics=["recall@20"])["recall@20"]
        for value in (100.0, 0.01)
    ]
    details = records["ease"].details
    assert [entry["recall@20"] for entry in details["search"]] == recalls
    assert details["chosen"] == {"regularisation": 100.0}
    assert records["ease"].scores == EASE(100.0).fit(split.train).evaluate(split.test)
    assert "search" not in records["popularity"].details
    assert len(FIT_CACHE) == 0


def test_one_trial_has_a_verdict_also_in_rows_that_are_not_run(
    split: Split[Interactions], tmp_path: Path
) -> None:
    table, store = toml.parse(TOML, "books"), Store(tmp_path)
    run(table, store)
    results = summarise(table, store)
    recall, ndcg = table.task.columns
    ease = results.cells["gowalla", recall, "ease"].mean or 0.0
    assert results.cells["gowalla", recall, "popularity"].verdict == "behind"
    other = results.cells["gowalla", recall, "other"]
    assert (other.n, other.verdict) == (0, "ahead")
    assert other.difference == pytest.approx(ease - 0.1)
    assert results.cells["gowalla", ndcg, "other"].verdict == "behind"
    text = rendering.render_markdown(results)
    assert "| method | Recall@20 | published | verdict |" in text
    assert "Rows that are not run have the verdict of EASE." in text
    assert f"| Other | - | 0.10 | ahead +{ease - 0.1:.2f} |" in text


def test_a_published_number_is_level_within_its_rounding() -> None:
    table = toml.parse(TOML, "books")
    numbers = {method: number for (_, column, method), number in table.published.items() if column == RECALL}
    assert numbers == {"popularity": Published(99.9, None, 0.05), "other": Published(0.1, None, 0.05)}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            '"gowalla"]',
            '"library"]',
            "must have a published split; library has none",
        ),
        ('verdict_of = "ease"', 'verdict_of = "other"', r"verdict_of of \[protocol\] must be one of ease"),
        ('"99.9", "-"', '"99.9±1.0", "-"', "must hold entries such as '17.65' or '-'"),
        ("trials = 1", "trials = 1\nvalidation = 0.1", r"key of \[protocol\] must be one of"),
    ],
)
def test_files_with_mistakes(old: str, new: str, message: str) -> None:
    text: Any = TOML.replace(old, new)
    with pytest.raises(InputError, match=message):
        toml.parse(text, "books")


def test_a_split_in_files_of_the_user(split: Split[Interactions], tmp_path: Path) -> None:
    for name, part in (("train", split.train), ("test", split.test), ("validation", split.validation)):
        write_interactions(part, tmp_path / f"{name}.csv")
    entry = '{ name = "mine", train = "train.csv", test = "test.csv", validation = "validation.csv" }'
    text = TOML.replace('"gowalla"', entry).replace("gowalla", "mine")
    table, store = toml.parse(text, "books", tmp_path), Store(tmp_path / "store")
    run(table, store)
    (cell,) = (cell for cell in table.cells(0) if cell.method == "popularity")
    assert store.read_finished(cell, [0])[0].scores == Popularity().fit(split.train).evaluate(split.test)
    assert cell.fingerprint != next(iter(toml.parse(TOML, "books").cells(0))).fingerprint
    for wrong, message in (
        (entry.replace('test = "test.csv", ', ""), "must have test; it has name, train, validation"),
        (
            '{ name = "mine", interactions = "train.csv" }',
            "mine .* must have train and test; it has",
        ),
    ):
        with pytest.raises(InputError, match=message):
            toml.parse(text.replace(entry, wrong), "books", tmp_path)
