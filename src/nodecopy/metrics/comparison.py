"""Comparison of samples of a graph model with the observed graph, statistic by statistic."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.optional_imports import import_optional
from nodecopy._core.random import Rng
from nodecopy._core.validation import type_name
from nodecopy.conversion import GraphLike, convert_graph
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.metrics.monte_carlo import MonteCarloTest
from nodecopy.metrics.structure import Statistics, statistics


class Row(NamedTuple):
    """One statistic: its observed value, and what the samples say about it."""

    name: str
    observed: float
    mean: float
    deviation: float
    low: float
    """The quantile 0.025 of the samples; their smallest value if they are fewer than 40."""
    high: float
    """The quantile 0.975 of the samples, or their largest value."""
    p_value: float
    """Of the two-sided Monte Carlo test: how often samples are as far out as the observed graph.

    Samples in which the statistic is undefined count as such."""


HEADS = ("deviation", "low", "high", "p-value")
TAIL = 0.025
"""Share of the samples below ``low``, and above ``high``."""


@dataclass(frozen=True)
class Comparison:
    """The statistics of an observed graph and of samples; iterating yields the rows.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> club = datasets.load("karate")
    >>> compare(club, [club])["triangles"].mean
    45.0
    """

    rows: tuple[Row, ...]
    n_samples: int
    values: Mapping[str, tuple[float, ...]] = field(default_factory=dict, repr=False, compare=False)
    """The values of each statistic, one per sample."""

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __getitem__(self, name: str) -> Row:
        return {row.name: row for row in self.rows}[name]

    @property
    def statistics(self) -> tuple[str, ...]:
        """Return the names of the statistics, in order."""
        return tuple(row.name for row in self.rows)

    @property
    def outside(self) -> dict[str, str]:
        """Return a sentence for each statistic that is outside of the range of the samples."""
        sentences = {}
        for row in self.rows:
            values = self.values.get(row.name, ())
            if row.name == "edge_overlap" or not values or not np.isfinite([row.observed, *values]).all():
                continue
            low, high = min(values), max(values)
            if not low <= row.observed <= high:
                side = "less than" if row.observed < low else "more than"
                is_clear = row.p_value <= 2 * TAIL
                answer = "their model does not explain it" if is_clear else "draw more samples to be sure"
                sentences[row.name] = (
                    f"{row.name} is {row.observed:.4g}, {side} in all {self.n_samples} samples "
                    f"({low:.4g} to {high:.4g}): {answer}."
                )
        return sentences

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings, ready for JSON."""
        rows = {row.name: {k: v for k, v in row._asdict().items() if k != "name"} for row in self.rows}
        return {"n_samples": self.n_samples, "statistics": rows, "outside": self.outside}

    def to_pandas(self) -> Any:
        """Return a data frame with a row per statistic."""
        pandas = import_optional("pandas", "Comparison.to_pandas")
        return pandas.DataFrame(self.rows, columns=Row._fields).set_index("name")

    def __str__(self) -> str:
        head = ("statistic", "observed", f"mean of {self.n_samples}", *HEADS)
        lines = [head, *((row.name, *(f"{value:.6g}" for value in row[1:])) for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            line[0].ljust(widths[0])
            + "".join(f"  {cell.rjust(width)}" for cell, width in zip(line[1:], widths[1:], strict=True))
            for line in lines
        )


def compare(
    observed: GraphLike, samples: Iterable[GraphLike], *, path_length: bool | None = None, rng: Rng = 0
) -> Comparison:
    """Compare samples with the observed graph by :func:`~nodecopy.metrics.structure.statistics`.

    Samples are taken one at a time and not stored, so ``samples`` may be a generator of large graphs. The
    standard deviation has the divisor n - 1 and is ``nan`` for a single sample. A statistic that is
    undefined for any sample has an undefined mean; such samples count as extreme in its p-value.

    Parameters
    ----------
    observed
        The observed graph, or what :func:`.as_graph` converts.
    samples
        Graphs (the same holds for them) with its node ids and directedness, at least one.
    path_length
        Whether to add the mean path length, see :func:`~nodecopy.metrics.structure.statistics`.
    rng
        Seed or generator that chooses the sources of sampled paths; 0 by default, so that all graphs share
        them.

    Examples
    --------
    >>> from nodecopy import Graph
    >>> path, triangle = Graph.from_edges([0, 1], [1, 2]), Graph.from_edges([0, 1, 2], [1, 2, 0])
    >>> compare(path, [path, triangle])["triangles"]
    Row(name='triangles', observed=0, mean=0.5, deviation=0.7071067811865476, low=0.0, high=1.0, p_value=1.0)
    """
    is_array = hasattr(type(samples), "ndim") and not (isinstance(samples, np.ndarray) and samples.ndim)
    if (
        not isinstance(samples, Iterable)
        or hasattr(samples, "nodes")
        or is_array
        or isinstance(samples, Graph)
    ):
        raise InputError(f"samples must be several graphs, such as a list; got one {type_name(samples)}.")
    observed = convert_graph(observed, "observed")
    measure = partial(statistics, path_length=path_length, rng=rng, observed=observed)
    measured: list[Statistics] = []
    for number, sample in enumerate(samples):
        sample = convert_graph(sample, f"sample {number}")
        if sample.n_nodes != observed.n_nodes:
            raise InputError(
                f"samples must be graphs on {observed.n_nodes} nodes; got {sample!r} as number {number}."
            )
        if sample.directed != observed.directed or not np.array_equal(sample.node_ids, observed.node_ids):
            raise InputError(
                f"samples must have the observed graph's node ids and directedness; number {number} has not."
            )
        measured.append(measure(sample))
    if not measured:
        raise InputError("samples must hold at least one graph; got none.")
    rows = []
    for name, value in measure(observed).items():
        values = np.array([result[name] for result in measured], np.float64)
        deviation = float(values.std(ddof=1)) if len(values) > 1 else math.nan
        rows.append(Row(name, value, float(values.mean()), deviation, *_summarise_tails(value, values)))
    by_name = {row.name: tuple(float(result[row.name]) for result in measured) for row in rows}
    return Comparison(tuple(rows), len(measured), by_name)


def _summarise_tails(observed: float, values: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return two quantiles, ``nan`` where a sample is undefined, and the two-sided p-value.

    Undefined samples count as extreme. If the observed value is undefined, all are ``nan``.
    """
    if not math.isfinite(observed):
        return math.nan, math.nan, math.nan
    monte_carlo = MonteCarloTest(observed)
    for value in values.tolist():
        monte_carlo.add(value)
    if not np.isfinite(values).all():
        return math.nan, math.nan, monte_carlo.p_value
    low, high = np.quantile(values, [TAIL, 1 - TAIL], method="weibull")
    return float(low), float(high), monte_carlo.p_value
