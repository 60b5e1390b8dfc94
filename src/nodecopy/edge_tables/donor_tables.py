"""Donor laws as tables, each the twin of a law in :mod:`nodecopy.copying.laws`.

A law is fitted to ``rows`` (columns source, target) and ``nodes`` (columns id, number) inside an engine.
Fitted, it takes one of the two forms of :mod:`nodecopy.copying.distributions`: lists with places, or rows
with cumulative probabilities. For the same uniform numbers it chooses the same donors as its twin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from nodecopy._core.optional_imports import import_optional
from nodecopy._core.params import Configurable
from nodecopy._core.random import Key
from nodecopy._core.validation import check_integer
from nodecopy.copying.distributions import SIMILARITY_UNITS
from nodecopy.edge_tables.columns import check_ids, check_once, check_weights, select_columns
from nodecopy.edge_tables.draws import exactly, uniforms
from nodecopy.edge_tables.engines import Engine
from nodecopy.errors import InputError
from nodecopy.graph import UNLABELLED
from nodecopy.io.table_columns import EDGE_COLUMNS, NODE_COLUMNS

LABELS = {"id": NODE_COLUMNS["node"], "label": NODE_COLUMNS["label"]}
PAIRS = {"node": NODE_COLUMNS["node"], "donor": ("donor", "neighbour", "neighbor")}
LISTS = PAIRS | {"rank": ("rank", "place", "distance")}
WEIGHTS = PAIRS | {"weight": EDGE_COLUMNS["weight"]}


class FittedLaw(Protocol):
    """Chooses donors."""

    def choose(self, key: Key, keep: float) -> Any:
        """Columns id and donor; nodes that keep their own neighbours need not be there."""


class EdgeTableLaw(Protocol):
    """Whatever says in tables who may be whose donor."""

    def ids(self, engine: Engine) -> Any | None:
        """A table of node ids (column id) that the law brings along, or ``None``."""

    def fit(self, rows: Any, nodes: Any, engine: Engine) -> FittedLaw: ...


@dataclass(eq=False)
class SameLabelTable(Configurable):
    """A donor is any node with the same label: :class:`~nodecopy.copying.SameLabel`.

    Parameters
    ----------
    labels
        A table of id and label. Nodes without a label (none, null, NaN, -1 or empty) keep their
        neighbours; ids without edges are isolated nodes. As in files that are read into memory, whole
        numbers below -1 are an error, and all else, such as fractions and dates, is a name.
    """

    labels: Any

    def ids(self, engine: Engine) -> Any:
        table = self._table(engine)
        check_ids(table, ["id"], "labels of SameLabelTable", engine)
        check_once(table, "labels of SameLabelTable", engine)
        return table.select("id")

    def fit(self, rows: Any, nodes: Any, engine: Engine) -> FittedLaw:
        labels = self._table(engine).cast({"id": nodes.id.type()})
        members = labels.filter(_known(labels, engine)).join(nodes, "id")
        return _Lists.of(members.select("id", "number", list="label", rank="number"), engine)

    def _table(self, engine: Engine) -> Any:
        return select_columns(engine.scan(self.labels), LABELS, "labels of SameLabelTable", n_required=2)


@dataclass(eq=False)
class NearestNeighboursTable(Configurable):
    """A donor is one of the listed nodes, all equally likely: :class:`~nodecopy.copying.NearestNeighbours`.

    Parameters
    ----------
    neighbours
        A table of node, donor and perhaps rank (or distance), the order of a node's list; without, donors
        are in order of their numbers. A node that is not listed keeps its own neighbours.
    """

    neighbours: Any

    def ids(self, engine: Engine) -> None:
        return None

    def fit(self, rows: Any, nodes: Any, engine: Engine) -> FittedLaw:
        name = "neighbours of NearestNeighboursTable"
        table = select_columns(engine.scan(self.neighbours), LISTS, name, n_required=2)
        rank = (
            table["rank"].min()
            if "rank" in table.columns
            else import_optional("ibis", "an engine of tables").literal(0)
        )
        pairs = _numbered(table.group_by("node", "donor").agg(rank=rank), nodes, engine, name)
        members = pairs.select("rank", list="i", id="donor", number="j")
        owners = pairs.select(list="i", id="node", number="i").distinct()
        return _Lists.of(members, engine, owners)


@dataclass(eq=False)
class WeightedTable(Configurable):
    """A donor is drawn in proportion to listed weights: :class:`~nodecopy.copying.Weighted`.

    Parameters
    ----------
    weights
        A table of node, donor and weight; a pair listed twice takes the larger weight.
    """

    weights: Any

    def ids(self, engine: Engine) -> None:
        return None

    def fit(self, rows: Any, nodes: Any, engine: Engine) -> FittedLaw:
        name = "weights of WeightedTable"
        table = select_columns(engine.scan(self.weights), WEIGHTS, name, n_required=3)
        check_weights(table, name, engine)
        table = table.filter(table.weight > 0)
        table = table.group_by("node", "donor").agg(weight=table.weight.max())
        return _Shares.of(_numbered(table, nodes, engine, name), nodes, engine)


@dataclass(eq=False)
class JaccardTable(Configurable):
    """A donor is drawn in proportion to the Jaccard index of neighbours: :class:`~nodecopy.copying.Jaccard`.

    Parameters
    ----------
    max_item_degree
        Items (or neighbours) that more nodes than this have do not count, neither as shared nor in the
        union: an item that m nodes have makes m^2 pairs. By default all count.
    include_self, max_donors
        As in :class:`~nodecopy.copying.Jaccard`.
    """

    max_item_degree: int | None = None
    include_self: bool = True
    max_donors: int | None = None

    def ids(self, engine: Engine) -> None:
        return None

    def fit(self, rows: Any, nodes: Any, engine: Engine) -> FittedLaw:
        ibis = import_optional("ibis", "an engine of tables")
        for name, value in (("max_item_degree", self.max_item_degree), ("max_donors", self.max_donors)):
            if value is not None:
                check_integer(value, f"{name} of JaccardTable", low=1)
        entries = rows.select("source", item="target").distinct().join(nodes, [("source", "id")])
        entries = entries.select("item", i="number")
        if self.max_item_degree is not None:
            counts = entries.group_by("item").agg(popularity=entries.count())
            entries = entries.semi_join(counts.filter(counts.popularity <= self.max_item_degree), "item")
        entries = engine.keep(entries)
        sizes = entries.group_by("i").agg(size=entries.count())
        pairs = entries.join(entries.view().rename(j="i"), "item")
        pairs = pairs.group_by("i", "j").agg(shared=pairs.count())
        pairs = pairs.join(sizes, "i").join(sizes.view().rename(j="i", other="size"), "j")
        index = pairs.shared.cast("float64") / (pairs["size"] + pairs.other - pairs.shared).cast("float64")
        pairs = pairs.select("i", "j", weight=index)
        if not self.include_self:
            pairs = pairs.filter(pairs.i != pairs.j)
        if self.max_donors is not None:
            best_first = ibis.window(group_by="i", order_by=[ibis.desc("weight"), "j"])
            pairs = pairs.mutate(rank=ibis.row_number().over(best_first))
            pairs = pairs.filter(pairs.rank < self.max_donors).drop("rank")
        pairs = pairs.join(nodes.rename(donor="id", j="number"), "j")
        return _Shares.of(pairs, nodes, engine)


@dataclass(frozen=True)
class _Lists:
    """``owners`` (id, number, list, size) draw uniformly from ``members`` (list, place, donor)."""

    owners: Any
    members: Any
    engine: Engine

    @classmethod
    def of(cls, members: Any, engine: Engine, owners: Any = None) -> _Lists:
        """From members (list, id, number, rank), which own their list unless ``owners`` do."""
        ibis = import_optional("ibis", "an engine of tables")
        one_list = ibis.window(group_by="list", order_by=["rank", "number"])
        places = members.mutate(place=ibis.row_number().over(one_list))
        places = engine.keep(places.mutate(size=places.count().over(ibis.window(group_by="list"))))
        if owners is None:
            owners = places
        else:
            owners = engine.keep(owners.join(places.select("list", "size").distinct(), "list"))
        members = places.select("list", "place", donor="id")
        return cls(owners.select("id", "number", "list", "size"), members, engine)

    def choose(self, key: Key, keep: float) -> Any:
        ibis = import_optional("ibis", "an engine of tables")
        asked = _drawn(self.owners, key, keep, self.engine)
        ticket = ibis.least((asked.u * asked["size"]).floor(), asked["size"] - 1)
        asked = asked.select("id", "list", place=ticket.cast(self.members.place.type()))
        return asked.join(self.members, ["list", "place"]).select("id", "donor")


@dataclass(frozen=True)
class _Shares:
    """Row (i, donor) of ``shares`` is chosen where ``low <= u < high``; a node's last one also beyond."""

    nodes: Any
    shares: Any
    engine: Engine

    @classmethod
    def of(cls, pairs: Any, nodes: Any, engine: Engine) -> _Shares:
        """From pairs (i, j, donor, weight) with positive weights."""
        ibis = import_optional("ibis", "an engine of tables")
        whole = ibis.window(group_by="i")
        value = pairs.weight.cast("float64")
        parts = pairs.mutate(
            part=((value / value.max().over(whole)) * exactly(float(SIMILARITY_UNITS))).ceil().cast("int64")
        )
        before = ibis.cumulative_window(group_by="i", order_by="j")
        sums = parts.mutate(
            sum=parts.part.sum().over(before).cast("int64"), total=parts.part.sum().over(whole).cast("int64")
        )
        total = sums.total.cast("float64")
        low, high = (sums["sum"] - sums.part).cast("float64") / total, sums["sum"].cast("float64") / total
        shares = sums.select(number="i", donor="donor", low=low, high=high, last=sums["sum"] == sums.total)
        return cls(nodes, engine.keep(shares), engine)

    def choose(self, key: Key, keep: float) -> Any:
        both = _drawn(self.nodes, key, keep, self.engine).join(self.shares, "number")
        return both.filter((both.low <= both.u) & ((both.u < both.high) | both.last)).select("id", "donor")


def _known(labels: Any, engine: Engine) -> Any:
    """Which rows have a label."""
    label, kind = labels.label, labels.label.type()
    known = label.notnull()
    if kind.is_string():
        return known & (label != "")
    if kind.is_floating():
        known &= ~label.isnan()
        names = labels.filter(known & (label.isinf() | (label != label.floor())))
        if engine.row(names.aggregate(n=names.count()))["n"]:
            return known
    elif not kind.is_signed_integer():
        return known
    wrong = labels.filter(known & (label < UNLABELLED))
    lowest = engine.row(wrong.aggregate(low=wrong.label.min()))["low"]
    if lowest is not None:
        raise InputError(f"labels of SameLabelTable must be -1 (unknown) or larger; got {lowest}.")
    return known & (label != UNLABELLED)


def _drawn(nodes: Any, key: Key, keep: float, engine: Engine) -> Any:
    """Nodes that do not keep their own neighbours, with what is left of their uniform number."""
    drawn = engine.staged(uniforms(nodes, key))
    if keep == 0.0:
        return drawn
    drawn = drawn.filter(drawn.u >= exactly(keep))
    return drawn.mutate(u=(drawn.u - exactly(keep)) / exactly(1.0 - keep))


def _numbered(table: Any, nodes: Any, engine: Engine, name: str) -> Any:
    """Pairs of node and donor with their numbers i and j; ids that are no nodes are an error."""
    check_ids(table, ["node", "donor"], name, engine)
    if table.node.type().is_string() != nodes.id.type().is_string():
        raise InputError(
            f"{name} must hold ids like those of the edges, {nodes.id.type()}; got {table.node.type()}."
        )
    pairs = table.left_join(nodes.rename(known="id", i="number"), [("node", "known")]).drop("known")
    pairs = pairs.left_join(nodes.rename(known="id", j="number"), [("donor", "known")]).drop("known")
    pairs = engine.keep(pairs)
    strange = engine.row(pairs.aggregate(n=(pairs.i.isnull() | pairs.j.isnull()).sum()))["n"]
    if strange:
        raise InputError(f"{name} must name nodes of the graph; {strange} rows name others.")
    return pairs.cast({"node": nodes.id.type(), "donor": nodes.id.type()})
