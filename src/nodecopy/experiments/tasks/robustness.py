"""Attacked trials: who is attacked, and how, the same for every method.

Victims are drawn by child 2 of a trial's seed, among the test nodes that have neighbours; the attack gets
child 3. An attack may take longer than all that is trained afterwards, so its flips are kept in the store.
Attackers and methods see a graph that has no features with the identity, one feature for each node.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from nodecopy._core.lookup import instantiate
from nodecopy._core.random import child
from nodecopy.errors import InputError
from nodecopy.experiments.spec import Cell
from nodecopy.experiments.store import Store
from nodecopy.experiments.tasks.node_classification import classifier_of, codes, prepared
from nodecopy.experiments.trials import NodeSplit, Solved, graph_of, trial_seed, trial_split
from nodecopy.graph import Graph
from nodecopy.metrics.classification import accuracy, area_under_roc, scores

if TYPE_CHECKING:
    from nodecopy.attacks import Perturbation

VICTIMS, ATTACK = 2, 3


def classified_under_attack(cell: Cell, trials: list[int], store: Store, device: str) -> Iterator[Solved]:
    """Predictions of the victims; untold who they are, of all test nodes."""
    classifier = classifier_of(cell, device)
    from nodecopy.defend import corrected_trials
    from nodecopy.nn.features import with_features

    graph = with_features(graph_of(cell))
    splits, seeds = [trial_split(cell, one) for one in trials], [trial_seed(cell, one) for one in trials]
    victims = [victims_of(cell, graph, split, seed) for split, seed in zip(splits, seeds, strict=True)]
    graphs = [
        attacked(cell, graph, split, chosen, seed, store.flips(cell, trial), device)
        for trial, split, chosen, seed in zip(trials, splits, victims, seeds, strict=True)
    ]
    asked = victims if cell.told else [split.test for split in splits]
    start = time.perf_counter()
    predictions = corrected_trials(classifier, prepared(cell, trials, splits, graphs), asked)
    seconds = (time.perf_counter() - start) / len(trials)
    labels = codes(graph)
    for trial, prediction, nodes, chosen in zip(trials, predictions, asked, victims, strict=True):
        hit = np.isin(nodes, chosen)
        judged = scores(prediction.probabilities, labels[nodes], np.flatnonzero(hit))
        details = dict(prediction.details)
        suspicion, corrected = details.pop("suspicion", None), details.pop("corrected", None)
        if not cell.told:
            judged["others"] = accuracy(prediction.probabilities, labels[nodes], np.flatnonzero(~hit))
            if suspicion is not None:
                judged |= detection(suspicion, corrected, hit)
        yield Solved(trial, judged, seconds, details)


def detection(
    suspicion: NDArray[np.float64], corrected: NDArray[np.bool_], hit: NDArray[np.bool_]
) -> dict[str, float]:
    """How well victims are told from other test nodes.

    ``auc`` judges the whole ranking; ``top precision`` is the share of victims among the most suspicious
    nodes, as many as there are victims; ``precision`` is their share among the nodes that were corrected,
    ``recall`` the share of the victims that were. Where no node was corrected there is no precision.
    """
    top = np.argsort(-suspicion, kind="stable")[: hit.sum()]
    found = {"auc": area_under_roc(suspicion, hit), "recall": float(corrected[hit].mean())}
    found |= {"precision": float(hit[corrected].mean())} if corrected.any() else {}
    return found | {"top precision": float(hit[top].mean())}


def victims_of(cell: Cell, graph: Graph, split: NodeSplit, seed: SeedSequence) -> NDArray[np.int64]:
    """The victims of a trial."""
    reachable = split.test[graph.degrees[split.test] > 0]
    if len(reachable) < cell.victims:
        raise InputError(
            f"victims of [protocol] must be at most the test nodes that have neighbours, {len(reachable)}; "
            f"got {cell.victims}."
        )
    draws = np.random.default_rng(child(seed, VICTIMS))
    return np.sort(draws.choice(reachable, cell.victims, replace=False))


def attacked(
    cell: Cell,
    graph: Graph,
    split: NodeSplit,
    victims: NDArray[np.int64],
    seed: SeedSequence,
    kept: Path,
    device: str = "cpu",
) -> Graph:
    """The graph of a trial after the attack, whose flips are taken from ``kept`` or written there.

    An attack that computes on a device gets this one, unless its settings name another.
    """
    if cell.attacker is None or not cell.attacker.path:
        return graph
    found = _kept(kept)
    if found is None or not np.array_equal(found.targets, victims):
        where = f"[attacks.{cell.attack}]"
        attack = instantiate(cell.attack, cell.attacker.path, dict(cell.attacker.settings), where)
        if hasattr(attack, "device") and "device" not in cell.attacker.settings:
            attack.device = device
        budget, draws = cell.attacker.budget, child(seed, ATTACK)
        found = attack.attack(graph, victims, budget=budget, train=split.train, rng=draws)
        kept.parent.mkdir(parents=True, exist_ok=True)
        found.save(kept)
    return found.apply(graph)


def _kept(path: Path) -> Perturbation | None:
    """What an earlier run wrote; a file that cannot be read counts as missing."""
    from nodecopy.attacks import Perturbation

    try:
        return Perturbation.load(path)
    except (InputError, OSError):
        return None
