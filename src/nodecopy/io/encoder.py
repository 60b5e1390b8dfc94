"""Tables of features: columns of numbers, categories and missing cells as a matrix of numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from nodecopy._core.arrays import Array, Floats
from nodecopy._core.checks import check_callable, check_sequence, check_type, is_missing, list_names, show
from nodecopy._core.estimator import Saveable
from nodecopy._core.files import is_frame
from nodecopy._core.messages import log_decision
from nodecopy.errors import InputError, NotFittedError
from nodecopy.io.columns import PLAIN_NUMBERS, is_date, is_grouped, is_number, read_notations
from nodecopy.io.tables import Column, Table

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
