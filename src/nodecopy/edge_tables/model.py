"""Node copying on edge tables: donors JOIN edges ON donor = source."""

from __future__ import annotations

import os
from typing import Any

from nodecopy._core.checks import check_choice, check_integer, check_real, check_type, list_names, type_name
from nodecopy._core.estimator import Configurable
from nodecopy._core.messages import log_decision
from nodecopy._core.random import Key, Rng, sample_key, seed_sequence
from nodecopy.edge_tables.donors import EdgeTableRule, flip_coins
from nodecopy.edge_tables.engines import ROLES_OF_EDGES, TableEngine, count_rows, ibis, read_edges, read_ids
from nodecopy.errors import InputError, NotFittedError
from nodecopy.io.columns import ColumnNames

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
