"""Node copying on edge tables, donors JOIN edges ON donor = source, and statistics of edge tables."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from nodecopy._core.checks import check_choice, check_integer, check_real, check_type, list_names, type_name
from nodecopy._core.estimator import Configurable
from nodecopy._core.messages import log_decision
from nodecopy._core.random import Key, Rng, sample_key, seed_sequence
from nodecopy.edge_tables.donors import EdgeTableRule, flip_coins, is_labelled
from nodecopy.edge_tables.engines import ROLES_OF_EDGES, TableEngine, count_rows, ibis, read_edges, read_ids
from nodecopy.errors import InputError, NotFittedError
from nodecopy.io.columns import ColumnNames
from nodecopy.metrics.structure import LABEL_NAMES, Statistics, summarise_degrees, summarise_label_counts

MAX_NODES = 2**32  # node numbers are counters of Threefry, which have 32 bits


class EdgeTableCopying(Configurable):
    """Sample edge tables inside an engine; the same seed gives the edges of :class:`.NodeCopying`.

    Parameters
    ----------
    donors
        :class:`.SameLabelTable`, :class:`.NearestNeighboursTable`, :class:`.WeightedTable`,
        :class:`.JaccardTable`, or any object with their methods.
    keep, symmetrise
        As in :class:`~nodecopy.copying.NodeCopying`.

    Attributes
    ----------
    nodes_
        Table of id and number, from 0 in ascending order of the ids. Draws depend on seed, sample and this
        number alone.
    n_nodes_
        Number of nodes.

    Examples
    --------
    >>> model = EdgeTableCopying(SameLabelTable("labels.parquet"))  # doctest: +SKIP
    >>> with DuckDB(memory="1GB") as engine:  # doctest: +SKIP
    ...     model.fit("edges.parquet", engine=engine).write("sample.parquet", rng=7)
    """

    nodes_: Any
    n_nodes_: int

    def __init__(self, donors: EdgeTableRule, keep: float = 0.0, symmetrise: str = "one-endpoint") -> None:
        self.donors, self.keep, self.symmetrise = donors, keep, symmetrise

    def fit(
        self,
        edges: Any,
        *,
        engine: TableEngine,
        directed: bool = False,
        interactions: bool = False,
        nodes: Any = None,
        columns: ColumnNames | None = None,
        allow_isolated: bool = False,
    ) -> EdgeTableCopying:
        """Check an edge table, number its nodes and fit the donor rule.

        Parameters
        ----------
        edges
            Parquet (a file, a folder, or a pattern such as ``"edges/*.parquet"``) or an Ibis table of source,
            target and optionally weight, the larger one of a pair that is listed twice or in both directions.
        engine
            The engine that computes everything; it must stay open while the model is used.
        directed
            Whether edges are directed; not by default.
        interactions
            Whether the table holds users and items: users are copied, items are not nodes.
        nodes
            A table of all node ids, if some nodes have no edges.
        columns
            Names of columns by role, such as ``{"source": "payer", "weight": ""}`` (an empty name leaves
            weights out), or roles user, item and rating of interactions; others as in :func:`.read_graph`.
        allow_isolated
            Whether labelled ids without edges become isolated nodes instead of an error.
        """
        self._keep = check_real(self.keep, "keep of EdgeTableCopying", low=0.0, high=1.0)
        rules = ["maximum", "one-endpoint", "none"]
        check_choice(self.symmetrise, "symmetrise of EdgeTableCopying", rules)
        check_type(engine, TableEngine, "engine of EdgeTableCopying", "an engine, such as DuckDB()")
        if not hasattr(self.donors, "ids"):
            got = type_name(self.donors)
            raise InputError("donors of EdgeTableCopying", f"must be such as SameLabelTable(); got {got}.")
        is_undirected = not (directed or interactions)
        self._rule = self.symmetrise if is_undirected and self.symmetrise != "none" else None
        self._engine, self._interactions = engine, interactions
        own = [] if nodes is None else [read_ids(nodes, engine).select("id")]
        if (labelled := self.donors.ids(engine)) is not None:
            own.append(labelled)
        kind: Any = {"directed": directed, "interactions": interactions, "columns": columns}
        rows, listed, self._id_type = read_edges(edges, engine, **kind, others=own)
        self.weighted = "weight" in rows.columns
        self._number_nodes(listed if labelled is None else listed[:-1])
        if labelled is not None:
            self._add_labelled(listed, allow_isolated)
        self._rows, self._fitted = rows, self.donors.fit(rows, self.nodes_, engine)
        return self

    def _add_labelled(self, listed: list[Any], allow_isolated: bool) -> None:
        unknown = listed[-1].anti_join(self.nodes_, "id").order_by("id")
        if not (n_unknown := count_rows(unknown, self._engine)):
            return
        first = [row["id"] for row in self._engine.rows(unknown.limit(3))]
        named = list_names(map(repr, first)) + ", ..." * (n_unknown > len(first))
        if not allow_isolated:
            problem = f"must be of nodes of the graph; {n_unknown} ids are not: {named}"
            way_out = "Correct them, or add isolated nodes."
            raise InputError("labels", f"{problem}. {way_out}", allow_isolated=True)
        log_decision(f"ids without edges are isolated nodes ({n_unknown}): {named}.")
        self._number_nodes(listed)

    def draw_donors(self, *, rng: Rng = None, sample: int = 0) -> Any:
        """Return a table of node and donor, with the donors of :meth:`.NodeCopying.draw_donors`."""
        donors = self._donors(self._key(rng, sample)).select("node", "donor")
        return donors.cast({"node": self._id_type, "donor": self._id_type})

    def sample(self, *, rng: Rng = None, sample: int = 0) -> Any:
        """Return a sample as an Ibis table of source, target and, if weighted, weight, in no order.

        Interactions have columns user, item and, if weighted, rating. Undirected edges are listed once, from
        the smaller id.
        """
        key = self._key(rng, sample)
        return self._copy_rows(self._engine.materialise(self._donors(key)), key)

    def write(self, path: str | os.PathLike[str], *, rng: Rng = None, sample: int = 0) -> None:
        """Write :meth:`sample` as Parquet, a file with DuckDB, a folder with Spark, whole or not at all."""
        self._check_fitted()
        with self._engine.temporary_tables():
            self._engine.write(self.sample(rng=rng, sample=sample), path)

    def _number_nodes(self, tables: list[Any]) -> None:
        ids = ibis.union(*tables, distinct=True) if len(tables) > 1 else tables[0].distinct()
        ids = self._engine.materialise(ids)
        limits = self._engine.row(ids.aggregate(n=ids.count(), low=ids.id.min(), high=ids.id.max()))
        self.n_nodes_ = int(limits["n"])
        if self.n_nodes_ >= MAX_NODES:
            raise InputError(f"a graph must have fewer than 2**32 nodes; got {self.n_nodes_}.")
        if (limits["low"], limits["high"]) == (0, limits["n"] - 1):
            self.nodes_ = ids.mutate(number=ids.id.cast("int64"))
        else:
            numbers = ibis.row_number().over(order_by=ids.id).cast("int64")
            self.nodes_ = self._engine.materialise(ids.mutate(number=numbers))

    def _check_fitted(self) -> None:
        if not hasattr(self, "_fitted"):
            raise NotFittedError("this EdgeTableCopying is not fitted yet: call fit first.")

    def _key(self, rng: Rng, sample: int) -> Key:
        self._check_fitted()
        check_integer(sample, "sample", low=0)
        return sample_key(seed_sequence(rng), sample)

    def _donors(self, key: Key) -> Any:
        nodes = self.nodes_.rename(node="id")
        if self._keep == 1.0:
            return nodes.mutate(donor=nodes.node)
        chosen = nodes.left_join(self._fitted.draw(key, self._keep), [("node", "id")])
        return chosen.select("node", "number", donor=ibis.coalesce(chosen.donor, chosen.node))

    def _copy_rows(self, donors: Any, key: Key) -> Any:
        """Return T(A, zeta), with ids of the input's type."""
        weight = ["weight"] if self.weighted else []
        copied = donors.join(self._rows, [("donor", "source")])
        if self._rule == "one-endpoint":
            targets = self.nodes_.rename(target="id", other="number")
            copied = copied.select("node", "number", "target", *weight).join(targets, "target")
            copied = copied.filter(copied.number != copied.other)
            copied = self._engine.stage(flip_coins(copied, key, copied.number, copied.other))
            copied = copied.filter(copied.to_larger == (copied.number > copied.other))
        copied = copied.select("target", *weight, source="node")
        if self._rule is not None:
            copied = copied.filter(copied.source != copied.target)
            ends = copied.source, copied.target
            copied = copied.select(*weight, source=ibis.least(*ends), target=ibis.greatest(*ends))
            copied = self._engine.distinct(copied)
        kinds = {"source": self._id_type} | ({} if self._interactions else {"target": self._id_type})
        roles = ("source", "target", *weight)
        names = {ROLES_OF_EDGES[role] if self._interactions else role: role for role in roles}
        return copied.cast(kinds).select(**names)


def edge_table_statistics(
    edges: Any,
    *,
    engine: TableEngine,
    nodes: Any = None,
    directed: bool = False,
    observed: Any = None,
    columns: ColumnNames | None = None,
) -> Statistics:
    """Return statistics of an edge table: degrees, labels and components, as :func:`.statistics`.

    Parameters
    ----------
    edges
        As in :meth:`.EdgeTableCopying.fit`.
    engine
        The engine that counts.
    nodes
        A table of ids, if some nodes have no edges, and optionally labels.
    directed
        Whether edges are directed, not by default; components ignore directions.
    observed
        Another edge table; adds ``edge_overlap``, the share of its edges that are in ``edges``.
    columns
        Names of the columns of ``edges``, or of ``observed`` if it is given, as in the fit.

    Examples
    --------
    >>> with DuckDB() as engine:  # doctest: +SKIP
    ...     edge_table_statistics("sample.parquet", engine=engine, observed="edges.parquet")["edge_overlap"]
    """
    check_type(engine, TableEngine, "engine", "an engine, such as DuckDB()")
    table = None if nodes is None else read_ids(nodes, engine)
    others = [] if table is None else [table.select("id")]
    own = columns if observed is None else None
    entries, listed, _ = read_edges(edges, engine, directed=directed, columns=own, others=others)
    entries, ids = entries.select("source", "target"), engine.materialise(ibis.union(*listed, distinct=True))
    histogram = _degree_histogram(entries, ids, engine)
    n_entries = sum(degree * count for degree, count in histogram)
    values: Statistics = {
        "n_nodes": sum(count for _, count in histogram),
        "n_edges": n_entries if directed else n_entries // 2,
    }
    values |= summarise_degrees(histogram)
    values |= _label_statistics(entries, table, engine)
    values |= _component_statistics(entries, ids, engine)
    if observed is not None:
        wanted, _, _ = read_edges(observed, engine, directed=directed, columns=columns)
        n_common = count_rows(entries.semi_join(wanted, ["source", "target"]), engine)
        n_wanted = count_rows(wanted, engine)
        values["edge_overlap"] = n_common / n_wanted if n_wanted else math.nan
    return values


def _degree_histogram(entries: Any, ids: Any, engine: TableEngine) -> list[tuple[int, int]]:
    degrees = entries.group_by("source").agg(degree=entries.count())
    every = ids.left_join(degrees, [("id", "source")]).select(degree=degrees.degree.fill_null(0))
    histogram = every.group_by("degree").agg(number=every.count())
    return sorted((int(row["degree"]), int(row["number"])) for row in engine.rows(histogram))


def _label_statistics(entries: Any, nodes: Any, engine: TableEngine) -> Statistics:
    if nodes is None or "label" not in nodes.columns:
        return dict.fromkeys(LABEL_NAMES, math.nan)
    labels = nodes.filter(is_labelled(nodes, engine))
    sizes = labels.group_by("label").agg(size=labels.count())
    first, second = labels.rename(source="id"), labels.rename(target="id", other="label")
    joined = entries.join(first, "source").join(second, "target")
    counts = joined.group_by("label").agg(labelled=joined.count(), same=(joined.label == joined.other).sum())
    # Ordered by label, since the last statistic is a sum of fractions.
    table = sorted(engine.rows(sizes.left_join(counts, "label")), key=lambda row: row["label"])
    if not table:
        return dict.fromkeys(LABEL_NAMES, math.nan)
    names = ("same", "labelled", "size")
    return summarise_label_counts(*(np.array([row[name] or 0 for row in table], np.int64) for name in names))


def _component_statistics(entries: Any, ids: Any, engine: TableEngine) -> Statistics:
    """Count components: nodes take the smallest name among neighbours, then its name, until no change."""
    both = entries.union(entries.select(source="target", target="source"))
    names = engine.materialise(ids.select("id", name="id"))
    while True:
        around = both.join(names, [("target", "id")]).group_by("source").agg(least=ibis._.name.min())
        lower = names.left_join(around, [("id", "source")])
        least = ibis.least(lower.name, ibis.coalesce(lower.least, lower.name))
        lower = engine.materialise(lower.select("id", old="name", name=least))
        further = lower.select(match="id", further="name")
        jumped = lower.join(further, [("name", "match")])
        names = engine.materialise(jumped.select("id", "old", name="further"))
        if engine.row(names.aggregate(changed=(names.name != names.old).sum().fill_null(0)))["changed"] == 0:
            break
        names = names.select("id", "name")
    sizes = names.group_by("name").agg(size=names.count())
    counts = engine.row(sizes.aggregate(number=sizes.count(), largest=sizes["size"].max().fill_null(0)))
    return {"n_components": int(counts["number"]), "largest_component": int(counts["largest"])}
