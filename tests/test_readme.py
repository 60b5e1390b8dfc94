"""Run the snippets of the README and check its commands, links and numbers."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from nodecopy.cli import import_command
from nodecopy.experiments.toml import load

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text(encoding="utf-8")
RESULTS = README.parent / "results"

# Title of a row; results table, dataset, labels, attack and score; the methods without and with copying.
MEASURED = (
    ("accuracy, Cora, 5 labels per class", "table2 cora 5  accuracy", "gcn", "bgcn-copy"),
    ("accuracy, Citeseer, 5 labels per class", "table2 citeseer 5  accuracy", "gcn", "bgcn-copy"),
    ("accuracy at targets of Nettack, Cora", "table5 cora 20 nettack accuracy", "gcn", "copying"),
    ("accuracy at targets of Nettack, Citeseer", "table5 citeseer 20 nettack accuracy", "gcn", "copying"),
    ("recall@20, MovieLens 100k", "table6 ml-100k 0  recall@20", "ease", "copy-ease"),
    ("recall@20, Amazon CDs", "table6 amazon-cds 0  recall@20", "ease", "copy-ease"),
)
WITH_COPYING = re.compile("copy|ebpr|sgbpr|fusion")


def test_snippets_run_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    snippets = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    names: dict[str, object] = {}
    for snippet in snippets:
        exec(compile(snippet, str(README), "exec"), names)
        assert len([line for line in snippet.splitlines() if line.strip()]) <= 5
    assert len(snippets) >= 5
    assert "edge_overlap" in capsys.readouterr().out


def test_commands_and_options_exist() -> None:
    command_lines = re.findall(r"^nodecopy (\w+)(.*)$", TEXT, re.MULTILINE)
    assert command_lines
    for name, rest in command_lines:
        allowed = {option for parameter in import_command(name).params for option in parameter.opts}
        used = set(re.findall(r"(?<!\S)(--?[a-z][\w-]*)", rest.partition("#")[0]))
        assert used <= allowed


def test_link_targets_exist() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", TEXT):
        assert target.startswith("https://") or (README.parent / target).exists(), target


def results_table() -> str:
    """Return the results table of the README: our means, with those of the paper where it has them."""
    lines = [
        "| our mean in percent (the paper's, where printed) | baseline | the same with node copying "
        "| best of all methods without copying | best of all methods with copying |",
        "| --- | --- | --- | --- | --- |",
    ]
    for title, which, *methods in MEASURED:
        table, dataset, labels, attack, score = which.split(" ")
        with (RESULTS / f"{table}.csv").open(encoding="utf-8", newline="") as file:
            rows = {
                row["method"]: row
                for row in csv.DictReader(file)
                if (row["dataset"], row.get("labels", "0"), row.get("attack", ""), row["score"])
                == (dataset, labels, attack, score)
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
            published = rows[method]["published"]
            paper = f" (paper {float(published):.1f})" if published else ""
            cells.append(f"{titles[method]} {means[method]:.1f}{paper}")
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def test_numbers_agree_with_the_results() -> None:
    match = re.search(r"<!-- results -->\n(.*?)\n<!-- end of results -->", TEXT, re.DOTALL)
    assert match is not None
    assert match[1] == results_table()


def test_readme_fits_on_two_screens() -> None:
    assert len(TEXT.splitlines()) <= 110
