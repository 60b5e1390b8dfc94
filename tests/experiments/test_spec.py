"""Experiments, whatever their task: cells, fingerprints, narrowing."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from nodecopy.errors import InputError
from nodecopy.experiments import config as toml
from nodecopy.experiments.spec import Column, rounding_error, select_by_name
from tests.experiments.fakes import TOML, make_experiment


@cache
def load(name: str) -> Any:
    return toml.load(name)


def test_settings_of_a_dataset_override() -> None:
    table = load("table2").narrow(labels=[5])
    cells = {(cell.dataset, cell.method): cell for cell in table.cells(0)}
    plain, other = cells["cora", "bgcn-copy"], cells["coauthor-cs", "bgcn-copy"]
    assert set(other.settings) >= set(plain.settings)
    assert other.settings != plain.settings
    assert other.task.protocol(other)["largest_component"]
    assert not plain.task.protocol(plain)["largest_component"]


def test_a_method_on_some_datasets_only() -> None:
    table = load("table2")
    assert {cell.dataset for cell in table.cells(0) if cell.method == "dfnet-att"} == {"cora", "citeseer"}
    assert {cell.dataset for cell in table.cells(0) if cell.method == "sbm-gcn"} == set(table.task.datasets)
    narrow = table.narrow(datasets=["cora", "pubmed"], methods=["dfnet-att"], labels=[5])
    assert [str(cell) for cell in narrow.cells(0)] == ["cora, 5 labels, dfnet-att"]


def test_a_method_under_some_conditions_only() -> None:
    text = TOML.replace('title = "Weak"', 'title = "Weak"\nconditions = {{ labels = [3] }}')
    cells = [str(cell) for cell in make_experiment(text=text).cells(0)]
    assert cells == ["karate, 1 labels, strong", "karate, 3 labels, weak", "karate, 3 labels, strong"]


def test_narrowing() -> None:
    table = load("table2")
    narrow = table.narrow(datasets=["pubmed", "cora"], labels=[10], methods=["bgcn-copy", "gcn"], trials=3)
    assert [str(cell) for cell in narrow.cells(0)] == [
        "cora, 10 labels, gcn",
        "cora, 10 labels, bgcn-copy",
        "pubmed, 10 labels, gcn",
        "pubmed, 10 labels, bgcn-copy",
    ]
    assert (narrow.task.trials, narrow.published_trials) == (3, 50)
    assert table.narrow() == table
    same = {cell.folders: cell for cell in table.cells(0)}
    assert all(same[cell.folders] == cell for cell in narrow.cells(0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"datasets": ["coral"]}, r"datasets of table2 must be one of .*Did you mean cora"),
        ({"labels": ["five"]}, r"labels of table2 must be one of 5, 10, 20; got five"),
        ({"attacks": ["dice"]}, "attacks must be left out: table2 has none; got dice"),
        ({"visible_validation": [0]}, "visible_validation must be left out: table2 has none; got 0"),
        ({"labels": [7]}, r"labels of table2 must be one of 5, 10, 20; got 7"),
        ({"methods": ["bgcn"]}, r"Did you mean .*bgcn-copy"),
        (
            {"methods": ["dfnet-att"], "datasets": ["pubmed"]},
            "methods must run .*: dfnet-att runs with dataset cora or citeseer, got pubmed.",
        ),
        ({"methods": []}, r"a method that table2 runs must be given; got none. Allowed: gcn, "),
        ({"trials": 0}, r"trials must be an integer of at least 1; got 0"),
    ],
)
def test_narrowing_to_what_is_not_there(options: dict[str, list[str]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load("table2").narrow(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"methods": ["sbm-gcn", "networks-alone"], "labels": [1], "visible_validation": [0]},
            "sbm-gcn runs with visible_validation 500, got 0; networks-alone runs with labels 5 or 20, got 1",
        ),
        (
            {"methods": ["default-alone"], "labels": [1], "visible_validation": [0]},
            "default-alone runs with labels 5 or 20, got 1 and visible_validation 500, got 0.",
        ),
    ],
    ids=["two methods", "two conditions"],
)
def test_narrowing_says_with_what_methods_run(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"methods must run with what else was chosen: {message}"):
        load("few-labels").narrow(**options)


def test_narrowing_a_part_that_does_not_run_a_method() -> None:
    with pytest.raises(InputError, match="dfnet-att does not run on pubmed"):
        load("table2").narrow(datasets=["pubmed"]).narrow(methods=["dfnet-att"])


def test_the_fingerprint_follows_what_a_result_depends_on() -> None:
    def fingerprint(old: str = "", new: str = "") -> Any:
        return make_experiment(text=TOML.replace(old, new) if old else TOML).cells(0)[0].fingerprint

    assert fingerprint() == fingerprint()
    assert fingerprint() == fingerprint("trials = 6", "trials = 60")
    assert fingerprint() == fingerprint("skill = 2.0", "skill = 3.0")  # of the other method
    changes = [
        ("skill = 0.3", "skill = 0.4"),
        ("validation = 4", "validation = 5"),
        ("test = 16", "test = 15"),
        ("test = 16", "test = 16\nwithout_test_edges = true"),
        ("test = 16", 'test = 16\nlargest_component = ["karate"]'),
    ]
    assert len({fingerprint(), *(fingerprint(*change) for change in changes)}) == 1 + len(changes)


def test_choices_may_be_given_as_text() -> None:
    assert select_by_name((5, 10, 20), ["20", "5"], "labels") == (5, 20)


def test_columns_are_equal_by_score_and_conditions() -> None:
    assert Column("accuracy", (("labels", 5),), "5 labels") == Column("accuracy", (("labels", 5),))
    assert Column("accuracy", (("labels", 5),)) != Column("accuracy", (("labels", 10),))


@pytest.mark.parametrize("path", ["nodecopy.copying.NodeCopying", "nodecopy.copying.model.NodeCopying"])
def test_the_fingerprint_digests_public_names(path: str) -> None:
    """A class may be named by another path, or move: the trials of its cells stay valid."""
    cell = load("table1").cells(0)[-1]
    assert cell.path == "nodecopy.NodeCopying"
    moved = replace(cell, path=path)
    assert moved.fingerprint == cell.fingerprint
    rule = {**cell.settings["donors"], "class": "nodecopy.copying.donors.Balanced"}
    inner = replace(cell, settings={**cell.settings, "donors": rule})
    assert inner.settings != cell.settings
    assert inner.fingerprint == cell.fingerprint


def test_the_fingerprint_digests_the_version_of_the_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    before = make_experiment().cells(0)[0].fingerprint
    monkeypatch.setattr("nodecopy.experiments.spec.SEED_SCHEME", 99)
    assert make_experiment().cells(0)[0].fingerprint != before


def test_rounding_error_is_half_a_unit_of_the_last_decimal() -> None:
    assert [rounding_error(digits) for digits in (0, 1, 2)] == pytest.approx([0.5, 0.05, 0.005])
