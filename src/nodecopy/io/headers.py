"""Whether the first row of a text table is a header, and what its names mean."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from nodecopy._core.hints import Hint
from nodecopy._core.notices import log_decision, warn_about_data

Roles: TypeAlias = Mapping[str, Sequence[str]]
"""The names that the column of each role may have, in lower case."""

N_KEYS = 2
"""The first two roles of every table in a file are required."""
GROUPED = re.compile(r"\s*[+-]?(\d+,\d+|\d{1,3}([.,'\s]\d{3})+([.,]\d+)?)\s*")
"""Numbers with a decimal comma or with signs between thousands."""
COMPLEX = (complex, np.complexfloating)
MAX_UNIQUE_SHARE = 0.02
"""Share of rows with values that occur nowhere else, above which such a first row is ordinary data."""


def find_header(
    first: list[str],
    below: list[list[str]],
    roles: Roles,
    *,
    file: str,
    header: bool | None = None,
    given: Collection[str] = (),
    nodes: Collection[str] | None = None,
    others: Iterable[Roles] = (),
) -> bool:
    """Return whether the first row is a header, and log the decision unless it is obvious.

    In this order, the first row is

    1. a header if the caller names a column of the table, otherwise as ``header`` says;
    2. a header if it has usual names of the first two roles, or names above a first column without a name;
    3. data if its id is in ``nodes``, or if one of its ids or its label occurs again below or twice in it;
    4. a header if some column holds numbers everywhere but there;
    5. data if it has a number, other than numbers of columns (0, 1, 2, ... or 1, 2, 3, ... behind the ids);
    6. a header if its id is not in ``nodes`` while most ids below are;
    7. a header if its names contain usual words (``from_account,to_account``), if one of its ids has no digit
       while all below have one, or if at most 2 % of the rows below have ids that occur nowhere else either;
       otherwise data, in edges and interactions with a warning if no row below shares an id with another.

    An only row is data if it has a number; text is data with a warning, unless it has usual words or, where
    ``nodes`` are known, its id is none of them.

    Parameters
    ----------
    first, below
        The first row, and the columns below it.
    roles
        The usual names of columns.
    file
        What the table is called in decisions.
    header
        What the caller says, if anything.
    given
        Names of columns that the caller gives for this table.
    nodes
        Ids of the nodes of the graph, for tables of labels or features.
    others
        The usual names of columns in other kinds of tables, which are a header too.
    """
    if given or header is not None:
        return bool(given) or bool(header)
    names = [name.strip().lower() for name in first]
    names[0] = names[0].lstrip("# ")
    if any(has_usual_names(names, kind) for kind in (roles, *others)):
        return True
    if len(first) < min(N_KEYS, len(roles)):
        return False
    if not below[0]:
        return _judge_only_row(first, roles, file, nodes)
    if not names[0] and len(first) > (1 if nodes is not None else N_KEYS) and not any(map(is_number, first)):
        return True
    keys = find_keys(first, roles)
    cells, columns = [first[key] for key in keys], [below[key] for key in keys]
    texts = [cell for cell in cells if cell and not is_number(cell)]
    if nodes and cells[0] in nodes:
        is_text = not is_number(cells[0])
        return is_text and _decide(file, first, False, f"{cells[0]!r} is a node of the graph")
    for text in texts:
        if any(text in column for column in columns) or cells.count(text) > 1:
            return _decide(file, first, False, f"{text!r} occurs again")
    for name, column in zip(first, below, strict=True):
        if name and not is_numeral(name) and all(map(is_numeral, column)):
            return _decide(file, first, True, f"the column below {name!r} holds numbers")
    if len(texts) < len(cells) or any(
        is_numeral(cell) for cell in first if cell not in _column_numbers(first)
    ):
        return False
    if nodes and 2 * sum(node in nodes for node in columns[0]) > len(columns[0]):
        return _decide(
            file, first, True, f"{cells[0]!r} is not a node of the graph, while the ids below it are"
        )
    is_header, reason = _decide_by_uniqueness(cells, columns, roles)
    return _decide(file, first, is_header if nodes is None else bool(is_header), reason)


def _judge_only_row(first: list[str], roles: Roles, file: str, nodes: Collection[str] | None) -> bool:
    """Return whether a row without others below it is a header."""
    cells = [first[key] for key in find_keys(first, roles)]
    is_unlike = "" in cells or len(set(cells)) < len(cells) or any(map(is_numeral, first))
    if is_unlike or (nodes and cells[0] in nodes):
        return False
    if nodes:
        return _decide(file, first, True, f"{cells[0]!r} is not a node of the graph")
    if len(match_names(cells, dict(list(roles.items())[:N_KEYS]))) == len(cells):
        return _decide(file, first, True, "its names contain usual words")
    return _decide(file, first, None, "there is no other row to compare it with")


def has_usual_names(names: Collection[str], roles: Roles) -> bool:
    """Return whether names in lower case contain usual ones of the first two roles."""
    return all(any(name in names for name in usual) for usual in list(roles.values())[:N_KEYS])


def find_keys(names: Sequence[str], roles: Roles) -> list[int]:
    """Return the columns of the first two roles, by usual names or words, else by position."""
    matches = match_names(names, roles)
    keys: list[int] = []
    for position, role in enumerate(list(roles)[:N_KEYS]):
        key = matches.get(role, position)
        keys.append(position if key in keys else key)
    return keys if len(set(keys)) == len(keys) else list(range(len(keys)))


def match_names(names: Sequence[str], roles: Roles) -> dict[str, int]:
    """Return the columns with a usual name of a role, or that alone have such a word in their name."""
    lower = [name.strip().lower() for name in names]
    matches = {
        role: next(lower.index(word) for word in usual if word in lower)
        for role, usual in roles.items()
        if not set(usual).isdisjoint(lower)
    }
    words = [_words(name) for name in names]
    for role, usual in roles.items():
        alike = [
            number
            for number, parts in enumerate(words)
            if number not in matches.values() and not parts.isdisjoint(usual)
        ]
        if role not in matches and len(alike) == 1:
            matches[role] = alike[0]
    return matches


def is_number(value: Any) -> bool:
    """Return whether a cell can be read as a number; of a complex one, NumPy would drop a part."""
    if isinstance(value, COMPLEX):
        return False
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def is_grouped(cell: Any) -> bool:
    """Return whether a cell is a number with a decimal comma or with signs between thousands."""
    return isinstance(cell, str) and not is_number(cell) and GROUPED.fullmatch(cell) is not None


def is_numeral(cell: Any) -> bool:
    """Return whether a cell is a number in any notation."""
    return is_number(cell) or is_grouped(cell)


def _decide_by_uniqueness(
    cells: list[str], columns: list[list[str]], roles: Roles
) -> tuple[bool | None, str]:
    """Return whether a row of text that never occurs again is a header, ``None`` for a guess, and why."""
    if len(match_names(cells, dict(list(roles.items())[:N_KEYS]))) == len(cells):
        return True, "its names contain usual words"
    has_digit = re.compile(r"\d").search
    for cell, column in zip(cells, columns, strict=True):
        if not has_digit(cell) and all(map(has_digit, column)):
            return True, f"all values below {cell!r} have digits"
    n_rows = len(columns[0])
    counts = Counter(node for column in columns for node in column)
    n_unique = sum(all(counts[node] == 1 for node in row) for row in zip(*columns, strict=True))
    if n_unique <= MAX_UNIQUE_SHARE * n_rows:
        return True, "its values never occur again below"
    reason = f"the values of {n_unique} other rows do not occur again either"
    return None if n_unique == n_rows else False, reason


def _decide(file: str, first: list[str], is_header: bool | None, reason: str) -> bool:
    """Log whether the first row is a header; ``None`` is a guess, about which a warning is issued."""
    row, kind = ",".join(first[:6]), "a header" if is_header else "data"
    issue = warn_about_data if is_header is None else log_decision
    issue(f"{file}: the first row ({row}) is {kind}, since {reason}.", Hint(header=not is_header))
    return bool(is_header)


def _column_numbers(first: list[str]) -> set[str]:
    """Return the numbers in a row if they count its columns, as names of features may do."""
    numbers = [cell for cell in first if is_numeral(cell)]
    starts = (list(map(str, range(low, low + len(numbers)))) for low in (0, 1))
    return set(numbers) if len(numbers) > 1 and numbers in starts else set()


def _words(name: str) -> set[str]:
    """Return the words of a name such as from_account, FromAccount or 'from account'."""
    return set(re.findall(r"[a-z]{2,}", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()))
