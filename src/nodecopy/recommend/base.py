"""The contract of recommenders: fitted to interactions, they score and recommend items by external ids.

Models define how they are fitted and how they score rows of a matrix; all else is in :class:`Recommender`.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from nodecopy._core.arrays import IntArray, check_ids, contains, find_positions, unit_rows
from nodecopy._core.checks import (
    as_array,
    check_choice,
    check_finite,
    check_integer,
    check_sequence,
    check_text_size,
    show,
    type_name,
)
from nodecopy._core.estimator import Saveable
from nodecopy._core.imports import import_optional
from nodecopy._core.messages import PrintedTable, log_decision
from nodecopy._core.random import Rng, seed_sequence
from nodecopy.errors import InputError, NotFittedError
from nodecopy.interactions import Interactions
from nodecopy.io import InteractionsLike, convert_interactions
from nodecopy.metrics import ranking
from nodecopy.recommend.algebra import count_users, row_blocks

if TYPE_CHECKING:
    from nodecopy.recommend.tuning import Coordinate

Model = TypeVar("Model", bound="Recommender")
Scores = NDArray[np.float32]
MAX_BLOCK_SCORES = 2**25  # of one block of users: 128 MiB, and as much again while the best are selected
NO_ITEM = -1  # fills the rows of users with few candidates where ids are integers
IGNORE = "unknown='ignore' leaves such ids out."
SAME_IDS = "Leave such interactions out; nodecopy.datasets splits into parts with the same ids."


class Contributions(NamedTuple):
    """Ids and what each of them adds to a score, the largest first."""

    ids: NDArray[Any]
    values: NDArray[np.float64]

    def to_list(self, name: str) -> list[dict[str, Any]]:
        """Return a dictionary per id, for JSON; ``name`` is the key of the ids."""
        pairs = zip(self.ids.tolist(), np.round(self.values, 7).tolist(), strict=True)
        return [{name: identifier, "contribution": value} for identifier, value in pairs]


@dataclass(frozen=True, repr=False)
class Explanation(PrintedTable):
    """Why an item has its score for a user, in two sums of the same score.

    Attributes
    ----------
    score, items
        The score, and the contributions of the items of the user's history, which add up to it.
    donors, donor_items
        What users and items of training add to the score through the weights; ``None`` if not requested or
        if the model has none. In CopyEASE a user also counts for users whose donor it is. With
        ``remainder``, all of them add up to the score.
    remainder
        The part without donors: rounding, and in the sparse form the entries that were left out.
    """

    heads = ("item of the history", "contribution")

    score: float
    items: Contributions
    donors: Contributions | None = None
    donor_items: Contributions | None = None
    remainder: float = 0.0

    def cells(self) -> Iterable[Iterable[Any]]:
        return zip(map(str, self.items.ids.tolist()), self.items.values.tolist(), strict=True)

    def notes(self) -> tuple[list[str], list[str]]:
        parts = {"donors": self.donors, "items of donors": self.donor_items}
        lines = [
            f"{name}: "
            + ", ".join(f"{identifier} {value:.3g}" for identifier, value in zip(*part, strict=True))
            for name, part in parts.items()
            if part is not None
        ]
        return [f"score {self.score:.4g}"], lines

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        explanation: dict[str, Any] = {"score": self.score, "items": self.items.to_list("item")}
        if self.donors is not None:
            explanation["donors"] = self.donors.to_list("user")
        if self.donor_items is not None:
            explanation["donor_items"] = self.donor_items.to_list("item")
            explanation["remainder"] = self.remainder
        return explanation


def largest_contributions(ids: NDArray[Any], values: NDArray[Any], k: int | None) -> Contributions:
    """Return the ``k`` largest contributions, all for ``None``, without zeros; ties go to the first."""
    order = np.argsort(-values, kind="stable")
    order = order[values[order] != 0][:k]
    return Contributions(ids[order], values[order].astype(np.float64))


class Recommender(Saveable, ABC):
    """A model that recommends items to users.

    Weights of interactions are ignored: select ratings that express a preference with
    :meth:`.Interactions.at_least` first. For a user without history, items are scored by popularity.

    A subclass writes :meth:`fit_interactions`, which sets attributes whose names end in an underscore, and
    :meth:`score_rows`; a model of embeddings inherits :class:`EmbeddingRecommender` instead. Its constructor
    stores its arguments and nothing else.

    Attributes
    ----------
    interactions_
        The interactions of ``fit``, without weights; its ``item_ids`` are the columns of scores.
    seen_
        All interactions that are not recommended again: ``interactions_`` and ``seen`` of ``fit``.

    Examples
    --------
    A recommender that scores an item by the users who share an item with the history:

    >>> from nodecopy import datasets
    >>> from nodecopy.recommend import Recommender
    >>> class CoOccurrence(Recommender):
    ...     def fit_interactions(self, interactions, validation, seed):
    ...         self.counts_ = (interactions.matrix.T @ interactions.matrix).tocsr()
    ...     def score_rows(self, rows):
    ...         return (rows @ self.counts_).toarray()
    >>> model = CoOccurrence().fit(datasets.load("library"))
    >>> model.recommend_new([["Dracula", "Carmilla"]], k=1)[0].tolist()
    [['Frankenstein']]
    """

    optional_state: ClassVar[set[str]] = {"seen_", "tuning_"}

    interactions_: Interactions
    tuning_: list[dict[str, Any]]
    seen_: Interactions

    is_linear: ClassVar[bool] = False
    """Whether the score of a history is the sum of the scores of its items, each taken alone."""

    @abstractmethod
    def fit_interactions(
        self, interactions: Interactions, validation: Interactions | None, seed: SeedSequence
    ) -> None:
        """Learn from binary interactions; both tables have been checked and have the same ids."""

    def score_rows(self, rows: sparse.csr_array) -> NDArray[Any]:
        """Return the scores of all items for each row of a binary matrix."""
        name = type(self).__name__
        raise InputError(f"recommend_new needs a model that scores any list of items; {name} does not.")

    def similarity_rows(self, rows: sparse.csr_array) -> NDArray[Any]:
        """Return the similarity of all items to the item in each one-hot row, by default by their users."""
        matrix = self.interactions_.matrix
        counts = count_users(matrix)
        return _divide_by_norms((rows @ matrix.T) @ matrix, counts[rows.indices], counts)

    def user_similarities(self, positions: IntArray) -> NDArray[Any]:
        """Return the similarity of users, given by position, to all users, by default by their items."""
        matrix, degrees = self.interactions_.matrix, self.interactions_.rows.degrees
        return _divide_by_norms(matrix[positions] @ matrix.T, degrees[positions], degrees)

    def donor_parts(self, history: IntArray, column: int) -> tuple[NDArray[Any], NDArray[Any]] | None:
        """Return what each donor user and donor item adds to a score; ``None`` for models without donors."""
        return None

    def check_params(self) -> None:
        """Raise :class:`~nodecopy.errors.InputError` for a wrong parameter."""

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
            Training interactions, or an object that :func:`.as_interactions` converts.
        validation
            Other interactions of the same users and items, by which training in epochs stops.
        seen
            Other interactions of these users: not recommended again, but not learnt from.
        rng
            Seed or generator; models that draw nothing ignore it.
        """
        train = check_nonempty(interactions, "interactions")
        if validation is not None:
            validation = check_nonempty(align(validation, train, "validation"), "validation")
            if n_shared := validation.n_interactions - validation.difference(train).n_interactions:
                got = f"{n_shared} of its {validation.n_interactions} are among them"
                hint = "Fit interactions.difference(validation)."
                raise InputError("validation", f"must hold other interactions than training; {got}. {hint}")
        if seen is not None:
            seen = align(seen, train, "seen")
        self.check_params()
        self.fit_interactions(train, validation, seed_sequence(rng))
        self.interactions_ = self.seen_ = train
        if seen is not None:
            self.seen_ = train.union(seen)
        return self

    def coordinates(self) -> list[Coordinate]:
        """Return the parameters that :meth:`tune` searches, in this order; by default none."""
        return []

    def fit_trial(self, train: Interactions, shared: dict[str, Any]) -> None:
        """Fit the model as a trial of :meth:`tune`; ``shared`` may keep what trials have in common."""
        self.fit(train, rng=0)

    def tune(
        self,
        interactions: InteractionsLike,
        validation: InteractionsLike | None = None,
        *,
        budget: int = 40,
        k: int | None = None,
        rng: Rng = None,
    ) -> Self:
        """Set the parameters by held-out interactions and return the model, which is not fitted.

        The search starts from the parameters of the model and changes one at a time, as long as recall@k +
        NDCG@k improves by more than half of the gain's standard error over users. The choice is logged, and
        ``tuning_`` holds all scores.

        Parameters
        ----------
        interactions, validation
            Training interactions, and those to hold out: all or none of them in ``interactions``. By default
            a random tenth of ``interactions``.
        budget
            Largest number of settings to fit.
        k
            Length of the lists; 20 by default, or the number of items.
        rng
            Seed or generator of the default validation part.
        """
        from nodecopy.recommend import tuning  # which imports this module

        tuning.tune(self, interactions, validation, budget, k, rng)
        return self

    def get_state(self) -> dict[str, Any]:
        state = super().get_state()
        if state.get("seen_") is state.get("interactions_"):
            state.pop("seen_", None)
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        if not state:  # an unfitted part of another recommender
            return
        self.check_params()
        super().set_state({"seen_": state["interactions_"]} | state)
        last = np.flatnonzero(self.interactions_.rows.degrees)[-1:]
        shape = self._score_known(last).shape
        if shape != (len(last), self.interactions_.n_items):
            raise InputError("scores", f"must be one per item; got an array of shape {shape}.")

    def check_fitted(self) -> Interactions:
        """Return the training interactions, or raise :class:`~nodecopy.errors.NotFittedError`."""
        if not hasattr(self, "interactions_"):
            raise NotFittedError(f"{type(self).__name__} is not fitted yet: call fit(interactions) first.")
        return self.interactions_

    def score_positions(self, positions: IntArray) -> NDArray[Any]:
        """Return the scores of users of training who have a history."""
        return self._checked_scores(sparse.csr_array(self.interactions_.matrix[positions]))

    def score(self, users: ArrayLike | None = None) -> Scores:
        """Return the scores of all items for users given by their ids, by default for all users.

        Scores of two users or of two models cannot be compared.
        """
        return self._score_known(self._user_positions(users))

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
        """Return the ids and scores of the ``k`` best items for some users, best first.

        Both arrays have shape ``[len(users), k]``, or fewer columns if there are fewer candidates. Ties go to
        the first item. The end of the row of a user with fewer candidates holds the id ``""`` or -1 and NaN.

        Parameters
        ----------
        users
            User ids; all users by default.
        k
            Number of items for each user.
        items, exclude
            Ids of the candidates, such as items in stock, and of items that are not candidates.
        exclude_seen
            Whether to leave out the items that a user has met (default).
        unknown
            Whether unknown ids in ``items`` and ``exclude`` are an error (``"error"``, default) or left out
            (``"ignore"``).
        """
        positions = self._user_positions(users)
        options: Any = {"items": items, "exclude": exclude, "exclude_seen": exclude_seen, "unknown": unknown}
        seen = self.seen_.matrix[positions]
        return self._select(lambda block: self._score_known(positions[block]), seen, k, **options)

    def recommend_new(
        self, histories: Sequence[ArrayLike], k: int = 10, *, unknown: str = "error", **options: Any
    ) -> tuple[NDArray[Any], Scores]:
        """Return the same as :meth:`recommend`, with its options, for users outside training.

        ``histories`` holds the item ids of each user; they count as seen, and ``unknown`` applies to them.
        Some models score only the users they were fitted to.
        """
        rows = history_rows(histories, self.check_fitted().item_ids, unknown)
        options["unknown"] = unknown
        return self._select(lambda block: self.score_histories(rows[block]), rows, k, **options)

    def to_pandas(self, users: ArrayLike | None = None, k: int = 10, **options: Any) -> Any:
        """Return :meth:`recommend` as a data frame: ``user``, ``rank`` (1 is best), ``item``, ``score``."""
        best, scores = self.recommend(users, k, **options)
        user_ids = self.interactions_.user_ids[self._user_positions(users)]
        return import_optional("pandas", "to_pandas").DataFrame(list_best(user_ids, best, scores))

    def _select(
        self,
        score_block: Callable[[slice], Scores],
        seen: sparse.csr_array,
        k: int,
        *,
        items: ArrayLike | None = None,
        exclude: ArrayLike | None = None,
        exclude_seen: bool = True,
        unknown: str = "error",
    ) -> tuple[NDArray[Any], Scores]:
        item_ids = self.interactions_.item_ids
        wanted, unwanted = (
            None if ids is None else find_ids(ids, item_ids, name, unknown, IGNORE)
            for ids, name in ((items, "items"), (exclude, "exclude"))
        )
        candidates = select_candidates(wanted, unwanted, len(item_ids))
        hidden = seen if exclude_seen else None
        return select_best(score_block, seen.shape[0], k, item_ids, candidates, hidden)

    def similar_items(self, items: ArrayLike, k: int = 10) -> tuple[NDArray[Any], Scores]:
        """Return the ids and similarities of the ``k`` items most similar to each item, best first.

        EASE and CopyEASE use the item's weights, ItemKNN its cosines, models with embeddings the cosine of
        the item embeddings, and all others the cosine of the items' users.
        """
        item_ids = self.check_fitted().item_ids
        positions = find_ids(items, item_ids, "items")
        return _select_similar(self.similarity_rows, positions, item_ids, k)

    def similar_users(self, users: ArrayLike, k: int = 10) -> tuple[NDArray[Any], Scores]:
        """Return the ids and similarities of the ``k`` users most similar to each user, best first.

        Models with embeddings use the cosine of user embeddings, all others that of the users' items.
        """
        user_ids, positions = self.check_fitted().user_ids, self._user_positions(users)
        return _select_similar(lambda rows: self.user_similarities(rows.indices), positions, user_ids, k)

    def explain(self, user: Any, item: Any, k: int | None = 10, *, donors: bool = True) -> Explanation:
        """Return why an item has its score for a user: what items of the history and donors add to it.

        Contributions are exact: the items of the history add up to the score, and so do the donors. Only
        linear models can be explained: EASE, CopyEASE, ItemKNN, and your own with ``is_linear = True``.

        Parameters
        ----------
        user, item
            Ids of a user with a history and of an item.
        k
            Largest number of items and of donors; ``None`` for all that are not zero.
        donors
            Whether to return donors, for which EASE and CopyEASE solve a linear system.
        """
        train = self.check_fitted()
        (row,) = find_ids([user], train.user_ids, "user", hint="explain_new takes users outside training.")
        return self._explain(train.matrix[[row]].indices, "user", item, k, donors)

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

        ``unknown`` is as in :meth:`recommend_new`.
        """
        columns = history_rows([history], self.check_fitted().item_ids, unknown).indices
        return self._explain(columns, "history", item, k, donors)

    def _explain(self, history: IntArray, name: str, item: Any, k: int | None, donors: bool) -> Explanation:
        train = self.interactions_
        if not self.is_linear:
            allowed = "EASE, CopyEASE, ItemKNN or a class with is_linear = True"
            raise InputError(f"explain needs a linear model: {allowed}; got {type(self).__name__}.")
        if not len(history):
            raise InputError(name, "must have an item of training; got none; popularity ranks items for it.")
        if k is not None:
            check_integer(k, "k", low=1)
        (column,) = find_ids([item], train.item_ids, "item")
        blocks = row_blocks(len(history), max(1, MAX_BLOCK_SCORES // train.n_items))
        scores = [self._checked_scores(one_hot(history[block], train.n_items))[:, column] for block in blocks]
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

        Training and validation interactions are not candidates; others in ``seen_`` are.

        Parameters
        ----------
        test, validation
            Interactions of users and items of training; with ``history``, of its users.
        history
            Interactions of users outside training (strong generalisation), which are not candidates; see
            :func:`.user_split`.
        metrics, convention
            Names such as ``"recall@10"``, and ``"formula"`` or, to compare with the paper's printed numbers,
            ``"printed"``; see :func:`nodecopy.metrics.ranking.evaluate`.
        unknown
            Whether interactions with unknown users and items are an error (``"error"``) or left out
            (``"ignore"``); their number is logged.
        """
        owners = train = self.check_fitted()
        if history is not None:
            history = align(history, train, "history", unknown, keep_users=True, hint=IGNORE)
            history = owners = history.binary()
        test = align(test, owners, "test", unknown, hint=IGNORE)
        if validation is not None:
            validation = align(validation, owners, "validation", unknown, hint=IGNORE)

        def score(rows: IntArray) -> Scores:
            return self._score_known(rows) if history is None else self.score_histories(owners.matrix[rows])

        options: Any = {"metrics": metrics, "convention": convention}
        return ranking.evaluate(score, train, test, validation=validation, history=history, **options)

    def _checked_scores(self, rows: sparse.csr_array) -> NDArray[Any]:
        """Return the scores of :meth:`score_rows` after a check of their shape and type."""
        name = f"score_rows of {type(self).__name__}"
        scores: Any = self.score_rows(rows)
        array = as_array(scores.toarray() if hasattr(scores, "toarray") else scores, name)
        if array.shape != rows.shape or array.dtype.kind not in "biuf":
            got = f"{type_name(scores)}: {array.dtype} of shape {array.shape}"
            raise InputError(name, f"must return numbers of shape {rows.shape}, users x items; got {got}.")
        check_finite(array, name)
        return array

    def _score_known(self, positions: IntArray) -> Scores:
        has_history = self.interactions_.rows.degrees[positions] > 0
        return self._with_popularity(self.score_positions, positions, has_history)

    def score_histories(self, rows: sparse.csr_array) -> Scores:
        """Return the scores of rows of a binary matrix, popularity for empty ones."""
        return self._with_popularity(self._checked_scores, rows, np.diff(rows.indptr) > 0)

    def _with_popularity(self, score: Callable[[Any], NDArray[Any]], users: Any, has_history: Any) -> Scores:
        """Return the scores of users with a history, and popularity for the others."""
        if has_history.all():
            return np.asarray(score(users), dtype=np.float32)
        popularity = count_users(self.interactions_.matrix).astype(np.float32)
        scores = np.tile(popularity, (len(has_history), 1))
        if has_history.any():
            scores[has_history] = score(users[np.flatnonzero(has_history)])
        return scores

    def _user_positions(self, users: ArrayLike | None) -> IntArray:
        user_ids = self.check_fitted().user_ids
        if users is None:
            return np.arange(len(user_ids))
        return find_ids(users, user_ids, "users", hint="recommend_new takes users outside training.")


class EmbeddingRecommender(Recommender):
    """A model whose scores are inner products of user and item embeddings.

    A subclass writes :meth:`~Recommender.fit_interactions`, which sets the two attributes.

    Attributes
    ----------
    user_embeddings_, item_embeddings_
        Arrays ``[n_users, n_factors]`` and ``[n_items, n_factors]``.

    Examples
    --------
    A recommender by truncated singular value decomposition:

    >>> import numpy as np
    >>> from nodecopy import datasets
    >>> from nodecopy.recommend import EmbeddingRecommender
    >>> class SVD(EmbeddingRecommender):
    ...     def fit_interactions(self, interactions, validation, seed):
    ...         U, s, V_t = np.linalg.svd(interactions.matrix.toarray(), full_matrices=False)
    ...         self.user_embeddings_, self.item_embeddings_ = U[:, :6] * s[:6], V_t[:6].T
    >>> SVD().fit(datasets.load("library")).similar_items(["Dracula"], 1)[0].tolist()
    [['The Turn of the Screw']]
    """

    user_embeddings_: NDArray[Any]
    item_embeddings_: NDArray[Any]

    def similarity_rows(self, rows: sparse.csr_array) -> NDArray[Any]:
        return cosines(self.item_embeddings_, rows.indices)

    def user_similarities(self, positions: IntArray) -> NDArray[Any]:
        return cosines(self.user_embeddings_, positions)

    def score_positions(self, positions: IntArray) -> NDArray[Any]:
        return np.asarray(self.user_embeddings_[positions] @ self.item_embeddings_.T)


def _divide_by_norms(shared: Any, first: IntArray, second: IntArray) -> NDArray[Any]:
    """Return the cosines of binary vectors, given the numbers of shared entries and of entries."""
    norms = np.sqrt(np.outer(first, second))
    return np.asarray(np.divide(shared.toarray(), norms, out=np.zeros_like(norms), where=norms > 0))


def cosines(embeddings: NDArray[Any], items: IntArray) -> NDArray[Any]:
    """Return the cosine of some embeddings with all, 0 for an embedding of zeros."""
    unit = unit_rows(embeddings)
    return np.asarray(unit[items] @ unit.T)


def fit_copy(model: Model, interactions: Interactions, validation: Any, seed: SeedSequence) -> Model:
    """Return the model itself if it is fitted to the same interactions, otherwise a fitted copy."""
    if getattr(model, "interactions_", None) == interactions:
        return model
    return copy.copy(model).fit(interactions, validation=validation, rng=seed)


def check_nonempty(interactions: InteractionsLike, name: str) -> Interactions:
    """Return interactions without times and weights, or raise an error if there are none."""
    interactions = convert_interactions(interactions, name).without_times()
    if not interactions.n_interactions:
        raise InputError(name, f"must hold at least one interaction; got {interactions!r}.")
    return interactions.binary()


def align(
    other: InteractionsLike,
    train: Interactions,
    name: str,
    unknown: str = "error",
    *,
    keep_users: bool = False,
    hint: Any = SAME_IDS,
) -> Interactions:
    """Return interactions in the order of the items and, without ``keep_users``, the users of training."""
    other = convert_interactions(other, name, like=train)
    user_ids = other.user_ids if keep_users else train.user_ids
    if np.array_equal(other.user_ids, user_ids) and np.array_equal(other.item_ids, train.item_ids):
        return other
    users, items, weights = other.table()
    rows = _positions(users, user_ids, f"{name}: users", unknown, hint)
    columns = _positions(items, train.item_ids, f"{name}: items", unknown, hint)
    is_known = (rows >= 0) & (columns >= 0)
    if not is_known.all():
        n_unknown = len(is_known) - int(is_known.sum())
        log_decision(f"{name}: {n_unknown} of {len(is_known)} interactions are of unknown users or items.")
    values = np.ones(len(users)) if weights is None else weights
    entries = (values[is_known], (rows[is_known], columns[is_known]))
    matrix = sparse.csr_array(entries, shape=(len(user_ids), train.n_items))
    return Interactions(matrix, user_ids, train.item_ids)


def find_ids(
    values: ArrayLike, ids: NDArray[Any], name: str, unknown: str = "error", hint: Any = None
) -> IntArray:
    """Return the positions of ids; unknown ones are left out or an error with a ``hint``."""
    if isinstance(values, (str, int)):
        raise InputError(name, f"must be a list of ids; got {show(values)}. Write [{show(values)}].")
    positions = _positions(check_ids(values, name), ids, name, unknown, hint)
    return positions[positions >= 0]


def _positions(given: NDArray[Any], ids: NDArray[Any], name: str, unknown: str, hint: Any) -> IntArray:
    """Return the positions of ids, -1 for those that are ignored."""
    check_choice(unknown, "unknown", ("error", "ignore"))
    _check_type(given, ids, name)
    positions = np.full(len(given), -1)
    is_known = contains(ids, given) if unknown == "ignore" else np.ones(len(given), bool)
    positions[is_known] = find_positions(given[is_known], ids, name, *([hint] if hint else []))
    return positions


def _check_type(given: NDArray[Any], ids: NDArray[Any], name: str) -> None:
    """Raise an error if some ids are strings and the others integers."""
    if given.size and (given.dtype.kind == "U") != (ids.dtype.kind == "U"):
        kind = "strings" if ids.dtype.kind == "U" else "integers"
        raise InputError(name, f"must hold {kind}, as in training; got {given.tolist()[0]!r}.")


def one_hot(columns: IntArray, n_columns: int) -> sparse.csr_array:
    """Return a matrix whose rows each hold a single one, in the given columns."""
    return sparse.csr_array(sparse.eye_array(n_columns, dtype=np.float32, format="csr")[columns])


def history_rows(
    histories: Sequence[ArrayLike], item_ids: NDArray[Any], unknown: str = "error"
) -> sparse.csr_array:
    """Return a binary row for each list of item ids; an item that is named twice counts once."""
    if isinstance(histories, str):
        histories = [histories]  # so that the message shows it
    histories = check_sequence(histories, "histories", "one list of item ids per user")
    for ids in histories:
        if isinstance(ids, (str, bytes)) or np.ndim(ids) != 1:
            got = f"{show(ids)} in place of a list. Write [['first item', 'second item']] for one user"
            raise InputError("histories", f"must hold one list of item ids per user; got {got}.")
    columns = [np.unique(find_ids(ids, item_ids, "histories", unknown, IGNORE)) for ids in histories]
    indptr = np.append(0, np.cumsum([len(part) for part in columns])).astype(np.int64)
    indices = np.concatenate([np.zeros(0, np.int64), *columns])
    shape = (len(columns), len(item_ids))
    return sparse.csr_array((np.ones(len(indices), np.float32), indices, indptr), shape=shape)


def append_interactions(train: Interactions, new: Interactions) -> Interactions:
    """Return both tables; new users and items come last."""
    ids, coordinates = [], []
    axes = {"user": (train.rows.row_numbers, new.rows.row_numbers)}
    axes["item"] = train.rows.indices, new.rows.indices
    for name, (own, others) in axes.items():
        old, other = getattr(train, f"{name}_ids"), getattr(new, f"{name}_ids")
        _check_type(other, old, f"ids of {name}s")
        if other.dtype.itemsize > old.dtype.itemsize:  # the array would pad all ids to the longest
            check_text_size([*old.tolist(), *other.tolist()], f"ids of {name}s")
        ids.append(np.concatenate([old, other[~contains(old, other)]]))
        coordinates.append(np.concatenate([own, find_positions(other, ids[-1], name)[others]]))
    entries = np.ones(len(coordinates[0])), tuple(coordinates)
    return Interactions(sparse.csr_array(entries, shape=(len(ids[0]), len(ids[1]))), *ids).binary()


def select_candidates(
    items: IntArray | None,
    exclude: IntArray | None,
    n_items: int,
    names: Sequence[str] = ("items", "exclude"),
) -> IntArray | None:
    """Return the columns in ``items`` that are not in ``exclude``; ``None`` stands for all."""
    if items is None and exclude is None:
        return None
    is_candidate = np.full(n_items, items is None)
    if items is not None:
        is_candidate[items] = True
    if exclude is not None:
        is_candidate[exclude] = False
    if not is_candidate.any():
        raise InputError(names[0], f"must hold a candidate that is not in {names[1]}; got none.")
    return np.flatnonzero(is_candidate)


def select_best(
    score_block: Callable[[slice], NDArray[Any]],
    n_rows: int,
    k: int,
    ids: NDArray[Any],
    candidates: IntArray | None = None,
    seen: sparse.csr_array | None = None,
) -> tuple[NDArray[Any], Scores]:
    """Return ids and scores of the ``k`` best candidates, or all of them, of each row without ``seen``."""
    chosen_ids = ids if candidates is None else ids[candidates]
    k = min(check_integer(k, "k", low=1), len(chosen_ids))
    columns, best = np.empty((n_rows, k), np.int64), np.empty((n_rows, k), np.float32)
    for block in row_blocks(n_rows, max(1, MAX_BLOCK_SCORES // len(ids))):
        scores = np.array(score_block(block), np.float32)
        if seen is not None:
            scores[seen[block].nonzero()] = -np.inf
        if candidates is not None:
            scores = scores[:, candidates]
        columns[block] = ranking.top_items(scores, k)
        best[block] = np.take_along_axis(scores, columns[block], axis=1)
    listed, is_filler = chosen_ids[columns], np.isneginf(best)
    listed[is_filler], best[is_filler] = "" if listed.dtype.kind == "U" else NO_ITEM, np.nan
    return listed, best


def _select_similar(
    similarity_rows: Callable[[sparse.csr_array], NDArray[Any]],
    positions: IntArray,
    ids: NDArray[Any],
    k: int,
) -> tuple[NDArray[Any], Scores]:
    """Return the ids and similarities of the ``k`` most similar others."""
    own, k = one_hot(positions, len(ids)), min(check_integer(k, "k", low=1), max(len(ids) - 1, 1))
    return select_best(lambda block: similarity_rows(own[block]), len(positions), k, ids, seen=own)


def list_best(user_ids: NDArray[Any], items: NDArray[Any], scores: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return the columns ``user``, ``rank`` (1 is best), ``item`` and ``score``, without seen items."""
    row, rank = np.nonzero(np.isfinite(scores))
    return {"user": user_ids[row], "rank": rank + 1, "item": items[row, rank], "score": scores[row, rank]}
