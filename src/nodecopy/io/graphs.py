"""Reading and writing graphs and interactions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from nodecopy._core.arrays import Floats, Ints, check_ids
from nodecopy._core.checks import as_array, check_choice, check_real, check_type, check_unique
from nodecopy._core.files import TABLES, PathLike, TableLike, format_of, reading
from nodecopy._core.messages import add_escaped, log_decision, warn_about_data
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.interactions import Interactions
from nodecopy.io import matrices
from nodecopy.io.columns import (
    EPOCHS,
    NOTATIONS,
    ColumnNames,
    Decimal,
    check_identifiers,
    check_notation,
    describe,
    is_number,
    parse_numbers,
    parse_times,
    read_columns,
    unify_ids,
)
from nodecopy.io.edge_lists import DUPLICATES, Duplicates, build_graph, merge_directions
from nodecopy.io.networks import read_network, write_graphml
from nodecopy.io.node_tables import FeatureEncoder, NodeRows, check_known, check_numbers, read_node_tables
from nodecopy.io.tables import ATOMIC, Column, Table, open_text, write_table

FORMATS = (*TABLES, ".npz", ".graphml")  # the formats that are written; further ones can be read
NETWORKS = (".graphml", ".gexf", ".json")
READABLE = (*TABLES, ".npz", ".mtx", *NETWORKS)
N_EXAMINED = 100  # rows in which targets that are lists are looked for
ENDS = ("source", "target")
DURATIONS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0, "week": 604800.0}
MONDAY = 4 * DURATIONS["day"]  # the first one after the start of Unix time
INTERACTION_FORMATS = (*TABLES, ".npz")  # formats that can be written; atomic files can be read
N_SNIFFED = 500  # lines by which lists of items are distinguished from tables


def read_graph(
    path: TableLike,
    *,
    labels: TableLike | None = None,
    features: TableLike | None = None,
    encoder: FeatureEncoder | None = None,
    node_ids: ArrayLike | None = None,
    directed: bool | None = None,
    header: bool | None = None,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    id: str | None = None,
    label: str | None = None,
    decimal: Decimal | None = None,
    duplicates: Duplicates = "max",
    allow_isolated: bool = False,
) -> Graph:
    """Return the graph in a file, or in data frames instead of tables.

    Parameters
    ----------
    path
        An edge list (``.csv``, ``.tsv``, ``.txt``, ``.parquet``), a matrix (``.npz``, ``.mtx``), a network
        (``.graphml``, ``.gexf``, node-link ``.json``), or a data frame (pandas, polars, Arrow) of edges.
    labels
        A table of node ids and labels; other nodes have no label.
    features
        A table with a row for every node, or an ``.npz`` archive of the arrays ``ids`` and ``x``. Without
        ids, row i belongs to node i, or to the i-th of ``node_ids``. Text and missing cells are encoded by
        :class:`~nodecopy.io.FeatureEncoder`.
    encoder
        A fitted encoder of features, such as ``feature_encoder_`` of a classifier, or one to be fitted.
    node_ids
        The nodes of an edge list in their order; by default the ids of the edges in ascending order.
    directed
        Whether the graph is directed; by default as stored in the file, else undirected.
    header
        Whether the first row of each table is a header; by default decided by its content (see the notes).
    source, target, weight
        Names of the columns of an edge list; ``weight`` also of an edge attribute of a network. By default
        columns with usual names (``source``, ``from``, ``target``, ``weight``, ...); otherwise the first two
        that can hold ids, and the next one as weight if it holds numbers other than times, types or years. An
        empty name for ``weight`` leaves weights out; otherwise rows with an empty weight are left out.
    id, label
        Names of the columns of ``labels`` and ``features``, or ``label`` of a node attribute of a network. By
        default columns with usual names, otherwise the first column and, in a table of two, the second.
        An empty cell, ``NA`` or ``nan`` is a missing label.
    decimal
        The decimal sign of weights, ``"."`` or ``","``; by default the one with which all can be read.
    duplicates
        A repeated edge has the largest of its weights (``"max"``), their sum (``"sum"``), or is an error
        (``"error"``). An undirected edge in both directions is repeated, unless all edges are, with equal
        weights.
    allow_isolated
        Whether ids of ``labels`` and ``features`` without edges become isolated nodes instead of an error.

    Notes
    -----
    Ids are integers if all of them, in all tables, are integers in canonical form (7, but not 007), otherwise
    strings. :doc:`/your_data` has the rules by which headers are recognised. Such decisions, and columns that
    are not read, are logged.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_graph(Graph.from_edges(["ann", "bob"], ["bob", "cleo"]), f"{folder}/edges.csv")
    ...     read_graph(f"{folder}/edges.csv")
    Graph(3 nodes, 2 undirected edges, binary)
    >>> import pandas
    >>> read_graph(pandas.DataFrame({"from": ["ann", "bob"], "to": ["bob", "cleo"], "weight": [1, 2]}))
    Graph(3 nodes, 2 undirected edges, weighted)
    """
    suffix = format_of(path, READABLE)
    check_choice(duplicates, "duplicates", DUPLICATES)
    if decimal is not None:
        check_choice(decimal, "decimal", NOTATIONS)
    node_order = None
    if node_ids is not None:
        node_order = check_ids(node_ids, "node_ids")
        check_unique(node_order, "node_ids")
    if labels is None and label and suffix not in NETWORKS:
        labels = features
    if labels is None and ((label and suffix not in NETWORKS) or (id and features is None)):
        raise InputError("id and label name columns of tables of labels and features; got no such table.")
    with reading(path) as file:
        if suffix in TABLES:
            column_names = {"source": source, "target": target, "weight": weight}
            content: _Edges | Graph = _read_edges(file, column_names, header, directed, decimal)
        else:
            is_network = suffix in NETWORKS
            if node_order is not None or source or target or (weight and not is_network):
                raise InputError("ids and names of columns are for edge lists; this file has its own.")
            if is_network:
                own_label = label if labels is None else None
                content = read_network(file, directed, own_label, weight, duplicates)
            else:
                whole, own_directed = matrices.read_graph(file, suffix)
                is_directed = own_directed if directed is None else directed
                content = merge_directions(whole, is_directed, file=file.name)
            node_order = content.node_ids
    edge_ids = [] if isinstance(content, Graph) else content.ends
    if node_order is not None:
        edge_ids = [*edge_ids, node_order]
    texts = _texts(edge_ids) if labels is not None or features is not None else set()
    tables = read_node_tables(labels, features, texts, encoder=encoder, header=header, id=id, label=label)
    if isinstance(content, _Edges):
        tables = [rows.number(node_order) for rows in tables]
    ids = unify_ids([*edge_ids, *(rows.ids for rows in tables)])
    order = _order_nodes(ids, tables, is_fixed=node_order is not None, allow_isolated=allow_isolated)
    if isinstance(content, _Edges):
        with reading(path):
            options: Any = {"directed": directed or False, "duplicates": duplicates, "file": describe(path)}
            content = _build(content, ids, order, **options)
    for rows in tables:
        with reading(rows.path):
            content = rows.attach(content)
    return content


def read_contacts(
    path: TableLike,
    *,
    window: float | str | None = None,
    source: str | None = None,
    target: str | None = None,
    time: str | None = None,
    weight: str | None = None,
    header: bool | None = None,
    directed: bool = False,
    day_first: bool | None = None,
) -> dict[Any, Graph]:
    """Return a graph of each window of time of a table of contacts, by the start of the window.

    All graphs have the same nodes, those of the table; a node without contacts in a window is isolated. The
    weight of an edge is the number of contacts, or the sum of their weights. Windows without contacts are
    left out, since nothing in the table tells whether they were observed.

    Parameters
    ----------
    path
        A table (``.csv``, ``.tsv``, ``.txt``, ``.parquet``) or data frame with a row per contact.
    window
        Duration of the windows: a number, in seconds if times are dates or Unix times, or for these a text
        such as ``"12 hours"``, ``"1 day"`` or ``"2 weeks"``. Windows start at multiples of it, days at
        midnight (UTC, if times have a zone) and weeks on Monday. By default a day, or, if times are other
        numbers, each of them is a window if it has at least as many contacts as there are nodes.
    source, target, time, weight
        Names of columns. By default columns with usual names (``source``, ``target``, ``time``, ``date``,
        ``weight``, ...); otherwise the only column of dates or Unix times, and the first two others that can
        hold ids.
    header, directed
        As in :func:`read_graph`.
    day_first
        Whether 3/4/2024 is in April, as in :func:`~nodecopy.read_interactions`.

    Examples
    --------
    >>> import pandas
    >>> from nodecopy import read_contacts
    >>> days = ["2024-05-30 09:10", "2024-05-30 09:30", "2024-05-31 11:00"]
    >>> ends = {"source": ["ann", "ann", "bob"], "target": ["bob", "bob", "cleo"]}
    >>> windows = read_contacts(pandas.DataFrame({**ends, "time": days}))
    >>> [(str(start), graph.n_edges, graph.n_nodes) for start, graph in windows.items()]
    [('2024-05-30', 1, 3), ('2024-05-31', 1, 3)]
    """
    column_names = {"source": source, "target": target, "weight": weight, "time": time}
    with reading(path) as file:
        table, columns = read_columns(file, "contacts", column_names, header=header)
        if "time" not in columns or not len(columns["time"]):
            raise InputError("time", "must be a column with a time in some rows; it has none.")
        ends = [check_identifiers(table, columns[role], role) for role in ENDS]
        check_notation(ends)
        weights = np.ones(len(ends[0]))
        if "weight" in columns:
            weights = parse_numbers(table, columns["weight"], "weight", low=0)
        times, is_date = _read_seconds(table, columns["time"], day_first)
        ids, codes = np.unique(np.concatenate([*map(np.asarray, unify_ids(ends))]), return_inverse=True)
        first, second = np.split(codes.reshape(-1), 2)
        is_edge = first != second
        if not is_edge.any():
            raise InputError("the table must have contacts between different nodes; it has none.")
        if n_loops := int((~is_edge).sum()):
            log_decision(f"{describe(path)}: contacts of a node with itself: {n_loops}; they are left out.")
            first, second, weights, times = (part[is_edge] for part in (first, second, weights, times))
        starts, number = _cut_windows(times, is_date, window, len(ids))
    log_decision(f"{describe(path)}: {len(starts)} windows from {starts[0]} to {starts[-1]}.", "window")
    if not directed:
        first, second = np.minimum(first, second), np.maximum(first, second)
    windows = {}
    for place, start in enumerate(starts):
        rows = np.flatnonzero(number == place)
        shape = len(ids), len(ids)
        matrix = sparse.csr_array((weights[rows], (first[rows], second[rows])), shape)
        windows[start] = Graph(matrix, None, None, ids, directed)
    return windows


def _read_seconds(table: Table, column: Column, day_first: bool | None) -> tuple[Floats, bool]:
    """Return times as numbers, and whether they are seconds since 1970."""
    times = parse_times(table, column, day_first)
    if times.dtype.kind == "M":
        return times.astype("datetime64[ms]").astype(np.float64) / 1000, True
    if not is_number(column[0]):
        return times, True
    for (low, high), unit in zip(EPOCHS, (1, 1000), strict=True):
        if low <= times.min() and times.max() <= high:
            return times / unit, True
    return times, False


def _cut_windows(
    times: Floats, is_date: bool, window: float | str | None, n_nodes: int
) -> tuple[list[Any], Ints]:
    """Return the starts of the windows that have contacts, and the position of the window of each contact."""
    if window is None and not is_date:
        origin, size, places = 0.0, 1.0, times
        if len(np.unique(times)) * n_nodes > len(times):
            raise InputError("window", "must be given, in the unit of times that are not dates; got None.")
    else:
        origin, size = MONDAY * is_date, _read_duration(window or "1 day", is_date)
        places = (times - origin) // size
    places, number = np.unique(places, return_inverse=True)
    starts = origin + places * size
    if not is_date:
        return starts.tolist(), number
    unit = "s" if (starts % DURATIONS["day"]).any() else "D"
    return list(starts.astype("datetime64[s]").astype(f"datetime64[{unit}]")), number


def _read_duration(window: float | str, is_date: bool) -> float:
    """Return a duration, in seconds if it is a text."""
    if not isinstance(window, str):
        return check_real(window, "window", low=1e-6)
    parts = re.fullmatch(r"(\d*) ?([a-z]+?)s?", window.strip())
    if not is_date or parts is None or parts[2] not in DURATIONS:
        allowed = "a number, or for dates and Unix times a text such as '1 day' or '12 hours'"
        raise InputError("window", f"must be {allowed}; got {window!r}.")
    return int(parts[1] or 1) * DURATIONS[parts[2]]


def write_graph(graph: Graph, path: PathLike, *, spreadsheet: bool = False) -> None:
    """Write a graph, whole or not at all, in the format of the suffix of ``path``.

    Tables hold only the edges (``source``, ``target`` and, if weighted, ``weight``; undirected edges once).
    ``.graphml`` holds all but features, ``.npz`` everything.

    Parameters
    ----------
    graph, path
        The graph and the file.
    spreadsheet
        Whether ids in ``.csv`` and ``.tsv`` files that a spreadsheet would take for formulas (=, +, - or @)
        get an apostrophe in front.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> graph = Graph.from_edges(["ann", "bob"], ["bob", "cleo"])
    >>> with TemporaryDirectory() as folder:
    ...     write_graph(graph, f"{folder}/graph.npz")
    ...     read_graph(f"{folder}/graph.npz") == graph
    True
    """
    check_type(graph, Graph, "graph", "a Graph")
    suffix = format_of(path, FORMATS)
    if suffix == ".npz":
        matrices.write_graph(graph, path)
    elif suffix == ".graphml":
        write_graphml(graph, path)
    else:
        source, target, weight = graph.edges()
        write_table(path, {"source": source, "target": target, "weight": weight}, spreadsheet=spreadsheet)


class _Edges(NamedTuple):
    table: Table
    ends: list[Column]
    weights: Floats


def _read_edges(
    path: Any, column_names: ColumnNames, header: bool | None, directed: bool | None, decimal: Decimal | None
) -> _Edges:
    table, columns = read_columns(path, "edges", column_names, header=header)
    _check_content(table, describe(path), directed)
    ends = [check_identifiers(table, columns[role], role) for role in ENDS]
    check_notation(ends)
    weights = np.ones(len(ends[0]))
    if "weight" in columns:
        weights = parse_numbers(table, columns["weight"], "weight", low=0, decimal=decimal)
    return _Edges(table, ends, weights)


def _check_content(table: Table, file: str, directed: bool | None) -> None:
    comment = " ".join(table.comments[:3])
    if re.match(r"bip\b", comment):
        raise InputError("the comment calls the graph bipartite (bip). Use read_interactions to read it.")
    for column in table.columns[2:]:
        if len(column) and re.match(r"\{.", str(column[0])) and column[0] != "{}":
            raise InputError("the rows end in attributes of NetworkX. Write the file with write_graphml.")
    names = [name.lower() for name in table.names or ()]
    kinds = set(table.columns[names.index("type")]) if "type" in names else set()
    is_directed = re.match(r"asym\b|directed graph", comment, re.IGNORECASE) or kinds == {"Directed"}
    if directed is None and is_directed:
        log_decision(f"{file}: edges are read as undirected; the file calls them directed.", "directed")


def _texts(columns: Sequence[Column]) -> set[str]:
    distinct = (np.unique(ids).tolist() if isinstance(ids, np.ndarray) else set(ids) for ids in columns)
    return {str(node) for ids in distinct for node in ids}


def _warn_about_lists(sources: list[Any], targets: list[Any], file: str) -> None:
    """Warn if targets are lists of ids, such as ``b;c``, which would be nodes of their own."""
    examined = list(map(str, targets[:N_EXAMINED]))
    for sign in ";|, ":
        lists = [cell for cell in examined if sign in cell]
        if 2 * len(lists) <= len(examined):
            continue
        parts = [part.strip() for cell in lists for part in cell.split(sign)]
        known = set(map(str, sources))
        if 2 * sum(part in known for part in parts) > len(parts):
            problem = f"targets look like lists of ids ({lists[0]!r}), but each is read as one node"
            warn_about_data(f"{file}: {problem}. Write a row for each edge.")
            return


def _build(edges: _Edges, ids: Sequence[list[Any]], order: list[Any], **options: Any) -> Graph:
    _warn_about_lists(ids[0], ids[1], options["file"])
    position_of = {node: number for number, node in enumerate(order)}
    first, second = (_find_ends(edges.table, role, ids[end], position_of) for end, role in enumerate(ENDS))
    node_ids = as_array(order or np.zeros(0, np.int64), "ids")
    return build_graph(first, second, edges.weights, node_ids, **options, row_name=edges.table.where)


def _order_nodes(
    ids: Sequence[list[Any]], tables: Sequence[NodeRows], *, is_fixed: bool, allow_isolated: bool
) -> list[Any]:
    n_own = len(ids) - len(tables)
    order = ids[n_own - 1] if is_fixed else sorted(set().union(*ids[:n_own]))
    node_set = set(order)
    for rows, row_ids in zip(tables, ids[n_own:], strict=True):
        with reading(rows.path):
            if rows.is_numbered:
                check_numbers(order, len(row_ids))
            if node_set or is_fixed:
                check_known(row_ids, node_set, allow_isolated=None if is_fixed else allow_isolated)
    return order if is_fixed else sorted(node_set.union(*ids[n_own:]))


def _find_ends(table: Table, role: str, ids: list[Any], position_of: dict[Any, int]) -> Ints:
    if not position_of.keys() >= set(ids):
        position_of = add_escaped(position_of)
    try:
        return np.array([position_of[node] for node in ids], np.int64)
    except KeyError as error:
        where = table.where(ids.index(error.args[0]))
        raise InputError(f"{where} has {role} {error.args[0]!r}, which is not in node_ids.") from None


def read_interactions(
    path: TableLike,
    *,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    time: str | None = None,
    header: bool | None = None,
    lists: bool | None = None,
    decimal: Decimal | None = None,
    day_first: bool | None = None,
) -> Interactions:
    """Return the interactions in a file or data frame.

    Parameters
    ----------
    path
        A table (``.csv``, ``.tsv``, ``.txt``, ``.parquet``) or data frame with a row per interaction, an
        atomic file of RecBole (``.inter``), or an ``.npz`` file of :func:`write_interactions` or SciPy.
    user, item, rating, time
        Names of columns. By default columns with usual names (``user``, ``customer``, ``item``, ``rating``,
        ``time``, ...); otherwise the first two that can hold ids are user and item, the next one is the
        rating if it holds numbers other than times and prices, and the first column of Unix times or dates
        (2024-05-31 or 31.05.2024) is the time. An empty name leaves rating or time out; otherwise rows with
        an empty cell of such a column are left out.
    header
        Whether the first row is a header; by default decided as in :func:`~nodecopy.read_graph`.
    lists
        Whether a ``.txt`` file has a line per user, ``user item item``; by default if all ids are integers,
        no user has two lines and lines differ in length.
    decimal
        The decimal sign of ratings, ``"."`` or ``","``; by default the one with which all can be read.
    day_first
        Whether 3/4/2024 is in April; by default if some day above 12 comes first. 3.4.2024 always is.

    Notes
    -----
    Of repeated interactions of a user with an item the latest row counts, with the time of the first. A
    rating of zero is no interaction. Ids are as in :func:`~nodecopy.read_graph`.

    Examples
    --------
    >>> import pandas
    >>> read_interactions(pandas.DataFrame({"user": ["ann", "bob"], "item": ["tea", "jam"]}))
    Interactions(2 users, 2 items, 2 interactions, binary)
    """
    column_names = {"user": user, "item": item, "rating": rating, "time": time}
    suffix = format_of(path, (*INTERACTION_FORMATS, ATOMIC))
    if decimal is not None:
        check_choice(decimal, "decimal", NOTATIONS)
    with reading(path) as file:
        if suffix == ".txt" and (lists if lists is not None else holds_item_lists(file)):
            if lists is None:
                log_decision(f"{describe(path)}: each line holds a user and that user's items.", "lists")
            return _read_item_lists(file)
        if lists:
            raise InputError("lists", "must be left out: lists of items can be read from .txt files only.")
        if suffix == ".npz":
            if named := [role for role, name in column_names.items() if name]:
                raise InputError(f"a .npz file has no columns to name. Leave {' and '.join(named)} out.")
            return matrices.read_interactions(file)
        table, columns = read_columns(file, "interactions", column_names, header=header)
        users, items = (check_identifiers(table, columns[role], role) for role in ("user", "item"))
        check_notation([users])
        check_notation([items])
        user_ids, user_codes = _encode_ids(users)
        item_ids, item_codes = _encode_ids(items)
        ratings = when = None
        if "rating" in columns:
            ratings = parse_numbers(table, columns["rating"], "rating", low=0, decimal=decimal)
        if "time" in columns:
            when = parse_times(table, columns["time"], day_first)
        log = Interactions.from_table(user_codes, item_codes, ratings, when)
        is_shorter = log.n_interactions < len(user_codes)  # by repeated pairs or ratings of zero
        pairs = np.unique(user_codes * len(item_ids) + item_codes) if is_shorter else user_codes
        if n_repeated := len(user_codes) - len(pairs):
            log_decision(f"{describe(path)}: repeated user-item pairs: {n_repeated}; the latest row counts.")
        if n_zeros := len(pairs) - log.n_interactions:
            way = "they are no interactions. An empty name reads all rows without ratings"
            log_decision(f"{describe(path)}: user-item pairs with a rating of 0: {n_zeros}; {way}.", "rating")
        return Interactions(log.matrix, user_ids, item_ids, log.times)


def holds_item_lists(path: Path, *, any_length: bool = False) -> bool:
    """Return whether lines are lists of integers, each of another user, and differ in length."""
    try:
        with open_text(path, "r") as file:
            rows = [line.split() for line in islice(file, N_SNIFFED) if line.strip()]
    except UnicodeDecodeError:
        return False
    return (
        (any_length or len({len(row) for row in rows}) > 1)
        and len({row[0] for row in rows}) == len(rows)
        and all(word.isdecimal() for row in rows for word in row)
    )


def _read_item_lists(path: Path) -> Interactions:
    with open_text(path, "r") as file:
        rows = [line.split() for line in file if line.strip()]
    if not rows:
        raise InputError("the file holds no rows.")
    user_ids, lines = _encode_ids([row[0] for row in rows])
    item_ids, columns = _encode_ids(list(chain.from_iterable(row[1:] for row in rows)))
    users = np.repeat(lines, [len(row) - 1 for row in rows])
    shape = len(user_ids), len(item_ids)
    matrix = sparse.csr_array((np.ones(len(users)), (users, columns)), shape=shape)
    return Interactions(matrix, user_ids, item_ids).binary()


def _encode_ids(column: Column) -> tuple[NDArray[Any], NDArray[np.int64]]:
    (values,) = unify_ids([column])
    ids = sorted(set(values))
    position_of = {value: number for number, value in enumerate(ids)}
    codes = np.array([position_of[value] for value in values], np.int64)
    return as_array(ids or np.zeros(0, np.int64), "ids"), codes


def write_interactions(interactions: Interactions, path: PathLike, *, spreadsheet: bool = False) -> None:
    """Write interactions as columns ``user``, ``item`` and, where there are some, ``rating`` and ``time``.

    Only ``.npz`` keeps users and items without interactions. See :func:`~nodecopy.write_graph`.

    >>> from tempfile import TemporaryDirectory
    >>> log = Interactions.from_table(["ann", "bob"], ["tea", "jam"])
    >>> with TemporaryDirectory() as folder:
    ...     write_interactions(log, f"{folder}/log.csv")
    ...     read_interactions(f"{folder}/log.csv") == log
    True
    """
    check_type(interactions, Interactions, "interactions", "Interactions")
    if format_of(path, INTERACTION_FORMATS) == ".npz":
        matrices.write_interactions(interactions, path)
    else:
        users, items, ratings = interactions.table()
        columns = {"user": users, "item": items, "rating": ratings, "time": interactions.times}
        write_table(path, columns, spreadsheet=spreadsheet)
