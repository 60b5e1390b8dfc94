from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodecopy import Interactions, datasets
from nodecopy._core.random import child
from nodecopy.io import write_interactions
from nodecopy.recommend import EASE, CopyEASE, Popularity
from tests.cli.conftest import Run


@pytest.fixture
def log(run: Run) -> Interactions:
    """A log with ratings and times, written to the empty folder that commands run in."""
    library, draws = datasets.load("library"), np.random.default_rng(0)
    users, items, _ = library.table()
    ratings, times = draws.integers(1, 6, len(users)), draws.permutation(len(users))
    log = Interactions.from_table(users, items, ratings, times)
    write_interactions(log, "log.csv")
    return log


def values(answer: dict[str, Any], number: int = 0) -> dict[str, float]:
    return {name: value for name, value in answer["results"][number].items() if "@" in name}


def test_json_is_what_the_library_says(run: Run) -> None:
    models = ("--model", "ease", "--model", "popularity")
    answer = run("evaluate", "library", *models, "--metric", "recall@10", "--json").json()
    seed = child(np.random.SeedSequence(0), 0)
    train, _, test = datasets.interaction_split(datasets.load("library"), (0.8, 0.0, 0.2), rng=seed)
    assert (answer["split"], answer["train"], answer["test"]) == ("random", 2695, 674)
    assert [row["model"] for row in answer["results"]] == ["ease", "popularity"]
    for number, model in enumerate((EASE(), Popularity())):
        expected = model.fit(train).evaluate(test, metrics=["recall@10"])
        assert values(answer, number) == pytest.approx(expected)


def test_splits_of_a_log_with_times(run: Run, log: Interactions) -> None:
    options = ("log.csv", "--model", "ease", "--metric", "ndcg@20")
    train, _, test = datasets.time_split(log, (0.7, 0.0, 0.3))
    expected = EASE().fit(train).evaluate(test, metrics=["ndcg@20"])
    answer = run("evaluate", *options, "--split", "time", "--test-share", "0.3", "--json").json()
    assert values(answer) == pytest.approx(expected)
    train, _, test = datasets.last_item_split(log, n_validation=0)
    expected = EASE().fit(train).evaluate(test, metrics=["ndcg@20"])
    answer = run("evaluate", *options, "--split", "last-item", "--json").json()
    assert values(answer) == pytest.approx(expected)
    assert answer["test"] == answer["test_users"] == 300
    answer = run("evaluate", *options, "--split", "user", "--test-share", "0.5", "--json").json()
    assert answer["test_users"] == 150
    assert values(answer)["ndcg@20"] > 0.2


def test_files_of_a_split_and_tuning(run: Run) -> None:
    library = datasets.load("library")
    train, _, test = datasets.interaction_split(library, (0.8, 0.0, 0.2), rng=3)
    split = datasets.fixed_split(train, test)
    for name, part in zip(("train", "valid", "test"), split, strict=True):
        lines = (
            " ".join(["".join(filter(str.isdigit, user)), *map(str, part.matrix[[row]].indices.tolist())])
            for row, user in enumerate(part.user_ids.tolist())
        )
        Path(f"{name}.txt").write_text("\n".join(lines), encoding="utf-8")
    files = ("train.txt", "--test", "test.txt", "--validation", "valid.txt", "--metric", "recall@20")
    answer = run("evaluate", *files, "--model", "copy-ease", "--json").json()
    expected = CopyEASE().fit(train).evaluate(test, metrics=["recall@20"])
    assert values(answer) == pytest.approx(expected, abs=1e-3)
    tuned = run("evaluate", *files, "--model", "ease", "--tune", "--json").json()
    assert any("EASE was tuned" in notice for notice in tuned["notices"])
    expected = EASE().tune(train, split.validation).fit(train).evaluate(test, metrics=["recall@20"])
    assert values(tuned) == pytest.approx(expected, abs=1e-3)
