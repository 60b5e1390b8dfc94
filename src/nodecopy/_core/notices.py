"""Decisions made for the user, and warnings about data that are probably not what the user meant.

A decision (a header, a law, a scaling) can be overruled by a parameter. It is logged at level INFO to the
logger ``nodecopy``; the command line prints it. A warning is a :class:`~nodecopy.errors.DataWarning`.
To see decisions in Python: ``logging.basicConfig(); logging.getLogger("nodecopy").setLevel("INFO")``.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from nodecopy._core.hints import Hint
from nodecopy.errors import DataWarning

LOGGER = logging.getLogger("nodecopy")
PACKAGE = str(Path(__file__).parent.parent)
_FILTERS: ContextVar[tuple[Callable[[str], bool], ...]] = ContextVar("filters of decisions", default=())


def log_decision(message: str, *hints: Hint) -> None:
    """Log what was decided for the user and why; ``hints`` name the parameters that change it.

    The record has both as attributes, ``decision`` and ``hints``, beside its text.
    """
    text = " ".join(map(str, (message, *hints)))
    if all(is_wanted(text) for is_wanted in _FILTERS.get()):
        LOGGER.info(text, extra={"decision": message, "hints": hints})


@contextmanager
def mute_decisions() -> Iterator[None]:
    """Log no decisions, such as those about each of many files that the package wrote itself."""
    with _filter_decisions(lambda text: False):
        yield


@contextmanager
def log_decisions_once() -> Iterator[None]:
    """Log the same decision once, such as that of several classifiers about the same features."""
    logged: set[str] = set()

    def is_new(text: str) -> bool:
        is_repeated = text in logged
        logged.add(text)
        return not is_repeated

    with _filter_decisions(is_new):
        yield


@contextmanager
def _filter_decisions(is_wanted: Callable[[str], bool]) -> Iterator[None]:
    """Log only those decisions whose text is wanted, and all decisions of other threads."""
    token = _FILTERS.set((*_FILTERS.get(), is_wanted))
    try:
        yield
    finally:
        _FILTERS.reset(token)


@contextmanager
def mute_data_warnings() -> Iterator[None]:
    """Issue no :class:`DataWarning`, such as those about each of many graphs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        yield


def warn_about_data(message: str, *hints: Hint) -> None:
    """Issue a :class:`DataWarning` at the first caller outside the package."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(DataWarning(message, *hints), stacklevel=level)
