"""Experiments of one's own, built upon those of the paper; the documented example is run as written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nodecopy.errors import InputError
from nodecopy.experiments import toml
from nodecopy.experiments.runner import run
from nodecopy.experiments.store import Store
from nodecopy.experiments.summary import summarise

PAGE = Path(__file__).parents[2] / "docs/experiments.md"


def example(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    assert found
    return found[1]


def test_the_documented_experiment_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "votes.py").write_text(example("python"), encoding="utf-8")
    (tmp_path / "mine.toml").write_text(example("toml"), encoding="utf-8")
    with pytest.raises(InputError, match=r"class of \[methods.votes\] must be importable; .* no votes"):
        toml.load(tmp_path / "mine.toml")
    monkeypatch.syspath_prepend(tmp_path)
    experiment = toml.load(tmp_path / "mine.toml").narrowed(labels=[5], methods=["votes"])
    store = Store(tmp_path / "store")
    run(experiment, store)
    (summary,) = summarise(experiment, store).cells.values()
    assert len(summary.values) == 20
    assert summary.mean is not None
    assert summary.mean > 80


def test_an_empty_table_is_that_of_the_base() -> None:
    base = {method.name: method for method in toml.load("table2").methods}
    found = toml.parse(example("toml").replace("votes.Votes", "nodecopy.classify.MLP"), "mine").methods
    assert [method.name for method in found] == ["gcn", "bgcn-copy", "votes"]
    assert (found[0].path, found[0].settings) == (base["gcn"].path, base["gcn"].settings)
    assert found[1].gain_over == ("gcn",)  # the base compares it with gcn-400 too, which is not here
    with pytest.raises(InputError, match=r"an empty table of \[methods\] .* Did you mean gcn"):
        toml.parse('base = "table2"\ntitle = "x"\n[methods.gnc]', "mine")
    for nothing in ("0", "false", "[]"):
        with pytest.raises(InputError, match=r"\[methods.gcn\]"):
            toml.parse(f'base = "table2"\ntitle = "x"\n[methods]\ngcn = {nothing}', "mine")
    with pytest.raises(InputError, match=r"\[methods\] of mine.toml must have a method"):
        toml.parse('base = "table2"\ntitle = "x"\n[methods]', "mine")


@pytest.mark.parametrize("name", toml.names())
def test_any_experiment_may_be_a_base(name: str) -> None:
    own, base = toml.parse(f'base = "{name}"\ntitle = "x"', "mine"), toml.load(name)
    assert own.protocol == base.protocol
    assert [(one.name, one.path, one.settings) for one in own.methods] == [
        (one.name, one.path, one.settings) for one in base.methods
    ]


def test_what_the_base_says_of_other_datasets_is_left_out() -> None:
    text = 'base = "table2"\ntitle = "x"\n[protocol]\ndatasets = ["coauthor-cs"]'
    scholars = toml.parse(text, "mine")
    assert "dfnet-att" not in [method.name for method in scholars.methods]
    assert {cell.largest_component for cell in scholars.cells(0)} == {True}
    papers = toml.parse(text.replace("coauthor-cs", "citeseer"), "mine")
    assert {cell.largest_component for cell in papers.cells(0)} == {False}
    (dfnet,) = (method for method in papers.methods if method.name == "dfnet-att")
    assert (dfnet.datasets, list(dfnet.on)) == (("citeseer",), ["citeseer"])
    for wrong in ("5", "[]", "[[1]]", '["cora", "moon"]'):
        with pytest.raises(InputError, match=r"datasets of \[protocol\]"):
            toml.parse(text.replace('["coauthor-cs"]', wrong), "mine")


def test_numbers_of_the_paper_are_not_taken() -> None:
    own = toml.parse('base = "table4"\ntitle = "x"', "mine")
    assert own.published == {}
    assert own.timing is None
