from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from scipy import sparse

from nodecopy import Graph, datasets
from nodecopy.errors import InputError
from nodecopy.report.plots import NEW_EDGE, OBSERVED_EDGE, draw_graphs

pytest.importorskip("matplotlib")


def test_each_graph_has_axes_with_its_edges() -> None:
    karate = datasets.load("karate")
    other = karate.with_rows(Graph.from_edges([1, 1], [2, 10], node_ids=karate.node_ids).rows)
    first, second = draw_graphs({"observed": karate, "other": other})
    observed, new = first.collections[:2]
    assert (len(observed.get_segments()), len(new.get_segments())) == (156, 0)
    observed, new = second.collections[:2]  # 1-2 is an edge of the club, 1-10 is not
    assert (len(observed.get_segments()), len(new.get_segments())) == (2, 2)
    assert OBSERVED_EDGE != NEW_EDGE
    assert second.get_title() == "other\n2 edges"


def test_graphs_must_share_their_nodes() -> None:
    with pytest.raises(InputError, match="same nodes"):
        draw_graphs({"a": Graph([[0]]), "b": Graph([[0, 1], [1, 0]])})


def test_a_larger_graph_takes_the_cheaper_layout() -> None:
    ring = Graph.from_edges(range(301), [*range(1, 301), 0])
    assert len(draw_graphs({"ring": ring})) == 1


def test_a_graph_or_a_list_of_graphs() -> None:
    """Both raised an AttributeError about items."""
    ring = Graph.from_edges([0, 1, 2], [1, 2, 0])
    titles = [panel.get_title().split("\n")[0] for panel in draw_graphs([ring, ring, ring])]
    assert titles == ["observed", "sample 1", "sample 2"]
    assert len(draw_graphs(nx.cycle_graph(4))) == 1
    with pytest.raises(InputError, match="graphs must hold at least one graph"):
        draw_graphs([])


def test_graphs_without_edges_are_drawn() -> None:
    (axes,) = draw_graphs(Graph([[0, 0], [0, 0]]))
    assert axes.get_title() == "observed\n0 edges"


def test_a_matrix_that_is_a_mapping_is_one_graph() -> None:
    assert len(draw_graphs(sparse.dok_array(np.ones((3, 3))))) == 1
