"""What commands share in talking to people and programs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import track

console = Console(highlight=False)
error_console = Console(stderr=True, highlight=False)
T = TypeVar("T")


def print_error(message: str) -> None:
    """One line to the standard error stream."""
    error_console.print(f"[bold red]error:[/] {_escaped(message)}", soft_wrap=True)


def print_note(message: str) -> None:
    """Something a person should know and a program should not have to read."""
    error_console.print(f"[dim]{_escaped(message)}[/]", soft_wrap=True)


def show_progress(items: Iterable[T], total: int, what: str) -> Iterator[T]:
    """Pass items through under a progress bar that leaves nothing behind; silent unless a person looks on."""
    if not error_console.is_terminal:
        return iter(items)
    return iter(track(items, description=what, total=total, console=error_console, transient=True))


def format_value(value: str | float) -> str:
    """A value for people: whole numbers with commas, others with four digits, - where undefined."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) or (math.isfinite(value) and value == int(value) and abs(value) >= 1000):
        return f"{int(value):,}"
    return "-" if math.isnan(value) else f"{value:.4g}"


def print_table(heads: list[str], rows: Iterable[Sequence[str]]) -> None:
    """Print aligned columns, numbers to the right, never cut to the width of the terminal."""
    columns = [_aligned([head, *cells]) for head, *cells in zip(heads, *rows, strict=True)]
    for position, line in enumerate(zip(*columns, strict=True)):
        text = _escaped("  ".join(line).rstrip())
        console.print(text if position else f"[bold]{text}[/]", soft_wrap=True)


def print_json(value: Any) -> None:
    """Print JSON; numbers that are undefined become null, since JSON knows no NaN."""
    print(json.dumps(_without_nan(value), indent=2))


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _escaped(text: str) -> str:
    return text.replace("[", r"\[")


def _aligned(cells: list[str]) -> list[str]:
    width = max(map(len, cells))
    is_numeric = all(cell[:1].isdigit() or cell[:1] == "-" for cell in cells[1:])
    return [cell.rjust(width) if is_numeric else cell.ljust(width) for cell in cells]
