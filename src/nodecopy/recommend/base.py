"""The contract of recommenders: fit on interactions, then score and recommend by the ids of their owner."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from nodecopy._core.csr import IntArray
from nodecopy._core.formats import PathLike
from nodecopy._core.ids import check_ids, find_positions
from nodecopy._core.optional_imports import import_optional
from nodecopy._core.params import Configurable
from nodecopy._core.random import Rng, seed_sequence
from nodecopy._core.validation import check_integer
from nodecopy.errors import InputError, NotFittedError
from nodecopy.interactions import Interactions
from nodecopy.metrics import ranking
from nodecopy.recommend import saving

Scores = NDArray[np.float32]

SCORES_AT_ONCE = 2**25
"""Scores held at once in recommendations: 128 MiB, and as much again while the best are found."""


class Recommender(Configurable, ABC):
    """Learns from who took what; every recommender is a dataclass of its settings.

    Only the fact of an interaction counts, not its weight: choose the ratings that mean liking with
    :meth:`.Interactions.at_least` first. A user without history is scored by popularity, the number of
    users who have each item, whatever the model.

    Attributes
    ----------
    interactions_
        What the recommender was fitted to, without weights; columns of scores stand in the order of its
        ``item_ids``.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.recommend import CopyEASE
    >>> library = datasets.load("library")
    >>> model = CopyEASE().fit(library)
    >>> model.score(["reader 001", "reader 002"]).shape
    (2, 72)
    >>> model.recommend_new([["Dracula", "Carmilla"]], 1)[0].shape
    (1, 1)
    """

    interactions_: Interactions
    _seen: Interactions | None = None
    """More than the interactions, where ``fit`` was told of more."""

    def fit(
        self,
        interactions: Interactions,
        *,
        validation: Interactions | None = None,
        seen: Interactions | None = None,
        rng: Rng = None,
    ) -> Self:
        """Learn from interactions.

        Parameters
        ----------
        interactions
            What to learn from; at least one interaction.
        validation
            Other interactions of the same users and items. Models that are trained step by step stop by
            them; closed forms do not look at them.
        seen
            All that the same users have met, liked or not: nobody gets that recommended again, though
            nothing is learnt from it. What is learnt from is seen in any case.
        rng
            Seed or generator; models that draw nothing ignore it.
        """
        known = nonempty(interactions, "interactions").binary()
        if validation is not None:
            _alike(nonempty(validation, "validation"), known, "validation")
            validation = validation.binary()
        if seen is not None:
            _alike(seen, known, "seen")
        self._check()
        self._fit(known, validation, seed_sequence(rng))
        self.interactions_ = known
        self._seen = None if seen is None else _both(known, seen)
        return self

    @property
    def seen_(self) -> Interactions:
        """What users have met, liked or not."""
        known = self._fitted()
        return known if self._seen is None else self._seen

    def score(self, users: ArrayLike | None = None) -> Scores:
        """Scores ``[len(users), n_items]`` of all items for some user ids, all users by default.

        The larger, the better for that user; scores of two users or two models do not compare.
        """
        return self._score_numbers(self._numbers(users))

    def score_new(self, histories: Sequence[ArrayLike]) -> Scores:
        """Scores for users who were not there in training, from the ids of the items each of them has.

        Items that were not there in training are an error, as are models that cannot do this.
        """
        return self._score_new_rows(self._histories(histories))

    def recommend(
        self, users: ArrayLike | None = None, k: int = 10, *, exclude_seen: bool = True
    ) -> tuple[NDArray[Any], Scores]:
        """The ``k`` best items for some user ids (all users by default), best first, and their scores.

        Both have shape ``[len(users), k]``; of equal scores the item that comes first in ``item_ids``
        comes first. Items the user has met are left out unless ``exclude_seen`` is false; where fewer than
        ``k`` others remain, the places left over hold items the user has met, with score minus infinity.
        """
        numbers = self._numbers(users)
        seen = self.seen_.matrix
        return self._best(
            len(numbers),
            lambda part: (self._score_numbers(numbers[part]), seen[numbers[part]]),
            k,
            exclude_seen,
        )

    def to_pandas(self, users: ArrayLike | None = None, k: int = 10, *, exclude_seen: bool = True) -> Any:
        """The same as a data frame: ``user``, ``rank`` (1 is best), ``item``, ``score``."""
        items, scores = self.recommend(users, k, exclude_seen=exclude_seen)
        asked = self._fitted().user_ids[self._numbers(users)]
        columns = {
            "user": np.repeat(asked, k),
            "rank": np.tile(np.arange(1, k + 1), len(asked)),
            "item": items.ravel(),
            "score": scores.ravel(),
        }
        frame = import_optional("pandas", "to_pandas").DataFrame(columns)
        return frame[np.isfinite(columns["score"])].reset_index(drop=True)

    def recommend_new(
        self, histories: Sequence[ArrayLike], k: int = 10, *, exclude_seen: bool = True
    ) -> tuple[NDArray[Any], Scores]:
        """The same for users who were not there in training, from the ids of the items they have."""
        rows = self._histories(histories)
        return self._best(
            rows.shape[0], lambda part: (self._score_new_rows(rows[part]), rows[part]), k, exclude_seen
        )

    def evaluate(
        self,
        test: Interactions,
        *,
        validation: Interactions | None = None,
        k: Sequence[int] = (10, 20),
        convention: str = "formula",
    ) -> dict[str, float]:
        """Recall, NDCG, coverage and novelty on test interactions; see :func:`.ranking.evaluate`.

        Lists leave out what was learnt from and the validation part, not all of ``seen_``: what users met and
        did not like may be among the test interactions.
        """
        known = self._fitted()
        for name, other in (("test", test), ("validation", validation)):
            if other is not None:
                _alike(other, known, name)
        return ranking.evaluate(
            self._score_numbers, known, test, validation=validation, k=k, convention=convention
        )

    def save(self, path: PathLike) -> None:
        """Write the fitted recommender to a ``.npz`` file, whole or not at all; :func:`.load` reads it."""
        saving.save(path, self, self._fitted(), self._seen, self._state())

    def _check(self) -> None:
        """Check the settings that need no data."""

    @abstractmethod
    def _fit(self, interactions: Interactions, validation: Interactions | None, seed: SeedSequence) -> None:
        """Learn from interactions without weights."""

    def _score(self, users: IntArray) -> NDArray[Any]:
        """Scores of user numbers."""
        return self._score_rows(sparse.csr_array(self.interactions_.matrix[users]))

    def _score_rows(self, rows: sparse.csr_array) -> NDArray[Any]:
        """Scores of any rows of interactions, by models that need no more than those."""
        raise InputError(
            f"score_new needs a model that scores any list of items; {type(self).__name__} knows only the "
            f"users it was fitted to."
        )

    @abstractmethod
    def _state(self) -> dict[str, Any]:
        """All that was learnt: arrays and SciPy CSR matrices by name."""

    @abstractmethod
    def _restore(self, state: dict[str, Any]) -> None:
        """Take what :meth:`_state` gave."""

    def _fitted(self) -> Interactions:
        if not hasattr(self, "interactions_"):
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet: call fit(interactions) first."
            )
        return self.interactions_

    def _numbers(self, users: ArrayLike | None) -> IntArray:
        """Where some user ids stand."""
        known = self._fitted().user_ids
        return np.arange(len(known)) if users is None else _places(users, known, "users")

    def _histories(self, histories: Sequence[ArrayLike]) -> sparse.csr_array:
        """Rows of ones, from lists of item ids; an item named twice counts once."""
        known = self._fitted().item_ids
        if isinstance(histories, str) or any(isinstance(one, str) or np.ndim(one) != 1 for one in histories):
            raise InputError("histories must hold one list of item ids per user; got something else.")
        columns = [np.unique(_places(one, known, "histories")) for one in histories]
        indptr = np.append(0, np.cumsum([len(one) for one in columns])).astype(np.int64)
        indices = np.concatenate([np.zeros(0, np.int64), *columns])
        shape = (len(columns), len(known))
        return sparse.csr_array((np.ones(len(indices), np.float32), indices, indptr), shape=shape)

    def _score_numbers(self, users: IntArray) -> Scores:
        return self._or_popularity(self._score, users, self.interactions_.rows.degrees[users] > 0)

    def _score_new_rows(self, rows: sparse.csr_array) -> Scores:
        return self._or_popularity(self._score_rows, rows, np.diff(rows.indptr) > 0)

    def _or_popularity(self, score: Callable[[Any], NDArray[Any]], who: Any, has_history: Any) -> Scores:
        """What the model says of those with a history, and popularity for the others."""
        if has_history.all():
            return np.asarray(score(who), dtype=np.float32)
        known = self.interactions_
        popularity = np.bincount(known.rows.indices, minlength=known.n_items)
        scores = np.tile(popularity.astype(np.float32), (len(has_history), 1))
        if has_history.any():
            scores[has_history] = score(who[np.flatnonzero(has_history)])
        return scores

    def _best(
        self, n_users: int, scores_and_seen: Callable[[slice], tuple[Scores, Any]], k: int, exclude_seen: bool
    ) -> tuple[NDArray[Any], Scores]:
        known = self.interactions_
        check_integer(k, "k", low=1, high=known.n_items, high_name="n_items")
        items, best = np.empty((n_users, k), np.int64), np.empty((n_users, k), np.float32)
        for part in _parts(n_users, max(1, SCORES_AT_ONCE // known.n_items)):
            scores, seen = scores_and_seen(part)
            if exclude_seen:
                scores[np.repeat(np.arange(seen.shape[0]), np.diff(seen.indptr)), seen.indices] = -np.inf
            items[part] = ranking.top_items(scores, k)
            best[part] = np.take_along_axis(scores, items[part], axis=1)
        return known.item_ids[items], best


def _parts(size: int, step: int) -> Iterator[slice]:
    return (slice(start, min(start + step, size)) for start in range(0, size, step))


def nonempty(interactions: Any, name: str) -> Interactions:
    """Interactions that hold at least one, or an error that names them."""
    if not isinstance(interactions, Interactions):
        raise InputError(f"{name} must be Interactions; got {type(interactions).__name__}.")
    if not interactions.n_interactions:
        raise InputError(f"{name} must hold at least one interaction; got {interactions!r}.")
    return interactions


def _both(first: Interactions, second: Interactions) -> Interactions:
    """Whatever stands in one or the other, without weights."""
    return Interactions(first.matrix + second.matrix, first.user_ids, first.item_ids).binary()


def _alike(other: Any, known: Interactions, name: str) -> None:
    if not isinstance(other, Interactions):
        raise InputError(f"{name} must be Interactions; got {type(other).__name__}.")
    same = np.array_equal(other.user_ids, known.user_ids) and np.array_equal(other.item_ids, known.item_ids)
    if not same:
        raise InputError(
            f"{name} must be of the users and items of training, {known!r}, in the same order; got {other!r}."
        )


def _places(values: ArrayLike, known: NDArray[Any], name: str) -> IntArray:
    ids = check_ids(values, name)
    if ids.size and (ids.dtype.kind == "U") != (known.dtype.kind == "U"):
        kind = "strings" if known.dtype.kind == "U" else "integers"
        raise InputError(f"{name} must hold {kind}, as in training; got {ids.tolist()[0]!r}.")
    return find_positions(ids, known, name)
