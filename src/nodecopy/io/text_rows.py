"""Rows of text files: their encoding, comments and delimiter."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import IO, TypeAlias

from nodecopy.errors import InputError

NumberedRows: TypeAlias = Iterator[tuple[int, list[str]]]
"""Line numbers and cells."""

COMMENT_SIGNS = ("#", "%")
COMMENT = re.compile(r"[#%](\s|%|$)")
"""A comment above a .csv or .tsv table; an id such as #python is none."""
DECIMAL_COMMA = re.compile(r"\s*[+-]?[\d.]*,\d+\s*")
BLANKS = " \t"
LINES_AT_ONCE = 2**14
"""Lines that are searched for quotes and blanks together."""
N_SNIFFED = 20
"""Lines from which the delimiter is detected."""


def check_signature(start: bytes) -> None:
    """Raise an error with the way out if the first bytes of a file are not those of text in UTF-8."""
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError("the file is not encoded in UTF-8 but in UTF-16; save it as 'CSV UTF-8'.")
    if start.startswith(b"PK\x03\x04"):
        raise InputError("the file is a spreadsheet or an archive, not text; save the sheet as 'CSV UTF-8'.")
    if start.startswith(b"\x1f\x8b"):
        raise InputError("the file is compressed; add .gz to its name.")
    if b"\0" in start:
        raise InputError("the file is binary, not text.")


def describe_encoding_error(error: UnicodeDecodeError) -> str:
    """Return the message for text that is not UTF-8."""
    byte = error.object[error.start]
    return (
        f"the file is not encoded in UTF-8 (byte 0x{byte:02x}); save it as 'CSV UTF-8' in a spreadsheet, or "
        "convert it with iconv -f latin1 -t utf-8."
    )


def split_rows(file: IO[str], suffix: str) -> tuple[NumberedRows, list[str]]:
    """Return the rows of a file that is open with ``newline=""``, and the comments above them.

    A comment starts with # or %; in .csv and .tsv files it stands above the rows and has white space after
    the sign. Empty lines are skipped. Cells are separated by tabs in .tsv files. In .csv and .txt files the
    first lines decide between commas, semicolons, tabs, bars, double colons and
    white space. Blanks around cells are left
    out, except in quotes.
    """
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
    """Return whether semicolons separate cells, and commas stand in numbers only."""
    cells = [line.split(";") for line in lines]
    return (
        len({len(row) for row in cells}) == 1
        and any(len(row) > 1 for row in cells)
        and any("," in line for line in lines)
        and all(DECIMAL_COMMA.fullmatch(cell) for row in cells for cell in row if "," in cell)
    )


def _csv_rows(lines: Iterable[str], delimiter: str, n_above: int) -> NumberedRows:
    """Yield line numbers and cells, without blanks around those that are not in quotes."""
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
                yield number, _strip(row, "") if has_blanks else row
        n_above += len(chunk)


def _quoted_rows(lines: Iterable[str], delimiter: str, n_above: int) -> NumberedRows:
    """Yield the same from lines some of which have quotes, which may contain line ends."""
    quoted: list[str] = []  # the lines of the current row, from the first one with quotes on

    def note_quotes() -> Iterator[str]:
        for line in lines:
            if quoted or '"' in line:
                quoted.append(line)
            yield line

    reader = csv.reader(note_quotes(), delimiter=delimiter, skipinitialspace=True, strict=True)
    for row in reader:
        if row:
            yield reader.line_num + n_above, _strip(row, "".join(quoted))
        quoted.clear()


def _strip(row: list[str], quoted: str) -> list[str]:
    if not quoted:
        return [cell.strip(BLANKS) for cell in row]
    escaped = (cell.replace('"', '""') for cell in row)
    return [
        cell if f'"{text}"' in quoted else cell.strip(BLANKS) for cell, text in zip(row, escaped, strict=True)
    ]
