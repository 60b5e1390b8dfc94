"""One node under attack, and its correction by copied neighbourhoods: what a picture of it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.csr import IntArray
from nodecopy._core.random import Rng
from nodecopy._core.validation import check_indices
from nodecopy.errors import InputError
from nodecopy.graph import Graph, class_codes

FEWEST_NEIGHBOURS, MOST_NEIGHBOURS = 3, 8
"""Of the attacked node: enough flips to change something, and few enough for a picture."""
N_DONORS_SHOWN = 3


class Stage(NamedTuple):
    """Neighbours, each with how it came to be one (own, added, copied), and class probabilities."""

    name: str
    neighbours: list[tuple[int, str]]
    probabilities: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Repair:
    """A node before the attack, after it, and with copied neighbours."""

    node: int
    n_flips: int
    classes: NDArray[Any]
    codes: NDArray[np.int64]
    donors: IntArray
    stages: tuple[Stage, ...]


def attacked_and_repaired(graph: Graph, train: ArrayLike, candidates: ArrayLike, *, rng: Rng) -> Repair:
    """Attack (FGA) the node that a GCN is surest of, and correct by node copying what it then says.

    Parameters
    ----------
    graph
        Undirected and binary, with features and labels.
    train
        Nodes whose labels are learnt from.
    candidates
        Labelled nodes, one of which is attacked: with one to eight neighbours, three at least where some
        have so many, and predicted rightly.
    rng
        Seed of training and of the attack.
    """
    from nodecopy.attacks import FGA
    from nodecopy.classify import GCN
    from nodecopy.defend import CopyingDefence

    assert graph.labels is not None
    codes, nodes = class_codes(graph.labels)[1], check_indices(candidates, "candidates", size=graph.n_nodes)
    clean = GCN().fit(graph, train, rng=rng).predict_proba()
    fit = (clean[nodes].argmax(axis=1) == codes[nodes]) & (graph.degrees[nodes] <= MOST_NEIGHBOURS)
    nodes = nodes[fit & (graph.degrees[nodes] > 0)]
    if not len(nodes):
        raise InputError(
            f"candidates must hold a node with 1 to {MOST_NEIGHBOURS} neighbours that is predicted rightly."
        )
    nodes = nodes[graph.degrees[nodes] >= min(FEWEST_NEIGHBOURS, graph.degrees[nodes].max())]
    victim = int(nodes[np.argmax(clean[nodes].max(axis=1))])  # the one it is surest of
    n_flips = int(graph.degrees[victim])
    attacked = FGA().attack(graph, [victim], budget=n_flips, train=train, rng=rng).apply(graph)
    defence = CopyingDefence(n_donors=min(10, graph.n_nodes - 1)).fit(attacked, train, rng=rng)
    own = set(graph.adjacency[[victim]].indices.tolist())
    now = attacked.adjacency[[victim]].indices.tolist()
    donors = defence.nearest_donors([victim])[0][:N_DONORS_SHOWN]
    copied = np.unique(attacked.adjacency[donors].indices)
    return Repair(
        victim,
        n_flips,
        defence.classes_,
        codes,
        donors,
        (
            Stage("before", [(node, "own") for node in sorted(own)], clean[victim]),
            Stage(
                "attacked",
                sorted([(node, "own" if node in own else "added") for node in now], key=lambda one: one[1]),
                defence.predict_proba()[victim],
            ),
            Stage(
                "with copied neighbours",
                [(node, "copied") for node in copied[copied != victim].tolist()],
                defence.correct([victim])[0],
            ),
        ),
    )
