"""Printing: tables and JSON on the standard output, notes, errors and progress on the standard error."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import track

console = Console(highlight=False)
error_console = Console(stderr=True, highlight=False)
T = TypeVar("T")


def print_error(message: str) -> None:
    """Print one line that starts with "error:" on the standard error."""
    error_console.print(f"[bold red]error:[/] {_escape(message)}", soft_wrap=True)


def print_note(message: str) -> None:
    """Print a line on the standard error, apart from the results."""
    error_console.print(f"[dim]{_escape(message)}[/]", soft_wrap=True)


def print_written(path: Path | None, what: str, *, option: str = "") -> None:
    """Note the file or folder that was written, or how ``option`` would have written one."""
    if path is not None:
        print_note(f"{what} written to {path}")
    elif option:
        print_note(f"nothing written: give {option} to write {what}")


def show_progress(items: Iterable[T], total: int, what: str) -> Iterator[T]:
    """Yield items under a progress bar that disappears at the end; without a terminal there is no bar."""
    if not error_console.is_terminal:
        return iter(items)
    return iter(track(items, description=what, total=total, console=error_console, transient=True))


def format_value(value: str | float) -> str:
    """Format integers with commas, other numbers with four digits and undefined ones as a dash."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) or (math.isfinite(value) and value == int(value) and abs(value) >= 1000):
        return f"{int(value):,}"
    return "-" if math.isnan(value) else f"{value:.4g}"


def print_table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print aligned columns of formatted values, numbers to the right, never cut to the terminal's width."""
    columns = [_align([head, *map(format_value, cells)]) for head, *cells in zip(heads, *rows, strict=True)]
    for number, line in enumerate(zip(*columns, strict=True)):
        text = _escape("  ".join(line).rstrip())
        console.print(text if number else f"[bold]{text}[/]", soft_wrap=True)


def print_json(value: Any) -> None:
    """Print JSON with null in place of undefined numbers, as JSON has no NaN."""
    print(json.dumps(_replace_nan(value), indent=2))


def _replace_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _replace_nan(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_replace_nan(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _escape(text: str) -> str:
    return text.replace("[", r"\[")


def _align(cells: list[str]) -> list[str]:
    width = max(map(len, cells))
    is_numeric = all(cell[:1].isdigit() or cell[:1] == "-" for cell in cells[1:])
    return [cell.rjust(width) if is_numeric else cell.ljust(width) for cell in cells]
