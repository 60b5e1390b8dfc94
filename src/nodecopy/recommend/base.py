"""The contract of recommenders: fitted to interactions, they score and recommend items by external ids."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from nodecopy._core.csr import IntArray
from nodecopy._core.formats import PathLike
from nodecopy._core.optional_imports import import_optional
from nodecopy._core.random import Rng, seed_sequence
from nodecopy._core.saving import Saveable
from nodecopy._core.validation import as_array, check_finite, check_integer, type_name
from nodecopy.conversion import InteractionsLike
from nodecopy.errors import InputError, NotFittedError
from nodecopy.interactions import Interactions
from nodecopy.metrics import ranking
from nodecopy.recommend.best_items import Scores, list_best, select_best
from nodecopy.recommend.training_ids import check_nonempty, check_same_ids, find_ids, history_rows, one_hot

Model = TypeVar("Model", bound="Recommender")


class Recommender(Saveable, ABC):
    """A model that recommends items to users.

    Only the presence of an interaction counts, not its weight: select the ratings that express a preference
    with :meth:`.Interactions.at_least` first. A user without history is scored by popularity, the number of
    users who have each item, whatever the model.

    A subclass writes :meth:`fit_interactions`, which ends by setting attributes whose names end in an
    underscore, and :meth:`score_rows`; a model of user and item embeddings inherits
    :class:`EmbeddingRecommender` instead. Its constructor stores its arguments and nothing else. Parameters,
    ids, recommendations, evaluation, ``save`` and ``load`` follow.

    Attributes
    ----------
    interactions_
        The interactions that the recommender was fitted to, without weights. Columns of scores are in the
        order of its ``item_ids``.
    seen_
        All interactions that are not recommended again: ``interactions_`` and those given to ``fit`` as
        ``seen``.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.recommend import CopyEASE, Recommender
    >>> library = datasets.load("library")
    >>> CopyEASE().fit(library).recommend_new([["Dracula", "Carmilla"]], k=1)[0].tolist()
    [['The Turn of the Screw']]

    A recommender that scores an item by the users who share an item with the history:

    >>> class CoOccurrence(Recommender):
    ...     def fit_interactions(self, interactions, validation, seed):
    ...         self.counts_ = (interactions.matrix.T @ interactions.matrix).tocsr()
    ...     def score_rows(self, rows):
    ...         return (rows @ self.counts_).toarray()
    >>> CoOccurrence().fit(library).recommend_new([["Dracula", "Carmilla"]], k=1)[0].tolist()
    [['Frankenstein']]
    """

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
            Other interactions of the same users and items, by which models that are trained by epochs stop
            early. Models with a closed form do not use them.
        seen
            Everything that the same users have met, whether they liked it or not. It is not recommended
            again, though nothing is learnt from it. The training interactions are seen in any case.
        rng
            Seed or generator; models that draw nothing ignore it.
        """
        train = check_nonempty(interactions, "interactions").binary()
        if validation is not None:
            validation = check_nonempty(
                check_same_ids(validation, train, "validation"), "validation"
            ).binary()
        if seen is not None:
            seen = check_same_ids(seen, train, "seen")
        self.check_params()
        self.fit_interactions(train, validation, seed_sequence(rng))
        self.interactions_ = self.seen_ = train
        if seen is not None:
            self.seen_ = Interactions(train.matrix + seen.matrix, train.user_ids, train.item_ids).binary()
        return self

    def score(self, users: ArrayLike | None = None) -> Scores:
        """Return the scores of all items for some users, ``[len(users), n_items]``.

        A larger score is better for that user; scores of two users or of two models cannot be compared.

        Parameters
        ----------
        users
            User ids; all users by default.
        """
        return self._score_known(self._user_positions(users))

    def score_new(self, histories: Sequence[ArrayLike]) -> Scores:
        """Return the scores of all items for users outside training, ``[len(histories), n_items]``.

        Parameters
        ----------
        histories
            For each user the ids of the items that the user has. Items that were not in training are an
            error, and so are models that score only the users they were fitted to.
        """
        return self._score_histories(history_rows(histories, self.check_fitted().item_ids))

    def recommend(
        self,
        users: ArrayLike | None = None,
        k: int = 10,
        *,
        items: ArrayLike | None = None,
        exclude: ArrayLike | None = None,
        exclude_seen: bool = True,
    ) -> tuple[NDArray[Any], Scores]:
        """Return the ids of the ``k`` best items for some users, best first, and their scores.

        Both arrays have shape ``[len(users), k]``. Ties go to the item that comes first in ``item_ids``.
        Where a user has fewer than ``k`` candidates that are not seen, seen ones with a score of minus
        infinity fill the row.

        Parameters
        ----------
        users
            User ids; all users by default.
        k
            Number of items for each user, at most the number of candidates.
        items
            Ids of the candidates, such as the items in stock; all items by default.
        exclude
            Ids of items that are not candidates.
        exclude_seen
            Whether to leave out the items that a user has met (default).
        """
        positions = self._user_positions(users)
        return select_best(
            lambda block: self._score_known(positions[block]),
            self.seen_.matrix[positions],
            k,
            self.interactions_.item_ids,
            items,
            exclude,
            exclude_seen,
        )

    def recommend_new(
        self,
        histories: Sequence[ArrayLike],
        k: int = 10,
        *,
        items: ArrayLike | None = None,
        exclude: ArrayLike | None = None,
        exclude_seen: bool = True,
    ) -> tuple[NDArray[Any], Scores]:
        """Return the same as :meth:`recommend` for users outside training, given by their histories.

        ``histories`` holds the item ids of each user as in :meth:`score_new`; they count as seen.
        """
        item_ids = self.check_fitted().item_ids
        rows = history_rows(histories, item_ids)
        return select_best(
            lambda block: self._score_histories(rows[block]), rows, k, item_ids, items, exclude, exclude_seen
        )

    def to_pandas(
        self,
        users: ArrayLike | None = None,
        k: int = 10,
        *,
        items: ArrayLike | None = None,
        exclude: ArrayLike | None = None,
        exclude_seen: bool = True,
    ) -> Any:
        """Return the recommendations as a data frame: ``user``, ``rank`` (1 is best), ``item``, ``score``."""
        best, scores = self.recommend(users, k, items=items, exclude=exclude, exclude_seen=exclude_seen)
        user_ids = self.check_fitted().user_ids[self._user_positions(users)]
        return import_optional("pandas", "to_pandas").DataFrame(list_best(user_ids, best, scores))

    def similar_items(self, items: ArrayLike, k: int = 10) -> tuple[NDArray[Any], Scores]:
        """Return the ids of the ``k`` items most similar to each item, best first, and the similarities.

        EASE and CopyEASE use their weights from the item to the others, ItemKNN its cosines, models with
        embeddings the cosine of the item embeddings, and all others the cosine of the items' users.

        Parameters
        ----------
        items
            Item ids.
        k
            Number of similar items, below the number of items.
        """
        item_ids = self.check_fitted().item_ids
        positions = find_ids(items, item_ids, "items")
        check_integer(k, "k", low=1, high=len(item_ids) - 1, high_name="n_items - 1")
        rows = one_hot(positions, len(item_ids))  # the item itself is seen
        return select_best(
            lambda block: np.array(self.similarity_rows(rows[block]), np.float32), rows, k, item_ids
        )

    def explain(self, user: Any, item: Any, k: int = 10) -> tuple[NDArray[Any], Scores]:
        """Return the items of a user's history that contribute most to the score of an item, and how much.

        Contributions are exact: those of the whole history add up to the score. Only linear models, EASE,
        CopyEASE and ItemKNN, can be explained.

        Parameters
        ----------
        user, item
            Ids of a user with a history and of an item.
        k
            Largest number of items to return.
        """
        train = self.check_fitted()
        if not self.is_linear:
            raise InputError(
                f"explain needs a linear model: EASE, CopyEASE, ItemKNN or a class with is_linear = True; "
                f"got {type(self).__name__}."
            )
        check_integer(k, "k", low=1)
        (row,), (column,) = find_ids([user], train.user_ids, "user"), find_ids([item], train.item_ids, "item")
        history = train.rows.indices[train.rows.indptr[row] : train.rows.indptr[row + 1]]
        if not len(history):
            raise InputError(
                f"user must have a history; {train.user_ids[row].item()!r} has none and is scored "
                f"by popularity."
            )
        scores = self._checked_scores(one_hot(history, train.n_items))
        contributions = scores[:, column].astype(np.float32)
        order = np.argsort(-contributions, kind="stable")[:k]
        return train.item_ids[history[order]], contributions[order]

    def evaluate(
        self,
        test: InteractionsLike,
        *,
        validation: InteractionsLike | None = None,
        metrics: Sequence[str] = ranking.DEFAULT_METRICS,
        convention: str = "formula",
    ) -> dict[str, float]:
        """Return metrics of the recommendations on test interactions.

        Training and validation interactions are not candidates. Other interactions in ``seen_`` are: what
        users met and did not like may be among the test interactions.

        Parameters
        ----------
        test
            Interactions of the users and items of training.
        validation
            The validation interactions, if there are some.
        metrics
            Names such as ``"recall@10"``; recall, NDCG, coverage and novelty at 10 and 20 by default. See
            :func:`nodecopy.metrics.ranking.evaluate` for their definitions.
        convention
            ``"formula"`` (default), or ``"printed"`` to compare with the paper's printed numbers.
        """
        train = self.check_fitted()
        test = check_same_ids(test, train, "test")
        validation = None if validation is None else check_same_ids(validation, train, "validation")
        return ranking.evaluate(
            self._score_known, train, test, validation=validation, metrics=metrics, convention=convention
        )

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
        return np.arange(len(user_ids)) if users is None else find_ids(users, user_ids, "users")


def fit_copy(
    model: Model, interactions: Interactions, validation: Interactions | None, seed: SeedSequence
) -> Model:
    """Return the model itself if it is fitted to the same interactions, otherwise a fitted copy."""
    if getattr(model, "interactions_", None) == interactions:
        return model
    return copy.copy(model).fit(interactions, validation=validation, rng=seed)
