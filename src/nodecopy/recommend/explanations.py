"""Explanations of scores: the items of the history and the donors that a score is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Contributions(NamedTuple):
    """Ids and what each of them adds to a score, the largest first.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.recommend import ItemKNN
    >>> model = ItemKNN().fit(datasets.load("library"))
    >>> model.explain("reader 001", "Carmilla", k=2).items.ids.tolist()
    ['Dracula', 'Three Men in a Boat']
    """

    ids: NDArray[Any]
    values: NDArray[np.float64]

    def to_list(self, name: str) -> list[dict[str, Any]]:
        """Return a dictionary for each id, for JSON; ``name`` says what the ids are."""
        pairs = zip(self.ids.tolist(), np.round(self.values, 7).tolist(), strict=True)
        return [{name: identifier, "contribution": value} for identifier, value in pairs]


@dataclass(frozen=True)
class Explanation:
    """Why an item has its score for a user, in two sums of the same score.

    Attributes
    ----------
    score
        The score.
    items
        What the items of the user's history add to the score. All of them together are the score.
    donors, donor_items
        The users and items of training from which the weights were learnt, and what they add to the score;
        ``None`` where donors were not asked for or the model does not say. A user's row counts where it
        stands in the input for itself or, in CopyEASE, for users with the item whose donor the user is; an
        item's column where it stands for the items that it is a donor of. All donors and donor items
        together, and ``remainder``, are the score.
    remainder
        What donors do not account for: rounding, and in the sparse form the entries that were left out.

    Examples
    --------
    >>> from nodecopy import Interactions
    >>> from nodecopy.recommend import EASE
    >>> log = Interactions.from_table(["ann", "ann", "bob", "bob"], ["tea", "jam", "tea", "bread"])
    >>> explanation = EASE(1.0).fit(log).explain("ann", "bread")
    >>> explanation.items.to_list("item")[0]
    {'item': 'tea', 'contribution': 0.4}
    >>> explanation.donors.ids.tolist()
    ['bob']
    """

    score: float
    items: Contributions
    donors: Contributions | None = None
    donor_items: Contributions | None = None
    remainder: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as plain values, for JSON."""
        explanation: dict[str, Any] = {"score": self.score, "items": self.items.to_list("item")}
        if self.donors is not None:
            explanation["donors"] = self.donors.to_list("user")
        if self.donor_items is not None:
            explanation["donor_items"] = self.donor_items.to_list("item")
            explanation["remainder"] = self.remainder
        return explanation


def largest_contributions(ids: NDArray[Any], values: NDArray[Any], k: int | None) -> Contributions:
    """Return the ``k`` largest contributions, by default all, without zeros; ties go to the lowest index."""
    order = np.argsort(-values, kind="stable")
    order = order[values[order] != 0][:k]
    return Contributions(ids[order], values[order].astype(np.float64))
