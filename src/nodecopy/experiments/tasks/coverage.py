"""The tasks ``coverage``, of confidence intervals, and ``level``, the size and power of tests.

Every trial of ``coverage`` draws networks from a known model and bootstraps each; the coverage is how often
the intervals hold the true expectation, which is simulated: for the target ``edges`` with the same nodes in
all trials, for ``nodes`` with new nodes in every network.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import SeedSequence

from nodecopy import inference
from nodecopy._core.imports import check_name
from nodecopy._core.messages import mute_data_warnings
from nodecopy._core.random import child
from nodecopy.errors import InputError
from nodecopy.experiments.data import KNOWN_NETWORKS, NULL_NETWORKS, KnownNetwork, draw_null_network
from nodecopy.experiments.spec import (
    Cell,
    Column,
    TrialSeeds,
    dataset_seed,
    digest,
    instantiate,
    key,
    read_count,
)
from nodecopy.experiments.store import Record, Store, read_checked, write_checked
from nodecopy.experiments.tasks import Task
from nodecopy.graph import Graph
from nodecopy.inference import BootstrapResult, spectral_communities, statistic_names
from nodecopy.inference.statistics import compute_modularity, count_communities, pagerank, prepare_measure

N_TRUE = 2_000  # networks from which the truth is simulated
LEVEL = 0.95
MAX_NODES = {"path_length": 500, "found_modularity": 500}  # limits of slow statistics
NODES, TRUTH = 0, 1  # children of the seed of a dataset
STATISTICS = {
    "density": "density",
    "mean_degree": "mean degree",
    "degree_variance": "degree variance",
    "triangles": "triangles",
    "transitivity": "transitivity",
    "assortativity": "assortativity",
    "modularity": "modularity of the true blocks",
    "found_modularity": "modularity of estimated communities",
    "path_length": "path length",
    "largest_eigenvalue": "eigenvalue",
    "pagerank_of_first": "PageRank of a node",
    "max_degree": "max degree",
}
FUNCTIONS = ("pagerank_of_first", "modularity", "found_modularity")
KINDS = ("covered", "ratio", "bias", "warned")
NOTES = (
    "covered: percentage of networks whose interval, nominally 95 %, holds the true expectation. ratio: "
    "estimated standard errors in percent of the true standard deviation, which is also the width of the "
    "intervals in percent of the correct one. bias: mean of the samples minus the observed value, in percent "
    "of the true standard deviation. warned: percentage of networks for which bootstrap warned.",
    "Each network gives {samples} samples, and intervals by the method basic. Trials are means over "
    "{networks} networks. Communities are estimated, unless it is said that they are known; the modularity "
    "of the true blocks is that of known groups, whatever the method.",
    "Target {target}: {meaning}",
    "Bold: the method nearest to the true model, whose intervals have the true quantiles.",
)
SIGNIFICANCE = 0.05
LEVEL_NOTES = (
    "Percentage of networks in which a two-sided test rejects at 5 %. The true value is 5 where the null "
    "model is true; elsewhere it is the power.",
    "Networks have {nodes} nodes and mean degree {degree}. Each is tested with up to {samples} samples of "
    "the null model, fewer if the answer is clear. Trials are means over {networks} networks. Modularity is "
    "that of the labels.",
)
MEANINGS = {
    "edges": "all networks have the same nodes, and only edges are drawn again.",
    "nodes": "every network has new nodes.",
}


class Truth(NamedTuple):
    """The simulated expectation and deviation of a statistic, and quantiles around the expectation."""

    mean: float
    deviation: float
    low: float
    high: float


Truths = Mapping[str, Truth]


def pagerank_of_first(graph: Graph) -> float:
    """Return the PageRank of the first node."""
    return float(pagerank(graph)[0])


@lru_cache(maxsize=2)
def _fixed_network(dataset: str, nodes: int, degree: int, seed: int) -> KnownNetwork:
    return KnownNetwork.by_name(dataset, nodes, degree, child(dataset_seed(seed, dataset), NODES))


def _read_sizes(value: Any, where: str) -> tuple[tuple[int, int], ...]:
    pairs: list[Any] = value if isinstance(value, list) and value else [None]
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise InputError(f"{where} must be pairs such as [[200, 15]]; got {value!r}.")
    return tuple((read_count(nodes, where), read_count(degree, where)) for nodes, degree in pairs)


@dataclass(frozen=True, kw_only=True)
class NetworkTask(Task):
    """Means over simulated networks; datasets are kinds of networks."""

    samples: int = key("count")  # per network
    networks: int = key("count")  # per trial
    scores: tuple[str, ...] = ()

    kinds: ClassVar[Collection[str]]  # allowed datasets
    score_kind: ClassVar[str]  # last word of the main score
    family = "a graph model"
    family_methods = ("fit", "draw")
    unused_keys = ("search", "gain_over")

    def check(self) -> None:
        for name in self.datasets:
            check_name(name, self.kinds, "datasets of [protocol]")

    @property
    def main_score(self) -> str:  # type: ignore[override]
        return f"{self.scores[0]} {self.score_kind}"

    def average_scores(
        self, cell: Cell, trials: Sequence[int], score: Callable[[SeedSequence], Mapping[str, float]]
    ) -> Iterator[Record]:
        for trial in trials:
            start = time.perf_counter()
            rows = [score(cell.trial_seed(trial, number)) for number in range(self.networks)]
            names = dict.fromkeys(name for row in rows for name in row)
            means = {name: float(np.mean([row[name] for row in rows if name in row])) for name in names}
            yield Record(trial, means, time.perf_counter() - start, {})


@dataclass(frozen=True, kw_only=True)
class CoverageTask(NetworkTask):
    """Coverage of intervals on networks of known models."""

    sizes: tuple[tuple[int, int], ...] = key(_read_sizes)  # numbers of nodes and mean degrees
    reference: str = key("text")
    target: str = key(MEANINGS, default="edges")
    known_labels: tuple[str, ...] = key(["text"], default=())  # methods that get the true blocks as labels
    levels: int = key("count", default=1)  # of the bootstrap
    found_by: tuple[str, ...] = key(["text"], default=())  # methods with found_modularity; by default all
    scores: tuple[str, ...] = key([STATISTICS], default=tuple(STATISTICS))

    kinds = KNOWN_NETWORKS
    score_kind = "covered"
    result_fields = ("samples", "networks", "scores", "target")
    family = "a graph model, or a sampler of nodes"
    picture = "coverage"

    @property
    def conditions(self) -> tuple[dict[str, Any], ...]:
        return tuple({"nodes": nodes, "degree": degree} for nodes, degree in self.sizes)

    def protocol(self, cell: Cell) -> dict[str, Any]:
        levels = {"levels": self.levels} if self.levels > 1 else {}
        return {**cell.conditions, "known_labels": cell.method in self.known_labels, **levels}

    @property
    def columns(self) -> tuple[Column, ...]:
        columns = []
        for conditions, kind in product(self.conditions, KINDS):
            nodes, degree = conditions.values()
            start = f"{nodes} nodes, degree {degree}, {kind}: "
            is_compared, part = kind in ("covered", "ratio"), f"{nodes} {degree} {kind}"
            for score in self.select_scores(nodes):
                place, heading = tuple(conditions.items()), start + STATISTICS[score]
                columns.append(Column(f"{score} {kind}", place, heading, is_compared=is_compared, part=part))
                start = ""
        return tuple(columns)

    def select_scores(self, nodes: int) -> list[str]:
        scores = [score for score in self.scores if nodes <= MAX_NODES.get(score, nodes)]
        return sorted(scores, key=lambda score: score in FUNCTIONS)

    def notes(self, titles: Mapping[str, str]) -> list[str]:
        return [note.format(**vars(self), meaning=MEANINGS[self.target]) for note in NOTES]

    def solve(self, cell: Cell, trials: Sequence[int], store: Store, device: str) -> Iterator[Record]:
        truths = self.load_truth(cell, store)
        return self.average_scores(cell, trials, lambda seed: self.score_network(cell, truths, seed, device))

    def score_network(self, cell: Cell, truths: Truths, seed: SeedSequence, device: str) -> dict[str, float]:
        network = self.make_network(cell, child(seed, TrialSeeds.TARGETS))
        graph = network.draw(child(seed, TrialSeeds.SPLIT))
        statistics = self.list_statistics(cell, network, graph)
        model: Any = instantiate(cell.path, cell.settings, cell.section, device)
        if isinstance(model, KnownNetwork):
            return _score_truth(prepare_measure(statistics, graph, None)[1](graph), truths)
        if self.target == "edges" and cell.method not in self.known_labels:
            graph = graph.replace(labels=spectral_communities(graph))
        with mute_data_warnings():
            options: dict[str, Any] = {"n": self.samples, "confidence": LEVEL, "resample": self.target}
            options |= {"levels": self.levels, "validity": False}
            rng = child(seed, TrialSeeds.METHOD)
            result = inference.bootstrap(graph, statistics, model=model, rng=rng, **options)
            return _score_result(result, truths)

    def make_network(self, cell: Cell, seed: SeedSequence) -> KnownNetwork:
        nodes, degree = cell.conditions.values()
        if self.target == "edges":
            return _fixed_network(cell.dataset, nodes, degree, cell.seed)
        return KnownNetwork.by_name(cell.dataset, nodes, degree, seed)

    def list_statistics(self, cell: Cell, network: KnownNetwork, graph: Graph | None = None) -> list[Any]:
        blocks = network.blocks if self.target == "edges" else None
        n_communities = None if graph is None else count_communities(graph)

        def modularity(sample: Graph) -> float:
            labels: Any = sample.label_codes if blocks is None else blocks
            return compute_modularity(sample, labels)

        def found_modularity(sample: Graph) -> float:
            return compute_modularity(sample, spectral_communities(sample, n_communities))

        functions = {f.__name__: f for f in (pagerank_of_first, modularity, found_modularity)}
        scores = self.select_scores(cell.conditions["nodes"])
        if graph is not None and self.found_by and cell.method not in self.found_by:
            scores = [score for score in scores if score != "found_modularity"]
        return [functions.get(score, score) for score in scores]

    def truth_file(self, cell: Cell) -> str:
        parts = [cell.dataset, *cell.conditions.values(), self.target, cell.seed, N_TRUE, sorted(self.scores)]
        return f"coverage/truth/{'-'.join(map(str, parts[:4]))}-{digest(parts)}.json"

    def load_truth(self, cell: Cell, store: Store) -> Truths:
        path, names = store.folder / self.truth_file(cell), self.select_scores(cell.conditions["nodes"])
        truths = read_checked(path, lambda content: parse_truths(content, names))
        if truths is None:
            truths = self.simulate_truth(cell)
            write_checked(path, dict(truths))
        return truths

    def simulate_truth(self, cell: Cell) -> Truths:
        start = child(dataset_seed(cell.seed, cell.dataset), TRUTH)
        network = self.make_network(cell, start)
        rows: list[list[Any]] = []
        for number in range(N_TRUE):
            if self.target == "nodes":
                network = self.make_network(cell, child(start, number, NODES))
            graph = network.draw(child(start, number, TRUTH))
            if not rows:
                _, measure = prepare_measure(self.list_statistics(cell, network), graph, None)
            rows.append(list(measure(graph).values()))
        values = np.array(rows)
        means, deviations = values.mean(axis=0), values.std(axis=0, ddof=1)
        quantiles = np.quantile(values - means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
        numbers = np.stack([means, deviations, *quantiles], axis=1).tolist()
        names = self.select_scores(cell.conditions["nodes"])
        return {name: Truth(*row) for name, row in zip(names, numbers, strict=True)}


def parse_truths(content: Mapping[str, Any], names: Sequence[str]) -> Truths:
    """Return the truth of each statistic from the content of a file."""
    if set(content) != set(names):
        raise ValueError(f"it must have the statistics {', '.join(names)}")
    for name, numbers in content.items():
        if not isinstance(numbers, list) or [type(number) for number in numbers] != [float] * 4:
            raise ValueError(f"{name} must be four numbers; got {numbers!r:.100}")
    return {name: Truth(*numbers) for name, numbers in content.items()}


def _score_result(result: BootstrapResult, truths: Truths) -> dict[str, float]:
    scores: dict[str, float] = {}
    doubtful = {problem.statistic for problem in result.problems}
    for row in result:
        name, truth = row.name, truths[row.name]
        if np.isfinite(row.low) and truth.deviation > 0:
            scores[f"{name} covered"] = float(row.low <= truth.mean <= row.high)
            scores[f"{name} ratio"] = float(row.standard_error) / truth.deviation
            scores[f"{name} bias"] = float(row.bias) / truth.deviation
            scores[f"{name} warned"] = float(bool(doubtful & {None, name}))
    return scores


def _score_truth(observed: Mapping[str, Any], truths: Truths) -> dict[str, float]:
    scores: dict[str, float] = {}
    for name, value in observed.items():
        truth = truths[name]
        if truth.deviation > 0 and np.isfinite(value):
            scores[f"{name} covered"] = float(truth.low <= value - truth.mean <= truth.high)
            scores[f"{name} ratio"] = 1.0
    return scores


@dataclass(frozen=True, kw_only=True)
class LevelTask(NetworkTask):
    """Size and power of tests; methods are null models."""

    nodes: int = key("count")
    degree: int = key("count")
    scores: tuple[str, ...] = key([(*statistic_names(), "strength_variance")])

    kinds = NULL_NETWORKS
    score_kind = "rejected"
    result_fields = ("samples", "networks", "scores", "nodes", "degree")

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(
            Column(f"{score} rejected", heading=score.replace("_", " "), is_compared=False)
            for score in self.scores
        )

    def notes(self, titles: Mapping[str, str]) -> list[str]:
        return [note.format(**vars(self)) for note in LEVEL_NOTES]

    def solve(self, cell: Cell, trials: Sequence[int], store: Store, device: str) -> Iterator[Record]:
        return self.average_scores(cell, trials, lambda seed: self.test_network(cell, seed, device))

    def test_network(self, cell: Cell, seed: SeedSequence, device: str) -> dict[str, bool]:
        graph = draw_null_network(cell.dataset, self.nodes, self.degree, child(seed, TrialSeeds.SPLIT))
        model: Any = instantiate(cell.path, cell.settings, cell.section, device)
        rng = child(seed, TrialSeeds.METHOD)
        with mute_data_warnings():
            functions = {strength_variance.__name__: strength_variance}
            scores: list[Any] = [functions.get(score, score) for score in self.scores]
            tests = inference.null_test(graph, scores, null=model, n=self.samples, rng=rng)
        return {
            f"{result.name} rejected": result.p_value <= SIGNIFICANCE
            for result in tests
            if np.isfinite(result.p_value)  # the null model does not fix the statistic
        }


def strength_variance(graph: Graph) -> float:
    """Return the variance of the sums of the weights of nodes."""
    return float(np.var(graph.adjacency.sum(axis=1)))
