"""The experiments that come with the package: published numbers, protocols and settings."""

from __future__ import annotations

import tarfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from nodecopy import datasets
from nodecopy.experiments import config as toml
from nodecopy.experiments.data import KNOWN_NETWORKS, NULL_NETWORKS
from nodecopy.experiments.spec import Column, Published, instantiate
from nodecopy.experiments.store import Store
from tests.experiments.fakes import column

RESULTS = Path(__file__).parents[2] / "results"

# Read off the paper's tables a second time, column by column.
TABLE_2_FIVE_LABELS = {
    "cora": {"gcn": 70.0, "mmsbm-bgcn": 74.6, "dfnet-att": 72.3, "sbm-gcn": 46.0, "bgcn-copy": 73.8},
    "citeseer": {"gcn": 58.5, "mmsbm-bgcn": 63.0, "dfnet-att": 60.5, "sbm-gcn": 24.5, "bgcn-copy": 63.9},
    "pubmed": {"gcn": 69.7, "mmsbm-bgcn": 70.2, "sbm-gcn": 59.0, "bgcn-copy": 71.0},
    "coauthor-cs": {"gcn": 90.7, "mmsbm-bgcn": 91.0, "sbm-gcn": 88.8, "bgcn-copy": 90.5},
}
TABLE_2_SOME = {
    ("cora", 10, "bgcn-copy"): (77.6, 2.6),
    ("cora", 20, "sbm-gcn"): (82.6, 0.2),
    ("citeseer", 10, "mmsbm-bgcn"): (69.9, 2.3),
    ("citeseer", 20, "bgcn-copy"): (70.2, 2.0),
    ("citeseer", 10, "sbm-gcn"): (43.3, 12.0),
    ("pubmed", 20, "gcn"): (77.5, 2.5),
    ("coauthor-cs", 20, "gcn"): (92.1, 1.0),
    ("coauthor-cs", 10, "bgcn-copy"): (90.7, 1.2),
}
TABLE_3 = {
    "cora": [(39.7, 3.7), (53.5, 3.6), (54.7, 4.6), (25.3, 12.8), (58.7, 3.5)],
    "citeseer": [(40.2, 3.6), (48.3, 3.3), (47.6, 2.5), (18.1, 5.4), (54.5, 2.8)],
    "pubmed": [(59.2, 3.4), (66.2, 4.1), (67.1, 3.9), (57.8, 7.7), (69.1, 4.0)],
    "coauthor-cs": [(80.5, 2.5), (85.8, 2.3), (88.2, 1.2), (88.7, 1.8), (87.4, 1.6)],
}

TABLE_6 = {
    ("ml-100k", "mgccf"): [(19.91, 0.2), (31.27, 0.21), (26.5, 0.2), (31.9, 0.14)],
    ("ml-100k", "mgccf-ebpr"): [(20.15, 0.07), (31.56, 0.07), (26.86, 0.07), (32.23, 0.06)],
    ("ml-100k", "mgccf-sgbpr"): [(20.96, 0.23), (32.45, 0.34), (27.66, 0.24), (33.14, 0.31)],
    ("amazon-cds", "mgccf"): [(13.28, 0.05), (20.26, 0.05), (14.86, 0.04), (18.63, 0.04)],
    ("amazon-cds", "mgccf-ebpr"): [(13.21, 0.01), (20.37, 0.02), (14.78, 0.01), (18.65, 0.02)],
    ("amazon-cds", "mgccf-sgbpr"): [(13.83, 0.19), (20.95, 0.22), (15.31, 0.2), (19.2, 0.2)],
}
PUBLIC_SPLITS: dict[str, list[float | None]] = {  # recall and NDCG on Gowalla, Yelp2018 and Amazon Beauty
    "item-knn": [0.1570, 0.1214, 0.0639, 0.0531, None, None],
    "slim": [0.1699, 0.1382, 0.0646, 0.0541, None, None],
    "ease": [0.1765, 0.1467, 0.0657, 0.0552, None, None],
    "rp3beta": [0.183, 0.152, 0.067, 0.056, None, None],
    "ngcf": [None, None, None, None, 0.1513, 0.0917],
    "lightgcn": [0.1830, 0.1554, 0.0649, 0.0530, 0.1689, 0.0992],
    "ultragcn": [0.1862, 0.1580, 0.0683, 0.0561, None, None],
    "simplex": [0.1872, 0.1557, 0.0701, 0.0575, 0.1721, 0.1028],
    "gf-cf": [0.1849, 0.1518, 0.0697, 0.0571, None, None],
    "simgcl": [None, None, 0.0721, 0.0601, None, None],
    "xsimgcl": [None, None, 0.0723, 0.0604, None, None],
    "bspm-em": [0.1920, 0.1597, 0.0720, None, None, None],
    "nescl": [0.1917, 0.1617, None, None, None, None],
    "chebycf": [0.1941, 0.1616, None, None, None, None],
}


@cache
def load(name: str) -> Any:
    return toml.load(name)


def test_published_numbers_of_table_2() -> None:
    table = load("table2")
    for dataset, numbers in TABLE_2_FIVE_LABELS.items():
        printed = {
            method: number.mean
            for (where, place, method), number in table.published.items()
            if where == dataset and place == column("accuracy", labels=5)
        }
        assert printed == numbers
    for (dataset, labels, method), number in TABLE_2_SOME.items():
        assert table.published[dataset, column("accuracy", labels=labels), method] == Published(*number)
    assert len(table.published) == 3 * (5 + 5 + 4 + 4)


def test_published_numbers_of_table_3() -> None:
    table = load("table3")
    methods = ("mlp", "gcn", "mmsbm-bgcn", "sbm-gcn", "bgcn-copy")
    assert table.published == {
        (dataset, column("accuracy", labels=5), method): Published(*numbers)
        for dataset, row in TABLE_3.items()
        for method, numbers in zip(methods, row, strict=True)
    }


@pytest.mark.parametrize("name", toml.names())
def test_every_configuration_is_sound(name: str) -> None:
    table = load(name)
    assert table.name == name
    assert set(table.task.datasets) <= {*datasets.names(), *KNOWN_NETWORKS, *NULL_NETWORKS}
    assert table.published_trials == table.task.trials
    fingerprints = [(cell.dataset, *cell.conditions.values(), cell.fingerprint) for cell in table.cells(0)]
    assert len(set(fingerprints)) == len(fingerprints)


@pytest.mark.parametrize("name", toml.names())
def test_every_class_can_be_made_with_its_settings(name: str) -> None:
    pytest.importorskip("torch")
    kinds = {"RecommendTask": "evaluate", "PublicSplitTask": "evaluate", "GenerateTask": "sample_many"}
    kinds |= {"CoverageTask": "draw", "LevelTask": "draw"}
    table = load(name)
    contract = kinds.get(type(table.task).__name__, "fit_trials")
    for cell in table.cells(0):
        model = instantiate(cell.path, cell.settings, name, "cpu", lambda *part: part)
        assert callable(getattr(model, contract))


def test_protocols() -> None:
    second, third = load("table2"), load("table3")
    for table in (second, third):
        assert table.task.datasets == ("cora", "citeseer", "pubmed", "coauthor-cs")
        assert table.task.largest_component == ("coauthor-cs",)
        assert (table.task.validation, table.task.test) == (500, 1000)
    assert (second.task.labels, second.task.trials) == ((5, 10, 20), 50)
    assert (third.task.labels, third.task.trials) == ((5,), 20)
    assert not second.task.without_test_edges
    assert third.task.without_test_edges


def test_published_numbers_of_table_4() -> None:
    table = load("table4")
    assert (table.task.trials, table.task.labels) == (20, (5, 10, 20))
    rows = {
        "vgae": [(68.3, 3.6), (74.0, 2.0), (78.2, 2.0)],
        "graphite": [(69.0, 3.1), (74.3, 2.0), (78.3, 1.7)],
        "mmsbm": [(74.6, 2.8), (77.5, 2.6), (80.2, 1.5)],
        "netgan": [(71.0, 2.4), (77.0, 2.7), (80.0, 1.62)],
        "dglfrm-b": [(75.1, 2.3), (77.3, 1.8), (78.8, 1.6)],
        "bgcn-copy": [(73.8, 2.7), (77.6, 2.6), (80.3, 1.6)],
    }
    assert table.published == {
        ("cora", column("accuracy", labels=labels), method): Published(*number)
        for method, row in rows.items()
        for labels, number in zip((5, 10, 20), row, strict=True)
    }
    assert table.timing is not None
    seconds = table.timing.published
    assert {name: round(entry / seconds["bgcn-copy"], 1) for name, entry in seconds.items()} == {
        "vgae": 1.1,
        "graphite": 1.1,
        "mmsbm": 17.1,
        "netgan": 2885.8,
        "dglfrm-b": 8.1,
        "bgcn-copy": 1.0,
    }


def test_published_numbers_of_table_6() -> None:
    table = load("table6")
    assert table.task.datasets == ("ml-100k", "amazon-cds")
    assert (table.task.validation, table.task.test, table.task.trials) == (0.1, 0.2, 10)
    scores = [f"printed {score}" for score in ("recall@10", "recall@20", "ndcg@10", "ndcg@20")]
    for (dataset, method), row in TABLE_6.items():
        printed = [table.published[dataset, Column(score), method] for score in scores]
        assert [(number.mean, number.std) for number in printed] == row
    assert len(table.published) == 4 * len(TABLE_6)


def test_published_numbers_of_the_public_splits() -> None:
    table = load("public-splits")
    for method, row in PUBLIC_SPLITS.items():
        printed = [
            number.mean if (number := table.published.get((dataset, Column(score), method))) else None
            for dataset in ("gowalla", "yelp2018", "amazon-beauty")
            for score in ("recall@20", "ndcg@20")
        ]
        assert printed == [None if entry is None else round(100 * entry, 2) for entry in row], method
    assert {method for *_, method in table.published} == set(PUBLIC_SPLITS)
    assert any("chosen on the test part" in note for note in table.notes)
    n_searched = {method.name: len(method.search) for method in table.methods if method.search}
    assert n_searched == {"item-knn": 6}
    assert any("6 for ItemKNN, in the run" in note for note in table.notes)


def test_recommenders_choose_among_as_many_settings_each() -> None:
    sizes = {method.name: len(method.search) for method in load("table6").methods}
    assert sizes.pop("popularity") == 0
    assert set(sizes.values()) == {6}


def test_table_1_of_the_whole_cora_graph_has_the_same_published_numbers() -> None:
    """The paper has entry row of each model; which of our graphs it fits is what the two tables tell."""
    ours, whole = (load(name).published for name in ("table1", "table1-whole"))
    assert {place: entry for place, entry in ours.items() if place[0] == "cora"} == whole


def test_few_labels_has_the_splits_and_settings_of_table_2() -> None:
    """The trials of methods that are in both tables are the same."""
    few, second = load("few-labels"), load("table2")
    cells = {(cell.dataset, cell.conditions["labels"], cell.method): cell for cell in second.cells(0)}
    shared = [
        (cell, cells.get((cell.dataset, cell.conditions["labels"], cell.method))) for cell in few.cells(0)
    ]
    for dataset in ("cora", "citeseer", "pubmed"):
        same = {
            (cell.method, cell.conditions["visible_validation"])
            for cell, other in shared
            if cell.dataset == dataset and other is not None and cell.fingerprint == other.fingerprint
        }
        both = {(method, n) for method in ("gcn", "appnp", "bgcn-copy") for n in (500, 0)}
        assert same == both | {("sbm-gcn", 500)}
    assert all(
        cell.trial_seed(3).spawn_key == other.trial_seed(3).spawn_key for cell, other in shared if other
    )


def test_the_recommended_classifier_is_compared_with_its_own_parts() -> None:
    methods = {method.name: method for method in load("few-labels").methods}
    networks = {"voters": ["networks"]}
    parts = {
        "default": {},
        "default-alone": {"pseudo_degree": 0},
        "default-regressions": {"voters": ["sgc", "dgi"]},
        "networks-copy": networks,
        "networks-alone": {"pseudo_degree": 0, **networks},
        "default-ensemble": {"pseudo_degree": 0, "n_rounds": 0, **networks},
    }
    assert {name: methods[name].settings for name in parts} == parts
    controls = ("default-alone", "default-regressions", "networks-copy", "self-training")
    assert methods["default"].gain_over == controls
    assert methods["networks-copy"].gain_over == ("networks-alone", "self-training")
    assert methods["networks-alone"].gain_over == ("default-ensemble", "self-training")


def test_every_cell_finds_its_stored_trials() -> None:
    """A fingerprint that changes by accident would orphan the trials of ``results/store.tar.gz``.

    Not every cell of the experiments that are not in the paper was run.
    """
    store = Store(Path("store"))
    with tarfile.open(RESULTS / "store.tar.gz") as archive:
        stored = {Path(name).parent for name in archive.getnames() if name.endswith(".json")}
    cells_stored = {folder.parent for folder in stored}
    published = [name for name in toml.names() if (RESULTS / f"{name}.md").exists()]
    assert len(published) >= 11
    for name in published:
        for cell in toml.load(name).cells(0):
            folder = store.path(cell, 0).parent
            if name.startswith("table") or folder.parent in cells_stored:
                assert folder in stored, f"{name}: {cell}"
