"""Monte Carlo tests of network statistics against a null model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.checks import check_choice, check_integer, create_axes
from nodecopy._core.imports import from_name, import_optional
from nodecopy._core.messages import ResultTable, warn_about_data
from nodecopy._core.random import Rng
from nodecopy.copying import NodeCopying
from nodecopy.errors import InputError
from nodecopy.generators import BlockConfigurationModel, ConfigurationModel, ErdosRenyi
from nodecopy.generators.classical import Structure, join_sides
from nodecopy.graph import Graph
from nodecopy.inference.bootstrapping import SIZE_OF_PLOT
from nodecopy.inference.donors import ClassCopying
from nodecopy.inference.resampling import BLOCK_MODELS, choose_sampler, label_blocks, start_sampling
from nodecopy.inference.statistics import Statistic, check_scalars, prepare_measure
from nodecopy.interactions import Interactions
from nodecopy.io import GraphLike
from nodecopy.metrics.significance import ALTERNATIVES, MonteCarloTest

NULL_MODELS: dict[str, Callable[[], Any]] = {
    "configuration": ConfigurationModel,
    "degree-corrected-blocks": BlockConfigurationModel,
    "erdos-renyi": lambda: ErdosRenyi(fixed_edges=True),
    "node-copying": ClassCopying,  # the default model of bootstrap
}
ROUNDING = 1e-12  # largest relative difference that counts as rounding


def null_test(
    graph: GraphLike | Interactions,
    statistic: Statistic,
    *,
    null: Any = "configuration",
    sides: ArrayLike | str | None = "detect",
    weights: str = "permute",
    alternative: str = "two-sided",
    n: int = 999,
    stop_after: int | None = 20,
    library: str | None = None,
    workers: int = 1,
    rng: Rng = None,
) -> SignificanceTests:
    """Test network statistics against a null model.

    Samples have the directions, self-loops, sides and weights of the graph, as ``kept`` of a result lists.

    The p-value is (h + 1) / (n + 1) if h of n samples are at least as extreme as the observed value. A
    one-sided test is exact, apart from ties, if no parameter is estimated: for ``"erdos-renyi"``,
    ``"configuration"`` and, with labels, ``"degree-corrected-blocks"``. The Markov chains of the last two
    start from one graph that such a chain reached from the observed graph, so that graph and samples are
    exchangeable (Besag and Clifford, 1989). A two-sided p-value is twice the smaller one-sided one.

    Parameters
    ----------
    graph
        The observed graph, or any object that :func:`.as_graph` converts, or :class:`.Interactions`.
    statistic
        As in :func:`.bootstrap`; each returns one number.
    null
        ``"configuration"`` (default; graphs with the same degrees), ``"erdos-renyi"`` (the same number of
        edges), ``"degree-corrected-blocks"`` (the same number of edges from each node to each block; blocks
        are the labels or the :func:`.spectral_communities`), ``"node-copying"`` (the default model of
        :func:`.bootstrap`; not of the stated size), a graph model or a donor rule.
    sides
        The two sides of a bipartite graph, between which all edges of the samples are: one of two values per
        node, or ``None`` for a graph whose samples need not be bipartite. By default sides are those of
        :class:`.Interactions`, or detected in a graph without odd cycles.
    weights
        How the weights of the graph are given to the edges of samples without weights: ``"permute"``
        (default) permutes them; ``"strengths"`` also keeps the sums of the weights of nodes approximately
        (Rubinov and Sporns, 2011), and the test is then approximate.
    alternative
        ``"two-sided"`` (default), ``"greater"`` or ``"less"``.
    n
        Largest number of samples, 999 by default.
    stop_after
        Sampling stops after this number of samples that are at least as extreme, 20 by default. The p-value
        is then 20 / l after l samples and remains exact (Besag and Clifford, 1991). ``None`` always draws
        ``n`` samples.
    library, workers, rng
        As in :func:`.bootstrap`.

    Examples
    --------
    >>> from nodecopy import datasets, inference
    >>> club, settings = datasets.load("karate"), {"null": "erdos-renyi", "alternative": "greater"}
    >>> results = inference.null_test(club, "modularity", **settings, n=99, rng=0)
    >>> results["modularity"].p_value
    0.01
    """
    check_integer(n, "n of null_test", low=1)
    check_choice(alternative, "alternative of null_test", ALTERNATIVES)
    if stop_after is not None:
        check_integer(stop_after, "stop_after of null_test", low=1)
    null = from_name(null, NULL_MODELS, "null of null_test")
    check_choice(weights, "weights of null_test", ("permute", "strengths"))
    if isinstance(graph, Interactions):
        sides = np.repeat([0, 1], graph.matrix.shape) if isinstance(sides, str) else sides
        graph = _join_ids(graph)
    observed, measure = prepare_measure(statistic, graph, library, fixed_number=False)
    structure = Structure.of(observed, sides, weights)
    values = measure(observed)
    check_scalars(values, "tested")
    for name, value in values.items():
        if not np.isfinite(value):
            got = f"{name} of the graph is {value!r}. Test others."
            raise InputError("statistic", f"must be finite to be tested; {got}")
    settings: dict[str, Any] = {"n": n, "workers": workers, "rng": rng}
    given = choose_sampler(null, "edges")
    blocks = label_blocks(observed) if isinstance(given, BLOCK_MODELS) else observed
    model, labelled = structure.adapt(given, blocks)
    sampler, draw, samples = start_sampling(
        labelled, measure, model, call="null_test", finish=structure.restore, **settings
    )
    kept = structure.list_kept([draw(0), draw(1)], repr(given))
    if isinstance(sampler, (NodeCopying, ClassCopying)):
        warn_about_data(
            "samples of node copying are centred near the observed graph, so that the test is not of the "
            "stated size. Use the null model 'configuration' or 'degree-corrected-blocks'."
        )
    tests = {name: MonteCarloTest(float(value), alternative, stop_after) for name, value in values.items()}
    rows: dict[str, list[float]] = {name: [] for name in values}
    for sample in samples:
        check_scalars(sample, "tested", " in a sample")
        for name, value in sample.items():
            rows[name].append(float(value))
            tests[name].add(float(value))
        if all(test.is_clear for test in tests.values()):
            break
    about: dict[str, Any] = {"null": repr(given), "alternative": alternative, "kept": kept}
    return SignificanceTests(
        tuple(_summarise(name, test, np.array(rows[name]), n, **about) for name, test in tests.items())
    )


def _join_ids(table: Interactions) -> Graph:
    """Return the bipartite graph of users and items, with their ids if those are distinct."""
    ids = np.concatenate([table.user_ids.astype(object), table.item_ids.astype(object)])
    is_distinct = len({*ids.tolist()}) == len(ids) and table.user_ids.dtype.kind == table.item_ids.dtype.kind
    return join_sides(table.matrix, ids.astype(table.user_ids.dtype) if is_distinct else None)


def _summarise(
    name: str, test: MonteCarloTest, values: NDArray[np.float64], n: int, **settings: Any
) -> SignificanceTest:
    """Return the result for one statistic; warn if values are undefined or all equal the observed one."""
    finite = values[np.isfinite(values)]
    if n_undefined := len(values) - len(finite):
        warn_about_data(
            f"{name} is undefined in {n_undefined} of {len(values)} samples, which count as extreme, so that "
            "the p-value may be too large."
        )
    deviation = float(finite.std(ddof=1)) if len(finite) > 1 else float("nan")
    difference = float(test.observed - finite.mean()) if len(finite) else float("nan")
    p_value, p_value_error = test.p_value, test.p_value_error
    rounding = ROUNDING * abs(test.observed)
    if deviation <= rounding:
        deviation = 0.0
        if abs(difference) <= rounding:
            p_value = p_value_error = float("nan")
            warn_about_data(f"{name} is as observed in all samples of the null model: it cannot be tested.")
    z_score = difference / deviation if deviation else float("nan")
    counts: dict[str, Any] = {"n_samples": len(values), "stopped_early": len(values) < n, "values": values}
    return SignificanceTest(name, test.observed, p_value, p_value_error, z_score, **settings, **counts)


@dataclass(frozen=True)
class SignificanceTest:
    """The test of one statistic."""

    name: str
    observed: float
    p_value: float
    """NaN if all samples have the observed value."""
    p_value_error: float
    """The Monte Carlo standard error of the p-value."""
    z_score: float
    """The observed value minus the mean of the samples, over their standard deviation."""
    null: str
    alternative: str
    kept: tuple[str, ...]
    """What the samples share with the graph."""
    n_samples: int
    stopped_early: bool
    values: NDArray[np.float64] = field(repr=False, compare=False)
    """The null distribution: the values in the samples."""

    @property
    def question(self) -> str:
        """Return the question that the p-value answers."""
        return self._ask(self.name)

    def _ask(self, name: str) -> str:
        side = {"two-sided": "as extreme", "greater": "as large", "less": "as small"}[self.alternative]
        same = f" with the same {', '.join(self.kept)}" if self.kept else ""
        return f"How often is {name} {side} as observed in graphs of {self.null}{same}?"

    def __repr__(self) -> str:
        return repr(SignificanceTests((self,)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings, ready for JSON."""
        names = [name for name in self.__dataclass_fields__ if name != "values"]
        return {name: getattr(self, name) for name in names} | {"null_mean": float(self.values.mean())}


@dataclass(frozen=True, repr=False)
class SignificanceTests(ResultTable[SignificanceTest]):
    """Tests against one null model; iterating yields one :class:`SignificanceTest` per statistic."""

    heads = ("statistic", "observed", "mean of the null", "z", "p-value", "Monte Carlo error", "samples")
    tests: tuple[SignificanceTest, ...]

    def notes(self) -> tuple[list[str], list[str]]:
        names = "each statistic" if len(self.tests) > 1 else self.tests[0].name
        return [self.tests[0]._ask(names)], []

    def cells(self) -> Iterator[list[Any]]:
        """Yield the cells of the printed rows."""
        for row in self:
            p_value = [row.z_score, row.p_value, row.p_value_error, row.n_samples]
            yield [row.name, row.observed, float(row.values.mean()), *p_value]

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings, ready for JSON."""
        return {result.name: result.to_dict() for result in self.tests}

    def to_pandas(self) -> Any:
        """Return a data frame with a row per statistic."""
        pandas = import_optional("pandas", "SignificanceTests.to_pandas")
        return pandas.DataFrame([result.to_dict() for result in self.tests]).set_index("name")

    def plot(self, axes: Any = None) -> Any:
        """Draw the null distribution and the observed value of each statistic, and return the axes."""
        places = create_axes(axes, "SignificanceTests.plot", SIZE_OF_PLOT, (len(self.tests),))
        for place, result in zip(places, self.tests, strict=True):
            place.hist(result.values[np.isfinite(result.values)], bins=30, color="#88c0d0")
            place.axvline(result.observed, color="#bf616a")
            place.set(title=f"{result.name}, p = {result.p_value:.2g}", yticks=[])
        return places if len(places) > 1 else places[0]
