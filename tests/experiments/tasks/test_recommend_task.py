"""Trials of recommenders on the embedded library."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodecopy import datasets
from nodecopy._core.random import child
from nodecopy.copying import Jaccard
from nodecopy.errors import InputError, MissingExtraError
from nodecopy.experiments import config as toml
from nodecopy.experiments import rendering
from nodecopy.experiments.runner import FIT_CACHE, JobResult, run
from nodecopy.experiments.spec import Experiment, instantiate, merge_settings
from nodecopy.experiments.store import Record, Store
from nodecopy.experiments.summary import summarise
from nodecopy.experiments.tasks.recommend import SCORES, TrialFits
from nodecopy.recommend import EASE, CopyEASE, Popularity

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


@cache
def load(name: str) -> Any:
    return toml.load(name)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    yield Store(tmp_path / "store")
    FIT_CACHE.clear()


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


def test_trials_are_kept_one_by_one(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill in the third trial loses that one alone, even in a batch of three."""
    fit = Popularity.fit
    calls = []

    def breaking(self: Popularity, *arguments: Any, **options: Any) -> Popularity:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return fit(self, *arguments, **options)

    monkeypatch.setattr(Popularity, "fit", breaking)
    with pytest.raises(KeyboardInterrupt):
        run(make_experiment().narrow(methods=["popularity"]), store, batch_size=3)
    assert store.find_missing(find_cell("popularity"), range(3)) == [2]


def test_the_table(store: Store) -> None:
    table = make_experiment()
    run(table, store)
    results = summarise(table, store)
    text = rendering.render_markdown(results)
    assert "standard deviations too" not in text
    assert "Printed convention" in text
    assert "plus 0.005 (the paper's rounding)" in text
    assert "- Invented readers." in text
    heads = next(line for line in text.splitlines() if line.startswith("| method"))
    assert heads == (
        "| method | Recall@10 | Recall@20 | NDCG@10 | NDCG@20 | Recall@10, printed convention | paper "
        "| verdict | Recall@20, printed convention | paper | verdict | NDCG@10, printed convention "
        "| NDCG@20, printed convention |"
    )
    assert "| 44.10 ± 0.20 |" in text
    assert "| EASE over popularity | +" in text
    cell = results.cells["library", table.task.columns[1], "ease"]
    values = [100 * one.scores["recall@20"] for one in read_records(table, store)["ease"]]
    assert cell.mean == pytest.approx(np.mean(values))
    assert cell.extra_scores == {}
    assert json.loads(json.dumps(results.to_dict()))["cells"][0]["score"] == "recall@10"
    assert "books,library,recall@10,ease" in rendering.render_csv(results)
    assert r"44.10$\pm$0.20" in rendering.render_latex(results)


def test_networks_are_trained_once_for_the_methods_on_them(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    assert records["sgbpr"][0].details["threshold"] == 0.5
    assert records["sgbpr"][0].scores != records["sgbpr-observed"][0].scores
    # Without a graph in the network, copying changes nothing: the same weights give the same scores.
    assert records["ebpr"][0].scores == records["bprmf"][0].scores
    heads, rows = rendering.main_grid(
        summarise(table, store), "library", rendering.MARKDOWN, table.task.columns
    )
    assert heads == ["method", "NDCG@20", "Recall@10, printed convention"]
    assert len(rows) == 4


def test_a_graph_at_test_is_as_if_trained_with_it(store: Store) -> None:
    pytest.importorskip("torch")
    from nodecopy.recommend import LightGCN, SampledGraphBPR

    table = make_experiment(NETWORKS).narrow(methods=["sgbpr", "sgbpr-observed"])
    run(table, store)
    cell = find_cell("sgbpr-observed", NETWORKS)
    split = cell.task.split(cell, 0)
    model = SampledGraphBPR(LightGCN(n_epochs=2, n_factors=4), threshold=0.5, test_graph="observed")
    model.fit(split.train, validation=split.validation, rng=child(cell.trial_seed(0), 1))
    judged = model.evaluate(split.test, validation=split.validation)
    assert judged["ndcg@20"] == read_records(table, store)["sgbpr-observed"][0].scores["ndcg@20"]


def test_the_device_reaches_networks_and_what_is_below_others(store: Store) -> None:
    pytest.importorskip("torch")
    for method in ("bprmf", "ebpr", "sgbpr"):
        cell = find_cell(method, NETWORKS)
        fits = TrialFits(cell, 0, "abacus", cell.task.split(cell, 0))
        with pytest.raises(InputError, match="abacus"):
            fits.fit(cell.path, cell.settings)


def test_what_needs_a_missing_package_is_skipped(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*arguments: Any, **options: Any) -> None:
        raise MissingExtraError("EASE needs an abacus, which is not installed")

    monkeypatch.setattr(EASE, "fit", missing)
    table = make_experiment()
    reports: list[JobResult] = []
    run(table, store, on_batch=reports.append)
    assert {one.job.cell.method: one.skip_reason for one in reports}["ease"].startswith(
        "EASE needs an abacus"
    )
    assert [len(records) for records in read_records(table, store).values()] == [3, 0, 3]
    with pytest.raises(MissingExtraError, match="abacus"):
        run(table.narrow(methods=["ease"]), store)


def test_without_torch_networks_are_skipped(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = find_cell("bprmf", NETWORKS)
    monkeypatch.setitem(sys.modules, "torch", None)
    for name in ("bprmf", "bpr"):
        monkeypatch.delitem(sys.modules, f"nodecopy.recommend.{name}", raising=False)
    with pytest.raises(MissingExtraError, match=r"\[methods.bprmf\] needs torch.*\[torch\]"):
        solve(cell, store)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("test = 0.2", "test = 0.95", r"validation and test of \[protocol\] must be above 0 and below 1"),
        ("test = 0.2", "test = 0", r"above 0 and below 1 together; got 0.1 and 0"),
        ("test = 0.2", "test = 2", r"test of \[protocol\] must be a number from 0 to 1; got 2"),
        (
            "test = 0.2",
            'test = 0.2\nlargest_component = ["library"]',
            r"largest_component .*left out",
        ),
        ("test = 0.2", 'test = 0.2\nscores = ["accuracy"]', r"scores of \[protocol\] must be one of ndcg@10"),
        ('["library"]', '["library", "karate"]', r"datasets of \[protocol\] must be one of .*got 'karate'"),
        ("[methods.ease]", "[attacks.a]\ntitle = 'a'\n[methods.ease]", r"key of books.toml .*'attacks'"),
        (
            "{ regularisation = 0.01 }",
            "{ regularization = 0.01 }",
            r"a setting of \[methods.ease\] .*mean regul",
        ),
        (
            "regularisation = 0.01",
            "precision = { digits = 3 }",
            r"precision in \[methods.ease\] must have a class",
        ),
        (
            "exponent = 2.0",
            "expnent = 2.0",
            r"a setting of user_donors in \[methods.copy-ease\] .*mean exponent",
        ),
        ("{ regularisation = 0.01 }", "1", r"search of \[methods.ease\] must be a section"),
    ],
)
def test_a_mistake_in_a_file_is_named(old: str, new: str, message: str) -> None:
    assert old in TOML
    with pytest.raises(InputError, match=message):
        make_experiment(TOML.replace(old, new))


def test_narrowing_by_labels_is_refused() -> None:
    with pytest.raises(InputError, match="labels must be left out: books has none; got 5"):
        make_experiment().narrow(labels=[5])


def test_the_fingerprint_follows_the_search() -> None:
    one = find_cell("ease")
    other = find_cell("ease", TOML.replace("regularisation = 0.01", "regularisation = 0.02"))
    shares = find_cell("ease", TOML.replace("test = 0.2", "test = 0.3"))
    assert (
        len({one.fingerprint, other.fingerprint, shares.fingerprint, find_cell("popularity").fingerprint})
        == 4
    )
    assert other.fingerprint == replace(other, dataset="ml-100k").fingerprint


def test_settings_of_a_dataset_reach_what_is_below_others() -> None:
    text = NETWORKS.replace(
        "settings.n_graphs = 2",
        "on.library = { base = { n_epochs = 5 }, n_graphs = 3 }\nsettings.n_graphs = 2",
    )
    assert text != NETWORKS
    base = {"class": "nodecopy.recommend.BPRMF", "use": "fitted", "n_epochs": 5, "evaluate_every": 1}
    assert find_cell("ebpr", text).settings == {"n_graphs": 3, "base": base}


def test_every_setting_of_table_6_makes_a_recommender_that_can_run() -> None:
    pytest.importorskip("torch")
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
