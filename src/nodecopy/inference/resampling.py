"""Values of statistics in the samples of a graph model, and a diagnosis of the model."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from nodecopy._core.progress import track
from nodecopy._core.random import child
from nodecopy.copying import DonorLists, NodeCopying
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.inference.bootstrap_results import Estimate
from nodecopy.inference.degree_classes import DegreeClasses
from nodecopy.inference.measurement import Measure, Values
from nodecopy.inference.node_resampling import NodeBootstrap, NodeResampler
from nodecopy.models import GraphModel, sample_stream

Sampler: TypeAlias = GraphModel[Graph] | NodeResampler
Samples: TypeAlias = dict[str, NDArray[np.float64]]

MIN_DONORS, MAX_POOR_SHARE = 3.0, 0.2
"""A node with fewer donors is poor; a warning says if poor nodes have more than this share of edge ends."""
MAX_SHIFT = 3.0
"""Standard errors by which the mean of samples may differ from the observed value without a warning."""
EXTREMES = ("max_degree", "n_components", "largest_component")
"""Statistics that depend on few nodes, of which a bootstrap is known to be unreliable."""


class InferenceSeeds(IntEnum):
    """Children of the seed of a call."""

    FIT = 0
    SAMPLES = 1
    INNER = 2
    SECOND = 3


def choose_sampler(model: Any, target: str) -> Sampler:
    """Return the model, or the default of the target; a donor law stands for node copying by it."""
    if model is None:
        return NodeCopying(DegreeClasses()) if target == "edges" else NodeBootstrap()
    kind = NodeResampler if target == "nodes" else GraphModel
    if isinstance(model, kind):
        return model
    if target == "edges" and not isinstance(model, (type, NodeResampler)) and hasattr(model, "fit"):
        return NodeCopying(model)
    allowed = {
        "edges": "a graph model such as NodeCopying(SameLabel()), or a donor law",
        "nodes": "NodeBootstrap(), NodeSubsampling() or LatentPositionBootstrap()",
    }
    raise InputError(f"model for target={target!r} must be {allowed[target]}; got {model!r}.")


def measure_samples(
    sampler: Sampler, measure: Measure, n: int, seed: SeedSequence, workers: int = 1, what: str = "sample"
) -> Iterator[Values]:
    """Yield the statistics of ``n`` samples, those of ``sample_many`` with the same seed."""
    stream = sample_stream(lambda number: measure(sampler.draw(child(seed, number))), n, workers)
    for _, values in zip(track(range(n), what), stream, strict=False):
        yield values


def collect_values(samples: Iterator[Values]) -> Samples:
    """Return the values of each statistic, one row per sample."""
    rows = list(samples)
    try:
        return {name: np.array([row[name] for row in rows], np.float64) for name in rows[0]}
    except ValueError as error:
        raise InputError(
            "statistic must return as many numbers for every sample; it did not. Statistics of nodes need "
            "target='edges', with a model whose samples have the observed nodes."
        ) from error


def find_problems(sampler: Sampler, estimates: list[Estimate], n_undefined: dict[str, int]) -> list[str]:
    """Return the reasons not to trust the intervals, in sentences."""
    problems = []
    if isinstance(sampler, NodeCopying) and (share := poor_share(sampler)) > MAX_POOR_SHARE:
        problems.append(
            f"{share:.0%} of the ends of edges are at nodes with fewer than {MIN_DONORS:g} donors, which "
            "mostly keep their neighbours, so that standard errors are too small. Use a law with more "
            "donors, or another model."
        )
    for estimate in estimates:
        name, error = estimate.name, np.asarray(estimate.standard_error)
        if n_undefined[name]:
            problems.append(f"{name} is undefined in {n_undefined[name]} samples, so there is no interval.")
        elif not estimate.is_per_node and np.abs(estimate.bias) > MAX_SHIFT * error:
            problems.append(
                f"the mean of {name} over samples differs from the observed value by {estimate.bias:.3g}, "
                f"more than {MAX_SHIFT:g} standard errors: the samples do not represent it. Use another "
                "model."
            )
        if name in EXTREMES:
            problems.append(
                f"{name} depends on few nodes; intervals of such statistics cover less often than they state."
            )
    return problems


def poor_share(model: NodeCopying[Any]) -> float:
    """Return the share of the ends of edges at nodes with few donors, 1 / sum_m P_im^2 of them."""
    distribution = model.distribution_
    if isinstance(distribution, DonorLists):
        n_donors = np.diff(distribution.offsets)[distribution.list_of].astype(np.float64)
    else:
        P = distribution.probabilities()
        n_donors = 1 / np.maximum(np.asarray(P.multiply(P).sum(axis=1)).ravel(), 1e-12)
    degrees = model.graph_.rows.degrees
    return float(degrees[n_donors < MIN_DONORS].sum() / max(degrees.sum(), 1))
