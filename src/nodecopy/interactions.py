"""Interactions of users with items, with external ids."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from nodecopy._core.arrays import (
    Array,
    Bools,
    RowData,
    Rows,
    check_ids,
    check_weights,
    deduplicate,
    find_positions,
    freeze,
    number_ids,
)
from nodecopy._core.checks import (
    check_finite,
    check_integer,
    check_numbers,
    check_real,
    check_type,
    check_vector,
)
from nodecopy.errors import InputError


class Interactions(RowData):
    """Immutable interactions of users (rows) with items (columns); the constructor checks its arguments.

    Parameters
    ----------
    matrix
        Users x items matrix, dense or SciPy sparse, finite and not negative; zero means no interaction. For
        implicit feedback all interactions are one.
    user_ids, item_ids
        One unique integer or string per user and item; 0, 1, 2, ... by default.
    times
        One number or date per interaction, in the order of :meth:`table`; none by default. Only splits by
        time use them, and equal tables may differ in them.

    Examples
    --------
    >>> from nodecopy import Interactions
    >>> log = Interactions.from_table(["ann", "ann", "bob"], ["tea", "jam", "tea"])
    >>> log
    Interactions(2 users, 2 items, 3 interactions, binary)
    >>> log.item_ids.tolist()
    ['jam', 'tea']
    """

    how_to_change = "build new ones from their matrix and ids"
    user_ids: Array
    item_ids: Array
    times: Array | None = None

    def __init__(
        self,
        matrix: Any,
        user_ids: ArrayLike | None = None,
        item_ids: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> None:
        rows = Rows.from_matrix(matrix, "matrix")
        users = number_ids(rows.n_rows, "users") if user_ids is None else user_ids
        items = number_ids(rows.n_columns, "items") if item_ids is None else item_ids
        self.__dict__.update(
            rows=rows,
            user_ids=check_ids(users, "user_ids", rows.n_rows),
            item_ids=check_ids(items, "item_ids", rows.n_columns),
            times=None if times is None else freeze(check_times(times, rows.n_entries).copy()),
        )

    @classmethod
    def from_table(
        cls,
        users: ArrayLike,
        items: ArrayLike,
        ratings: ArrayLike | None = None,
        times: ArrayLike | None = None,
        *,
        user_ids: ArrayLike | None = None,
        item_ids: ArrayLike | None = None,
    ) -> Interactions:
        """Return interactions from the columns of a log.

        Of repeated interactions of a user with an item the latest one counts, the last one without
        ``times``; its time is that of the first, so that splits by time keep the pair in the training part.
        Without ``user_ids`` and ``item_ids`` the distinct ids are in ascending order.
        """
        users, items = check_ids(users, "users"), check_ids(items, "items")
        check_vector(items, "items", length=len(users), per="row")
        values = np.ones(len(users)) if ratings is None else check_weights(ratings, len(users), "ratings")
        row_ids = np.unique(users) if user_ids is None else check_ids(user_ids, "user_ids")
        column_ids = np.unique(items) if item_ids is None else check_ids(item_ids, "item_ids")
        first, second = find_positions(users, row_ids, "users"), find_positions(items, column_ids, "items")
        shape = len(row_ids), len(column_ids)
        if times is None:
            return cls(deduplicate(first, second, values, shape, np.zeros(len(users))), row_ids, column_ids)
        when = check_times(times, len(users))
        matrix = deduplicate(first, second, values, shape, rank=when)
        order = -np.unique(when, return_inverse=True)[1]
        row = deduplicate(first, second, np.arange(float(len(users))), shape, rank=order)
        earliest = row.data[matrix.data != 0].astype(np.int64)  # a rating of zero is no interaction
        return cls(matrix, row_ids, column_ids, when[earliest])

    @property
    def matrix(self) -> sparse.csr_array:
        """The users x items matrix as a canonical CSR matrix with read-only arrays."""
        return self.rows.csr

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self.rows.n_rows

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.rows.n_columns

    @property
    def n_interactions(self) -> int:
        """Number of distinct pairs of user and item."""
        return self.rows.n_entries

    def table(self) -> tuple[Array, Array, Array | None]:
        """Return columns of user ids, item ids and weights (``None`` if binary)."""
        return self.user_ids[self.rows.row_numbers], self.item_ids[self.rows.indices], self.rows.weights

    def binary(self) -> Interactions:
        """Return the interactions without weights."""
        return self._with(rows=replace(self.rows, weights=None))

    def with_rows(self, rows: Rows) -> Interactions:
        """Return a copy without times and with other rows, which must be canonical and are not checked."""
        return self._with(rows=rows, times=None)

    def without_times(self) -> Interactions:
        """Return the interactions without times."""
        return self if self.times is None else self._with(times=None)

    def select(self, mask: Bools) -> Interactions:
        """Return the interactions, in the order of :meth:`table`, where ``mask`` is true.

        >>> Interactions([[1, 1], [0, 1]]).select([True, False, True]).matrix.toarray().tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        given = check_vector(mask, "mask", length=self.n_interactions, per="interaction")
        is_selected = check_numbers(given, "mask").astype(bool)
        times = None if self.times is None else freeze(self.times[is_selected])
        return self._with(rows=self.rows.keep_entries(is_selected), times=times)

    def at_least(self, *, rating: float = 0.0, per_user: int = 1, per_item: int = 1) -> Interactions:
        """Return the interactions that pass three filters in turn, as in the paper's data.

        Interactions with a rating below ``rating`` are dropped, then users with fewer than ``per_user``
        interactions, then items with fewer than ``per_item``; by default, those without any.
        """
        check_real(rating, "rating of at_least")
        check_integer(per_user, "per_user of at_least", low=0)
        check_integer(per_item, "per_item of at_least", low=0)
        part = self.select(self.matrix.data >= rating)
        is_user = part.rows.degrees >= per_user
        part = part.select(is_user[part.rows.row_numbers])
        is_item = np.bincount(part.rows.indices, minlength=self.n_items) >= per_item
        part = part.select(is_item[part.rows.indices])
        matrix = part.matrix[np.flatnonzero(is_user)][:, np.flatnonzero(is_item)]
        return Interactions(matrix, self.user_ids[is_user], self.item_ids[is_item], part.times)

    def union(self, other: Interactions) -> Interactions:
        """Return the pairs in either of two tables of the same users and items, without weights and times.

        >>> first, second = Interactions([[1, 0], [1, 0]]), Interactions([[1, 1], [0, 0]])
        >>> first.union(second).matrix.toarray().tolist()
        [[1.0, 1.0], [1.0, 0.0]]
        """
        self.check_same_ids(other, "other")
        return Interactions(self.matrix + other.matrix, self.user_ids, self.item_ids).binary()

    def difference(self, other: Interactions) -> Interactions:
        """Return the interactions whose pairs are not in another table of the same users and items.

        >>> first, second = Interactions([[1, 0], [1, 0]]), Interactions([[1, 1], [0, 0]])
        >>> first.difference(second).matrix.toarray().tolist()
        [[0.0, 0.0], [1.0, 0.0]]
        """
        self.check_same_ids(other, "other")
        own, others = (  # a different number for every pair of user and item
            rows.row_numbers * np.int64(self.n_items) + rows.indices for rows in (self.rows, other.rows)
        )
        return self.select(~np.isin(own, others, assume_unique=True))

    def check_same_ids(self, other: Interactions, name: str) -> None:
        """Raise an error unless ``other`` has the same users and items in the same order."""
        check_type(other, Interactions, name, "Interactions")
        for what in ("user_ids", "item_ids"):
            if not np.array_equal(getattr(self, what), getattr(other, what)):
                got = f"{other!r}, which has other {what}. Interactions.from_table takes both"
                raise InputError(name, f"must be of the same users and items in the same order; got {got}.")

    def to_parts(self) -> dict[str, Any]:
        """Return what :meth:`from_parts` takes."""
        parts = {"matrix": self.matrix, "user_ids": self.user_ids, "item_ids": self.item_ids}
        return parts if self.times is None else parts | {"times": self.times}

    @classmethod
    def from_parts(cls, parts: dict[str, Any]) -> Interactions:
        """Rebuild interactions with every check."""
        return cls(**parts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Interactions):
            return NotImplemented
        return (
            self.rows == other.rows
            and np.array_equal(self.user_ids, other.user_ids)
            and np.array_equal(self.item_ids, other.item_ids)
        )

    def __repr__(self) -> str:
        kind = "weighted" if self.is_weighted else "binary"
        counts = f"{self.n_users} users, {self.n_items} items, {self.n_interactions} interactions"
        return f"Interactions({counts}, {kind})"


def check_times(times: ArrayLike, length: int) -> Array:
    """Return times, numbers or dates without missing ones."""
    when = check_vector(times, "times", length=length, per="interaction")
    if when.dtype.kind not in "iufM":
        raise InputError("times", f"must be numbers or dates; got {when.dtype}.")
    if when.dtype.kind == "M" and np.isnat(when).any():
        raise InputError("times", "must not be missing; got NaT.")
    check_finite(when, "times")
    return when
