"""The task ``generate``: statistics of samples of graph models, compared with the observed graph.

A setting ``{ class = "module.Class", use = "embeddings", ... }`` is the embeddings of the model in the table.
A model with a ``sampler`` is trained once for all samplers.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Self

import numpy as np
from numpy.random import SeedSequence

from nodecopy._core.random import Rng
from nodecopy.experiments.runner import FIT_CACHE
from nodecopy.experiments.spec import Cell, Column, instantiate, key
from nodecopy.experiments.store import Record, Store
from nodecopy.experiments.tasks import VERDICT_NOTE, Task
from nodecopy.graph import Graph
from nodecopy.metrics.structure import Statistics, select_statistics
from nodecopy.models import GraphModel

UNITS = (
    "Every training of a model is a trial, after which {} graphs are sampled. Means and standard deviations "
    "over trials."
)
NEAREST_NOTE = (
    "Bold: the method nearest to {}. Asterisk: nearer than the second nearest by the Wilcoxon signed-rank "
    "test at 5 %."
)
NO_DEVIATIONS = "The paper prints no deviations: they are taken to be ours."


class GenerationSeeds(IntEnum):
    """Children of a trial's seed sequence, one for each purpose."""

    FIT = 1
    SAMPLES = 2


TABLE_1: dict[str, tuple[Any, ...]] = {  # heading, scale and is_compared of a column
    "mean_degree": ("mean degree", 1),
    "max_degree": ("max degree", 1),
    "cross_community_share": ("cross-community %",),
    "claw_share": ("claws % (1e-4)", 1e6),
    "edge_entropy": ("edge entropy %",),
}
STATISTICS = TABLE_1 | {
    "degree_gini": ("degree Gini %",),
    "power_law_exponent": ("power-law exponent", 1),
    "triangles": ("triangles", 1),
    "transitivity": ("transitivity %",),
    "average_clustering": ("clustering %",),
    "assortativity": ("assortativity %",),
    "n_components": ("components", 1),
    "largest_component": ("largest component", 1),
    "path_length": ("path length", 1),
    "edge_overlap": ("edge overlap %", 100.0, False),  # the observed graph has all edges
}


class ObservedGraph(GraphModel[Graph]):
    """A graph model whose samples are the observed graph: the reference row of tables."""

    def fit(self, graph: Graph, *, rng: Rng = None) -> Self:
        self.graph_ = graph
        return self

    def draw(self, seed: SeedSequence) -> Graph:
        return self.check_fitted()


@dataclass(frozen=True, kw_only=True)
class GenerateTask(Task):
    """Sampling of graphs: each trial is a training, after which ``samples`` graphs are drawn."""

    samples: int = key("count")
    reference: str = key("text")
    scores: tuple[str, ...] = key([STATISTICS], default=tuple(TABLE_1))

    protocol_fields = ("largest_component",)
    result_fields = ("samples", "scores")
    family = "a graph model"
    family_methods = ("fit", "sample_many")
    digits = None
    published_examples = "'3.89', '1.43e3'"
    picture = "samples"
    unused_keys = ("search", "gain_over")
    allowed_uses = ("embeddings",)

    @property
    def main_score(self) -> str:  # type: ignore[override]
        return self.scores[0]

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(Column(score, (), *STATISTICS[score]) for score in self.scores)

    def notes(self, titles: Mapping[str, str]) -> list[str]:
        return [UNITS.format(self.samples), NEAREST_NOTE.format(titles.get(self.reference, ""))]

    def notes_on_paper(self) -> list[str]:
        return [VERDICT_NOTE.format("half a unit of the printed digits", "above or below"), NO_DEVIATIONS]

    def solve(self, cell: Cell, trials: Sequence[int], store: Store, device: str) -> Iterator[Record]:
        graph = self.load(cell)
        for trial in trials:
            start = time.perf_counter()
            model = _fit_model(cell, trial, device)
            seconds_to_fit = seconds = time.perf_counter() - start
            statistics: list[Statistics] = []
            seed = cell.trial_seed(trial, GenerationSeeds.SAMPLES)
            samples = iter(model.sample_many(self.samples, rng=seed))
            while True:
                start = time.perf_counter()
                sample = next(samples, None)
                seconds += time.perf_counter() - start
                if sample is None:
                    break
                if not statistics or sample is not graph:
                    latest = select_statistics(sample, self.scores, observed=graph)
                statistics.append(latest)
            each = {name: [values[name] for values in statistics] for name in self.scores}
            defined = {name: values for name, values in each.items() if not any(map(math.isnan, values))}
            means = {name: float(np.mean(values)) for name, values in defined.items()}
            yield Record(trial, means, seconds, {"seconds_to_fit": seconds_to_fit, "samples": defined})


def _fit_model(cell: Cell, trial: int, device: str) -> Any:
    graph, seed = cell.task.load(cell), cell.trial_seed(trial, GenerationSeeds.FIT)

    def fit_shared(path: str, settings: Mapping[str, Any]) -> Any:
        if "sampler" in settings:
            settings = {**settings, "sampler": "raw"}
        model = instantiate(path, settings, cell.section, device)
        parts = cell, trial, device, {"class": path, **settings}
        return FIT_CACHE.get_or_fit(lambda: model.fit(graph, rng=seed), *parts)

    if "sampler" in cell.settings:
        return fit_shared(cell.path, cell.settings).with_sampler(cell.settings["sampler"])

    use = lambda path, settings: fit_shared(path, settings).embeddings()  # noqa: E731
    return instantiate(cell.path, cell.settings, cell.section, device, use).fit(graph, rng=seed)
