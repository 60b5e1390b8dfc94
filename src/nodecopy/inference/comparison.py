"""Differences of statistics between two networks, with confidence intervals."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from nodecopy._core.axes import create_axes
from nodecopy._core.imports import import_optional
from nodecopy._core.messages import ResultTable
from nodecopy._core.random import Rng, child, seed_sequence
from nodecopy.inference.bootstrapping import BootstrapResult, bootstrap, estimate_interval
from nodecopy.inference.diagnosis import Diagnostic
from nodecopy.inference.resampling import GRAPHS_SEED
from nodecopy.inference.statistics import Statistic, check_scalars, find_library, prepare_measure
from nodecopy.io import GraphLike


def compare_graphs(
    first: GraphLike, second: GraphLike, statistic: Statistic, *, rng: Rng = None, **settings: Any
) -> GraphDifference:
    """Return the differences of statistics between two independent networks, with confidence intervals.

    Each network is bootstrapped separately, so the two may have different nodes.

    Parameters
    ----------
    first, second
        The graphs, or any objects that :func:`.as_graph` converts.
    statistic
        As in :func:`.bootstrap`; each returns one number. If the graphs have different numbers of nodes,
        choose statistics that do not depend on it.
    rng
        Seed or generator.
    settings
        Other parameters of :func:`.bootstrap`: ``model``, ``n``, ``confidence``, ``method``, ``resample``,
        ``library`` (by default that of ``first``), ``workers``, ``processes``.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import ErdosRenyi
    >>> from nodecopy.inference import compare_graphs
    >>> club = datasets.load("karate")
    >>> random_graph = ErdosRenyi().fit(club).sample(rng=0)
    >>> differences = compare_graphs(club, random_graph, "degree_gini", model="auto", n=100, rng=0)
    >>> differences["degree_gini"].is_clear
    True
    """
    seed = seed_sequence(rng)
    settings["library"] = settings.get("library") or find_library(first)
    observed, measure = prepare_measure(statistic, first, settings["library"])
    check_scalars(measure(observed), "compared")
    ours, theirs = (
        bootstrap(graph, statistic, rng=child(seed, GRAPHS_SEED, number), **settings)
        for number, graph in enumerate((first, second))
    )
    differences = []
    for row, other in zip(ours, theirs, strict=True):
        numbers = (float(row.observed), float(other.observed))
        difference = numbers[0] - numbers[1]
        values = ours.scaled_values(row.name) - theirs.scaled_values(row.name)
        interval: Any = estimate_interval(
            row.name, difference, values, confidence=ours.confidence, method=ours.method
        )
        parts = (*numbers, difference, interval.standard_error, interval.low, interval.high)
        differences.append(Difference(row.name, *map(float, parts)))
    return GraphDifference(tuple(differences), ours.confidence, ours, theirs)


class Difference(NamedTuple):
    """One statistic of two graphs: the first minus the second, with its confidence interval.

    Examples
    --------
    >>> from nodecopy.inference import Difference
    >>> Difference("density", 0.2, 0.1, 0.1, standard_error=0.02, low=0.06, high=0.14).is_clear
    True
    """

    name: str
    first: float
    second: float
    difference: float
    standard_error: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """Return whether the interval excludes zero."""
        return not self.low <= 0 <= self.high


@dataclass(frozen=True, repr=False)
class GraphDifference(ResultTable[Difference]):
    """Differences between two graphs; iterating yields one :class:`Difference` per statistic.

    Examples
    --------
    >>> from nodecopy import SameLabel, datasets
    >>> from nodecopy.inference import compare_graphs
    >>> club = datasets.load("karate")
    >>> compare_graphs(club, club, "density", model=SameLabel(), n=50, rng=0)["density"].is_clear
    False
    """

    heads = ("statistic", "first", "second", "difference", "standard error", "low", "high")
    differences: tuple[Difference, ...]
    confidence: float
    first: BootstrapResult = field(repr=False)
    second: BootstrapResult = field(repr=False)

    @property
    def question(self) -> str:
        """Return the question that the intervals answer."""
        return f"By how much do the two expected values differ? For each: {self.first.question}"

    @property
    def problems(self) -> tuple[Diagnostic, ...]:
        """Return reasons not to trust an interval, which were also given as warnings."""
        results = (("first", self.first), ("second", self.second))
        return tuple(Diagnostic(p.statistic, f"{name} graph: {p}") for name, r in results for p in r.problems)

    def notes(self) -> tuple[list[str], list[str]]:
        about = f"{self.confidence:.0%} intervals by {self.first.n:,} samples of each graph"
        return [self.question, about], []

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings, ready for JSON."""
        rows = {row.name: dict(list(row._asdict().items())[1:]) for row in self}
        settings = {"question": self.question, "confidence": self.confidence}
        return {**settings, "statistics": rows, "problems": [problem._asdict() for problem in self.problems]}

    def to_pandas(self) -> Any:
        """Return a data frame with a row per statistic."""
        pandas = import_optional("pandas", "GraphDifference.to_pandas")
        return pandas.DataFrame(self.differences, columns=Difference._fields).set_index("name")

    def plot(self, axes: Any = None) -> Any:
        """Draw the differences in units of their standard errors, with intervals, and return the axes."""
        n = len(self.differences)
        (axes,) = create_axes(axes, "GraphDifference.plot", (4.5, 0.8 + 0.4 * n))
        for number, row in enumerate(self.differences):
            scale = row.standard_error or 1.0
            axes.plot([row.low / scale, row.high / scale], [number, number], color="#5e81ac")
            axes.plot(row.difference / scale, number, "o", color="#2e3440")
        axes.axvline(0, color="#4c566a", linewidth=0.8)
        axes.set_yticks(range(n), [row.name for row in self.differences])
        axes.set_xlabel("difference, in standard errors")
        return axes
