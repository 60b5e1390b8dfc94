"""Experiments read from files: inheritance, objects among settings, and the files of the package."""

from __future__ import annotations

import csv
import importlib
import re
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from nodecopy import datasets
from nodecopy.errors import DataWarning, InputError, MissingExtraError
from nodecopy.experiments import config
from nodecopy.experiments import config as toml
from nodecopy.experiments.data import KNOWN_NETWORKS, NULL_NETWORKS
from nodecopy.experiments.rendering import summarise
from nodecopy.experiments.runner import Job, _solve_job, run
from nodecopy.experiments.spec import check_settings, digest, instantiate, use_public_names
from nodecopy.experiments.store import Store
from tests.experiments import fakes, test_attacks, test_generation, test_recommendation, test_summary
from tests.experiments.fakes import TOML, load

PAGE = Path(__file__).parents[2] / "docs/experiments.md"


def parse(text: str) -> Any:
    return toml.parse(text, "mine", trust=True)


def test_files_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(TOML.format(pause=0, log=""), encoding="utf-8")
    assert toml.load(path, trust=True).name == "mine"
    with pytest.raises(InputError, match=r"other.toml does not exist"):
        toml.load(tmp_path / "other.toml")
    with pytest.raises(InputError, match=r"must be one of .*table6.*; got 'table22'.* Did you mean table2"):
        load("table22")
    with pytest.raises(InputError, match="source must be the name of a file; got int"):
        load(3)


def read_example(language: str, number: int = 0) -> str:
    return str(re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)[number])


def test_the_documented_experiment_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "neighbour_vote.py").write_text(read_example("python"), encoding="utf-8")
    (tmp_path / "mine.toml").write_text(read_example("toml"), encoding="utf-8")
    with pytest.raises(InputError, match=r"\[methods.neighbour-vote\] must be importable; .*No module named"):
        toml.load(tmp_path / "mine.toml", trust=True)
    monkeypatch.syspath_prepend(tmp_path)
    experiment = toml.load(tmp_path / "mine.toml", trust=True).narrow(labels=[5], methods=["neighbour-vote"])
    store = Store(tmp_path / "store")
    run(experiment, store)
    (summary,) = summarise(experiment, store).cells.values()
    assert len(summary.values) == 20
    assert summary.mean is not None
    assert summary.mean > 80


def test_code_of_ones_own_is_in_the_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials of changed code were taken from the store."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # a second has one cached form
    files = {name: tmp_path / f"{name}.py" for name in ("own_network", "own_layers")}
    files["own_layers"].write_text(f"{read_example('python', 1)}\nSIZE = 1")
    files["own_network"].write_text(
        "from own_layers import build as inner\n\ndef build(*n): return inner(*n)"
    )
    text = f"{read_example('toml')}\n{read_example('toml', 1)}".replace(
        "neighbour_vote.Neigh", "own_network.Neigh"
    )
    text = re.sub(r"\[methods.neighbour-vote\].*?\[methods.sage\]", "[methods.sage]", text, flags=re.S)

    def load_cell() -> Any:
        return parse(text).narrow(labels=[5], methods=["sage"], trials=1).cells(0)[0]

    before, packaged = load_cell(), parse(text).cells(0)[0].fingerprint
    run(parse(text).narrow(labels=[5], methods=["sage"], trials=1), Store(tmp_path / "store"))
    assert not Store(tmp_path / "store").find_missing(before, [0])
    files["own_layers"].write_text(f"{read_example('python', 1)}\nSIZE = 2")
    with pytest.warns(DataWarning, match=r"own_layers.py changed after its import"):
        assert load_cell().fingerprint == before.fingerprint
    for name in reversed(files):
        importlib.reload(sys.modules[name])
    after = load_cell()
    assert after.fingerprint != before.fingerprint
    assert parse(text).cells(0)[0].fingerprint == packaged
    with pytest.raises(InputError, match=r"code of \[methods.sage\] must not change during a run"):
        _solve_job(Job(before, (1,)), Store(tmp_path / "store"), "cpu", wait=False)


def test_an_empty_section_is_that_of_the_base() -> None:
    base = {method.name: method for method in load("table2").methods}
    text = read_example("toml").replace("neighbour_vote.NeighbourVote", "nodecopy.classify.MLP")
    methods = parse(text.replace("{ n_steps = 5 }", "{}")).methods
    assert [method.name for method in methods] == ["gcn", "bgcn-copy", "neighbour-vote"]
    assert (methods[0].path, methods[0].settings) == (base["gcn"].path, base["gcn"].settings)
    assert methods[1].gain_over == ("gcn",)  # the base compares it with gcn-400 too, which is not here
    with pytest.raises(InputError, match=r"an empty section of \[methods\] .* Did you mean gcn"):
        parse('base = "table2"\ntitle = "x"\n[methods.gnc]')
    for nothing in ("0", "false", "[]"):
        with pytest.raises(InputError, match=r"\[methods.gcn\]"):
            parse(f'base = "table2"\ntitle = "x"\n[methods]\ngcn = {nothing}')
    with pytest.raises(InputError, match=r"\[methods\] of mine.toml must have a method"):
        parse('base = "table2"\ntitle = "x"\n[methods]')
    with pytest.raises(InputError, match=r"task must be 'classify', as in the base table2; got 'attack'"):
        parse('base = "table2"\ntitle = "x"\ntask = "attack"')


@pytest.mark.parametrize("name", toml.names())
def test_any_experiment_may_be_a_base(name: str) -> None:
    own, base = parse(f'base = "{name}"\ntitle = "x"'), load(name)
    assert own.task == base.task
    assert [(method.name, method.path, method.settings) for method in own.methods] == [
        (method.name, method.path, method.settings) for method in base.methods
    ]


def test_a_section_that_says_where_a_method_runs_is_that_of_the_base() -> None:
    text = 'base = "table2"\ntitle = "x"\n[methods.gcn]\n[methods.bgcn-copy]\nconditions = { labels = [5] }'
    base = {method.name: method for method in load("table2").methods}["bgcn-copy"]
    method = parse(text).methods[1]
    assert (method.title, method.path, method.settings) == (base.title, base.path, base.settings)
    assert (method.conditions, method.gain_over) == ({"labels": [5]}, ("gcn",))


def test_what_the_base_says_of_other_datasets_is_left_out() -> None:
    text = 'base = "table2"\ntitle = "x"\n[protocol]\ndatasets = ["coauthor-cs"]'
    scholars = parse(text)
    assert "dfnet-att" not in [method.name for method in scholars.methods]
    assert {cell.task.protocol(cell)["largest_component"] for cell in scholars.cells(0)} == {True}
    papers = parse(text.replace("coauthor-cs", "citeseer"))
    assert {cell.task.protocol(cell)["largest_component"] for cell in papers.cells(0)} == {False}
    (dfnet,) = (method for method in papers.methods if method.name == "dfnet-att")
    assert (dfnet.datasets, list(dfnet.on)) == (("citeseer",), ["citeseer"])
    for wrong in ("5", "[]", "[[1]]", '["cora", "moon"]'):
        with pytest.raises(InputError, match=r"datasets of \[protocol\]"):
            parse(text.replace('["coauthor-cs"]', wrong))


def test_numbers_and_notes_of_the_base_are_not_taken() -> None:
    own, base = parse('base = "table4"\ntitle = "x"'), load("table4")
    assert base.published
    assert base.timing
    assert base.notes
    assert (own.published, own.timing, own.notes) == ({}, None, ())
    with pytest.raises(InputError, match=r"mine.toml must have title"):
        parse('base = "table4"')


@pytest.mark.parametrize("text", [f"x = {'[' * 5000}{']' * 5000}", f"[{'.'.join('a' * 5000)}]"])
def test_deep_nesting_is_an_error(text: str) -> None:
    with pytest.raises(InputError, match=r"mine.toml must "):
        toml.parse(text, "mine")


HERE = "tests.experiments.test_config"


@dataclass
class Box:
    content: Any = None
    device: str = "none"


@dataclass(frozen=True)
class Stone:
    weight: float = 1.0


def test_tables_become_objects_on_the_device() -> None:
    inner = {"class": f"{HERE}.Box", "content": {"class": f"{HERE}.Stone", "weight": 2.0}}
    settings = {"content": inner}
    box = instantiate(f"{HERE}.Box", settings, "[methods.boxes]", "cuda")
    assert box == Box(Box(Stone(2.0), "cuda"), "cuda")
    assert settings["content"] is inner
    assert "content" in inner
    assert instantiate(f"{HERE}.Box", {"device": "cpu"}, "[methods.boxes]", "cuda").device == "cpu"


def test_a_use_gets_its_class_and_settings() -> None:
    calls: list[Any] = []

    def paint(*given: Any) -> str:
        calls.append(given)
        return "paint"

    inner = {"class": "red", "use": "painted", "twice": True}
    settings = {"content": {"class": f"{HERE}.Box", "content": inner}}
    box = instantiate(f"{HERE}.Box", settings, "[methods.boxes]", "cpu", paint)
    assert box.content.content == "paint"
    assert calls == [("red", {"twice": True})]


def test_a_class_without_its_optional_package_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "needs_torch.py").write_text("import torch")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "torch", None)
    check_settings("needs_torch.GCN", {"misspelt": 1, "factory": "needs_torch.build"}, "x")
    assert use_public_names({"class": "needs_torch.GCN"}) == {"class": "needs_torch.GCN"}
    with pytest.raises(MissingExtraError, match=r"x needs torch.*\[torch\]"):
        instantiate("needs_torch.GCN", {}, "x", "cpu")


RESULTS = Path(__file__).parents[2] / "results"


PUBLISHED = {  # digests of the published numbers, which were read off the papers twice
    "table1": "a243266a95bb", "table1-whole": "047792590b0e", "table2": "0d2ab792bc96",
    "table3": "a2528d12c19e", "table4": "b78d64cfa42f", "table5": "f5ec42cfb4cb",
    "table6": "d3fbf8ae78ff", "public-splits": "d0faf2dfc753",
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_numbers_are_those_of_the_second_reading(name: str) -> None:
    numbers = [
        f"{dataset} {where.score} {where.conditions} {method} {number.mean} {number.std}"
        for (dataset, where, method), number in load(name).published.items()
    ]
    assert digest(sorted(numbers)) == PUBLISHED[name]


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
    kinds = {"RecommendTask": "evaluate", "PublicSplitTask": "evaluate", "GenerateTask": "sample_many"}
    kinds |= {"CoverageTask": "draw", "LevelTask": "draw", "LinksTask": "score", "DenoiseTask": "fit"}
    table = load(name)
    contract = kinds.get(type(table.task).__name__, "fit_trials")
    for cell in table.cells(0):
        model = instantiate(cell.path, cell.settings, name, "cpu", lambda *part: part)
        assert callable(getattr(model, contract))


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
    seeds = [(cell.trial_seed(3), other.trial_seed(3)) for cell, other in shared if other]
    assert all(first.spawn_key == second.spawn_key for first, second in seeds)


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


@pytest.mark.parametrize("name", [path.stem for path in sorted(RESULTS.glob("*.csv"))])
def test_published_numbers_are_those_of_the_committed_tables(name: str) -> None:
    experiment = load(name)
    committed = {}
    with (RESULTS / f"{name}.csv").open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            if row["published"]:
                conditions = tuple(row[key] for key in experiment.task.conditions[0])
                place = row["dataset"], conditions, row["score"], row["method"]
                committed[place] = row["published"], row["published_std"]
    published = {}
    for (dataset, where, method), number in experiment.published.items():
        conditions = tuple(str(value) for _, value in where.conditions)
        std = "" if number.std is None else f"{number.std:.6g}"
        published[dataset, conditions, where.score, method] = f"{number.mean:.6g}", std
    assert published == committed


FILES = {
    "fake": fakes.TOML.format(pause=0, log=""),
    "attack": test_attacks.TOML,
    "samples": test_generation.TOML,
    "books": test_recommendation.TOML,
    "splits": test_recommendation.PUBLIC_SPLIT_TOML,
    "net": f"{fakes.TOML.format(pause=0, log='')}{fakes.NETWORK}",
    "time": test_summary.TIMED.format(pause=0, log=""),
}
MISTAKES = [
    ("fake", "trials = 6", "trails = 6", "Did you mean trials or labels?"),
    ("fake", '"karate"', '"karate", "ml-100k"', "datasets of [protocol] must be one"),
    ("fake", "test = 16", 'test = 16\nscores = ["auc"]', "key of [protocol] must be one"),
    ("fake", 'title = "Weak"', 'title = "Weak"\nsearch = [{}]', "search of [methods.weak] must be left"),
    ("fake", "test = 16", 'test = 16\nlargest_component = ["cora"]', "of [protocol] must be one"),
    ("fake", "methods.absent", "methods.'a/b'", "name of a method must be of"),
    ("fake", '["weak"]', '["absent"]', "gain_over of [methods.strong] must be one"),
    ("fake", '"70±4"', "", "weak of [published.karate] must hold one"),
    ("fake", "published.karate", "published.cora", "dataset of [published] must be one"),
    ("fake", "[protocol]", "[protocol", "mine.toml must be valid"),
    ("fake", 'title = "A fake"', "", "mine.toml must have title"),
    ("fake", "tests.experiments.fakes.Fake", "nodecopy.recommend.EASE", "class of [methods.weak] must be a"),
    ("fake", "fakes.Fake", "fakes.Missing", "class of [methods.weak] must be importable"),
    ("fake", "skill = 0.3", "skil = 0.3", "Did you mean skill?"),
    ("fake", 'title = "Weak"', 'title = "Weak"\non.karate = { paus = 1 }', "Did you mean pause?"),
    ("fake", "skill = 0.3", "skill = { class = 3 }", "skill in [methods.weak] must have a"),
    ("fake", "test = 16", "test = 16\nvisible_validation = [4, 5]", "of [protocol] must be at"),
    ("fake", 'title = "Weak"', 'title = "Weak"\nconditions = { labels = [1, 2] }', "must be some"),
    ("fake", "skill = 0.3", 'skill = { class = "nodecopy.NodeCopying", use = "embeddings" }', "must be one"),
    ("fake", "skill = 0.3", 'skill = { class = "GCN" }', "skill in [methods.weak] must be importable"),
    ("net", "fakes.build", "fakes.bild", "factory of base in [methods.own] must be importable"),
    ("net", "fakes.build", "fakes.Fake", "factory of base in [methods.own] must be a function"),
    ("net", "fakes.build", "fakes.TOML", "factory of base in [methods.own] must be a function"),
    ("net", "fakes.build", "fakes.load", "must be a function of the numbers of features"),
    ("net", '"tests.experiments.fakes.build"', "3", "factory of base in [methods.own] must be a path"),
    ("time", "absent = 86573", "missing = 1", "published of [seconds] must be one of absent"),
    ("attack", "nodecopy.attacks.DICE", "nodecopy.classify.GCN", "class of [attacks.dice] must be an"),
    ("attack", "budget = 1.0", "budget = 2.0", "budget of [attacks.dice] must be an"),
    ("attack", "budget = 1.0", "budgets = [1, -1]", "each of budgets of [attacks.dice] must be an"),
    ("attack", "budget = 1.0", "budget = 1\nbudgets = [1]", "[attacks.dice] must have a"),
    ("attack", 'title = "no attack"', 'title = "none"\nbudgets = [1]', "of [attacks.none-1] must be left"),
    ("attack", "budget = 1.0", 'budgets = [1]\n[attacks.dice-1]\ntitle = "none"', "attacks must be unique"),
    ("samples", 'reference = "observed"', "", "[protocol] must have reference"),
    ("samples", 'title = "Near"', 'title = "Near"\ngain_over = ["far"]', "of [methods.near] must be left"),
    ("books", "test = 0.2", "test = 0.95", "validation and test of [protocol] must be above"),
    ("splits", '"gowalla"]', '"library"]', "datasets of [protocol] must have a"),
    ("splits", 'verdict_of = "ease"', 'verdict_of = "other"', "verdict_of of [protocol] must be one"),
]


@pytest.mark.parametrize(("file", "old", "new", "fragment"), MISTAKES)
def test_a_mistake_in_a_file_is_named(file: str, old: str, new: str, fragment: str) -> None:
    assert old in FILES[file]
    with pytest.raises(InputError, match=re.escape(fragment)):
        config.parse(FILES[file].replace(old, new, 1 if file == "samples" else -1), "mine", trust=True)
