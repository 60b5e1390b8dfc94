"""The README's snippets run as printed, its commands exist, its numbers are those of the results."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from typer.main import get_command

from nodecopy.cli import app
from nodecopy.experiments.toml import load

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text(encoding="utf-8")
RESULTS = README.parent / "results"

# What is measured; table, dataset, labels, attack and score; a method, and what copying makes of it.
MEASURED = (
    ("accuracy, Cora, 5 labels per class", "table2 cora 5  accuracy", "gcn", "bgcn-copy"),
    ("accuracy, Citeseer, 5 labels", "table2 citeseer 5  accuracy", "gcn", "bgcn-copy"),
    ("at nodes under Nettack, Cora", "table5 cora 20 nettack accuracy", "gcn", "copying"),
    ("the same, Citeseer", "table5 citeseer 20 nettack accuracy", "gcn", "copying"),
    ("recall@20, MovieLens 100k", "table6 ml-100k 0  recall@20", "ease", "copy-ease"),
    ("recall@20, Amazon CDs", "table6 amazon-cds 0  recall@20", "ease", "copy-ease"),
)
WITH_COPYING = re.compile("copy|ebpr|sgbpr|fusion")


def test_snippets_run_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    snippets = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    names: dict[str, object] = {}
    for snippet in snippets:
        exec(compile(snippet, str(README), "exec"), names)
        assert len([line for line in snippet.splitlines() if line.strip()]) <= 5
    assert len(snippets) >= 5
    assert "edge_overlap" in capsys.readouterr().out


def test_commands_and_options_exist() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    lines = re.findall(r"^nodecopy (\w+)(.*)$", TEXT, re.MULTILINE)
    assert lines
    for name, rest in lines:
        known = {option for parameter in commands[name].params for option in parameter.opts}
        used = set(re.findall(r"(?<!\S)(--?[a-z][\w-]*)", rest.partition("#")[0]))
        assert used <= known


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", TEXT):
        assert target.startswith("https://") or (README.parent / target).exists(), target


def measured() -> str:
    """The table as the results have it: ours, and the paper's where it prints one."""
    lines = [
        "| in percent | without copying | with copying | best without | best with |",
        "| --- | --- | --- | --- | --- |",
    ]
    for title, which, *methods in MEASURED:
        table, dataset, labels, attack, score = which.split(" ")
        with (RESULTS / f"{table}.csv").open(encoding="utf-8", newline="") as file:
            rows = {
                row["method"]: row
                for row in csv.DictReader(file)
                if [row[key] for key in ("dataset", "labels", "attack", "score")]
                == [dataset, labels, attack, score]
            }
        full = max(int(row["n"]) for row in rows.values())
        means = {name: float(row["mean"]) for name, row in rows.items() if int(row["n"]) == full}
        for copying in (False, True):
            methods.append(
                max((n for n in means if bool(WITH_COPYING.search(n)) == copying), key=means.__getitem__)
            )
        titles = {method.name: method.title for method in load(table).methods}
        cells = []
        for method in methods:
            paper = rows[method]["published"]
            told = f" (paper {float(paper):.1f})" if paper else ""
            cells.append(f"{titles[method]} {means[method]:.1f}{told}")
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def test_numbers_are_those_of_the_results() -> None:
    written = re.search(r"<!-- results -->\n(.*?)\n<!-- end of results -->", TEXT, re.DOTALL)
    assert written is not None
    assert written[1] == measured()


def test_it_fits_two_screens() -> None:
    assert len(TEXT.splitlines()) <= 110
