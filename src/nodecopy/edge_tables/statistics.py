"""Statistics of edge tables, equal to those of the graph in memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nodecopy._core.checks import check_type
from nodecopy.edge_tables.donors import is_labelled
from nodecopy.edge_tables.engines import TableEngine, count_rows, ibis, read_edges, read_ids
from nodecopy.io.columns import ColumnNames
from nodecopy.metrics.structure import LABEL_NAMES, Statistics, summarise_degrees, summarise_label_counts


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
