from __future__ import annotations

import json

import networkx as nx
import numpy as np
import pytest

from nodecopy import SameLabel, datasets
from nodecopy.errors import DataWarning, InputError
from nodecopy.inference import DegreeClasses, bootstrap
from nodecopy.io import to_networkx
from nodecopy.io.igraph import to_igraph

CLUB = datasets.load("karate")
RESULT = bootstrap(CLUB, ["density", "degrees"], model=SameLabel(), n=30, rng=0)
NUMBERS = bootstrap(CLUB, ["density", "transitivity"], model=SameLabel(), n=30, rng=0)


def test_the_text_says_question_model_and_intervals() -> None:
    text = repr(NUMBERS)
    assert text.startswith("How much would the statistic vary if the edges were drawn again")
    assert "30 samples of NodeCopying(donors=SameLabel" in text
    assert "density: 0.139, standard error" in text
    assert "degrees: 34 nodes, an interval each" in repr(RESULT)


def test_estimates_by_name_and_in_order() -> None:
    assert [row.name for row in NUMBERS] == ["density", "transitivity"]
    assert NUMBERS["transitivity"].name == "transitivity"
    assert RESULT["degrees"].is_array


def test_json() -> None:
    loaded = json.loads(json.dumps(RESULT.to_dict()))
    assert loaded["target"] == "edges"
    assert loaded["statistics"]["density"]["observed"] == pytest.approx(0.139, abs=1e-3)
    assert len(loaded["statistics"]["degrees"]["low"]) == 34


def test_data_frames() -> None:
    assert list(NUMBERS.to_pandas().index) == ["density", "transitivity"]
    table = RESULT.to_pandas()
    assert len(table) == 35
    assert table.loc[("degrees", 34), "observed"] == 17  # the id of the second hub


def test_how_often_a_node_is_at_the_top() -> None:
    share = RESULT.top_share(2)
    assert share.sum() == pytest.approx(2)
    assert share.max() <= 1
    every = RESULT.top_share(34, "degrees")
    assert np.array_equal(every, np.ones(34))
    with pytest.raises(InputError, match=r"name must be a statistic of given nodes, one of \['degrees'\]"):
        RESULT.top_share(2, "density")


def test_plots_return_axes() -> None:
    pytest.importorskip("matplotlib").use("agg")
    axes = RESULT.plot()
    assert [place.get_title() for place in axes] == ["density", "degrees"]
    single = bootstrap(CLUB, "density", model=SameLabel(), n=5, rng=0)
    assert single.plot(axes[0]) is axes[0]


def test_ranks_and_top_shares_agree() -> None:
    low, high = RESULT.rank_interval()
    assert (low <= high).all()
    assert low.min() == 1
    first = np.argmax(RESULT.top_share(1))
    assert low[first] == 1
    assert RESULT.top_share(34).tolist() == [1] * 34
    with pytest.raises(InputError, match="one of \\['degrees'\\]"):
        RESULT.rank_interval("density")


def test_ranks_do_not_follow_the_bias_of_the_samples() -> None:
    """Donors from the whole network: the mean degree of all nodes is halfway to the mean one in samples."""
    result = bootstrap(CLUB, "degrees", model=SameLabel([0] * 34), n=200, rng=0)
    hub = int(np.argmax(CLUB.degrees))
    assert np.asarray(result["degrees"].bias)[hub] < -4
    centred = result.values["degrees"] - result.values["degrees"].mean(axis=0) + CLUB.degrees
    expected = (centred.argmax(axis=1) == hub).mean()
    assert result.top_share(1)[hub] == pytest.approx(expected)
    assert expected > (result.values["degrees"].argmax(axis=1) == hub).mean() + 0.1


def test_the_text_repeats_warnings() -> None:
    with pytest.warns(DataWarning, match="max_degree depends on few nodes"):
        result = bootstrap(CLUB, "max_degree", model=SameLabel(), n=10, rng=0)
    assert repr(result).endswith(f"Warning: {result.problems[-1]}")


def test_statistics_of_edges() -> None:
    network = to_networkx(CLUB)
    statistics = [nx.edge_betweenness_centrality, "density"]
    with pytest.warns(DataWarning, match="undefined in some samples"):
        result = bootstrap(network, statistics, model=SameLabel(), n=60, rng=0)
    name = "edge_betweenness_centrality"
    estimate = result[name]
    assert "78 edges" in repr(result)
    values = result.values[name]
    n_defined = np.isfinite(values).sum(axis=0)
    np.testing.assert_array_equal(np.isfinite(np.asarray(estimate.low)), n_defined >= 20)
    edge = int(np.argmax(n_defined))
    assert np.nanmean(values[:, edge]) == pytest.approx(
        np.asarray(estimate.observed)[edge] + np.asarray(estimate.bias)[edge]
    )
    assert result.plot()[-1].get_xlabel() == "edges, in ascending order"
    other = result.annotate(network)
    first, second = result.keys_of(name)[edge]
    assert other.edges[first, second][f"{name}_low"] == np.asarray(estimate.low)[edge]
    assert other.graph["density_high"] == result["density"].high
    assert "density" not in network.graph
    assert result.to_pandas().loc[name].index[0] == result.keys_of(name)[0]
    assert result.to_dict()["statistics"][name]["edges"][edge] == [first, second]
    for ranking in (result.rank_interval, lambda: result.top_share(5)):
        with pytest.raises(InputError, match="name must be a statistic of nodes; edge_betweenness"):
            ranking()


def test_nodes_of_igraph_are_annotated() -> None:
    network = to_igraph(CLUB)
    result = bootstrap(network, ["pagerank", "density"], model=SameLabel(), n=10, rng=0)
    other = result.annotate(network)
    assert other.vs["pagerank_high"] == np.asarray(result["pagerank"].high).tolist()
    assert other["density"] == result["density"].observed
    with pytest.raises(InputError, match="network must be"):
        result.annotate(CLUB)


def test_nodes_that_are_tuples_are_annotated() -> None:
    network = nx.grid_2d_graph(3, 3)
    statistics = [nx.degree_centrality, nx.edge_betweenness_centrality]
    with pytest.warns(DataWarning, match="12 of 12 values have no interval"):
        result = bootstrap(network, statistics, model=DegreeClasses(np.zeros(9, int)), n=5, rng=0)
    other = result.annotate(network)
    assert other.nodes[1, 1]["degree_centrality"] == 0.5
    assert other.edges[(0, 0), (0, 1)]["edge_betweenness_centrality"] > 0
