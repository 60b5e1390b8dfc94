"""One node under attack and its correction by copied neighbourhoods, as data for a figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.arrays import IntArray
from nodecopy._core.random import Rng, generator
from nodecopy.errors import InputError
from nodecopy.graph import Graph

if TYPE_CHECKING:
    from nodecopy.defend import NodeReport

PREFERRED_DEGREE, MAX_DEGREE = 3, 8
"""Of the attacked node: enough flips to change the prediction, and few enough for a figure."""
MAX_ATTACKED = 20
"""Nodes that are attacked, each alone, until the prediction of one changes."""
N_DONORS, N_DONORS_SHOWN = 10, 3


class Stage(NamedTuple):
    """Neighbours with the origin of each edge (own, added, copied), and the class probabilities."""

    name: str
    neighbours: list[tuple[int, str]]
    probabilities: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class AttackedNode:
    """A node before the attack, after it, and with copied neighbours; the last of ``n_attacked`` nodes.

    ``evidence`` is that of :class:`nodecopy.defend.EvidenceDefence`, which corrects the node by its features,
    its donors and its credible edges.
    """

    node: int
    n_flips: int
    n_attacked: int
    classes: NDArray[Any]
    codes: NDArray[np.int64]
    donors: IntArray
    stages: tuple[Stage, ...]
    evidence: NodeReport | None = None


def attack_and_correct(graph: Graph, train: ArrayLike, candidates: ArrayLike, *, rng: Rng) -> AttackedNode:
    """Attack nodes by FGA until one is misclassified, and correct it by node copying and by all evidence.

    Nodes are attacked one at a time, in random order and with their degree as budget. If no prediction
    changes, the result is the node whose true class lost most of its probability.

    Parameters
    ----------
    graph
        Undirected and binary, with features and labels.
    train
        Training nodes.
    candidates
        Labelled nodes. Up to 20 of those are attacked that a GCN classifies correctly and that have 3 to 8
        neighbours or, where there are none, the most below 3.
    rng
        Seed of training, of the order of nodes and of the attack.
    """
    from nodecopy.classify import GCN

    fitted = GCN().fit(graph, train, rng=rng)
    clean, codes = fitted.predict_proba(), fitted.trial_.codes
    nodes = _find_candidates(graph, clean, codes, graph.positions(candidates, "candidates"))
    nodes = generator(rng).permutation(nodes)[:MAX_ATTACKED].tolist()
    chosen, n_attacked = (np.inf, nodes[0], graph, None), 0
    for node in nodes:
        n_attacked += 1
        attacked, defence = _attack(graph, node, train, rng)
        probabilities = defence.predict_proba()[node]
        change = probabilities[codes[node]] - clean[node, codes[node]]
        is_misled = probabilities.argmax() != codes[node]
        if is_misled or change < chosen[0]:
            chosen = change, node, attacked, defence
        if is_misled:
            break
    _, node, attacked, defence = chosen
    stages, donors = _stages(graph, node, attacked, defence, clean)
    n_flips, evidence = int(graph.degrees[node]), _weigh_evidence(attacked, node, train, rng)
    return AttackedNode(node, n_flips, n_attacked, fitted.classes_, codes, donors, stages, evidence)


def _find_candidates(
    graph: Graph, probabilities: NDArray[np.float32], codes: NDArray[np.int64], candidates: IntArray
) -> IntArray:
    """Return the candidates that are classified correctly and have a suitable number of neighbours."""
    degrees = graph.degrees[candidates]
    is_correct = probabilities[candidates].argmax(axis=1) == codes[candidates]
    nodes = candidates[is_correct & (degrees > 0) & (degrees <= MAX_DEGREE)]
    if not len(nodes):
        raise InputError(
            f"an attack needs a node with 1 to {MAX_DEGREE} neighbours that a GCN classifies correctly; none "
            f"of the {len(candidates)} candidates is one."
        )
    suitable: IntArray = nodes[graph.degrees[nodes] >= min(PREFERRED_DEGREE, graph.degrees[nodes].max())]
    return suitable


def _attack(graph: Graph, node: int, train: ArrayLike, rng: Rng) -> tuple[Graph, Any]:
    """Return the attacked graph, and a defence that is trained on it."""
    from nodecopy.attacks import FGA
    from nodecopy.defend import CopyingDefence

    attacked = FGA().attack(graph, [node], budget="degree", train=train, rng=rng).apply(graph)
    return attacked, CopyingDefence(n_donors=min(N_DONORS, graph.n_nodes - 1)).fit(attacked, train, rng=rng)


def _weigh_evidence(attacked: Graph, node: int, train: ArrayLike, rng: Rng) -> NodeReport:
    """Return the evidence about an attacked node, with a GCN as in the stages."""
    from nodecopy.classify import GCN
    from nodecopy.defend import EvidenceDefence

    defence = EvidenceDefence(GCN(), n_donors=min(N_DONORS, attacked.n_nodes - 1), retrain=True)
    return defence.fit(attacked, train, rng=rng).explain([node])[0]


def _stages(
    graph: Graph, node: int, attacked: Graph, defence: Any, clean: NDArray[np.float32]
) -> tuple[tuple[Stage, ...], IntArray]:
    """Return the three stages of an attacked node, and the donors that are shown."""
    own, rewired = graph.adjacency[[node]].indices, attacked.adjacency[[node]].indices
    donors = defence.nearest_donors([node])[0][:N_DONORS_SHOWN]
    copied = np.setdiff1d(attacked.adjacency[donors].indices, [node])
    edges = _edges(added=np.setdiff1d(rewired, own), own=np.intersect1d(rewired, own))
    stages = (
        Stage("before", _edges(own=np.sort(own)), clean[node]),
        Stage("attacked", edges, defence.predict_proba()[node]),
        Stage("with copied neighbours", _edges(copied=copied), defence.correct_proba([node])[0]),
    )
    return stages, donors


def _edges(**nodes: IntArray) -> list[tuple[int, str]]:
    return [(node, origin) for origin, neighbours in nodes.items() for node in neighbours.tolist()]
