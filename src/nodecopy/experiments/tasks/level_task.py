"""The task ``level``: how often tests reject, under true null models and against planted structure."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import SeedSequence

from nodecopy import inference
from nodecopy._core.lookup import check_name
from nodecopy._core.notices import mute_data_warnings
from nodecopy._core.random import child
from nodecopy.experiments.assembly import instantiate
from nodecopy.experiments.null_networks import NULL_NETWORKS
from nodecopy.experiments.sections import key, make_choice_reader, make_list_reader, read_count
from nodecopy.experiments.spec import Cell, Column
from nodecopy.experiments.store import Record, Store
from nodecopy.experiments.tasks.base import Task
from nodecopy.experiments.trials import TrialSeeds
from nodecopy.inference import statistic_names

SIGNIFICANCE = 0.05
NOTES = (
    "Percentage of networks in which a two-sided test rejects at 5 %. The true value is 5 where the null "
    "model is true; elsewhere it is the power.",
    "Networks have {nodes} nodes and mean degree {degree}. Each is tested with up to {samples} samples of "
    "the null model, fewer if the answer is clear. Trials are means over {networks} networks. Modularity is "
    "that of the labels.",
)


@dataclass(frozen=True, kw_only=True)
class LevelTask(Task):
    """Tests of statistics (``scores``); datasets are kinds of networks, methods are null models."""

    samples: int = key(read_count)
    networks: int = key(read_count)
    nodes: int = key(read_count)
    degree: int = key(read_count)
    scores: tuple[str, ...] = key(make_list_reader(make_choice_reader(statistic_names())))

    family: ClassVar[str] = "a graph model"
    family_methods: ClassVar[tuple[str, ...]] = ("fit", "draw")
    unused_keys: ClassVar[tuple[str, ...]] = ("search", "gain_over")

    def check(self) -> None:
        for name in self.datasets:
            check_name(name, NULL_NETWORKS, "datasets of [protocol]")

    @property
    def main_score(self) -> str:  # type: ignore[override]
        return f"{self.scores[0]} rejected"

    def fingerprint_extras(self) -> dict[str, Any]:
        names = ("samples", "networks", "nodes", "degree")
        return {name: getattr(self, name) for name in names} | {"scores": sorted(self.scores)}

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(
            Column(f"{score} rejected", heading=score.replace("_", " "), is_compared=False)
            for score in self.scores
        )

    def notes(self, titles: Mapping[str, str]) -> list[str]:
        return [note.format(**vars(self)) for note in NOTES]

    def log_decisions(self, cell: Cell) -> None:
        """Log nothing: there are no data of the user."""

    def solve(self, cell: Cell, trials: Sequence[int], store: Store, device: str) -> Iterator[Record]:
        """Yield the share of the networks of a trial in which each test rejects."""
        for trial in trials:
            start = time.perf_counter()
            seeds = [child(cell.trial_seed(trial), number) for number in range(self.networks)]
            rejections = [self.test_network(cell, seed, device) for seed in seeds]
            shares = {
                f"{score} rejected": float(np.mean([row[score] for row in rejections]))
                for score in self.scores
            }
            yield Record(trial, shares, time.perf_counter() - start, {})

    def test_network(self, cell: Cell, seed: SeedSequence, device: str) -> dict[str, bool]:
        """Draw a network, and return whether each test of it rejects."""
        graph = NULL_NETWORKS[cell.dataset](self.nodes, self.degree, child(seed, TrialSeeds.SPLIT))
        model: Any = instantiate(cell.path, cell.settings, f"[methods.{cell.method}]", device)
        with mute_data_warnings():  # that node copying is no exact null model is what is measured
            tests = inference.test(
                graph, list(self.scores), null=model, n=self.samples, rng=child(seed, TrialSeeds.METHOD)
            )
        return {result.name: result.p_value <= SIGNIFICANCE for result in tests}
