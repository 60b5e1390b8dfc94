"""Definitions of the metrics of ranked lists, see :func:`.ranking.evaluate`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.csr import IntArray, Rows, unit_rows

Values = NDArray[np.float64]
HIT_METRICS = ("recall", "ndcg", "precision", "hit_rate", "map", "mrr")
LISTS_PER_BLOCK = 512
"""Lists whose diversity is computed at once, which bounds the memory."""


@dataclass(frozen=True)
class Lists:
    """Ranked lists of users and their hits.

    Attributes
    ----------
    items
        Columns of the items, best first; -1 where a user has fewer candidates.
    hits
        Whether each of at least as many items is relevant.
    n_relevant, n_ideal
        Number of relevant items of each user, and of hits of the ideal list of NDCG.
    """

    items: IntArray
    hits: NDArray[np.bool_]
    n_relevant: IntArray
    n_ideal: IntArray

    def metric(self, name: str, k: int) -> Values:
        """Return one of ``HIT_METRICS`` of the first k items of every list."""
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
        return ndcg(self.hits, self.n_ideal, k)


def ndcg(hits: NDArray[np.bool_], n_ideal: IntArray, k: int) -> Values:
    """Return the discounted gain of each list, divided by that of a list that starts with its hits."""
    discount = 1 / np.log2(np.arange(2, hits.shape[1] + 2))
    ideal = np.append(0.0, np.cumsum(discount))
    gain = (hits[:, :k] * discount[:k]).sum(axis=1)  # no BLAS: the same bits in any block
    best = ideal[np.minimum(n_ideal, k)]
    return np.asarray(np.divide(gain, best, out=np.zeros(len(hits)), where=best > 0))


class ItemStatistics:
    """What the training interactions, which have no weights, say of items."""

    def __init__(self, train: Rows) -> None:
        self.train = train
        self.counts = np.bincount(train.indices, minlength=train.n_columns)

    def overall(self, metric: str, lists: IntArray) -> float:
        """Return the coverage or novelty of all lists together."""
        items = lists[lists >= 0]
        if metric == "coverage":
            return len(np.unique(items)) / len(self.counts)
        self_information = -np.log2(np.maximum(self.counts, 1) / self.train.n_rows)
        return float(self_information[items].mean()) if len(items) else 0.0

    def per_list(self, metric: str, lists: IntArray) -> Values:
        """Return the popularity or diversity of every list."""
        if metric == "diversity":
            return self._diversity(lists)
        is_item = lists >= 0
        shares = np.where(is_item, self.counts[lists] / self.train.n_rows, 0.0)
        return np.asarray(shares.sum(axis=1) / np.maximum(is_item.sum(axis=1), 1))

    def _diversity(self, lists: IntArray) -> Values:
        """Return 1 minus the mean cosine of pairs.

        The sum of the unit vectors of a list has a square that is the sum of all cosines, those of items with
        themselves included.
        """
        units = unit_rows(sparse.csr_array(self.train.csr.T))
        n_items, has_users = (lists >= 0).sum(axis=1), (self.counts[lists] > 0) & (lists >= 0)
        total = np.zeros(len(lists))
        for start in range(0, len(lists), LISTS_PER_BLOCK):
            block = lists[start : start + LISTS_PER_BLOCK]
            row, rank = np.nonzero(block >= 0)
            shape = len(block), len(self.counts)
            sums = sparse.csr_array((np.ones(len(row)), (row, block[row, rank])), shape=shape) @ units
            total[start : start + len(block)] = np.asarray(sums.multiply(sums).sum(axis=1))
        n_pairs = n_items * (n_items - 1)
        mean = np.divide(total - has_users.sum(axis=1), n_pairs, out=np.ones(len(lists)), where=n_pairs > 0)
        return np.asarray(1 - mean)
