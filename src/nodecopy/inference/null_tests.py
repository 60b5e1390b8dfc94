"""Tests whether a statistic of a network is what a null model explains."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.formats import PathLike
from nodecopy._core.lookup import check_name
from nodecopy._core.notices import warn_about_data
from nodecopy._core.optional_imports import import_optional
from nodecopy._core.random import Rng, child
from nodecopy._core.validation import check_choice, check_integer
from nodecopy.conversion import GraphLike
from nodecopy.copying import NodeCopying
from nodecopy.errors import InputError
from nodecopy.generators import BlockConfigurationModel, ConfigurationModel, ErdosRenyi
from nodecopy.inference.directed_copying import DirectedCopying
from nodecopy.inference.measurement import Statistic, prepare_measure
from nodecopy.inference.resampling import (
    InferenceSeeds,
    Sampler,
    choose_sampler,
    measure_samples,
    open_store,
)
from nodecopy.inference.sample_store import choose_seed

NULL_MODELS: dict[str, Callable[[], Sampler | None]] = {
    "configuration": ConfigurationModel,
    "degree-corrected-blocks": BlockConfigurationModel,
    "erdos-renyi": lambda: ErdosRenyi(fixed_edges=True),
    "node-copying": lambda: None,  # the default of intervals
}
ALTERNATIVES = ("two-sided", "greater", "less")


class TailCount(NamedTuple):
    """Samples at least as extreme as the observed value on one side, and the samples drawn for that."""

    n_extreme: int
    n_samples: int
    is_complete: bool

    @property
    def p_value(self) -> float:
        """Return the p-value of Besag and Clifford: h / l once h are extreme, else (h + 1) / (n + 1)."""
        if self.is_complete:
            return self.n_extreme / self.n_samples
        return (self.n_extreme + 1) / (self.n_samples + 1)


@dataclass(frozen=True)
class SignificanceTest:
    """The test of one statistic.

    Examples
    --------
    >>> from nodecopy import datasets, inference
    >>> results = inference.test(datasets.load("karate"), "transitivity", n=99, rng=0)
    >>> results["transitivity"].question
    'How often is transitivity as far out as observed in graphs of ConfigurationModel()?'
    """

    name: str
    observed: float
    p_value: float
    p_value_error: float
    """The Monte Carlo standard error of the p-value."""
    z_score: float
    """The observed value minus the mean of the samples, over their standard deviation."""
    null: str
    alternative: str
    n_samples: int
    stopped_early: bool
    values: NDArray[np.float64] = field(repr=False, compare=False)
    """The null distribution: the values in the samples."""

    @property
    def question(self) -> str:
        """Return the question that the p-value answers."""
        side = {"two-sided": "as far out", "greater": "as large", "less": "as small"}[self.alternative]
        return f"How often is {self.name} {side} as observed in graphs of {self.null}?"

    def __repr__(self) -> str:
        return (
            f"{self.question}\n{self.name}: {self.observed:.4g}, mean of the null {self.values.mean():.4g}, "
            f"z = {self.z_score:.2f}, p = {self.p_value:.2g} ± {self.p_value_error:.1g} "
            f"({self.n_samples} samples{', stopped early' if self.stopped_early else ''})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings, ready for JSON."""
        names = [name for name in self.__dataclass_fields__ if name != "values"]
        return {name: getattr(self, name) for name in names} | {"null_mean": float(self.values.mean())}


@dataclass(frozen=True)
class SignificanceTests:
    """The tests of statistics against one null model; iterating yields a :class:`SignificanceTest` each.

    Examples
    --------
    >>> from nodecopy import datasets, inference
    >>> results = inference.test(datasets.load("karate"), ["transitivity", "assortativity"], n=99, rng=0)
    >>> [result.name for result in results]
    ['transitivity', 'assortativity']
    """

    tests: tuple[SignificanceTest, ...]

    def __iter__(self) -> Iterator[SignificanceTest]:
        return iter(self.tests)

    def __getitem__(self, name: str) -> SignificanceTest:
        return {result.name: result for result in self.tests}[name]

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.tests))

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings, ready for JSON."""
        return {result.name: result.to_dict() for result in self.tests}

    def to_pandas(self) -> Any:
        """Return a data frame with a row per statistic."""
        pandas = import_optional("pandas", "SignificanceTests.to_pandas")
        return pandas.DataFrame([result.to_dict() for result in self.tests]).set_index("name")

    def plot(self, axes: Any = None) -> Any:
        """Draw the null distribution and the observed value of each statistic, and return the axes."""
        pyplot, n = import_optional("matplotlib.pyplot", "SignificanceTests.plot"), len(self.tests)
        if axes is None:
            _, axes = pyplot.subplots(1, n, figsize=(3.2 * n, 2.6), layout="constrained", squeeze=False)
        axes = np.atleast_1d(axes).ravel()
        for place, result in zip(axes, self.tests, strict=True):
            place.hist(result.values[np.isfinite(result.values)], bins=30, color="#88c0d0")
            place.axvline(result.observed, color="#bf616a")
            place.set(title=f"{result.name}, p = {result.p_value:.2g}", yticks=[])
        return axes if n > 1 else axes[0]


def test(
    graph: GraphLike,
    statistic: Statistic,
    *,
    null: Any = "configuration",
    alternative: str = "two-sided",
    n: int = 999,
    stop_after: int | None = 20,
    library: str | None = None,
    workers: int = 1,
    processes: bool = False,
    store: PathLike | None = None,
    rng: Rng = None,
) -> SignificanceTests:
    """Test whether statistics of a network are what a null model explains.

    The p-value is that of a Monte Carlo test: (h + 1) / (n + 1) where h of n samples are at least as extreme.
    A one-sided test is exact if nothing is estimated: ``"erdos-renyi"``, ``"configuration"`` and, with
    labels, ``"degree-corrected-blocks"``, as far as values have no ties. Samples of the last two come from
    Markov chains, which do not start at the observed graph but at one that a chain reached from there, so
    that samples and graph are exchangeable however short the chains are (Besag and Clifford, 1989). Where
    parameters are estimated, the test keeps its level approximately. A two-sided p-value is twice the
    smaller one of the two sides, which is conservative.

    Parameters
    ----------
    graph
        The observed graph, or what :func:`.as_graph` converts.
    statistic
        As in :func:`.bootstrap`; each gives one number. Modularity of a graph without labels is that of the
        communities that are estimated from each sample, as they are from the graph.
    null
        ``"configuration"`` (default; graphs with the same degrees), ``"erdos-renyi"`` (the same number of
        edges), ``"degree-corrected-blocks"`` (the same number of edges from each node to each block; blocks
        are the labels), ``"node-copying"`` (the default of :func:`.bootstrap`; it rejects too rarely, with a
        warning), a graph model or a donor law.
    alternative
        ``"two-sided"`` (default), ``"greater"`` or ``"less"``.
    n
        Largest number of samples, 999 by default.
    stop_after
        Sampling stops when so many samples are at least as extreme, 20 by default, since the p-value is
        clearly not small then; it is 20 / l after l samples (Besag and Clifford, 1991), as exact as before.
        ``None`` always draws ``n`` samples.
    library, workers, processes, store, rng
        As in :func:`.bootstrap`.

    Examples
    --------
    >>> from nodecopy import datasets, inference
    >>> club = datasets.load("karate")
    >>> results = inference.test(club, "modularity", null="erdos-renyi", alternative="greater", n=99, rng=0)
    >>> results["modularity"].p_value
    0.01
    """
    check_integer(n, "n of test", low=1)
    check_integer(workers, "workers of test", low=1)
    check_choice(alternative, "alternative of test", ALTERNATIVES)
    if stop_after is not None:
        check_integer(stop_after, "stop_after of test", low=1)
    if isinstance(null, str):
        null = NULL_MODELS[check_name(null, NULL_MODELS, "null of test")]()
    observed, measure = prepare_measure(statistic, graph, library, fixed_number=False)
    values = measure(observed)
    for name, value in values.items():
        if np.ndim(value):
            raise InputError(
                f"statistic of test must be a number; {name} has {np.size(value)} values. Give a function "
                "that returns one of them, such as their maximum."
            )
        if not np.isfinite(value):
            raise InputError(
                f"statistic of test must be a finite number; {name} of the graph is {value!r}. Test others."
            )
    seed = choose_seed(rng, store)
    sampler = choose_sampler(null, "edges", directed=observed.directed)
    sampler = sampler.fit(observed, rng=child(seed, InferenceSeeds.FIT))
    if isinstance(sampler, (NodeCopying, DirectedCopying)):
        warn_about_data(
            "samples of node copying are centred near the observed graph, so that the test rejects too "
            "rarely. Use another null model."
        )
    if isinstance(sampler, (ConfigurationModel, BlockConfigurationModel)):
        sampler = sampler.restart(child(seed, InferenceSeeds.HUB))
    shapes = {name: np.shape(value) for name, value in values.items()}
    folder = open_store(store, "test", observed, sampler, seed, shapes, measure)
    samples = measure_samples(
        sampler,
        measure,
        n,
        child(seed, InferenceSeeds.SAMPLES),
        workers,
        store=folder,
        shapes=shapes,
        processes=processes,
    )
    drawn: dict[str, list[Any]] = {name: [] for name in values}
    for sample in samples:
        for name, value in sample.items():
            drawn[name].append(value)
        if stop_after is not None and all(
            _is_clear(drawn[name], values[name], alternative, stop_after) for name in values
        ):
            break
    for name, rows in drawn.items():
        if n_undefined := int((~np.isfinite(rows)).sum()):
            warn_about_data(
                f"{name} is undefined in {n_undefined} of {len(rows)} samples, which count as extreme: the "
                "p-value is too large, rather than too small."
            )
    settings = {"null": repr(sampler), "alternative": alternative}
    return SignificanceTests(
        tuple(
            _summarise(name, value, np.array(drawn[name]), stop_after, n, settings)
            for name, value in values.items()
        )
    )


def _is_clear(drawn: list[Any], observed: Any, alternative: str, stop_after: int) -> bool:
    """Return whether enough samples are extreme on every side that counts."""
    sides = _find_extreme(np.array(drawn), observed)
    counted = sides.values() if alternative == "two-sided" else [sides[alternative]]
    return min(int(side.sum()) for side in counted) >= stop_after


def _find_extreme(values: NDArray[np.float64], observed: Any) -> dict[str, NDArray[np.bool_]]:
    """Return which samples are at least as extreme on each side; undefined values are on both."""
    undefined = ~np.isfinite(values)
    return {"greater": (values >= observed) | undefined, "less": (values <= observed) | undefined}


def _summarise(
    name: str,
    observed: Any,
    values: NDArray[np.float64],
    stop_after: int | None,
    n: int,
    settings: dict[str, str],
) -> SignificanceTest:
    """Return the test of one statistic; samples with an undefined value count as extreme."""
    sides = _find_extreme(values, observed)
    tails = {side: count_tail(is_extreme, stop_after) for side, is_extreme in sides.items()}
    if settings["alternative"] == "two-sided":
        tail = min(tails.values(), key=lambda count: count.p_value)
        factor = 2.0
    else:
        tail, factor = tails[settings["alternative"]], 1.0
    p = tail.p_value
    finite = values[np.isfinite(values)]
    deviation = float(finite.std(ddof=1)) if len(finite) > 1 else float("nan")
    difference = float(observed - finite.mean()) if len(finite) else float("nan")
    return SignificanceTest(
        name=name,
        observed=float(observed),
        p_value=min(factor * p, 1.0),
        p_value_error=factor * float(np.sqrt(p * (1 - p) / (tail.n_samples + 1))),
        z_score=difference / deviation if deviation else float("nan"),
        n_samples=len(values),
        stopped_early=len(values) < n,
        values=values,
        **settings,
    )


def count_tail(is_extreme: NDArray[np.bool_], stop_after: int | None) -> TailCount:
    """Return the count of extreme samples up to the one at which ``stop_after`` of them have been seen.

    >>> count_tail(np.array([True, False, True, True]), 2)
    TailCount(n_extreme=2, n_samples=3, is_complete=True)
    """
    counts = np.cumsum(is_extreme)
    if stop_after is None or not len(counts) or counts[-1] < stop_after:
        return TailCount(int(is_extreme.sum()), len(is_extreme), False)
    return TailCount(stop_after, int(np.searchsorted(counts, stop_after)) + 1, True)
