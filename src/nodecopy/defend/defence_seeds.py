"""The children of a trial's seed: one number for each purpose of the defences."""

from __future__ import annotations

from enum import IntEnum


class DefenceSeeds(IntEnum):
    """Which child of a trial's seed serves which purpose of a defence.

    A defence trains its classifier with its own seed, so these numbers differ from those of
    :class:`~nodecopy.classify.seeds.ClassifierSeeds`. The stored results of the experiments depend on them,
    so they never change.
    """

    DONOR_EMBEDDING = 10**7
    """The embedding by which a defence finds donors."""
    DONOR_DRAWS = 10**7 + 1
    """The donors that a defence draws."""
