"""Donor rules on edge tables, with the same donors as their twins in :mod:`nodecopy.copying.donors`.

A rule is fitted to ``rows`` (source, target) and ``nodes`` (id, number) inside an engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from nodecopy._core.checks import check_integer
from nodecopy._core.estimator import Configurable
from nodecopy._core.messages import mute_decisions
from nodecopy._core.random import N_ROUNDS, PARITY, ROTATIONS, Key
from nodecopy.copying.distributions import SIMILARITY_UNITS
from nodecopy.copying.model import warn_of_few_labels
from nodecopy.edge_tables.engines import (
    TableEngine,
    check_ids,
    check_weights,
    count_rows,
    ibis,
    scan_kind,
    select_columns,
)
from nodecopy.errors import InputError
from nodecopy.graph import UNLABELLED
from nodecopy.io.columns import EDGE_COLUMNS, NODE_COLUMNS

WORD_MASK = 2**32 - 1
PAIR_COLUMNS = {"node": NODE_COLUMNS["id"], "donor": ("donor", "neighbour", "neighbor")}
LIST_COLUMNS = PAIR_COLUMNS | {"rank": ("rank", "place", "distance")}
WEIGHT_COLUMNS = PAIR_COLUMNS | {"weight": EDGE_COLUMNS["weight"]}


class EdgeTableRule(Protocol):
    """A donor rule on edge tables."""

    def ids(self, engine: TableEngine) -> Any | None:
        """Return a table of the node ids (column id) that the rule lists, if it may list isolated nodes."""
        return None

    def fit(self, rows: Any, nodes: Any, engine: TableEngine) -> Any:
        """Return an object whose ``draw(key, keep)`` returns a table of id and donor (by default the id)."""


@dataclass(eq=False)
class SameLabelTable(Configurable, EdgeTableRule):
    """Draw donors uniformly from the nodes with the same label, as :class:`~nodecopy.copying.SameLabel`.

    Parameters
    ----------
    labels
        A table (Parquet or Ibis) of id and label. Nodes without one (not listed, null, NaN, -1 or empty) keep
        their neighbours; ids without edges are an error without ``allow_isolated`` of the fit.
    id, label
        Names of its columns; by default usual names, otherwise the two columns.

    Examples
    --------
    >>> SameLabelTable("labels.parquet", label="group")
    SameLabelTable(labels='labels.parquet', id=None, label='group')
    """

    labels: Any
    id: str | None = None
    label: str | None = None

    def ids(self, engine: TableEngine) -> Any:
        table = self._table(engine)
        check_ids(table, ["id"], "labels of SameLabelTable", engine, is_unique=True)
        return table.select("id")

    def fit(self, rows: Any, nodes: Any, engine: TableEngine) -> Any:
        with mute_decisions():
            labels = self._table(engine).cast({"id": nodes.id.type()})
        members = labels.filter(is_labelled(labels, engine)).join(nodes, "id")
        lists = _Lists(members.select("id", "number", list="label", rank="number"), engine)
        warn_of_few_labels(count_rows(lists.owners, engine), count_rows(nodes, engine))
        return lists

    def _table(self, engine: TableEngine) -> Any:
        columns = {"id": self.id, "label": self.label}
        return scan_kind(self.labels, "labels", "labels of SameLabelTable", engine, columns)


@dataclass(eq=False)
class NearestNeighboursTable(Configurable, EdgeTableRule):
    """Draw donors uniformly from listed neighbours, as :class:`~nodecopy.copying.NearestNeighbours`.

    Parameters
    ----------
    neighbours
        A table (Parquet or Ibis) of node, donor and optionally rank (or distance), which orders the donors of
        a node; without it they are ordered by number. A node that is not listed keeps its own neighbours.

    Examples
    --------
    >>> NearestNeighboursTable("neighbours.parquet")
    NearestNeighboursTable(neighbours='neighbours.parquet')
    """

    neighbours: Any

    def fit(self, rows: Any, nodes: Any, engine: TableEngine) -> Any:
        name = "neighbours of NearestNeighboursTable"
        table = select_columns(engine.scan(self.neighbours), LIST_COLUMNS, name, n_required=2)
        rank = table["rank"].min() if "rank" in table.columns else ibis.literal(0)
        pairs = _number_pairs(table.group_by("node", "donor").agg(rank=rank), nodes, engine, name)
        members = pairs.select("rank", list="i", id="donor", number="j")
        owners = pairs.select(list="i", id="node", number="i").distinct()
        return _Lists(members, engine, owners)


@dataclass(eq=False)
class WeightedTable(Configurable, EdgeTableRule):
    """Draw donors in proportion to listed weights, as :class:`~nodecopy.copying.Weighted`.

    Parameters
    ----------
    weights
        A table (Parquet or Ibis) of node, donor and weight, the larger one of a repeated pair. A node without
        a positive weight keeps its own neighbours.

    Examples
    --------
    >>> WeightedTable("weights.parquet")
    WeightedTable(weights='weights.parquet')
    """

    weights: Any

    def fit(self, rows: Any, nodes: Any, engine: TableEngine) -> Any:
        name = "weights of WeightedTable"
        table = select_columns(engine.scan(self.weights), WEIGHT_COLUMNS, name, n_required=3)
        check_weights(table, name, engine)
        table = table.filter(table.weight > 0)
        table = table.group_by("node", "donor").agg(weight=table.weight.max())
        return _Shares(_number_pairs(table, nodes, engine, name), nodes, engine)


@dataclass(eq=False)
class JaccardTable(Configurable, EdgeTableRule):
    """Draw donors in proportion to the Jaccard index of items, as :class:`~nodecopy.copying.Jaccard`.

    Parameters
    ----------
    max_item_degree
        Items (or neighbours) of more nodes than this are ignored; none by default. An item of m nodes makes
        m^2 pairs: set a limit if popular items exhaust time or memory.
    include_self, max_donors
        As in :class:`~nodecopy.copying.Jaccard`.

    Examples
    --------
    >>> JaccardTable(max_item_degree=1000)
    JaccardTable(max_item_degree=1000, include_self=True, max_donors=None)
    """

    max_item_degree: int | None = None
    include_self: bool = True
    max_donors: int | None = None

    def fit(self, rows: Any, nodes: Any, engine: TableEngine) -> Any:
        for name, value in (("max_item_degree", self.max_item_degree), ("max_donors", self.max_donors)):
            if value is not None:
                check_integer(value, f"{name} of JaccardTable", low=1)
        entries = rows.select("source", item="target").distinct().join(nodes, [("source", "id")])
        entries = entries.select("item", i="number")
        if self.max_item_degree is not None:
            counts = entries.group_by("item").agg(popularity=entries.count())
            entries = entries.semi_join(counts.filter(counts.popularity <= self.max_item_degree), "item")
        entries = engine.materialise(entries)
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
        return _Shares(pairs, nodes, engine)


class _Lists:
    """Lists: ``owners`` (id, number, list, size) draw uniformly from ``members`` (list, position, donor)."""

    def __init__(self, members: Any, engine: TableEngine, owners: Any = None) -> None:
        """Build lists of members (list, id, number, rank), by default their owners."""
        in_list = ibis.window(group_by="list", order_by=["rank", "number"])
        members = members.mutate(position=ibis.row_number().over(in_list))
        members = engine.materialise(members.mutate(size=members.count().over(ibis.window(group_by="list"))))
        if owners is None:
            owners = members
        else:
            owners = engine.materialise(owners.join(members.select("list", "size").distinct(), "list"))
        self.owners = owners.select("id", "number", "list", "size")
        self.members = members.select("list", "position", donor="id")
        self.engine = engine

    def draw(self, key: Key, keep: float) -> Any:
        owners = _draw_uniforms(self.owners, key, keep, self.engine)
        position = ibis.least((owners.u * owners["size"]).floor(), owners["size"] - 1)
        owners = owners.select("id", "list", position=position.cast(self.members.position.type()))
        return owners.join(self.members, ["list", "position"]).select("id", "donor")


class _Shares:
    """Rows of probabilities: the donor of a node is in its row of ``shares`` with ``low <= u < high``."""

    def __init__(self, pairs: Any, nodes: Any, engine: TableEngine) -> None:
        """Build shares of pairs (i, j, donor, weight)."""
        in_row = ibis.window(group_by="i")
        value = pairs.weight.cast("float64")
        largest = exact_literal(float(SIMILARITY_UNITS))
        pairs = pairs.mutate(units=((value / value.max().over(in_row)) * largest).ceil().cast("int64"))
        up_to_donor = ibis.cumulative_window(group_by="i", order_by="j")
        sums = pairs.mutate(
            sum=pairs.units.sum().over(up_to_donor).cast("int64"),
            total=pairs.units.sum().over(in_row).cast("int64"),
        )
        total = sums.total.cast("float64")
        low, high = (sums["sum"] - sums.units).cast("float64") / total, sums["sum"].cast("float64") / total
        shares = sums.select(number="i", donor="donor", low=low, high=high, last=sums["sum"] == sums.total)
        self.nodes, self.shares, self.engine = nodes, engine.materialise(shares), engine

    def draw(self, key: Key, keep: float) -> Any:
        pairs = _draw_uniforms(self.nodes, key, keep, self.engine).join(self.shares, "number")
        is_donor = (pairs.low <= pairs.u) & ((pairs.u < pairs.high) | pairs.last)
        return pairs.filter(is_donor).select("id", "donor")


def is_labelled(labels: Any, engine: TableEngine) -> Any:
    """Return whether each row of id and label has a label."""
    label, kind = labels.label, labels.label.type()
    is_present = label.notnull()
    if kind.is_string():
        return is_present & (label != "")
    if kind.is_floating():
        is_present &= ~label.isnan()
        if count_rows(labels.filter(is_present & (label.isinf() | (label != label.floor()))), engine):
            raise InputError("labels", "must be integers or text; got fractions. Write ranges as text.")
    elif not kind.is_signed_integer():
        return is_present
    wrong = labels.filter(is_present & (label < UNLABELLED))
    lowest = engine.row(wrong.aggregate(low=wrong.label.min()))["low"]
    if lowest is not None:
        raise InputError("labels of SameLabelTable", f"must be -1 (unlabelled) or larger; got {lowest}.")
    return is_present & (label != UNLABELLED)


def _draw_uniforms(nodes: Any, key: Key, keep: float, engine: TableEngine) -> Any:
    """Return nodes that are not their own donors, with rescaled uniform numbers u."""
    nodes = engine.stage(uniforms(nodes, key))
    if keep == 0.0:
        return nodes
    nodes = nodes.filter(nodes.u >= exact_literal(keep))
    return nodes.mutate(u=(nodes.u - exact_literal(keep)) / exact_literal(1.0 - keep))


def _number_pairs(table: Any, nodes: Any, engine: TableEngine, name: str) -> Any:
    check_ids(table, ["node", "donor"], name, engine)
    if table.node.type().is_string() != nodes.id.type().is_string():
        raise InputError(name, f"must hold ids like the edges, {nodes.id.type()}; got {table.node.type()}.")
    pairs = table.left_join(nodes.rename(match="id", i="number"), [("node", "match")]).drop("match")
    pairs = pairs.left_join(nodes.rename(match="id", j="number"), [("donor", "match")]).drop("match")
    pairs = engine.materialise(pairs)
    if n_unknown := count_rows(pairs.filter(pairs.i.isnull() | pairs.j.isnull()), engine):
        raise InputError(name, f"must name nodes of the graph; {n_unknown} rows name others.")
    return pairs.cast({"node": nodes.id.type(), "donor": nodes.id.type()})


def threefry(table: Any, key: Key, first: Any, second: Any) -> Any:
    """Add columns ``x`` and ``y`` of 32 random bits each for the counters."""
    schedule = (*key, key[0] ^ key[1] ^ PARITY)
    table = table.mutate(x=(first + schedule[0]) & WORD_MASK, y=(second + schedule[1]) & WORD_MASK)
    for number in range(N_ROUNDS):
        # The alias makes each round a query of its own; in one query, expressions would double every round.
        table = table.alias(f"round_{number}")
        rotation = ROTATIONS[number % 8]
        x = (table.x + table.y) & WORD_MASK
        y = (((table.y << rotation) | (table.y >> (32 - rotation))) & WORD_MASK) ^ x
        if number % 4 == 3:
            injection = number // 4 + 1
            x = (x + schedule[injection % 3]) & WORD_MASK
            y = (y + (schedule[(injection + 1) % 3] + injection)) & WORD_MASK
        table = table.mutate(x=x, y=y)
    return table.alias(f"round_{N_ROUNDS}")


def uniforms(table: Any, key: Key) -> Any:
    """Add the uniform number ``u`` of each node ``number``."""
    table = threefry(table, key, table.number, table.number)
    bits = (table.x >> 5) * 2**26 + (table.y >> 6)
    return table.mutate(u=bits.cast("float64") / exact_literal(2.0**53)).drop("x", "y")


def flip_coins(table: Any, key: Key, first: Any, second: Any) -> Any:
    """Add the coin ``to_larger`` of each pair of node numbers."""
    table = threefry(table, key, ibis.least(first, second), ibis.greatest(first, second))
    return table.mutate(to_larger=(table.x >> 31) == 1).drop("x", "y")


def exact_literal(value: float) -> Any:
    """Return a quotient of integers, since engines parse decimal fractions differently."""
    numerator, denominator = value.as_integer_ratio()
    result = ibis.literal(numerator, "int64").cast("float64")
    while denominator > 1:  # a power of two, so that every step is exact
        step = min(denominator, 2**30)
        result, denominator = result / ibis.literal(step, "int64").cast("float64"), denominator // step
    return result
