"""Decisions made for the user, and warnings about data that are probably not what the user meant.

A decision (a header, a law, a scaling) can be overruled by a parameter. It is logged at level INFO to the
logger ``nodecopy``; the command line prints it. A warning is a :class:`~nodecopy.errors.DataWarning`.
To see decisions in Python: ``logging.basicConfig(); logging.getLogger("nodecopy").setLevel("INFO")``.
"""

from __future__ import annotations

import logging
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from nodecopy._core.hints import Hint
from nodecopy.errors import DataWarning

LOGGER = logging.getLogger("nodecopy")
PACKAGE = str(Path(__file__).parent.parent)


def log_decision(message: str, *hints: Hint) -> None:
    """Log what was decided for the user and why; ``hints`` name the parameters that change it.

    The record has both as attributes, ``decision`` and ``hints``, beside its text.
    """
    LOGGER.info(" ".join(map(str, (message, *hints))), extra={"decision": message, "hints": hints})


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
    """Log only those decisions of this thread whose text is wanted; others go on as they were."""
    thread = threading.get_ident()

    def keep(record: logging.LogRecord) -> bool:
        is_decision = hasattr(record, "decision") and record.thread == thread
        return not is_decision or is_wanted(record.getMessage())

    LOGGER.addFilter(keep)
    try:
        yield
    finally:
        LOGGER.removeFilter(keep)


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
