"""The structure of a graph that samples of a null model keep: its sides, self-loops and weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike
from scipy import sparse

from nodecopy._core.arrays import Floats, Ints
from nodecopy._core.checks import check_choice, check_vector
from nodecopy._core.messages import log_decision, warn_about_data
from nodecopy.errors import InputError
from nodecopy.generators.base import binary_adjacency, list_edges, replace_edges
from nodecopy.generators.blocks import SBM, BlockModel, DegreeCorrectedSBM, assign_blocks
from nodecopy.generators.classical import BlockConfigurationModel, ChungLu, ConfigurationModel, ErdosRenyi
from nodecopy.graph import Graph

MIN_CYCLES = 7  # independent cycles that have even lengths by chance in fewer than 1 % of the graphs
N_BATCHES = 20  # in which weights are assigned to edges by the strengths of nodes


@dataclass(frozen=True)
class Structure:
    """The structure of a graph that samples of a null model keep: sides, self-loops and weights."""

    graph: Graph
    sides: Ints | None
    """The side of each node, 0 or 1, if the graph is bipartite."""
    weights: str

    @classmethod
    def of(cls, graph: Graph, sides: Any, weights: str) -> Structure:
        """Return the structure after checking the sides, or detecting them."""
        if isinstance(sides, str):
            check_choice(sides, "sides of null_test", ("detect",))
            codes = detect_sides(graph)
            if codes is not None:
                n_first = int((codes == 0).sum())
                found = f"the graph is bipartite, with {n_first} and {graph.n_nodes - n_first} nodes"
                log_decision(f"sides: {found}, and so are the samples.", "sides")
            return cls(graph, codes, weights)
        if sides is None:
            return cls(graph, None, weights)
        values, name = check_vector(sides, "sides of null_test", length=graph.n_nodes), "sides of null_test"
        names, codes = np.unique(values, return_inverse=True)
        if len(names) > 2 or (n_inside := count_inside(graph, codes)):
            got = f"{len(names)} values" if len(names) > 2 else f"{n_inside} edges within a side"
            raise InputError(name, f"must have two values, and edges between them; got {got}. Give None.")
        return cls(graph, codes, weights)

    def adapt(self, model: Any, graph: Graph) -> tuple[Any, Graph]:
        """Return a model that keeps the sides, and the graph that it is fitted to, with blocks as labels."""
        if self.sides is None:
            return model, graph
        labels: Any = self.sides
        if isinstance(model, BlockModel):
            labels = labels + 2 * assign_blocks(graph, np.random.default_rng(0))
        elif isinstance(model, ConfigurationModel):
            model = BlockConfigurationModel(model.n_swaps)
        elif isinstance(model, ErdosRenyi):
            model = SBM(model.fixed_edges)
        elif isinstance(model, ChungLu):
            model = DegreeCorrectedSBM()
        else:
            return model, graph
        return model, graph.replace(labels=labels)

    def restore(self, sample: Graph, seed: SeedSequence) -> Graph:
        """Return the sample with the labels, self-loops and weights of the graph, where it has none."""
        graph = self.graph
        loops, is_weighted = _loops(graph), graph.is_weighted and not sample.is_weighted
        if not is_weighted and np.array_equal(_loops(sample), loops):
            return graph.with_rows(sample.rows)
        first, second = list_edges(sample)
        weights = None
        if is_weighted:
            rows, columns = graph.rows.row_numbers, graph.rows.indices
            values = graph.adjacency.data[rows != columns if graph.directed else rows < columns]
            weights = self._assign(values, first, second, np.random.default_rng(seed))
            weights = np.append(weights, graph.adjacency.diagonal()[loops])
        return replace_edges(graph, np.append(first, loops), np.append(second, loops), weights)

    def _assign(self, values: Floats, first: Ints, second: Ints, rng: Generator) -> Floats:
        """Return a weight for each edge; with another number of edges weights are resampled."""
        values = rng.choice(values, len(first), replace=len(first) != len(values))
        if self.weights == "permute":
            return values
        adjacency, n_nodes = self.graph.adjacency, self.graph.n_nodes
        loops = adjacency.diagonal()
        rest = [np.asarray(adjacency.sum(axis=1) - loops), np.asarray(adjacency.sum(axis=0) - loops)]
        weights, values, edges = np.empty(len(first)), np.sort(values), rng.permutation(len(first))
        for batch in np.array_split(edges, N_BATCHES):  # the largest weights are for the largest products
            expected = rest[0][first[edges]] * rest[1][second[edges]]
            ranks = np.argsort(np.argsort(expected, kind="stable"))[: len(batch)]
            weights[batch], values = values[ranks], np.delete(values, ranks)
            edges = edges[len(batch) :]
            used = [np.bincount(ends[batch], weights[batch], n_nodes) for ends in (first, second)]
            used = used if self.graph.directed else [used[0] + used[1]] * 2
            rest = [np.maximum(part - sums, 0.0) for part, sums in zip(rest, used, strict=True)]
        return weights

    def list_kept(self, samples: Sequence[Graph], model: str) -> tuple[str, ...]:
        """Return what the samples share with the graph, and warn if they break its structure."""
        graph, sides = self.graph, self.sides
        alike: dict[str, Callable[[Graph], Any]] = {
            "directions": lambda g: g.directed,
            "degrees": lambda g: np.stack([g.degrees, np.bincount(g.rows.indices, minlength=g.n_nodes)]),
            "number of edges": lambda g: g.n_edges,
            "self-loops": _loops,
            "sides": lambda g: sides is not None and count_inside(g, sides),
            "weights": lambda g: np.sort(g.adjacency.data),
        }
        features = {
            "directions": graph.directed,
            "self-loops": len(_loops(graph)),
            "sides": sides is not None,
        }
        features |= {"weights": graph.is_weighted}
        has_all = {
            name: all(np.array_equal(of(sample), of(graph)) for sample in samples)
            for name, of in alike.items()
            if features.get(name, True)
        }
        if has_all["degrees"]:
            del has_all["number of edges"]
        if lost := [name for name in features if not has_all.get(name, True)]:
            advice = "Use the null model 'configuration'."
            warn_about_data(f"samples of {model} do not have the {lost[0]} of the graph. {advice}", "null")
        return tuple(name for name, is_kept in has_all.items() if is_kept)


def detect_sides(graph: Graph) -> Ints | None:
    """Return the side of each node, 0 or 1, of a graph that is bipartite by more than chance.

    The first node of a component is on side 0. In a random graph about half of the independent cycles have an
    odd length, so that chance explains a graph with few cycles.
    """
    from scipy.sparse.csgraph import connected_components

    cover = join_sides(binary_adjacency(graph.undirected()))
    n_parts, parts = connected_components(cover.adjacency, directed=False)
    first, second = np.split(parts, 2)
    n_cycles = cover.n_edges // 2 - graph.n_nodes + n_parts // 2
    if len(_loops(graph)) or (first == second).any() or n_cycles < MIN_CYCLES:
        return None
    return (first > second).astype(np.int64)


def count_inside(graph: Graph, sides: Ints) -> int:
    """Return the number of ends of edges within a side."""
    return int((sides[graph.rows.row_numbers] == sides[graph.rows.indices]).sum())


def _loops(graph: Graph) -> Ints:
    """Return the nodes with a self-loop."""
    loops: Ints = graph.rows.indices[graph.rows.indices == graph.rows.row_numbers].astype(np.int64)
    return loops


def join_sides(matrix: Any, node_ids: ArrayLike | None = None) -> Graph:
    """Return the bipartite graph of a matrix, its rows first and then its columns."""
    return Graph(sparse.block_array([[None, matrix], [matrix.T, None]], format="csr"), node_ids=node_ids)
