from __future__ import annotations

from pathlib import Path

import pytest

from nodecopy import datasets
from nodecopy.errors import InputError
from nodecopy.experiments import toml
from nodecopy.experiments.assembly import assembled
from nodecopy.experiments.spec import Column, Published
from nodecopy.experiments.tasks.node_classification import classifier_of
from nodecopy.experiments.toml import CLASS_PATH
from tests.experiments.fakes import TOML, experiment

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


def test_published_numbers_of_table_2() -> None:
    table = toml.load("table2")
    for dataset, numbers in TABLE_2_FIVE_LABELS.items():
        found = {
            method: number.mean
            for (where, column, method), number in table.published.items()
            if where == dataset and column.labels == 5
        }
        assert found == numbers
    for (dataset, labels, method), printed in TABLE_2_SOME.items():
        assert table.published[dataset, Column(labels), method] == Published(*printed)
    assert len(table.published) == 3 * (5 + 5 + 4 + 4)


def test_published_numbers_of_table_3() -> None:
    table = toml.load("table3")
    methods = ("mlp", "gcn", "mmsbm-bgcn", "sbm-gcn", "bgcn-copy")
    assert table.published == {
        (dataset, Column(5), method): Published(*numbers)
        for dataset, row in TABLE_3.items()
        for method, numbers in zip(methods, row, strict=True)
    }


@pytest.mark.parametrize("name", toml.names())
def test_every_configuration_is_sound(name: str) -> None:
    table = toml.load(name)
    assert table.name == name
    assert set(table.protocol.datasets) <= set(datasets.names())
    assert table.published_trials == table.protocol.trials
    assert all(CLASS_PATH.fullmatch(method.path) for method in table.runnable)
    fingerprints = [(cell.dataset, cell.labels, cell.fingerprint) for cell in table.cells(0)]
    assert len(set(fingerprints)) == len(fingerprints)


@pytest.mark.parametrize("name", toml.names())
def test_every_class_is_there_and_takes_the_settings(name: str) -> None:
    for cell in toml.load(name).cells(0):
        if cell.kind == "classifiers":
            assert callable(classifier_of(cell, "cpu").fit_trials)
        elif cell.kind == "graph models":
            model = assembled(cell.method, cell.path, cell.settings, "cpu", embedded=lambda *part: part)
            assert callable(model.sample_many)  # recommenders: see test_recommending


def test_protocols() -> None:
    second, third = toml.load("table2"), toml.load("table3")
    for table in (second, third):
        assert table.protocol.datasets == ("cora", "citeseer", "pubmed", "coauthor-cs")
        assert table.protocol.largest_component == ("coauthor-cs",)
        assert (table.protocol.validation, table.protocol.test) == (500, 1000)
    assert (second.protocol.labels, second.protocol.trials) == ((5, 10, 20), 50)
    assert (third.protocol.labels, third.protocol.trials) == ((5,), 20)
    assert not second.protocol.without_test_edges
    assert third.protocol.without_test_edges


def test_published_numbers_of_table_4() -> None:
    table = toml.load("table4")
    assert (table.protocol.trials, table.protocol.labels) == (20, (5, 10, 20))
    rows = {
        "vgae": [(68.3, 3.6), (74.0, 2.0), (78.2, 2.0)],
        "graphite": [(69.0, 3.1), (74.3, 2.0), (78.3, 1.7)],
        "mmsbm": [(74.6, 2.8), (77.5, 2.6), (80.2, 1.5)],
        "netgan": [(71.0, 2.4), (77.0, 2.7), (80.0, 1.62)],
        "dglfrm-b": [(75.1, 2.3), (77.3, 1.8), (78.8, 1.6)],
        "bgcn-copy": [(73.8, 2.7), (77.6, 2.6), (80.3, 1.6)],
    }
    assert table.published == {
        ("cora", Column(labels), method): Published(*number)
        for method, row in rows.items()
        for labels, number in zip((5, 10, 20), row, strict=True)
    }
    assert table.timing is not None
    ratios = {name: one / table.timing.published["bgcn-copy"] for name, one in table.timing.published.items()}
    assert {name: round(one, 1) for name, one in ratios.items()} == {
        "vgae": 1.1,
        "graphite": 1.1,
        "mmsbm": 17.1,
        "netgan": 2885.8,
        "dglfrm-b": 8.1,
        "bgcn-copy": 1.0,
    }


def test_published_numbers_of_table_6() -> None:
    table = toml.load("table6")
    assert table.protocol.datasets == ("ml-100k", "amazon-cds")
    assert (table.protocol.validation, table.protocol.test, table.protocol.trials) == (0.1, 0.2, 10)
    scores = [f"printed {score}" for score in ("recall@10", "recall@20", "ndcg@10", "ndcg@20")]
    for (dataset, method), row in TABLE_6.items():
        found = [table.published[dataset, Column(score=score), method] for score in scores]
        assert [(one.mean, one.std) for one in found] == row
    assert len(table.published) == 4 * len(TABLE_6)


def test_recommenders_choose_among_as_many_settings_each() -> None:
    sizes = {method.name: len(method.search) for method in toml.load("table6").methods}
    assert sizes.pop("popularity") == 0
    assert set(sizes.values()) == {6}


def test_settings_of_a_dataset_override() -> None:
    cells = {(cell.dataset, cell.method): cell for cell in toml.load("table2").cells(0) if cell.labels == 5}
    plain, other = cells["cora", "bgcn-copy"], cells["coauthor-cs", "bgcn-copy"]
    assert set(other.settings) >= set(plain.settings)
    assert other.settings != plain.settings
    assert other.largest_component
    assert not plain.largest_component


def test_a_method_on_some_datasets_only() -> None:
    table = toml.load("table2")
    assert {cell.dataset for cell in table.cells(0) if cell.method == "dfnet-att"} == {"cora", "citeseer"}
    assert {cell.dataset for cell in table.cells(0) if cell.method == "sbm-gcn"} == set(
        table.protocol.datasets
    )
    narrow = table.narrowed(datasets=["cora", "pubmed"], methods=["dfnet-att"], labels=[5])
    assert [str(cell) for cell in narrow.cells(0)] == ["cora, 5 labels, dfnet-att"]


def test_narrowing() -> None:
    table = toml.load("table2")
    narrow = table.narrowed(datasets=["pubmed", "cora"], labels=[10], methods=["bgcn-copy", "gcn"], trials=3)
    assert [str(cell) for cell in narrow.cells(0)] == [
        "cora, 10 labels, gcn",
        "cora, 10 labels, bgcn-copy",
        "pubmed, 10 labels, gcn",
        "pubmed, 10 labels, bgcn-copy",
    ]
    assert (narrow.protocol.trials, narrow.published_trials) == (3, 50)
    assert table.narrowed() == table
    same = {cell.folders: cell for cell in table.cells(0)}
    assert all(same[cell.folders] == cell for cell in narrow.cells(0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"datasets": ["coral"]}, r"dataset of table2 must be one of .*Did you mean cora"),
        ({"labels": [7]}, r"labels of table2 must be one of 5, 10, 20; got 7"),
        ({"methods": ["bgcn"]}, r"Did you mean .*bgcn-copy"),
        (
            {"methods": ["dfnet-att"], "datasets": ["pubmed"]},
            "dfnet-att must run on one of pubmed; table2 runs it on others only",
        ),
        ({"methods": []}, r"must name at least one"),
        ({"trials": 0}, r"trials must be an integer of at least 1; got 0"),
    ],
)
def test_narrowing_to_what_is_not_there(options: dict[str, list[str]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        toml.load("table2").narrowed(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("trials = 6", "trails = 6", r"key of \[protocol\] must be one of .*trails.*Did you mean trials"),
        ("trials = 6", "", r"\[protocol\] must have trials"),
        ("trials = 6", "trials = 0", r"trials of \[protocol\] must be an integer of at least 1; got 0"),
        ('"karate"', '"karat"', r"datasets of \[protocol\] must be one of .*Did you mean karate"),
        ('"karate"', '"karate", "ml-100k"', r"datasets of \[protocol\] must be one of .*got 'ml-100k'"),
        ('"karate"', '"ml-100k"', r"key of \[protocol\] must be one of .*got 'labels'"),
        ('title = "Weak"', 'title = "Weak"\nsearch = [{{}}]', r"search of \[methods.weak\] must be left out"),
        ('title = "A fake"', 'title = "A fake"\nnotes = [1]', r"notes of fake.toml must be a text; got 1"),
        ("labels = [1, 3]", "labels = [3, 3]", r"labels of \[protocol\] must be a list of different"),
        ("test = 16", "test = 16\nwithout_test_edges = 1", r"must be true or false; got 1"),
        ("test = 16", 'test = 16\nlargest_component = ["cora"]', r"must be one of karate; got 'cora'"),
        ("test = 16", 'test = 16\nlargest_component = "karate"', r"must be a list of datasets"),
        ('title = "Weak"', 'titel = "Weak"', r"key of \[methods.weak\] .*Did you mean title"),
        ('title = "Weak"', 'title = ""', r"title of \[methods.weak\] must be a text"),
        ("fakes.Fake", "fakes:Fake", r"class of \[methods.weak\] must read module.Class"),
        ("methods.absent", "methods.'a/b'", r"name of a method must be of lower-case .*got 'a/b'"),
        (
            "[methods.weak]",
            '[methods.weak]\ndatasets = ["karat"]',
            r"datasets of \[methods.weak\] .*mean karate",
        ),
        ("[methods.weak]", "[methods.weak]\ndatasets = []", r"datasets of \[methods.weak\] must be a list"),
        ('["weak"]', '["weka"]', r"gain_over of \[methods.strong\] must be one of weak; got 'weka'"),
        ('["weak"]', '["absent"]', r"gain_over of \[methods.strong\] .*got 'absent'"),
        ("weak = [", "weka = [", r"method of \[published.karate\] .*Did you mean weak"),
        ('"70±4"', "", r"must hold one entry per column, 2 in all"),
        ('"70±4"', '"70+-4"', r"entries such as '70.0±3.7' or '-'; got '70\+-4'"),
        ("published.karate", "published.cora", r"dataset of \[published\] must be one of karate"),
        ("[protocol]", "[protocol", r"fake.toml must be valid TOML"),
        ('title = "A fake"', "titles = 1", r"key of fake.toml"),
    ],
)
def test_a_mistake_in_a_file_is_named(old: str, new: str, message: str) -> None:
    assert old in TOML
    with pytest.raises(InputError, match=message):
        experiment(text=TOML.replace(old, new))


def test_files_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(TOML.format(pause=0, log=""), encoding="utf-8")
    assert toml.load(path).name == "mine"
    with pytest.raises(InputError, match=r"must be a TOML file that can be read"):
        toml.load(tmp_path / "other.toml")
    with pytest.raises(
        InputError,
        match=r"must be one of table1, table1-all, .*table6; got 'table22'.* Did you mean table2",
    ):
        toml.load("table22")


FINGERPRINTS = {  # of folders in the store of results
    ("table2", "cora/5/gcn"): "fe80e7e98a12",
    ("table3", "pubmed/5/mlp"): "61a26089828a",
    ("table5", "cora/20/dice-50/gcn"): "93072268a0a8",
}


def test_fingerprints_of_committed_results_stay() -> None:
    for (name, place), fingerprint in FINGERPRINTS.items():
        cells = {"/".join(cell.folders): cell.fingerprint for cell in toml.load(name).cells(0)}
        assert cells[place] == fingerprint


def test_the_fingerprint_follows_what_a_result_depends_on() -> None:
    def fingerprint(old: str = "", new: str = "") -> str:
        return experiment(text=TOML.replace(old, new) if old else TOML).cells(0)[0].fingerprint

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


def test_table_1_of_the_whole_cora_graph_has_the_same_published_numbers() -> None:
    """The paper has one row of each model; which of our graphs it fits is what the two tables tell."""
    ours, whole = (toml.load(name).published for name in ("table1", "table1-whole"))
    assert {place: one for place, one in ours.items() if place[0] == "cora"} == whole
