from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nodecopy
from nodecopy import Interactions, datasets
from nodecopy._core.random import child
from nodecopy.io import write_interactions
from nodecopy.recommend import EASE, CopyEASE, Popularity
from tests.cli.conftest import Run

# Dora rates all she meets low; Emil's only rating is zero.
LOG = """user,item,rating,time
ann,tea,5,1
ann,jam,5,2
ben,tea,4,1
ben,jam,5,1
ben,ham,4,2
cleo,jam,4,1
cleo,ham,5,1
cleo,pie,2,1
dora,tea,1,1
dora,pie,2,1
emil,tea,0,1
ann,ham,1,1
ann,ham,4,9
ann,pie,1,3
"""


@pytest.fixture
def log(run: Run) -> str:
    """A log of ours in the empty folder that commands run in."""
    Path("log.csv").write_text(LOG, encoding="utf-8")
    return "log.csv"


def test_json_is_what_the_library_says(run: Run) -> None:
    names = ["reader 007", "reader 123"]
    answer = run("recommend", "library", "--user", names[0], "--user", names[1], "--k", "4", "--json").json()
    assert (answer["source"], answer["model"]) == ("library", "CopyEASE")
    assert (answer["users"], answer["items"], answer["interactions"]) == (300, 72, 3369)
    model = CopyEASE().fit(datasets.load("library"))
    items, scores = model.recommend(names, 4)
    lists = answer["recommendations"]
    assert [entry["user"] for entry in lists] == names
    assert [[row["item"] for row in entry["items"]] for entry in lists] == items.tolist()
    ours = [[row["score"] for row in entry["items"]] for entry in lists]
    assert np.allclose(ours, scores, atol=1e-6)
    assert [entry["history"] for entry in lists] == [9, int(model.interactions_.rows.degrees[122])]


def test_who_has_no_history_gets_what_is_popular(run: Run, log: str) -> None:
    users = ("--user", "dora", "--user", "emil")
    answer = run("recommend", log, *users, "--min-rating", "3", "--k", "4", "--json").json()
    dora, emil = answer["recommendations"]
    assert [dora["by"], emil["by"], dora["history"], emil["history"]] == ["Popularity", "Popularity", 0, 0]
    assert [(row["item"], row["score"]) for row in emil["items"]] == [
        ("ham", 3.0),
        ("jam", 3.0),
        ("tea", 2.0),
        ("pie", 0.0),
    ]
    assert [row["item"] for row in dora["items"]] == ["ham", "jam"]
    assert "no history: the most popular items" in run("recommend", log, "--user", "emil").err


def test_a_kept_recommender_says_the_same_without_learning(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run("recommend", "library", "--user", "reader 001", "--save", "model.npz", "--json").json()
    assert isinstance(nodecopy.load("model.npz"), CopyEASE)
    monkeypatch.setattr(CopyEASE, "fit", None)
    second = run("recommend", "--model-file", "model.npz", "--user", "reader 001", "--json").json()
    assert second.pop("source") == "model.npz"
    assert first.pop("source") == "library"
    assert first == second
    assert run("recommend", "library", "--save", "popular.npz", "--model", "popularity").code == 0


def test_outputs_are_checked_before_learning(run: Run, log: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CopyEASE, "fit", None)
    Path("folder.csv").mkdir()
    for option, path, message in (
        ("--out", "folder.csv", "folder.csv must be a file; there is a folder"),
        ("--out", "log.csv/all.csv", "log.csv/all.csv must lie in a folder; "),
        ("--save", "log.csv/new/model.npz", "log.csv/new/model.npz must lie in a folder; "),
    ):
        ran = run("recommend", log, "--all-users", option, path)
        assert (ran.code, ran.out) == (2, "")
        assert message in ran.err
    monkeypatch.setattr("os.access", lambda folder, mode: False)
    ran = run("recommend", log, "--all-users", "--out", "all.csv")
    assert (ran.code, "all.csv must lie in a folder that may be written to" in ran.err) == (2, True)
    assert Path("log.csv").read_text(encoding="utf-8") == LOG


def test_users_and_items_are_filtered(run: Run, log: str) -> None:
    """Lists of ids are given by commas or in a file; the candidates are those in stock."""
    Path("users.txt").write_text("ben\ncleo\n\n", encoding="utf-8")
    users = ("--users", "users.txt", "--user", "cleo")
    answer = run("recommend", log, *users, "--items", "tea,pie", "--k", "9", "--json").json()
    lists = {row["user"]: [item["item"] for item in row["items"]] for row in answer["recommendations"]}
    assert lists == {"cleo": ["tea"], "ben": ["pie"]}
    answer = run("recommend", log, "--users", "ben,cleo", "--exclude", "pie", "--json").json()
    assert [[item["item"] for item in row["items"]] for row in answer["recommendations"]] == [[], ["tea"]]


def test_recommendations_are_explained(run: Run) -> None:
    reader = ("library", "--user", "reader 007")
    answer = run("recommend", *reader, "--k", "2", "--explain", "3", "--json").json()
    model = CopyEASE().fit(datasets.load("library"))
    for entry in answer["recommendations"][0]["items"]:
        explanation = model.explain("reader 007", entry["item"], 3).to_dict()
        assert explanation.pop("score") == pytest.approx(entry["score"], abs=1e-6)
        names = ("because_of", "donors", "donor_items", "remainder")
        assert [entry[name] for name in names] == list(explanation.values())
        assert len(entry["donors"]) == 3
    lines = run("recommend", "library", "--user", "reader 007", "--k", "2", "--explain", "1").out.splitlines()
    assert lines[0].split() == ["rank", "item", "score", "because", "of", "donors"]
    first = answer["recommendations"][0]["items"][0]
    assert lines[1].endswith(f"{first['because_of'][0]['item']}  {first['donors'][0]['user']}")
    ran = run("recommend", "library", "--user", "reader 007", "--k", "1", "--explain", str(2**70))
    assert (ran.code, ran.out.splitlines()[1].split()[0]) == (0, "1")
    ran = run("recommend", "library", "--user", "reader 007", "--explain", "1", "--out", "best.csv")
    assert "the table of --out has no explanations; --json prints those of all users" in ran.err
    ran = run("recommend", "library", "--user", "reader 007", "--explain", "1", "--model", "popularity")
    assert (ran.code, "--explain applies to --model ease, copy-ease or item-knn only" in ran.err) == (2, True)


@pytest.fixture
def ratings(run: Run) -> Interactions:
    """A log with ratings and times, written to the empty folder that commands run in."""
    library, draws = datasets.load("library"), np.random.default_rng(0)
    users, items, _ = library.table()
    ratings, times = draws.integers(1, 6, len(users)), draws.permutation(len(users))
    log = Interactions.from_table(users, items, ratings, times)
    write_interactions(log, "ratings.csv")
    return log


def values(answer: dict[str, Any], number: int = 0) -> dict[str, float]:
    return {name: value for name, value in answer["results"][number].items() if "@" in name}


def test_json_of_evaluate_is_what_the_library_says(run: Run) -> None:
    models = ("--model", "ease", "--model", "popularity")
    answer = run("evaluate", "library", *models, "--metric", "recall@10", "--json").json()
    seed = child(np.random.SeedSequence(0), 0)
    train, _, test = datasets.interaction_split(datasets.load("library"), (0.8, 0.0, 0.2), rng=seed)
    assert (answer["split"], answer["train"], answer["test"]) == ("random", 2695, 674)
    assert [row["model"] for row in answer["results"]] == ["ease", "popularity"]
    for number, model in enumerate((EASE(), Popularity())):
        expected = model.fit(train).evaluate(test, metrics=["recall@10"])
        assert values(answer, number) == pytest.approx(expected)


def test_splits_of_a_log_with_times(run: Run, ratings: Interactions) -> None:
    options = ("ratings.csv", "--model", "ease", "--metric", "ndcg@20")
    train, _, test = datasets.time_split(ratings, (0.7, 0.0, 0.3))
    expected = EASE().fit(train).evaluate(test, metrics=["ndcg@20"])
    answer = run("evaluate", *options, "--split", "time", "--test-share", "0.3", "--json").json()
    assert values(answer) == pytest.approx(expected)
    train, _, test = datasets.last_item_split(ratings, n_validation=0)
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
