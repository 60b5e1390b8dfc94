"""Samples of one network, by a graph model or by resampling nodes, and the values of its statistics."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.random import Generator, SeedSequence

from nodecopy._core.arrays import IntArray, Rows
from nodecopy._core.checks import check_integer, check_real, show
from nodecopy._core.estimator import Configurable
from nodecopy._core.imports import from_name
from nodecopy._core.messages import log_decision
from nodecopy._core.parallel import sample_stream, track
from nodecopy._core.random import Rng, child, seed_sequence
from nodecopy.copying import NodeCopying
from nodecopy.errors import InputError
from nodecopy.generators import (
    SBM,
    BlockConfigurationModel,
    ConfigurationModel,
    DegreeCorrectedSBM,
    RandomDotProduct,
)
from nodecopy.generators.base import replace_edges
from nodecopy.graph import Graph
from nodecopy.inference.donors import ClassCopying
from nodecopy.inference.statistics import Floats, GraphMeasure, Values, spectral_communities
from nodecopy.io import GraphLike, convert_graph
from nodecopy.models import GraphModel

Samples: TypeAlias = dict[str, Floats]
BLOCK_MODELS = (SBM, DegreeCorrectedSBM, BlockConfigurationModel)
MAX_BYTES = 2**33  # largest memory of the values of all samples
FIT_SEED, SAMPLES_SEED, GRAPHS_SEED = 0, 1, 3  # children of the seed of a call
HUB_SEED, FINISH_SEED, CALIBRATION_SEED = 4, 5, 6


@dataclass(eq=False)
class NodeResampler(Configurable, ABC):
    """The base class of methods that resample nodes and edges among them; a subclass writes ``_resample``.

    ``graph_`` is the observed graph, and ``deviation_factor`` times the standard deviation of a statistic
    over samples is its standard error.
    """

    graph_: Graph = field(init=False, repr=False)
    deviation_factor: ClassVar[float] = 1.0

    def fit(self, graph: GraphLike, *, rng: Rng = None) -> Self:
        """Store the graph and check the settings."""
        self.graph_ = convert_graph(graph, f"graph of {type(self).__name__}")
        return self

    def draw(self, seed: SeedSequence) -> Graph:
        """Return the sample of a seed. Its nodes have the ids 0, 1, 2, ... and keep their labels."""
        return self._resample(np.random.default_rng(seed))

    @abstractmethod
    def _resample(self, rng: Generator) -> Graph:
        """Return one sample."""

    def _take(self, nodes: IntArray) -> Graph:
        """Return the edges among some nodes, which may occur several times."""
        graph = self.graph_
        matrix: Any = graph.rows.csr[nodes][:, nodes]
        matrix.sort_indices()
        weights = matrix.data if graph.is_weighted else None
        rows = Rows.canonical(matrix.indptr, matrix.indices, weights, len(nodes))
        bare = graph.replace(features=None, labels=None, node_ids=None).with_rows(rows)
        return bare if graph.label_codes is None else bare.replace(labels=graph.label_codes[nodes])


@dataclass(eq=False)
class NodeBootstrap(NodeResampler):
    """Resample nodes with replacement and take the edges among them (Green and Shalizi, 2022).

    Two copies of the same node are not linked. Standard errors are for a population of nodes. They are too
    large where nodes are alike: in an Erdős-Rényi graph, that of the number of edges by up to sqrt 3.

    Examples
    --------
    >>> from numpy.random import SeedSequence
    >>> from nodecopy import datasets
    >>> from nodecopy.inference import NodeBootstrap
    >>> NodeBootstrap().fit(datasets.load("karate")).draw(SeedSequence(0)).n_nodes
    34
    """

    def _resample(self, rng: Generator) -> Graph:
        n_nodes = self.graph_.n_nodes
        return self._take(rng.integers(0, n_nodes, n_nodes))


@dataclass(eq=False)
class NodeSubsampling(NodeResampler):
    """Draw a share of the nodes without replacement and take the edges among them.

    See Bhattacharyya and Bickel (2015) and Lunde and Sarkar (2023). The standard deviation over samples of a
    share s of the nodes is multiplied by sqrt(s / (1 - s)). This suits statistics that do not depend on the
    number of nodes, such as density, but not counts or degrees. Where nodes are alike, standard errors are
    too large.

    Parameters
    ----------
    share
        Share of the nodes, 0.3 by default.

    Examples
    --------
    >>> from numpy.random import SeedSequence
    >>> from nodecopy import datasets
    >>> from nodecopy.inference import NodeSubsampling
    >>> NodeSubsampling(0.5).fit(datasets.load("karate")).draw(SeedSequence(0)).n_nodes
    17
    """

    share: float = 0.3

    def fit(self, graph: GraphLike, *, rng: Rng = None) -> Self:
        check_real(self.share, "share of NodeSubsampling", low=0.01, high=0.99)
        return super().fit(graph, rng=rng)

    @property
    def deviation_factor(self) -> float:  # type: ignore[override]
        """Return sqrt(s / (1 - s)) for the share s of the nodes in samples, a whole number of nodes."""
        share = self._size() / self.graph_.n_nodes
        return float((share / (1 - share)) ** 0.5)

    def _size(self) -> int:
        n_nodes = self.graph_.n_nodes
        return min(max(round(self.share * n_nodes), 1), n_nodes - 1)

    def _resample(self, rng: Generator) -> Graph:
        return self._take(np.sort(rng.choice(self.graph_.n_nodes, self._size(), replace=False)))


@dataclass(eq=False)
class LatentPositionBootstrap(NodeResampler):
    """Resample the latent positions of :class:`.RandomDotProduct`, then draw edges (Levin and Levina, 2019).

    Examples
    --------
    >>> from numpy.random import SeedSequence
    >>> from nodecopy import datasets
    >>> from nodecopy.inference import LatentPositionBootstrap
    >>> LatentPositionBootstrap().fit(datasets.load("karate")).draw(SeedSequence(0)).n_nodes
    34
    """

    def fit(self, graph: GraphLike, *, rng: Rng = None) -> Self:
        super().fit(graph, rng=rng)
        self.model_ = RandomDotProduct().fit(self.graph_)
        return self

    def _resample(self, rng: Generator) -> Graph:
        graph = self.graph_
        nodes = rng.integers(0, graph.n_nodes, graph.n_nodes)
        labels: Any = None if graph.label_codes is None else graph.label_codes[nodes]
        bare = graph.replace(features=None, node_ids=None, labels=labels)
        return replace_edges(bare, *self.model_.draw_edges(rng, nodes, directed=graph.directed))


MODELS: dict[str, dict[str, Any]] = {  # by what is resampled; names are also those of the command line
    "edges": {
        "node-copying": ClassCopying,  # the default
        "dc-sbm": DegreeCorrectedSBM,
        "dot-product": RandomDotProduct,
        "sbm": SBM,
    },
    "nodes": {
        "node-bootstrap": NodeBootstrap,
        "subsampling": NodeSubsampling,
        "latent-positions": LatentPositionBootstrap,
    },
}
Sampler: TypeAlias = GraphModel[Graph] | NodeResampler


class Sampling(NamedTuple):
    """A fitted model with its samples, by number, and the values of statistics of each in turn."""

    sampler: Sampler
    draw: Callable[[int], Graph]
    values: Iterator[Values]


def start_sampling(
    graph: Graph,
    measure: GraphMeasure,
    model: Any,
    *,
    call: str,
    n: int,
    resample: str = "edges",
    workers: int = 1,
    rng: Rng = None,
    finish: Callable[[Graph, SeedSequence], Graph] | None = None,
) -> Sampling:
    """Fit a model and draw samples of a graph; ``finish`` changes a sample before it is measured.

    Markov chains of the call ``"null_test"`` start at a hub, a graph that a chain reached from the graph.
    """
    check_integer(workers, f"workers of {call}", low=1)
    seed = seed_sequence(rng)
    sampler = choose_sampler(model, resample)
    labelled = label_blocks(graph) if isinstance(sampler, BLOCK_MODELS) else graph
    sampler = sampler.fit(labelled, rng=child(seed, FIT_SEED))
    if call == "null_test" and isinstance(sampler, (ConfigurationModel, BlockConfigurationModel)):
        sampler = sampler.restart(child(seed, HUB_SEED))
    samples_seed, draw = child(seed, SAMPLES_SEED), getattr(sampler, "_checked_draw", sampler.draw)

    def draw_number(number: int) -> Graph:
        sample = draw(child(samples_seed, number))
        return sample if finish is None else finish(sample, child(seed, FINISH_SEED, number))

    stream = sample_stream(lambda number: measure(draw_number(number)), n, workers)
    values = (values for _, values in zip(track(range(n), "sample"), stream, strict=False))
    return Sampling(sampler, draw_number, values)


def choose_sampler(model: Any, resample: str) -> Sampler:
    """Return the model or what its name stands for; a donor rule stands for node copying with it."""
    model = from_name(model, MODELS[resample], f"model of resample={resample!r}")
    if model is None:
        return ClassCopying() if resample == "edges" else NodeBootstrap()
    if isinstance(model, NodeResampler if resample == "nodes" else GraphModel):
        return model
    if resample == "edges" and not isinstance(model, (type, NodeResampler)) and hasattr(model, "fit"):
        return NodeCopying(model)
    allowed = {
        "edges": "a graph model such as NodeCopying(SameLabel()), or a donor rule",
        "nodes": "NodeBootstrap(), NodeSubsampling() or LatentPositionBootstrap()",
    }
    raise InputError("model", f"must be {allowed[resample]} if {resample} are resampled; got {show(model)}.")


def label_blocks(graph: Graph) -> Graph:
    """Return the graph with estimated communities as labels, unless it has labels."""
    if graph.label_codes is not None:
        return graph
    blocks = spectral_communities(graph)
    n_blocks = "1 community" if not blocks.any() else f"{blocks.max() + 1} communities"
    log_decision(f"blocks: {n_blocks}, estimated from the graph.", "labels")
    return graph.replace(labels=blocks)


def collect_values(samples: Iterator[Values], observed: Values, n: int) -> Samples:
    """Return the values of each statistic as an array, one row per sample."""
    if (n_bytes := 8 * n * sum(np.size(value) for value in observed.values())) > MAX_BYTES:
        need = f"{n_bytes / 2**30:.0f} GiB. Draw fewer, or compute fewer statistics of nodes."
        raise InputError("n", f"must need at most {MAX_BYTES >> 30} GiB for all values; {n} need {need}")
    values = {name: np.empty((n, *np.shape(value))) for name, value in observed.items()}
    for number, sample in enumerate(samples):
        for name, rows in values.items():
            if np.shape(sample[name]) != rows.shape[1:]:
                raise InputError(
                    "statistic",
                    f"must return as many numbers for every sample; {name} did not. Statistics of nodes need "
                    "samples with the observed nodes; those of edges return a mapping from pairs of nodes.",
                )
            rows[number] = sample[name]
    return values
