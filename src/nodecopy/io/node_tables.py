"""Tables of labels and features: the nodes their rows belong to, and features as numbers."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.arrays import Array, Floats
from nodecopy._core.checks import (
    as_array,
    as_integers,
    check_callable,
    check_sequence,
    check_type,
    check_vector,
    is_missing,
    list_names,
    show,
)
from nodecopy._core.estimator import Saveable
from nodecopy._core.files import TABLES, TableLike, format_of, is_frame, reading
from nodecopy._core.imports import suggest
from nodecopy._core.messages import log_decision
from nodecopy.errors import InputError, NotFittedError
from nodecopy.graph import UNLABELLED, Graph
from nodecopy.io import matrices
from nodecopy.io.columns import (
    MISSING_IDS,
    NODE_COLUMNS,
    PLAIN_NUMBERS,
    check_identifiers,
    describe,
    drop_row_names,
    find_header,
    is_date,
    is_grouped,
    is_number,
    match_names,
    plain_id,
    read_columns,
    read_notations,
    unify_ids,
    warn_about_spellings,
)
from nodecopy.io.tables import Column, Table, read_table

MIN_LABELS, MAX_CLASS_SHARE = 20, 0.5  # from 20 labels on, at most half of them may be classes
ANSWERS = ("label", "class")  # columns that are no features of nodes whose labels are given
NO_LABELS = (list, set, frozenset, dict, np.ndarray, complex, float, np.floating)  # fractions are no class
MAX_COMPARED = 10_000  # nodes up to which close ids are looked for, since it takes time


@dataclass(frozen=True)
class NodeRows:
    """Rows of labels or features, and the node of each."""

    path: TableLike
    ids: Column
    values: Any  # a list of labels, or a matrix of features
    label: str | None = None  # the name of the column of labels
    encoder: FeatureEncoder | None = None
    is_numbered: bool = False  # whether the file has no ids, so that row i belongs to node i

    def number(self, node_ids: NDArray[Any] | None) -> NodeRows:
        if not self.is_numbered or node_ids is None or len(node_ids) != len(self.ids):
            return self
        return replace(self, ids=node_ids, is_numbered=False)

    def attach(self, graph: Graph) -> Graph:
        """Return the graph with the labels, or with features, of which every node needs a row."""
        positions = match_ids(self.ids, graph.node_ids)
        if not isinstance(self.values, list):
            features = self.values[order_rows(positions, graph.node_ids)]
            return graph.replace(features=features).with_feature_encoder(self.encoder)
        labels: list[Any] = [None] * graph.n_nodes
        for position, value in zip(positions, self.values, strict=True):
            labels[position] = value
        array = label_array(labels)
        return graph.replace(labels=np.full(graph.n_nodes, UNLABELLED) if array is None else array)


def read_node_tables(
    labels: TableLike | None,
    features: TableLike | None,
    nodes: Collection[str] = (),
    *,
    encoder: FeatureEncoder | None,
    header: bool | None,
    id: str | None,
    label: str | None,
) -> list[NodeRows]:
    """Return the rows of labels and of features; ``nodes`` are ids as text."""
    tables: list[NodeRows] = []
    if labels is not None:
        is_path = isinstance(labels, (str, os.PathLike))
        is_shared = labels is features or (is_path and str(labels) == str(features))
        tables.append(read_labels(labels, nodes, header=header, id=id, label=label, is_shared=is_shared))
        nodes = nodes or set(map(str, tables[0].ids))
    if features is not None:
        options: Any = {"id": id, "id_required": labels is None and id is not None}
        options["label"] = tables[0].label if tables else None
        tables.append(read_features(features, nodes, encoder=encoder, header=header, **options))
    return tables


def read_labels(
    path: TableLike,
    nodes: Collection[str],
    *,
    header: bool | None = None,
    id: str | None = None,
    label: str | None = None,
    is_shared: bool = False,
) -> NodeRows:
    """Return ids and labels: integers if all are, else strings; ``None`` where they are missing."""
    format_of(path, TABLES)
    with reading(path) as file:
        column_names = {"id": id, "label": label}
        options: Any = {"header": header, "nodes": nodes, "is_shared": is_shared}
        table, columns = read_columns(file, "labels", column_names, **options)
        _check_rows(table, nodes)
        column = columns["label"]
        words = MISSING_IDS.intersection(column)
        values = [None if value in words else value for value in plain_values(column)]
        if not isinstance(column, np.ndarray):
            typed = iter(unify_ids([[value for value in values if value is not None]])[0])
            values = [None if value is None else next(typed) for value in values]
            if all(str(value).lstrip("-").isdecimal() for value in values if value is not None):
                as_integers([int(value) for value in values if value is not None], "labels")
        if words:
            missing = f"{sum(cell in words for cell in column)} ({', '.join(sorted(words))})"
            log_decision(f"{describe(file)}: missing labels: {missing}. Rename them if it is a class.")
        classes = [value for value in values if value is not None]
        _check_classes(classes, is_named=bool(label))
        warn_about_spellings(f"{describe(file)}: labels", {name for name in classes if isinstance(name, str)})
        named = zip(table.names or [], table.columns, strict=False)
        name = next((name for name, other in named if other is column), None)
        return NodeRows(path, check_identifiers(table, columns["id"], "id"), values, name)


def _check_rows(table: Table, nodes: Collection[str]) -> None:
    if nodes and table.names and not len(table.columns[0]):
        raise InputError(f"there are no rows, only the header ({','.join(table.names[:6])}).")


def _check_classes(values: Sequence[Any], *, is_named: bool) -> None:
    fractions = [value for value in values if is_number(value) and not float(value).is_integer()]
    if fractions:
        got = f"{fractions[0]}, a measurement. Write ranges of it as text, or name another column"
        raise InputError("labels", f"must be integers or text; got {got}.")
    n_classes = len(set(values))
    if not is_named and len(values) >= MIN_LABELS and n_classes > MAX_CLASS_SHARE * len(values):
        got = f"{n_classes} in {len(values)} rows. Name the column to read it anyway"
        raise InputError(f"labels must be classes that occur repeatedly; there are {got}.", label="NAME")


def read_features(
    path: TableLike,
    nodes: Collection[str],
    *,
    encoder: FeatureEncoder | None = None,
    header: bool | None = None,
    id: str | None = None,
    id_required: bool = False,
    label: str | None = None,
) -> NodeRows:
    """Return ids and rows of numbers from a table, or from an ``.npz`` or ``.npy`` matrix."""
    suffix = format_of(path, (*TABLES, ".npz", ".npy"))
    with reading(path) as file:
        if suffix not in TABLES:
            stored, matrix = matrices.read_features(file)
            ids: Column = np.arange(matrix.shape[0]) if stored is None else stored
            return NodeRows(path, ids, matrix, is_numbered=stored is None)
        roles = {"id": NODE_COLUMNS["id"]}
        rule = partial(find_header, roles=roles, file=describe(file), nodes=nodes)
        table = read_table(
            file, lambda first, below: id in first or (rule(first, below) if header is None else header)
        )
        _check_rows(table, nodes)
        has_id = id in (table.names or ()) or bool(match_names(table.names or (), roles))
        table = drop_row_names(table, nodes, has_id=has_id)
        names = table.names or ["id", *(f"feature {number}" for number in range(1, len(table.columns)))]
        if id_required and id not in names:
            raise InputError("id", f"must be a column; got {id!r}, where there are {', '.join(names)}.")
        id_column = names.index(id) if id in names else match_names(names, roles).get("id", 0)
        answers = [name for name in names if name == label or name.lower() in ANSWERS]
        if label is not None and answers and names[id_column] not in answers:
            reason = "is not a feature, since it holds labels; rename it to use it as one"
            log_decision(f"{describe(file)}: column {list_names(answers, 2)} {reason}.")
            others = [number for number, name in enumerate(names) if name not in answers]
            table = table.select(others)
            id_column, names = others.index(id_column), [names[number] for number in others]
        ids = check_identifiers(table, table.columns[id_column], "id")
        matrix, fitted = encode_table(table, names, id_column, encoder)
        return NodeRows(path, ids, matrix, encoder=fitted)


def check_numbers(nodes: Sequence[Any], n_rows: int) -> None:
    """Raise an error unless the nodes are 0 to ``n_rows - 1``."""
    numbers = set(map(str, range(n_rows)))
    if (other := next((node for node in nodes if str(node) not in numbers), None)) is not None:
        got = f"holds the rows of nodes 0 to {n_rows - 1}, but the graph has node {other!r}"
        raise InputError(f"a matrix without ids {got}. Write ids: np.savez('x.npz', ids=ids, x=matrix).")


def check_known(ids: Sequence[Any], nodes: Collection[Any], *, allow_isolated: bool | None) -> None:
    """Raise an error if some ids are not nodes; ``allow_isolated`` is None if nodes are fixed."""
    unknown = [node for node in dict.fromkeys(ids) if node not in nodes]
    if not unknown:
        return
    numerals = [node for node in unknown if str(node).removesuffix(".0").isdecimal()]
    by_number = {plain_id(node): node for node in nodes} if numerals else {}
    for node in numerals:
        if (other := by_number.get(plain_id(node))) is not None:
            got = f"id {str(node)!r} is not a node of the graph, but {str(other)!r} is"
            raise InputError(f"{got}. Write ids the same way (in pandas, read them with dtype=str).")
    listed = list_names(map(repr, unknown))
    if allow_isolated:
        log_decision(f"ids without edges are isolated nodes ({len(unknown)}): {listed}.")
        return
    # A node with a row of its own is no correction of another id, which is rather isolated.
    others = {*nodes} - {*ids} if len(nodes) <= MAX_COMPARED else ()
    hint = suggest(unknown[0], sorted(map(str, others)))
    subject = f"{len(unknown)} of {len(set(ids))} ids are not nodes of the graph: {listed}"
    if len(unknown) == 1:
        subject = f"id {listed} is not a node of the graph"
    if allow_isolated is None:
        raise InputError(f"{subject}.{hint} Correct the ids.")
    raise InputError(f"{subject}.{hint} Correct the ids, or add isolated nodes.", allow_isolated=True)


def label_array(labels: Sequence[Any] | NDArray[Any]) -> ArrayLike | None:
    """Return labels as integers or strings; ``None`` if all are missing."""
    if isinstance(labels, np.ndarray) and (labels.ndim != 1 or labels.dtype.kind in "iuf"):
        return check_vector(labels, "labels")
    values = plain_values(labels)
    present = [value for value in values if value is not None]
    if wrong := [value for value in present if isinstance(value, NO_LABELS)]:
        raise InputError("labels", f"must hold one class for every node; got {show(wrong[0])}.")
    if not present:
        return None
    if all(isinstance(value, (int, np.integer)) for value in present):
        return as_integers([UNLABELLED if value is None else value for value in values], "labels")
    return as_array(["" if value is None else str(value) for value in values], "labels")


def plain_values(values: Sequence[Any] | NDArray[Any]) -> list[Any]:
    """Return Python values: ``None`` for a missing or empty one, an integer for a whole float."""
    return list(map(_plain_value, values.tolist() if isinstance(values, np.ndarray) else values))


def _plain_value(value: Any) -> Any:
    if is_missing(value) or value == "":
        return None
    is_whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
    return int(value) if is_whole or isinstance(value, (bool, np.bool_)) else value


def match_ids(ids: Column, nodes: Column) -> list[int]:
    """Return the position of each id among the nodes; ids must be known and unique."""
    nodes, ids = unify_ids([nodes, ids])
    check_known(ids, set(nodes), allow_isolated=None)
    if len(set(ids)) < len(ids):
        node = next(node for node, count in Counter(ids).items() if count > 1)
        raise InputError(f"node {node!r} is listed more than once. Leave one row for each node.")
    position_of = {node: number for number, node in enumerate(nodes)}
    return [position_of[node] for node in ids]


def order_rows(positions: list[int], nodes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the row of every node, in node order; none may be missing."""
    if len(positions) < len(nodes):
        missing = sorted(np.delete(nodes, positions).tolist())
        which = f"{len(missing)} nodes" if len(missing) > 1 else "a node"
        listed = f"{which} of the graph: {list_names(map(repr, missing))}"
        raise InputError(f"there is no row for {listed}. Add a row for each, with empty cells.")
    return np.argsort(positions)


MISSING_WORDS = frozenset(["", "na", "#n/a", "n/a", "nan", "null", "none", "?", "-", "."])  # among numbers
MAX_CATEGORIES = 50
MIN_ROWS_OF_IDS = 10  # from this many rows on, a column of distinct texts is refused as ids
N_SHOWN = 3  # values and columns that a message names


@dataclass(eq=False, repr=False)
class FeatureEncoder(Saveable):
    """Turn the columns of a table into a matrix of numbers.

    A missing number becomes the median of its column, and a further column marks missing cells. Text, also
    digits with leading zeros (0150), is one-hot encoded, and so are its missing cells. Dates, and columns of
    more than 50 different texts, are refused. :func:`~nodecopy.read_graph` calls this; classifiers keep the
    encoder as ``feature_encoder_``.

    Parameters
    ----------
    ignore_columns
        Names of columns to leave out, or one name.

    Attributes
    ----------
    feature_names_
        A name for each column of the matrix, such as ``age``, ``age is missing`` and ``city = Oslo``.
    medians_, categories_
        The medians of columns of numbers, and the values of columns of text, by name.
    incomplete_
        Names of the columns of numbers with missing cells.

    Examples
    --------
    >>> from nodecopy.io import FeatureEncoder
    >>> encoder = FeatureEncoder().fit({"age": [31, 45, None], "city": ["Oslo", "Rome", "Oslo"]})
    >>> encoder.feature_names_
    ['age', 'age is missing', 'city = Oslo', 'city = Rome']
    >>> encoder.transform({"age": [None], "city": ["Rome"]}).tolist()
    [[38.0, 1.0, 0.0, 1.0]]
    """

    ignore_columns: Sequence[str] | str = ()
    feature_names_: list[str] = field(init=False)
    medians_: dict[str, float] = field(init=False)
    categories_: dict[str, list[str]] = field(init=False)
    incomplete_: list[str] = field(init=False)

    def fit(self, columns: Mapping[str, Column], *, row_name: Callable[[int], str] | None = None) -> Self:
        """Learn medians and categories.

        Parameters
        ----------
        columns
            Columns by name, all of the same length, or a pandas data frame.
        row_name
            What errors call the row at a position; by default its number.
        """
        table = _columns_by_name(columns)
        ignored = [self.ignore_columns] if isinstance(self.ignore_columns, str) else self.ignore_columns
        ignored = check_sequence(ignored, "ignore_columns", "names of columns")
        if unknown := [name for name in ignored if not isinstance(name, str) or name not in table]:
            names = ", ".join(map(str, table))
            raise InputError("ignore_columns", f"must name columns; got {unknown[0]!r}, not in {names}.")
        used = {name: column for name, column in table.items() if name not in ignored}
        where = check_callable(row_name, "row_name") or _row_name
        parsed = {name: _parse(name, column, where) for name, column in used.items()}
        numbers = {name: column for name, column in parsed.items() if column.dtype.kind == "f"}
        empty = [name for name, column in numbers.items() if np.isnan(column).all()]
        full = {name: column for name, column in numbers.items() if name not in empty}
        # the sum of the two numbers in the middle must not overflow
        self.medians_ = {name: 2 * float(np.nanmedian(column / 2)) for name, column in full.items()}
        self.incomplete_ = [name for name, column in full.items() if np.isnan(column).any()]
        texts = {name: column for name, column in parsed.items() if name not in numbers}
        self.categories_ = {name: self._find_categories(name, column) for name, column in texts.items()}
        if not self.medians_ and not self.categories_:
            raise InputError("the table must have a column of ids and at least one of numbers or text.")
        self.feature_names_ = self._name_features()
        self._log_encoding(full, empty)
        return self

    def transform(
        self, columns: Mapping[str, Column], *, row_name: Callable[[int], str] | None = None
    ) -> Floats:
        """Return the matrix of numbers, with a column for each of ``feature_names_``.

        A value that did not occur in :meth:`fit` belongs to no category; new columns are left out. Parameters
        are as in :meth:`fit`.
        """
        if not hasattr(self, "feature_names_"):
            raise NotFittedError("this FeatureEncoder is not fitted yet: call fit(columns) first.")
        table = _columns_by_name(columns)
        if missing := [name for name in (*self.medians_, *self.categories_) if name not in table]:
            raise InputError(f"the table must have the columns of fit; there is no {missing[0]!r}.")
        where = check_callable(row_name, "row_name") or _row_name
        numbers = {name: _parse(name, table[name], where) for name in self.medians_}
        if wrong := [name for name, column in numbers.items() if column.dtype.kind != "f"]:
            raise InputError(f"column {wrong[0]!r} must hold numbers, as in fit.")
        parts: list[Array] = [
            np.where(np.isnan(column), self.medians_[name], column) for name, column in numbers.items()
        ]
        parts += [np.isnan(numbers[name]) for name in self.incomplete_]
        for name, categories in self.categories_.items():
            texts = _as_text(table[name])
            parts += [texts == value for value in categories]
            if unknown := sorted(set(texts.tolist()) - set(categories)):
                values = list_names(map(repr, unknown), N_SHOWN)
                log_decision(f"features: {values} of column {name} did not occur in fit: no category.")
        return np.stack(parts, axis=1).astype(np.float64)

    def set_state(self, state: dict[str, Any]) -> None:
        """Take over what :meth:`get_state` returned, if its parts fit each other."""
        super().set_state(state)
        if not state:  # not fitted
            return
        if not set(self.incomplete_) <= self.medians_.keys():
            raise InputError("incomplete_", f"must name columns of numbers; got {show(self.incomplete_)}.")
        if self.feature_names_ != self._name_features():
            raise InputError("feature_names_", f"must match the columns; got {show(self.feature_names_)}.")

    def _name_features(self) -> list[str]:
        names = [*self.medians_, *(f"{name} is missing" for name in self.incomplete_)]
        for name, values in self.categories_.items():
            names += [f"{name} = {value}" if value else f"{name} is missing" for value in values]
        return names

    def has_same_columns(self, other: FeatureEncoder) -> bool:
        """Return whether the matrices of both have the same columns."""
        return self.feature_names_ == other.feature_names_ and self.medians_.keys() == other.medians_.keys()

    def _find_categories(self, name: str, column: Array) -> list[str]:
        values, counts = np.unique(column, return_counts=True)
        shown = ", ".join(value for value in values.tolist()[: N_SHOWN + 1] if value)
        if len(column) >= MIN_ROWS_OF_IDS and counts.max(initial=0) == 1:
            got = f"another text in every row ({shown}, ...): ids or free text"
            raise InputError(
                f"column {name!r} has {got}. Leave it out in the encoder.", ignore_columns=[name]
            )
        if len(values) > MAX_CATEGORIES:
            got = f"{len(values)} different texts ({shown}, ...), more than {MAX_CATEGORIES}"
            way_out = "Merge rare ones, or leave the column out in the encoder."
            raise InputError(f"column {name!r} has {got}. {way_out}", ignore_columns=[name])
        return list(values.tolist())

    def _log_encoding(self, numbers: Mapping[str, Array], empty: Sequence[str]) -> None:
        parts = []
        if self.categories_:
            counts = [f"{name} ({len(values)} values)" for name, values in self.categories_.items()]
            parts.append(f"one-hot encoded text: {list_names(counts, N_SHOWN)}")
        if self.incomplete_:
            counts = [f"{name} ({np.isnan(numbers[name]).sum()})" for name in self.incomplete_]
            parts.append(f"replaced missing cells by medians and marked them: {list_names(counts, N_SHOWN)}")
        if empty:
            parts.append(f"left out columns without a value: {list_names(empty, N_SHOWN)}")
        if parts:
            log_decision(f"features: {'; '.join(parts)}.", "ignore_columns")


def encode_table(
    table: Table, names: Sequence[str], id_column: int, encoder: FeatureEncoder | None
) -> tuple[Floats, FeatureEncoder]:
    """Return the columns of a table, without its ids, as numbers, and the encoder."""
    columns: dict[str, Column] = {}
    for position, (name, column) in enumerate(zip(names, table.columns, strict=True)):
        if position != id_column:
            same = sum(other == name for other in names[:position])
            columns[f"{name} ({same + 1})" if same else name] = column
    if encoder is None or not hasattr(encoder, "feature_names_"):
        params = {} if encoder is None else encoder.get_params()
        encoder = FeatureEncoder(**params).fit(columns, row_name=table.where)
    elif unknown := [name for name in columns if name not in (*encoder.medians_, *encoder.categories_)]:
        log_decision(f"features: columns that were not in fit are left out: {list_names(unknown, N_SHOWN)}.")
    return encoder.transform(columns, row_name=table.where), encoder


def _parse(name: str, column: Column, row_name: Callable[[int], str]) -> Array:
    array = _as_typed_array(column)
    cells = array.tolist()
    if array.dtype.kind in "Mm":
        raise _refuse_dates(name, array[0] if len(array) else "none")
    if array.dtype.kind == "c":
        raise InputError(f"column {name!r} must hold numbers or text; it holds complex numbers.")
    if array.dtype.kind in "OU" and any(map(_is_code, cells)):
        return _as_text(column)
    try:
        values = np.array(list(map(float, cells)), np.float64)
    except (TypeError, ValueError):
        is_empty = [is_missing(cell) or str(cell).strip().lower() in MISSING_WORDS for cell in cells]
        present = np.flatnonzero(~np.array(is_empty)).tolist()
        if present and all(is_date(cells[row]) for row in present):
            raise _refuse_dates(name, cells[present[0]]) from None
        wrong = [row for row in present if not is_number(cells[row])]
        where = f"{row_name(wrong[0])} has {name} {cells[wrong[0]]!r}" if wrong else ""
        values, readings = np.full(len(cells), np.nan), {}
        if wrong and all(is_grouped(cells[row]) for row in wrong):
            readings = read_notations(name, [cells[row] for row in present])
            if len(readings) != 1:
                raise InputError(f"{where}. {PLAIN_NUMBERS}") from None
        elif len(wrong) * 2 > len(present):
            return _as_text(column)
        elif wrong:
            raise InputError(f"{where}, which is not a number. Leave unknown cells empty.") from None
        values[present] = next(
            iter(readings.values()), [float(cells[row]) for row in present if not readings]
        )
    if np.isinf(values).any():
        row = int(np.isinf(values).argmax())
        raise InputError(f"{row_name(row)} has {name} {values[row]:g}; it must be finite or empty.")
    return values


def _columns_by_name(columns: Any) -> dict[str, Column]:
    if not is_frame(columns):
        check_type(columns, Mapping, "columns", "a dictionary of columns or a pandas data frame")
    return dict(columns.items())


def _as_typed_array(column: Column) -> Array:
    if hasattr(column, "dtype"):
        return np.asarray(column)
    cells = check_sequence(column, "columns", "a dictionary of lists of cells")
    array = np.empty(len(cells), object)  # NumPy would make a matrix of cells that are lists
    array[:] = cells
    return array


def _as_text(column: Column) -> Array:
    cells = _as_typed_array(column).tolist()
    return np.array(["" if is_missing(cell) else str(cell).strip() for cell in cells], object)


def _is_code(cell: Any) -> bool:
    """Return whether a cell has leading zeros, as postcodes have."""
    return isinstance(cell, str) and cell[:1] == "0" and len(cell) > 1 and cell.isdecimal()


def _refuse_dates(name: str, example: Any) -> InputError:
    got = f"dates ({example}). Write days since some date, or leave the column out in the encoder"
    return InputError(f"column {name!r} must hold numbers or text; it holds {got}.", ignore_columns=[name])


def _row_name(row: int) -> str:
    return f"row {row + 1}"
