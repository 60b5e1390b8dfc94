"""Tables of text or Parquet as columns: where they are, what they are called, what they hold."""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.atomic_files import atomic_write
from nodecopy._core.formats import TABLES, PathLike, format_of, is_frame
from nodecopy._core.optional_imports import import_optional
from nodecopy.errors import InputError

Column: TypeAlias = Sequence[Any] | NDArray[Any]  # a list of text, or a typed array from Parquet
Roles: TypeAlias = Mapping[str, Sequence[str]]  # what a column is for -> what it may be called
HeaderRule: TypeAlias = Callable[[list[str], list[list[str]]], bool]

N_NEEDED = 2  # the first two roles of every table must be there


@dataclass(frozen=True)
class Table:
    """Columns, their names where there is a header, and where each row stands in the file."""

    columns: list[Column]
    names: list[str] | None
    lines: Sequence[int]
    unit: str = "line"

    def where(self, row: int) -> str:
        return f"{self.unit} {self.lines[row]}"


def read_table(path: Any, has_header: HeaderRule) -> Table:
    """Read any table; ``has_header`` sees the first row and the columns below it, where they are text."""
    if is_frame(path):
        return _from_frame(path)
    suffix = format_of(path, TABLES)
    if suffix == ".parquet":
        return _read_parquet(path)
    cells: list[str] = []  # one flat list: a million small ones keep the garbage collector busy
    lines: list[int] = []
    width = 0
    with _open_text(path, "r") as file:
        for line, row in _lines(file) if suffix == ".txt" else _csv_rows(file, suffix):
            width = width or len(row)
            if len(row) != width:
                raise InputError(f"line {line} has {len(row)} columns where the first row has {width}.")
            cells += row
            lines.append(line)
    if not cells:
        raise InputError("the file holds no rows.")
    first, below = cells[:width], [cells[width + place :: width] for place in range(width)]
    if has_header(first, below):
        return Table(list(below), [name.strip() for name in first], lines[1:])
    return Table([cells[place::width] for place in range(width)], None, lines)


def write_table(path: PathLike, columns: Mapping[str, NDArray[Any] | None]) -> None:
    """Write named columns; those that are ``None`` are left out."""
    suffix = format_of(path, TABLES)
    present = {name: column for name, column in columns.items() if column is not None}
    with atomic_write(path) as temporary:
        if suffix == ".parquet":
            pyarrow = import_optional("pyarrow", "writing Parquet")
            arrays = {name: pyarrow.array(column) for name, column in present.items()}
            import_optional("pyarrow.parquet", "writing Parquet").write_table(
                pyarrow.table(arrays), temporary
            )
            return
        rows = zip(*(column.tolist() for column in present.values()), strict=True)
        with _open_text(temporary, "w", compressed=Path(path).suffix.lower() == ".gz") as file:
            if suffix == ".txt":
                _check_words(present)
                file.writelines(" ".join(map(str, row)) + "\n" for row in (list(present), *rows))
            else:
                _write_csv(file, suffix, list(present), list(rows))


def columns_for(path: Any, roles: Roles, given: Mapping[str, str | None]) -> tuple[Table, dict[str, Column]]:
    """Read a table and find the columns for some roles.

    A column is the one the caller named, else one with a known name, else the one in the role's place.
    A role after the first two may be missing; it goes by place only where the first two do and its
    first cell is a number.
    """
    table = read_table(path, lambda first, below: _has_header(first, below, roles, given))
    if len(table.columns) < N_NEEDED:
        needed = " and ".join(list(roles)[:N_NEEDED])
        raise InputError(f"the table must have a column for {needed}; it has {len(table.columns)} in all.")
    places: dict[str, int] = {}
    for role, names in roles.items():
        if (place := _named(table, given.get(role), names)) is not None:
            places[role] = place
    by_name = all(role in places for role in list(roles)[:N_NEEDED])
    for place, role in enumerate(roles):
        if role in places or (by_name and place >= N_NEEDED):
            continue
        if place < N_NEEDED and place in places.values():
            raise InputError(f"which column holds the {role}? Name it with {role}=.")
        free = place < len(table.columns) and place not in places.values()
        if place < N_NEEDED or (free and _starts_with_number(table.columns[place])):
            places[role] = place
    return table, {role: table.columns[place] for role, place in places.items()}


def identifiers(table: Table, column: Column, role: str) -> Column:
    """Check a column of ids: no gaps, text or whole numbers."""
    if isinstance(column, np.ndarray):
        gaps = [row for row, value in enumerate(column.tolist()) if value is None or value != value]
        if not gaps and column.dtype.kind not in "iu" and not all(isinstance(v, str) for v in column):
            raise InputError(f"column {role} must hold integers or strings; it holds {column.dtype}.")
    else:
        gaps = [] if all(column) else [column.index("")]
    if gaps:
        raise InputError(f"{table.where(gaps[0])} has no {role}.")
    return column


def same_type(columns: Sequence[Column]) -> list[list[Any]]:
    """Ids of several columns as integers if every one is a canonical integer literal, else as strings.

    So 7 is a number and 007 is a name.
    """
    lists = [column.tolist() if isinstance(column, np.ndarray) else list(column) for column in columns]
    typed = [column for column in columns if isinstance(column, np.ndarray) and len(column)]
    try:
        if any(column.dtype.kind not in "iu" for column in typed):
            raise ValueError
        numbers = [list(map(int, values)) for values in lists]
        if all(
            list(map(str, values)) == list(map(str, old)) for values, old in zip(numbers, lists, strict=True)
        ):
            np.array(
                [limit for values in numbers if values for limit in (min(values), max(values))], np.int64
            )
            return numbers
    except (ValueError, OverflowError):
        pass
    return [list(map(str, values)) for values in lists]


def numbers(table: Table, column: Column, role: str, *, low: float = -math.inf) -> NDArray[np.float64]:
    """A column of finite numbers; anything else is an error with its line."""
    try:
        values = np.array(list(map(float, column)), np.float64)
    except (TypeError, ValueError):
        row = next(row for row, value in enumerate(column) if not is_number(value))
        raise InputError(f"{table.where(row)} has {role} {column[row]!r}, which is not a number.") from None
    wrong = ~np.isfinite(values) | (values < low)
    if wrong.any():
        row = int(wrong.argmax())
        allowed = "finite" if low == -math.inf else f"finite and at least {low:g}"
        raise InputError(f"{table.where(row)} has {role} {values[row]:g}; it must be {allowed}.")
    return values


def times(table: Table, column: Column) -> NDArray[Any]:
    """A column of numbers, or of dates as ISO 8601 text (UTC where they name no zone)."""
    if isinstance(column, np.ndarray) and column.dtype.kind == "M":
        return column
    if not len(column) or is_number(column[0]):
        return numbers(table, column, "time")
    seconds = np.empty(len(column))
    for row, text in enumerate(column):
        try:
            moment = datetime.fromisoformat(text)
        except (TypeError, ValueError):
            raise InputError(
                f"{table.where(row)} has time {text!r}; it must be a number or a date."
            ) from None
        seconds[row] = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return seconds


DELIMITERS = {".csv": ",", ".tsv": "\t"}


def _csv_rows(file: IO[str], suffix: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(file, delimiter=DELIMITERS[suffix], strict=True)
    return ((reader.line_num, row) for row in reader if row)


def _write_csv(file: IO[str], suffix: str, names: list[str], rows: list[tuple[Any, ...]]) -> None:
    """Quote what needs it; the csv module forgets lone carriage returns, so with one all text is quoted."""
    returns = any("\r" in cell for row in rows for cell in row if isinstance(cell, str))
    writer = csv.writer(
        file,
        delimiter=DELIMITERS[suffix],
        lineterminator="\n",
        quoting=csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL,
    )
    writer.writerows([names, *rows])


def _lines(file: IO[str]) -> Iterator[tuple[int, list[str]]]:
    return (
        (number, line.split())
        for number, line in enumerate(file, 1)
        if line.strip() and not line.startswith(("#", "%"))
    )


def _check_words(columns: Mapping[str, NDArray[Any]]) -> None:
    for column in columns.values():
        for value in column.tolist() if column.dtype.kind == "U" else []:
            if value.split() != [value] or value.startswith(("#", "%")):
                raise InputError(f"a .txt file cannot hold the id {value!r}; write .csv instead.")


def _read_parquet(path: Path) -> Table:
    pyarrow = import_optional("pyarrow", "reading Parquet")
    table = import_optional("pyarrow.parquet", "reading Parquet").read_table(path)
    columns: list[Column] = []
    for column in table.columns:
        plain = column.cast(column.type.value_type) if pyarrow.types.is_dictionary(column.type) else column
        columns.append(plain.to_numpy())
    return Table(columns, table.column_names, range(1, table.num_rows + 1), "row")


def _from_frame(frame: Any) -> Table:
    columns = [frame.iloc[:, place].infer_objects() for place in range(frame.shape[1])]
    plain = [column.to_numpy() for column in columns]
    for place, column in enumerate(columns):
        if plain[place].dtype.kind == "O":  # pandas has several kinds of gaps
            plain[place] = column.astype(object).where(column.notna(), None).to_numpy()
    return Table(plain, [str(name) for name in frame.columns], range(1, len(frame) + 1), "row")


@contextmanager
def _open_text(path: Path, mode: str, *, compressed: bool | None = None) -> Iterator[IO[str]]:
    """Text as it stands; compressed files carry neither name nor time, so equal data are equal files."""
    if compressed is None:
        compressed = path.suffix.lower() == ".gz"
    with path.open(f"{mode}b") as raw:
        stream: Any = gzip.GzipFile("", f"{mode}b", 6, raw, mtime=0) if compressed else raw
        encoding = "utf-8-sig" if mode == "r" else "utf-8"
        with TextIOWrapper(stream, encoding=encoding, newline="") as text:
            yield text


def _has_header(
    first: list[str], below: list[list[str]], roles: Roles, given: Mapping[str, str | None]
) -> bool:
    """Whether the caller named a column, the first two roles stand there by name, or some column holds
    numbers everywhere but in the first row.
    """
    lower = [name.strip().lower() for name in first]
    needed = list(roles.values())[:N_NEEDED]
    if any(given.values()) or all(any(name in lower for name in names) for names in needed):
        return True
    if not below[0]:
        return False
    return any(
        not is_number(name) and all(map(is_number, column)) for name, column in zip(first, below, strict=True)
    )


def _named(table: Table, given: str | None, names: Sequence[str]) -> int | None:
    present = table.names or []
    if given is not None:
        if given not in present:
            raise InputError(f"there is no column {given!r}; there are {', '.join(present)}.")
        return present.index(given)
    lower = [name.lower() for name in present]
    return next((lower.index(name) for name in names if name in lower), None)


def _starts_with_number(column: Column) -> bool:
    if isinstance(column, np.ndarray):
        return column.dtype.kind in "iuf"
    return bool(column) and is_number(column[0])


def is_number(value: Any) -> bool:
    """Whether a cell reads as a number."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
