"""Progress of long computations, for those who show it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

T = TypeVar("T")
Report: TypeAlias = Callable[[str, int, int], None]
"""Takes the name of an item, how many items are finished, and how many there are."""


@dataclass
class _Listener:
    """Who shows the progress, and whether someone reports to it already."""

    report: Report
    is_busy: bool = False


_listener: ContextVar[_Listener | None] = ContextVar("listener", default=None)


@contextmanager
def report_progress(report: Report) -> Iterator[None]:
    """Call ``report`` before each item of the outermost :func:`track`, and after the last.

    Examples
    --------
    >>> with report_progress(print):
    ...     for epoch in track([1, 2], "epoch"):
    ...         for batch in track([1, 2], "batch"):  # is a part of the epoch
    ...             pass
    epoch 1 of 2 0 2
    epoch 2 of 2 1 2
    epoch 2 of 2 2 2
    """
    token = _listener.set(_Listener(report))
    try:
        yield
    finally:
        _listener.reset(token)


def track(items: Sequence[T], what: str) -> Iterator[T]:
    """Yield items, and report the progress if someone asked for it; ``what`` is the name of an item."""
    listener, n = _listener.get(), len(items)
    if listener is None or listener.is_busy or not n:
        yield from items
        return
    listener.is_busy = True
    try:
        for number, item in enumerate(items):
            listener.report(f"{what} {number + 1} of {n}", number, n)
            yield item
        listener.report(f"{what} {n} of {n}", n, n)
    finally:
        listener.is_busy = False
