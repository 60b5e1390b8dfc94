"""Two recommenders in one: a weighted sum of their scores."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.csr import IntArray
from nodecopy._core.random import child
from nodecopy._core.validation import check_real
from nodecopy.errors import InputError
from nodecopy.interactions import Interactions
from nodecopy.recommend.base import Recommender


@dataclass(eq=False)
class Fusion(Recommender):
    """The scores of two recommenders added up, each user's first brought to mean 0 and deviation 1.

    Parameters
    ----------
    first, second
        Two recommenders, such as :class:`.CopyEASE` and :class:`.IALS`. One that is fitted to the same
        interactions already is used as it is; either way they stay unchanged.
    weight
        Share of the first, from 0 to 1.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.recommend import CopyEASE, Fusion, ItemKNN
    >>> library = datasets.load("library")
    >>> items, scores = Fusion(CopyEASE(), ItemKNN()).fit(library, rng=0).recommend(["reader 001"], 3)
    >>> items.shape
    (1, 3)
    """

    first: Recommender
    second: Recommender
    weight: float = 0.5

    def _check(self) -> None:
        check_real(self.weight, "weight of Fusion", low=0.0, high=1.0)
        for name in ("first", "second"):
            model = getattr(self, name)
            if not isinstance(model, Recommender):
                raise InputError(f"{name} of Fusion must be a recommender; got {model!r}.")
            model._check()

    def _fit(self, interactions: Interactions, validation: Interactions | None, seed: SeedSequence) -> None:
        self._models = []
        for number, model in enumerate((self.first, self.second)):
            if getattr(model, "interactions_", None) != interactions:
                model = copy.copy(model).fit(interactions, validation=validation, rng=child(seed, number))
            self._models.append(model)

    def _score(self, users: IntArray) -> NDArray[Any]:
        return self._sum(*(model._score(users) for model in self._models))

    def _score_rows(self, rows: sparse.csr_array) -> NDArray[Any]:
        return self._sum(*(model._score_rows(rows) for model in self._models))

    def _sum(self, first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(self.weight * _standardised(first) + (1 - self.weight) * _standardised(second))

    def _state(self) -> dict[str, Any]:
        parts = zip(("first", "second"), self._models, strict=True)
        return {f"{part} {name}": value for part, model in parts for name, value in model._state().items()}

    def _restore(self, state: dict[str, Any]) -> None:
        self._models = []
        for part, unfitted in (("first", self.first), ("second", self.second)):
            model = copy.copy(unfitted)
            model.interactions_ = self.interactions_
            own = [name for name in state if name.startswith(f"{part} ")]
            model._restore({name.removeprefix(f"{part} "): state[name] for name in own})
            self._models.append(model)


def _standardised(scores: NDArray[Any]) -> NDArray[Any]:
    """Each row with mean 0 and standard deviation 1; a row of equal scores becomes zeros."""
    centred = scores - scores.mean(axis=1, keepdims=True, dtype=np.float64)
    deviation = np.sqrt(np.square(centred).mean(axis=1, keepdims=True))
    return np.asarray(np.divide(centred, deviation, out=np.zeros_like(centred), where=deviation > 0))
