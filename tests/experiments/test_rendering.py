from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest

from nodecopy.errors import InputError
from nodecopy.experiments import rendering
from nodecopy.experiments.store import Store
from nodecopy.experiments.summary import Results, summarise
from tests.experiments.conftest import Fill
from tests.experiments.fakes import TOML, make_experiment

TABLE = make_experiment(text=TOML.replace('"Absent"', '"Ab_sent & Co | 5 %"'))


@pytest.fixture
def results(fill: Fill) -> Results:
    accuracies = {
        ("weak", 1): [60.0, 61, 62, 63, 64, 65],
        ("strong", 1): [61.0, 63, 65, 67, 69, 71],
        ("weak", 3): [71.0, 69, 70, 70, 71, 69],
    }
    return summarise(TABLE, fill(TABLE, accuracies))


def test_markdown(results: Results) -> None:
    text = rendering.render_markdown(results)
    assert text.startswith("# fake: A fake\n\n- In percent")
    assert text[text.index("## karate") :] == (
        "## karate\n"
        "\n"
        "| method | 1 label | paper | verdict | 3 labels | paper | verdict |\n"
        "| --- | --- | --- | --- | --- | --- | --- |\n"
        "| Weak | 62.5 ± 1.9 | 60.0 ± 5.0 | level +2.5 | 70.0 ± 0.9 | 70.0 ± 4.0 | level +0.0 |\n"
        "| Strong | **66.0 ± 3.7**\\* | 90.0 ± 2.0 | behind -24.0 | - | 95.0 ± 1.0 | - |\n"
        "| Ab\\_sent \\& Co \\| 5 % | - | 50.0 ± 9.0 | - | - | 51.0 ± 9.0 | - |\n"
        "\n"
        "| gain | 1 label | 3 labels |\n"
        "| --- | --- | --- |\n"
        "| Strong over Weak | +3.5 (p = 0.031, paper +30.0) | - |\n"
        "\n"
        "- trials: 6\n"
        "- seed: 0\n"
        "- commit: v1-2-gabc\n"
        "- versions: python 3.11, numpy 2.0\n"
        "- machine: processor abacus, cores 2, device cpu\n"
        "- date: 2024-05-06\n"
    )


def test_latex(results: Results) -> None:
    text = rendering.render_latex(results)
    comments = [line for line in text.splitlines() if line.startswith("%")]
    assert "% commit: v1-2-gabc" in comments
    assert text[text.index(r"\begin") :] == (
        "\\begin{tabular}{lllllll}\n"
        "\\toprule\n"
        "method & 1 label & paper & verdict & 3 labels & paper & verdict \\\\\n"
        "\\midrule\n"
        "\\multicolumn{7}{l}{\\textit{karate}} \\\\\n"
        "Weak & 62.5$\\pm$1.9 & 60.0$\\pm$5.0 & level +2.5 & 70.0$\\pm$0.9 & 70.0$\\pm$4.0 "
        "& level +0.0 \\\\\n"
        "Strong & \\textbf{66.0$\\pm$3.7}* & 90.0$\\pm$2.0 & behind -24.0 & - & 95.0$\\pm$1.0 & - \\\\\n"
        "Ab\\_sent \\& Co \\textbar{} 5 \\% & - & 50.0$\\pm$9.0 & - & - & 51.0$\\pm$9.0 & - \\\\\n"
        "\\bottomrule\n"
        "\\end{tabular}\n"
    )


def test_csv(results: Results) -> None:
    rows = list(csv.DictReader(io.StringIO(rendering.render_csv(results))))
    assert [(row["labels"], row["method"], row["n"]) for row in rows] == [
        ("1", "weak", "6"),
        ("1", "strong", "6"),
        ("1", "absent", "0"),
        ("3", "weak", "6"),
        ("3", "strong", "0"),
        ("3", "absent", "0"),
    ]
    strong, absent = rows[1], rows[2]
    assert (strong["experiment"], strong["dataset"]) == ("fake", "karate")
    assert (strong["mean"], strong["std"], strong["verdict"]) == ("66", "3.74166", "behind")
    assert (strong["gain_over_weak"], strong["p_over_weak"], strong["published_gain_over_weak"]) == (
        "3.5",
        "0.03125",
        "30",
    )
    assert (strong["seed"], strong["commit"], strong["date"]) == ("0", "v1-2-gabc", "2024-05-06")
    assert strong["machine"] == "processor abacus, cores 2, device cpu"
    assert (absent["mean"], absent["published"], absent["commit"], absent["gain_over_weak"]) == (
        "",
        "50",
        "",
        "",
    )


def test_terminal(results: Results) -> None:
    headings, rows = rendering.main_grid(results, "karate", rendering.TERMINAL, TABLE.task.columns)
    assert all(len(row) == len(headings) for row in rows)
    assert rows[1][1] == "66.0 ± 3.7 best*"


def test_nothing_run_is_said(tmp_path: Path) -> None:
    results = summarise(TABLE, Store(tmp_path))
    assert "- commit: nothing was run" in rendering.render_markdown(results)
    assert "| Weak | - | 60.0 ± 5.0 | - |" in rendering.render_markdown(results)


def test_one_trial(fill: Fill) -> None:
    results = summarise(TABLE, fill(TABLE, {("weak", 1): [60.0]}))
    assert "| Weak | 60.0 (n = 1) | 60.0 ± 5.0 | one trial only |" in rendering.render_markdown(results)


TIMED = (
    TOML
    + """
[seconds]
over = "weak"
labels = 3
trials = 3
[seconds.published]
weak = 30
absent = 86573
"""
)


def test_seconds_and_their_ratios(fill: Fill) -> None:
    table = make_experiment(text=TIMED)
    store = fill(table, {("weak", 3): [70.0] * 5, ("strong", 3): [80.0], ("strong", 1): [60.0]})
    for trial, seconds in enumerate([9.0, 2.0, 1.0, 50.0, 50.0]):  # a slow start; the last two were not alone
        cell = next(one for one in table.cells(0) if (one.method, one.conditions["labels"]) == ("weak", 3))
        record = store.read(cell, trial)
        assert record is not None
        store.write(cell, replace(record, seconds=seconds))
    results = summarise(table, store)
    headings, rows = rendering.time_grid(results, "karate", rendering.TERMINAL, table.task.columns)
    assert headings == ["seconds per trial", "3 labels", "ratio to Weak", "paper", "paper's ratio"]
    assert rows == [
        ["Weak", "1.00", "1.00", "30.0", "1.00"],
        ["Strong", "1.50", "1.50", "-", "-"],
        ["Absent", "-", "-", "86573", "2886"],
    ]
    text = rendering.render_markdown(results)
    assert "| Absent | - | - | 86573 | 2886 |" in text
    assert "Seconds: the fewest among trials 1 to 3." in text
    without_column = summarise(table.narrow(methods=["strong"], labels=[1]), store)
    assert rendering.time_grid(without_column, "karate", rendering.TERMINAL, table.task.columns[:1]) == (
        [],
        [],
    )
    assert "Seconds:" not in rendering.render_markdown(without_column)


def test_a_title_cannot_leave_its_place(results: Results) -> None:
    title = "a\n\\input{b} | <script>\x1b"
    methods = tuple(replace(method, title=title) for method in TABLE.methods)
    results = replace(results, experiment=replace(TABLE, title=title, methods=methods))
    latex, markdown = rendering.render_latex(results), rendering.render_markdown(results)
    assert r"% fake: a \input{b} | <script>\x1b" in latex.splitlines()
    escaped = r"a \textbackslash{}input\{b\} \textbar{} \textless{}script\textgreater{}\textbackslash{}x1b"
    assert f"\n{escaped} & " in latex
    assert r"# fake: a \\input{b} \| \<script\>\\x1b" in markdown.splitlines()
    assert "\n" + r"| a \\input{b} \| \<script\>\\x1b | " in markdown


def test_heading_of_seconds_is_escaped(fill: Fill) -> None:
    table = make_experiment(text=TIMED)
    assert table.timing is not None
    column = replace(table.timing.column, heading="a & b")
    results = summarise(replace(table, timing=replace(table.timing, column=column)), fill(table, {}))
    headings, _ = rendering.time_grid(results, "karate", rendering.LATEX, table.task.columns)
    assert headings[1] == r"a \& b"


def test_without_timing_there_are_no_seconds(results: Results) -> None:
    assert rendering.time_grid(results, "karate", rendering.TERMINAL, TABLE.task.columns) == ([], [])
    assert "Seconds:" not in rendering.render_markdown(results)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('over = "weak"', 'over = "week"', r"over of \[seconds\] must be one of .*Did you mean weak"),
        ("labels = 3", "labels = 4", r"labels of \[seconds\] must be one of 1, 3; got 4"),
        ("trials = 3", "trials = 0", r"trials of \[seconds\] must be"),
        ("weak = 30", "week = 30", r"published of \[seconds\] must be one of"),
        ("weak = 30", "weak = -1", r"weak of \[seconds\] must be a number of at least 0"),
    ],
)
def test_seconds_that_cannot_be(old: str, new: str, message: str) -> None:
    head, tail = TIMED.split("[seconds]\n", 1)
    assert old in tail
    with pytest.raises(InputError, match=message):
        make_experiment(text=head + "[seconds]\n" + tail.replace(old, new))
