from __future__ import annotations

import gc

import numpy as np

from nodecopy import Graph
from nodecopy.features.embeddings import RecentGraphs


def make_graph() -> Graph:
    return Graph(1 - np.eye(3), features=np.eye(3), labels=[0, 1, 0])


def test_graphs_that_differ_in_labels_share_a_result() -> None:
    recent, graph = RecentGraphs[object](), make_graph()
    first = recent.find(graph, 0, object)
    assert recent.find(graph.replace(labels=[1, 1, 0]), 0, object) is first
    assert recent.find(graph, 1, object) is not first
    assert recent.find(graph.replace(features=np.ones((3, 1))), 0, object) is not first
    assert recent.find(graph.replace(adjacency=np.zeros((3, 3))), 0, object) is not first


def test_graphs_without_features_have_results() -> None:
    recent, graph = RecentGraphs[object](), Graph(1 - np.eye(3))
    assert recent.find(graph, None, object) is recent.find(graph, None, object)


def test_only_the_last_results_are_kept() -> None:
    recent, graphs = RecentGraphs[object](2), [make_graph() for _ in range(3)]
    first, *_ = (recent.find(graph, None, object) for graph in graphs)
    assert recent.find(graphs[0], None, object) is not first


def test_a_result_is_dropped_with_its_graph() -> None:
    recent, graph = RecentGraphs[object](), make_graph()
    recent.find(graph, None, object)
    *_, result = recent._entries[0]
    assert result
    del graph
    gc.collect()
    assert not result
