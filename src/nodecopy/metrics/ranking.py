"""Metrics of ranked lists of items, by the paper's formulas and by the convention of its printed numbers.

A user's list holds the items by descending score; ties go to the lower column. Users without test items are
left out of every mean.

With ``convention="formula"``, the one to report, recall and NDCG are those that the paper's section 7
defines, and neither training nor validation items are candidates. With ``"printed"`` only training items
are left out of the candidates, and the ideal list consists of the hits among a user's first 100 items. The
paper's printed NDCG follows this convention (as does NGCF's code), not its formula: use it only to compare
with printed numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.csr import IntArray, Rows
from nodecopy._core.validation import as_array, check_choice, check_integer
from nodecopy.errors import InputError
from nodecopy.interactions import Interactions

CONVENTIONS = ("formula", "printed")
PER_USER_METRICS = ("recall", "ndcg")
METRICS = (*PER_USER_METRICS, "coverage", "novelty")
DEFAULT_METRICS = tuple(f"{metric}@{k}" for k in (10, 20) for metric in METRICS)
PRINTED_IDEAL_DEPTH = 100
"""Length of the list whose hits make up the ideal list of the printed convention."""
MAX_BLOCK_SCORES = 2**23
"""Scores of one block of users, which bounds the memory."""
MAX_SORTED_RATIO = 8
"""Rows with at most this many times k candidates are sorted; rows with more have ties, which are counted."""


def top_items(scores: ArrayLike, k: int) -> IntArray:
    """Return the ``k`` best columns of every row, best first; ties go to the lower column.

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
    row, column = np.divmod(np.flatnonzero(values >= _lower_bound(values, k)), n_items)
    has_ties = np.bincount(row, minlength=n_users) > MAX_SORTED_RATIO * k
    is_sorted = ~has_ties[row]
    row, column = row[is_sorted], column[is_sorted]
    order = np.lexsort((column, -values[row, column], row))
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    ranked = np.empty((n_users, k), np.int64)
    ranked[~has_ties] = column[order[rank < k]].reshape(-1, k)
    if has_ties.any():
        ranked[has_ties] = _rank_with_ties(values[has_ties], k)
    return ranked


def _lower_bound(values: NDArray[Any], k: int) -> NDArray[Any]:
    """Return a number for each row that is at most the k-th largest of the row, and near it.

    It is the k-th largest of the maxima of groups of columns, which are faster to find than ranks.
    """
    n_users, n_items = values.shape
    size = max(1, n_items // (4 * k))
    n_groups = n_items // size
    maxima = values[:, : n_groups * size].reshape(n_users, n_groups, size).max(axis=2)
    return np.partition(maxima, n_groups - k, axis=1)[:, -k][:, None]


def _rank_with_ties(values: NDArray[Any], k: int) -> IntArray:
    """Return the same as :func:`top_items` for rows in which many items tie with the k-th largest."""
    threshold = np.partition(values, values.shape[1] - k, axis=1)[:, -k][:, None]
    above, equal = values > threshold, values == threshold
    is_top = above | (equal & (np.cumsum(equal, axis=1) <= k - above.sum(axis=1, keepdims=True)))
    chosen = np.nonzero(is_top)[1].reshape(len(values), k)
    order = np.lexsort((chosen, -np.take_along_axis(values, chosen, axis=1)), axis=1)
    return np.take_along_axis(chosen, order, axis=1)


def per_user(
    score: Callable[[IntArray], NDArray[Any]],
    train: Interactions,
    test: Interactions,
    *,
    validation: Interactions | None = None,
    metrics: Sequence[str] = ("recall@10", "ndcg@10", "recall@20", "ndcg@20"),
    convention: str = "formula",
) -> dict[str, NDArray[np.float64]]:
    """Return recall and NDCG of every user with test items, in the order of the users.

    Parameters
    ----------
    score
        Function that returns the scores of some rows of ``train``, ``[len(rows), n_items]``. It is called
        for blocks of users.
    train, validation, test
        Interactions of the same users and items. The items in ``train`` (and, by the formula, in
        ``validation``) are not candidates.
    metrics
        Names such as ``"recall@10"`` and ``"ndcg@20"``: the metric and the length of the list.
    convention
        ``"formula"`` (default) or ``"printed"``, see :mod:`nodecopy.metrics.ranking`.
    """
    parsed = parse_metrics(metrics, train.n_items, PER_USER_METRICS)
    return _evaluate_users(score, train, test, validation, parsed, convention)[0]


def evaluate(
    score: Callable[[IntArray], NDArray[Any]],
    train: Interactions,
    test: Interactions,
    *,
    validation: Interactions | None = None,
    metrics: Sequence[str] = DEFAULT_METRICS,
    convention: str = "formula",
) -> dict[str, float]:
    """Return the value of each metric, in the order of ``metrics``.

    The parameters are those of :func:`per_user`. The metrics, at any length k, are

    - ``recall@k`` and ``ndcg@k``: the means of :func:`per_user` over the users with test items;
    - ``coverage@k``: the share of items that are in at least one list;
    - ``novelty@k``: the mean over all items in the lists of -log2(share of users who have the item in
      training), in bits. An item without users counts as if one user had it.

    Examples
    --------
    >>> from nodecopy import Interactions
    >>> train, test = Interactions([[1, 0, 0], [0, 1, 0]]), Interactions([[0, 1, 0], [0, 0, 1]])
    >>> evaluate(lambda rows: [[0, 1, 2]] * len(rows), train, test, metrics=["recall@1", "novelty@1"])
    {'recall@1': 0.5, 'novelty@1': 1.0}
    """
    parsed = parse_metrics(metrics, train.n_items)
    by_user, lists = _evaluate_users(score, train, test, validation, parsed, convention)
    popularity = np.bincount(train.rows.indices, minlength=train.n_items)
    self_information = -np.log2(np.maximum(popularity, 1) / train.n_users)
    means = {}
    for name, (metric, k) in parsed.items():
        if metric in PER_USER_METRICS:
            means[name] = float(by_user[name].mean())
            continue
        items = lists[:, :k]
        items = items[items >= 0]
        if metric == "coverage":
            means[name] = len(np.unique(items)) / train.n_items
        else:
            means[name] = float(self_information[items].mean()) if len(items) else 0.0
    return means


def parse_metrics(
    names: Sequence[str], n_items: int, allowed: Sequence[str] = METRICS
) -> dict[str, tuple[str, int]]:
    """Split names such as ``"recall@10"`` into the metric and the length of the list."""
    if isinstance(names, str) or not len(names):
        raise InputError(f"metrics must be a list of names such as 'recall@10'; got {names!r}.")
    parsed = {}
    for name in names:
        metric, at, length = str(name).partition("@")
        if metric not in allowed or not at or not length.isdecimal():
            forms = ", ".join(f"'{metric}@k'" for metric in allowed)
            raise InputError(f"metrics must be of the form {forms} with an integer k; got {name!r}.")
        k = check_integer(int(length), f"k of the metric {name!r}", low=1, high=n_items, high_name="n_items")
        parsed[str(name)] = metric, k
    return parsed


def _evaluate_users(
    score: Callable[[IntArray], NDArray[Any]],
    train: Interactions,
    test: Interactions,
    validation: Interactions | None,
    parsed: dict[str, tuple[str, int]],
    convention: str,
) -> tuple[dict[str, NDArray[np.float64]], IntArray]:
    """Return recall and NDCG of each user, and the longest list of each, padded with -1."""
    check_choice(convention, "convention", CONVENTIONS)
    is_printed = convention == "printed"
    hidden = [train.rows] if validation is None or is_printed else [train.rows, validation.rows]
    for name, other in (("validation", validation), ("test", test)):
        if other is not None and (other.n_users, other.n_items) != (train.n_users, train.n_items):
            raise InputError(f"{name} must be of the users and items of train, {train!r}; got {other!r}.")
    users = np.flatnonzero(test.rows.degrees)
    if not len(users):
        raise InputError("test must hold at least one interaction; got none.")
    longest = max(k for _, k in parsed.values())
    depth = max(longest, min(PRINTED_IDEAL_DEPTH, train.n_items)) if is_printed else longest
    by_user = {
        name: np.zeros(len(users)) for name, (metric, _) in parsed.items() if metric in PER_USER_METRICS
    }
    lists = np.zeros((len(users), longest), np.int64)
    step = max(1, MAX_BLOCK_SCORES // train.n_items)
    for start in range(0, len(users), step):
        block = users[start : start + step]
        ranked = _rank_candidates(score(block), block, hidden, depth)
        part = slice(start, start + len(block))
        lists[part] = ranked[:, :longest]
        hits, n_relevant = _find_hits(ranked, block, test.rows), test.rows.degrees[block]
        n_ideal = hits[:, :PRINTED_IDEAL_DEPTH].sum(axis=1) if is_printed else n_relevant
        for name, values in by_user.items():
            metric, k = parsed[name]
            values[part] = (
                hits[:, :k].sum(axis=1) / n_relevant if metric == "recall" else _ndcg(hits, n_ideal, k)
            )
    return by_user, lists


def _rank_candidates(scores: Any, users: IntArray, hidden: Sequence[Rows], depth: int) -> IntArray:
    """Return the best candidates of some users, padded with -1 where a user has fewer than ``depth``."""
    values = as_array(scores, "scores")
    values = values.astype(np.float32 if values.dtype == np.float32 else np.float64)  # a copy
    if values.shape != (len(users), hidden[0].n_columns):
        raise InputError(
            f"scores must have shape {(len(users), hidden[0].n_columns)}, users x items; got {values.shape}."
        )
    if not np.isfinite(values).all():
        raise InputError(f"scores must be finite; got {values[~np.isfinite(values)][0]}.")
    for rows in hidden:
        values[rows.csr[users].nonzero()] = -np.inf
    ranked = top_items(values, depth)
    return np.where(np.isinf(np.take_along_axis(values, ranked, axis=1)), -1, ranked)


def _find_hits(ranked: IntArray, users: IntArray, relevant: Rows) -> NDArray[np.bool_]:
    """Return whether each ranked item is relevant to its user."""
    is_relevant = np.zeros((len(users), relevant.n_columns + 1), bool)  # the last column stands for -1
    is_relevant[relevant.csr[users].nonzero()] = True
    return np.take_along_axis(is_relevant, ranked, axis=1)


def _ndcg(hits: NDArray[np.bool_], n_ideal: IntArray, k: int) -> NDArray[np.float64]:
    """Return the discounted gain of each list, divided by that of a list that starts with its hits."""
    discount = 1 / np.log2(np.arange(2, hits.shape[1] + 2))
    ideal = np.append(0.0, np.cumsum(discount))
    gain = (hits[:, :k] * discount[:k]).sum(axis=1)  # no BLAS: the same bits in any block
    best = ideal[np.minimum(n_ideal, k)]
    return np.asarray(np.divide(gain, best, out=np.zeros(len(hits)), where=best > 0))
