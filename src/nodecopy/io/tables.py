"""Tables in text files, in Parquet files and in data frames, as columns.

Text is read by the ``csv`` module, since the reader of pyarrow does not report lines, which errors name.
"""

from __future__ import annotations

import csv
import gzip
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import TextIOWrapper
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

import numpy as np

from nodecopy._core.arrays import Array, Ints
from nodecopy._core.checks import MAX_TABLE_BYTES, check_stream, check_unpacked
from nodecopy._core.files import TABLES, PathLike, atomic_write, format_of, is_frame, list_parts
from nodecopy._core.imports import import_optional
from nodecopy._core.messages import escape_cell
from nodecopy.errors import InputError

Column = Sequence[Any] | Array  # strings from text, typed arrays from others
HeaderRule = bool | Callable[[list[str], list[list[str]]], bool]  # by first row and others
NumberedRows = Iterator[tuple[int, list[str]]]  # line numbers and cells

ATOMIC = ".inter"  # interactions in RecBole's form: tabs, and a header such as user_id:token
BATCH_ROWS = 1024  # rows of a Parquet file whose size is checked together
COMMENT_SIGNS = ("#", "%")
COMMENT = re.compile(r"[#%](\s|%|$)")  # above a .csv or .tsv table; an id such as #python is no comment
DECIMAL_COMMA = re.compile(r"\s*[+-]?[\d.]*,\d+\s*")
BLANKS = " \t\xa0"
LINES_AT_ONCE = 2**14  # lines that are searched for quotes and blanks together
N_SNIFFED = 20  # lines from which the delimiter is detected


@dataclass(frozen=True)
class Table:
    """Columns, their names if there is a header, and the line or row number of each row in the file."""

    columns: list[Column]
    names: list[str] | None
    lines: Sequence[int]
    unit: str = "line"
    comments: Sequence[str] = ()  # comments above the rows

    def where(self, row: int) -> str:
        return f"{self.unit} {self.lines[row]}"

    def select(self, positions: Iterable[int]) -> Table:
        chosen = list(positions)
        names = None if self.names is None else [self.names[number] for number in chosen]
        return replace(self, columns=[self.columns[number] for number in chosen], names=names)

    def take(self, rows: Sequence[int]) -> Table:
        columns: list[Column] = [
            column[rows] if isinstance(column, np.ndarray) else [column[row] for row in rows]
            for column in self.columns
        ]
        return replace(self, columns=columns, lines=[self.lines[row] for row in rows])


def read_table(path: Any, header: HeaderRule) -> Table:
    """Return the table in a file or data frame; ``header`` applies to text."""
    if is_frame(path):
        return _from_frame(path)
    suffix = format_of(path, (*TABLES, ATOMIC))
    if suffix == ".parquet":
        return _read_parquet(path)
    if suffix == ATOMIC:
        return _without_types(_read_text(path, ".tsv", True))
    return _read_text(path, suffix, header)


def read_names(path: Any) -> list[str]:
    """Return the names of the columns; for a text file, the cells of its first row."""
    if is_frame(path):
        return [str(name) for name in getattr(path, "column_names", path.columns)]
    suffix = format_of(path, TABLES)
    if suffix == ".parquet":
        return list(
            import_optional("pyarrow.parquet", "reading Parquet").read_schema(list_parts(path)[0]).names
        )
    with open_text(Path(path), "r") as file:
        _, first = next(split_rows(file, suffix)[0], (0, [""]))
    return _clean_names(first)


def _clean_names(first: list[str]) -> list[str]:
    names = [name.strip() for name in first]
    return [names[0].lstrip("# "), *names[1:]]


def _read_text(path: Path, suffix: str, header: HeaderRule) -> Table:
    cells: list[str] = []  # one flat list: a million small ones keep the garbage collector busy
    lines = array("q")
    width = 0
    with open_text(path, "r") as file:
        rows, comments = split_rows(file, suffix)
        for line, row in rows:
            width = width or len(row)
            if len(row) != width:
                is_named = not any(name[:1].isdigit() for name in cells)
                if len(lines) != 1 or not (is_named and len(row) == width + 1 and row[0] == "1"):
                    is_short = len(row) < width
                    way_out = (
                        "add the missing cells" if is_short else "put cells with the delimiter in quotes"
                    )
                    got = f"line {line} has {len(row)} columns where the first row has {width}"
                    raise InputError(f"{got}; {way_out}.")
                cells.insert(0, "")  # R writes row names without a name above them
                width += 1
            cells += row
            lines.append(line)
    if not cells:
        raise InputError("the file holds no rows.")
    first, below = cells[:width], [cells[width + position :: width] for position in range(width)]
    if header(first, below) if callable(header) else header:
        return Table(list(below), _clean_names(first), lines[1:], comments=comments)
    return Table([cells[position::width] for position in range(width)], None, lines, comments=comments)


def _without_types(table: Table) -> Table:
    names = table.names or []
    if untyped := next((name for name in names if ":" not in name), None):
        raise InputError(f"the header must hold names with types (user_id:token); got {untyped!r}.")
    table = table.select(number for number, name in enumerate(names) if not name.endswith("_seq"))
    return replace(table, names=[name.rpartition(":")[0] for name in table.names or []])


@contextmanager
def open_text(path: Path, mode: str, *, compressed: bool | None = None) -> Iterator[IO[str]]:
    """Open text, compressed or not; equal data are equal files, since the gzip header has no time."""
    compressed = path.suffix.lower() == ".gz" if compressed is None else compressed
    with path.open(f"{mode}b") as raw:
        if mode == "r":
            if compressed:
                check_stream(cast(BinaryIO, gzip.GzipFile(fileobj=raw)), path.stat().st_size)
            else:
                _check_signature(raw.read(64))
            raw.seek(0)
        stream: Any = gzip.GzipFile("", f"{mode}b", 6, raw, mtime=0) if compressed else raw
        encoding = "utf-8-sig" if mode == "r" else "utf-8"
        with TextIOWrapper(stream, encoding=encoding, newline="") as text:
            yield text


def _check_signature(start: bytes) -> None:
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError("the file is not encoded in UTF-8 but in UTF-16; save it as 'CSV UTF-8'.")
    if start.startswith(b"PK\x03\x04"):
        raise InputError("the file is a spreadsheet or an archive; save the sheet as 'CSV UTF-8'.")
    if start.startswith(b"\x1f\x8b"):
        raise InputError("the file is compressed; add .gz to its name.")
    if b"\0" in start:
        raise InputError("the file is binary, not text.")


def split_rows(file: IO[str], suffix: str) -> tuple[NumberedRows, list[str]]:
    """Return the rows of a file, open with ``newline=""``, and the comments above them."""
    comments: list[str] = []
    n_above, first = 0, ""
    for line in file:
        is_comment = line.startswith(COMMENT_SIGNS) if suffix == ".txt" else COMMENT.match(line)
        if line.strip() and not is_comment:
            first = line
            break
        n_above += 1
        comments += [line[1:].strip()] if is_comment else []
    if sep_line := re.fullmatch(r'"?sep=(.)"?\s*', first):  # spreadsheets write this above the header
        return _csv_rows(file, sep_line[1], n_above + 1), comments
    head = [first, *islice(file, N_SNIFFED)]
    lines: Iterable[str] = chain(head, file)
    if suffix == ".txt":
        lines = ("\n" if line.startswith(COMMENT_SIGNS) else line for line in lines)
    delimiter = find_delimiter("".join(head), suffix)
    if delimiter == "::":  # MovieLens
        lines, delimiter = (line.replace("::", "\t") for line in lines), "\t"
    if delimiter is not None:
        return _csv_rows(lines, delimiter, n_above), comments
    if any('"' in line for line in head):
        return _csv_rows((" ".join(line.split()) + "\n" for line in lines), " ", n_above), comments
    return ((n, line.split()) for n, line in enumerate(lines, n_above + 1) if line.strip()), comments


def find_delimiter(head: str, suffix: str) -> str | None:
    """Return the delimiter of the first lines of a file, ``None`` for white space."""
    if suffix == ".tsv":
        return "\t"
    lines = [line for line in re.sub(r'"[^"]*"', "q", head).splitlines() if line.strip()]
    first = lines[0] if lines else ""
    has_others = re.search(r"[,;|\s]", "".join(lines))  # fe80::1,fe80::2 has commas
    if "::" in first and not has_others and len({line.count("::") for line in lines}) == 1:
        return "::"
    if _has_decimal_commas(lines):
        return ";"
    # A delimiter is as often in every line; a comma inside names, such as "Doe, Jane;Oslo", is not.
    present = [sign for sign in ",;\t|" if sign in first]
    regular = [sign for sign in present if len({line.count(sign) for line in lines}) == 1]
    if suffix == ".csv":
        delimiter = next(iter(regular + present), None)
        return delimiter if delimiter or len(first.split()) > 1 else ","
    if "\t" in first:
        cells, words = first.strip().split("\t"), first.split()
        return None if len(cells) < len(words) and all(map(str.isdigit, words)) else "\t"
    return next(iter(regular), None)


def _has_decimal_commas(lines: list[str]) -> bool:
    cells = [line.split(";") for line in lines]
    return (
        len({len(row) for row in cells}) == 1
        and any(len(row) > 1 for row in cells)
        and any("," in line for line in lines)
        and all(DECIMAL_COMMA.fullmatch(cell) for row in cells for cell in row if "," in cell)
    )


def _csv_rows(lines: Iterable[str], delimiter: str, n_above: int) -> NumberedRows:
    """Yield line numbers and cells, without blanks around cells that are not in quotes."""
    rest = iter(lines)
    blanks = [blank for blank in BLANKS if blank != delimiter]
    while chunk := list(islice(rest, LINES_AT_ONCE)):
        text = "".join(chunk)
        if '"' in text:
            yield from _quoted_rows(chain(chunk, rest), delimiter, n_above)
            return
        has_blanks = any(blank in text for blank in blanks)
        for number, row in enumerate(csv.reader(chunk, delimiter=delimiter), n_above + 1):
            if row:
                yield number, [cell.strip(BLANKS) for cell in row] if has_blanks else row
        n_above += len(chunk)


def _quoted_rows(lines: Iterable[str], delimiter: str, n_above: int) -> NumberedRows:
    """Yield the same from lines with quotes, which may contain line ends."""
    quoted: list[str] = []  # the lines of the current row, from the first one with quotes

    def note_quotes() -> Iterator[str]:
        for line in lines:
            if quoted or '"' in line:
                quoted.append(line)
            yield line

    reader = csv.reader(note_quotes(), delimiter=delimiter, skipinitialspace=True, strict=True)
    for row in reader:
        text = "".join(quoted)
        in_quotes = [text and '"{}"'.format(cell.replace('"', '""')) in text for cell in row]
        if row:
            cells = zip(row, in_quotes, strict=True)
            yield reader.line_num + n_above, [cell if keep else cell.strip(BLANKS) for cell, keep in cells]
        quoted.clear()


def _read_parquet(path: Path) -> Table:
    """Read batches of rows, since a small file may unpack to many long rows."""
    pyarrow = import_optional("pyarrow", "reading Parquet")
    parts, tables, n_bytes = list_parts(path), [], 0
    size = sum(part.stat().st_size for part in parts)
    for part in parts:
        with import_optional("pyarrow.parquet", "reading Parquet").ParquetFile(part) as file:
            batches = []
            for batch in file.iter_batches(BATCH_ROWS):
                n_bytes += batch.nbytes
                check_unpacked(n_bytes, size, MAX_TABLE_BYTES)
                batches.append(batch)
            tables.append(pyarrow.Table.from_batches(batches, file.schema_arrow))
    return from_arrow(pyarrow.concat_tables(tables, promote_options="permissive"))


def from_arrow(table: Any) -> Table:
    """Return an Arrow table as columns."""
    types = import_optional("pyarrow", "reading Arrow tables").types
    columns: list[Column] = []
    for column in table.columns:
        is_coded = types.is_dictionary(column.type)
        if is_coded and types.is_string(column.type.value_type) and column.num_chunks:
            columns.append(np.concatenate([_decode_texts(chunk) for chunk in column.chunks]))
        else:
            columns.append((column.cast(column.type.value_type) if is_coded else column).to_numpy())
    return Table(columns, table.column_names, range(1, table.num_rows + 1), "row")


def _decode_texts(chunk: Any) -> Array:
    """Return texts, which rows share; a cast would copy them."""
    texts = np.array([*chunk.dictionary.to_pylist(), None], object)
    codes: Ints = chunk.indices.fill_null(len(texts) - 1).to_numpy(zero_copy_only=False)
    return texts[codes]


def _from_frame(frame: Any) -> Table:
    if hasattr(frame, "column_names"):
        return from_arrow(frame)
    if not hasattr(frame, "iloc"):  # polars, whose missing values are None or NaN in NumPy
        plain = [frame[name].to_numpy() for name in frame.columns]
    else:
        columns = [frame.iloc[:, position].infer_objects() for position in range(frame.shape[1])]
        plain = [column.to_numpy() for column in columns]
        for position, column in enumerate(columns):
            if plain[position].dtype.kind == "O":  # pandas has several kinds of missing values
                plain[position] = column.astype(object).where(column.notna(), None).to_numpy()
    return Table(plain, [str(name) for name in frame.columns], range(1, len(frame) + 1), "row")


def write_table(path: PathLike, columns: Mapping[str, Array | None], *, spreadsheet: bool = False) -> None:
    """Write the columns that are not ``None``; see :func:`.write_graph` for ``spreadsheet``."""
    suffix = format_of(path, TABLES)
    present = {name: column for name, column in columns.items() if column is not None}
    with atomic_write(path) as temporary:
        if suffix == ".parquet":
            pyarrow = import_optional("pyarrow", "writing Parquet")
            table = pyarrow.table({name: pyarrow.array(column) for name, column in present.items()})
            import_optional("pyarrow.parquet", "writing Parquet").write_table(table, temporary)
            return
        rows: list[Sequence[Any]] = [list(present)]
        rows += zip(*(column.tolist() for column in present.values()), strict=True)
        with open_text(temporary, "w", compressed=Path(path).suffix.lower() == ".gz") as file:
            if suffix == ".txt":
                _check_words(present)
                file.writelines(" ".join(map(str, row)) + "\n" for row in rows)
                return
            if spreadsheet:
                rows = [tuple(map(escape_cell, row)) for row in rows]
            # The csv module quotes neither carriage returns nor blanks around a cell by itself.
            texts = (cell for row in rows[1:] for cell in row if isinstance(cell, str))
            needs_quotes = any("\r" in cell or cell != cell.strip(BLANKS) for cell in texts)
            options: Any = {"quoting": csv.QUOTE_NONNUMERIC if needs_quotes else csv.QUOTE_MINIMAL}
            delimiter = "," if suffix == ".csv" else "\t"
            csv.writer(file, delimiter=delimiter, lineterminator="\n", **options).writerows(rows)


def _check_words(columns: Mapping[str, Array]) -> None:
    for column in columns.values():
        for value in column.tolist() if column.dtype.kind == "U" else []:
            if value.split() != [value] or value.startswith(COMMENT_SIGNS):
                raise InputError(f"a .txt file cannot hold the id {value!r}; write .csv instead.")
