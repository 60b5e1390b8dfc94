"""Headers, columns and values of tables.

:func:`find_header` decides whether the first row is a header, and :func:`choose_columns` chooses the column
of each role (``source``, ``target``, ...).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.checks import check_characters, is_missing, list_names
from nodecopy._core.files import is_frame
from nodecopy._core.imports import suggest
from nodecopy._core.messages import log_decision, warn_about_data
from nodecopy.errors import InputError
from nodecopy.io.tables import Column, Table, read_names, read_table

Roles = Mapping[str, Sequence[str]]  # the usual names of the column of each role, in lower case
ColumnNames = Mapping[str, str | None]  # the names that the caller gives, by role
Decimal = Literal[".", ","]
Kind = Literal["edges", "labels", "interactions", "contacts", "features"]  # what a table holds

TIMES = ("time", "timestamp", "ts", "date", "datetime")
EDGE_COLUMNS: Roles = {
    "source": (
        *("source", "src", "from", "u", "source_id", "from_node", "fromnodeid", "node1", "node_1", "citing"),
        *("payer", "sender", "caller", "follower"),
    ),
    "target": (
        *("target", "dst", "to", "v", "target_id", "to_node", "tonodeid", "node2", "node_2", "cited"),
        *("payee", "receiver", "recipient", "callee", "followee"),
    ),
    "weight": ("weight", "w", "value"),
}
NODE_COLUMNS: Roles = {"id": ("id", "node", "node_id", "name"), "label": ("label", "class", "y")}
INTERACTION_COLUMNS: Roles = {
    "user": (
        *("user", "user_id", "userid", "customer", "customer_id", "customerid"),
        *("reviewer", "reviewerid", "listener", "client", "client_id", "visitor", "visitor_id", "visitorid"),
    ),
    "item": (
        *("item", "item_id", "itemid", "movie", "movie_id", "movieid", "product", "product_id", "productid"),
        *("asin", "artist", "stockcode", "sku", "article", "article_id", "book", "book_id", "bookid", "isbn"),
        *("song", "song_id", "track", "track_id", "video", "video_id", "business_id", "venue", "venue_id"),
    ),
    "rating": (
        *("rating", "stars", "score", "weight", "value", "count", "overall", "quantity", "qty", "plays"),
    ),
    "time": TIMES,
}
KINDS: Mapping[Kind, Roles] = {
    "edges": EDGE_COLUMNS,
    "labels": NODE_COLUMNS,
    "interactions": INTERACTION_COLUMNS,
    "contacts": {**EDGE_COLUMNS, "time": (*TIMES, "day", "t")},  # edges, if the time is not read
}
N_KEYS = 2  # the first two roles of a kind are required
ID_ROLES = ("source", "target", "id", "user", "item")

PERIODS = ("year", "month", "day", "hour")
NO_IDS = (*TIMES, *PERIODS)
NO_WEIGHTS = ("id", "label", "class", "type", "kind", "index", "key", *PERIODS)
NO_RATINGS = (*NO_WEIGHTS, "price", "cost", "amount")  # words in names of columns not chosen by position
MAX_UNIQUE_SHARE = 0.02  # rows with unique values, above which a first row with such values is data
N_INSPECTED = 100  # rows by which a column is taken for ids, numbers or times
MIN_SQUARE = 5  # rows from which a square table of numbers is a matrix; smaller ones may list edges
EPOCHS = ((1e8, 2.2e9), (1e11, 2.2e12))  # Unix times of 1973 to 2039, in seconds or milliseconds
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
NOTATIONS = {  # numbers by their decimal sign; 1 500 and 1'500 have separated thousands
    sign: re.compile(
        rf"\s*[+-]?([1-9]\d{{0,2}}([{other}'\s]\d{{3}})+|\d+)?([{sign}]\d+)?(?<=\d)[{sign}]?([eE][+-]?\d+)?\s*"
    )
    for sign, other in (".,", ",.")
}
GROUPED = re.compile(r"\s*[+-]?(\d+,\d+|\d{1,3}([.,'\s]\d{3})+([.,]\d+)?)\s*")  # 1,5 or 1.000
DATES = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?|\d{1,2}([./])\d{1,2}\2\d{2,4}( .*)?")
LOCAL_DATE = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d{2})(?:[T ]+(.*))?")  # 31.05.2024 or 5/31/24
ROUNDED_ID = re.compile(r"\d([.,]\d+)?E\+\d\d")  # what a spreadsheet makes of 1234567890123
ERROR_CELLS = ("#N/A", "#REF!", "#VALUE!", "#DIV/0!", "#NAME?", "#NUM!", "#NULL!")  # of spreadsheets
MISSING_IDS = frozenset([*ERROR_CELLS, "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "<NA>"])
COMPLEX = (complex, np.complexfloating)
MISSING_CELLS = frozenset(["", *MISSING_IDS])
PLAIN_NUMBERS = "Write numbers with a decimal point and nothing between thousands."
ADJACENCY_ERROR = (
    "the table is an adjacency matrix, where edges are expected. Write it with scipy.sparse.save_npz, or use "
    "as_graph(scipy.sparse.csr_array(frame))."
)


def read_columns(
    path: Any,
    kind: Kind,
    column_names: ColumnNames,
    *,
    header: bool | None = None,
    nodes: Collection[str] | None = None,
    is_shared: bool = False,
) -> tuple[Table, dict[str, Column]]:
    """Return the table in a file or data frame, and its columns by role."""
    roles, file = KINDS[kind], describe(path)
    rule = partial(find_header, roles=roles, file=file, nodes=nodes, others=KINDS.values())
    is_header: Any = any(column_names.values()) or (rule if header is None else header)
    table = read_table(path, is_header)
    table, positions = choose_columns(table, kind, column_names, file, nodes=nodes, is_shared=is_shared)
    for role in [role for role in list(roles)[N_KEYS:] if role in positions]:
        is_empty = _find_empty(table.columns[positions[role]])
        if is_empty.any():
            result = "the column is not read" if is_empty.all() else "they are left out"
            rows = f"rows without a {role}: {is_empty.sum():,}"
            log_decision(f"{file}: {rows}; {result}. An empty name reads all rows without {role}s.", role)
            if is_empty.all():
                del positions[role]
            else:
                table = table.take(np.flatnonzero(~is_empty).tolist())
    by_role = {role: table.columns[position] for role, position in positions.items()}
    if words := set().union(*(MISSING_IDS.intersection(by_role[role]) for role in roles if role in ID_ROLES)):
        listed = ", ".join(sorted(words))
        warn_about_data(f"{file}: {listed} is read as an id. Remove such rows if ids are missing.")
    return table, by_role


def choose_columns(
    table: Table,
    kind: Kind,
    column_names: ColumnNames,
    file: str,
    *,
    nodes: Collection[str] | None = None,
    is_shared: bool = False,
) -> tuple[Table, dict[str, int]]:
    """Return a table, of which the first rows suffice, without row names, and the column of each role."""
    roles, is_named = KINDS[kind], any(column_names.values())
    if not is_named and table.names is not None:
        if kind == "edges" and len(table.names) > N_KEYS and table.names[1:] == [*map(str, table.columns[0])]:
            raise InputError(ADJACENCY_ERROR)
        _check_kind(table.names, kind, file)
    has_id = bool(column_names.get("id")) or "id" in match_names(table.names or [], roles)
    table = drop_row_names(table, nodes, has_id=has_id)
    names, columns = table.names or [""] * len(table.columns), table.columns
    if len(columns) < N_KEYS:
        raise InputError(f"the table must have columns for {_key_names(roles)}; it has {len(columns)}.")
    no_values = NO_RATINGS if kind == "interactions" else NO_WEIGHTS
    usual, is_of_contacts = match_names(names, roles), kind == "contacts"
    name = column_names.get("time")
    times = [number for number, other in enumerate(names) if name == other or usual.get("time") == number]
    has_time = bool(name or times)
    times = times or [number for number, column in enumerate(columns) if holds_times(column)]
    if is_of_contacts and not has_time and len(times) != 1:
        got = f"{len(times)} columns that can be" if times else "no column of dates, Unix times or that name"
        raise InputError(f"the table must have a column of times; it has {got}. Name it.", time="NAME")
    positions = match_columns(
        names,
        {role: words for role, words in roles.items() if role != "time" or has_time},
        n_required=N_KEYS,
        is_numeric=lambda position: (
            not is_of_contacts and holds_weights(columns[position], names[position], others=no_values)
        ),
        column_names=column_names,
        keys=(0, 1) if kind == "labels" else _find_keys(table, kind, column_names, times * is_of_contacts),
    )
    if "time" in roles and "time" not in positions and column_names.get("time") != "":
        times = [number for number in times if number not in positions.values()]
        positions |= {"time": times[0]} if times else {}
    if not is_shared:
        _log_columns(file, table, roles, column_names, positions)
    if kind == "labels" and len(columns) > N_KEYS and not column_names.get("label") and "label" not in usual:
        listed = f"it has {', '.join(names)}" if table.names else "it has several, and no header"
        raise InputError(f"the table must have a column label or class; {listed}. Name it.", label="NAME")
    return table, positions


def match_columns(
    names: Sequence[str],
    roles: Roles,
    *,
    n_required: int,
    is_numeric: Callable[[int], bool],
    column_names: ColumnNames | None = None,
    owner: str = "the table",
    keys: Sequence[int] | None = None,
) -> dict[str, int]:
    """Return the position of the column of each role: by given name, else by usual name, else by ``keys``.

    Optional roles take the next numeric columns; without ``keys``, only if a required role has no usual name.
    """
    column_names = column_names or {}
    usual = match_names(names, roles)
    positions = {role: position for role, position in usual.items() if column_names.get(role) is None}
    for role, name in column_names.items():
        if not name:
            continue
        if name not in names:
            hint = suggest(name, names)
            raise InputError(
                role, f"must be a column; got {name!r}, where there are {', '.join(names)}.{hint}"
            )
        column = names.index(name)
        positions = {other: at for other, at in positions.items() if at != column} | {role: column}
    required, lower = list(roles)[:n_required], {name.lower() for name in names}
    by_name = all(column_names.get(role) or not lower.isdisjoint(roles[role]) for role in required)
    for role, key in zip(required, keys or range(n_required), strict=False):
        if role not in positions and (key >= len(names) or key in positions.values()):
            got = f"it has {', '.join(names)}"
            settings = {role: "NAME"} if column_names else {}
            raise InputError(
                f"{owner} must have a column for {role}; {got}.{' Name it.' * len(settings)}", **settings
            )
        positions.setdefault(role, key)
    last = max(positions[role] for role in required)
    for position, role in enumerate(list(roles)[n_required:], last + 1):
        if role in positions or column_names.get(role) == "" or (by_name and keys is None):
            continue
        if position < len(names) and position not in positions.values() and is_numeric(position):
            positions[role] = position
    return positions


def match_names(names: Sequence[str], roles: Roles) -> dict[str, int]:
    """Return the columns with a usual name of a role, or that alone have such a word in their name."""
    lower = [name.strip().lower() for name in names]
    first = {role: next((word for word in usual if word in lower), None) for role, usual in roles.items()}
    matches = {role: lower.index(word) for role, word in first.items() if word is not None}
    words = [_words(name) for name in names]
    for role, usual in roles.items():
        free = (number for number in range(len(names)) if number not in matches.values())
        alike = [number for number in free if not words[number].isdisjoint(usual)]
        if role not in matches and len(alike) == 1:
            matches[role] = alike[0]
    return matches


def _words(name: str) -> set[str]:
    return set(re.findall(r"[a-z]{2,}", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()))


def _key_roles(roles: Roles) -> list[str]:
    return list(roles)[:N_KEYS]


def _key_names(roles: Roles) -> str:
    return " and ".join(_key_roles(roles))


def _find_keys(
    table: Table, kind: Kind, column_names: ColumnNames, others: Sequence[int] = ()
) -> Sequence[int]:
    required, usual = _key_roles(KINDS[kind]), match_names(table.names or [], KINDS[kind])
    if all(column_names.get(role) or role in usual for role in required):
        return 0, 1
    if kind == "edges" and _is_square(table.columns):
        raise InputError(ADJACENCY_ERROR)
    free = [number for number in range(len(table.columns)) if number not in others]
    rest = table.select(free)
    keys = [free[key] for key in find_id_columns(rest.columns, rest.names or [], is_alike=kind == "edges")]
    if len(keys) < N_KEYS:
        way_out = f"Name those of {_key_names(KINDS[kind])}"
        raise InputError(f"the table must have two columns of integers or text. {way_out}.")
    return keys


def find_id_columns(columns: Sequence[Column], names: Sequence[str], *, is_alike: bool) -> list[int]:
    """Return the first two columns that can hold ids; where ids are alike, both of text if possible."""
    named = zip(columns, names or [""] * len(columns), strict=True)
    ids = [position for position, (column, name) in enumerate(named) if _holds_ids(column, name)]
    texts = [position for position in ids if not holds_numbers(columns[position])]
    is_mixed = len({position in texts for position in ids[:2]}) > 1
    return texts[:2] if is_alike and is_mixed and len(texts) > 1 else ids[:2]


def describe(path: Any) -> str:
    """Return what messages call a file or data frame."""
    return "the data frame" if is_frame(path) else Path(path).name


def drop_row_names(table: Table, nodes: Collection[str] | None, *, has_id: bool) -> Table:
    """Return the table without a first column that has no name, unless it holds the ids."""
    names = table.names
    if names is None or names[0] or len(names) < N_KEYS + (nodes is None):
        return table
    if nodes is not None and not has_id and any(str(value) in nodes for value in table.columns[0]):
        return table
    return table.select(range(1, len(names)))


def _log_columns(
    file: str, table: Table, roles: Roles, column_names: ColumnNames, positions: Mapping[str, int]
) -> None:
    names = table.names or [f"column {number}" for number in range(1, len(table.columns) + 1)]
    usual = match_names(table.names or [], roles)
    required, optional = _key_roles(roles), list(roles)[N_KEYS:]
    chosen = [role for role in positions if not column_names.get(role) and role not in usual]
    unusual = [role for role in required if role in chosen]
    if "id" not in roles and unusual and (table.names or set(map(positions.get, required)) != {0, 1}):
        parts = " and ".join(f"{names[positions[role]]} is the {role}" for role in unusual)
        log_decision(f"{file}: {parts} of each row.", *unusual)
    for role in optional:
        if role in chosen:
            log_decision(f"{file}: {names[positions[role]]} holds the {role} of each row.", role)
    ignored = [
        name
        for number, (name, column) in enumerate(zip(names, table.columns, strict=True))
        if number not in positions.values() and any(value not in ("", None) for value in column)
    ]
    if ignored:
        missing = [role for role in optional if role not in positions and table.names]
        log_decision(f"{file}: not read: {list_names(ignored)}.", *missing)


def find_header(
    first: list[str],
    below: list[list[str]],
    roles: Roles,
    *,
    file: str,
    nodes: Collection[str] | None = None,
    others: Iterable[Roles] = (),
) -> bool:
    """Return whether the first row is a header, and log the decision unless it is obvious.

    ``others`` are the usual names of other tables, and ``nodes`` the ids of the graph, if known.
    """
    names = [name.strip().lower() for name in first]
    names[0] = names[0].lstrip("# ")
    if any(_has_usual_names(names, kind) for kind in (roles, *others)):
        return True
    if len(first) < min(N_KEYS, len(roles)):
        return False
    decide = partial(_decide, file, first)
    keys = _find_header_keys(first, roles)
    cells, columns = [first[key] for key in keys], [below[key] for key in keys]
    has_usual_words = len(match_names(cells, {role: roles[role] for role in _key_roles(roles)})) == len(cells)
    if not below[0]:  # an only row
        is_unlike = "" in cells or len(set(cells)) < len(cells) or any(map(_is_numeral, first))
        if is_unlike or (nodes and cells[0] in nodes):
            return False
        if nodes:
            return decide(True, f"{cells[0]!r} is not a node of the graph")
        if has_usual_words:
            return decide(True, "its names contain usual words")
        return decide(None, "there is no other row to compare it with")
    if not names[0] and len(first) > (1 if nodes is not None else N_KEYS) and not any(map(is_number, first)):
        return True
    texts = [cell for cell in cells if cell and not is_number(cell)]
    if nodes and cells[0] in nodes:
        return not is_number(cells[0]) and decide(False, f"{cells[0]!r} is a node of the graph")
    for text in texts:
        if any(text in column for column in columns) or cells.count(text) > 1:
            return decide(False, f"{text!r} occurs again")
    for name, column in zip(first, below, strict=True):
        if name and not _is_numeral(name) and all(map(_is_numeral, column)):
            return decide(True, f"the column below {name!r} holds numbers")
    numbers = [cell for cell in first if _is_numeral(cell)]
    counts = [[str(low + number) for number in range(len(numbers))] for low in (0, 1)]
    if len(texts) < len(cells) or (numbers and (len(numbers) == 1 or numbers not in counts)):
        return False
    if nodes and 2 * sum(node in nodes for node in columns[0]) > len(columns[0]):
        return decide(True, f"{cells[0]!r} is not a node of the graph, while the ids below it are")
    if has_usual_words:
        return decide(True, "its names contain usual words")
    is_header, reason = _decide_by_uniqueness(cells, columns)
    return decide(is_header if nodes is None else bool(is_header), reason)


def _find_header_keys(names: Sequence[str], roles: Roles) -> list[int]:
    matches = match_names(names, roles)
    keys: list[int] = []
    for position, role in enumerate(_key_roles(roles)):
        key = matches.get(role, position)
        keys.append(position if key in keys else key)
    return keys if len(set(keys)) == len(keys) else list(range(len(keys)))


def _decide_by_uniqueness(cells: list[str], columns: list[list[str]]) -> tuple[bool | None, str]:
    """Return whether a row of unique text is a header, ``None`` for a guess, and why."""
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
    row, kind = ",".join(first[:6]), "a header" if is_header else "data"
    issue = warn_about_data if is_header is None else log_decision
    issue(f"{file}: the first row ({row}) is {kind}, since {reason}.", "header")
    return bool(is_header)


def _has_usual_names(names: Collection[str], roles: Roles) -> bool:
    return all(any(name in names for name in roles[role]) for role in _key_roles(roles))


def guess_kind(path: Any, *, id: str | None = None) -> Kind:
    """Return what a file or data frame holds by its header and, for features, its first column."""
    names = read_names(path)
    if kind := match_kind(names):
        return kind
    is_named = names[0].lower() in NODE_COLUMNS["id"] or names[0] == id
    if is_named or len(names) > len(EDGE_COLUMNS):
        first = list(read_table(path, True).columns[0])
        if len(set(first)) == len(first):
            return "features"
    return "edges"


def match_kind(names: Sequence[str]) -> Kind | None:
    """Return the first kind whose required columns have usual names, else usual words in them."""
    lower = {name.strip().lower() for name in names}
    kinds: list[Kind] = [kind for kind, roles in KINDS.items() if _has_usual_names(lower, roles)]
    if not kinds and not re.search(r"\d", "".join(names)):  # user 1,item 7 may be data
        kinds = [
            kind for kind, roles in KINDS.items() if {*_key_roles(roles)} <= {*match_names(names, roles)}
        ]
    return kinds[0] if kinds else None


def _check_kind(names: Sequence[str], kind: Kind, file: str) -> None:
    """Raise an error if a header is of another kind; warn of interactions that are read as edges."""
    other = match_kind(names)
    if (
        other is None
        or _key_roles(KINDS[other]) == _key_roles(KINDS[kind])
        or _has_usual_names({name.strip().lower() for name in names}, KINDS[kind])
    ):
        return
    if (kind, other) == ("edges", "interactions"):
        meaning = "a user and an item with the same id are one node. read_interactions keeps them apart"
        warn_about_data(f"{file} has users and items, but is read as edges: {meaning}.", "source", "target")
        return
    way_out = f"Give another file, or name the columns of {_key_names(KINDS[kind])}"
    raise InputError(f"the header ({', '.join(names)}) is of a table of {other}, not of {kind}. {way_out}.")


def is_number(value: Any) -> bool:
    """Return whether a cell can be read as a number."""
    if isinstance(value, COMPLEX):  # NumPy would drop a part
        return False
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def is_grouped(cell: Any) -> bool:
    """Return whether a cell is a number with a decimal comma or separated thousands."""
    return isinstance(cell, str) and not is_number(cell) and GROUPED.fullmatch(cell) is not None


def _is_numeral(cell: Any) -> bool:
    return is_number(cell) or is_grouped(cell)


def is_date(cell: Any) -> bool:
    """Return whether a cell is a date, perhaps with a time."""
    return isinstance(cell, date) or (isinstance(cell, str) and bool(DATES.fullmatch(cell.strip())))


def _is_square(columns: Sequence[Column]) -> bool:
    n_rows = len(columns[0])
    is_shaped = n_rows >= MIN_SQUARE and len(columns) - n_rows in (0, 1)
    return is_shaped and all(is_number(cell) for column in columns[1:] for cell in column[1:])


def _holds_ids(column: Column, name: str = "") -> bool:
    if match_names([name], {"other": NO_IDS}):
        return False
    if isinstance(column, np.ndarray) and column.dtype.kind != "O":
        return column.dtype.kind in "iuU"
    cells = [cell for cell in column[:N_INSPECTED] if cell not in ("", None)]
    is_numeric = all(NUMBER.fullmatch(str(cell)) for cell in cells)
    has_decimals = is_numeric and not all(str(cell).lstrip("+-").isdecimal() for cell in cells)
    is_boolean = all(str(cell).lower() in ("true", "false") for cell in cells)
    return not cells or not (has_decimals or is_boolean or all(map(is_date, cells)))


def holds_numbers(column: Column) -> bool:
    """Return whether a column has a number type or, as text, starts with a number."""
    if isinstance(column, np.ndarray):
        return column.dtype.kind in "iuf"
    return _is_numeral(next((cell for cell in column[:N_INSPECTED] if cell), ""))


def holds_weights(column: Column, name: str = "", *, others: Sequence[str] = NO_WEIGHTS) -> bool:
    """Return whether a column holds numbers that are neither times nor, by its name, ``others``."""
    is_other = match_names([name], {"other": others})
    return holds_numbers(column) and not is_other and not holds_times(column, name)


def holds_times(column: Column, name: str = "") -> bool:
    """Return whether a column has the name of times, or starts with dates or Unix times."""
    if match_names([name], {"time": TIMES}):
        return True
    if isinstance(column, np.ndarray) and column.dtype.kind not in "iufO":
        return column.dtype.kind == "M"
    inspected = column[:N_INSPECTED]
    cells = [cell for cell in inspected if cell != ""]
    if cells and all(map(is_date, cells)):
        return True
    if not len(inspected) or not all(map(is_number, inspected)):
        return False
    return any(all(low <= float(cell) <= high for cell in inspected) for low, high in EPOCHS)


def _find_empty(column: Column) -> NDArray[np.bool_]:
    if isinstance(column, np.ndarray) and column.dtype.kind != "O":
        return np.asarray(column != column)
    if not isinstance(column, np.ndarray) and MISSING_CELLS.isdisjoint(column):
        return np.zeros(len(column), bool)
    cells = (cell.strip() if isinstance(cell, str) else cell for cell in column)
    return np.array([cell in MISSING_CELLS if isinstance(cell, str) else is_missing(cell) for cell in cells])


def check_identifiers(table: Table, column: Column, role: str) -> Column:
    """Return a column of integers or strings without missing values."""
    if isinstance(column, np.ndarray):
        missing = [row for row, value in enumerate(column.tolist()) if is_missing(value)]
        if not missing and column.dtype.kind not in "iu" and not all(isinstance(v, str) for v in column):
            got = f"it holds {column.dtype}, or values of several types. Convert it by astype"
            raise InputError(f"column {role} must hold integers or strings; {got}.")
    else:
        missing = [] if all(column) else [row for row, value in enumerate(column) if not value]
    if missing:
        others = f", and {len(missing) - 1:,} more rows have none" if len(missing) > 1 else ""
        raise InputError(f"{table.where(missing[0])} has no {role}{others}. Add it, or remove such rows.")
    texts = column.tolist() if isinstance(column, np.ndarray) and column.dtype.kind in "OU" else column
    if not isinstance(texts, np.ndarray) and (rounded := next(filter(ROUNDED_ID.fullmatch, texts), None)):
        problem = (
            f"{table.where(texts.index(rounded))} has {role} {rounded!r}, which a spreadsheet has rounded"
        )
        raise InputError(f"{problem}. Save that column as text.")
    return column


def check_notation(columns: Sequence[Column]) -> None:
    """Raise an error if an id occurs with and without decimals, and warn of two that are spelt alike."""
    texts = {text for column in columns for text in column if isinstance(text, str)}
    if twin := next((text for text in texts if text[-2:] == ".0" and text[:-2] in texts), None):
        raise InputError("ids", f"must be written the same way; got {twin[:-2]!r} and {twin!r}.")
    warn_about_spellings("ids", texts)
    numbers = [column for column in columns if isinstance(column, np.ndarray) and column.dtype.kind in "iu"]
    if 0 < len(numbers) < len(columns):
        values = set().union(*(column.tolist() for column in numbers))
        coded = (text for column in columns for text in column if isinstance(text, str) and text[:1] == "0")
        for text in coded:
            if text.isdecimal() and str(int(text)) != text and int(text) in values:
                got = f"{int(text)} in one column and {text!r} in another. Read both with dtype=str"
                raise InputError("ids", f"must be written the same way; got {got}.")


def warn_about_spellings(what: str, texts: Collection[str]) -> None:
    """Warn of two distinct texts that differ only in case, blanks, leading zeros and a decimal of zero."""
    if len(set(map(plain_id, texts))) == len(texts):
        return
    spellings: dict[str, str] = {}
    for text in sorted(texts):
        if (other := spellings.setdefault(plain_id(text), text)) != text:
            warn_about_data(f"{what} {other!r} and {text!r} differ. Write them alike if they are one.")
            return


def plain_id(node: Any) -> str:
    """Return an id without upper case, leading zeros, zero decimals and repeated blanks: 7 for 007."""
    return " ".join(str(node).casefold().removesuffix(".0").split()).lstrip("0")


def unify_ids(columns: Sequence[Column]) -> list[list[Any]]:
    """Return ids as integers if all are in canonical form (7, but not 007), else as strings."""
    lists = [column.tolist() if isinstance(column, np.ndarray) else list(column) for column in columns]
    texts = [[*map(str, values)] for values in lists]
    typed = [column for column in columns if isinstance(column, np.ndarray) and len(column)]
    if all(column.dtype.kind in "iu" for column in typed):
        with suppress(ValueError):
            integers = [list(map(int, values)) for values in lists]
            if [[*map(str, values)] for values in integers] == texts:
                limits = [limit for values in integers if values for limit in (min(values), max(values))]
                if all(-(2**63) <= limit < 2**63 for limit in limits):
                    return integers
                log_decision("ids are texts, since some integers do not fit into 64 bits with a sign.")
    for values in lists:
        check_characters(values, "ids")
    return texts


def read_notations(name: str, cells: Column, decimal: str | None = None, *parameters: str) -> dict[str, Any]:
    """Return the numbers of cells by the decimal sign with which all can be read; log it if there is one."""
    readings: dict[str, Any] = {}
    for sign, notation in NOTATIONS.items():
        if decimal in (None, sign) and all(notation.fullmatch(str(cell)) for cell in cells):
            plain = [re.sub(rf"[^\d{sign}eE+-]", "", str(cell)).replace(sign, ".") for cell in cells]
            readings[sign] = np.array(list(map(float, plain)))
    if len(readings) > 1 and np.array_equal(*readings.values()):
        del readings[","]
    if len(readings) == 1 and decimal is None:
        example = next(filter(is_grouped, cells))
        number = f"{example!r} is {float(next(iter(readings.values()))[list(cells).index(example)]):.15g}"
        log_decision(
            f"column {name}: {number}, since its decimal sign is {next(iter(readings))!r}.", *parameters
        )
    return readings


def parse_numbers(
    table: Table, column: Column, role: str, *, low: float = -math.inf, decimal: str | None = None
) -> NDArray[np.float64]:
    """Return a column of finite numbers of at least ``low``."""
    way_out = "Correct it, or leave the column out"
    try:
        if any(issubclass(kind, COMPLEX) for kind in set(map(type, column))):
            raise TypeError
        if decimal == "," and any(isinstance(cell, str) for cell in column):
            raise ValueError  # 1.500 would be read as 1.5
        values = np.array(list(map(float, column)), np.float64)
    except (TypeError, ValueError):
        readings = read_notations(role, column, decimal, "decimal")
        if len(readings) != 1:
            is_plain: Any = is_number if decimal is None else NOTATIONS[decimal].fullmatch
            row = next(row for row, cell in enumerate(column) if not is_plain(cell))
            got = f"{table.where(row)} has {role} {column[row]!r}"
            if decimal is None and is_grouped(column[row]):
                raise InputError(f"{got}, whose decimal sign is unclear. Name it.", decimal=",") from None
            raise InputError(f"{got}, which is not a number. {way_out}.", **{role: ""}) from None
        (values,) = readings.values()
    is_wrong = ~np.isfinite(values) | (values < low)
    if is_wrong.any():
        row = int(is_wrong.argmax())
        allowed = "finite" if low == -math.inf else f"finite and at least {low:g}"
        got = f"{table.where(row)} has {role} {values[row]:g}; it must be {allowed}"
        raise InputError(f"{got}. {way_out}.", **{role: ""})
    return values


def parse_times(table: Table, column: Column, day_first: bool | None = None) -> NDArray[Any]:
    """Return a column of numbers or dates, ISO 8601 or 31.05.2024; without a time zone they are in UTC."""
    if isinstance(column, np.ndarray) and column.dtype.kind == "M":
        return column
    if not len(column) or is_number(column[0]):
        return parse_numbers(table, column, "time")
    texts, seconds = _as_iso_dates(table, column, day_first), np.empty(len(column))
    for row, text in enumerate(texts):
        try:
            moment = datetime.fromisoformat(str(text))  # of pandas, also Timestamp and date
        except ValueError:
            got = f"{table.where(row)} has time {column[row]!r}; it must be a number or a date such as"
            raise InputError(f"{got} 2024-05-31. Correct it, or leave the column out.", time="") from None
        seconds[row] = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return seconds


def _as_iso_dates(table: Table, column: Column, day_first: bool | None) -> Sequence[Any]:
    """Return dates such as 31.05.2024 9:30 or 5/31/24 as 2024-05-31T09:30, others as they are."""
    matches = [LOCAL_DATE.fullmatch(cell.strip()) if isinstance(cell, str) else None for cell in column]
    parts = {row: match.groups("") for row, match in enumerate(matches) if match}
    if parts and day_first is None:
        row, (_, sign, *_) = next(iter(parts.items()))
        is_first, is_second = (any(int(part[place]) > 12 for part in parts.values()) for place in (0, 2))
        if sign != "." and not is_first and not is_second:
            got = f"{table.where(row)} has time {column[row]!r}, whose day is unclear"
            raise InputError(f"{got}. Say whether it comes first.", day_first=True)
        day_first = sign == "." or is_first
        order = "day, month, year" if day_first else "month, day, year"
        log_decision(f"column time: {column[row]} is {order}.", "day_first")
    texts = list(column)
    for row, (first, _, second, year, clock) in parts.items():
        day, month = (first, second) if day_first else (second, first)
        century = ("19" if year > "68" else "20") * (len(year) == 2)  # as in strptime
        clock = f"0{clock}" if clock[1:2] == ":" else clock or "00:00"
        texts[row] = f"{century}{year}-{month:0>2}-{day:0>2}T{clock}"
    return texts
