"""Metrics of ranked lists of items, by the paper's formulas and by the convention of its printed numbers.

A user's list holds the items by descending score; ties go to the lower column. With
``convention="formula"``, the one to report, recall and NDCG are defined as in the paper's section 7, and
neither training nor validation items are candidates. With ``"printed"`` only training items are left out, and
the ideal list consists of the hits among a user's first 100 items, as in the paper's printed NDCG and in
NGCF's code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from nodecopy._core.arrays import Array, Bools, Floats, IntArray, Rows, unit_rows
from nodecopy._core.checks import as_array, check_choice, check_finite, check_integer, check_sequence, show
from nodecopy._core.imports import import_optional
from nodecopy._core.messages import align_table, warn_about_data
from nodecopy.errors import InputError
from nodecopy.interactions import Interactions

HIT_METRICS = ("recall", "ndcg", "precision", "hit_rate", "map", "mrr")
PER_USER_METRICS = (*HIT_METRICS, "popularity", "diversity")
METRICS = (*PER_USER_METRICS, "coverage", "novelty", "tail_recall")
DEFAULT_METRICS = tuple(
    f"{metric}@{k}" for k in (10, 20) for metric in ("recall", "ndcg", "coverage", "novelty")
)
CONVENTIONS = ("formula", "printed")
PRINTED_IDEAL_DEPTH = 100  # length of the list whose hits make up the ideal list of the printed convention
MAX_BLOCK_SCORES = 2**23  # of one block of users
LISTS_PER_BLOCK = 512  # whose diversity is computed at once
TAIL_SHARE = 0.2  # of the items, the least popular ones
MAX_SORTED_RATIO = 8  # rows with at most this many times k candidates are sorted; others have ties


class Evaluation(dict[str, float]):
    """The value of each metric by name, a dictionary, together with the values of every user.

    Attributes
    ----------
    users
        Ids of the users with test items, over whom the means are taken.
    per_user
        The values of these users by metric. Coverage, novelty and the recall of the long tail are metrics of
        all lists together and have none.

    Examples
    --------
    >>> from nodecopy import Interactions
    >>> train, test = Interactions([[1, 0, 0], [0, 1, 0]]), Interactions([[0, 1, 0], [0, 0, 1]])
    >>> scores = np.array([[3, 2, 1], [3, 2, 1]])
    >>> evaluation = evaluate(lambda rows: scores[rows], train, test, metrics=["recall@1", "mrr@2"])
    >>> evaluation
    {'recall@1': 0.5, 'mrr@2': 0.75}
    >>> print(evaluation)
    recall@1  mrr@2
         0.5   0.75
    >>> evaluation.per_user["recall@1"].tolist()
    [1.0, 0.0]
    """

    def __init__(self, means: Mapping[str, float], users: Array, per_user: Mapping[str, Floats]) -> None:
        super().__init__(means)
        self.users, self.per_user = users, per_user

    def __str__(self) -> str:
        return "\n".join(align_table(list(self), [self.values()]))

    def to_pandas(self) -> Any:
        """Return a data frame with a row per user and a column per metric of :attr:`per_user`."""
        frame = import_optional("pandas", "to_pandas").DataFrame
        return frame({"user": self.users, **self.per_user})


def evaluate(
    score: Callable[[IntArray], Array],
    train: Interactions,
    test: Interactions,
    *,
    validation: Interactions | None = None,
    history: Interactions | None = None,
    metrics: Sequence[str] = DEFAULT_METRICS,
    convention: str = "formula",
) -> Evaluation:
    """Return the value of each metric and the values of every user.

    Parameters
    ----------
    score
        Function that returns the scores of some rows of ``test``, ``[len(rows), n_items]``.
    train, validation, test, history
        Interactions as in ``evaluate`` of recommenders.
    metrics
        Names such as ``"recall@10"``, the metric and the length k of the list:

        - ``recall``: hits divided by the number of test items; ``precision``: hits divided by k;
        - ``ndcg``: discounted gain, divided by that of a list that begins with min(k, number of test items)
          hits;
        - ``hit_rate``: whether there is a hit; ``mrr``: 1 / rank of the first hit, 0 without one;
        - ``map``: the sum of the precisions at the ranks of hits, divided by min(k, number of test items);
        - ``popularity``: the mean share of training users who have the items of the list (popularity bias);
        - ``diversity``: the mean of 1 - cosine over the pairs of items of the list, where the cosine is that
          of the items' training users; 0 for lists of a single item;
        - ``coverage``: the share of items that are in at least one list;
        - ``novelty``: the mean over all items in the lists of -log2(share of users who have the item in
          training), in bits. An item without users counts as if one user had it;
        - ``tail_recall``: the hits on the fifth of the items of training with the fewest users (long tail),
          divided by the number of test interactions with these items.

        All but the last three are means over the users with test items.
    convention
        ``"formula"`` (default) or ``"printed"``, see :mod:`nodecopy.metrics.ranking`.
    """
    parsed = parse_metrics(metrics, train.n_items)
    check_choice(convention, "convention", CONVENTIONS)
    seen = train if history is None else history
    for name, other in (("validation", validation), ("test", test), ("history", history)):
        if other is not None and (other.n_users, other.n_items) != (seen.n_users, train.n_items):
            raise InputError(name, f"must be of the users and items of {seen!r}; got {other!r}.")
    users = np.flatnonzero(test.rows.degrees)
    if not len(users):
        raise InputError("test", "must hold at least one interaction; got none.")
    is_printed = convention == "printed"
    hidden = [seen.rows] if validation is None or is_printed else [seen.rows, validation.rows]
    first, *others = (rows.csr.astype(bool) for rows in hidden)
    if n_hidden := int(test.rows.csr.astype(bool).multiply(sum(others, first)).nnz):
        warn_about_data(
            f"test: {n_hidden} of its {test.n_interactions} interactions are in train or validation too and "
            f"count as misses. test.difference(train) leaves them out."
        )
    longest = max(k for _, k in parsed.values())
    lists = _rank_users(score, users, test.rows, hidden, longest, is_printed)
    rows, means, per_user = train.binary().rows, {}, {}
    for name, (metric, k) in parsed.items():
        is_hit = metric in HIT_METRICS
        if metric == "tail_recall":
            values: Any = _tail_recall(lists, k, test.rows, rows)
        else:
            values = lists.metric(metric, k) if is_hit else _item_metric(metric, lists.items[:, :k], rows)
        means[name] = float(np.mean(values))
        if metric in PER_USER_METRICS:
            per_user[name] = values
    return Evaluation(means, test.user_ids[users], per_user)


def parse_metrics(names: Sequence[str], n_items: int) -> dict[str, tuple[str, int]]:
    """Split names such as ``"recall@10"`` into the metric and the length of the list."""
    form = "a list of names such as 'recall@10'"
    if isinstance(names, str) or not (names := check_sequence(names, "metrics", form)):
        raise InputError("metrics", f"must be {form}; got {show(names)}.")
    parsed = {}
    for name in names:
        metric, at, length = str(name).partition("@")
        if metric not in METRICS or not at or not length.isdecimal():
            forms = ", ".join(f"'{metric}@k'" for metric in METRICS)
            nearest = get_close_matches(metric, METRICS, n=1)
            hint = f" Did you mean {nearest[0]}@{length if length.isdecimal() else 10}?" if nearest else ""
            raise InputError("metrics", f"must be of the form {forms} with an integer k; got {name!r}.{hint}")
        options: Any = {"low": 1, "high": n_items, "high_name": "the number of items"}
        parsed[str(name)] = metric, check_integer(int(length), f"k of the metric {name!r}", **options)
    return parsed


def _rank_users(
    score: Callable[[IntArray], Array],
    users: IntArray,
    test: Rows,
    hidden: Sequence[Rows],
    longest: int,
    is_printed: bool,
) -> Lists:
    depth = max(longest, min(PRINTED_IDEAL_DEPTH, test.n_columns)) if is_printed else longest
    items, hits = np.zeros((len(users), longest), np.int64), np.zeros((len(users), depth), bool)
    step = max(1, MAX_BLOCK_SCORES // test.n_columns)
    for start in range(0, len(users), step):
        block = users[start : start + step]
        part = slice(start, start + len(block))
        values = as_array(score(block), "scores")
        values = values.astype(np.float32 if values.dtype == np.float32 else np.float64)  # a copy
        if values.shape != (shape := (len(block), test.n_columns)):
            raise InputError("scores", f"must have shape {shape}, users x items; got {values.shape}.")
        check_finite(values, "scores")
        for rows in hidden:
            values[rows.csr[block].nonzero()] = -np.inf
        ranked = top_items(values, depth)
        ranked = np.where(np.isinf(np.take_along_axis(values, ranked, axis=1)), -1, ranked)
        is_relevant = np.zeros((len(block), test.n_columns + 1), bool)  # the last column stands for -1
        is_relevant[test.csr[block].nonzero()] = True
        items[part], hits[part] = ranked[:, :longest], np.take_along_axis(is_relevant, ranked, axis=1)
    n_relevant = test.degrees[users]
    n_ideal = hits[:, :PRINTED_IDEAL_DEPTH].sum(axis=1) if is_printed else n_relevant
    return Lists(items, hits, n_relevant, n_ideal)


@dataclass(frozen=True)
class Lists:
    """Ranked lists of users and their hits."""

    items: IntArray  # columns of the items, best first; -1 where a user has fewer candidates
    hits: Bools  # whether each of at least as many items is relevant
    n_relevant: IntArray
    n_ideal: IntArray  # number of hits of the ideal list of NDCG

    def metric(self, name: str, k: int) -> Floats:
        hits = self.hits[:, :k]
        if name == "recall":
            return np.asarray(hits.sum(axis=1) / self.n_relevant)
        if name == "precision":
            return np.asarray(hits.sum(axis=1) / k)
        if name == "hit_rate":
            return np.asarray(hits.any(axis=1), np.float64)
        if name == "mrr":
            return np.asarray(hits.any(axis=1) / (hits.argmax(axis=1) + 1))
        if name == "map":
            precision = np.cumsum(hits, axis=1) / np.arange(1, hits.shape[1] + 1)
            return np.asarray((precision * hits).sum(axis=1) / np.minimum(self.n_relevant, k))
        discount = 1 / np.log2(np.arange(2, self.hits.shape[1] + 2))
        gain = (hits * discount[:k]).sum(axis=1)  # no BLAS: the same bits in any block
        ideal = np.append(0.0, np.cumsum(discount))[np.minimum(self.n_ideal, k)]
        return np.asarray(np.divide(gain, ideal, out=np.zeros(len(hits)), where=ideal > 0))


def _tail_recall(lists: Lists, k: int, test: Rows, train: Rows) -> float:
    """Return the recall of the interactions with the least popular items; ties go to the first."""
    counts = np.bincount(train.indices, minlength=train.n_columns)
    by_popularity = np.argsort(counts, kind="stable")[np.count_nonzero(counts == 0) :]
    is_tail = np.zeros(len(counts), bool)
    is_tail[by_popularity[: round(TAIL_SHARE * len(by_popularity))]] = True
    n_hits = np.count_nonzero(is_tail[lists.items[:, :k]] & lists.hits[:, :k])
    return float(n_hits / np.maximum(np.count_nonzero(is_tail[test.indices]), 1))


def _item_metric(metric: str, lists: IntArray, train: Rows) -> Any:
    counts, is_item = np.bincount(train.indices, minlength=train.n_columns), lists >= 0
    if metric == "coverage":
        return len(np.unique(lists[is_item])) / len(counts)
    if metric == "novelty":
        self_information = -np.log2(np.maximum(counts, 1) / train.n_rows)
        return self_information[lists[is_item]].mean() if is_item.any() else 0.0
    n_items = is_item.sum(axis=1)
    if metric == "popularity":
        return np.where(is_item, counts[lists] / train.n_rows, 0.0).sum(axis=1) / np.maximum(n_items, 1)
    # The mean cosine of pairs follows from the square of the sum of a list's unit vectors.
    units, total = unit_rows(sparse.csr_array(train.csr.T)), np.zeros(len(lists))
    for start in range(0, len(lists), LISTS_PER_BLOCK):
        block = lists[start : start + LISTS_PER_BLOCK]
        row, rank = np.nonzero(block >= 0)
        shape = len(block), len(counts)
        sums = sparse.csr_array((np.ones(len(row)), (row, block[row, rank])), shape=shape) @ units
        total[start : start + len(block)] = np.asarray(sums.multiply(sums).sum(axis=1))
    n_pairs, has_users = n_items * (n_items - 1), (counts[lists] > 0) & is_item
    mean = np.divide(total - has_users.sum(axis=1), n_pairs, out=np.ones(len(lists)), where=n_pairs > 0)
    return 1 - mean


def top_items(scores: ArrayLike, k: int) -> IntArray:
    """Return the ``k`` best columns of every row, best first; ties go to the lower column."""
    values = as_array(scores, "scores")
    if values.ndim != 2 or values.dtype.kind not in "biuf":
        kind = f"{values.dtype} of shape {values.shape}"
        raise InputError("scores", f"must hold numbers, one row per user; got {kind}.")
    n_users, n_items = values.shape
    check_integer(k, "k", low=1, high=n_items, high_name="n_items")
    if values.dtype.kind != "f":
        values = values.astype(np.float64)
    if n_users and np.isnan(values.max()):
        raise InputError("scores", "must be numbers; got nan.")
    # The k-th largest of the maxima of groups of columns is at most the k-th largest of a row.
    size = max(1, n_items // (4 * k))
    n_groups = n_items // size
    maxima = values[:, : n_groups * size].reshape(n_users, n_groups, size).max(axis=2)
    bounds = np.partition(maxima, n_groups - k, axis=1)[:, -k][:, None]
    is_candidate = values >= bounds
    has_ties = np.count_nonzero(is_candidate, axis=1) > MAX_SORTED_RATIO * k
    is_candidate[has_ties] = False
    row, column = np.nonzero(is_candidate)
    order = np.lexsort((column, -values[row, column], row))
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    ranked = np.empty((n_users, k), np.int64)
    ranked[~has_ties] = column[order[rank < k]].reshape(-1, k)
    for user in np.flatnonzero(has_ties):
        ranked[user] = _rank_with_ties(values[user], bounds[user], k)
    return ranked


def _rank_with_ties(values: Array, bound: Array, k: int) -> IntArray:
    """Return the same as :func:`top_items` for a row in which many items tie, given its lower bound."""
    above = np.flatnonzero(values > bound)
    equal = np.flatnonzero(values == bound)
    if len(above) >= k:
        largest = values[above]
        threshold = np.partition(largest, len(above) - k)[-k]
        above, equal = above[largest > threshold], above[largest == threshold]
    chosen = np.concatenate([above, equal[: k - len(above)]])
    return chosen[np.lexsort((chosen, -values[chosen]))]
