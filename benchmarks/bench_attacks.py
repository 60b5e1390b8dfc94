"""Time of each attack on 40 nodes of Cora, and of DeepRobust's Nettack if it is installed.

Run from the repository: ``python -m benchmarks.bench_attacks`` (needs Cora, see
``nodecopy datasets fetch cora``). DeepRobust gets the same surrogate, and the number of flips on which both
agree is printed.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from nodecopy import Graph, datasets
from nodecopy._core.random import seed_sequence
from nodecopy.attacks import DICE, FGA, AdaptiveCopyingAttack, Attack, Nettack, RandomFlips
from nodecopy.attacks.nettack import SurrogateLabels, linear_weights, surrogate_features
from tests.attacks.oracles import deeprobust_nettack

N_TARGETS, N_DONORS = 40, 10


def main() -> None:
    graph = datasets.load("cora")
    split = datasets.label_split(graph.labels, 20, rng=0)
    rng = np.random.default_rng(0)
    targets = rng.choice(split.test[graph.degrees[split.test] > 0], N_TARGETS, replace=False)
    donors = rng.integers(graph.n_nodes, size=(N_TARGETS, N_DONORS))
    labels = SurrogateLabels.from_graph(graph, targets, split.train, "a benchmark")
    features = surrogate_features(graph, "none", "none", "Nettack")
    surrogate = linear_weights(graph, features, labels, seed_sequence(0))
    attacks: dict[str, tuple[Attack, int | float | str | None]] = {
        "random flips": (RandomFlips(), None),
        "DICE 50 %": (DICE(), 0.5),
        "DICE 75 %, any neighbour": (DICE(delete="any"), 0.75),
        "Nettack": (Nettack(), None),
        "Nettack, surrogate given": (Nettack(surrogate=surrogate), None),
        "Nettack, indirect": (Nettack(direct=False, surrogate=surrogate), None),
        "Nettack, features too": (Nettack(features=True, surrogate=surrogate), None),
        "FGA, 20 flips": (FGA(), 20),
        "FGA as run by the authors": (FGA(loss="training-set"), "degree"),
        f"adaptive, {N_DONORS} donors, 20 flips": (AdaptiveCopyingAttack(donors), 20),
    }
    print(f"{'Cora, ' + str(N_TARGETS) + ' targets':<30}{'seconds':>9}{'ms / target':>13}{'ms / flip':>11}")
    for name, (attack, budget) in attacks.items():
        attack.attack(graph, targets, budget=budget, train=split.train, rng=0)
        start = perf_counter()
        flips = attack.attack(graph, targets, budget=budget, train=split.train, rng=0)
        seconds = perf_counter() - start
        per_flip = 1e3 * seconds / max(1, int(flips.spent.sum()))
        print(f"{name:<30}{seconds:>9.2f}{1e3 * seconds / N_TARGETS:>13.2f}{per_flip:>11.2f}", flush=True)
    try:
        from deeprobust.graph.targeted_attack import Nettack as DeepRobustNettack  # type: ignore[import-not-found]
    except ImportError:
        print("DeepRobust is not installed")
        return
    compare_with_deeprobust(graph, targets, surrogate, DeepRobustNettack)


def compare_with_deeprobust(graph: Graph, targets: Any, surrogate: Any, theirs: Any) -> None:
    """Attack each target on its own with direct edge flips and budget = degree, ten targets at a time."""
    attack = Nettack(surrogate=surrogate, together=False)
    flips = deeprobust_nettack(theirs, graph, surrogate)
    attack.attack(graph, targets[:1], rng=0), flips(int(targets[0]))  # compiles
    ratios: list[float] = []
    ours_s, theirs_s, agree, total = 0.0, 0.0, 0, 0
    for part in np.split(targets, range(10, len(targets), 10)):
        start = perf_counter()
        perturbation = attack.attack(graph, part, rng=0)
        middle = perf_counter()
        reference = [flips(target) for target in part.tolist()]
        seconds = middle - start, perf_counter() - middle
        ours_s, theirs_s = ours_s + seconds[0], theirs_s + seconds[1]
        ratios.append(seconds[1] / seconds[0])
        ours = [set(map(tuple, perturbation.of(target).flips.tolist())) for target in part.tolist()]
        agree += sum(len(flips & other) for flips, other in zip(ours, reference, strict=True))
        total += len(perturbation.flips)
    per_flip = 1e3 * theirs_s / total, 1e3 * ours_s / total
    print(
        f"DeepRobust's Nettack: {per_flip[0]:.1f} ms per flip, nodecopy {per_flip[1]:.2f}; "
        f"{theirs_s / ours_s:.0f} times ({min(ratios):.0f} to {max(ratios):.0f}); "
        f"{agree} of {total} flips agree"
    )


if __name__ == "__main__":
    main()
