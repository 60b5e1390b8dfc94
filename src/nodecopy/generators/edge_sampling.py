"""Samples from scores of pairs, as NetGAN and CELL draw them, and the training that both share.

Every node first draws one neighbour in proportion to its scores. The other edges are drawn from all other
pairs without replacement, in proportion to their scores. This is equivalent to a race: each pair gets a
standard exponential number divided by its score, and pairs are taken in ascending order. So only the best
pairs are kept while the scores are read in blocks of rows, and the result is exact without an N x N matrix.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, Self, TypeAlias

import numpy as np
import torch
from numpy.random import Generator, SeedSequence
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from nodecopy._core.csr import IntArray
from nodecopy._core.random import Rng, child, seed_sequence
from nodecopy._core.validation import check_callable, check_integer, check_numbers, check_real, check_type
from nodecopy.conversion import GraphLike, convert_graph
from nodecopy.errors import InputError
from nodecopy.generators.base import binary_adjacency, replace_edges
from nodecopy.generators.link_prediction import PairArray
from nodecopy.graph import Graph
from nodecopy.metrics import edge_overlap
from nodecopy.models import GraphModel
from nodecopy.nn.devices import check_device

MAX_SCORE = 2.0**63
"""Largest score, so that sums of scores are finite; scores are probabilities or counts."""
Callback: TypeAlias = Callable[[int, Graph], Any]
"""Receives the step and the sample of each evaluation; training ends if it returns something true."""


class Training(Protocol):
    """The training of an :class:`EdgeScoreModel`."""

    def step(self) -> None:
        """Take one step."""

    def evaluate(self, step: int) -> dict[str, Any]:
        """Return the fitted attributes after so many steps."""


@dataclass(kw_only=True, eq=False, repr=False)
class EdgeScoreModel(GraphModel[Graph]):
    """The base class of models that are trained up to a given edge overlap and sample edges by scores.

    Samples have as many edges as the observed graph. Nodes without edges have none in samples, and scores are
    those of the other nodes. A subclass names its ``_training_class``, which gets the model, the binary
    adjacency matrix of the nodes with edges, the seed and the device. It writes ``_score_blocks`` and checks
    its own settings in ``_check``.

    Attributes
    ----------
    overlap_, n_steps_
        Share of the observed edges in the sample of the last evaluation, and the step of that evaluation.
    """

    overlap: float = 0.5
    n_steps: int
    evaluate_every: int
    learning_rate: float
    device: str = "cpu"

    overlap_: float = field(init=False)
    n_steps_: int = field(init=False)
    _training_class: ClassVar[Any]
    _evaluation_seed: ClassVar[int]

    def fit(self, graph: GraphLike, *, rng: Rng = None, callback: Callback | None = None) -> Self:
        """Train until a sample has the required share of the observed edges.

        Parameters
        ----------
        graph
            The observed graph, undirected and with at least one edge, or what :func:`.as_graph` converts.
        rng
            Seed or generator.
        callback
            Called with the step and the sample of each evaluation; training ends if it returns something
            true.
        """
        self._check()
        check_callable(callback, f"callback of {type(self).__name__}")
        graph = convert_graph(graph, f"graph of {type(self).__name__}")
        adjacency, device = self._select_adjacency(graph), check_device(self.device)
        seed, fitted = seed_sequence(rng), copy(self)  # an interrupted training keeps the previous fit
        training: Training = self._training_class(self, adjacency, seed, device)
        for step in range(1, self.n_steps + 1):
            training.step()
            if step % self.evaluate_every and step != self.n_steps:
                continue
            vars(fitted).update(training.evaluate(step))
            sample = fitted._draw_graph(
                graph, np.random.default_rng(child(seed, self._evaluation_seed, step))
            )
            fitted.overlap_, fitted.n_steps_ = edge_overlap(sample, graph), step
            if (callback is not None and callback(step, sample)) or fitted.overlap_ >= self.overlap:
                break
        vars(self).update(vars(fitted), graph_=graph)
        return self

    def _check_state(self) -> None:
        """Check the settings of the fit, and that there is a score of every pair of nodes with edges."""
        graph = check_type(self.graph_, Graph, "graph_", "a Graph")
        check_real(self.overlap_, "overlap_", low=0.0, high=1.0)
        check_integer(self.n_steps_, "n_steps_", low=1)
        n_nodes, n_rows = self._select_adjacency(graph).shape[0], 0
        for scores in self._score_blocks():
            check_numbers(scores, "scores of pairs")
            if scores.shape[1:] != (n_nodes,) or not ((scores >= 0) & (scores <= MAX_SCORE)).all():
                break
            n_rows += len(scores)
        if n_rows != n_nodes:
            raise InputError(f"scores of pairs must be finite, not negative, and {n_nodes} for every node.")

    def draw(self, seed: SeedSequence) -> Graph:
        return self._draw_graph(self.graph_, np.random.default_rng(seed))

    def _draw_graph(self, graph: Graph, rng: Generator) -> Graph:
        nodes = np.flatnonzero(graph.degrees)
        return replace_edges(graph, *nodes[assemble_edges(self._score_blocks(), graph.n_edges, rng)])

    @abstractmethod
    def _score_blocks(self) -> Iterator[NDArray[Any]]:
        """Yield the rows of the symmetric scores of nodes with edges, in new arrays."""

    def _check(self) -> None:
        name = type(self).__name__
        check_real(self.overlap, f"overlap of {name}", low=0.0, high=1.0)
        check_real(self.learning_rate, f"learning_rate of {name}", low=0.0)
        for setting in ("n_steps", "evaluate_every"):
            check_integer(getattr(self, setting), f"{setting} of {name}", low=1)

    def check_finite(self, numbers: Iterable[Tensor]) -> None:
        if not all(bool(torch.isfinite(tensor).all()) for tensor in numbers):
            raise InputError(
                f"settings of {type(self).__name__} must not be so large that training overflows; "
                f"got a learning_rate of {self.learning_rate:g}."
            )

    def _select_adjacency(self, graph: Graph) -> sparse.csr_array:
        """Return the binary adjacency matrix of the nodes with edges, after checking the graph."""
        name = type(self).__name__
        if graph.directed:
            raise InputError(f"graph of {name} must be undirected, see graph.undirected(); got {graph!r}.")
        if not graph.n_edges:
            raise InputError(f"graph of {name} must have an edge; got {graph!r}.")
        nodes = np.flatnonzero(graph.degrees)
        return sparse.csr_array(binary_adjacency(graph)[nodes][:, nodes])


def assemble_edges(blocks: Iterable[NDArray[Any]], n_edges: int, rng: Generator) -> PairArray:
    """Draw distinct pairs of different nodes by their scores, ``[2, n_edges]``, the smaller node first.

    Every node with a positive score has an edge, unless ``n_edges`` is smaller than the number of these nodes
    less one and too small for the neighbours that they drew. If fewer than ``n_edges`` pairs have a positive
    score, all of them are edges.

    Parameters
    ----------
    blocks
        Consecutive rows of the symmetric scores, none negative. The diagonal is ignored and overwritten.
    n_edges
        Number of pairs.
    rng
        Generator of the draws.
    """
    neighbours, race, start, n_nodes = [], _Race(n_edges), 0, 0
    for scores in blocks:
        size, n_nodes = scores.shape
        scores[np.arange(size), np.arange(start, start + size)] = 0
        neighbours.append(_draw_neighbours(scores, rng.random((size, 1))))
        race.add(scores[:, start:], start, n_nodes, rng)
        start += size
    neighbour, node = np.concatenate(neighbours), np.arange(n_nodes)
    has_neighbour = neighbour >= 0
    codes = np.minimum(node, neighbour) * n_nodes + np.maximum(node, neighbour)
    codes = np.where(has_neighbour, codes, -1)
    first = np.unique(codes[has_neighbour])
    if len(first) > n_edges:
        edges = np.array(_order_by_need(codes, n_nodes, rng)[:n_edges], np.int64)
    else:
        others = race.winners()
        edges = np.append(first, others[~np.isin(others, first)][: n_edges - len(first)])
    return np.stack(np.divmod(edges, n_nodes))


class _Race:
    """The ``size`` pairs with the smallest times so far; a pair (i, j) has the code i N + j."""

    def __init__(self, size: int) -> None:
        self.size, self.worst = size, np.inf
        self.times, self.codes = np.zeros(0), np.zeros(0, np.int64)

    def add(self, scores: NDArray[Any], start: int, n_nodes: int, rng: Generator) -> None:
        """Add the pairs above the diagonal, given rows and columns from ``start`` on."""
        size = len(scores)
        times = rng.standard_exponential(scores.shape)
        with np.errstate(divide="ignore"):
            times /= scores
        times[:, :size][np.tri(size, dtype=bool)] = np.inf
        row, column = np.nonzero(times < self.worst)
        self.times = np.append(self.times, times[row, column])
        self.codes = np.append(self.codes, (row + start) * n_nodes + column + start)
        if len(self.times) > self.size:
            best = np.argpartition(self.times, self.size - 1)[: self.size]
            self.times, self.codes = self.times[best], self.codes[best]
            self.worst = self.times.max()

    def winners(self) -> NDArray[np.int64]:
        return self.codes[np.argsort(self.times, kind="stable")]


def _draw_neighbours(scores: NDArray[Any], uniforms: NDArray[np.float64]) -> IntArray:
    """Draw a column for each row in proportion to its scores; -1 if all of them are zero."""
    cumulative = np.cumsum(scores, axis=1, dtype=np.float64)
    total = cumulative[:, -1]
    return np.where(total > 0, (cumulative > uniforms * total[:, None]).argmax(axis=1), -1)


def _order_by_need(codes: NDArray[np.int64], n_nodes: int, rng: Generator) -> list[int]:
    """Return the pairs that nodes drew in random order, those that give a node its first edge first."""
    has_edge = np.zeros(n_nodes, bool)
    needed: list[int] = []
    others: list[int] = []
    for node in rng.permutation(n_nodes).tolist():
        if (code := int(codes[node])) >= 0:
            (others if has_edge[node] else needed).append(code)
            has_edge[list(divmod(code, n_nodes))] = True
    return list(dict.fromkeys(needed + others))
