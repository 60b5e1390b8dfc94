"""Values of statistics in the samples of a graph model, and a diagnosis of the model."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from nodecopy._core.formats import PathLike
from nodecopy._core.progress import track
from nodecopy._core.random import child
from nodecopy.copying import DonorLists, NodeCopying
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.inference.bootstrap_results import Estimate
from nodecopy.inference.degree_classes import DegreeClasses
from nodecopy.inference.directed_copying import DirectedCopying
from nodecopy.inference.measurement import Measure, Values
from nodecopy.inference.node_resampling import NodeBootstrap, NodeResampler
from nodecopy.inference.sample_store import SampleStore, describe_seed, digest_graph
from nodecopy.models import GraphModel, sample_stream

Sampler: TypeAlias = GraphModel[Graph] | NodeResampler
Shapes: TypeAlias = dict[str, tuple[int, ...]]
Samples: TypeAlias = dict[str, NDArray[np.float64]]

MIN_DONORS, MAX_POOR_SHARE = 3.0, 0.2
"""A node with fewer donors is poor; a warning says if poor nodes have more than this share of edge ends."""
MAX_SHIFT = 3.0
"""Standard errors by which the mean of samples may differ from the observed value without a warning."""
EXTREMES = ("max_degree", "n_components", "largest_component")
"""Statistics that depend on few nodes, of which a bootstrap is known to be unreliable."""


MAX_BYTES = 2**33
"""Memory of the values of all samples, without a store."""


class InferenceSeeds(IntEnum):
    """Children of the seed of a call."""

    FIT = 0
    SAMPLES = 1
    INNER = 2
    SECOND = 3


def choose_sampler(model: Any, target: str, *, directed: bool = False) -> Sampler:
    """Return the model, or the default of the target; a donor law stands for node copying by it."""
    if model is None and target == "edges":
        return DirectedCopying() if directed else NodeCopying(DegreeClasses())
    if model is None:
        return NodeBootstrap()
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


def open_store(
    store: PathLike | None, graph: Graph, sampler: Sampler, seed: SeedSequence, shapes: Shapes
) -> SampleStore | None:
    """Return the store of a run, after a check that it holds samples of the same run."""
    if store is None:
        return None
    settings = {
        "graph": digest_graph(graph),
        "model": repr(sampler),
        "statistics": {name: list(shape) for name, shape in shapes.items()},
        "seed": describe_seed(seed),
    }
    return SampleStore(store, settings)


def measure_samples(
    sampler: Sampler,
    measure: Measure,
    n: int,
    seed: SeedSequence,
    workers: int = 1,
    *,
    processes: bool = False,
    store: SampleStore | None = None,
    shapes: Shapes | None = None,
) -> Iterator[Values]:
    """Yield the statistics of ``n`` samples, those of ``sample_many`` with the same seed.

    A store yields its samples first, and holds the others afterwards. It needs ``shapes``, those of the
    observed values.
    """
    n_stored, draw = 0, getattr(sampler, "_checked_draw", sampler.draw)
    if store is not None and shapes is not None:
        n_stored = min(store.count_complete(shapes), n)
        stored = store.read(shapes, n_stored)
        yield from ({name: rows[number] for name, rows in stored.items()} for number in range(n_stored))
    stream = sample_stream(
        lambda number: measure(draw(child(seed, n_stored + number))),
        n - n_stored,
        workers,
        processes=processes,
    )
    if store is not None and shapes is not None:
        stream = store.append_all(stream, shapes)
    for _, values in zip(track(range(n - n_stored), "sample"), stream, strict=False):
        yield values


def collect_values(
    samples: Iterator[Values], shapes: Shapes, n: int, store: SampleStore | None = None
) -> Samples:
    """Return the values of each statistic, one row per sample, mapped from files if there is a store."""
    if store is not None:
        for _ in samples:
            pass
        return store.read(shapes, n)
    if (n_bytes := 8 * n * sum(int(np.prod(shape)) for shape in shapes.values())) > MAX_BYTES:
        raise InputError(
            f"{n} samples of all values need {n_bytes / 2**30:.0f} GiB of memory. Give store=, a folder."
        )
    values = {name: np.empty((n, *shape)) for name, shape in shapes.items()}
    for number, sample in enumerate(samples):
        for name, rows in values.items():
            if np.shape(sample[name]) != shapes[name]:
                raise InputError(
                    f"statistic must return as many numbers for every sample; {name} did not. Statistics of "
                    "nodes need target='edges', with a model whose samples have the observed nodes; "
                    "statistics of edges need a mapping from pairs of nodes to values."
                )
            rows[number] = sample[name]
    return values


def find_problems(sampler: Sampler, estimates: list[Estimate], n_undefined: dict[str, int]) -> list[str]:
    """Return the reasons not to trust the intervals, in sentences."""
    problems = []
    copying = sampler.model_ if isinstance(sampler, DirectedCopying) else sampler
    if isinstance(copying, NodeCopying) and (share := poor_share(copying)) > MAX_POOR_SHARE:
        problems.append(
            f"{share:.0%} of the ends of edges are at nodes with fewer than {MIN_DONORS:g} donors, which "
            "mostly keep their neighbours, so that standard errors are too small. Use a law with more "
            "donors, or another model."
        )
    for estimate in estimates:
        name, error = estimate.name, np.asarray(estimate.standard_error)
        if n_undefined[name] and estimate.is_array:
            n_missing = int((~np.isfinite(np.asarray(estimate.low))).sum())
            problems.append(
                f"{name} is undefined in some samples: {n_missing} of {np.size(estimate.observed)} values "
                "have no interval, and the other intervals are those of the samples where it is defined."
            )
        elif n_undefined[name]:
            problems.append(f"{name} is undefined in {n_undefined[name]} samples, so there is no interval.")
        elif not estimate.is_array and np.abs(estimate.bias) > MAX_SHIFT * error:
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
