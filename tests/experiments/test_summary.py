from __future__ import annotations

import json
import math

import pytest
from scipy import stats

from nodecopy.experiments.spec import Column, Published
from nodecopy.experiments.summary import Gain, _find_best, compare_with_published, summarise
from tests.experiments.conftest import Fill
from tests.experiments.fakes import column, make_experiment

WEAK = [60.0, 61, 62, 63, 64, 65]
STRONG = [61.0, 63, 65, 67, 69, 71]


def test_a_cell_by_hand(fill: Fill) -> None:
    table = make_experiment()
    store = fill(table, {("weak", 1): WEAK, ("strong", 1): STRONG})
    results = summarise(table, store)
    weak, strong = (
        results.cells["karate", column("accuracy", labels=1), "weak"],
        results.cells["karate", column("accuracy", labels=1), "strong"],
    )
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
        (dict(place[1].conditions)["labels"], place[2]): (cell.best, cell.significant)
        for place, cell in cells.items()
    }
    assert marks == {
        (1, "weak"): (False, False),
        (1, "strong"): (True, True),
        (1, "absent"): (False, False),
        (3, "weak"): (False, False),
        (3, "strong"): (True, False),
        (3, "absent"): (False, False),
    }


def test_the_lowest_is_best_where_lower_is_better() -> None:
    """Six differences of one sign are significant."""
    losses = {name: dict(enumerate(values)) for name, values in (("weak", WEAK), ("strong", STRONG))}
    assert _find_best(losses, Column("nll", lower_is_better=True), "") == ("weak", True)
    assert _find_best(losses, Column("accuracy"), "") == ("strong", True)


def test_a_method_alone_is_not_called_best(fill: Fill) -> None:
    table = make_experiment()
    cell = summarise(table, fill(table, {("weak", 1): WEAK})).cells[
        "karate", column("accuracy", labels=1), "weak"
    ]
    assert (cell.best, cell.significant) == (False, False)


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


def test_equal_results_are_not_a_gain(fill: Fill) -> None:
    table = make_experiment()
    store = fill(table, {("weak", 1): WEAK, ("strong", 1): WEAK})
    cells = summarise(table, store).cells
    assert cells["karate", column("accuracy", labels=1), "strong"].gains == (
        Gain("weak", 0, 1, published=30),
    )
    assert not any(cell.significant for cell in cells.values())


def test_one_trial_has_no_deviation_and_no_verdict(fill: Fill) -> None:
    table = make_experiment()
    cell = summarise(table, fill(table, {("weak", 1): [60.0]})).cells[
        "karate", column("accuracy", labels=1), "weak"
    ]
    assert (cell.n, cell.std, cell.verdict) == (1, None, None)


def test_what_was_not_run_has_published_numbers_only(fill: Fill) -> None:
    table = make_experiment()
    results = summarise(table, fill(table, {("weak", 1): WEAK}))
    absent = results.cells["karate", column("accuracy", labels=1), "absent"]
    assert (absent.n, absent.mean, absent.published, absent.verdict) == (0, None, 50, None)
    assert [cell["method"] for cell in results.to_dict()["cells"]] == ["weak"]


def test_trials_beyond_the_chosen_are_left_out(fill: Fill) -> None:
    table = make_experiment()
    store = fill(table, {("weak", 1): WEAK})
    assert summarise(table.narrow(trials=2), store).cells[
        "karate", column("accuracy", labels=1), "weak"
    ].mean == pytest.approx(60.5)


def test_the_dictionary_is_ready_for_json(fill: Fill) -> None:
    table = make_experiment()
    content = json.loads(json.dumps(summarise(table, fill(table, {("strong", 1): STRONG})).to_dict()))
    assert set(content) == {"experiment", "seed", "cells", "provenance"}
    (cell,) = content["cells"]
    assert {"dataset", "labels", "method", "mean", "std", "n", "published", "seconds"} <= set(cell)
    assert (cell["dataset"], cell["labels"], cell["published"]) == ("karate", 1, 90)
    assert cell["provenance"]["machine"] == ["processor abacus, cores 2, device cpu"]
    assert content["provenance"]["commit"] == ["v1-2-gabc"]
    assert content["provenance"]["date"] == ["2024-05-06"]


@pytest.mark.parametrize(
    ("mean", "std", "n", "expected"),
    [
        (70.0, 3.0, 50, "level"),
        (71.2, 3.0, 50, "level"),  # 2 sqrt(9 / 50 + 9 / 50) + 0.05 = 1.25
        (71.3, 3.0, 50, "ahead"),
        (68.8, 3.0, 50, "level"),
        (68.7, 3.0, 50, "behind"),
        (72.5, 3.0, 6, "level"),  # fewer trials tell less: 2 sqrt(9 / 6 + 9 / 50) + 0.05 = 2.64
        (72.7, 3.0, 6, "ahead"),
        (70.0, None, 1, None),
    ],
)
def test_verdict(mean: float, std: float | None, n: int, expected: str | None) -> None:
    assert compare_with_published(mean, std, n, Published(70.0, 3.0), 50) == expected


def test_rounding_is_no_difference() -> None:
    assert compare_with_published(70.049, 0.0, 50, Published(70.0, 0.0), 50) == "level"
    assert compare_with_published(70.06, 0.0, 50, Published(70.0, 0.0), 50) == "ahead"
    assert compare_with_published(70.0, 1.0, 50, None, 50) is None
