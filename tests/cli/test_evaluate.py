from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodecopy import Interactions, datasets
from nodecopy._core.random import child
from nodecopy.experiments.spec import TrialSeeds
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


def evaluate_json(run: Run, *options: str | Path) -> dict[str, Any]:
    ran = run("evaluate", *options, "--json")
    assert ran.code == 0, ran.err
    return dict(json.loads(ran.out))


def values(answer: dict[str, Any], number: int = 0) -> dict[str, float]:
    return {name: value for name, value in answer["results"][number].items() if "@" in name}


def test_json_is_what_the_library_says(run: Run) -> None:
    answer = evaluate_json(
        run, "library", "--model", "ease", "--model", "popularity", "--metric", "recall@10"
    )
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
    assert values(evaluate_json(run, *options, "--split", "time", "--test-share", "0.3")) == pytest.approx(
        expected
    )
    train, _, test = datasets.last_item_split(log, n_validation=0)
    expected = EASE().fit(train).evaluate(test, metrics=["ndcg@20"])
    answer = evaluate_json(run, *options, "--split", "last-item")
    assert values(answer) == pytest.approx(expected)
    assert answer["test"] == answer["test_users"] == 300
    answer = evaluate_json(run, *options, "--split", "user", "--test-share", "0.5")
    assert answer["test_users"] == 150
    assert values(answer)["ndcg@20"] > 0.2


def test_ratings_and_unknown_items(run: Run, log: Interactions) -> None:
    answer = evaluate_json(run, "log.csv", "--model", "popularity", "--min-rating", "4")
    positive = log.at_least(rating=4)
    assert answer["train"] + answer["test"] == positive.n_interactions
    Path("train.csv").write_text("user,item\nann,tea\nbob,jam\nbob,tea\n", encoding="utf-8")
    Path("test.csv").write_text("user,item\nann,jam\nann,new\ncleo,tea\n", encoding="utf-8")
    options = ("train.csv", "--test", "test.csv", "--model", "popularity", "--metric", "recall@1")
    assert values(evaluate_json(run, *options)) == {"recall@1": 0.75}  # the mean of 1/2 and 1
    answer = evaluate_json(run, *options, "--unknown", "ignore")
    assert (answer["test"], values(answer)) == (1, {"recall@1": 1.0})
    ran = run("evaluate", *options, "--unknown", "error")
    assert ran.code == 2
    assert "got 2 interactions of others. --unknown ignore leaves them out" in " ".join(ran.err.split())


def test_tuning_does_not_draw_as_the_test_split_does(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    keys: list[Any] = []

    def record_key(self: Any, *_: Any, rng: Any) -> Any:
        keys.append(rng.spawn_key)
        return self

    monkeypatch.setattr(EASE, "tune", record_key)
    options = ("library", "--model", "ease", "--tune")
    evaluate_json(run, *options)
    assert run("recommend", *options, "--user", "reader 007").code == 0
    seed = np.random.SeedSequence(0)
    assert keys == [child(seed, TrialSeeds.VALIDATION).spawn_key] * 2
    assert child(seed, TrialSeeds.SPLIT).spawn_key not in keys


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
    answer = evaluate_json(run, *files, "--model", "copy-ease")
    assert values(answer) == pytest.approx(
        CopyEASE().fit(train).evaluate(test, metrics=["recall@20"]), abs=1e-3
    )
    tuned = evaluate_json(run, *files, "--model", "ease", "--tune")
    assert any("EASE was tuned" in notice for notice in tuned["notices"])
    expected = EASE().tune(train, split.validation).fit(train).evaluate(test, metrics=["recall@20"])
    assert values(tuned) == pytest.approx(expected, abs=1e-3)


def test_metrics_of_users_in_a_table(run: Run) -> None:
    ran = run(
        "evaluate", "library", "--metric", "recall@5", "--metric", "coverage@5", "--per-user", "users.csv"
    )
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    assert lines[0].split() == ["model", "recall@5", "coverage@5"]
    assert [line.split()[0] for line in lines[1:]] == ["popularity", "copy-ease"]
    with Path("users.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["model", "user", "recall@5"]
    own = [float(row["recall@5"]) for row in rows if row["model"] == "copy-ease"]
    assert float(lines[2].split()[1]) == pytest.approx(np.mean(own), abs=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["karate"], "the source must hold interactions for this command; karate is a graph"),
        (["library", "--split", "published"], "--split published needs one of the datasets gowalla"),
        (["t.csv", "--split", "published"], "--split published needs one of the datasets gowalla"),
        (["gowalla", "--rating", "stars"], "--rating applies to files only; got the dataset 'gowalla'"),
        (["library", "--split", "time"], "--split time needs the time of each interaction; library has none"),
        (["library", "--test-share", "1"], "--test-share must be above 0 and below 1; got 1"),
        (["library", "--test-share", "1.5"], "--test-share must be"),
        (
            ["library", "--split", "last-item", "--test-share", "0.5"],
            "--test-share applies to --split",
        ),
        (["library", "--metric", "recal@5"], "--metric must be of the form 'recall@k'"),
        (["library", "--metric", "recall@500"], "k of the metric 'recall@500' must be"),
        (["library", "--validation", "v.csv"], "--validation applies to --test FILE only"),
        (["library", "--test", "t.csv"], "--test takes a file as the source"),
        (
            ["library", "--model", "popularity", "--tune"],
            "--tune needs --model ease or copy-ease",
        ),
        (["library", "--metric", "novelty@5", "--per-user", "u.csv"], "--per-user needs a metric of users"),
        (["t.csv", "--test", "t.csv"], "test must have no pair of user and item in common with train"),
        (["t.csv", "--test", "v.csv", "--validation", "v.csv"], "--validation must have no pair"),
        (
            ["library", "--model", "lightgcn", "--split", "user"],
            "--split user needs models that score users outside training; lightgcn",
        ),
        (["v.csv"], "the training part must hold at least one interaction; got none"),
        (["library", "--model", "eas"], "--model must be one of"),
        (["library", "--test-share", "0"], "--test-share must be above 0 and below 1; got 0"),
    ],
)
def test_a_mistake_is_an_error_of_one_line(run: Run, options: list[str], message: str) -> None:
    Path("t.csv").write_text("user,item\nann,tea\nbob,jam\n", encoding="utf-8")
    Path("v.csv").write_text("user,item\nann,jam\n", encoding="utf-8")
    ran = run("evaluate", *options)
    assert ran.code == 2
    assert message in ran.err
    assert "Traceback" not in ran.err
    assert ran.out == ""


def test_ratings_without_a_minimum_are_a_decision(run: Run) -> None:
    rows = "".join(
        f"u{user},i{item},{1 + (user + item) % 5}\n" for user in range(6) for item in range(user, 8)
    )
    Path("log.csv").write_text("user,item,rating\n" + rows, encoding="utf-8")
    options = ("evaluate", "log.csv", "--model", "popularity", "--metric", "recall@3")
    notice = "all ratings, 1 to 5, count as positive interactions. --min-rating NUMBER leaves lower ones out."
    assert notice in run(*options).err
    assert "count as positive" not in run(*options, "--min-rating", "2").err
    assert notice in run("recommend", "log.csv", "--user", "u1", "--k", "1").err
    ran = run("recommend", "log.csv", "--user", "nobody")
    assert "got 'nobody', which is none. An id is, for example, u0." in ran.err


def test_lists_that_hold_most_items(run: Run) -> None:
    """Of nine items, lists of two by default; a warning if a random order has a recall of half or more."""
    draws = np.random.default_rng(0)
    items = np.concatenate([draws.permutation(9)[:4] for _ in range(12)])
    write_interactions(Interactions.from_table(np.repeat(np.arange(12), 4), items), "few.csv")
    ran = run("evaluate", "few.csv", "--model", "popularity")
    assert ran.out.split()[1] == "recall@2"
    assert "metrics: at 2, a quarter of the 9 items" in ran.err
    assert "warning" not in ran.err
    ran = run("evaluate", "few.csv", "--model", "popularity", "--metric", "recall@9")
    assert float(ran.out.split()[-1]) == 1
    assert "items in a random order have a recall@9 of 1.00" in ran.err
    ran = run("evaluate", "few.csv", "--metric", "recall@10")
    assert (ran.code, "between 1 and the number of items = 9; got 10" in ran.err) == (2, True)
    assert "random order" not in run("evaluate", "library", "--metric", "recall@20").err
