from __future__ import annotations

import os
from threading import get_ident
from typing import Any

import pytest

from nodecopy._core.parallel import create_pool, map_on_cores, n_threads, report_progress, track


def test_the_outermost_computation_reports_its_progress() -> None:
    reports: list[tuple[Any, ...]] = []
    with report_progress(lambda *report: reports.append(report)):
        for _ in track([1, 2], "epoch"):
            list(track([1, 2], "batch"))
    assert reports == [("epoch 1 of 2", 0, 2), ("epoch 2 of 2", 1, 2), ("epoch 2 of 2", 2, 2)]


def test_an_error_ends_the_report() -> None:
    lines: list[str] = []

    def divide() -> None:
        for number in track([1, 0], "item"):
            1 / number

    with report_progress(lambda name, *_: lines.append(name)), pytest.raises(ZeroDivisionError):
        divide()
    list(track("a", "later"))
    assert lines == ["item 1 of 2", "item 2 of 2"]


def test_threads_of_a_pool_do_not_start_threads() -> None:
    assert n_threads(1) == 1
    assert n_threads(10_000) == os.cpu_count()
    with create_pool(2) as pool:
        assert list(pool.map(n_threads, [8, 8, 8])) == [1, 1, 1]
    assert n_threads(10_000) == os.cpu_count()


def test_tasks_run_on_threads_of_their_own_but_not_inside_a_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 4)

    def threads(limit: int) -> set[int]:
        return set(map_on_cores(lambda _: get_ident(), range(3), limit)) - {get_ident()}

    assert threads(8)
    assert not threads(1)
    with create_pool(1) as pool:
        assert list(pool.map(threads, [8])) == [set()]
    assert list(map_on_cores(lambda number: number * number, range(5))) == [0, 1, 4, 9, 16]
