"""Seconds of each attack on 40 nodes of Cora, and of DeepRobust's Nettack where it is installed.

Run from the repository: ``python -m tests.benchmarks.bench_attacks`` (needs Cora, see
``nodecopy datasets fetch cora``). With DeepRobust, both get the same surrogate, and the
number of flips on which they agree is printed.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from nodecopy import Graph, datasets
from nodecopy._core.random import seed_sequence
from nodecopy.attacks import DICE, FGA, AdaptiveCopyingAttack, Attack, Nettack, RandomFlips
from nodecopy.attacks.surrogate import SurrogateLabels, linear_weights
from tests.attacks.oracles import deeprobust_nettack

N_VICTIMS, N_DONORS = 40, 10


def main() -> None:
    graph = datasets.load("cora")
    split = datasets.label_split(graph.labels, 20, rng=0)
    draws = np.random.default_rng(0)
    victims = draws.choice(split.test[graph.degrees[split.test] > 0], N_VICTIMS, replace=False)
    donors = draws.integers(graph.n_nodes, size=(N_VICTIMS, N_DONORS))
    surrogate = linear_weights(
        graph, SurrogateLabels.from_graph(graph, victims, split.train, "a benchmark"), seed_sequence(0)
    )
    attacks: dict[str, tuple[Attack, int | float | str | None]] = {
        "random flips": (RandomFlips(), None),
        "DICE 50 %": (DICE(), 0.5),
        "DICE 75 %, any neighbour": (DICE(delete="any"), 0.75),
        "Nettack": (Nettack(), None),
        "Nettack, surrogate given": (Nettack(surrogate=surrogate), None),
        "Nettack, indirect": (Nettack(direct=False, surrogate=surrogate), None),
        "Nettack, features too": (Nettack(features=True, surrogate=surrogate), None),
        "FGA, 20 flips": (FGA(), 20),
        "FGA, 4 flips a step": (FGA(flips_per_step=4), 20),
        "FGA as run by the authors": (FGA(loss="training-set"), "degree"),
        f"at {N_DONORS} donors, 20 flips": (AdaptiveCopyingAttack(donors), 20),
    }
    print(f"{'Cora, ' + str(N_VICTIMS) + ' targets':<30}{'seconds':>9}{'ms / target':>13}{'ms / flip':>11}")
    for name, (attack, budget) in attacks.items():
        attack.attack(graph, victims, budget=budget, train=split.train, rng=0)
        start = perf_counter()
        flips = attack.attack(graph, victims, budget=budget, train=split.train, rng=0)
        seconds = perf_counter() - start
        per_flip = 1e3 * seconds / max(1, int(flips.spent.sum()))
        print(f"{name:<30}{seconds:>9.2f}{1e3 * seconds / N_VICTIMS:>13.2f}{per_flip:>11.2f}", flush=True)
    try:
        from deeprobust.graph.targeted_attack import Nettack as Theirs  # type: ignore[import-not-found]
    except ImportError:
        print("DeepRobust is not installed")
        return
    beside_deeprobust(graph, victims, surrogate, Theirs)


def beside_deeprobust(graph: Graph, victims: Any, surrogate: Any, theirs: Any) -> None:
    """Each victim alone, direct edge flips, budget = degree, the same weights; in turns of ten victims."""
    attack = Nettack(surrogate=surrogate, together=False)
    flips = deeprobust_nettack(theirs, graph, surrogate)
    attack.attack(graph, victims[:1], rng=0), flips(int(victims[0]))  # pays for compilation
    ratios: list[float] = []
    ours_s, theirs_s, agree, total = 0.0, 0.0, 0, 0
    for part in np.split(victims, range(10, len(victims), 10)):
        start = perf_counter()
        found = attack.attack(graph, part, rng=0)
        between = perf_counter()
        chosen = [flips(victim) for victim in part.tolist()]
        taken = between - start, perf_counter() - between
        ours_s, theirs_s, ratios = ours_s + taken[0], theirs_s + taken[1], [*ratios, taken[1] / taken[0]]
        mine = [set(map(tuple, found.of(victim).flips.tolist())) for victim in part.tolist()]
        agree += sum(len(one & other) for one, other in zip(mine, chosen, strict=True))
        total += len(found.flips)
    print(
        f"DeepRobust's Nettack: {1e3 * theirs_s / total:.1f} ms a flip, ours {1e3 * ours_s / total:.2f}; "
        f"{theirs_s / ours_s:.0f} times ({min(ratios):.0f} to {max(ratios):.0f}); "
        f"{agree} of {total} flips agree"
    )


if __name__ == "__main__":
    main()
