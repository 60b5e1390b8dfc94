"""Splits of interactions: at random, by time, by the last items of each user, by user, and published ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nodecopy._core.random import Rng, generator
from nodecopy._core.validation import check_vector
from nodecopy.datasets.splits import Split
from nodecopy.errors import InputError
from nodecopy.interactions import Interactions

VALIDATION_SHARE = 0.1
"""Share of train that is the validation part of a published split without one."""


def interaction_split(
    interactions: Interactions, fractions: Sequence[float] = (0.7, 0.1, 0.2), *, rng: Rng = None
) -> Split[Interactions]:
    """Split the interactions at random into three tables of the same users and items.

    The bounds are the cumulated fractions of the number of interactions, rounded down: 52,857 interactions
    give 36,999, 5,286 and 10,572.

    Parameters
    ----------
    interactions
        What to split.
    fractions
        Shares of the training, validation and test part, which add up to 1.
    rng
        Seed or generator; ``None``, the default, gives another split at every call.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> library = datasets.load("library")
    >>> [part.n_interactions for part in datasets.interaction_split(library, rng=0)]
    [2358, 337, 674]
    """
    shares = check_vector(fractions, "fractions", length=3, per="part")
    if shares.dtype.kind not in "iuf" or not (shares >= 0).all() or abs(shares.sum() - 1) > 1e-9:
        raise InputError(
            f"fractions must be three numbers of at least 0 that add up to 1; got {fractions!r}."
        )
    n = interactions.n_interactions
    # Rounding first, because 0.7 + 0.1 is a little below 0.8 in binary, which would lose an interaction.
    bounds = np.floor(np.round(np.cumsum(shares)[:2] * n, 6)).astype(np.int64)
    part_of = np.empty(n, np.int64)
    part_of[generator(rng).permutation(n)] = np.searchsorted(bounds, np.arange(n), side="right")
    rows = interactions.rows
    return Split(*(interactions.with_rows(rows.keep_entries(part_of == part)) for part in range(3)))


def fixed_split(
    train: Interactions, test: Interactions, validation: Interactions | None = None
) -> Split[Interactions]:
    """Return a published split after a check of its parts.

    Parameters
    ----------
    train, test
        Tables of the same users and items without a pair in common.
    validation
        A part of ``train``. Without it, a tenth of ``train`` is drawn with seed 0.

    Examples
    --------
    >>> from nodecopy import Interactions, datasets
    >>> train, test = Interactions([[1, 1, 0], [0, 1, 1]]), Interactions([[0, 0, 1], [1, 0, 0]])
    >>> datasets.fixed_split(train, test, Interactions([[1, 0, 0], [0, 0, 0]])).validation.n_interactions
    1
    """
    train.check_same_ids(test, "test")
    if n_shared := test.n_interactions - test.difference(train).n_interactions:
        raise InputError(
            f"test must have no pair of user and item in common with train; got {n_shared}. "
            f"test.difference(train) leaves them out."
        )
    if validation is None:
        shares = (1 - VALIDATION_SHARE, VALIDATION_SHARE, 0.0)
        return Split(train, interaction_split(train, shares, rng=0).validation, test)
    train.check_same_ids(validation, "validation")
    if n_outside := validation.difference(train).n_interactions:
        raise InputError(
            f"validation must be inside train; {n_outside} of its {validation.n_interactions} interactions "
            f"are not. If the parts are disjoint, train.union(validation) is the training part."
        )
    return Split(train, validation, test)
