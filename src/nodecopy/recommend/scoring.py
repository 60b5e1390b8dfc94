"""What every recommender has below its lists: how it is fitted, scored, saved and checked."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from nodecopy._core.csr import IntArray
from nodecopy._core.formats import PathLike
from nodecopy._core.hints import Hint
from nodecopy._core.random import Rng, seed_sequence
from nodecopy._core.saving import Saveable
from nodecopy._core.validation import as_array, check_finite, type_name
from nodecopy.conversion import InteractionsLike
from nodecopy.errors import InputError, NotFittedError
from nodecopy.interactions import Interactions
from nodecopy.recommend.best_items import Scores
from nodecopy.recommend.training_ids import OUTSIDE, align, check_nonempty, find_ids

Model = TypeVar("Model", bound="ScoringModel")


class ScoringModel(Saveable, ABC):
    """A model that scores all items for a user; :class:`.Recommender` makes lists of the scores."""

    interactions_: Interactions
    seen_: Interactions

    is_linear: ClassVar[bool] = False
    """Whether the score of a history is the sum of the scores of its items, each taken alone."""

    @abstractmethod
    def fit_interactions(
        self, interactions: Interactions, validation: Interactions | None, seed: SeedSequence
    ) -> None:
        """Learn from binary interactions; both tables have been checked and have the same users and items."""

    def score_rows(self, rows: sparse.csr_array) -> NDArray[Any]:
        """Return the scores of all items for each row of a binary users x items matrix.

        Rows need not belong to users of training. Models that score only those do not write this method.
        """
        raise InputError(
            f"score_new needs a model that scores any list of items; {type(self).__name__} scores only the "
            f"users that it was fitted to."
        )

    def similarity_rows(self, rows: sparse.csr_array) -> NDArray[Any]:
        """Return the similarity of all items to the one item in each row of a binary matrix.

        The default is the cosine of the items' users in the interactions.
        """
        matrix = self.interactions_.matrix
        counts = np.bincount(matrix.indices, minlength=matrix.shape[1])
        norms = np.sqrt(np.outer(counts[rows.indices], counts))
        shared = ((rows @ matrix.T) @ matrix).toarray()
        return np.asarray(np.divide(shared, norms, out=np.zeros_like(norms), where=norms > 0))

    def user_similarities(self, positions: IntArray) -> NDArray[Any]:
        """Return the similarity of users of training, given by position, to all users of training.

        The default is the cosine of the users' items in the interactions.
        """
        matrix, degrees = self.interactions_.matrix, self.interactions_.rows.degrees
        norms = np.sqrt(np.outer(degrees[positions], degrees))
        shared = (matrix[positions] @ matrix.T).toarray()
        return np.asarray(np.divide(shared, norms, out=np.zeros_like(norms), where=norms > 0))

    def donor_parts(self, history: IntArray, column: int) -> tuple[NDArray[Any], NDArray[Any]] | None:
        """Return what every donor user and every donor item adds to the score of an item for a history.

        Both are given by position. ``None``, the default, is that of models which do not say.
        """
        return None

    def check_params(self) -> None:
        """Raise :class:`~nodecopy.errors.InputError` for a parameter that is wrong whatever the data."""

    def fit(
        self,
        interactions: InteractionsLike,
        *,
        validation: InteractionsLike | None = None,
        seen: InteractionsLike | None = None,
        rng: Rng = None,
    ) -> Self:
        """Learn from interactions.

        Parameters
        ----------
        interactions
            What to learn from, or what :func:`.as_interactions` converts; at least one interaction.
        validation
            Other interactions of users and items of training, by which models that are trained by epochs stop
            early. Models with a closed form do not use them.
        seen
            Everything that users of training have met, whether they liked it or not. It is not recommended
            again, though nothing is learnt from it. The training interactions are seen in any case.
        rng
            Seed or generator; models that draw nothing ignore it.
        """
        train = check_nonempty(interactions, "interactions").binary()
        if validation is not None:
            validation = check_nonempty(align(validation, train, "validation"), "validation").binary()
            if n_shared := validation.n_interactions - validation.difference(train).n_interactions:
                raise InputError(
                    f"validation must hold other interactions than those to learn from; {n_shared} of its "
                    f"{validation.n_interactions} are among them. interactions.difference(validation) has "
                    f"none of them."
                )
        if seen is not None:
            seen = align(seen, train, "seen")
        self.check_params()
        self.fit_interactions(train, validation, seed_sequence(rng))
        self.interactions_ = self.seen_ = train
        if seen is not None:
            self.seen_ = train.union(seen)
        return self

    def save(self, path: PathLike) -> None:
        """Write the fitted recommender to an ``.npz`` file, which :func:`nodecopy.load` reads.

        The file is written as a whole or not at all. It does not hold the device.
        """
        self.check_fitted()
        super().save(path)

    def get_state(self) -> dict[str, Any]:
        """Return what was fitted; ``seen_`` only if it holds more than the training interactions."""
        state = super().get_state()
        if state.get("seen_") is state.get("interactions_"):
            state.pop("seen_", None)
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        """Take over what :meth:`get_state` returned, and check that it fits the users and items."""
        if not state:  # an unfitted part of another recommender
            return
        self.check_params()
        super().set_state({"seen_": state["interactions_"]} | state)
        train = self.interactions_
        last = np.flatnonzero(train.rows.degrees)[-1:]
        shape = self._score_known(last).shape
        if shape != (len(last), train.n_items):
            raise InputError(f"scores must be {train.n_items}, one per item; got an array of shape {shape}.")

    def check_fitted(self) -> Interactions:
        """Return the training interactions, or raise :class:`~nodecopy.errors.NotFittedError`."""
        if not hasattr(self, "interactions_"):
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet: call fit(interactions) first."
            )
        return self.interactions_

    def score_positions(self, positions: IntArray) -> NDArray[Any]:
        """Return the scores of users of training, all of whom have a history."""
        return self._checked_scores(sparse.csr_array(self.interactions_.matrix[positions]))

    def _checked_scores(self, rows: sparse.csr_array) -> NDArray[Any]:
        """Return what ``score_rows`` returns after a check of its shape and numbers."""
        name = f"score_rows of {type(self).__name__}"
        scores: Any = self.score_rows(rows)
        array = as_array(scores.toarray() if hasattr(scores, "toarray") else scores, name)
        if array.shape != rows.shape or array.dtype.kind not in "biuf":
            got = type_name(scores) if array.ndim == 0 else f"{array.dtype} of shape {array.shape}"
            raise InputError(
                f"{name} must return numbers of shape {rows.shape}, a row per user and a column per item; "
                f"got {got}."
            )
        check_finite(array, name)
        return array

    def _score_known(self, positions: IntArray) -> Scores:
        has_history = self.interactions_.rows.degrees[positions] > 0
        return self._with_popularity(self.score_positions, positions, has_history)

    def _score_histories(self, rows: sparse.csr_array) -> Scores:
        return self._with_popularity(self._checked_scores, rows, np.diff(rows.indptr) > 0)

    def _with_popularity(self, score: Callable[[Any], NDArray[Any]], users: Any, has_history: Any) -> Scores:
        """Return the model's scores of users with a history, and popularity for the others."""
        if has_history.all():
            return np.asarray(score(users), dtype=np.float32)
        train = self.interactions_
        popularity = np.bincount(train.rows.indices, minlength=train.n_items)
        scores = np.tile(popularity.astype(np.float32), (len(has_history), 1))
        if has_history.any():
            scores[has_history] = score(users[np.flatnonzero(has_history)])
        return scores

    def _user_positions(self, users: ArrayLike | None) -> IntArray:
        user_ids = self.check_fitted().user_ids
        if users is None:
            return np.arange(len(user_ids))
        return find_ids(users, user_ids, "users", hint=Hint(OUTSIDE, recommend_new=...))


def fit_copy(
    model: Model, interactions: Interactions, validation: Interactions | None, seed: SeedSequence
) -> Model:
    """Return the model itself if it is fitted to the same interactions, otherwise a fitted copy."""
    if getattr(model, "interactions_", None) == interactions:
        return model
    return copy.copy(model).fit(interactions, validation=validation, rng=seed)
