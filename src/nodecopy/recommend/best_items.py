"""The best items of many users, among all items or some candidates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from nodecopy._core.csr import IntArray
from nodecopy._core.validation import check_integer
from nodecopy.errors import InputError
from nodecopy.metrics.top_items import top_items
from nodecopy.recommend.training_ids import IGNORE, find_ids

Scores = NDArray[np.float32]
MAX_BLOCK_SCORES = 2**25
"""Scores of one block of users: 128 MiB, and as much again while the best are selected."""


def find_candidates(
    items: ArrayLike | None, exclude: ArrayLike | None, item_ids: NDArray[Any], unknown: str = "error"
) -> IntArray | None:
    """Return the columns of the items that may be recommended, ascending; ``None`` for all.

    ``unknown`` says whether ids that are not in ``item_ids`` are an error or ignored.
    """
    wanted = None if items is None else find_ids(items, item_ids, "items", unknown, IGNORE)
    unwanted = None if exclude is None else find_ids(exclude, item_ids, "exclude", unknown, IGNORE)
    return select_candidates(wanted, unwanted, len(item_ids))


def select_candidates(
    items: IntArray | None,
    exclude: IntArray | None,
    n_items: int,
    names: tuple[str, str] = ("items", "exclude"),
) -> IntArray | None:
    """Return the columns that are in ``items`` and not in ``exclude``, ascending; ``None`` for all.

    ``names`` are those of the two in errors.
    """
    if items is None and exclude is None:
        return None
    is_candidate = np.full(n_items, items is None)
    if items is not None:
        is_candidate[items] = True
    if exclude is not None:
        is_candidate[exclude] = False
    if not is_candidate.any():
        raise InputError(f"{names[0]} must hold a candidate that is not in {names[1]}; got none.")
    return np.flatnonzero(is_candidate)


def select_best(
    score_block: Callable[[slice], Scores],
    n_rows: int,
    k: int,
    ids: NDArray[Any],
    candidates: IntArray | None = None,
    seen: sparse.csr_array | None = None,
) -> tuple[NDArray[Any], Scores]:
    """Return the ids and scores of the ``k`` best columns of each row, in blocks of rows.

    ``score_block`` returns the scores of a block of the rows. Columns outside ``candidates`` are left out,
    and entries of ``seen`` come last, with a score of minus infinity.
    """
    chosen_ids = ids if candidates is None else ids[candidates]
    high_name = "n_items" if candidates is None else "number of candidates"
    check_integer(k, "k", low=1, high=len(chosen_ids), high_name=high_name)
    columns, best = np.empty((n_rows, k), np.int64), np.empty((n_rows, k), np.float32)
    step = max(1, MAX_BLOCK_SCORES // len(ids))
    for start in range(0, n_rows, step):
        block = slice(start, min(start + step, n_rows))
        scores = score_block(block)
        if seen is not None:
            scores[seen[block].nonzero()] = -np.inf
        if candidates is not None:
            scores = scores[:, candidates]
        columns[block] = top_items(scores, k)
        best[block] = np.take_along_axis(scores, columns[block], axis=1)
    return chosen_ids[columns], best


def list_best(user_ids: NDArray[Any], items: NDArray[Any], scores: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return the columns ``user``, ``rank`` (1 is best), ``item`` and ``score``, without seen items."""
    row, rank = np.nonzero(np.isfinite(scores))
    return {"user": user_ids[row], "rank": rank + 1, "item": items[row, rank], "score": scores[row, rank]}
