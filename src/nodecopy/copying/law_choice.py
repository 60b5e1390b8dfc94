"""The donor law that suits some data, and a warning if labels are too few for a law by labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from nodecopy._core.hints import Hint
from nodecopy._core.notices import warn_about_data
from nodecopy.conversion import convert_data
from nodecopy.copying.donor_law import DonorLaw, group_labels
from nodecopy.copying.jaccard import Jaccard
from nodecopy.copying.laws import NearestNeighbours, SameLabel
from nodecopy.graph import UNLABELLED, class_codes
from nodecopy.interactions import Interactions

MIN_LABELLED_SHARE = 0.5
"""Share of nodes with a label below which a law by labels warns and is not chosen."""


def choose_law(data: Any) -> tuple[DonorLaw, str]:
    """Return a donor law for a graph or for interactions, and why it was chosen.

    :class:`.SameLabel` is chosen if at least half of the nodes have a label, else :class:`.NearestNeighbours`
    if there are features, else :class:`.Jaccard`, which is also the law of interactions.

    Parameters
    ----------
    data
        A graph, interactions, or an object that :func:`.as_graph` or :func:`.as_interactions` converts.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.copying import choose_law
    >>> choose_law(datasets.load("karate"))
    (SameLabel(labels=None), '34 of 34 nodes have a label')
    """
    data = convert_data(data, "data of choose_law")
    if isinstance(data, Interactions):
        return Jaccard(), "donors of users are users with shared items"
    reason = "no node has a label"
    if data.labels is not None:
        n_labelled = int((class_codes(data.labels)[1] != UNLABELLED).sum())
        reason = f"{n_labelled} of {data.n_nodes} nodes have a label"
        if n_labelled and n_labelled >= MIN_LABELLED_SHARE * data.n_nodes:
            return SameLabel(), reason
        reason = f"only {reason}, fewer than half"
    if data.features is not None:
        return NearestNeighbours(min(10, data.n_nodes)), f"{reason}, and there are features"
    return Jaccard(), f"{reason}, and there are no features"


def warn_of_unlabelled_nodes(law: DonorLaw, data: Any) -> bool:
    """Warn if the donors of a law share labels that most nodes do not have; return whether it warned."""
    labels = group_labels(law, data)
    if labels is None:
        return False
    values = np.asarray(labels)
    return warn_of_few_labels(int((values > UNLABELLED).sum()), len(values))


def warn_of_few_labels(n_labelled: int, n_nodes: int) -> bool:
    """Warn if most nodes have no label, so that samples are nearly the observed graph."""
    if n_labelled >= MIN_LABELLED_SHARE * n_nodes:
        return False
    warn_about_data(
        f"{n_labelled} of {n_nodes} nodes have a label, by which donors are drawn; the others keep their own "
        "neighbours, so samples are nearly the observed graph. Give the labels that a classifier predicts, "
        "or choose a law by features or by shared neighbours.",
        Hint("Use {}.", law=(NearestNeighbours, Jaccard)),
    )
    return True
