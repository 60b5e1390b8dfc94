"""One attacked node and its correction by copied neighbourhoods, and the section of the page about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nodecopy._core.arrays import Array, IntArray, Ints, Singles
from nodecopy._core.random import Rng, generator
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.report.headlines import attack_headline, round_all, round_number, to_texts
from nodecopy.report.page import Section

if TYPE_CHECKING:
    from nodecopy.defend import NodeReport

PREFERRED_DEGREE, MAX_DEGREE = 3, 8  # of the attacked node
MAX_ATTACKED = 20
N_DONORS, N_DONORS_SHOWN = 10, 3


class Stage(NamedTuple):
    """Neighbours with the origin of each edge (own, added, copied), and the class probabilities."""

    name: str
    neighbours: list[tuple[int, str]]
    probabilities: Singles


@dataclass(frozen=True, eq=False)
class AttackedNode:
    """A node before an attack, after it, and with copied neighbours."""

    node: int
    n_flips: int
    n_attacked: int
    classes: Array
    codes: Ints
    donors: IntArray
    stages: tuple[Stage, ...]
    evidence: NodeReport | None = None


def attack_and_correct(graph: Graph, train: ArrayLike, candidates: ArrayLike, *, rng: Rng) -> AttackedNode:
    """Attack nodes by FGA until one is misclassified, and correct it by node copying and by all evidence."""
    from nodecopy.classify import GCN
    from nodecopy.defend import EvidenceDefence

    fitted = GCN().fit(graph, train, rng=rng)
    clean, codes = fitted.predict_proba(), fitted.trial_.codes
    positions = graph.positions(candidates, "candidates")
    degrees, is_correct = graph.degrees[positions], clean[positions].argmax(axis=1) == codes[positions]
    suitable = positions[is_correct & (degrees > 0) & (degrees <= MAX_DEGREE)]
    if not len(suitable):
        needed = f"a node with 1 to {MAX_DEGREE} neighbours that a GCN classifies correctly"
        raise InputError(f"an attack needs {needed}; none of the {len(positions)} candidates is one.")
    degrees = graph.degrees[suitable]
    suitable = suitable[degrees >= min(PREFERRED_DEGREE, degrees.max())]
    nodes = generator(rng).permutation(suitable)[:MAX_ATTACKED].tolist()
    chosen, n_attacked = (np.inf, nodes[0], graph, None), 0
    for node in nodes:
        n_attacked += 1
        attacked, defence = _attack(graph, node, train, rng)
        probabilities = defence.undefended_proba()[node]
        change = probabilities[codes[node]] - clean[node, codes[node]]
        is_misled = probabilities.argmax() != codes[node]
        if is_misled or change < chosen[0]:
            chosen = change, node, attacked, defence
        if is_misled:
            break
    _, node, attacked, defence = chosen
    stages, donors = _stages(graph, node, attacked, defence, clean)
    by_evidence = EvidenceDefence(GCN(), retrain=True)
    evidence = by_evidence.fit(attacked, train, targets=[node], rng=rng).explain([node])[0]
    n_flips = int(graph.degrees[node])
    return AttackedNode(node, n_flips, n_attacked, fitted.classes_, codes, donors, stages, evidence)


def _attack(graph: Graph, node: int, train: ArrayLike, rng: Rng) -> tuple[Graph, Any]:
    from nodecopy.attacks import FGA
    from nodecopy.defend import CopyingDefence

    attacked = FGA().attack(graph, [node], budget="degree", train=train, rng=rng).apply(graph)
    defence = CopyingDefence(n_donors=min(N_DONORS, graph.n_nodes - 1))
    return attacked, defence.fit(attacked, train, targets=[node], rng=rng)


def _stages(
    graph: Graph, node: int, attacked: Graph, defence: Any, clean: Singles
) -> tuple[tuple[Stage, ...], IntArray]:
    own, rewired = graph.adjacency[[node]].indices, attacked.adjacency[[node]].indices
    donors = defence.nearest_donors([node])[0][:N_DONORS_SHOWN]
    copied = np.setdiff1d(attacked.adjacency[donors].indices, [node])
    edges = _edges(added=np.setdiff1d(rewired, own), own=np.intersect1d(rewired, own))
    stages = (
        Stage("before", _edges(own=np.sort(own)), clean[node]),
        Stage("attacked", edges, defence.undefended_proba()[node]),
        Stage("with copied neighbours", _edges(copied=copied), defence.predict_proba()[node]),
    )
    return stages, donors


def _edges(**nodes: IntArray) -> list[tuple[int, str]]:
    return [(node, origin) for origin, neighbours in nodes.items() for node in neighbours.tolist()]


def attack_section(
    attacked: AttackedNode, ids: ArrayLike, *, images: Array | None = None, noun: str = "node"
) -> Section:
    """Return the section of an attacked node."""
    names, codes, classes = np.asarray(ids), attacked.codes, to_texts(attacked.classes)
    text = (
        f"Predictions of a GCN for {noun} {names[attacked.node]}: on the clean graph, after FGA flipped "
        f"{attacked.n_flips} edges and the GCN was trained on the attacked graph, and with the "
        f"neighbourhoods of similar {noun}s in place of its own. {_describe_choice(attacked, noun)}"
    ).rstrip()
    probabilities = [stage.probabilities.tolist() for stage in attacked.stages]
    if attacked.evidence is not None:
        probabilities.append(list(attacked.evidence.probabilities.values()))
    neighbours = {node for stage in attacked.stages for node, _ in stage.neighbours}
    number = {node: position for position, node in enumerate(sorted(neighbours | {attacked.node}))}
    nodes: list[dict[str, Any]] = [{"id": str(names[node]), "class": int(codes[node])} for node in number]
    if images is not None:
        scale = 255 / max(float(images.max()), 1e-9)
        for node, entry in zip(number, nodes, strict=True):
            entry["image"] = np.rint(scale * images[node]).astype(int).tolist()
    return {
        "kind": "attack",
        "title": f"One attacked {noun}",
        "headline": attack_headline(classes, int(codes[attacked.node]), probabilities, attacked.n_flips),
        "text": text,
        "node": number[attacked.node],
        "nodes": nodes,
        "classes": classes,
        "donors": to_texts(names[attacked.donors]),
        "stages": [
            {
                "name": stage.name,
                "neighbours": [[number[node], origin] for node, origin in stage.neighbours],
                "probabilities": round_all(stage.probabilities, 4),
            }
            for stage in attacked.stages
        ],
        "evidence": _describe_evidence(attacked, names),
    }


def _describe_evidence(attacked: AttackedNode, names: Array) -> Section | None:
    report, (_, after, _) = attacked.evidence, attacked.stages
    if report is None:
        return None
    added = {str(names[node]) for node, origin in after.neighbours if origin == "added"}
    parts = {"features": report.features, "all": report.probabilities}
    return {
        "parts": {name: round_all(list(part.values()), 4) for name, part in parts.items()},
        "edge_evidence": round_all(list(report.edge_evidence.values()), 2),
        "edges": [
            {
                "neighbour": str(edge.neighbour),
                "class": str(edge.predicted),
                "credibility": round_number(edge.credibility, 3),
                "distrusted": edge.is_distrusted,
                "reason": edge.reason,
                "added": str(edge.neighbour) in added,
            }
            for edge in report.edges
        ],
    }


def _describe_choice(attacked: AttackedNode, noun: str) -> str:
    truth, (_, after, _), n = attacked.codes[attacked.node], attacked.stages, attacked.n_attacked
    if after.probabilities.argmax() == truth:
        return "" if n == 1 else f"None of {n} attacked {noun}s changed its class; this one came closest."
    if n == 1:
        return f"It is the first {noun} that was attacked, drawn from those that were classified correctly."
    return (
        f"Of correctly classified {noun}s, attacked one at a time in random order, it is the first that "
        f"changed its class, after {n - 1} that did not."
    )
