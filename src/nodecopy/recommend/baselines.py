"""Popularity, nearest items, matrix factorisation, and models of other models: hybrids and cold items."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import linalg, sparse

from nodecopy._core.arrays import IntArray, check_ids, contains, keep_entries, largest_entries
from nodecopy._core.checks import check_real, check_settings, show
from nodecopy._core.imports import from_name, import_optional
from nodecopy._core.linalg import one_blas_thread
from nodecopy._core.random import child
from nodecopy.errors import InputError
from nodecopy.features.scaling import FeatureScaling, as_dense, check_matrix
from nodecopy.interactions import Interactions
from nodecopy.io import InteractionsLike
from nodecopy.io.node_tables import read_features
from nodecopy.recommend import RECOMMENDERS
from nodecopy.recommend.algebra import count_users
from nodecopy.recommend.base import (
    EmbeddingRecommender,
    Recommender,
    append_interactions,
    check_nonempty,
    cosines,
    find_ids,
    fit_copy,
)
from nodecopy.recommend.tuning import Coordinate

N_ITERATIONS = 15  # alternations of IALS between users and items
MAX_BLOCK_PAIRS = 2**22
N_REGRESSED_USERS = 1024  # whose scores are regressed on the features of items
# Relative to the largest (squared) singular value:
PENALTIES, MIN_SINGULAR_VALUE = np.logspace(-5, 1, 13), 1e-6


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
        Added to the cosine's denominator. Increase it where rare items get too similar.

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
        return np.asarray((rows @ self.similarity_.T).toarray())


@dataclass(eq=False)
class IALS(EmbeddingRecommender):
    """Factorise the interactions by weighted alternating least squares (Hu, Koren and Volinsky, 2008).

    Inner products are near 1 where there is an interaction, near 0 elsewhere. The factors are fitted by the
    package ``implicit``, an extra, with three steps of conjugate gradients per solution.

    Parameters
    ----------
    n_factors
        Length of the embeddings.
    regularisation
        Weight of the squared embeddings in the loss.
    confidence
        Weight of an interaction in the loss; a pair without one has weight 1.

    Attributes
    ----------
    user_embeddings_, item_embeddings_, regularisation_, confidence_
        Factors of users and items, and the parameters of the fit.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.recommend import IALS
    >>> IALS(8).fit(datasets.load("library"), rng=0).recommend(["reader 001"], 3)[0].shape
    (1, 3)
    """

    n_factors: int = 128
    regularisation: float = 120.0
    confidence: float = 40.0

    def check_params(self) -> None:
        check_settings(self, n_factors=1, regularisation=0.0, confidence=1.0)

    def fit_interactions(self, interactions: Interactions, validation: Any, seed: SeedSequence) -> None:
        als = import_optional("implicit.cpu.als", "IALS")
        with one_blas_thread():  # implicit warns of several threads in BLAS
            model = als.AlternatingLeastSquares(
                factors=self.n_factors,
                regularization=self.regularisation,
                alpha=self.confidence,
                iterations=N_ITERATIONS,
                dtype=np.float64,
                num_threads=1,  # so that a seed gives one result
                random_state=int(seed.generate_state(1)[0]),
            )
            model.fit(sparse.csr_matrix(interactions.matrix, dtype=np.float64), show_progress=False)
        self.user_embeddings_ = np.asarray(model.user_factors, np.float32)
        self.item_embeddings_ = np.asarray(model.item_factors, np.float32)
        self.regularisation_, self.confidence_ = self.regularisation, self.confidence

    def set_state(self, state: dict[str, Any]) -> None:
        for name in ("regularisation", "confidence") if state else ():
            check_real(state[f"{name}_"], f"{name} of IALS", low=0.0)
        super().set_state(state)

    def coordinates(self) -> list[Coordinate]:
        return [
            Coordinate(("regularisation",), (10.0, 20.0, 40.0, 80.0, 120.0, 180.0, 250.0)),
            Coordinate(("confidence",), (5.0, 10.0, 20.0, 40.0, 80.0)),
            Coordinate(("n_factors",), (32, 64, 128, 256, 512)),
        ]

    def score_rows(self, rows: sparse.csr_array) -> NDArray[Any]:
        """Return scores by the ridge regression of each row on the item factors."""
        Y = self.item_embeddings_.astype(np.float64)
        gram = Y.T @ Y + self.regularisation_ * np.eye(Y.shape[1])
        factors = np.zeros((rows.shape[0], Y.shape[1]))
        for number in range(rows.shape[0]):
            own = Y[rows.indices[rows.indptr[number] : rows.indptr[number + 1]]]
            left = gram + (self.confidence_ - 1) * own.T @ own
            factors[number] = np.linalg.solve(left, self.confidence_ * own.sum(axis=0))
        return np.asarray(factors @ Y.T)


@dataclass(eq=False)
class WeightedHybrid(Recommender):
    """Add up the scores of two recommenders, each user's scores standardised to mean 0 and deviation 1.

    Parameters
    ----------
    first, second
        Two recommenders, such as :class:`.CopyEASE` and :class:`.IALS`, which are not changed, or their names
        on the command line, such as ``"copy-ease"``. One that is fitted to the same interactions is not
        fitted again.
    weight
        Weight of the first, from 0 to 1; the second has the rest.

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

    first: Recommender | str
    second: Recommender | str
    weight: float = 0.5

    def check_params(self) -> None:
        check_settings(self, weight=(0.0, 1.0))
        for model in self._models():
            model.check_params()

    def _models(self) -> list[Recommender]:
        return [check_base(getattr(self, name), f"{name} of WeightedHybrid") for name in ("first", "second")]

    def fit_interactions(self, interactions: Interactions, validation: Any, seed: SeedSequence) -> None:
        self.first_, self.second_ = (
            fit_copy(model, interactions, validation, child(seed, number))
            for number, model in enumerate(self._models())
        )

    def score_rows(self, rows: sparse.csr_array) -> NDArray[Any]:
        return self._sum(self.first_.score_rows(rows), self.second_.score_rows(rows))

    def score_positions(self, positions: IntArray) -> NDArray[Any]:
        return self._sum(self.first_.score_positions(positions), self.second_.score_positions(positions))

    def _sum(self, first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(self.weight * _standardise(first) + (1 - self.weight) * _standardise(second))


@dataclass(eq=False)
class ColdItems(Recommender):
    """Recommend items without interactions (cold start) too, by their features.

    A ridge regression predicts the scores of an item from its features; its penalty has the smallest
    leave-one-out error on the items of training. With weights B, as in CopyEASE, those of a new item are B a,
    where a is that regression. ``similar_items`` compares features.

    Parameters
    ----------
    base
        The recommender of the items with interactions, or its name on the command line; see
        :class:`WeightedHybrid`.
    items
        A file or data frame with a row per item, ids first, whose text is one-hot encoded; or the ids alone.
    features
        With ids, a matrix with a row of numbers per id.

    Attributes
    ----------
    base_
        The fitted base.
    warm_, cold_
        Positions of the items of the base, and of those without interactions.
    cold_weights_, warm_weights_
        Two factors of the matrix whose rows hold a for each cold item.
    features_
        The scaled features of all items.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.recommend import ColdItems
    >>> titles, is_horror = ["Dracula", "Carmilla", "Emma", "Middlemarch", "It"], [[1], [1], [0], [0], [1]]
    >>> model = ColdItems("copy-ease", titles, is_horror).fit(datasets.load("library"))
    >>> model.similar_items(["It"], 1)[0].tolist()
    [['Carmilla']]
    """

    base: Recommender | str
    items: Any
    features: Any = None

    def check_params(self) -> None:
        check_base(self.base, "base of ColdItems").check_params()

    def fit(self, interactions: InteractionsLike, **options: Any) -> Self:
        """Learn from interactions; items of the table without any are new. Options are those of every fit."""
        self.check_params()
        train = check_nonempty(interactions, "interactions")
        ids, _, _ = self._read(train)
        new = ids[~contains(train.item_ids, ids)]
        no_rows = Interactions(sparse.csr_array((0, len(new))), train.user_ids[:0], new)
        return super().fit(append_interactions(train, no_rows), **options)

    def _read(self, train: Interactions) -> tuple[NDArray[Any], Any, Any]:
        """Return ids, features and the encoder of a table."""
        items, features, encoder = self.items, self.features, None
        if features is None:
            table = read_features(items, set(map(str, train.item_ids.tolist())))
            items, features, encoder = table.ids, table.values, table.encoder
        ids, features = check_ids(items, "items"), check_matrix(features, "features")
        if features.shape[0] != len(ids):
            raise InputError("features", f"must have a row per item, {len(ids)}; got {features.shape[0]}.")
        return ids, features, encoder

    def fit_interactions(self, interactions: Interactions, validation: Any, seed: SeedSequence) -> None:
        ids, features, encoder = self._read(interactions)
        row_of = np.full(interactions.n_items, -1)
        row_of[find_ids(ids, interactions.item_ids, "items")] = np.arange(len(ids))
        is_cold = (count_users(interactions.matrix) == 0) & (row_of >= 0)
        self.cold_, self.warm_ = np.flatnonzero(is_cold), np.flatnonzero(~is_cold)
        is_learnt = row_of[self.warm_] >= 0
        if is_learnt.sum() < 2:
            got = f"got {is_learnt.sum()} among {len(ids):,}"
            raise InputError("items", f"must hold 2 items with interactions or more; {got}.")
        warm, held_out = (
            part and Interactions(part.matrix[:, self.warm_], part.user_ids, part.item_ids[self.warm_])
            for part in (interactions, validation)
        )
        self.base_ = fit_copy(check_base(self.base, "base"), warm, held_out, seed)
        learnt = row_of[self.warm_[is_learnt]]
        scaling = FeatureScaling.fit(features[learnt], encoder=encoder, purpose="cold items")
        X = as_dense(scaling.apply(features))
        users = np.flatnonzero(warm.rows.degrees)
        users = users[np.linspace(0, len(users) - 1, min(N_REGRESSED_USERS, len(users))).astype(int)]
        targets = self.base_.score_positions(users)[:, is_learnt].T
        self.cold_weights_, known = fit_ridge(X[learnt], X[row_of[self.cold_]], targets)
        self.warm_weights_ = np.zeros((len(known), len(self.warm_)), np.float32)
        self.warm_weights_[:, is_learnt] = known
        self.features_ = np.zeros((len(row_of), X.shape[1]), np.float32)
        self.features_[row_of >= 0] = X[row_of[row_of >= 0]]

    def score_rows(self, rows: sparse.csr_array) -> NDArray[Any]:
        """Return scores by the items of the base, popularity where a history has none."""
        return self._add_cold(self.base_.score_histories(sparse.csr_array(rows[:, self.warm_])))

    def score_positions(self, positions: IntArray) -> NDArray[Any]:
        return self._add_cold(self.base_.score_positions(positions))

    def similarity_rows(self, rows: sparse.csr_array) -> NDArray[Any]:
        return cosines(self.features_, rows.indices)

    def _add_cold(self, warm: NDArray[Any]) -> NDArray[Any]:
        scores = np.empty((len(warm), len(self.warm_) + len(self.cold_)), np.float32)
        scores[:, self.warm_] = warm
        scores[:, self.cold_] = (warm @ self.warm_weights_.T) @ self.cold_weights_.T
        return scores


def fit_ridge(X: Any, new: Any, targets: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return factors of the matrix that takes targets of the rows of X to predictions for new rows.

    A ridge regression with an intercept; its penalty has the smallest leave-one-out error on the targets.
    """
    X, centre = X.astype(np.float64), X.mean(axis=0, dtype=np.float64)
    U, s, V_t = linalg.svd(X - centre, full_matrices=False, check_finite=False)
    rank = max(1, np.count_nonzero(s > MIN_SINGULAR_VALUE * s[0]))
    U, s, V = U[:, :rank], s[:rank], V_t[:rank].T
    centred = targets - targets.mean(axis=0)

    def error(penalty: float) -> float:
        shrinkage = s**2 / (s**2 + penalty)
        leverage = 1 / len(U) + (U * U) @ shrinkage
        residuals = centred - (U * shrinkage) @ (U.T @ centred)
        return float(np.square(residuals / np.maximum(1 - leverage, MIN_SINGULAR_VALUE)[:, None]).sum())

    penalty = min(s[0] ** 2 * PENALTIES, key=error)
    factor = np.column_stack([np.ones(len(new)), (new - centre) @ (V * (s / (s**2 + penalty)))])
    weights = np.vstack([np.full(len(U), 1 / len(U)), U.T])
    return factor.astype(np.float32), weights.astype(np.float32)


def check_base(model: Any, name: str) -> Recommender:
    """Return a recommender, or the one that a name stands for."""
    model = from_name(model, RECOMMENDERS, name)
    if not isinstance(model, Recommender):
        raise InputError(name, f"must be a recommender, or its name; got {show(model)}.")
    return model


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
    """Return the similarities of each row to its nearest rows; ties go to the first."""
    blocks = [largest_entries(block, n_neighbours) for block in _similarity_blocks(pattern, shrinkage)]
    return sparse.csr_array(sparse.vstack(blocks, format="csr"), dtype=np.float32)


def above_threshold(pattern: sparse.csr_array, mean_degree: float) -> sparse.csr_array:
    """Return the largest similarities, ``mean_degree`` per row on average, with ties."""
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
