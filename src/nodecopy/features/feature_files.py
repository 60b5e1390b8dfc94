"""Graphs from files of features without edges."""

from __future__ import annotations

from nodecopy._core.formats import TableLike, reading
from nodecopy._core.hints import Hint
from nodecopy._core.notices import log_decision
from nodecopy._core.validation import as_array, check_integer
from nodecopy.errors import InputError
from nodecopy.features.feature_graphs import PURPOSE, graph_from_features
from nodecopy.features.scaling import FeatureScaling
from nodecopy.graph import Graph
from nodecopy.io import FeatureEncoder
from nodecopy.io.node_tables import read_node_tables
from nodecopy.io.table_columns import describe, unify_ids


def read_feature_graph(
    features: TableLike,
    *,
    labels: TableLike | None = None,
    n_neighbours: int = 10,
    scale: str = "auto",
    encoder: FeatureEncoder | None = None,
    header: bool | None = None,
    id: str | None = None,
    label: str | None = None,
) -> Graph:
    """Return the graph that connects each node of a file of features to its nearest neighbours.

    Parameters
    ----------
    features, labels
        As in :func:`~nodecopy.read_graph`; nodes are in the order of the features.
    n_neighbours, scale
        As in :func:`~nodecopy.graph_from_features`. With fewer nodes, all others are neighbours.
    encoder, header, id, label
        As in :func:`~nodecopy.read_graph`.

    Examples
    --------
    >>> import pandas
    >>> from nodecopy.features import read_feature_graph
    >>> people = pandas.DataFrame({"id": ["ann", "bob", "cleo", "dan"], "age": [31, 33, 52, 55]})
    >>> read_feature_graph(people, n_neighbours=1)
    Graph(4 nodes, 2 undirected edges, binary, 1 features)
    """
    if features is None:
        raise InputError("features must be a file or a table; got None.")
    check_integer(n_neighbours, "n_neighbours", low=1)
    labels = features if labels is None and label else labels
    *tables, rows = read_node_tables(labels, features, encoder=encoder, header=header, id=id, label=label)
    ids = unify_ids([rows.ids])[0]
    if len(ids) < 2:
        raise InputError(f"{describe(features)} must hold features of at least two nodes; got {len(ids)}.")
    n_neighbours = min(n_neighbours, len(ids) - 1)
    with reading(features):
        scaling = FeatureScaling.fit(rows.values, scale, encoder=rows.encoder, name="scale", purpose=PURPOSE)
        graph = graph_from_features(
            rows.values, n_neighbours=n_neighbours, scale=scaling.kind, node_ids=as_array(ids, "ids")
        )
    log_decision(
        f"{describe(features)}: there are no edges, so each node is connected to its {n_neighbours} "
        "nearest neighbours by features.",
        Hint("{} changes their number.", n_neighbours=int),
    )
    graph = graph.with_feature_encoder(rows.encoder)
    for table in tables:
        with reading(labels):
            graph = table.attach(graph)
    return graph
