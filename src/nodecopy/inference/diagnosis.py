"""Reasons not to trust an interval: unsuitable donors, samples unlike the graph, statistics of few nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy.copying import DonorLists, NodeCopying
from nodecopy.graph import Graph
from nodecopy.inference.donors import DegreeClasses, DirectedCopying, edge_count_variance
from nodecopy.inference.nodes import NodeBootstrap
from nodecopy.inference.resampling import Sampler, Samples
from nodecopy.inference.results import Diagnostic, Estimate

MIN_DONORS, MAX_SHARE_WITH_FEW = 3.0, 0.2
"""A node has few donors if it has less than the first; a warning says if such nodes have more than the second
as their share of the ends of edges."""
ROUNDING = 1e-12
"""Relative differences of values that come from rounding."""
MAX_SHIFT = 3.0
"""Standard errors by which the mean of samples may differ from the observed value without a warning."""
EXTREMES = ("max_degree", "n_components", "largest_component")
"""Statistics that depend on few nodes, of which a bootstrap is known to be unreliable."""
DONOR_SHARES = (0.6, 1.6)
"""Limits of the variance from donors over that from coins; both are half of the variance of a block model."""
MAX_PRODUCTS = 10**8
"""Products of donors and edges up to which that variance is computed."""
OF_HUBS, MAX_HUB_SHARE = ("degree_variance", "assortativity", "largest_eigenvalue"), 0.3
"""Statistics to which nodes contribute by powers of their degrees, and the share of cubed degrees at nodes
with few donors from which a warning says so."""
MAX_DEGREE_FACTOR = 1.1
"""Factor by which the standard error of the variance of degrees may be too large without a warning."""
OF_TRIANGLES, MAX_TRIANGLES = ("triangles", "transitivity"), 0.8
"""Statistics of triangles, and the mean number of triangles of an edge below which a warning says that their
standard errors are too large. In undirected networks of the experiment ``coverage`` they were, by a factor of
1.11 to 1.23 (once 1.00), and of 1.00 to 1.16 with more triangles; this limit was chosen by the same cells."""
MAX_NODES_FACTOR = 1.25
"""Factor by which the standard error of the number of edges, for a population of nodes, may be too large."""
MAX_SKEWNESS, SKEWNESS_ERRORS = 0.6, 3.0
"""Skewness over samples of a number, and its standard errors for normal values, without a warning."""
NODES_ALIKE = (
    "degrees differ by little more than chance explains, so that the standard error of the number of edges "
    "is too large for a population of nodes, by a factor of about {:.2g}, and those of other statistics may "
    "be, too."
)
ESTIMATED_COMMUNITIES = (
    "modularity is that of communities that are estimated from each sample, so that its standard error may "
    "be too small, and is zero if there is one community. Give labels if groups are known."
)


def diagnose(sampler: Sampler, estimates: list[Estimate], values: Samples) -> list[Diagnostic]:
    """Return the reasons not to trust the intervals, in sentences; ``values`` are those of the samples."""
    model: Any = sampler.model_ if isinstance(sampler, DirectedCopying) else sampler
    copying: NodeCopying[Any] | None = model if isinstance(model, NodeCopying) else None
    problems = [Diagnostic(None, text) for text in (_find_problems_of_donors(copying) if copying else ())]
    if (
        isinstance(sampler, NodeBootstrap)
        and (factor := node_variance_factor(sampler.graph_)) > MAX_NODES_FACTOR
    ):
        problems.append(Diagnostic(None, NODES_ALIKE.format(factor)))
    for estimate in estimates:
        name, rows = estimate.name, values[estimate.name]
        n_undefined = sum(not np.isfinite(row).all() for row in rows)
        texts = _find_problems_of_values(estimate, n_undefined, expected_shift(name, copying))
        if np.isfinite(estimate.low).any():
            texts += _find_problems_of_hubs(name, copying) if copying else []
            if copying and model is sampler:  # of directed graphs, standard errors are not too large
                texts += _find_problems_of_degrees(name, copying)
                texts += _find_problems_of_triangles(estimate, copying)
            texts += [] if estimate.is_array or name in EXTREMES else _find_problems_of_shape(name, rows)
        problems += [Diagnostic(name, text) for text in texts]
    return problems


def _find_problems_of_donors(copying: NodeCopying[Any]) -> list[str]:
    """Return whether many nodes have few donors, or degrees of donors vary unlike in block models."""
    if (share := few_donors_share(copying)) > MAX_SHARE_WITH_FEW:
        return [
            f"{share:.0%} of the ends of edges are at nodes with fewer than {MIN_DONORS:g} donors "
            "(themselves included), which keep a quarter of their edges or more, so that standard errors "
            "are too small. Use a donor rule with more donors, or another model."
        ]
    ratio = donor_variance_ratio(copying)
    if ratio is None or DONOR_SHARES[0] <= ratio <= DONOR_SHARES[1]:
        return []
    side, reason = ("large", "more") if ratio > 1 else ("small", "less")
    advice = (
        "another model" if isinstance(copying.donors, DegreeClasses) else "DegreeClasses(), or another model"
    )
    return [
        f"the numbers of edges of a node's donors vary {reason} than chance explains, so that the standard "
        f"error of the number of edges is too {side}, by a factor of about {((1 + ratio) / 2) ** 0.5:.2g}, "
        f"and those of other statistics may be, too. Use {advice}."
    ]


def donor_variance_ratio(copying: NodeCopying[Any]) -> float | None:
    """Return the variance of the number of edges from donors over that from coins, if it is known."""
    graph = copying.graph_
    if graph.directed or graph.is_weighted or copying.symmetrise != "one-endpoint":
        return None
    distribution = copying.distribution_
    if not isinstance(distribution, DonorLists) or copying.keep:
        n_products = distribution.probabilities().nnz * graph.rows.n_entries / max(graph.n_nodes, 1)
        if n_products > MAX_PRODUCTS:
            return None
    variance = edge_count_variance(copying)
    return variance.donors / variance.coins if variance.coins > 0 else None


def expected_shift(name: str, copying: NodeCopying[Any] | None) -> float:
    """Return the largest bias that is a known property of one-endpoint copying, not of the graph.

    Variances of degrees within blocks grow by a quarter of the variance of a degree, which is at most the
    mean degree.
    """
    is_known = name == "degree_variance" and copying and copying.symmetrise == "one-endpoint"
    return float(copying.graph_.rows.degrees.mean()) / 4 if is_known and copying else 0.0


def _find_problems_of_values(estimate: Estimate, n_undefined: int, expected: float) -> list[str]:
    """Return what the values in the samples show, with the name of the statistic."""
    error, bias = np.asarray(estimate.standard_error), np.asarray(estimate.bias)
    rounding = ROUNDING * np.abs(estimate.observed)
    with np.errstate(invalid="ignore"):
        is_constant = error <= rounding
        shift = np.abs(bias - np.clip(bias, 0, expected))
        is_far = shift > np.maximum(MAX_SHIFT * error, rounding)
    if estimate.is_array:
        problems = _find_problems_of_array(estimate, n_undefined, is_far & ~is_constant, is_constant)
    else:
        problems = _find_problems_of_number(estimate, n_undefined, bool(is_far), bool(is_constant))
    if estimate.name in EXTREMES and np.isfinite(error).any():
        problems.append(
            f"{estimate.name} depends on few nodes; intervals of such statistics may cover less often than "
            "they state."
        )
    return problems


def _find_problems_of_number(
    estimate: Estimate, n_undefined: int, is_far: bool, is_constant: bool
) -> list[str]:
    name = estimate.name
    if not np.isfinite(estimate.observed):
        return [f"{name} of the graph is undefined, so there is no interval."]
    if n_undefined:
        return [f"{name} is undefined in {n_undefined} samples, so there is no interval."]
    if is_far:
        return [
            f"the mean of {name} over samples differs from the observed value by {estimate.bias:.3g}, "
            f"more than {MAX_SHIFT:g} standard errors: the samples do not represent it. Use another "
            "model."
        ]
    if is_constant:
        return [
            f"{name} is the same in all samples, so that its interval has no width: the model says nothing "
            "about it."
        ]
    return []


def _find_problems_of_array(
    estimate: Estimate, n_undefined: int, is_far: NDArray[np.bool_], is_constant: NDArray[np.bool_]
) -> list[str]:
    name, size, problems = estimate.name, np.size(estimate.observed), []
    if n_undefined:
        n_missing = int((~np.isfinite(np.asarray(estimate.low))).sum())
        problems.append(
            f"{name} is undefined in some samples: {n_missing} of {size} values "
            "have no interval, and the other intervals are those of the samples where it is defined."
        )
    if is_far.any():
        problems.append(
            f"the mean of {name} over samples differs from the observed value by more than {MAX_SHIFT:g} "
            f"standard errors for {is_far.sum()} of {size} nodes or edges: the samples do not represent them."
        )
    if is_constant.any():
        problems.append(
            f"{name} is the same in all samples for {is_constant.sum()} of {size} nodes or edges, whose "
            "intervals have no width: the model says nothing about them."
        )
    return problems


def _find_problems_of_hubs(name: str, copying: NodeCopying[Any]) -> list[str]:
    """Return whether a statistic depends on nodes of large degree that have few donors."""
    if name not in OF_HUBS or few_donors_share(copying, power=3) <= MAX_HUB_SHARE:
        return []
    return [
        f"nodes with large degrees have fewer than {MIN_DONORS:g} donors, so that the standard error of "
        f"{name} may be too small: that of the degree of a node without other donors is by 13 %."
    ]


def _find_problems_of_degrees(name: str, copying: NodeCopying[Any]) -> list[str]:
    """Return how the degrees of samples are known to differ under one-endpoint copying."""
    if name != "degree_variance" or few_donors_share(copying, power=3) > MAX_HUB_SHARE:
        return []
    if (factor := degree_variance_factor(copying)) <= MAX_DEGREE_FACTOR:
        return []
    return [
        "degrees vary more in samples than in networks like the graph, so that the standard error of "
        f"degree_variance is too large, by at least about {factor - 1:.0%}."
    ]


def _find_problems_of_triangles(estimate: Estimate, copying: NodeCopying[Any]) -> list[str]:
    """Return whether triangles are so rare that their standard errors were found to be too large."""
    name, graph = estimate.name, copying.graph_
    if name not in OF_TRIANGLES or estimate.is_array or copying.symmetrise != "one-endpoint":
        return []
    degrees = graph.rows.degrees.astype(np.float64)
    n_ends = float(estimate.observed) * (6 if name == "triangles" else (degrees * (degrees - 1)).sum())
    per_edge = n_ends / max(degrees.sum(), 1.0)
    if graph.directed or not 0 < per_edge < MAX_TRIANGLES:
        return []
    return [
        f"an edge is in {per_edge:.2g} triangles on average; where they are so few, the standard error of "
        f"{name} was up to a quarter too large in networks of known models."
    ]


def degree_variance_factor(copying: NodeCopying[Any]) -> float:
    """Return by what factor, at least, the standard error of the variance of degrees is too large.

    Donors of node i have degrees of mean m_i and variance v_i. The true variance is about
    (1/n^2) sum_i [4 (m_i - m)^2 v_i + 2 v_i^2], and that of samples has 3 instead of 2, since expected
    degrees of samples remember half of the deviation from m_i. Terms of order v_i are larger in samples than
    in the truth; here both have v_i.
    """
    graph = copying.graph_
    if graph.directed or copying.keep or copying.symmetrise != "one-endpoint":
        return 1.0
    degrees = graph.rows.degrees.astype(np.float64)
    moments, row_of = copying.distribution_.mean_rows(sparse.csr_array(np.stack([degrees, degrees**2], 1)))
    mean, square = moments.toarray()[row_of].T
    variance = np.maximum(square - mean**2, 0.0)
    common = 4 * (mean - mean.mean()) ** 2 * variance + variance
    truth = float((common + 2 * variance**2).sum())
    return float((common + 3 * variance**2).sum() / truth) ** 0.5 if truth > 0 else 1.0


def node_variance_factor(graph: Graph) -> float:
    """Return by what factor the node bootstrap overstates the standard error of the number of edges.

    If the degrees of n nodes vary by s^2, of which chance explains v, the true variance for a population of
    nodes is n (s^2 - v + v / 2), and that of the node bootstrap n (s^2 + v / 2), approximately.
    """
    if graph.directed or graph.n_nodes < 2:
        return 1.0
    degrees = graph.rows.degrees.astype(np.float64)
    mean = float(degrees.mean())
    chance = mean * (1 - mean / (graph.n_nodes - 1))
    between = max(float(degrees.var()) - chance, 0.0)
    truth = between + chance / 2
    return ((between + 1.5 * chance) / truth) ** 0.5 if truth > 0 else 1.0


def _find_problems_of_shape(name: str, values: NDArray[np.float64]) -> list[str]:
    """Return whether the values of samples are skewed."""
    if abs(skewness(values)) <= max(MAX_SKEWNESS, SKEWNESS_ERRORS * (6 / len(values)) ** 0.5):
        return []
    return [f"{name} is skewed over samples, so that its interval may cover less often than it states."]


def skewness(values: NDArray[np.float64]) -> float:
    """Return the skewness of numbers, 0 if they are constant or undefined."""
    deviations = values - values.mean()
    spread = float(np.sqrt((deviations**2).mean()))
    if not spread > ROUNDING * np.abs(values).max():
        return 0.0
    return float((deviations**3).mean()) / spread**3


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
