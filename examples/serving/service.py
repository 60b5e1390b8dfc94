"""What a recommendation service does, without the web: lists, explanations and new rows."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

import nodecopy
from nodecopy import Interactions
from nodecopy.errors import InputError


class RecommendationService:
    """Serve a saved EASE or CopyEASE; threads may call every method at the same time.

    New rows change the lists of their user at once, since a linear model scores any history. The weights,
    and the lists of other users, follow at the next :meth:`update`.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.model = nodecopy.load(path, mmap=True)  # processes of one machine share its memory
        self._new: dict[Any, tuple[Any, ...]] = {}  # the items that users have taken since the last update
        self._lock, self._update_lock = Lock(), Lock()

    def recommend(self, user: str, k: int = 10) -> list[dict[str, Any]]:
        """Return the best items of a user; those of a user without any row are the most popular ones."""
        model, user_id = self.model, self._user_id(user)
        new, row = self._new.get(user_id, ()), _find_row(model.seen_, user_id)
        if row is not None and not new:
            items, scores = model.recommend([user_id], k)
        else:
            history, seen = [*_items_of(model.interactions_, row), *new], _items_of(model.seen_, row)
            items, scores = model.recommend_new([history], k, exclude=seen, unknown="ignore")
        return _as_list(items[0], scores[0])

    def explain(self, user: str, item: str, k: int = 3, donors: bool = True) -> dict[str, Any]:
        """Return the items of a user, new ones too, and the donors that add most to the score of an item."""
        model, user_id = self.model, self._user_id(user)
        row = _find_row(model.interactions_, user_id)
        history = [*_items_of(model.interactions_, row), *self._new.get(user_id, ())]
        explanation = model.explain_new(history, self._item_id(item), k, donors=donors, unknown="ignore")
        return dict(explanation.to_dict())

    def add(self, user: str, items: Sequence[str | int]) -> int:
        """Accept the items that a user has taken, and return how many rows wait for the next update."""
        user_id, item_ids = self._user_id(user), [self._item_id(item) for item in items]
        Interactions.from_table([user_id] * len(items), item_ids)  # refuses wrong ids now, not in the update
        with self._lock:
            merged = dict.fromkeys((*self._new.get(user_id, ()), *item_ids))
            if merged:
                self._new[user_id] = tuple(merged)
        return self.n_waiting

    @property
    def n_waiting(self) -> int:
        """Number of rows that the next update will fit."""
        with self._lock:
            return sum(map(len, self._new.values()))

    def update(self) -> int:
        """Fit the model to the new rows, replace its file, and return their number.

        The old model serves requests in the meantime. Other processes see the new one when they load the
        file again.
        """
        with self._update_lock:
            with self._lock:
                rows = [(user, item) for user, items in self._new.items() for item in items]
            if not rows:
                return 0
            users, items = zip(*rows, strict=True)
            copy.copy(self.model).partial_fit(Interactions.from_table(users, items)).save(self.path)
            self.model = nodecopy.load(self.path, mmap=True)
            with self._lock:  # rows that came during the fit stay
                fitted = set(rows)
                waiting = {
                    user: [i for i in new if (user, i) not in fitted] for user, new in self._new.items()
                }
                self._new = {user: tuple(new) for user, new in waiting.items() if new}
            return len(rows)

    def _user_id(self, user: str) -> Any:
        return _as_id(user, self.model.interactions_.user_ids, "user")

    def _item_id(self, item: str | int) -> Any:
        return _as_id(item, self.model.interactions_.item_ids, "item")


def _as_id(text: str | int, ids: NDArray[Any], name: str) -> Any:
    """Return an id of a request in the type of those in training."""
    if text == "":
        raise InputError(f"{name} must not be empty; got ''.")
    if ids.dtype.kind == "U":
        return str(text)
    try:
        return int(text)
    except ValueError as error:
        raise InputError(f"{name} must be an integer, as in training; got {text!r}.") from error


def _find_row(interactions: Interactions, user_id: Any) -> int | None:
    rows = np.flatnonzero(interactions.user_ids == user_id)
    return int(rows[0]) if len(rows) else None


def _items_of(interactions: Interactions, row: int | None) -> list[Any]:
    if row is None:
        return []
    indptr, indices = interactions.rows.indptr, interactions.rows.indices
    return list(interactions.item_ids[indices[indptr[row] : indptr[row + 1]]].tolist())


def _as_list(items: NDArray[Any], scores: NDArray[Any]) -> list[dict[str, Any]]:
    """Return what JSON can hold, without the items that only fill a list of too few candidates."""
    pairs = zip(items.tolist(), scores.tolist(), strict=True)
    return [{"item": item, "score": score} for item, score in pairs if np.isfinite(score)]
