"""How good ranked lists of items are, by the paper's formulas and by the convention of its printed numbers.

A user's list holds the items by descending score, items of equal score by ascending number, so a tie has
one answer. Users without test items are left out of every mean.

``"formula"``, the one to report: recall and NDCG as the paper's section 7 defines them; neither the items
of training nor those of validation are candidates. ``"printed"``: only training items are left out of the
candidates, and the ideal list is made of the hits among a user's own first 100 items; the paper's printed
NDCG fits this (as in NGCF's code) and not its formula. Compare with printed numbers only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from nodecopy._core.csr import IntArray, Rows
from nodecopy._core.validation import as_array, check_choice, check_integer
from nodecopy.errors import InputError
from nodecopy.interactions import Interactions

CONVENTIONS = ("formula", "printed")
IDEAL_FROM = 100
"""How deep the printed convention looks for the hits that make up its ideal list."""
SCORES_AT_ONCE = 2**23
CROWD = 8
"""So many times k candidates are sorted; where more tie, those that are in are counted instead."""


def top_items(scores: ArrayLike, k: int) -> IntArray:
    """The ``k`` best columns of every row, best first; of equal scores the lower column comes first.

    >>> top_items([[0.5, 0.9, 0.5], [0.0, 0.0, 1.0]], 2).tolist()
    [[1, 0], [2, 0]]
    """
    values = as_array(scores, "scores")
    if values.ndim != 2 or values.dtype.kind not in "biuf":
        raise InputError(
            f"scores must hold numbers, one row per user; got {values.dtype} of shape {values.shape}."
        )
    n_users, n_items = values.shape
    check_integer(k, "k", low=1, high=n_items, high_name="n_items")
    if values.dtype.kind != "f":
        values = values.astype(np.float64)
    if n_users and np.isnan(values.max()):
        raise InputError("scores must be numbers; got nan.")
    row, column = np.divmod(np.flatnonzero(values >= _bound(values, k)), n_items)
    crowded = np.bincount(row, minlength=n_users) > CROWD * k
    clear = ~crowded[row]
    row, column = row[clear], column[clear]
    order = np.lexsort((column, -values[row, column], row))
    place = np.arange(len(row)) - np.searchsorted(row, row)
    ranked = np.empty((n_users, k), np.int64)
    ranked[~crowded] = column[order[place < k]].reshape(-1, k)
    if crowded.any():
        ranked[crowded] = _ranked_ties(values[crowded], k)
    return ranked


def _bound(values: NDArray[Any], k: int) -> NDArray[Any]:
    """Numbers that the k-th largest of each row reaches or exceeds, not by much.

    The k-th largest of the maxima of groups of columns is one, and maxima are found faster than ranks.
    """
    n_users, n_items = values.shape
    size = max(1, n_items // (4 * k))
    n_groups = n_items // size
    maxima = values[:, : n_groups * size].reshape(n_users, n_groups, size).max(axis=2)
    return np.partition(maxima, n_groups - k, axis=1)[:, -k][:, None]


def _ranked_ties(values: NDArray[Any], k: int) -> IntArray:
    """The same for rows in which many items tie at the border: of those the first ones are in."""
    border = np.partition(values, values.shape[1] - k, axis=1)[:, -k][:, None]
    above, equal = values > border, values == border
    kept = above | (equal & (np.cumsum(equal, axis=1) <= k - above.sum(axis=1, keepdims=True)))
    chosen = np.nonzero(kept)[1].reshape(len(values), k)
    order = np.lexsort((chosen, -np.take_along_axis(values, chosen, axis=1)), axis=1)
    return np.take_along_axis(chosen, order, axis=1)


def per_user(
    score: Callable[[IntArray], NDArray[Any]],
    train: Interactions,
    test: Interactions,
    *,
    validation: Interactions | None = None,
    k: Sequence[int] = (10, 20),
    convention: str = "formula",
) -> dict[str, NDArray[np.float64]]:
    """Recall and NDCG of every user with test items, ascending: ``recall@10``, ``ndcg@10``, ...

    Parameters
    ----------
    score
        Gives the scores of some user numbers, ``[len(users), n_items]``; called for blocks of users.
    train, validation, test
        Interactions of the same users and items. What is in ``train`` (and, by the formula, in
        ``validation``) is no candidate.
    k
        Lengths of the lists.
    convention
        ``"formula"`` or ``"printed"``.
    """
    found, _ = _lists(score, train, test, validation, k, convention)
    return found


def evaluate(
    score: Callable[[IntArray], NDArray[Any]],
    train: Interactions,
    test: Interactions,
    *,
    validation: Interactions | None = None,
    k: Sequence[int] = (10, 20),
    convention: str = "formula",
) -> dict[str, float]:
    """The means of :func:`per_user` over users, and beside them, for every k,

    - ``coverage``: the share of items that are in somebody's list;
    - ``novelty``: the mean over the lists' items of -log2(share of users who have the item in training),
      in bits; an item that nobody has counts as if one user had it.

    Examples
    --------
    >>> from nodecopy import Interactions
    >>> train, test = Interactions([[1, 0, 0], [0, 1, 0]]), Interactions([[0, 1, 0], [0, 0, 1]])
    >>> found = evaluate(lambda users: [[0, 1, 2]] * len(users), train, test, k=[1])
    >>> found
    {'recall@1': 0.5, 'ndcg@1': 0.5, 'coverage@1': 0.3333333333333333, 'novelty@1': 1.0}
    """
    found, lists = _lists(score, train, test, validation, k, convention)
    popularity = np.bincount(train.rows.indices, minlength=train.n_items)
    surprise = -np.log2(np.maximum(popularity, 1) / train.n_users)
    means = {name: float(values.mean()) for name, values in found.items()}
    for length in k:
        shown = lists[:, :length]
        shown = shown[shown >= 0]
        means[f"coverage@{length}"] = len(np.unique(shown)) / train.n_items
        means[f"novelty@{length}"] = float(surprise[shown].mean()) if len(shown) else 0.0
    return means


def _lists(
    score: Callable[[IntArray], NDArray[Any]],
    train: Interactions,
    test: Interactions,
    validation: Interactions | None,
    k: Sequence[int],
    convention: str,
) -> tuple[dict[str, NDArray[np.float64]], IntArray]:
    """The metrics of each user, and the longest list of each, -1 where the candidates ran out."""
    check_choice(convention, "convention", CONVENTIONS)
    lengths = [check_integer(one, "k", low=1, high=train.n_items, high_name="n_items") for one in k]
    if not lengths:
        raise InputError("k must hold at least one length; got none.")
    hidden = [train.rows] if validation is None or convention == "printed" else [train.rows, validation.rows]
    for name, other in (("validation", validation), ("test", test)):
        if other is not None and (other.n_users, other.n_items) != (train.n_users, train.n_items):
            raise InputError(f"{name} must be of the users and items of train, {train!r}; got {other!r}.")
    users = np.flatnonzero(test.rows.degrees)
    if not len(users):
        raise InputError("test must hold at least one interaction; got none.")
    depth = max(lengths) if convention == "formula" else max(*lengths, min(IDEAL_FROM, train.n_items))
    found = {f"{metric}@{one}": np.zeros(len(users)) for one in lengths for metric in ("recall", "ndcg")}
    lists = np.zeros((len(users), max(lengths)), np.int64)
    step = max(1, SCORES_AT_ONCE // train.n_items)
    for start in range(0, len(users), step):
        block = users[start : start + step]
        ranked = _ranked(score(block), block, hidden, depth)
        part = slice(start, start + len(block))
        lists[part] = ranked[:, : max(lengths)]
        for name, values in _metrics(_hits(ranked, block, test.rows), block, test, lengths, convention):
            found[name][part] = values
    return found, lists


def _ranked(scores: Any, users: IntArray, hidden: Sequence[Rows], depth: int) -> IntArray:
    """The best candidates of some users; -1 where they have fewer."""
    values = as_array(scores, "scores")
    values = values.astype(np.float32 if values.dtype == np.float32 else np.float64)  # a copy
    if values.shape != (len(users), hidden[0].n_columns):
        raise InputError(
            f"scores must have shape {(len(users), hidden[0].n_columns)}, users x items; got {values.shape}."
        )
    if not np.isfinite(values).all():
        raise InputError(f"scores must be finite; got {values[~np.isfinite(values)][0]}.")
    for rows in hidden:
        values[_entries(rows, users)] = -np.inf
    ranked = top_items(values, depth)
    return np.where(np.isinf(np.take_along_axis(values, ranked, axis=1)), -1, ranked)


def _entries(rows: Rows, users: IntArray) -> tuple[IntArray, IntArray]:
    """Places of the stored entries of some rows: position in ``users`` and column."""
    chosen = sparse.csr_array(rows.csr[users])
    return np.repeat(np.arange(len(users)), np.diff(chosen.indptr)), chosen.indices


def _hits(ranked: IntArray, users: IntArray, relevant: Rows) -> NDArray[np.bool_]:
    """Whether each ranked item is relevant to its user."""
    row, column = _entries(relevant, users)
    is_relevant = np.zeros((len(users), relevant.n_columns + 1), bool)  # the last column answers -1
    is_relevant[row, column] = True
    return np.take_along_axis(is_relevant, ranked, axis=1)


def _metrics(
    hits: NDArray[np.bool_], users: IntArray, test: Interactions, lengths: Sequence[int], convention: str
) -> Any:
    """Names and values of recall and NDCG at every length."""
    n_relevant = test.rows.degrees[users]
    n_ideal = n_relevant if convention == "formula" else hits[:, :IDEAL_FROM].sum(axis=1)
    discount = 1 / np.log2(np.arange(2, hits.shape[1] + 2))
    ideal = np.append(0.0, np.cumsum(discount))  # of a list that starts with so many hits
    for k in lengths:
        gain = (hits[:, :k] * discount[:k]).sum(axis=1)  # no BLAS: the same bits in any block
        best = ideal[np.minimum(n_ideal, k)]
        yield f"recall@{k}", hits[:, :k].sum(axis=1) / n_relevant
        yield f"ndcg@{k}", np.divide(gain, best, out=np.zeros(len(users)), where=best > 0)
