"""From scores of pairs to a graph, as NetGAN and CELL do it, and what such models have in common.

Every node first draws one neighbour in proportion to its scores; the rest of the edges are drawn from
all other pairs, without replacement, in proportion to their scores. Drawing one after another without
replacement is a race: give each pair a standard exponential number divided by its score, and take the
pairs in ascending order. So a block of rows at a time is looked at, the best pairs so far are kept, and
the result is exact without an N x N matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from typing import Any, Self, TypeAlias

import numpy as np
import torch
from numpy.random import Generator, SeedSequence
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from nodecopy._core.csr import IntArray, Rows
from nodecopy._core.random import Rng, seed_sequence
from nodecopy._core.validation import check_real
from nodecopy.errors import InputError
from nodecopy.generators.base import EdgeListModel, Nodes
from nodecopy.graph import Graph
from nodecopy.metrics import edge_overlap

Pairs: TypeAlias = NDArray[np.int64]
Watch: TypeAlias = Callable[[int, Graph], Any]
"""Is shown the step and a sample at each evaluation; training ends where it answers with something true."""

SCORES_AT_ONCE = 2**18


class AssembledModel(EdgeListModel):
    """A graph model whose samples are assembled from scores; inherit, train and answer :meth:`_score_blocks`.

    Nodes without edges play no part and have none in samples: scores are those of the others.

    Attributes
    ----------
    overlap_, steps_
        Share of the observed edges in the sample of the last evaluation, and the step it was made at.
    """

    overlap: float
    learning_rate: float
    overlap_: float
    steps_: int

    def fit(self, graph: Graph, *, rng: Rng = None, watch: Watch | None = None) -> Self:
        """Train until samples overlap as asked for; ``watch`` is shown the sample of each evaluation."""
        trained = copy(self)  # training that is interrupted leaves what was fitted before
        trained._train(graph, seed_sequence(rng), watch)
        vars(self).update(vars(trained), graph_=graph)
        return self

    def _train(self, graph: Graph, seed: SeedSequence, watch: Watch | None) -> None:
        raise NotImplementedError

    def _must_be_finite(self, numbers: Iterable[Tensor]) -> None:
        if not all(bool(torch.isfinite(one).all()) for one in numbers):
            raise InputError(
                f"settings of {type(self).__name__} must not be so large that training overflows; "
                f"got a learning_rate of {self.learning_rate:g}."
            )

    def _score_blocks(self) -> Iterator[NDArray[Any]]:
        """The rows of the symmetric scores of nodes with edges, in new arrays for :func:`row_blocks`."""
        raise NotImplementedError

    def _draw(self, graph: Graph, draws: Generator) -> tuple[Nodes, Nodes]:
        nodes = np.flatnonzero(graph.degrees)
        first, second = nodes[assemble(self._score_blocks(), graph.n_edges, draws)]
        return first, second

    def _is_good(self, graph: Graph, step: int, draws: Generator, watch: Watch | None) -> bool:
        """Evaluate: whether a sample has the overlap that is asked for, or the watch has seen enough."""
        sample = self._sampled(graph, draws)
        self.overlap_, self.steps_ = edge_overlap(sample, graph), step
        enough = watch is not None and bool(watch(step, sample))
        return enough or self.overlap_ >= self.overlap

    def _pattern(self, graph: Graph) -> sparse.csr_array:
        """Which nodes are neighbours, among those that have any; checks that the graph can be fitted."""
        name = type(self).__name__
        if self._checked(graph).directed:
            raise InputError(f"graph of {name} must be undirected, see graph.undirected(); got {graph!r}.")
        if not graph.n_edges:
            raise InputError(f"graph of {name} must have an edge; got {graph!r}.")
        check_real(self.overlap, f"overlap of {name}", low=0.0, high=1.0)
        nodes, rows = np.flatnonzero(graph.degrees), graph.rows
        binary = Rows(rows.indptr, rows.indices, None, rows.n_columns).csr
        return sparse.csr_array(binary[nodes][:, nodes])


def row_blocks(n_nodes: int, at_once: int = SCORES_AT_ONCE) -> Iterator[slice]:
    """Consecutive rows of an N x N matrix that hold about ``at_once`` entries together."""
    step = max(1, at_once // n_nodes)
    return (slice(start, min(start + step, n_nodes)) for start in range(0, n_nodes, step))


def assemble(blocks: Iterable[NDArray[Any]], n_edges: int, draws: Generator) -> Pairs:
    """Distinct pairs of different nodes, ``[2, n_edges]``, the smaller one first.

    Nodes with a positive score get an edge, unless ``n_edges`` is smaller than their number less one
    and too small for the neighbours they drew. Where fewer pairs than ``n_edges`` have a positive score,
    all of them are taken.

    Parameters
    ----------
    blocks
        Consecutive rows of the symmetric scores, none negative. The diagonal does not count and is
        overwritten.
    n_edges
        Number of pairs.
    draws
        Where randomness comes from.
    """
    targets, race, start, n_nodes = [], _Race(n_edges), 0, 0
    for scores in blocks:
        size, n_nodes = scores.shape
        scores[np.arange(size), np.arange(start, start + size)] = 0
        targets.append(_one_each(scores, draws.random((size, 1))))
        race.run(scores[:, start:], start, n_nodes, draws)
        start += size
    target, node = np.concatenate(targets), np.arange(n_nodes)
    drawn = target >= 0
    codes = np.where(drawn, np.minimum(node, target) * n_nodes + np.maximum(node, target), -1)
    first = np.unique(codes[drawn])
    if len(first) > n_edges:
        chosen = np.array(_needed_first(codes, n_nodes, draws)[:n_edges], np.int64)
    else:
        others = race.winners()
        chosen = np.append(first, others[~np.isin(others, first)][: n_edges - len(first)])
    return np.stack(np.divmod(chosen, n_nodes))


class _Race:
    """The ``size`` pairs with the smallest times so far; a pair (i, j) has the code i N + j."""

    def __init__(self, size: int) -> None:
        self.size, self.worst = size, np.inf
        self.times, self.codes = np.zeros(0), np.zeros(0, np.int64)

    def run(self, scores: NDArray[Any], start: int, n_nodes: int, draws: Generator) -> None:
        """Rows from ``start`` on with their columns from ``start`` on; only those above the diagonal run."""
        size = len(scores)
        times = draws.standard_exponential(scores.shape)
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

    def winners(self) -> Pairs:
        return self.codes[np.argsort(self.times, kind="stable")]


def _one_each(scores: NDArray[Any], uniforms: NDArray[np.float64]) -> IntArray:
    """A column for each row, in proportion to its scores; -1 where all are zero."""
    cumulative = np.cumsum(scores, axis=1, dtype=np.float64)
    total = cumulative[:, -1]
    return np.where(total > 0, (cumulative > uniforms * total[:, None]).argmax(axis=1), -1)


def _needed_first(codes: Pairs, n_nodes: int, draws: Generator) -> list[int]:
    """The pairs that nodes drew, in random order, but first those that give a node its first edge."""
    has_edge = np.zeros(n_nodes, bool)
    needed: list[int] = []
    others: list[int] = []
    for node in draws.permutation(n_nodes).tolist():
        if (code := int(codes[node])) >= 0:
            (others if has_edge[node] else needed).append(code)
            has_edge[list(divmod(code, n_nodes))] = True
    return list(dict.fromkeys(needed + others))
