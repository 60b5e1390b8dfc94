"""What a bootstrap returns: estimates with intervals, and which question they answer."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.checks import check_integer
from nodecopy._core.imports import import_optional
from nodecopy.copying.networks import Attribute, annotate
from nodecopy.errors import InputError

QUESTIONS = {
    "edges": "How much would the statistic vary if the edges were drawn again and the nodes stayed?",
    "nodes": "How much would the statistic vary if nodes were drawn again from their population?",
}
Value = float | NDArray[np.float64]


class Estimate(NamedTuple):
    """One statistic: a number each, or an array of one number per node or edge.

    ``bias`` is the mean of the samples minus the observed value. The interval is not moved by it, unless the
    method is ``"percentile"``.

    Examples
    --------
    >>> from nodecopy.inference import Estimate
    >>> Estimate("density", 0.2, standard_error=0.01, bias=0.0, low=0.18, high=0.22).is_array
    False
    """

    name: str
    observed: Value
    standard_error: Value
    bias: Value
    low: Value
    high: Value

    @property
    def is_array(self) -> bool:
        """Return whether there is a value for every node or edge."""
        return np.ndim(self.observed) > 0


class Diagnostic(NamedTuple):
    """A reason not to trust an interval.

    Examples
    --------
    >>> from nodecopy.inference import Diagnostic
    >>> print(Diagnostic("max_degree", "max_degree depends on few nodes."))
    max_degree depends on few nodes.
    """

    statistic: str | None
    """The statistic whose interval is meant; ``None`` if those of all are."""
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class BootstrapResult:
    """Estimates with intervals; iterating yields one :class:`Estimate` per statistic.

    Examples
    --------
    >>> from nodecopy import SameLabel, datasets
    >>> from nodecopy.inference import bootstrap
    >>> result = bootstrap(datasets.load("karate"), "transitivity", model=SameLabel(), n=50, rng=0)
    >>> result.question
    'How much would the statistic vary if the edges were drawn again and the nodes stayed?'
    >>> estimate = result["transitivity"]
    >>> bool(estimate.low < estimate.observed < estimate.high)
    True
    """

    estimates: tuple[Estimate, ...]
    n: int
    level: float
    method: str
    target: str
    model: str
    """How samples were drawn."""
    simultaneous: bool
    node_ids: NDArray[Any] = field(repr=False)
    values: Mapping[str, NDArray[np.float64]] = field(repr=False)
    """The values of each statistic, one row per sample."""
    keys: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The nodes or edges of statistics that are mappings; others are of ``node_ids``."""
    problems: tuple[Diagnostic, ...] = ()
    """Reasons not to trust an interval, which were also given as warnings."""
    deviation_factor: float = 1.0
    """What deviations of samples from their mean are multiplied by."""

    @property
    def question(self) -> str:
        """Return the question that the intervals answer."""
        return QUESTIONS[self.target]

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self.estimates)

    def __getitem__(self, name: str) -> Estimate:
        return {estimate.name: estimate for estimate in self.estimates}[name]

    def __repr__(self) -> str:
        head = f"{self.question}\n{self.n} samples of {self.model}; {self.level:.0%} intervals, {self.method}"
        lines = [self._describe(estimate) for estimate in self.estimates]
        return "\n".join([head, *lines, *(f"Warning: {problem}" for problem in self.problems)])

    def scaled_values(self, name: str) -> NDArray[np.float64]:
        """Return the values of a statistic with the spread of its estimates, one row per sample."""
        values = self.values[name]
        if self.deviation_factor == 1:
            return values
        mean = values.mean(axis=0)
        return np.asarray(mean + self.deviation_factor * (values - mean))

    def _describe(self, estimate: Estimate) -> str:
        if estimate.is_array:
            kind = "a simultaneous band" if self.simultaneous else "an interval each"
            what = "edges" if self._is_of_edges(estimate.name) else "nodes"
            return f"{estimate.name}: {np.size(estimate.observed)} {what}, {kind}"
        _, observed, error, bias, low, high = estimate
        return (
            f"{estimate.name}: {observed:.4g}, standard error {error:.3g}, "
            f"interval {low:.4g} to {high:.4g}, bias {bias:.2g}"
        )

    def keys_of(self, name: str) -> Any:
        """Return the nodes, or the edges as pairs of nodes, that the values of a statistic belong to."""
        values = np.atleast_1d(self[name].observed)
        return self.keys.get(name, self.node_ids if len(values) == len(self.node_ids) else range(len(values)))

    def _is_of_edges(self, name: str) -> bool:
        return name in self.keys and all(isinstance(key, tuple) for key in self.keys[name])

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, lists and strings, ready for JSON."""
        rows = {}
        for estimate in self:
            parts = estimate._asdict()
            name = parts.pop("name")
            rows[name] = {part: np.asarray(value).tolist() for part, value in parts.items()}
            if estimate.is_array:
                keys = np.asarray(self.keys_of(name)).tolist()  # pairs of nodes become lists, ready for JSON
                rows[name]["edges" if self._is_of_edges(name) else "nodes"] = keys
        names = ("n", "level", "method", "simultaneous", "target", "model", "question")
        settings = {name: getattr(self, name) for name in names}
        return {**settings, "statistics": rows, "problems": [problem._asdict() for problem in self.problems]}

    def to_pandas(self) -> Any:
        """Return a data frame with a row per statistic, and per node where statistics are of nodes."""
        pandas = import_optional("pandas", "BootstrapResult.to_pandas")
        frames = []
        for estimate in self.estimates:
            nodes = list(self.keys_of(estimate.name)) if estimate.is_array else [None]
            columns = {
                name: np.atleast_1d(value)
                for name, value in zip(Estimate._fields[1:], estimate[1:], strict=True)
            }
            frames.append(pandas.DataFrame({"statistic": estimate.name, "node": nodes, **columns}))
        table = pandas.concat(frames, ignore_index=True)
        if not any(estimate.is_array for estimate in self.estimates):
            return table.drop(columns="node").set_index("statistic")
        return table.set_index(["statistic", "node"])

    def top_share(self, k: int, name: str | None = None) -> NDArray[np.float64]:
        """Return, for each node, the share of samples in which it is among the ``k`` largest.

        The values of each node are moved to have the observed value as their mean: samples of node copying
        draw hubs towards the others.

        Parameters
        ----------
        k
            Number of nodes at the top of the ranking; ties go to the lower position.
        name
            A statistic of nodes; needed if there are several.
        """
        values = self._centred_values(name)
        check_integer(k, "k of top_share", low=1, high=values.shape[1], high_name="n_nodes")
        top = np.argsort(-values, axis=1, kind="stable")[:, :k]
        return np.bincount(top.ravel(), minlength=values.shape[1]) / len(values)

    def rank_interval(self, name: str | None = None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return, for each node, the ranks between which it lies in a share ``level`` of the samples.

        Values are moved as by :meth:`top_share`. The interval is one of quantiles, and its coverage has not
        been measured.

        Parameters
        ----------
        name
            A statistic of nodes; needed if there are several. The largest value has rank 1.
        """
        order = np.argsort(-self._centred_values(name), axis=1, kind="stable")
        ranks = np.argsort(order, axis=1) + 1
        tails = [(1 - self.level) / 2, (1 + self.level) / 2]
        low, high = np.quantile(ranks, tails, axis=0, method="inverted_cdf")
        return low, high

    def _centred_values(self, name: str | None) -> NDArray[np.float64]:
        """Return the values of a statistic of nodes minus its bias."""
        names = [estimate.name for estimate in self.estimates if estimate.is_array]
        if name is None and len(names) == 1:
            name = names[0]
        if name in names and self._is_of_edges(name):
            raise InputError(
                "name",
                f"must be a statistic of nodes; {name} is of edges, which have no rank in samples "
                "without them.",
            )
        if name not in names or self.target != "edges":
            raise InputError("name", f"must be a statistic of given nodes, one of {names}; got {name!r}.")
        return np.asarray(self.values[name] - self[name].bias)

    def annotate(self, network: Any) -> Any:
        """Return a copy of a NetworkX or igraph graph with values and intervals as attributes.

        A statistic ``x`` becomes the attributes ``x``, ``x_low`` and ``x_high`` of the graph, of its nodes or
        of its edges.

        Parameters
        ----------
        network
            The graph that was given to :func:`.bootstrap`; it is not changed.
        """
        return annotate(network, self._attributes())

    def _attributes(self) -> Iterator[Attribute]:
        position_of = {node: position for position, node in enumerate(self.node_ids.tolist())}
        for row in self.estimates:
            kind: Any = "edge" if self._is_of_edges(row.name) else "node" if row.is_array else "graph"
            places = [
                tuple(position_of.get(end, end) for end in key)
                if kind == "edge"
                else position_of.get(key, key)
                for key in (self.keys_of(row.name) if row.is_array else ())
            ]
            for suffix, value in (("", row.observed), ("_low", row.low), ("_high", row.high)):
                yield Attribute(row.name + suffix, kind, np.asarray(value).tolist(), places)

    def plot(self, axes: Any = None) -> Any:
        """Draw the samples and the interval of each statistic, and return the axes.

        Parameters
        ----------
        axes
            As many axes of matplotlib as there are statistics; new ones by default.
        """
        pyplot = import_optional("matplotlib.pyplot", "BootstrapResult.plot")
        n = len(self.estimates)
        if axes is None:
            _, axes = pyplot.subplots(1, n, figsize=(3.2 * n, 2.6), layout="constrained", squeeze=False)
        axes = np.atleast_1d(axes).ravel()
        for place, estimate in zip(axes, self.estimates, strict=True):
            (_draw_nodes if estimate.is_array else _draw_samples)(
                place, estimate, self.scaled_values(estimate.name)
            )
            if self._is_of_edges(estimate.name):
                place.set_xlabel("edges, in ascending order")
            place.set_title(estimate.name, fontsize="medium")
        return axes if n > 1 else axes[0]


def _draw_samples(axes: Any, estimate: Estimate, values: NDArray[np.float64]) -> None:
    centred = values - estimate.bias
    axes.hist(centred[np.isfinite(centred)], bins=30, color="#88c0d0")
    axes.axvline(estimate.observed, color="#2e3440")
    axes.axvspan(estimate.low, estimate.high, color="#a3be8c", alpha=0.3)
    axes.set_yticks([])


def _draw_nodes(axes: Any, estimate: Estimate, values: NDArray[np.float64]) -> None:
    order = np.argsort(estimate.observed, kind="stable")
    rank = np.arange(len(order))
    low, high = np.asarray(estimate.low)[order], np.asarray(estimate.high)[order]
    axes.fill_between(rank, low, high, color="#a3be8c", alpha=0.4, step="mid")
    axes.plot(rank, np.asarray(estimate.observed)[order], color="#2e3440")
    axes.set_xlabel("nodes, in ascending order")


# Intervals from the values of a statistic in samples.


METHODS = ("basic", "percentile", "normal", "studentised")
Floats = NDArray[np.float64]
MIN_DEFINED = 20
"""Samples in which a value of an array must be defined to have an interval."""
ROUNDING = 1e-6
"""Part of a sample that is rounding."""
BLOCK_SIZE = 2**21
"""Values of an array that are handled at once."""


def count_needed_samples(level: float) -> int:
    """Return how many samples it takes for quantiles with both tails of a level."""
    return int(np.ceil(2 / (1 - level) - 1 - ROUNDING))


def estimate_interval(
    name: str,
    observed: Any,
    values: Floats,
    *,
    level: float,
    method: str,
    factor: float = 1.0,
    errors: Floats | None = None,
    simultaneous: bool = False,
) -> Estimate:
    """Return the estimate of a statistic.

    The parameter is the expectation of the statistic over drawing the graph again, of which the observed
    value is an unbiased estimate if the statistic was fixed in advance. So deviations of
    samples are taken from their own mean.

    Parameters
    ----------
    name, observed
        The statistic and its observed value, a number or an array of one per node.
    values
        Values in the samples, one row per sample.
    level, method
        As in :func:`.bootstrap`.
    factor
        What deviations are multiplied by.
    errors
        The standard error in each sample, for ``"studentised"``.
    simultaneous
        Whether the intervals of all nodes hold at once with probability ``level``.
    """
    settings: dict[str, Any] = {"level": level, "method": method, "factor": factor}
    if not np.ndim(observed):
        return Estimate(name, observed, *map(float, _estimate(observed, values, errors, None, **settings)))
    blocks, ratio = _column_blocks(values), None
    if simultaneous:
        largest = [_largest_ratios(values[:, block], factor) for block in blocks]
        ratio = float(np.quantile(np.max(largest, axis=0), level, method="weibull"))
    parts = [
        _estimate(
            observed[block], values[:, block], None if errors is None else errors[:, block], ratio, **settings
        )
        for block in blocks
    ]
    return Estimate(name, observed, *(np.concatenate(part) for part in zip(*parts, strict=True)))


def _estimate(
    observed: Any,
    values: Floats,
    errors: Floats | None,
    ratio: float | None,
    *,
    level: float,
    method: str,
    factor: float,
) -> tuple[Any, Any, Any, Any]:
    """Return standard error, bias and interval; ``ratio`` is half the width of a simultaneous band."""
    from scipy.special import ndtri

    deviations, mean, error = _deviations(values, factor)
    tails = [(1 - level) / 2, (1 + level) / 2]
    if ratio is not None or method == "normal":
        width = (float(ndtri(tails[1])) if ratio is None else ratio) * error
        low, high = observed - width, observed + width
    elif method == "studentised":
        assert errors is not None
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(errors > 0, deviations / errors, np.nan)  # left out where there is no error
        lower, upper = _tail_quantiles(ratios, tails)
        low, high = observed - upper * error, observed - lower * error
    else:
        lower, upper = _tail_quantiles(deviations, tails)
        if method == "basic":
            low, high = observed - upper, observed - lower
        else:
            low, high = mean + lower, mean + upper
    return error, mean - observed, low, high


def _deviations(values: Floats, factor: float) -> tuple[Floats, Any, Any]:
    """Return the deviations from the mean, the mean and the standard error.

    Values of an array may be undefined in some samples, which are left out. With less than ``MIN_DEFINED``
    defined values there is no interval.
    """
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


def _column_blocks(values: Floats) -> list[slice]:
    """Return slices of columns, of which copies need little memory."""
    step = max(BLOCK_SIZE // max(len(values), 1), 1)
    return [slice(first, first + step) for first in range(0, max(values.shape[1], 1), step)]


def _tail_quantiles(values: Floats, tails: list[float]) -> Any:
    """Return quantiles between which a further value lies with the stated probability.

    Of fewer values than :func:`count_needed_samples` they are the smallest and the largest.
    """
    if np.isnan(values).any():
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
            return np.nanquantile(values, tails, axis=0, method="weibull")
    return np.quantile(values, tails, axis=0, method="weibull")
