"""Attacked trials: who is attacked, and how, the same for every method.

Victims are drawn by child 2 of a trial's seed, among the test nodes that have neighbours; the attack gets
child 3. An attack may take longer than all that is trained afterwards, so its flips are kept in the store.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from nodecopy.datasets import Split
from nodecopy.errors import InputError
from nodecopy.experiments.experiment import Cell
from nodecopy.graph import Graph
from nodecopy.registry import made
from nodecopy.rng import child

if TYPE_CHECKING:
    from nodecopy.attacks import Perturbation

VICTIMS, ATTACK = 2, 3


def victims_of(
    cell: Cell, graph: Graph, split: Split[NDArray[np.int64]], seed: SeedSequence
) -> NDArray[np.int64]:
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
    split: Split[NDArray[np.int64]],
    victims: NDArray[np.int64],
    seed: SeedSequence,
    kept: Path,
) -> Graph:
    """The graph of a trial after the attack, whose flips are taken from ``kept`` or written there."""
    if cell.attacker is None or not cell.attacker.path:
        return graph
    found = _kept(kept)
    if found is None:
        where = f"[attacks.{cell.attack}]"
        attack = made(cell.attack, cell.attacker.path, dict(cell.attacker.settings), where)
        found = attack.attack(graph, victims, train=split.train, rng=child(seed, ATTACK))
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
