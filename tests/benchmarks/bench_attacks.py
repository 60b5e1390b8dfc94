"""Seconds of each attack on 40 nodes of Cora, and of DeepRobust's Nettack where it is installed.

Run from the repository: ``python -m tests.benchmarks.bench_attacks`` (needs Cora, see
``nodecopy datasets fetch cora``). With DeepRobust, both get the same surrogate, and it is told how many
of the chosen flips agree.
"""

from __future__ import annotations

from time import perf_counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from scipy import sparse

from nodecopy import Graph, datasets
from nodecopy.attacks import DICE, FGA, Attack, Nettack, RandomFlips, ThroughCopying
from nodecopy.attacks.surrogate import Knowledge, linear_weights
from nodecopy.rng import seed_sequence

N_VICTIMS, N_DONORS = 40, 10


def main() -> None:
    graph = datasets.load("cora")
    split = datasets.label_split(graph.labels, 20, rng=0)
    draws = np.random.default_rng(0)
    victims = draws.choice(split.test[graph.degrees[split.test] > 0], N_VICTIMS, replace=False)
    donors = draws.integers(graph.n_nodes, size=(N_VICTIMS, N_DONORS))
    surrogate = linear_weights(
        graph, Knowledge.of(graph, victims, split.train, "a benchmark"), seed_sequence(0)
    )
    attacks: dict[str, Attack] = {
        "random flips": RandomFlips(),
        "DICE 50 %": DICE(),
        "DICE 75 %, any neighbour": DICE(0.75, delete="any"),
        "Nettack": Nettack(),
        "Nettack, surrogate given": Nettack(surrogate=surrogate),
        "Nettack, indirect": Nettack(direct=False, surrogate=surrogate),
        "Nettack, features too": Nettack(features=True, surrogate=surrogate),
        "FGA, 20 flips": FGA(),
        "FGA, 4 flips a step": FGA(flips_per_step=4),
        "FGA as run by the authors": FGA("degree", loss="training-set"),
        f"through {N_DONORS} donors, 20 flips": ThroughCopying(donors, 20),
    }
    print(f"{'Cora, ' + str(N_VICTIMS) + ' victims':<30}{'seconds':>9}{'ms / victim':>13}{'ms / flip':>11}")
    for name, attack in attacks.items():
        attack.attack(graph, victims, train=split.train, rng=0)
        start = perf_counter()
        found = attack.attack(graph, victims, train=split.train, rng=0)
        seconds = perf_counter() - start
        per_flip = 1e3 * seconds / max(1, int(found.spent.sum()))
        print(f"{name:<30}{seconds:>9.2f}{1e3 * seconds / N_VICTIMS:>13.2f}{per_flip:>11.2f}", flush=True)
    try:
        from deeprobust.graph.targeted_attack import Nettack as Theirs  # type: ignore[import-not-found]
    except ImportError:
        print("DeepRobust is not installed")
        return
    beside_deeprobust(graph, victims, surrogate, Theirs)


def beside_deeprobust(graph: Graph, victims: Any, surrogate: Any, theirs: Any) -> None:
    """Each victim alone, direct edge flips, budget = degree, the same weights."""
    attack = Nettack(surrogate=surrogate, together=False)
    attack.attack(graph, victims, rng=0)
    start = perf_counter()
    found = attack.attack(graph, victims, rng=0)
    ours_s = (perf_counter() - start) / len(found.flips)
    identity = SimpleNamespace(weight=torch.eye(surrogate.shape[1], dtype=torch.float64))
    model = SimpleNamespace(
        nclass=surrogate.shape[1],
        nfeat=surrogate.shape[0],
        hidden_sizes=[16],
        gc1=SimpleNamespace(weight=torch.from_numpy(surrogate)),
        gc2=identity,
    )
    adjacency = sparse.csr_matrix(graph.adjacency.astype(np.float64))
    plain: Any = graph.features
    features = sparse.csr_matrix(plain)

    def run(victim: int) -> tuple[float, set[tuple[int, ...]]]:
        other = theirs(model, nnodes=graph.n_nodes, attack_structure=True, attack_features=False)
        start = perf_counter()
        other.attack(features, adjacency, graph.labels, victim, int(graph.degrees[victim]), verbose=False)
        seconds = perf_counter() - start
        return seconds, {tuple(map(int, edge)) for edge in other.structure_perturbations}

    run(int(victims[0]))  # pays for compilation
    agree, seconds = 0, 0.0
    for victim in victims.tolist():
        taken, chosen = run(victim)
        seconds += taken
        agree += len(chosen & set(map(tuple, found.of(victim).flips.tolist())))
    theirs_s = seconds / len(found.flips)
    print(
        f"DeepRobust's Nettack: {1e3 * theirs_s:.1f} ms a flip, ours {1e3 * ours_s:.2f}; "
        f"{theirs_s / ours_s:.0f} times; {agree} of {len(found.flips)} flips agree"
    )


if __name__ == "__main__":
    main()
