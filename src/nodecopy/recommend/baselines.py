"""Popularity, nearest items with their cosine similarities, and the weighted sum of two recommenders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.arrays import IntArray, keep_entries, largest_entries
from nodecopy._core.checks import check_settings, show
from nodecopy._core.random import child
from nodecopy.errors import InputError
from nodecopy.interactions import Interactions
from nodecopy.recommend.algebra import count_users
from nodecopy.recommend.base import Recommender, fit_copy

MAX_BLOCK_PAIRS = 2**22


@dataclass(eq=False)
class Popularity(Recommender):
    """Score an item by the number of users who have it, the same for every user.

    Attributes
    ----------
    counts_
        Number of users of each item.

    Examples
    --------
    >>> from nodecopy import Interactions
    >>> from nodecopy.recommend import Popularity
    >>> log = Interactions.from_table(["ann", "ann", "bob"], ["tea", "jam", "tea"])
    >>> items, scores = Popularity().fit(log).recommend(["bob"], 1)
    >>> items.tolist(), scores.tolist()
    ([['jam']], [[1.0]])
    """

    def fit_interactions(self, interactions: Interactions, validation: Any, seed: SeedSequence) -> None:
        self.counts_ = count_users(interactions.matrix)

    def score_rows(self, rows: sparse.csr_array) -> NDArray[Any]:
        return np.tile(self.counts_.astype(np.float32), (rows.shape[0], 1))


@dataclass(eq=False)
class ItemKNN(Recommender):
    """Score an item by the sum of its cosine similarities to its nearest items in the user's history.

    Parameters
    ----------
    n_neighbours
        Number of nearest items of each item; ties go to the items that come first.
    shrinkage
        Added to the cosine's denominator. Increase it where rare items that share one user get too similar.

    Attributes
    ----------
    similarity_
        Sparse items x items matrix; column i holds the similarities of item i to its nearest items.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.recommend import ItemKNN
    >>> model = ItemKNN().fit(datasets.load("library"))
    >>> model.similar_items(["Dracula"], 2)[0].tolist()
    [['Frankenstein', 'The Turn of the Screw']]
    """

    n_neighbours: int = 100
    shrinkage: float = 0.0

    is_linear: ClassVar[bool] = True

    def check_params(self) -> None:
        check_settings(self, n_neighbours=1, shrinkage=0.0)

    def fit_interactions(self, interactions: Interactions, validation: Any, seed: SeedSequence) -> None:
        nearest = nearest_rows(sparse.csr_array(interactions.matrix.T), self.n_neighbours, self.shrinkage)
        self.similarity_ = sparse.csr_array(nearest.T)

    def score_rows(self, rows: sparse.csr_array) -> NDArray[Any]:
        return np.asarray((rows @ self.similarity_).toarray())

    def similarity_rows(self, rows: sparse.csr_array) -> NDArray[Any]:
        """Return the similarities of each item to its nearest items, 0 to all others."""
        return np.asarray((rows @ self.similarity_.T).toarray())

    def donor_parts(self, history: IntArray, column: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return each user's part in the cosines, which are sums over the users of both items."""
        matrix, own = self.interactions_.matrix, np.zeros(self.interactions_.n_items)
        has_item = matrix[:, [column]].toarray()[:, 0]
        own[history] = self.similarity_[history][:, [column]].toarray()[:, 0]
        own /= np.maximum(matrix.T @ has_item, 1)  # the number of users who have both items
        return has_item * (matrix @ own), np.zeros(len(own))


@dataclass(eq=False)
class WeightedHybrid(Recommender):
    """Add up the scores of two recommenders, each user's scores standardised to mean 0 and deviation 1.

    Parameters
    ----------
    first, second
        Two recommenders, such as :class:`.CopyEASE` and :class:`.IALS`. One that is already fitted to the
        same interactions is not fitted again. Neither is changed.
    weight
        Weight of the first, from 0 to 1; the second has the rest. The default is 0.5.

    Attributes
    ----------
    first_, second_
        The fitted recommenders.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.recommend import CopyEASE, WeightedHybrid, ItemKNN
    >>> model = WeightedHybrid(CopyEASE(), ItemKNN()).fit(datasets.load("library"), rng=0)
    >>> model.recommend(["reader 001"], 3)[0].shape
    (1, 3)
    """

    first: Recommender
    second: Recommender
    weight: float = 0.5

    def check_params(self) -> None:
        check_settings(self, weight=(0.0, 1.0))
        for name in ("first", "second"):
            model = getattr(self, name)
            if not isinstance(model, Recommender):
                raise InputError(f"{name} of WeightedHybrid", f"must be a recommender; got {show(model)}.")
            model.check_params()

    def fit_interactions(self, interactions: Interactions, validation: Any, seed: SeedSequence) -> None:
        self.first_ = fit_copy(self.first, interactions, validation, child(seed, 0))
        self.second_ = fit_copy(self.second, interactions, validation, child(seed, 1))

    def score_rows(self, rows: sparse.csr_array) -> NDArray[Any]:
        return self._sum(self.first_.score_rows(rows), self.second_.score_rows(rows))

    def score_positions(self, positions: IntArray) -> NDArray[Any]:
        return self._sum(self.first_.score_positions(positions), self.second_.score_positions(positions))

    def _sum(self, first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(self.weight * _standardise(first) + (1 - self.weight) * _standardise(second))


def _standardise(scores: NDArray[Any]) -> NDArray[Any]:
    """Return each row with mean 0 and standard deviation 1; a row of equal scores becomes zeros."""
    centred = scores - scores.mean(axis=1, keepdims=True, dtype=np.float64)
    deviation = np.sqrt(np.square(centred).mean(axis=1, keepdims=True))
    return np.asarray(np.divide(centred, deviation, out=np.zeros_like(centred), where=deviation > 0))


def relative_popularity(interactions: Interactions) -> NDArray[np.float64]:
    """Return the number of users of each item, at least 1, divided by its mean."""
    counts = np.maximum(count_users(interactions.matrix), 1)
    return np.asarray(counts / counts.mean())


def nearest_rows(pattern: sparse.csr_array, n_neighbours: int, shrinkage: float = 0.0) -> sparse.csr_array:
    """Return the similarities of each row to its nearest rows, in its own row; ties go to the lower row."""
    blocks = [largest_entries(block, n_neighbours) for block in _similarity_blocks(pattern, shrinkage)]
    return sparse.csr_array(sparse.vstack(blocks, format="csr"), dtype=np.float32)


def above_threshold(pattern: sparse.csr_array, mean_degree: float) -> sparse.csr_array:
    """Return the similarities of the most similar pairs, ``mean_degree`` per row on average, with ties."""
    n_entries = int(mean_degree * pattern.shape[0])
    best = np.zeros(0)
    for block in _similarity_blocks(pattern, 0.0):
        best = np.concatenate([best, block.data])
        if len(best) > n_entries:
            best = np.partition(best, len(best) - n_entries)[len(best) - n_entries :]
    threshold = best.min(initial=np.inf) if n_entries else np.inf
    blocks = [keep_entries(block, block.data >= threshold) for block in _similarity_blocks(pattern, 0.0)]
    return sparse.csr_array(sparse.vstack(blocks, format="csr"), dtype=np.float32)


def _similarity_blocks(pattern: sparse.csr_array, shrinkage: float) -> Iterator[sparse.csr_array]:
    """Yield the similarities of some rows to all others that share a column, block by block."""
    n_rows = pattern.shape[0]
    degrees = np.diff(pattern.indptr).astype(np.float64)
    transpose = sparse.csr_array(pattern.T)
    # The number of entries of a row is at most the sum of the degrees of its columns.
    n_pairs = np.append(0, np.cumsum(pattern @ np.diff(transpose.indptr)))
    stop = 0
    while stop < n_rows:
        start = stop
        stop = max(start + 1, int(np.searchsorted(n_pairs, n_pairs[start] + MAX_BLOCK_PAIRS, "right")) - 1)
        shared = sparse.csr_array(pattern[start:stop] @ transpose)
        row = start + np.repeat(np.arange(shared.shape[0]), np.diff(shared.indptr))
        # Integers and a single division: equal similarities have equal bits.
        value = shared.data / (np.sqrt(degrees[row] * degrees[shared.indices]) + shrinkage)
        block = sparse.csr_array((value, shared.indices, shared.indptr), shape=shared.shape)
        yield keep_entries(block, row != block.indices)
