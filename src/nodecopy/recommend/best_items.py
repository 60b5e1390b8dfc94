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
from nodecopy.metrics import ranking
from nodecopy.recommend.training_ids import find_ids

Scores = NDArray[np.float32]
MAX_BLOCK_SCORES = 2**25
"""Scores of one block of users: 128 MiB, and as much again while the best are selected."""


def find_candidates(
    items: ArrayLike | None, exclude: ArrayLike | None, item_ids: NDArray[Any]
) -> IntArray | None:
    """Return the columns of the items that may be recommended, ascending; ``None`` for all."""
    if items is None and exclude is None:
        return None
    is_candidate = np.full(len(item_ids), items is None)
    if items is not None:
        is_candidate[find_ids(items, item_ids, "items")] = True
    if exclude is not None:
        is_candidate[find_ids(exclude, item_ids, "exclude")] = False
    if not is_candidate.any():
        raise InputError("items must hold a candidate that is not in exclude; got none.")
    return np.flatnonzero(is_candidate)


def select_best(
    score_block: Callable[[slice], Scores],
    seen: sparse.csr_array,
    k: int,
    item_ids: NDArray[Any],
    items: ArrayLike | None = None,
    exclude: ArrayLike | None = None,
    exclude_seen: bool = True,
) -> tuple[NDArray[Any], Scores]:
    """Return the ids and scores of the ``k`` best candidates of each user, in blocks of users.

    ``score_block`` returns the scores of a block of the users, whose rows of ``seen`` hold what they have.
    """
    candidates = find_candidates(items, exclude, item_ids)
    if candidates is not None:
        item_ids = item_ids[candidates]
    high_name = "n_items" if candidates is None else "number of candidates"
    check_integer(k, "k", low=1, high=len(item_ids), high_name=high_name)
    n_users, n_items = seen.shape
    columns, best = np.empty((n_users, k), np.int64), np.empty((n_users, k), np.float32)
    step = max(1, MAX_BLOCK_SCORES // n_items)
    for start in range(0, n_users, step):
        block = slice(start, min(start + step, n_users))
        scores = score_block(block)
        if exclude_seen:
            scores[seen[block].nonzero()] = -np.inf
        if candidates is not None:
            scores = scores[:, candidates]
        columns[block] = ranking.top_items(scores, k)
        best[block] = np.take_along_axis(scores, columns[block], axis=1)
    return item_ids[columns], best


def list_best(user_ids: NDArray[Any], items: NDArray[Any], scores: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return the columns ``user``, ``rank`` (1 is best), ``item`` and ``score``, without seen items."""
    row, rank = np.nonzero(np.isfinite(scores))
    return {"user": user_ids[row], "rank": rank + 1, "item": items[row, rank], "score": scores[row, rank]}
