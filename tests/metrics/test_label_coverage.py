from __future__ import annotations

import warnings

import pytest

from nodecopy import Graph
from nodecopy.errors import DataWarning
from nodecopy.inference.statistics import compute_modularity, prepare_measure
from nodecopy.metrics.classification import warn_about_missing_labels
from nodecopy.metrics.structure import LABEL_NAMES, statistics

FIRST, SECOND = [0, 1, 2, 3, 4], [1, 2, 3, 4, 5]


def path(*labels: int) -> Graph:
    return Graph.from_edges(FIRST, SECOND, labels=list(labels))


def test_the_warning_says_what_is_computed() -> None:
    graph = path(0, 0, 1, -1, -1, -1)
    with pytest.warns(DataWarning) as caught:
        warn_about_missing_labels(graph, ["modularity", "edge_homophily"])
    assert str(caught[0].message) == (
        "3 of 6 nodes have a label: modularity counts the 3 others as one community; edge_homophily is over "
        "2 of 5 edges, those between labelled nodes. Label all nodes, such as by predicted classes, for a "
        "statistic of the whole graph. Without labels, modularity is computed from estimated communities."
    )
    assert statistics(graph)["edge_homophily"] == 1 / 2
    with pytest.warns(DataWarning, match="one community"):
        _, measure = prepare_measure("modularity", graph, None)
    other = path(0, 0, 1, 2, 2, 2)
    assert other.labels is not None
    assert measure(graph)["modularity"] == compute_modularity(other, other.labels)


@pytest.mark.parametrize("labels", [(0, 0, 1, 1, 0, 1), (-1,) * 6])
def test_all_or_no_labels_give_no_warning(labels: tuple[int, ...]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_about_missing_labels(path(*labels), ["modularity", *LABEL_NAMES])
        warn_about_missing_labels(path(0, 0, 1, 1, 0, -1), ["transitivity"])
