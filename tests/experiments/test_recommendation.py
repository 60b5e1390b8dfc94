"""The tasks recommend and public-split."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nodecopy import datasets
from nodecopy._core.random import child
from nodecopy.copying import Jaccard
from nodecopy.datasets import Split
from nodecopy.errors import InputError, MissingExtraError
from nodecopy.experiments import config as toml
from nodecopy.experiments import rendering
from nodecopy.experiments.rendering import summarise
from nodecopy.experiments.runner import FIT_CACHE, JobResult, run
from nodecopy.experiments.spec import Experiment, instantiate, merge_settings
from nodecopy.experiments.store import Record, Store
from nodecopy.experiments.tasks.recommend import SCORES
from nodecopy.interactions import Interactions
from nodecopy.io import write_interactions
from nodecopy.recommend import EASE, CopyEASE, Popularity
from tests.experiments.fakes import load

TOML = """
title = "Books"
task = "recommend"
notes = ["Invented readers."]
[protocol]
datasets = ["library"]
trials = 3
validation = 0.1
test = 0.2
[methods.popularity]
title = "popularity"
class = "nodecopy.recommend.Popularity"
[methods.ease]
title = "EASE"
class = "nodecopy.recommend.EASE"
search = [
  { regularisation = 0.01 }, { regularisation = 100.0 },
  { regularisation = 100.0, precision = "double" },
]
gain_over = ["popularity"]
[methods.copy-ease]
title = "CopyEASE"
class = "nodecopy.recommend.CopyEASE"
settings.regularisation = 80.0
settings.user_donors = { class = "nodecopy.copying.Jaccard", include_self = false, max_donors = 9 }
search = [{ user_donors.exponent = 2.0 }, { user_donors.exponent = 4.0 }]
[published.library]
ease = ["-", "-", "-", "-", "44.10±0.20", "61.27±0.21", "-", "-"]
"""
NETWORKS = """
title = "Networks"
task = "recommend"
[protocol]
datasets = ["library"]
trials = 1
validation = 0.1
test = 0.2
scores = ["ndcg@20", "printed recall@10"]
[methods.bprmf]
title = "BPR-MF"
class = "nodecopy.recommend.BPRMF"
settings = { n_epochs = 2, evaluate_every = 1 }
search = [{ n_factors = 4 }, { n_factors = 8 }]
[methods.ebpr]
title = "EBPR"
class = "nodecopy.recommend.EnsembleBPR"
settings.n_graphs = 2
settings.base = { class = "nodecopy.recommend.BPRMF", use = "fitted", n_epochs = 2, evaluate_every = 1 }
search = [{ base.n_factors = 4 }, { base.n_factors = 8 }]
[methods.sgbpr]
title = "SGBPR"
class = "nodecopy.recommend.SampledGraphBPR"
settings = { threshold = 0.5, base = { class = "nodecopy.recommend.LightGCN", n_epochs = 2, n_factors = 4 } }
[methods.sgbpr-observed]
title = "SGBPR, observed"
class = "nodecopy.recommend.SampledGraphBPR"
settings.base = { class = "nodecopy.recommend.LightGCN", n_epochs = 2, n_factors = 4 }
settings.threshold = 0.5
settings.test_graph = "observed"
"""


def make_experiment(text: str = TOML) -> Any:
    return toml.parse(text, "books")


def find_cell(method: str, text: str = TOML) -> Any:
    return next(cell for cell in make_experiment(text).cells(0) if cell.method == method)


def solve(cell: Any, store: Store) -> Any:
    return next(iter(make_experiment().task.solve(cell, [0], store, "cpu")))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    yield Store(tmp_path / "store")
    FIT_CACHE.entries.clear()


def read_records(table: Experiment, store: Store) -> dict[str, list[Record]]:
    return {cell.method: store.read_finished(cell, range(table.task.trials)) for cell in table.cells(0)}


def test_scores_are_those_of_a_recommender_fitted_by_hand(store: Store) -> None:
    table = make_experiment()
    reports: list[JobResult] = []
    run(table, store, on_batch=reports.append)
    assert [(str(one.job.cell), one.n_computed) for one in reports] == 3 * [
        ("library, popularity", 1),
        ("library, ease", 1),
        ("library, copy-ease", 1),
    ]
    assert [one.job.trials for one in reports[::3]] == [(0,), (1,), (2,)]
    for trial in range(3):
        cell = find_cell("ease")
        split = datasets.interaction_split(
            datasets.load("library"), (0.7, 0.1, 0.2), rng=child(cell.trial_seed(trial), 0)
        )
        model = EASE(regularisation=100.0).fit(split.train)
        formula = model.evaluate(split.test, validation=split.validation)
        printed = model.evaluate(split.test, validation=split.validation, convention="printed")
        record = read_records(table, store)["ease"][trial]
        assert record.scores == formula | {f"printed {name}": value for name, value in printed.items()}
        assert formula["recall@10"] != printed["recall@10"]
        rule = Jaccard(include_self=False, exponent=2.0, max_donors=9)
        copied = CopyEASE(regularisation=80.0, user_donors=rule).fit(split.train)
        tried = read_records(table, store)["copy-ease"][trial].details["search"]
        assert tried[0]["recall@20"] == copied.evaluate(split.validation, metrics=["recall@20"])["recall@20"]


def test_the_best_on_validation_is_chosen_and_the_search_kept(store: Store) -> None:
    table = make_experiment()
    run(table, store)
    for record in read_records(table, store)["ease"]:
        recalls = [one["recall@20"] for one in record.details["search"]]
        assert len(recalls) == 3
        assert record.details["chosen"] == {"regularisation": 100.0}  # of equals the first
        assert max(recalls) == recalls[1] > recalls[0]
        assert record.details["seconds_to_fit"] > 0
    assert "search" not in read_records(table, store)["popularity"][0].details


def test_all_methods_of_a_trial_share_its_split_and_trials_differ() -> None:
    first, other = find_cell("popularity"), find_cell("ease")
    assert first.task.split(first, 1).train == other.task.split(other, 1).train
    assert first.task.split(first, 1).train != first.task.split(first, 2).train
    parts = first.task.split(first, 1)
    assert [part.n_interactions for part in parts] == [2358, 337, 674]  # cuts at 2358.3 and 2695.2
    assert sum(part.n_interactions for part in parts) == 3369


def test_networks_are_trained_once_for_all_methods(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    bpr = pytest.importorskip("nodecopy.recommend.bpr")
    table = make_experiment(NETWORKS)
    trained = []
    train = bpr.BPRRecommender.fit_interactions

    def counted(self: Any, *given: Any) -> None:
        trained.append(self.n_factors)
        train(self, *given)

    monkeypatch.setattr(bpr.BPRRecommender, "fit_interactions", counted)
    run(table, store)
    assert trained == [4, 8, 4]  # the last one is SGBPR's own, whatever the graph at test
    records = read_records(table, store)
    assert {"n_epochs", "seconds_to_fit"} <= set(records["bprmf"][0].details)
    assert records["sgbpr"][0].scores != records["sgbpr-observed"][0].scores
    # Without a graph in the network, copying changes nothing: the same weights give the same scores.
    assert records["ebpr"][0].scores == records["bprmf"][0].scores
    results = summarise(table, store)
    heads, rows = rendering.main_grid(results, "library", rendering.MARKDOWN, table.task.columns)
    assert heads == ["method", "NDCG@20", "Recall@10, printed convention"]
    assert len(rows) == 4


def test_a_graph_at_test_is_as_if_trained_with_it(store: Store) -> None:
    from nodecopy.recommend import LightGCN, SampledGraphBPR

    table = make_experiment(NETWORKS).narrow(methods=["sgbpr", "sgbpr-observed"])
    run(table, store)
    cell = find_cell("sgbpr-observed", NETWORKS)
    split = cell.task.split(cell, 0)
    model = SampledGraphBPR(LightGCN(n_epochs=2, n_factors=4), threshold=0.5, test_graph="observed")
    model.fit(split.train, validation=split.validation, rng=child(cell.trial_seed(0), 1))
    judged = model.evaluate(split.test, validation=split.validation)
    assert judged["ndcg@20"] == read_records(table, store)["sgbpr-observed"][0].scores["ndcg@20"]


def test_what_needs_a_missing_package_is_skipped(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*arguments: Any, **options: Any) -> None:
        raise MissingExtraError("EASE needs an abacus, which is not installed")

    monkeypatch.setattr(EASE, "fit", missing)
    table = make_experiment()
    reports: list[JobResult] = []
    run(table, store, on_batch=reports.append)
    assert "abacus" in {one.job.cell.method: one.skip_reason for one in reports}["ease"]
    assert [len(records) for records in read_records(table, store).values()] == [3, 0, 3]
    with pytest.raises(MissingExtraError, match="abacus"):
        run(table.narrow(methods=["ease"]), store)


def test_every_setting_of_table_6_makes_a_recommender_that_can_run() -> None:
    for cell in load("table6").cells(0):
        for choice in cell.search or [dict[str, Any]()]:
            settings = merge_settings(cell.settings, choice)
            instantiate(cell.path, settings, "table6", "cpu").check_params()


def test_every_method_of_table_6_runs(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the library, with networks as they are initialised."""
    bpr = pytest.importorskip("nodecopy.recommend.bpr")
    monkeypatch.setattr(bpr._Training, "run_epoch", lambda self: None)
    for cell in load("table6").narrow(datasets=["ml-100k"]).cells(0):
        try:
            record = solve(replace(cell, dataset="library", search=cell.search[-1:]), store)
        except MissingExtraError:
            assert cell.method in ("ials", "fusion")
            continue
        assert set(SCORES) <= set(record.scores)
        json.dumps(record.details, default=lambda value: value.tolist())


PUBLIC_SPLIT_TOML = """
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
popularity = ["99.9", "-", "-"]
other = ["0.1", "99.99", "-"]
"""


@pytest.fixture
def split(monkeypatch: pytest.MonkeyPatch) -> Split[Interactions]:
    """Return the library in the place of Gowalla, whose files may not be there."""
    library = datasets.load("library")
    train, _, test = datasets.interaction_split(library, (0.8, 0.0, 0.2), rng=0)
    parts = datasets.fixed_split(train, test)
    monkeypatch.setattr(datasets, "load_split", lambda name: parts)
    return parts


def test_settings_are_chosen_on_validation_parts(split: Split[Interactions], tmp_path: Path) -> None:
    table, store = toml.parse(PUBLIC_SPLIT_TOML, "books"), Store(tmp_path)
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
    expected = EASE(100.0).fit(split.train).evaluate(split.test)
    assert {name: records["ease"].scores[name] for name in expected} == expected
    assert 0 <= records["ease"].scores["tail_recall@20"] <= 1
    assert "search" not in records["popularity"].details
    assert len(FIT_CACHE.entries) == 0


def test_one_trial_has_a_verdict_in_all_rows(split: Split[Interactions], tmp_path: Path) -> None:
    table, store = toml.parse(PUBLIC_SPLIT_TOML, "books"), Store(tmp_path)
    run(table, store)
    results = summarise(table, store)
    recall, ndcg, _ = table.task.columns
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


def test_a_split_in_files_of_the_user(split: Split[Interactions], tmp_path: Path) -> None:
    for name, part in (("train", split.train), ("test", split.test), ("validation", split.validation)):
        write_interactions(part, tmp_path / f"{name}.csv")
    entry = '{ name = "mine", train = "train.csv", test = "test.csv", validation = "validation.csv" }'
    text = PUBLIC_SPLIT_TOML.replace('"gowalla"', entry).replace("gowalla", "mine")
    table, store = toml.parse(text, "books", tmp_path), Store(tmp_path / "store")
    run(table, store)
    (cell,) = (cell for cell in table.cells(0) if cell.method == "popularity")
    metrics = [*Popularity().fit(split.train).evaluate(split.test), "tail_recall@20"]
    expected = Popularity().fit(split.train).evaluate(split.test, metrics=metrics)
    assert store.read_finished(cell, [0])[0].scores == expected
    assert cell.fingerprint != next(iter(toml.parse(PUBLIC_SPLIT_TOML, "books").cells(0))).fingerprint
    for wrong, message in (
        (entry.replace('test = "test.csv", ', ""), "must have test; it has name, train, validation"),
        ('{ name = "mine", interactions = "train.csv" }', "mine .* must have train and test; it has"),
    ):
        with pytest.raises(InputError, match=message):
            toml.parse(text.replace(entry, wrong), "books", tmp_path)
