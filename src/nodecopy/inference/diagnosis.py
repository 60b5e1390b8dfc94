"""Reasons not to trust an interval: unsuitable donors, samples unlike the graph, statistics of few nodes.

Samples are checked by samples, too: whether they are like the graph, and how their spread is to be scaled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.random import SeedSequence
from scipy import sparse
from scipy.special import nbdtrc

from nodecopy._core.arrays import FloatArray, Floats
from nodecopy._core.parallel import sample_stream
from nodecopy._core.random import child
from nodecopy.copying import DonorLists, NodeCopying
from nodecopy.generators.base import binary_adjacency
from nodecopy.generators.classical import NOISE_FACTOR
from nodecopy.graph import Graph
from nodecopy.inference.donors import ClassCopying, edge_count_variance
from nodecopy.inference.resampling import MODELS, NodeBootstrap, NodeResampler, Sampler, Samples

if TYPE_CHECKING:
    from nodecopy.inference.bootstrapping import Estimate

ROUNDING = 1e-12  # largest relative difference that counts as rounding
MIN_DONORS, MAX_SHARE_WITH_FEW = 3.0, 0.2  # and the largest share of edge ends at nodes with fewer donors
MIN_DONOR_RATIO, MAX_DONOR_RATIO = 0.6, 1.6  # variance of donors over that of coins; 1 under a block model
MAX_PRODUCTS = 10**8  # products of donors and edges up to which that ratio is computed
MAX_SHIFT = 3.0  # standard errors by which the mean of the samples may differ from the observed value
EXTREMES = ("max_degree", "n_components", "largest_component")  # a bootstrap is unreliable for few nodes
OF_HUBS, MAX_HUB_SHARE = ("degree_variance", "assortativity", "largest_eigenvalue"), 0.3  # of cubed degrees
MAX_NODES_FACTOR = 1.25  # by which standard errors for a population of nodes may be too large
MAX_BIMODALITY = 0.85  # 0.33 if normal, about 0.6 if exponential, 1 for two values
MAX_SKEWNESS, SKEWNESS_ERRORS = 0.6, 3.0  # over samples, itself and in standard errors for normal values
LOW_DEGREES, MAX_BELOW = 0.02, 0.1  # share of nodes with lower degrees, in the graph and in a sample
CHANCE = 1e-3  # probability up to which chance does not explain them
ADVICE = "Use the model {!r}, or 'auto' to try all."
COVERS_LESS = "its interval may cover less often than stated."


class Diagnostic(NamedTuple):
    """A reason not to trust an interval."""

    statistic: str | None
    """The statistic of the interval; ``None`` for all statistics."""
    text: str
    next_model: str | None = None
    """The model to try next, if the reason is that the samples are unlike the graph."""

    def __str__(self) -> str:
        return self.text


def next_model(sampler: Sampler) -> str:
    """Return the name of the model to try where the samples of this one do not represent the graph."""
    models = MODELS["nodes" if isinstance(sampler, NodeResampler) else "edges"]
    names, classes = list(models), list(models.values())
    place = classes.index(type(sampler)) + 1 if type(sampler) in classes else 0
    return names[place % len(names)]


def diagnose(
    sampler: Sampler, estimates: Sequence[Estimate], values: Samples, sample: Graph | None = None
) -> list[Diagnostic]:
    """Return the reasons not to trust the intervals, given the values in the samples, and one of these."""
    model: Any = sampler.model_ if isinstance(sampler, ClassCopying) else sampler
    copying: NodeCopying[Any] | None = model if isinstance(model, NodeCopying) else None
    other = next_model(sampler)
    problems = [Diagnostic(None, text, other) for text in _diagnose_sampler(sampler, copying, other)]
    if sample is not None and (share := share_below(sampler.graph_, sample)) > MAX_BELOW:
        text = (
            f"{share:.0%} of the nodes of a sample have fewer edges than nearly all nodes of the graph, so "
            "that edges may depend on each other, as in networks that grow or are filtered by degree, and "
            "standard errors may be wrong. Give the model of the network, such as BarabasiAlbert()."
        )
        problems.append(Diagnostic(None, text))
    for estimate in estimates:
        name, rows = estimate.name, values[estimate.name]
        texts: list[str] = []
        problems += _diagnose_values(estimate, rows, other)
        if np.isfinite(estimate.low).any():
            if copying and name in OF_HUBS and few_donors_share(copying, power=3) > MAX_HUB_SHARE:
                texts.append(
                    f"nodes with large degrees have fewer than {MIN_DONORS:g} donors, so that the standard "
                    f"error of {name} may be too small."
                )
            limit = max(MAX_SKEWNESS, SKEWNESS_ERRORS * (6 / len(rows)) ** 0.5)
            skew, bimodality = shape(rows)
            if not estimate.is_array and name not in EXTREMES and bimodality > MAX_BIMODALITY:
                texts.append(f"{name} has separate groups of values in samples: its interval means nothing.")
            elif not estimate.is_array and name not in EXTREMES and abs(skew) > limit:
                texts.append(f"{name} is skewed over samples, so that {COVERS_LESS}")
        problems += [Diagnostic(name, text) for text in texts]
    return problems


def _diagnose_sampler(sampler: Sampler, copying: NodeCopying[Any] | None, other: str) -> Iterator[str]:
    """Yield reasons that concern all statistics: few donors, or degrees of donors unlike in block models."""
    if isinstance(sampler, NodeBootstrap):
        if (factor := node_variance_factor(sampler.graph_)) > MAX_NODES_FACTOR:
            yield (
                "degrees differ by little more than chance explains, so that the standard error of the "
                f"number of edges is too large, by a factor of about {factor:.2g}, and others may be, too."
            )
    elif copying is None:
        return
    elif (share := few_donors_share(copying)) > MAX_SHARE_WITH_FEW:
        yield (
            f"{share:.0%} of the ends of edges are at nodes with fewer than {MIN_DONORS:g} donors "
            f"(themselves included), so that standard errors are too small. {ADVICE.format(other)}"
        )
    else:
        ratio = donor_variance_ratio(copying)
        if ratio is None or MIN_DONOR_RATIO <= ratio <= MAX_DONOR_RATIO:
            return
        side, reason = ("large", "more") if ratio > 1 else ("small", "less")
        yield (
            f"the degrees of a node's donors vary {reason} than chance explains, so that the standard error "
            f"of the number of edges is too {side}, by a factor of about {((1 + ratio) / 2) ** 0.5:.2g}, and "
            f"others may be, too. {ADVICE.format(other)}"
        )


def _diagnose_values(estimate: Estimate, rows: FloatArray, other: str) -> Iterator[Diagnostic]:
    """Yield reasons from the values in the samples."""
    name, size = estimate.name, np.size(estimate.observed)
    error, bias = np.asarray(estimate.standard_error), np.asarray(estimate.bias)
    n_undefined = sum(not np.isfinite(row).all() for row in rows)
    rounding = ROUNDING * np.abs(estimate.observed)
    with np.errstate(invalid="ignore"):
        is_constant = error <= rounding
        is_far = np.abs(bias) > np.maximum(MAX_SHIFT * error, rounding)
    moved = f"the mean of {name} over samples differs from the observed value by"
    if estimate.is_array:
        is_far &= ~is_constant
        if n_undefined:
            n_missing = int((~np.isfinite(np.asarray(estimate.low))).sum())
            yield Diagnostic(
                name,
                f"{name} is undefined in some samples: {n_missing} of {size} values have no interval, and "
                "the other intervals use the samples in which it is defined.",
            )
        if is_far.any():
            n_far = f"{is_far.sum()} of {size} nodes or edges"
            text = (
                f"{moved} more than {MAX_SHIFT:g} standard errors for {n_far}, which they do not represent."
            )
            yield Diagnostic(name, text)
        if is_constant.any():
            n_constant = f"{is_constant.sum()} of {size} nodes or edges"
            text = f"{name} is the same in all samples for {n_constant}, whose intervals have no width."
            yield Diagnostic(name, text)
    elif not np.isfinite(estimate.observed):
        yield Diagnostic(name, f"{name} of the graph is undefined, so there is no interval.")
    elif n_undefined:
        yield Diagnostic(name, f"{name} is undefined in {n_undefined} samples, so there is no interval.")
    elif is_far:
        text = f"{moved} {estimate.bias:.3g}, more than {MAX_SHIFT:g} standard errors: the samples do not "
        yield Diagnostic(name, f"{text}represent it. {ADVICE.format(other)}", other)
    elif is_constant:
        yield Diagnostic(name, f"{name} is the same in all samples, so that its interval has no width.")
    if name in EXTREMES and np.isfinite(error).any():
        yield Diagnostic(name, f"{name} depends on few nodes, so that {COVERS_LESS}")


def share_below(graph: Graph, sample: Graph) -> float:
    """Return the share of the nodes of a sample with edges, but fewer than 98 % of the nodes of the graph.

    It is 0 if chance explains it: if as many of the nodes of another graph of this kind could have so few.
    """
    low, degrees = np.quantile(graph.degrees, LOW_DEGREES), sample.degrees
    n_below, n_observed = int(((degrees > 0) & (degrees < low)).sum()), int((graph.degrees < low).sum())
    is_chance = nbdtrc(n_below - 1, n_observed + 1, 0.5) > CHANCE
    return 0.0 if is_chance else n_below / len(degrees)


def few_donors_share(model: NodeCopying[Any], power: int = 1) -> float:
    """Return the share of the degrees, to some power, at nodes with few donors, 1 / sum_m P_im^2 of them."""
    distribution = model.distribution_
    if isinstance(distribution, DonorLists):
        n_donors = np.diff(distribution.offsets)[distribution.list_of].astype(np.float64)
    else:
        P = distribution.probabilities()
        n_donors = 1 / np.maximum(np.asarray(P.multiply(P).sum(axis=1)).ravel(), 1e-12)
    weights = model.graph_.rows.degrees.astype(np.float64) ** power
    return float(weights[n_donors < MIN_DONORS].sum() / max(weights.sum(), 1.0))


def donor_variance_ratio(copying: NodeCopying[Any]) -> float | None:
    """Return the variance of the number of edges due to donors over that due to coins, if it is known."""
    graph = copying.graph_
    if graph.directed or graph.is_weighted or copying.symmetrise_ != "one-endpoint":
        return None
    distribution = copying.distribution_
    if not isinstance(distribution, DonorLists) or copying.keep_:
        n_products = distribution.probabilities().nnz * graph.rows.n_entries / max(graph.n_nodes, 1)
        if n_products > MAX_PRODUCTS:
            return None
    variance = edge_count_variance(copying)
    return variance.donors / variance.coins if variance.coins > 0 else None


def node_variance_factor(graph: Graph) -> float:
    """Return the factor by which the node bootstrap overstates the standard error of the number of edges.

    If the degrees of n nodes have the variance s^2, of which chance explains v, the true variance for a
    population of nodes is about n (s^2 - v + v / 2), and that of the node bootstrap n (s^2 + v / 2).
    """
    if graph.directed or graph.n_nodes < 2:
        return 1.0
    degrees = graph.rows.degrees.astype(np.float64)
    mean = float(degrees.mean())
    chance = mean * (1 - mean / (graph.n_nodes - 1))
    between = max(float(degrees.var()) - chance, 0.0)
    truth = between + chance / 2
    return ((between + 1.5 * chance) / truth) ** 0.5 if truth > 0 else 1.0


def shape(values: FloatArray) -> tuple[float, float]:
    """Return the skewness of numbers and Sarle's coefficient of bimodality, which is 5/9 if uniform.

    Both are 0 for numbers that are constant or undefined.
    """
    deviations = values - values.mean()
    spread = float(np.sqrt((deviations**2).mean()))
    if not spread > ROUNDING * np.abs(values).max():
        return 0.0, 0.0
    skew = float((deviations**3).mean()) / spread**3
    return skew, (skew**2 + 1) / (float((deviations**4).mean()) / spread**4)


MIN_EXCESS = 0.2  # of the score, of at most 0.5, over the reference of a doubtful graph
N_CHECKED, N_FLIPS = 19, 200  # samples that are compared, and sign flips of each pair
N_VECTORS, N_ITERATIONS = 16, 6  # of the joint embedding
MAX_NODES = 500  # random nodes that are compared, since every difference is significant for enough nodes
MAX_ENTRIES = 2**19  # of the graph, up to which samples are checked by default


@dataclass(frozen=True)
class Validity:
    """How well the observed graph could be one of its samples, by a test of exchangeability.

    Positions of the nodes in a joint embedding of the graph and its samples are compared for every pair of
    them: their differences are exchangeable if the sum of the differences is no longer than with random signs
    (Dilworth, Davis and Lawson, 2024).
    """

    score: float
    """Area between the curve of the p-values of the graph with each sample and the diagonal; 0 is ideal."""
    reference: float
    """The mean of this area for each sample with the other samples, as for a second draw."""
    p_value: float
    """Share of the graphs whose mean p-value is no larger than that of the observed one."""
    p_values: Floats = field(repr=False, compare=False)

    @property
    def is_doubtful(self) -> bool:
        """Return whether the graph is clearly less like the samples than they are like each other."""
        return self.p_value <= 1 / (N_CHECKED + 1) and self.score > self.reference + MIN_EXCESS

    def to_dict(self) -> dict[str, float]:
        """Return plain numbers, ready for JSON."""
        return {"score": self.score, "reference": self.reference, "p_value": self.p_value}

    def __str__(self) -> str:
        verdict = "less like the samples than" if self.is_doubtful else "as like the samples as"
        areas = f"areas {self.score:.2f} and {self.reference:.2f}, p = {self.p_value:.2f}"
        return f"validity: the graph is {verdict} they are like each other ({areas})"


def check_validity(graph: Graph, samples: Sequence[Graph]) -> Validity:
    """Return whether a graph and its samples are exchangeable, by all pairs of them."""
    matrices = [binary_adjacency(other).astype(np.float64) for other in (graph, *samples)]
    joint = sparse.csr_array(sparse.hstack(matrices))
    rng, n_nodes = np.random.default_rng(0), graph.n_nodes
    basis = rng.normal(size=(n_nodes, min(N_VECTORS, n_nodes)))
    for _ in range(N_ITERATIONS):
        basis = np.linalg.qr(joint @ (joint.T @ basis))[0]
    left, lengths, _ = np.linalg.svd((joint.T @ basis).T, full_matrices=False)
    projections = np.stack([matrix.T @ (basis @ left) for matrix in matrices])
    noise = NOISE_FACTOR * (joint.nnz / max(joint.shape[1], 1)) ** 0.5
    is_signal = (np.linalg.norm(projections, axis=1) > noise).any(axis=0)  # of any of the graphs
    is_signal[:1] = True
    nodes = rng.permutation(n_nodes)[:MAX_NODES]
    signs = rng.choice([-1.0, 1.0], (N_FLIPS + 1, len(nodes)))
    signs[0] = 1.0
    positions = projections[:, nodes][:, :, is_signal] / np.sqrt(np.maximum(lengths[is_signal], 1e-12))
    sums = np.stack([signs @ position for position in positions])
    lengths = ((sums[:, None] - sums) ** 2).sum(axis=3)
    p = (lengths >= lengths[:, :, :1] * (1 - 1e-9)).mean(axis=2)
    others = p[~np.eye(len(p), dtype=bool)].reshape(len(p), -1)
    grid = np.linspace(0, 1, N_FLIPS + 1)
    areas = [np.abs((row <= grid[:, None]).mean(axis=1) - grid).mean() for row in others]
    means = others.mean(axis=1)
    share = float((means <= means[0]).mean())
    return Validity(float(areas[0]), float(np.mean(areas[1:])), share, others[0])


def calibrate(
    sampler: Any, measure: Callable[[Graph], Any], samples: Sequence[Graph], seed: SeedSequence, workers: int
) -> dict[str, Any]:
    """Return the standard error of each statistic by the second level of a double bootstrap.

    The method is applied to samples as if each was the observed graph, and draws as many samples of it. The
    standard error is the square root of the mean variance.
    """

    def draw_second(number: int) -> dict[str, Any]:
        fitted = copy(sampler).fit(samples[number])
        rows = [measure(fitted.draw(child(seed, number, k))) for k in range(len(samples))]
        return {name: np.var([row[name] for row in rows], axis=0, ddof=1) for name in rows[0]}

    levels = list(sample_stream(draw_second, len(samples), workers))
    return {name: np.sqrt(np.mean([level[name] for level in levels], axis=0)) for name in levels[0]}
