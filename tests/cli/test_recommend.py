from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nodecopy
from nodecopy import datasets
from nodecopy.cli import recommend as command
from nodecopy.errors import MissingExtraError
from nodecopy.recommend import EASE, CopyEASE
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


def recommend_json(run: Run, *options: str | Path) -> dict[str, Any]:
    ran = run("recommend", *options, "--json")
    assert ran.code == 0, ran.err
    return dict(json.loads(ran.out))


def test_json_is_what_the_library_says(run: Run) -> None:
    names = ["reader 007", "reader 123"]
    answer = recommend_json(run, "library", "--user", names[0], "--user", names[1], "--k", "4")
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


def test_all_users_in_a_table(run: Run) -> None:
    ran = run("recommend", "library", "--all-users", "--k", "2", "--model", "ease", "--out", "all.csv")
    assert ran.code == 0
    assert "and 297 more users" in ran.err
    with Path("all.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    items, _ = EASE().fit(datasets.load("library")).recommend(k=2)
    assert [row["item"] for row in rows] == items.ravel().tolist()
    assert [row["rank"] for row in rows] == ["1", "2"] * 300
    assert [row["user"] for row in rows[::2]] == datasets.load("library").user_ids.tolist()


def test_parquet_keeps_ids_as_they_are(run: Run) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    Path("log.csv").write_text("user,item\n1,10\n1,11\n2,10\n3,11\n3,12\n", encoding="utf-8")
    assert run("recommend", "log.csv", "--all-users", "--k", "3", "--out", "all.parquet").code == 0
    table = parquet.read_table("all.parquet").to_pydict()
    assert list(table) == ["user", "rank", "item", "score"]
    assert table["user"] == [1, 2, 2, 3]  # who has two of three items gets one
    assert set(table["item"]) <= {10, 11, 12}
    assert table["item"][0] == 12


def test_what_was_rated_low_is_not_learnt_from_but_met(run: Run, log: str) -> None:
    answer = recommend_json(
        run, log, "--user", "ben", "--user", "ann", "--min-rating", "3", "--model", "popularity"
    )
    assert answer["interactions"] == 8  # of Ann's rows about ham the latest counts
    ben, ann = answer["recommendations"]
    assert (ben["history"], [row["item"] for row in ben["items"]]) == (3, ["pie"])
    assert (ann["history"], ann["items"]) == (3, [])  # she has met everything, pie with one point


def test_who_has_no_history_gets_what_is_popular(run: Run, log: str) -> None:
    answer = recommend_json(run, log, "--user", "dora", "--user", "emil", "--min-rating", "3", "--k", "4")
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


def test_terminal(run: Run) -> None:
    ran = run("recommend", "library", "--user", "reader 007", "--user", "reader 007", "--k", "3")
    lines = ran.out.splitlines()
    assert lines[0].split() == ["rank", "item", "score"]
    assert len(lines) == 4
    assert "reader 007, 9 items in the history" in ran.err


def test_who_has_met_everything_is_told_so(run: Run) -> None:
    Path("log.csv").write_text("user,item\nann,tea\n", encoding="utf-8")
    ran = run("recommend", "log.csv", "--all-users")
    assert (ran.code, ran.out) == (0, "")
    assert "ann, 1 item in the history; no unseen item is left" in ran.err


def test_ids_may_be_of_any_script(run: Run) -> None:
    rows = 'user,item\n朝日,寿司\n朝日,ラーメン\nZoë,寿司\nZoë,crème brûlée\n"a,b",寿司\n'
    Path("log.csv").write_text(rows, encoding="utf-8")
    (zoe,) = recommend_json(run, "log.csv", "--user", "Zoë")["recommendations"]
    assert [row["item"] for row in zoe["items"]] == ["ラーメン"]
    assert run("recommend", "log.csv", "--all-users", "--out", "all.csv").code == 0
    with Path("all.csv").open(encoding="utf-8", newline="") as file:
        pairs = {(row["user"], row["item"]) for row in csv.DictReader(file)}
    assert pairs == {
        ("朝日", "crème brûlée"),
        ("Zoë", "ラーメン"),
        ("a,b", "crème brûlée"),
        ("a,b", "ラーメン"),
    }


@pytest.mark.parametrize("model", ["popularity", "item-knn", "ease", "copy-ease", "lightgcn", "mgccf"])
@pytest.mark.parametrize("rows", ["ann,tea\n", "ann,tea\nben,tea\n", "ann,tea\nann,jam\n"])
def test_one_user_or_one_item(run: Run, model: str, rows: str) -> None:
    if model in ("lightgcn", "mgccf"):
        pytest.importorskip("torch")
    Path("log.csv").write_text("user,item\n" + rows, encoding="utf-8")
    assert all(
        not entry["items"]
        for entry in recommend_json(run, "log.csv", "--all-users", "--model", model)["recommendations"]
    )


def test_a_kept_recommender_says_the_same_without_learning(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    first = recommend_json(run, "library", "--user", "reader 001", "--save", "model.npz")
    assert isinstance(nodecopy.load("model.npz"), CopyEASE)
    monkeypatch.setattr(CopyEASE, "fit", None)
    second = recommend_json(run, "--model-file", "model.npz", "--user", "reader 001")
    assert second.pop("source") == "model.npz"
    assert first.pop("source") == "library"
    assert first == second
    assert run("recommend", "library", "--save", "popular.npz", "--model", "popularity").code == 0


def test_a_kept_recommender_knows_what_was_rated_low(run: Run, log: str) -> None:
    first = recommend_json(run, log, "--all-users", "--min-rating", "3", "--save", "model.npz")
    second = recommend_json(run, "--model-file", "model.npz", "--all-users")
    assert first["recommendations"] == second["recommendations"]
    lists = {entry["user"]: [row["item"] for row in entry["items"]] for entry in second["recommendations"]}
    assert set(lists["dora"]) == {"ham", "jam"}  # she met tea and pie, and liked neither
    assert "pie" not in lists["cleo"]
    assert "pie" in lists["ben"]  # nobody likes it, yet it is an item
    assert nodecopy.load("model.npz").recommend(["dora"], 2)[0].tolist() == [lists["dora"]]


def test_files_that_cannot_be_written_are_told_before_anything_is_learnt(
    run: Run, log: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CopyEASE, "fit", None)
    Path("folder.csv").mkdir()
    for option, path, message in (
        ("--out", "folder.csv", "folder.csv must be a file; there is a folder"),
        ("--out", "log.csv/all.csv", "log.csv/all.csv must lie in a folder; "),
        ("--save", "log.csv/new/model.npz", "log.csv/new/model.npz must lie in a folder; "),
        ("--out", "log.csv", "--out must be a file that is neither an input nor another output; got log.csv"),
    ):
        ran = run("recommend", log, "--all-users", option, path)
        assert (ran.code, ran.out) == (2, "")
        assert message in ran.err
    monkeypatch.setattr("os.access", lambda folder, mode: False)
    ran = run("recommend", log, "--all-users", "--out", "all.csv")
    assert (ran.code, "all.csv must lie in a folder that may be written to" in ran.err) == (2, True)
    assert Path("log.csv").read_text(encoding="utf-8") == LOG


def test_who_is_not_there_is_told_before_anything_is_learnt(
    run: Run, log: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CopyEASE, "fit", None)
    ran = run("recommend", log, "--user", "ben", "--user", "bea")
    assert (ran.code, "Did you mean ben" in ran.err) == (2, True)


def test_ids_keep_leading_zeros_quotes_and_line_ends(run: Run) -> None:
    rows = 'user,item\n007,01\n007,1\n7,01\n"a ""b"", c","x\ny"\n"a ""b"", c",1\n'
    Path("log.csv").write_text(rows, encoding="utf-8")
    assert run("recommend", "log.csv", "--all-users", "--k", "99", "--out", "new/all.csv").code == 0
    with Path("new/all.csv").open(encoding="utf-8", newline="") as file:
        pairs = {(row["user"], row["item"]) for row in csv.DictReader(file)}
    assert pairs == {("007", "x\ny"), ("7", "1"), ("7", "x\ny"), ('a "b", c', "01")}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["library"], "the users must be given; got none. Give --user ID, --users FILE or --all-users."),
        (["library", "--user", "raeder 007"], "Did you mean reader 007"),
        (["library", "--user", "reader 001", "--all-users"], "--user applies to some users only"),
        (["library", "--all-users", "--k", "0"], "--k must be an integer of at least 1; got 0"),
        (["library", "--all-users", "--min-rating", "3"], "--min-rating needs ratings"),
        (
            ["log.csv", "--all-users", "--min-rating", "6"],
            "--min-rating must be at most 5, the highest rating",
        ),
        (
            ["library", "--all-users", "--device", "cuda", "--model", "item-knn"],
            "--device applies to models that use torch only; got --model item-knn",
        ),
        (["library", "--all-users", "--out", "all.xlsx"], "must end in one of"),
        (["library", "--all-users", "--save", "model.pkl"], "must end in one of .npz"),
        (["librari", "--all-users"], "Did you mean library"),
        (["karate", "--all-users"], "the source must hold interactions for this command; karate is a graph"),
        (["none.csv", "--all-users"], "none.csv does not exist"),
        (["words.csv", "--all-users"], "words.csv: line 3 has rating 'good', which is not a number"),
        (
            ["empty.csv", "--all-users"],
            "empty.csv must hold at least one interaction; it holds none (a rating of",
        ),
        (["heads.csv", "--all-users"], "heads.csv must hold at least one interaction"),
        (["nothing.csv", "--all-users"], "nothing.csv: the file is empty"),
        (["nan.csv", "--all-users"], "nan.csv: line 2 has rating nan; it must be finite"),
        (["log.csv", "--all-users", "--min-rating", "nan"], "--min-rating must be a finite number; got nan"),
        (["log.csv", "--user", ""], "--user must hold ids of users; got ''"),
        (["broken.parquet", "--all-users"], "broken.parquet: cannot be read"),
        (["nameless.csv", "--all-users"], "nameless.csv: line 3 has no user"),
        (["--all-users"], "the source must be a file of interactions or a dataset; got none."),
        (
            ["library", "--model-file", "model.npz", "--all-users"],
            "place of a source; got library too.",
        ),
        (["--model-file", "words.npz", "--all-users"], "words.npz: "),
    ],
)
def test_a_mistake_is_told_in_one_line(run: Run, log: str, options: list[str], message: str) -> None:
    Path("words.csv").write_text("user,item,rating\nann,tea,4\nann,jam,good\n", encoding="utf-8")
    Path("words.npz").write_text("no archive", encoding="utf-8")
    Path("empty.csv").write_text("user,item,rating\nann,tea,0\n", encoding="utf-8")
    Path("heads.csv").write_text("user,item,rating\n", encoding="utf-8")
    Path("nothing.csv").write_text("", encoding="utf-8")
    Path("nan.csv").write_text("user,item,rating\nann,tea,nan\n", encoding="utf-8")
    Path("nameless.csv").write_text("user,item\nann,tea\n,jam\n", encoding="utf-8")
    Path("broken.parquet").write_bytes(b"PAR1 and no more")
    ran = run("recommend", *options)
    assert ran.code == 2
    assert message in ran.err
    assert "Traceback" not in ran.err
    assert ran.out == ""


def test_a_missing_package_is_named_before_anything_is_learnt(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(module: str, purpose: str) -> Any:
        raise MissingExtraError(f"{purpose} needs {module}")

    monkeypatch.setattr("nodecopy.cli.recommend.import_optional", missing)
    monkeypatch.setattr("nodecopy.cli.options.import_optional", missing)
    ran = run("recommend", "library", "--all-users", "--out", "all.parquet")
    assert (ran.code, "writing Parquet needs pyarrow" in ran.err) == (2, True)
    ran = run("recommend", "library", "--all-users", "--model", "mgccf")
    assert (ran.code, "the model mgccf needs torch" in ran.err) == (2, True)


def test_blocks_of_users_give_the_same_table(run: Run, log: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The progress bar advances after each block of users."""
    whole = run("recommend", log, "--all-users", "--json")
    steps: list[int] = []

    def record(blocks: Any, total: int, what: str) -> Any:
        steps.append(total)
        return iter(blocks)

    monkeypatch.setattr(command, "USERS_PER_BLOCK", 2)
    monkeypatch.setattr(command, "show_progress", record)
    assert run("recommend", log, "--all-users", "--json").out == whole.out
    assert steps == [3]


def test_users_and_items_are_filtered(run: Run, log: str) -> None:
    """Lists of ids are given by commas or in a file; the candidates are those in stock."""
    Path("users.txt").write_text("ben\ncleo\n\n", encoding="utf-8")
    answer = recommend_json(
        run, log, "--users", "users.txt", "--user", "cleo", "--items", "tea,pie", "--k", "9"
    )
    lists = {row["user"]: [item["item"] for item in row["items"]] for row in answer["recommendations"]}
    assert lists == {"cleo": ["tea"], "ben": ["pie"]}
    answer = recommend_json(run, log, "--users", "ben,cleo", "--exclude", "pie", "--include-seen", "--k", "2")
    for row in answer["recommendations"]:
        assert len(row["items"]) == 2
        assert "pie" not in [item["item"] for item in row["items"]]


def test_unknown_ids_are_refused_or_ignored(run: Run, log: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("stock.txt").write_text("tea\nnew\n", encoding="utf-8")
    options = (log, "--users", "cleo,nobody", "--items", "stock.txt", "--k", "1")
    answer = recommend_json(run, *options, "--unknown", "ignore")
    assert [row["user"] for row in answer["recommendations"]] == ["cleo"]
    assert answer["notices"][-2:] == [
        "--users: 1 of 2 ids are not in the source.",
        "--items: 1 of 2 ids are not in the source.",
    ]
    monkeypatch.setattr(CopyEASE, "fit", None)  # errors come before the fit
    for changes, message in (
        ((), "--users must hold ids of users; got 'nobody'"),
        (("--users", "cleo"), "--items must hold ids of items; got 'new'"),
        (
            ("--unknown", "ignore", "--exclude", "tea"),
            "--items must hold a candidate that is not in --exclude",
        ),
        (("--users", " , "), "--users must name at least one user"),
    ):
        ran = run("recommend", *options, *changes)
        assert (ran.code, message in ran.err) == (2, True), ran.err


def test_lists_of_items_with_text_ids_need_an_option(run: Run) -> None:
    Path("lists.txt").write_text("ann tea jam\nben tea\ncleo jam ham\n", encoding="utf-8")
    answer = recommend_json(run, "lists.txt", "--lists", "--user", "ben", "--model", "popularity", "--k", "1")
    assert (answer["users"], answer["items"], answer["interactions"]) == (3, 3, 5)
    Path("lists.txt").write_text("1 10 11\n2 10\n3 11 12\n", encoding="utf-8")
    answer = recommend_json(run, "lists.txt", "--user", "2", "--model", "popularity")
    assert answer["notices"] == [
        "lists.txt: each line holds a user and that user's items. --no-lists reads a table."
    ]
    assert run("recommend", "lists.txt", "--no-lists", "--all-users").code == 2


def test_the_id_of_a_user_stays_on_one_line(run: Run) -> None:
    Path("log.csv").write_text('user,item\n"a\nerror: b",x\nc,x\nc,y\n')
    ran = run("recommend", "log.csv", "--user", "a\nerror: b")
    assert "a\\nerror: b, 1 item in the history" in ran.err.splitlines()


def test_recommendations_are_explained(run: Run) -> None:
    answer = recommend_json(run, "library", "--user", "reader 007", "--k", "2", "--explain", "3")
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


def test_a_user_without_history_has_no_explanation(run: Run, log: str) -> None:
    options = (log, "--user", "emil", "--user", "ben", "--min-rating", "3", "--explain", "2", "--k", "1")
    emil, ben = recommend_json(run, *options)["recommendations"]
    assert "because_of" not in emil["items"][0]
    assert "because_of" in ben["items"][0]
    assert run("recommend", *options).code == 0


def test_tuning(run: Run) -> None:
    ran = run("recommend", "library", "--model", "ease", "--tune", "--save", "tuned.npz")
    assert ran.code == 0, ran.err
    assert "EASE was tuned with" in ran.err
    model = nodecopy.load("tuned.npz")
    best = max(model.tuning_, key=lambda trial: trial["recall@20"] + trial["ndcg@20"])
    assert model.regularisation == best["settings"]["regularisation"]
    assert len(model.tuning_) > 2
    ran = run("recommend", "library", "--model", "item-knn", "--tune", "--save", "tuned.npz")
    assert "--tune applies to --model ease or copy-ease only; got --model item-knn" in ran.err
