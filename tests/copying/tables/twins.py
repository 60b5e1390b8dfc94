"""The same sample twice: by the model in memory, and by the model on tables inside an engine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
from scipy import sparse

from nodecopy import Graph, Interactions, Jaccard, NodeCopying, SameLabel, Weighted
from nodecopy.copying import DonorLists
from nodecopy.copying.tables import LabelTable, NeighbourTable, SharedItems, TableCopying, WeightTable
from nodecopy.engines import Engine
from nodecopy.rows import IntArray

Edges = dict[tuple[Any, Any], float]
Data = Graph | Interactions
LAWS = ("labels", "neighbours", "weights", "shared items")


@dataclass(frozen=True)
class Listed:
    """A law in memory whose donors are listed as pairs of node numbers."""

    pairs: IntArray
    n_nodes: int

    def fit(self, data: Data) -> DonorLists:
        matrix = sparse.csr_array((np.ones(len(self.pairs)), self.pairs.T), shape=(self.n_nodes,) * 2)
        matrix.sum_duplicates()
        alone = np.flatnonzero(np.diff(matrix.indptr) == 0)  # these keep their own neighbours
        matrix = sparse.csr_array(
            matrix + sparse.csr_array((np.ones(len(alone)), (alone, alone)), matrix.shape)
        )
        return DonorLists(np.arange(self.n_nodes), matrix.indptr, matrix.indices)


@dataclass
class Twins:
    """One model twice, with random labels, lists and weights for the donor laws."""

    data: Data
    law: str
    keep: float = 0.0
    symmetrise: str = "maximum"
    seed: int = 0
    sample: int = 0
    pairs: Any = field(init=False)

    def __post_init__(self) -> None:
        n, generator = self.data.rows.n_rows, np.random.default_rng(self.seed)
        self.pairs = np.unique(generator.integers(0, max(n, 1), (3 * n, 2)), axis=0)
        self.weights = generator.random(len(self.pairs)) ** 4
        self.labels = generator.integers(-1, 3, n)

    @property
    def ids(self) -> Any:
        return self.data.node_ids if isinstance(self.data, Graph) else self.data.user_ids

    def in_memory(self) -> Edges:
        n = self.data.rows.n_rows
        similarity = sparse.csr_array((self.weights, self.pairs.T), shape=(n, n))
        law: Any = {
            "labels": SameLabel(self.labels),
            "neighbours": Listed(self.pairs, n),
            "weights": Weighted(similarity),
            "shared items": Jaccard(),
        }[self.law]
        model: NodeCopying[Any] = NodeCopying(law, self.keep, self.symmetrise).fit(self.data)
        one = model.copy(
            model.draw_donors(rng=self.seed, sample=self.sample), rng=self.seed, sample=self.sample
        )
        return edges_of(one)

    def in_tables(self, engine: Engine, edges: Any = None) -> Edges:
        ids = self.ids
        pairs = {"node": ids[self.pairs[:, 0]], "donor": ids[self.pairs[:, 1]]}
        law: Any = {
            "labels": LabelTable(table(engine, id=ids, label=self.labels)),
            "neighbours": NeighbourTable(table(engine, **pairs)),
            "weights": WeightTable(table(engine, **pairs, weight=self.weights)),
            "shared items": SharedItems(),
        }[self.law]
        model = TableCopying(law, self.keep, self.symmetrise).fit(
            self._listed_carelessly(engine) if edges is None else edges,
            engine=engine,
            directed=isinstance(self.data, Graph) and self.data.directed,
            interactions=isinstance(self.data, Interactions),
            nodes=table(engine, id=ids),
        )
        return collected(model.sample(rng=self.seed, sample=self.sample))

    def _listed_carelessly(self, engine: Engine) -> Any:
        """Some edges twice, the second time with a smaller weight; undirected ones turned, and loops."""
        data, generator = self.data, np.random.default_rng(self.seed)
        first, second, weight = data.edges() if isinstance(data, Graph) else data.table()
        weights = np.ones(len(first)) if weight is None else weight
        again = generator.random(len(first)) < 0.3
        source, target = np.append(first, first[again]), np.append(second, second[again])
        weights = np.append(weights, weights[again] * (1 if weight is None else 0.5))
        if isinstance(data, Graph) and not data.directed:
            turned = generator.random(len(source)) < 0.5
            source, target = np.where(turned, target, source), np.where(turned, source, target)
            loops = self.ids[::2]
            source, target = np.append(source, loops), np.append(target, loops)
            weights = np.append(weights, np.full(len(loops), 9.0))
        more = {} if weight is None else {"weight": weights}
        return table(engine, source=source, target=target, **more)


def table(engine: Engine, **columns: Any) -> Any:
    """Columns as a table of the engine, through a Parquet file as a user's would come."""
    path = engine._scratch / f"given-{next(engine._numbers)}.parquet"
    pyarrow.parquet.write_table(pyarrow.table({k: pyarrow.array(v) for k, v in columns.items()}), path)
    return engine.scan(path)


def edge_table(engine: Engine, data: Data) -> Any:
    source, target, weight = data.edges() if isinstance(data, Graph) else data.table()
    return table(engine, source=source, target=target, **({} if weight is None else {"weight": weight}))


def collected(found: Any) -> Edges:
    rows = [tuple(row.values()) for row in found.to_pyarrow().to_pylist()]
    edges = {row[:2]: float(row[2]) if len(row) > 2 else 1.0 for row in rows}
    assert len(edges) == len(rows), "an edge is listed twice"
    return edges


def edges_of(data: Data) -> Edges:
    source, target, weight = data.edges() if isinstance(data, Graph) else data.table()
    weights: Iterable[float] = np.ones(len(source)) if weight is None else weight
    return {(s, t): float(w) for s, t, w in zip(source.tolist(), target.tolist(), weights, strict=True)}


def in_order(data: Data) -> Data:
    """The same with rows and columns in ascending order of ids, which is the order of tables."""
    if isinstance(data, Graph):
        order = np.argsort(data.node_ids)
        return data.replace(
            adjacency=data.adjacency[order][:, order],
            node_ids=data.node_ids[order],
            labels=None,
            features=None,
        )
    users, items = np.argsort(data.user_ids), np.argsort(data.item_ids)
    return Interactions(data.matrix[users][:, items], data.user_ids[users], data.item_ids[items])
