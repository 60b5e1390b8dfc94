"""The task ``coverage``: how often intervals from one network hold the true expectation of a statistic.

Every trial draws a network from a known model and bootstraps it. The truth is simulated: for the target
``edges`` with the same nodes in all trials, for ``nodes`` with new nodes in every trial.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.random import SeedSequence

from nodecopy._core.lookup import check_name
from nodecopy._core.notices import mute_data_warnings
from nodecopy._core.random import child
from nodecopy.experiments.assembly import instantiate
from nodecopy.experiments.known_networks import KNOWN_NETWORKS, KnownNetwork
from nodecopy.experiments.sections import key, make_choice_reader, make_list_reader, read_count, read_text
from nodecopy.experiments.spec import Cell, Column
from nodecopy.experiments.store import Record, Store
from nodecopy.experiments.tasks.base import Task
from nodecopy.experiments.trials import TrialSeeds, dataset_seed
from nodecopy.graph import Graph
from nodecopy.inference import bootstrap, spectral_communities
from nodecopy.inference.measurement import pagerank, prepare_measure

N_TRUE = 2_000
"""Networks from which the truth is simulated."""
LEVEL = 0.95
NODES, TRUTH = 0, 1
"""Children of the seed of a dataset: the nodes of all trials, and the networks of the truth."""
STATISTICS = {
    "density": "density",
    "degree_variance": "degree variance",
    "triangles": "triangles",
    "transitivity": "transitivity",
    "average_clustering": "clustering",
    "assortativity": "assortativity",
    "largest_eigenvalue": "eigenvalue",
    "pagerank_of_first": "PageRank of a node",
    "max_degree": "max degree",
}
NOTES = (
    "First table: percentage of networks whose interval, nominally 95 %, holds the true expectation. Second "
    "table: estimated standard errors in percent of the true standard deviation. Each network gives "
    "{samples} samples, and intervals by the method basic; communities are estimated from the network.",
    "Target {target}: {meaning}",
    "Bold: the method nearest to the true model, whose intervals have the true deviations.",
)
MEANINGS = {
    "edges": "all networks have the same nodes, and only edges are drawn again.",
    "nodes": "every network has new nodes.",
}


def pagerank_of_first(graph: Graph) -> float:
    """Return the PageRank of the first node."""
    return float(pagerank(graph)[0])


@dataclass(frozen=True, kw_only=True)
class CoverageTask(Task):
    """Coverage of intervals on networks of known models with ``nodes`` nodes, by ``samples`` samples each."""

    samples: int = key(read_count)
    nodes: int = key(read_count)
    reference: str = key(read_text)
    target: str = key(make_choice_reader(MEANINGS), default="edges")
    scores: tuple[str, ...] = key(make_list_reader(make_choice_reader(STATISTICS)), default=tuple(STATISTICS))

    family: ClassVar[str] = "a graph model, or a sampler of nodes"
    family_methods: ClassVar[tuple[str, ...]] = ("fit", "draw")
    unused_keys: ClassVar[tuple[str, ...]] = ("search", "gain_over")

    def check(self) -> None:
        for name in self.datasets:
            check_name(name, KNOWN_NETWORKS, "datasets of [protocol]")

    @property
    def main_score(self) -> str:  # type: ignore[override]
        return f"{self.scores[0]} covered"

    def fingerprint_extras(self) -> dict[str, Any]:
        names = ("samples", "nodes", "target")
        return {name: getattr(self, name) for name in names} | {"scores": sorted(self.scores)}

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(
            Column(f"{score} {kind}", heading=STATISTICS[score], part=kind)
            for kind in ("covered", "ratio")
            for score in self.scores
        )

    def notes(self, titles: Mapping[str, str]) -> list[str]:
        settings = {"samples": self.samples, "target": self.target, "meaning": MEANINGS[self.target]}
        return [note.format(**settings) for note in NOTES]

    def log_decisions(self, cell: Cell) -> None:
        """Log nothing: there are no data of the user."""

    def solve(self, cell: Cell, trials: Sequence[int], store: Store, device: str) -> Iterator[Record]:
        """Yield whether the interval of each statistic holds the truth, and the ratio of standard errors."""
        seed, statistics = dataset_seed(cell.seed, cell.dataset), list_statistics(self.scores)
        means, deviations = simulate_truth(cell.dataset, self.nodes, self.target, self.scores, cell.seed)
        for trial in trials:
            trial_seed = cell.trial_seed(trial)
            nodes = child(seed, NODES) if self.target == "edges" else child(trial_seed, TrialSeeds.TARGETS)
            network = KnownNetwork.by_name(cell.dataset, self.nodes, nodes)
            graph = network.draw(child(trial_seed, TrialSeeds.SPLIT))
            graph = graph.replace(labels=spectral_communities(graph))
            model: Any = instantiate(cell.path, cell.settings, f"[methods.{cell.method}]", device)
            is_true = isinstance(model, KnownNetwork)
            start = time.perf_counter()
            with mute_data_warnings():
                result = bootstrap(
                    graph,
                    statistics,
                    model=network if is_true else model,
                    n=self.samples,
                    level=LEVEL,
                    target="edges" if is_true else self.target,
                    rng=child(trial_seed, TrialSeeds.METHOD),
                )
            seconds = time.perf_counter() - start
            scores, bias = {}, {}
            for row, mean, deviation in zip(result, means, deviations, strict=True):
                if np.isfinite(row.low) and deviation > 0:
                    scores[f"{row.name} covered"] = float(row.low <= mean <= row.high)
                    scores[f"{row.name} ratio"] = float(row.standard_error) / deviation
                    bias[row.name] = float(row.bias) / deviation
            yield Record(trial, scores, seconds, {"bias": bias, "problems": len(result.problems)})


def list_statistics(scores: Sequence[str]) -> list[Any]:
    """Return the statistics of a bootstrap, names before functions, as results have them."""
    functions = [pagerank_of_first if score == "pagerank_of_first" else score for score in scores]
    return sorted(functions, key=callable)


@lru_cache(maxsize=8)
def simulate_truth(
    name: str, n_nodes: int, target: str, scores: tuple[str, ...], seed: int
) -> tuple[list[float], list[float]]:
    """Return the mean and the standard deviation of each statistic, in the order of results."""
    start = dataset_seed(seed, name)
    network = KnownNetwork.by_name(name, n_nodes, child(start, NODES))
    _, measure = prepare_measure(list_statistics(scores), network.draw(child(start, TRUTH, 0)), None)
    values = []
    for number in range(N_TRUE):
        draws: SeedSequence = child(start, TRUTH, number)
        if target == "nodes":
            network = KnownNetwork.by_name(name, n_nodes, child(draws, NODES))
        values.append(list(measure(network.draw(child(draws, TRUTH))).values()))
    array: Any = np.array(values)
    return array.mean(axis=0).tolist(), array.std(axis=0, ddof=1).tolist()
