"""Experiments read from files: mistakes are named, and a file can build on another."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from nodecopy.errors import InputError
from nodecopy.experiments import config as toml
from nodecopy.experiments.runner import run
from nodecopy.experiments.store import Store
from nodecopy.experiments.summary import summarise
from tests.experiments.fakes import TOML, make_experiment

PAGE = Path(__file__).parents[2] / "docs/experiments.md"


@cache
def load(name: str) -> Any:
    return toml.load(name)


def parse(text: str) -> Any:
    return toml.parse(text, "mine")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("trials = 6", "trails = 6", r"key of \[protocol\] must be one of .*trails.*Did you mean trials"),
        ("trials = 6", "", r"\[protocol\] must have trials"),
        ("trials = 6", "trials = 0", r"trials of \[protocol\] must be an integer of at least 1; got 0"),
        ('"karate"', '"karat"', r"datasets of \[protocol\] must be one of .*Did you mean karate"),
        ('"karate"', '"karate", "ml-100k"', r"datasets of \[protocol\] must be one of .*got 'ml-100k'"),
        ('"classify"', '"clasify"', r"task of fake.toml must be one of .*Did you mean classify"),
        ('task = "classify"', "", r"fake.toml must have task; it has title, protocol, methods"),
        ('"classify"', '"recommend"', r"key of \[protocol\] must be one of .*got 'labels'"),
        (
            "[methods.weak]",
            "[attacks.a]\n[methods.weak]",
            r"key of fake.toml must be one of .*got 'attacks'",
        ),
        ("test = 16", 'test = 16\nscores = ["auc"]', r"key of \[protocol\] must be one of .*got 'scores'"),
        ('title = "Weak"', 'title = "Weak"\nsearch = [{{}}]', r"search of \[methods.weak\] must be left out"),
        ('title = "A fake"', 'title = "A fake"\nnotes = [1]', r"notes of fake.toml must be a text; got 1"),
        ("labels = [1, 3]", "labels = [3, 3]", r"labels of \[protocol\] must be a list of different"),
        ("test = 16", "test = 16\nwithout_test_edges = 1", r"must be true or false; got 1"),
        ("test = 16", 'test = 16\nlargest_component = ["cora"]', r"must be one of karate; got 'cora'"),
        (
            "test = 16",
            'test = 16\nlargest_component = "karate"',
            r"largest_component of \[protocol\] must be a list",
        ),
        ('title = "Weak"', 'titel = "Weak"', r"key of \[methods.weak\] .*Did you mean title"),
        ('title = "Weak"', 'title = ""', r"title of \[methods.weak\] must be a text"),
        ("fakes.Fake", "fakes:Fake", r"class of \[methods.weak\] must be a path such as module.Class"),
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
        ('title = "A fake"', 'title = "A fake"\ntitles = 1', r"key of fake.toml .*Did you mean title"),
        ('title = "A fake"', "", r"fake.toml must have title"),
        ('title = "A fake"', "titel = 1", r"key of fake.toml .*got 'titel'. Did you mean title"),
        ("task =", "tsak =", r"key of fake.toml .*got 'tsak'. Did you mean task"),
        ("[protocol]", "[protocl]", r"key of fake.toml .*got 'protocl'. Did you mean protocol"),
        ("fakes.Fake", "fakes.Fak", r"must be importable; got .*Did you mean Fake"),
        ("tests.experiments.fakes.Fake", "tests.experiments.fakes", r"must be a class; got .*a module"),
        (
            "tests.experiments.fakes.Fake",
            "nodecopy.recommend.EASE",
            r"class of \[methods.weak\] must be a classifier; got nodecopy.recommend.EASE",
        ),
        ("fakes.Fake", "fakes.Missing", r"class of \[methods.weak\] must be importable; got .*Missing"),
        ("skill = 0.3", "skil = 0.3", r"a setting of \[methods.weak\] .*got 'skil'. Did you mean skill"),
        (
            'title = "Weak"',
            'title = "Weak"\non.karate = {{ paus = 1 }}',
            r"a setting of \[methods.weak\] .*got 'paus'. Did you mean pause",
        ),
        ("skill = 0.3", "skill = {{ class = 3 }}", r"skill in \[methods.weak\] must have a class"),
        (
            "test = 16",
            "test = 16\nvisible_validation = [4, 5]",
            r"visible_validation of \[protocol\] must be at most 4, the key validation; got 5",
        ),
        (
            'title = "Weak"',
            'title = "Weak"\nconditions = {{ label = [1] }}',
            r"a key of conditions of \[methods.weak\] .*Did you mean labels",
        ),
        (
            'title = "Weak"',
            'title = "Weak"\nconditions = {{ labels = [1, 2] }}',
            r"labels of conditions of \[methods.weak\] must be some of 1, 3; got \[1, 2\]",
        ),
        (
            "skill = 0.3",
            'skill = {{ class = "nodecopy.NodeCopying", kep = 0.1 }}',
            r"a setting of skill in \[methods.weak\] .*got 'kep'. Did you mean keep",
        ),
        (
            "skill = 0.3",
            'skill = {{ class = "nodecopy.NodeCopying", use = "embeddings" }}',
            r"use of skill in \[methods.weak\] must be one of fitted-once; got 'embeddings'",
        ),
    ],
)
def test_a_mistake_in_a_file_is_named(old: str, new: str, message: str) -> None:
    assert old in TOML
    with pytest.raises(InputError, match=message):
        make_experiment(text=TOML.replace(old, new))


def test_files_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(TOML.format(pause=0, log=""), encoding="utf-8")
    assert toml.load(path).name == "mine"
    with pytest.raises(InputError, match=r"must be a TOML file that can be read"):
        toml.load(tmp_path / "other.toml")
    with pytest.raises(
        InputError,
        match=r"must be one of .*table1, table1-all, .*table6.*; got 'table22'.* Did you mean table2",
    ):
        load("table22")


def read_example(language: str) -> str:
    match = re.search(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    assert match
    return match[1]


def test_the_documented_experiment_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "neighbour_vote.py").write_text(read_example("python"), encoding="utf-8")
    (tmp_path / "mine.toml").write_text(read_example("toml"), encoding="utf-8")
    with pytest.raises(
        InputError,
        match=r"class of \[methods.neighbour-vote\] must be importable; .*No module named 'neighbour_vote'",
    ):
        toml.load(tmp_path / "mine.toml")
    monkeypatch.syspath_prepend(tmp_path)
    experiment = toml.load(tmp_path / "mine.toml").narrow(labels=[5], methods=["neighbour-vote"])
    store = Store(tmp_path / "store")
    run(experiment, store)
    (summary,) = summarise(experiment, store).cells.values()
    assert len(summary.values) == 20
    assert summary.mean is not None
    assert summary.mean > 80


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
        toml.parse(text, "mine", trust=False)
