"""Bootstrap standard errors and confidence intervals for statistics of one network, and for differences."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.checks import check_choice, check_integer, check_real, create_axes, show
from nodecopy._core.imports import import_optional
from nodecopy._core.messages import (
    ResultTable,
    log_decision,
    log_decisions_once,
    mute_data_warnings,
    warn_about_data,
)
from nodecopy._core.random import Rng, child, seed_sequence
from nodecopy.copying.networks import annotate
from nodecopy.errors import InputError
from nodecopy.inference.diagnosis import (
    ADVICE,
    MAX_ENTRIES,
    N_CHECKED,
    Diagnostic,
    Validity,
    calibrate,
    check_validity,
    diagnose,
    next_model,
)
from nodecopy.inference.resampling import (
    CALIBRATION_SEED,
    GRAPHS_SEED,
    MODELS,
    collect_values,
    start_sampling,
)
from nodecopy.inference.statistics import Floats, Statistic, check_scalars, find_library, prepare_measure
from nodecopy.io import GraphLike

METHODS = ("basic", "percentile", "normal")
QUESTIONS = {
    "edges": "How much would the statistic vary if the edges were resampled for the same nodes?",
    "nodes": "How much would the statistic vary if the nodes were resampled from their population?",
}
MIN_DEFINED = 20  # samples in which a value of a node or edge must be defined to have an interval
MAX_ROWS = 10  # nodes or edges of a statistic that are printed
SIZE_OF_PLOT = (3.2, 2.6)  # of a statistic, in inches
VALUES_AT_ONCE = 2**21  # values of an array that are copied at once, to save memory


def bootstrap(
    graph: GraphLike,
    statistic: Statistic,
    *,
    model: Any = None,
    n: int = 500,
    confidence: float = 0.95,
    method: str = "basic",
    resample: str = "edges",
    simultaneous: bool = False,
    levels: int = 1,
    validity: bool | None = None,
    library: str | None = None,
    workers: int = 1,
    rng: Rng = None,
) -> BootstrapResult:
    """Return standard errors and confidence intervals for statistics of one network.

    An interval is for the expected value of the statistic under the distribution that generated the network.
    It lies around the observed value, an unbiased estimate if the statistic was chosen in advance; the
    samples determine its width.

    Parameters
    ----------
    graph
        The observed graph, or any object that :func:`.as_graph` converts.
    statistic
        A name (see :func:`.statistic_names`), a function of a graph, several of them, or a dictionary of
        functions by name, which gives a lambda its name in tables. A function returns a number, one number
        per node, or a mapping from nodes or edges to numbers; only a number with
        ``resample="nodes"``. An edge must be in at least 20 samples to have an interval. Modularity and block
        models use the labels or, without labels, the :func:`.spectral_communities`.
    model
        The model of the samples. For ``resample="edges"``: a graph model, a donor rule, or ``"sbm"``,
        ``"dc-sbm"``, ``"dot-product"`` or ``"node-copying"`` (default), which is :class:`.ClassCopying`. For
        ``resample="nodes"``:
        :class:`.NodeBootstrap` or ``"node-bootstrap"`` (default), :class:`.NodeSubsampling` or
        ``"subsampling"``, :class:`.LatentPositionBootstrap` or ``"latent-positions"``. ``"auto"`` tries
        these names until the samples represent the graph, and logs which one it took.
    n, confidence
        Number of samples, and confidence of the intervals.
    method
        ``"basic"`` (default): quantiles of the centred samples, reflected about the observed value.
        ``"normal"``: the observed value plus and minus 1.96 standard errors, for a confidence of 0.95.
        ``"percentile"``: quantiles of the samples, which inherit the bias of the samples.
    resample
        ``"edges"`` (default): for the same nodes. ``"nodes"``: from their population, with their edges.
    simultaneous
        Whether the intervals of a node statistic form a simultaneous band, which covers all nodes with the
        given confidence: the standard error times a quantile of the largest standardised deviation over
        nodes. It needs ``method="basic"``.
    levels
        2 for a double bootstrap, which draws about n more samples, of samples, and scales standard errors and
        intervals of numbers by what the method misses there. 1 by default, since the default model needs no
        second level; fitted models such as ``"dot-product"`` may.
    validity
        Whether the graph is compared with 19 samples by :class:`.Validity`; by default for at most 2^19
        entries and samples with the same nodes.
    library
        The library whose graphs functions receive: ``"nodecopy"``, ``"networkx"`` or ``"igraph"``; by default
        the one of ``graph``.
    workers
        Number of threads.
    rng
        Seed or generator.

    Examples
    --------
    >>> from nodecopy import SameLabel, datasets
    >>> from nodecopy.inference import bootstrap
    >>> club = datasets.load("karate")
    >>> result = bootstrap(club, ["density", "transitivity"], model=SameLabel(), n=100, rng=0)
    >>> round(result["transitivity"].observed, 3), result.resample
    (0.256, 'edges')

    A function of a NetworkX graph that returns one number per node:

    >>> from networkx import degree_centrality
    >>> settings = {"model": SameLabel(), "library": "networkx", "n": 20, "rng": 0}
    >>> len(bootstrap(club, degree_centrality, **settings)["degree_centrality"].low)
    34
    """
    if isinstance(model, str) and model == "auto":
        about = {"n": n, "confidence": confidence, "method": method, "resample": resample, "library": library}
        about |= {"simultaneous": simultaneous, "levels": levels, "validity": validity, "rng": rng}
        return _try_models(graph, statistic, workers=workers, **about)
    check_integer(n, "n of bootstrap", low=2)
    check_real(confidence, "confidence of bootstrap", low=0.01, high=0.9999)
    check_choice(method, "method of bootstrap", METHODS)
    check_choice(resample, "resample of bootstrap", QUESTIONS)
    if check_integer(levels, "levels of bootstrap", low=1, high=2) == 2 and resample == "nodes":
        raise InputError("levels", "must be 1 if nodes are resampled; got 2.")
    if simultaneous and method != "basic":
        raise InputError("method", f"must be 'basic' if intervals are simultaneous; got {show(method)}.")
    observed, measure = prepare_measure(statistic, graph, library, fixed_nodes=resample == "edges")
    observed_values = measure(observed)
    for name, value in observed_values.items():
        if resample == "nodes" and (name in measure.keys or np.shape(value) == (observed.n_nodes,)):
            got = f"{name} has a value per node or edge. Resample edges, or choose the largest value"
            raise InputError("statistic", f"must be a number if nodes are resampled; {got}.")
    settings: dict[str, Any] = {"n": n, "workers": workers, "rng": rng}
    seed = settings["rng"] = seed_sequence(rng)
    sampler, draw, samples = start_sampling(
        observed, measure, model, call="bootstrap", resample=resample, **settings
    )
    values = collect_values(samples, observed_values, n)
    calibration: dict[str, float] = {}
    if levels == 2:
        firsts = [draw(number) for number in range(ceil(n**0.5))]
        errors = calibrate(sampler, measure, firsts, child(seed, CALIBRATION_SEED), workers)
        deviations = {name: rows.std(ddof=1) for name, rows in values.items() if rows.ndim == 1}
        calibration = {
            name: float(deviation / errors[name])
            for name, deviation in deviations.items()
            if deviation > 0 and errors[name] > 0
        }
    factor = getattr(sampler, "deviation_factor", 1.0)
    intervals: dict[str, Any] = {"confidence": confidence, "method": method, "simultaneous": simultaneous}
    estimates = tuple(
        estimate_interval(name, value, values[name], factor=factor * calibration.get(name, 1.0), **intervals)
        for name, value in observed_values.items()
    )
    sample = draw(0) if resample == "edges" else None
    problems = diagnose(sampler, estimates, values, sample)
    check = None
    is_small = observed.rows.n_entries <= MAX_ENTRIES
    if resample == "edges" and (is_small if validity is None else validity):
        check = check_validity(observed, [draw(number) for number in range(min(n, N_CHECKED))])
        if check.is_doubtful:
            other = next_model(sampler)
            problems.append(Diagnostic(None, f"{check}. {ADVICE.format(other)}", other))
    n_needed = int(np.ceil(2 / (1 - confidence) - 1 - 1e-6))  # for both quantiles; less rounding
    if method != "normal" and n < n_needed:
        text = f"{n} samples are too few for intervals with a confidence of {confidence:g}."
        problems.append(Diagnostic(None, f"{text} Draw at least {n_needed}."))
    if measure.estimates_communities:
        text = (
            "modularity uses communities that are estimated from each sample, so that its standard error may "
            "be too small, and is zero if there is one community. Give labels if groups are known."
        )
        problems.append(Diagnostic("modularity", text))
    for problem in problems:
        warn_about_data(problem.text)
    return BootstrapResult(
        estimates,
        n,
        resample=resample,
        model=repr(sampler),
        deviation_factor=factor,
        calibration=calibration,
        validity=check,
        node_ids=observed.node_ids,
        keys=measure.keys,
        values=values,
        problems=tuple(problems),
        **intervals,
    )


def _try_models(graph: GraphLike, statistic: Statistic, **settings: Any) -> BootstrapResult:
    """Return the result of the first model whose samples represent the graph, or of the nearest to that."""
    settings["rng"] = seed_sequence(settings["rng"])
    check_choice(settings["resample"], "resample of bootstrap", QUESTIONS)
    results: dict[str, tuple[int, BootstrapResult]] = {}
    for name in MODELS[settings["resample"]]:
        with mute_data_warnings(), log_decisions_once():
            result = bootstrap(graph, statistic, model=name, **settings)
        results[name] = sum(problem.next_model is not None for problem in result.problems), result
        if not results[name][0]:
            break
    name = min(results, key=lambda name: results[name][0])
    failed = [f"{other} does not represent the graph" for other in results if results[other][0]]
    log_decision(f"model: {'; '.join([name, *failed])}.", "model")
    result = results[name][1]
    for problem in result.problems:
        warn_about_data(problem.text)
    return result


class Estimate(NamedTuple):
    """One statistic: numbers, or arrays with one number per node or edge.

    ``bias`` is the mean of the samples minus the observed value; only the method ``"percentile"`` adds it.
    """

    name: str
    observed: float | Floats
    standard_error: float | Floats
    bias: float | Floats
    low: float | Floats
    high: float | Floats

    @property
    def is_array(self) -> bool:
        """Return whether there is a value for every node or edge."""
        return np.ndim(self.observed) > 0


@dataclass(frozen=True, repr=False)
class BootstrapResult(ResultTable[Estimate]):
    """Estimates with confidence intervals; iterating yields one :class:`Estimate` per statistic."""

    heads = ("statistic", "observed", "standard error", "bias", "low", "high")
    estimates: tuple[Estimate, ...]
    n: int
    confidence: float
    method: str
    resample: str
    model: str
    """The model of the samples."""
    simultaneous: bool
    node_ids: NDArray[Any] = field(repr=False)
    values: Mapping[str, Floats] = field(repr=False)
    """The values of each statistic, one row per sample."""
    keys: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The nodes or edges of statistics that are mappings; other arrays belong to ``node_ids``."""
    problems: tuple[Diagnostic, ...] = ()
    """Reasons not to trust an interval, which were also given as warnings."""
    deviation_factor: float = 1.0
    """Factor of the deviations of samples from their mean."""
    calibration: Mapping[str, float] = field(default_factory=dict, repr=False)
    """Further factors by statistic, of a double bootstrap."""
    validity: Validity | None = None
    """Whether the observed graph could be one of the samples."""

    @property
    def question(self) -> str:
        """Return the question that the intervals answer."""
        return QUESTIONS[self.resample]

    def notes(self) -> tuple[list[str], list[str]]:
        band = "a simultaneous band, " if self.simultaneous else ""
        about = f"{self.n:,} samples of {self.model}; {band}{self.confidence:.0%} intervals, {self.method}"
        sizes = {estimate.name: np.size(estimate.observed) for estimate in self if estimate.is_array}
        cut = [
            f"{name}: the {MAX_ROWS} largest of {size:,} {self._kind_of(name)}"
            for name, size in sizes.items()
            if size > MAX_ROWS
        ]
        return [self.question, about], cut if self.validity is None else [*cut, str(self.validity)]

    def cells(self) -> Iterator[list[Any]]:
        """Yield the cells of the printed rows; for nodes and edges, those of the largest values."""
        for estimate in self:
            numbers = [np.atleast_1d(part) for part in estimate[1:]]
            for place in np.argsort(-numbers[0], kind="stable")[:MAX_ROWS].tolist():
                owner = f" of {self.keys_of(estimate.name)[place]}" if estimate.is_array else ""
                yield [estimate.name + owner, *(float(part[place]) for part in numbers)]

    def scaled_values(self, name: str) -> Floats:
        """Return the values of a statistic with the spread of its standard error, one row per sample."""
        values, factor = self.values[name], self.deviation_factor * self.calibration.get(name, 1.0)
        mean = values.mean(axis=0)
        return values if factor == 1 else np.asarray(mean + factor * (values - mean))

    def keys_of(self, name: str) -> Any:
        """Return the nodes, or the edges as pairs of nodes, of the values of a statistic."""
        size = np.size(self[name].observed)
        return self.keys.get(name, self.node_ids if size == len(self.node_ids) else range(size))

    def _kind_of(self, name: str) -> str:
        is_of_edges = name in self.keys and all(isinstance(key, tuple) for key in self.keys[name])
        return "edges" if is_of_edges else "nodes"

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, lists and strings, ready for JSON."""
        rows = {}
        for estimate in self:
            parts = estimate._asdict()
            name = parts.pop("name")
            rows[name] = {part: np.asarray(value).tolist() for part, value in parts.items()}
            if estimate.is_array:
                # JSON has lists instead of pairs.
                rows[name][self._kind_of(name)] = np.asarray(self.keys_of(name)).tolist()
        names = ("n", "confidence", "method", "simultaneous", "resample", "model", "question")
        settings = {name: getattr(self, name) for name in names} | {"calibration": dict(self.calibration)}
        settings["validity"] = None if self.validity is None else self.validity.to_dict()
        return {**settings, "statistics": rows, "problems": [problem._asdict() for problem in self.problems]}

    def to_pandas(self) -> Any:
        """Return a data frame with a row per statistic, and per node or edge for statistics of those."""
        pandas = import_optional("pandas", "BootstrapResult.to_pandas")
        frames = []
        for estimate in self:
            keys = list(self.keys_of(estimate.name)) if estimate.is_array else [None]
            columns = {part: np.atleast_1d(value) for part, value in list(estimate._asdict().items())[1:]}
            frames.append(pandas.DataFrame({"statistic": estimate.name, "node": keys, **columns}))
        table = pandas.concat(frames, ignore_index=True)
        if not any(estimate.is_array for estimate in self):
            return table.drop(columns="node").set_index("statistic")
        return table.set_index(["statistic", "node"])

    def top_share(self, k: int, name: str | None = None) -> Floats:
        """Return, for each node, the share of samples in which it is among the ``k`` largest.

        The bias of each node is subtracted first, because node copying shrinks the degrees of hubs. Ties go
        to the lower position. ``name`` is a node statistic; needed if there are several.
        """
        values = self._centred_values(name)
        check_integer(k, "k of top_share", low=1, high=values.shape[1], high_name="n_nodes")
        top = np.argsort(-values, axis=1, kind="stable")[:, :k]
        return np.bincount(top.ravel(), minlength=values.shape[1]) / len(values)

    def rank_interval(self, name: str | None = None) -> tuple[Floats, Floats]:
        """Return the lowest and highest rank of each node in the central ``confidence`` of the samples.

        The largest value has rank 1. Bias and ``name`` are as in :meth:`top_share`. The coverage has not been
        measured.
        """
        order = np.argsort(-self._centred_values(name), axis=1, kind="stable")
        ranks = np.argsort(order, axis=1) + 1
        low, high = np.quantile(ranks, _tails(self.confidence), axis=0, method="inverted_cdf")
        return low, high

    def _centred_values(self, name: str | None) -> Floats:
        names = [estimate.name for estimate in self if estimate.is_array]
        if name is None and len(names) == 1:
            name = names[0]
        if name in names and self._kind_of(name) == "edges":
            raise InputError("name", f"must be a statistic of nodes; {name} is of edges.")
        if name not in names or self.resample != "edges":
            raise InputError("name", f"must be a statistic of given nodes, one of {names}; got {name!r}.")
        return np.asarray(self.values[name] - self[name].bias)

    def annotate(self, network: Any) -> Any:
        """Return a copy of a NetworkX or igraph graph with values and intervals as attributes.

        ``network`` is the graph that was given to :func:`.bootstrap`. A statistic ``x`` becomes the
        attributes ``x``, ``x_low`` and ``x_high`` of the graph, of its nodes or of its edges.
        """
        position_of = {node: position for position, node in enumerate(self.node_ids.tolist())}
        attributes: list[tuple[str, Any, list[Any]]] = []
        for row in self:
            keys = self.keys_of(row.name) if row.is_array else ()
            if self._kind_of(row.name) == "edges":
                places: list[Any] = [tuple(position_of.get(end, end) for end in edge) for edge in keys]
            else:
                places = [position_of.get(node, node) for node in keys]
            for suffix, value in (("", row.observed), ("_low", row.low), ("_high", row.high)):
                attributes.append((row.name + suffix, np.asarray(value).tolist(), places))
        return annotate(network, attributes)

    def plot(self, axes: Any = None) -> Any:
        """Draw samples and intervals on axes of matplotlib, one per statistic, and return the axes."""
        places = create_axes(axes, "BootstrapResult.plot", SIZE_OF_PLOT, (len(self.estimates),))
        for place, estimate in zip(places, self, strict=True):
            if estimate.is_array:
                order = np.argsort(estimate.observed, kind="stable")
                parts = (estimate.observed, estimate.low, estimate.high)
                observed, low, high = (np.asarray(part)[order] for part in parts)
                place.fill_between(range(len(order)), low, high, color="#a3be8c", alpha=0.4, step="mid")
                place.plot(observed, color="#2e3440")
                place.set_xlabel(f"{self._kind_of(estimate.name)}, in ascending order")
            else:
                centred = self.scaled_values(estimate.name) - estimate.bias
                place.hist(centred[np.isfinite(centred)], bins=30, color="#88c0d0")
                place.axvline(estimate.observed, color="#2e3440")
                place.axvspan(estimate.low, estimate.high, color="#a3be8c", alpha=0.3)
                place.set_yticks([])
            place.set_title(estimate.name, fontsize="medium")
        return places if len(places) > 1 else places[0]


def estimate_interval(
    name: str,
    observed: Any,
    values: Floats,
    *,
    confidence: float,
    method: str,
    factor: float = 1.0,
    simultaneous: bool = False,
) -> Estimate:
    """Return the estimate of a statistic, given its values in the samples."""
    settings: dict[str, Any] = {"confidence": confidence, "method": method, "factor": factor}
    if not np.ndim(observed):
        return Estimate(name, observed, *map(float, _estimate(observed, values, None, **settings)))
    step = max(VALUES_AT_ONCE // max(len(values), 1), 1)
    blocks = [slice(first, first + step) for first in range(0, max(values.shape[1], 1), step)]
    ratio = None
    if simultaneous:
        largest = [_largest_ratios(values[:, block], factor) for block in blocks]
        ratio = float(np.quantile(np.max(largest, axis=0), confidence, method="weibull"))
    parts = [_estimate(observed[block], values[:, block], ratio, **settings) for block in blocks]
    return Estimate(name, observed, *(np.concatenate(part) for part in zip(*parts, strict=True)))


def _estimate(
    observed: Any, values: Floats, ratio: float | None, *, confidence: float, method: str, factor: float
) -> tuple[Any, Any, Any, Any]:
    """Return standard error, bias and interval; ``ratio`` is the half-width of a simultaneous band."""
    from scipy.special import ndtri

    deviations, mean, error = _deviations(values, factor)
    if ratio is not None or method == "normal":
        width = (float(ndtri(_tails(confidence)[1])) if ratio is None else ratio) * error
        return error, mean - observed, observed - width, observed + width
    quantile = np.nanquantile if np.isnan(deviations).any() else np.quantile
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # columns of nan
        lower, upper = quantile(deviations, _tails(confidence), axis=0, method="weibull")
    if method == "basic":
        return error, mean - observed, observed - upper, observed - lower
    return error, mean - observed, mean + lower, mean + upper


def _deviations(values: Floats, factor: float) -> tuple[Floats, Any, Any]:
    """Return the scaled deviations from the mean, the mean and the standard error; NaN with few values."""
    if values.ndim > 1 and not np.isfinite(values).all():
        is_rare = np.isfinite(values).sum(axis=0) < MIN_DEFINED
        values = np.where(is_rare | ~np.isfinite(values), np.nan, values)
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # columns of nan
            mean = np.nanmean(values, axis=0)
            deviations = (values - mean) * factor
            return deviations, mean, np.nanstd(deviations, axis=0, ddof=1)
    mean = values.mean(axis=0)
    deviations = (values - mean) * factor
    return deviations, mean, deviations.std(axis=0, ddof=1)


def _largest_ratios(values: Floats, factor: float) -> Floats:
    """Return the largest deviation in each sample, in standard errors."""
    deviations, _, error = _deviations(values, factor)
    ratios = np.abs(deviations) / np.where(error > 0, error, 1.0)
    return np.asarray(np.nan_to_num(ratios).max(axis=1, initial=0.0))


def _tails(confidence: float) -> list[float]:
    return [(1 - confidence) / 2, (1 + confidence) / 2]


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
        ``library`` (by default that of ``first``), ``workers``.

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
    """One statistic of two graphs: the first minus the second, with its confidence interval."""

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
    """Differences between two graphs; iterating yields one :class:`Difference` per statistic."""

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
