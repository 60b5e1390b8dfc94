"""Summaries of cells, and the tables that are rendered from them."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import replace

import pytest
from scipy import stats

from nodecopy.experiments import rendering
from nodecopy.experiments.rendering import Results, _find_best, compare_with_published, summarise
from nodecopy.experiments.spec import Column, Published
from tests.experiments.conftest import Fill
from tests.experiments.fakes import TOML, column, make_experiment

WEAK = [60.0, 61, 62, 63, 64, 65]
STRONG = [61.0, 63, 65, 67, 69, 71]


def test_a_cell_by_hand(fill: Fill) -> None:
    table = make_experiment()
    store = fill(table, {("weak", 1): WEAK, ("strong", 1): STRONG})
    results = summarise(table, store)
    place = ("karate", column("accuracy", labels=1))
    weak, strong = results.cells[*place, "weak"], results.cells[*place, "strong"]
    assert weak.n == 6
    assert weak.mean == pytest.approx(62.5)
    assert weak.std == pytest.approx(math.sqrt(3.5))  # (2.5^2 + 1.5^2 + 0.5^2) * 2 / 5
    assert (weak.published, weak.published_std) == (60, 5)
    assert weak.difference == pytest.approx(2.5)
    # 2 sqrt(3.5 / 6 + 25 / 6) + 0.05 = 4.4
    assert weak.verdict == "level"
    assert strong.verdict == "behind"
    assert [strong.mean, strong.difference] == pytest.approx([66, -24])
    assert weak.extra_scores == {"nll": 0.5, "brier": 0.25, "ece": 0.125}
    assert (weak.seconds, weak.seconds_total) == (1.5, 9)
    assert weak.values == pytest.approx(WEAK)
    assert weak.gains == ()
    (gain,) = strong.gains
    # Six positive differences: two of the 2^6 signs are as extreme.
    assert gain.over == "weak"
    assert [gain.gain, gain.p, gain.published] == pytest.approx([3.5, 2 / 64, 30])


def test_best_with_an_asterisk_where_it_is_significant(fill: Fill) -> None:
    table = make_experiment()
    mixed = [70.0, 59, 70, 60, 72, 66]
    store = fill(table, {("weak", 1): WEAK, ("strong", 1): STRONG, ("weak", 3): WEAK, ("strong", 3): mixed})
    cells = summarise(table, store).cells
    assert stats.wilcoxon(mixed, WEAK).pvalue > 0.05
    marks = {
        (dict(place[1].conditions)["labels"], place[2]): cell.significant
        for place, cell in cells.items()
        if cell.best
    }
    assert marks == {(1, "strong"): True, (3, "strong"): False}


def test_the_lowest_is_best_where_lower_is_better() -> None:
    """Six differences of one sign are significant."""
    losses = {name: dict(enumerate(values)) for name, values in (("weak", WEAK), ("strong", STRONG))}
    assert _find_best(losses, Column("nll", lower_is_better=True), "") == ("weak", True)
    assert _find_best(losses, Column("accuracy"), "") == ("strong", True)


def test_a_method_with_few_trials_is_not_called_best(fill: Fill) -> None:
    table = make_experiment()
    two, three = ([*STRONG[:n], *[None] * (6 - n)] for n in (2, 3))
    cells = summarise(
        table, fill(table, {("weak", 1): WEAK, ("strong", 1): two, ("weak", 3): WEAK, ("strong", 3): three})
    ).cells
    strong = [cells["karate", column("accuracy", labels=labels), "strong"] for labels in (1, 3)]
    assert [(cell.n, cell.best) for cell in strong] == [(2, False), (3, True)]


def test_tests_use_the_trials_that_both_have(fill: Fill) -> None:
    table = make_experiment()
    store = fill(table, {("weak", 1): [*WEAK[:5], None], ("strong", 1): [None, *STRONG[1:]]})
    strong = summarise(table, store).cells["karate", column("accuracy", labels=1), "strong"]
    assert strong.n == 5
    (gain,) = strong.gains
    assert gain.gain == pytest.approx(3.5)
    assert gain.p is None  # five trials can show nothing
    assert not strong.significant


def test_what_was_not_run_has_published_numbers_only(fill: Fill) -> None:
    table = make_experiment()
    results = summarise(table, fill(table, {("weak", 1): WEAK}))
    absent = results.cells["karate", column("accuracy", labels=1), "absent"]
    assert (absent.n, absent.mean, absent.published, absent.verdict) == (0, None, 50, None)
    assert [cell["method"] for cell in results.to_dict()["cells"]] == ["weak"]


@pytest.mark.parametrize(
    ("mean", "std", "n", "expected"),
    [
        (70.0, 3.0, 50, "level"),
        (71.2, 3.0, 50, "level"),  # 2 sqrt(9 / 50 + 9 / 50) + 0.05 = 1.25
        (71.3, 3.0, 50, "ahead"),
        (68.7, 3.0, 50, "behind"),
        (72.5, 3.0, 6, "level"),  # fewer trials tell less: 2 sqrt(9 / 6 + 9 / 50) + 0.05 = 2.64
        (72.7, 3.0, 6, "ahead"),
        (70.0, None, 1, None),
    ],
)
def test_verdict(mean: float, std: float | None, n: int, expected: str | None) -> None:
    assert compare_with_published(mean, std, n, Published(70.0, 3.0), 50) == expected


TABLE = make_experiment(text=TOML.replace('"Absent"', '"Ab_sent & Co | 5 %"'))


@pytest.fixture
def results(fill: Fill) -> Results:
    accuracies = {("weak", 1): WEAK, ("strong", 1): STRONG, ("weak", 3): [71.0, 69, 70, 70, 71, 69]}
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
    assert [row["labels"] + row["method"] + row["n"] for row in rows] == [
        *("1weak6", "1strong6", "1absent0", "3weak6", "3strong0", "3absent0")
    ]
    strong, absent = rows[1], rows[2]
    assert (strong["experiment"], strong["dataset"]) == ("fake", "karate")
    assert (strong["mean"], strong["std"], strong["verdict"]) == ("66", "3.74166", "behind")
    gains = ("gain_over_weak", "p_over_weak", "published_gain_over_weak")
    assert [strong[name] for name in gains] == ["3.5", "0.03125", "30"]
    assert (strong["seed"], strong["commit"], strong["date"]) == ("0", "v1-2-gabc", "2024-05-06")
    assert strong["machine"] == "processor abacus, cores 2, device cpu"
    assert [absent[name] for name in ("mean", "published", "commit", gains[0])] == ["", "50", "", ""]


TIMED = (
    TOML
    + """
[seconds]
over = "weak"
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
