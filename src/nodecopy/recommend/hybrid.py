"""A hybrid of two recommenders: a weighted sum of their standardised scores."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.arrays import IntArray
from nodecopy._core.checks import check_settings, show
from nodecopy._core.random import child
from nodecopy.errors import InputError
from nodecopy.interactions import Interactions
from nodecopy.recommend.base import Recommender, fit_copy


class HybridSeeds(IntEnum):
    """Children of the seed of :class:`WeightedHybrid`."""

    FIRST = 0
    SECOND = 1


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

    def fit_interactions(
        self, interactions: Interactions, validation: Interactions | None, seed: SeedSequence
    ) -> None:
        self.first_ = fit_copy(self.first, interactions, validation, child(seed, HybridSeeds.FIRST))
        self.second_ = fit_copy(self.second, interactions, validation, child(seed, HybridSeeds.SECOND))

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
