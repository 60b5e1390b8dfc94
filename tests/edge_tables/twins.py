"""The same sample by the model in memory and by the model on edge tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
from scipy import sparse

from nodecopy import Graph, Interactions, Jaccard, NearestNeighbours, NodeCopying, SameLabel, Weighted
from nodecopy.edge_tables import (
    EdgeTableCopying,
    JaccardTable,
    NearestNeighboursTable,
    SameLabelTable,
    WeightedTable,
)
from nodecopy.edge_tables.engines import TableEngine

Edges = dict[tuple[Any, Any], float]
Data = Graph | Interactions
NUMBERS = count()
FOLDER = TemporaryDirectory()
RULES = ("labels", "neighbours", "weights", "shared items")


@dataclass
class Twins:
    """One model twice, with random labels, lists and weights for the donor rules."""

    data: Data
    donors: str
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
        self.nearest = NearestNeighbours(min(3, n), embeddings=generator.integers(0, 9, (n, 1)))
        if not n and self.donors == "neighbours":
            self.donors = "labels"  # nobody has neighbours

    @property
    def ids(self) -> Any:
        return self.data.node_ids if isinstance(self.data, Graph) else self.data.user_ids

    def in_memory(self) -> Edges:
        n = self.data.rows.n_rows
        similarity = sparse.csr_array((self.weights, self.pairs.T), shape=(n, n))
        rule: Any = {
            "labels": SameLabel(self.labels),
            "neighbours": self.nearest,
            "weights": Weighted(similarity),
            "shared items": Jaccard(),
        }[self.donors]
        model: NodeCopying[Any] = NodeCopying(rule, self.keep, self.symmetrise).fit(self.data)
        one = model.copy(
            model.draw_donors(rng=self.seed, sample=self.sample), rng=self.seed, sample=self.sample
        )
        return edges_of(one)

    def in_tables(self, engine: TableEngine, edges: Any = None) -> Edges:
        ids = self.ids
        pairs = {"node": ids[self.pairs[:, 0]], "donor": ids[self.pairs[:, 1]]}
        rule: Any = {
            "labels": SameLabelTable(table(engine, id=ids, label=self.labels)),
            "neighbours": NearestNeighboursTable(self._ranked(engine)),
            "weights": WeightedTable(table(engine, **pairs, weight=self.weights)),
            "shared items": JaccardTable(),
        }[self.donors]
        model = EdgeTableCopying(rule, self.keep, self.symmetrise).fit(
            self._with_duplicates(engine) if edges is None else edges,
            engine=engine,
            directed=isinstance(self.data, Graph) and self.data.directed,
            interactions=isinstance(self.data, Interactions),
            nodes=table(engine, id=ids),
        )
        return collected(model.sample(rng=self.seed, sample=self.sample))

    def _ranked(self, engine: TableEngine) -> Any:
        """The lists that the donor rule in memory finds."""
        if self.donors != "neighbours":
            return None
        lists = self.nearest.fit(self.data)
        node = np.repeat(lists.list_of, np.diff(lists.offsets))
        columns = {"node": self.ids[node], "donor": self.ids[lists.members], "rank": np.arange(len(node))}
        return table(engine, **columns)

    def _with_duplicates(self, engine: TableEngine) -> Any:
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
        return named_table(engine, data, source, target, None if weight is None else weights)


def table(engine: TableEngine, **columns: Any) -> Any:
    """Return columns as a table of the engine, through a Parquet file."""
    path = Path(FOLDER.name) / f"table-{next(NUMBERS)}.parquet"
    pyarrow.parquet.write_table(pyarrow.table({k: pyarrow.array(v) for k, v in columns.items()}), path)
    return engine.scan(path)


def edge_table(engine: TableEngine, data: Data) -> Any:
    return named_table(engine, data, *(data.edges() if isinstance(data, Graph) else data.table()))


def named_table(engine: TableEngine, data: Data, *columns: Any) -> Any:
    names = ("source", "target", "weight") if isinstance(data, Graph) else ("user", "item", "rating")
    return table(engine, **{k: v for k, v in zip(names, columns, strict=True) if v is not None})


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
