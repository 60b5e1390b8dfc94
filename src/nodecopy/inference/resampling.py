"""Values of statistics in the samples of a graph model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from nodecopy._core.checks import show
from nodecopy._core.files import PathLike
from nodecopy._core.messages import log_decision
from nodecopy._core.parallel import track
from nodecopy._core.random import Rng, child
from nodecopy.copying import NodeCopying
from nodecopy.errors import InputError
from nodecopy.generators import SBM, BlockConfigurationModel, ConfigurationModel, DegreeCorrectedSBM
from nodecopy.graph import Graph
from nodecopy.inference.communities import spectral_communities
from nodecopy.inference.donors import DegreeClasses, DirectedCopying
from nodecopy.inference.nodes import NodeBootstrap, NodeResampler
from nodecopy.inference.sample_store import (
    SampleStore,
    choose_seed,
    describe_seed,
    digest_function,
    digest_graph,
)
from nodecopy.inference.statistics import GraphMeasure, Measure, Values
from nodecopy.models import GraphModel, sample_stream

Sampler: TypeAlias = GraphModel[Graph] | NodeResampler
Shapes: TypeAlias = dict[str, tuple[int, ...]]
Samples: TypeAlias = dict[str, NDArray[np.float64]]

BLOCK_MODELS = (SBM, DegreeCorrectedSBM, BlockConfigurationModel)
"""Models whose blocks are the labels of a graph, or estimated communities."""
MAX_BYTES = 2**33
"""Memory of the values of all samples, without a store."""


class InferenceSeeds(IntEnum):
    """Children of the seed of a call."""

    FIT = 0
    SAMPLES = 1
    INNER = 2
    SECOND = 3
    HUB = 4


def choose_sampler(model: Any, target: str, *, directed: bool = False) -> Sampler:
    """Return the model, or the default of the target; a donor rule stands for node copying by it."""
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
        "edges": "a graph model such as NodeCopying(SameLabel()), or a donor rule",
        "nodes": "NodeBootstrap(), NodeSubsampling() or LatentPositionBootstrap()",
    }
    raise InputError(f"model for target={target!r} must be {allowed[target]}; got {show(model)}.")


def estimate_blocks(graph: Graph) -> Graph:
    """Return the graph with estimated communities as labels, unless it has labels."""
    if graph.labels is not None:
        return graph
    communities = spectral_communities(graph)
    n_blocks = len(np.unique(communities))
    log_decision(
        f"blocks: {n_blocks} {'community' if n_blocks == 1 else 'communities'}, estimated from the graph.",
        "labels",
    )
    return graph.replace(labels=communities)


class Sampling(NamedTuple):
    """The samples of a call, which are drawn as ``samples`` is read."""

    sampler: Sampler
    """The fitted model."""
    seed: SeedSequence
    """The seed of the call."""
    shapes: Shapes
    """Those of the values of each statistic."""
    store: SampleStore | None
    samples: Iterator[Values]
    """The values of the statistics in each sample."""


def start_sampling(
    graph: Graph,
    measure: GraphMeasure,
    observed: Values,
    model: Any,
    *,
    call: str,
    n: int,
    target: str = "edges",
    workers: int = 1,
    processes: bool = False,
    store: PathLike | None = None,
    rng: Rng = None,
) -> Sampling:
    """Fit the model and return its samples, with the values that ``measure`` takes of them.

    Parameters
    ----------
    graph, measure, observed
        The graph, its statistics (see :func:`.prepare_measure`) and their values in it.
    model, target, n, workers, processes, store, rng
        As in :func:`.bootstrap`.
    call
        The name of the function that was called. The same statistic can mean another thing in another one,
        and Markov chains of ``"test"`` start at a graph that a chain reached from the observed one.
    """
    seed = choose_seed(rng, store)
    sampler = choose_sampler(model, target, directed=graph.directed)
    labelled = estimate_blocks(graph) if isinstance(sampler, BLOCK_MODELS) else graph
    sampler = sampler.fit(labelled, rng=child(seed, InferenceSeeds.FIT))
    if call == "test" and isinstance(sampler, (ConfigurationModel, BlockConfigurationModel)):
        sampler = sampler.restart(child(seed, InferenceSeeds.HUB))
    shapes = {name: np.shape(value) for name, value in observed.items()}
    folder = None
    if store is not None:
        settings = {
            "call": call,
            "graph": digest_graph(graph),
            "model": repr(sampler),
            "statistics": {name: list(shape) for name, shape in shapes.items()},
            "functions": {part.name: digest_function(part.function) for part in measure.functions},
            "seed": describe_seed(seed),
        }
        folder = SampleStore(store, settings)
    seed_of_samples = child(seed, InferenceSeeds.SAMPLES)
    samples = measure_samples(
        sampler, measure, n, seed_of_samples, workers, processes=processes, store=folder, shapes=shapes
    )
    return Sampling(sampler, seed, shapes, folder, samples)


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
    with nullcontext() if store is None else store.claim():
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
                    "statistic",
                    f"must return as many numbers for every sample; {name} did not. Statistics of "
                    "nodes need target='edges', with a model whose samples have the observed nodes; "
                    "statistics of edges need a mapping from pairs of nodes to values.",
                )
            rows[number] = sample[name]
    return values
