"""The contract of recommenders: fitted to interactions, they score and recommend items by external ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.csr import IntArray
from nodecopy._core.hints import Hint
from nodecopy._core.optional_imports import import_optional
from nodecopy._core.validation import check_integer
from nodecopy.conversion import InteractionsLike
from nodecopy.errors import InputError
from nodecopy.metrics import ranking
from nodecopy.recommend.best_items import MAX_BLOCK_SCORES, Scores, find_candidates, list_best, select_best
from nodecopy.recommend.explanations import Explanation, largest_contributions
from nodecopy.recommend.scoring import ScoringModel
from nodecopy.recommend.training_ids import IGNORE, OUTSIDE, align, find_ids, history_rows, one_hot


class Recommender(ScoringModel):
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

    def score(self, users: ArrayLike | None = None) -> Scores:
        """Return the scores of all items for some users, ``[len(users), n_items]``.

        A larger score is better for that user; scores of two users or of two models cannot be compared.

        Parameters
        ----------
        users
            User ids; all users by default.
        """
        return self._score_known(self._user_positions(users))

    def score_new(self, histories: Sequence[ArrayLike], *, unknown: str = "error") -> Scores:
        """Return the scores of all items for users outside training, ``[len(histories), n_items]``.

        Parameters
        ----------
        histories
            For each user the ids of the items that the user has. Models that score only the users they were
            fitted to are an error.
        unknown
            Whether items that were not in training are an error (``"error"``, default) or left out
            (``"ignore"``).
        """
        return self._score_histories(history_rows(histories, self.check_fitted().item_ids, unknown))

    def recommend(
        self,
        users: ArrayLike | None = None,
        k: int = 10,
        *,
        items: ArrayLike | None = None,
        exclude: ArrayLike | None = None,
        exclude_seen: bool = True,
        unknown: str = "error",
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
        unknown
            Whether ids in ``items`` and ``exclude`` that were not in training are an error (``"error"``,
            default) or left out (``"ignore"``), as is useful for a list of items in stock.
        """
        positions = self._user_positions(users)
        item_ids = self.interactions_.item_ids
        candidates = find_candidates(items, exclude, item_ids, unknown)
        seen = self.seen_.matrix[positions] if exclude_seen else None
        return select_best(
            lambda block: self._score_known(positions[block]), len(positions), k, item_ids, candidates, seen
        )

    def recommend_new(
        self,
        histories: Sequence[ArrayLike],
        k: int = 10,
        *,
        items: ArrayLike | None = None,
        exclude: ArrayLike | None = None,
        exclude_seen: bool = True,
        unknown: str = "error",
    ) -> tuple[NDArray[Any], Scores]:
        """Return the same as :meth:`recommend` for users outside training, given by their histories.

        ``histories`` holds the item ids of each user as in :meth:`score_new`; they count as seen.
        """
        item_ids = self.check_fitted().item_ids
        rows = history_rows(histories, item_ids, unknown)
        candidates = find_candidates(items, exclude, item_ids, unknown)
        return select_best(
            lambda block: self._score_histories(rows[block]),
            rows.shape[0],
            k,
            item_ids,
            candidates,
            rows if exclude_seen else None,
        )

    def to_pandas(
        self,
        users: ArrayLike | None = None,
        k: int = 10,
        *,
        items: ArrayLike | None = None,
        exclude: ArrayLike | None = None,
        exclude_seen: bool = True,
        unknown: str = "error",
    ) -> Any:
        """Return the recommendations as a data frame: ``user``, ``rank`` (1 is best), ``item``, ``score``."""
        best, scores = self.recommend(
            users, k, items=items, exclude=exclude, exclude_seen=exclude_seen, unknown=unknown
        )
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
        rows = one_hot(positions, len(item_ids))  # the item itself is left out
        return select_best(
            lambda block: np.array(self.similarity_rows(rows[block]), np.float32),
            len(positions),
            k,
            item_ids,
            seen=rows,
        )

    def similar_users(self, users: ArrayLike, k: int = 10) -> tuple[NDArray[Any], Scores]:
        """Return the ids of the ``k`` users most similar to each user, best first, and the similarities.

        Models with embeddings use the cosine of the user embeddings, all others that of the users' items.

        Parameters
        ----------
        users
            User ids.
        k
            Number of similar users, below the number of users.
        """
        user_ids, positions = self.check_fitted().user_ids, self._user_positions(users)
        check_integer(k, "k", low=1, high=len(user_ids) - 1, high_name="n_users - 1")
        return select_best(
            lambda block: np.array(self.user_similarities(positions[block]), np.float32),
            len(positions),
            k,
            user_ids,
            seen=one_hot(positions, len(user_ids)),
        )

    def explain(self, user: Any, item: Any, k: int | None = 10, *, donors: bool = True) -> Explanation:
        """Return why an item has its score for a user: items of the history, donors, and how much they add.

        Contributions are exact: those of all items of the history add up to the score, and so do those of
        all donors. Only linear models can be explained: EASE, CopyEASE, ItemKNN and classes of your own with
        ``is_linear = True``, of which the last have no donors.

        Parameters
        ----------
        user, item
            Ids of a user with a history and of an item.
        k
            Largest number of items and of donors to return; ``None`` for all that are not zero.
        donors
            Whether to return donors (default). For EASE and CopyEASE they take the solution of a linear
            system, and for CopyEASE the donor laws are fitted again in the first call. Items of the history
            take a millisecond.
        """
        train = self.check_fitted()
        (row,) = find_ids([user], train.user_ids, "user", hint=Hint(OUTSIDE, explain_new=...))
        history = train.rows.indices[train.rows.indptr[row] : train.rows.indptr[row + 1]]
        if self.is_linear and not len(history):
            raise InputError(
                f"user must have a history; {train.user_ids[row].item()!r} has none and is scored "
                f"by popularity."
            )
        return self._explain(history, item, k, donors)

    def explain_new(
        self,
        history: ArrayLike,
        item: Any,
        k: int | None = 10,
        *,
        donors: bool = True,
        unknown: str = "error",
    ) -> Explanation:
        """Return the same as :meth:`explain` for a user outside training, given by the ids of the items.

        ``unknown`` says whether items that were not in training are an error or left out.
        """
        item_ids = self.check_fitted().item_ids
        columns = history_rows([history], item_ids, unknown).indices
        if not len(columns):
            raise InputError("history must hold an item of training; got none: it is scored by popularity.")
        return self._explain(columns, item, k, donors)

    def _explain(self, history: IntArray, item: Any, k: int | None, donors: bool) -> Explanation:
        """Return the explanation of the score of an item for a history, given by the columns of its items."""
        train = self.interactions_
        if not self.is_linear:
            raise InputError(
                f"explain needs a linear model: EASE, CopyEASE, ItemKNN or a class with is_linear = True; "
                f"got {type(self).__name__}."
            )
        if k is not None:
            check_integer(k, "k", low=1)
        (column,) = find_ids([item], train.item_ids, "item")
        step = max(1, MAX_BLOCK_SCORES // train.n_items)
        blocks = (history[start : start + step] for start in range(0, len(history), step))
        scores = [self._checked_scores(one_hot(block, train.n_items))[:, column] for block in blocks]
        values = np.concatenate(scores).astype(np.float64)
        score, items = float(values.sum()), largest_contributions(train.item_ids[history], values, k)
        parts = self.donor_parts(history, int(column)) if donors else None
        if parts is None:
            return Explanation(score, items)
        by_user = largest_contributions(train.user_ids, parts[0], k)
        by_item = largest_contributions(train.item_ids, parts[1], k)
        return Explanation(score, items, by_user, by_item, score - float(sum(part.sum() for part in parts)))

    def evaluate(
        self,
        test: InteractionsLike,
        *,
        validation: InteractionsLike | None = None,
        history: InteractionsLike | None = None,
        metrics: Sequence[str] = ranking.DEFAULT_METRICS,
        convention: str = "formula",
        unknown: str = "error",
    ) -> ranking.Evaluation:
        """Return metrics of the recommendations on test interactions, and their values for every user.

        Training and validation interactions are not candidates. Other interactions in ``seen_`` are: what
        users met and did not like may be among the test interactions. Tables are matched with the users and
        items of training by their ids, in whatever order they are.

        Parameters
        ----------
        test
            Interactions of users and items of training; with ``history`` those of the users in there.
        validation
            The validation interactions, if there are some.
        history
            For users outside training (strong generalisation): the interactions from which their items are
            recommended; see :func:`.user_split`. They are not candidates.
        metrics
            Names such as ``"recall@10"``; recall, NDCG, coverage and novelty at 10 and 20 by default. See
            :func:`nodecopy.metrics.ranking.evaluate` for their definitions.
        convention
            ``"formula"`` (default), or ``"printed"`` to compare with the paper's printed numbers.
        unknown
            Whether interactions with users and items that were not in training are an error (``"error"``,
            default) or left out (``"ignore"``); their number is logged.
        """
        owners = train = self.check_fitted()
        if history is not None:
            history = owners = align(
                history, train, "history", unknown, keep_users=True, hint=IGNORE
            ).binary()
        test = align(test, owners, "test", unknown, hint=IGNORE)
        if validation is not None:
            validation = align(validation, owners, "validation", unknown, hint=IGNORE)
        return ranking.evaluate(
            self._score_known if history is None else lambda rows: self._score_histories(owners.matrix[rows]),
            train,
            test,
            validation=validation,
            history=history,
            metrics=metrics,
            convention=convention,
        )
