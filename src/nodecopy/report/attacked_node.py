"""One node under attack and its correction by copied neighbourhoods, as data for a figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.csr import IntArray
from nodecopy._core.random import Rng
from nodecopy.errors import InputError
from nodecopy.graph import Graph

PREFERRED_DEGREE, MAX_DEGREE = 3, 8
"""Of the attacked node: enough flips to change the prediction, and few enough for a figure."""
N_DONORS, N_DONORS_SHOWN = 10, 3


class Stage(NamedTuple):
    """Neighbours with the origin of each edge (own, added, copied), and the class probabilities."""

    name: str
    neighbours: list[tuple[int, str]]
    probabilities: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class AttackedNode:
    """A node before the attack, after it, and with copied neighbours."""

    node: int
    n_flips: int
    classes: NDArray[Any]
    codes: NDArray[np.int64]
    donors: IntArray
    stages: tuple[Stage, ...]


def attack_and_correct(graph: Graph, train: ArrayLike, candidates: ArrayLike, *, rng: Rng) -> AttackedNode:
    """Attack one node by FGA, with its degree as budget, and correct the prediction by node copying.

    Parameters
    ----------
    graph
        Undirected and binary, with features and labels.
    train
        Training nodes.
    candidates
        Labelled nodes. The attacked node is the one that a GCN classifies correctly with the highest
        probability, among those with 3 to 8 neighbours or, where there are none, the most below 3.
    rng
        Seed of training and of the attack.
    """
    from nodecopy.attacks import FGA
    from nodecopy.classify import GCN
    from nodecopy.defend import CopyingDefence

    fitted = GCN().fit(graph, train, rng=rng)
    clean, codes = fitted.predict_proba(), fitted.trial_.codes
    node = _choose_node(graph, clean, codes, graph.positions(candidates, "candidates"))
    n_flips = int(graph.degrees[node])
    attacked = FGA().attack(graph, [node], budget="degree", train=train, rng=rng).apply(graph)
    defence = CopyingDefence(n_donors=min(N_DONORS, graph.n_nodes - 1)).fit(attacked, train, rng=rng)
    own = graph.adjacency[[node]].indices
    remaining = np.intersect1d(attacked.adjacency[[node]].indices, own)
    added = np.setdiff1d(attacked.adjacency[[node]].indices, own)
    donors = defence.nearest_donors([node])[0][:N_DONORS_SHOWN]
    copied = np.setdiff1d(attacked.adjacency[donors].indices, [node])
    stages = (
        Stage("before", _edges(own=np.sort(own)), clean[node]),
        Stage("attacked", _edges(added=added, own=remaining), defence.predict_proba()[node]),
        Stage("with copied neighbours", _edges(copied=copied), defence.correct_proba([node])[0]),
    )
    return AttackedNode(node, n_flips, defence.classes_, codes, donors, stages)


def _choose_node(
    graph: Graph, probabilities: NDArray[np.float32], codes: NDArray[np.int64], candidates: IntArray
) -> int:
    """Return the candidate that is classified correctly with the highest probability."""
    degrees = graph.degrees[candidates]
    is_correct = probabilities[candidates].argmax(axis=1) == codes[candidates]
    nodes = candidates[is_correct & (degrees > 0) & (degrees <= MAX_DEGREE)]
    if not len(nodes):
        raise InputError(
            f"candidates must hold a node with 1 to {MAX_DEGREE} neighbours that a GCN classifies correctly; "
            f"none of the {len(candidates)} is one."
        )
    nodes = nodes[graph.degrees[nodes] >= min(PREFERRED_DEGREE, graph.degrees[nodes].max())]
    return int(nodes[np.argmax(probabilities[nodes].max(axis=1))])


def _edges(**nodes: IntArray) -> list[tuple[int, str]]:
    return [(node, origin) for origin, neighbours in nodes.items() for node in neighbours.tolist()]
