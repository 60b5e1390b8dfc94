"""Tests whether a statistic of a network is what a null model explains."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.checks import check_choice, check_integer
from nodecopy._core.files import PathLike
from nodecopy._core.imports import check_name, import_optional
from nodecopy._core.messages import warn_about_data
from nodecopy._core.random import Rng
from nodecopy.copying import NodeCopying
from nodecopy.errors import InputError
from nodecopy.generators import BlockConfigurationModel, ConfigurationModel, ErdosRenyi
from nodecopy.inference.diagnosis import ROUNDING
from nodecopy.inference.donors import DirectedCopying
from nodecopy.inference.resampling import Sampler, start_sampling
from nodecopy.inference.statistics import Statistic, prepare_measure
from nodecopy.io import GraphLike
from nodecopy.metrics.significance import ALTERNATIVES, MonteCarloTest

NULL_MODELS: dict[str, Callable[[], Sampler | None]] = {
    "configuration": ConfigurationModel,
    "degree-corrected-blocks": BlockConfigurationModel,
    "erdos-renyi": lambda: ErdosRenyi(fixed_edges=True),
    "node-copying": lambda: None,  # the default of intervals
}


@dataclass(frozen=True)
class SignificanceTest:
    """The test of one statistic.

    Examples
    --------
    >>> from nodecopy import datasets, inference
    >>> results = inference.null_test(datasets.load("karate"), "transitivity", n=99, rng=0)
    >>> results["transitivity"].question
    'How often is transitivity as far out as observed in graphs of ConfigurationModel()?'
    """

    name: str
    observed: float
    p_value: float
    """NaN if all samples have the observed value, since the test says nothing then."""
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
    >>> results = inference.null_test(datasets.load("karate"), ["transitivity", "assortativity"], n=99, rng=0)
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


def null_test(
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
        are the labels or, without labels, communities of :func:`.spectral_communities`), ``"node-copying"``
        (the default of :func:`.bootstrap`; it does not keep the level, with a warning), a graph model or a
        donor rule.
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
    >>> results = inference.null_test(club, "modularity", null="erdos-renyi", alternative="greater", n=99, rng=0)
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
                "statistic",
                f"must be a number to be tested; {name} has {np.size(value)} values. Give a "
                "function that returns one of them, such as their maximum.",
            )
        if not np.isfinite(value):
            raise InputError(
                "statistic", f"must be finite to be tested; {name} of the graph is {value!r}. Test others."
            )
    sampling = start_sampling(
        observed,
        measure,
        values,
        null,
        call="test",
        n=n,
        workers=workers,
        processes=processes,
        store=store,
        rng=rng,
    )
    if isinstance(sampling.sampler, (NodeCopying, DirectedCopying)):
        warn_about_data(
            "samples of node copying are centred near the observed graph, so that the test does not keep its "
            "level, and mostly rejects too rarely. Use another null model."
        )
    counts = {name: MonteCarloTest(float(value), alternative, stop_after) for name, value in values.items()}
    rows: dict[str, list[float]] = {name: [] for name in values}
    for sample in sampling.samples:
        for name, value in sample.items():
            if np.ndim(value):
                raise InputError(
                    "statistic", f"must be a number to be tested; {name} has {np.size(value)} in a sample."
                )
            rows[name].append(float(value))
            counts[name].add(float(value))
        if all(count.is_clear for count in counts.values()):
            break
    settings = {"null": repr(sampling.sampler), "alternative": alternative}
    return SignificanceTests(
        tuple(_summarise(name, count, np.array(rows[name]), n, settings) for name, count in counts.items())
    )


def _summarise(
    name: str, count: MonteCarloTest, values: NDArray[np.float64], n: int, settings: dict[str, str]
) -> SignificanceTest:
    """Return the test of one statistic, after a warning if some samples have an undefined value."""
    finite = values[np.isfinite(values)]
    if n_undefined := len(values) - len(finite):
        warn_about_data(
            f"{name} is undefined in {n_undefined} of {len(values)} samples, which count as extreme: the "
            "p-value is too large, rather than too small."
        )
    deviation = float(finite.std(ddof=1)) if len(finite) > 1 else float("nan")
    difference = float(count.observed - finite.mean()) if len(finite) else float("nan")
    p_value, p_value_error = count.p_value, count.p_value_error
    if deviation <= ROUNDING * abs(count.observed):
        deviation = 0.0
        if abs(difference) <= ROUNDING * abs(count.observed):
            p_value = p_value_error = float("nan")
            warn_about_data(f"{name} is as observed in all samples of the null model: the test says nothing.")
    return SignificanceTest(
        name=name,
        observed=count.observed,
        p_value=p_value,
        p_value_error=p_value_error,
        z_score=difference / deviation if deviation else float("nan"),
        n_samples=len(values),
        stopped_early=len(values) < n,
        values=values,
        **settings,
    )
