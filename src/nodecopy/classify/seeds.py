"""The children of a trial's seed: one number for each purpose of the classifiers."""

from __future__ import annotations

from enum import IntEnum


class ClassifierSeeds(IntEnum):
    """Which child of a trial's seed serves which purpose.

    The stored results of the experiments depend on these numbers, so they never change. A purpose with
    rounds takes ``MAX_ROUNDS`` numbers, from its own on: round r adds r.
    Numbers from 10**7 on are left to methods that train a classifier with their own seed.
    """

    NETWORKS = 0
    """Weights and dropout masks of the networks of a round; round 0 is trained on the observed graph."""
    LABEL_PRIOR = 1
    """The perceptron of SBMGCN, which has one round of networks only."""
    GRAPHS = 1000
    """Graphs sampled in a round of BayesianGCN, or in an epoch of its online schedule."""
    ONLINE_NETWORKS = 2000
    """Networks of BayesianGCN's online schedule."""
    SELF_TRAINING = 3000
    """Rounds of SelfTraining; the child's child r is the seed of round r."""
    GRAPH_MODEL = 10**6
    """Fits of BayesianGCN's graph model; the child's child r belongs to round r."""


MAX_ROUNDS = ClassifierSeeds.GRAPHS - ClassifierSeeds.NETWORKS
"""Rounds must stay below this, or a round's networks would take the seed of sampled graphs."""
