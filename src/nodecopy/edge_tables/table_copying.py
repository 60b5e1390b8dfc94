"""The node copying model on edge tables: donors JOIN edges ON donor = source."""

from __future__ import annotations

import os
from typing import Any

from nodecopy._core.optional_imports import import_optional
from nodecopy._core.params import Configurable
from nodecopy._core.random import Key, Rng, sample_key, seed_sequence
from nodecopy._core.validation import check_choice, check_integer, check_real
from nodecopy.edge_tables.columns import check_ids, check_weights, select_columns
from nodecopy.edge_tables.donor_tables import EdgeTableLaw, FittedLaw
from nodecopy.edge_tables.draws import fall_to_larger
from nodecopy.edge_tables.engines import Engine
from nodecopy.errors import InputError, NotFittedError
from nodecopy.io.table_columns import EDGE_COLUMNS, INTERACTION_COLUMNS, NODE_COLUMNS

MOST_NODES = 2**32  # counters are words of 32 bits


class EdgeTableCopying(Configurable):
    """:class:`~nodecopy.copying.NodeCopying` on tables inside an engine: the same seed, the same edges.

    Parameters
    ----------
    law
        :class:`.SameLabelTable`, :class:`.NearestNeighboursTable`, :class:`.WeightedTable`,
        :class:`.JaccardTable`, or any object with their methods.
    keep, symmetrise
        As in :class:`~nodecopy.copying.NodeCopying`.

    Attributes
    ----------
    nodes_
        Table of id and number: nodes are numbered from 0 in ascending order of their ids, text in order
        of code points. Draws depend on seed, sample and this number alone.
    n_nodes_
        How many there are.

    Examples
    --------
    >>> model = EdgeTableCopying(SameLabelTable("labels.parquet"))  # doctest: +SKIP
    >>> with DuckDB(memory="1GB") as engine:  # doctest: +SKIP
    ...     model.fit("edges.parquet", engine=engine).write("sample.parquet", rng=7)
    """

    nodes_: Any
    n_nodes_: int

    def __init__(self, law: EdgeTableLaw, keep: float = 0.0, symmetrise: str = "maximum") -> None:
        self.law = law
        self.keep = keep
        self.symmetrise = symmetrise

    def fit(
        self,
        edges: Any,
        *,
        engine: Engine,
        directed: bool = False,
        interactions: bool = False,
        nodes: Any = None,
        distinct: bool = False,
    ) -> EdgeTableCopying:
        """Check a table of edges, number its nodes and fit the law.

        Parameters
        ----------
        edges
            Parquet or an Ibis table (of the engine, or ``ibis.memtable``) of source, target and perhaps
            weight. An undirected edge may be listed in one direction or both; a pair that is listed
            twice takes the larger weight.
        engine
            Where everything is computed; it must stay open while the model is used.
        directed
            Whether edges have a direction.
        interactions
            Whether the table holds users and items: users are copied, items only stand in rows.
        nodes
            A table of ids, where some nodes have no edges.
        distinct
            The promise that no directed edge is listed twice, which saves a pass over them.
        """
        ibis = import_optional("ibis", "an engine of tables")
        check_real(self.keep, "keep of EdgeTableCopying", low=0.0, high=1.0)
        check_choice(self.symmetrise, "symmetrise of EdgeTableCopying", ["maximum", "one-endpoint"])
        self._rule = None if directed or interactions else self.symmetrise
        self._engine, self._interactions = engine, interactions
        columns = INTERACTION_COLUMNS if interactions else EDGE_COLUMNS
        self._names = dict(zip(EDGE_COLUMNS, columns, strict=False))
        roles = {role: columns[name] for role, name in self._names.items()}

        table = select_columns(engine.scan(edges), roles, "edges", n_required=2)
        check_ids(table, ["source", "target"], "edges", engine)
        check_weights(table, "edges", engine)
        self.weighted = "weight" in table.columns
        listed = [table.select(id="source")] + ([] if interactions else [table.select(id="target")])
        if nodes is not None:
            roles = {"id": NODE_COLUMNS["node"]}
            listed.append(select_columns(engine.scan(nodes), roles, "nodes", n_required=1))
            check_ids(listed[-1], ["id"], "nodes", engine)
        brought = self.law.ids(engine)
        listed += [] if brought is None else [brought]
        narrow = self._narrow(listed)
        rows = table.cast({"source": narrow} | ({} if interactions else {"target": narrow}))
        kept = rows.weight > 0 if self.weighted else ibis.literal(True)
        if self._rule is not None:
            kept &= rows.source != rows.target
            every, rows = rows, rows.filter(kept)
            rows = rows.union(rows.rename(source="target", target="source").select(rows.columns))
            rows = engine.keep_distinct(rows)
            # Where edges stand by source, its ids are found with little memory; loops have theirs elsewhere.
            left_out = every.filter(~kept)
            listed[:2] = [
                rows.select(id="source"),
                left_out.select(id="source"),
                left_out.select(id="target"),
            ]
        else:
            rows = rows.filter(kept)
            rows = rows if distinct else engine.keep_distinct(rows)
        self._number([one.cast({"id": narrow}) for one in listed])
        self._rows, self._fitted = rows, self.law.fit(rows, self.nodes_, engine)
        return self

    def draw_donors(self, *, rng: Rng, sample: int = 0) -> Any:
        """A table of node and donor, one row a node: those of :meth:`.NodeCopying.draw_donors`."""
        return (
            self._donors(self._key(rng, sample))
            .select("node", "donor")
            .cast({"node": self._id_type, "donor": self._id_type})
        )

    def sample(self, *, rng: Rng, sample: int = 0) -> Any:
        """One graph as an Ibis table of source, target and perhaps weight, in no particular order.

        Interactions come with columns user, item and perhaps rating.

        Each undirected edge stands there once, from the smaller id to the larger. Donors are drawn at
        once, directed edges when the table is used; undirected ones then too, but at once by DuckDB where
        ids are below 2^31, in a scratch file that stays until the engine is closed.
        """
        key = self._key(rng, sample)
        return self._copied(self._engine.keep(self._donors(key)), key)

    def write(self, path: str | os.PathLike[str], *, rng: Rng, sample: int = 0) -> None:
        """Write :meth:`sample` as Parquet: a file by DuckDB, a folder of files by Spark.

        As :meth:`.Engine.write` does: whole or not at all, and never over a table that was read.
        """
        self._check_fitted()
        with self._engine.forgetting():
            self._engine.write(self.sample(rng=rng, sample=sample), path)

    def _narrow(self, tables: list[Any]) -> Any:
        """The type of ids inside: joins and unions of smaller numbers are faster."""
        kinds = {table.id.type().is_string() for table in tables}
        if len(kinds) > 1:
            raise InputError("ids of all tables must be integers, or those of all be strings; got both.")
        self._id_type = tables[0].id.type()
        if kinds == {True}:
            return self._id_type
        ends = [self._engine.row(one.aggregate(low=one.id.min(), high=one.id.max())) for one in tables]
        found = [value for row in ends for value in row.values() if value is not None]
        for bits in (32, 64):
            if all(-(2 ** (bits - 1)) <= value < 2 ** (bits - 1) for value in found):
                return f"int{bits}"
        return "uint64"

    def _number(self, tables: list[Any]) -> None:
        ibis = import_optional("ibis", "an engine of tables")
        ids = self._engine.keep(
            ibis.union(*tables, distinct=True) if len(tables) > 1 else tables[0].distinct()
        )
        found = self._engine.row(ids.aggregate(n=ids.count(), low=ids.id.min(), high=ids.id.max()))
        self.n_nodes_ = int(found["n"])
        if self.n_nodes_ >= MOST_NODES:
            raise InputError(f"a graph must have fewer than 2**32 nodes; got {self.n_nodes_}.")
        if (found["low"], found["high"]) == (0, found["n"] - 1):
            self.nodes_ = ids.mutate(number=ids.id.cast("int64"))
        else:
            self.nodes_ = self._engine.keep(
                ids.mutate(number=ibis.row_number().over(order_by=ids.id).cast("int64"))
            )

    def _check_fitted(self) -> None:
        if not hasattr(self, "_fitted"):
            raise NotFittedError(
                "this EdgeTableCopying is not fitted yet: call fit(edges, engine=...) first."
            )

    def _key(self, rng: Rng, sample: int) -> Key:
        self._check_fitted()
        check_integer(sample, "sample", low=0)
        return sample_key(seed_sequence(rng), sample)

    def _donors(self, key: Key) -> Any:
        """Columns node, number and donor."""
        ibis = import_optional("ibis", "an engine of tables")
        nodes = self.nodes_.rename(node="id")
        if self.keep == 1.0:
            return nodes.mutate(donor=nodes.node)
        fitted: FittedLaw = self._fitted
        chosen = nodes.left_join(fitted.choose(key, self.keep), [("node", "id")])
        return chosen.select("node", "number", donor=ibis.coalesce(chosen.donor, chosen.node))

    def _copied(self, donors: Any, key: Key) -> Any:
        """T(A, zeta) for a table of donors, with the ids that came in."""
        ibis = import_optional("ibis", "an engine of tables")
        weight = ["weight"] if self.weighted else []
        copied = donors.join(self._rows, [("donor", "source")])
        if self._rule == "one-endpoint":
            targets = self.nodes_.rename(target="id", other="number")
            copied = copied.select("node", "number", "target", *weight).join(targets, "target")
            copied = copied.filter(copied.number != copied.other)
            copied = self._engine.staged(fall_to_larger(copied, key, copied.number, copied.other))
            copied = copied.filter(copied.to_larger == (copied.number > copied.other))
        copied = copied.select("target", *weight, source="node")
        if self._rule is not None:
            copied = copied.filter(copied.source != copied.target)
            first, last = (
                ibis.least(copied.source, copied.target),
                ibis.greatest(copied.source, copied.target),
            )
            copied = self._engine.distinct(copied.select(*weight, source=first, target=last))
        copied = copied.cast(
            {"source": self._id_type} | ({} if self._interactions else {"target": self._id_type})
        )
        return copied.select(**{self._names[role]: role for role in ("source", "target", *weight)})
