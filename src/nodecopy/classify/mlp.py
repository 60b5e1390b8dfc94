"""The multilayer perceptron, which ignores edges."""

from __future__ import annotations

from dataclasses import replace

from nodecopy.classify.network_classifier import DEFAULT, GNN_BENCHMARK, NetworkClassifier
from nodecopy.nn.networks import KIPF


class MLP(NetworkClassifier):
    """Classify nodes by a two-layer perceptron on their features alone.

    Parameters are those of :class:`NetworkClassifier`.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import MLP
    >>> club = datasets.load("karate")
    >>> club = club.replace(features=club.adjacency)  # neighbours as features
    >>> MLP().fit(club, [0, 33], rng=0).predict()[[0, 33]].tolist()
    ['Mr. Hi', 'Officer']
    """

    presets = {  # noqa: RUF012
        "default": replace(KIPF, propagation="none", **DEFAULT),
        "kipf": replace(KIPF, propagation="none"),
        "gnn-benchmark": replace(GNN_BENCHMARK, propagation="none"),
    }
