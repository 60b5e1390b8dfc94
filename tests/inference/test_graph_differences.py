from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from nodecopy import SameLabel, datasets
from nodecopy._core.messages import mute_data_warnings
from nodecopy.errors import DataWarning, InputError
from nodecopy.inference import NodeSubsampling, bootstrap, compare_graphs
from nodecopy.io import to_networkx
from tests.inference.known_graphs import draw_graph, two_blocks

CLUB = datasets.load("karate")


def test_a_difference_of_densities_is_found_between_graphs_of_different_size() -> None:
    rng = np.random.default_rng(0)
    first, second = (draw_graph(two_blocks(n, p), rng) for n, p in ((150, 0.2), (100, 0.1)))
    row = compare_graphs(first, second, ["density"], n=100, rng=0)["density"]
    assert row.is_clear
    assert row.low < 0.05 < row.high
    same = compare_graphs(first, draw_graph(two_blocks(150, 0.2), rng), ["density"], n=100, rng=0)["density"]
    assert not same.is_clear


def test_variances_add() -> None:
    result = compare_graphs(CLUB, CLUB, "density", model=SameLabel(), n=2_000, rng=0)
    row, single = result["density"], bootstrap(CLUB, "density", model=SameLabel(), n=2_000, rng=1)["density"]
    assert row.difference == 0
    assert row.standard_error == pytest.approx(2**0.5 * single.standard_error, rel=0.08)


def test_deviations_of_subsamples_are_scaled() -> None:
    rng = np.random.default_rng(0)
    first, second = (draw_graph(two_blocks(n), rng) for n in (80, 120))
    settings: dict[str, Any] = {"model": NodeSubsampling(), "target": "nodes", "n": 1_000}
    with mute_data_warnings():  # of nodes that are alike
        row = compare_graphs(first, second, "density", rng=0, **settings)["density"]
        errors = [
            float(bootstrap(graph, "density", rng=1, **settings)["density"].standard_error)
            for graph in (first, second)
        ]
    assert row.standard_error == pytest.approx(
        np.hypot(errors[0], errors[1]), rel=0.1
    )  # 1.5 times that without scaling


def test_warnings_are_kept() -> None:
    with pytest.warns(DataWarning, match="fewer than 3 donors"):
        result = compare_graphs(CLUB, CLUB, "density", n=40, rng=0)
    (first, second) = result.problems
    assert first.text.startswith("first graph: ")
    assert result.to_dict()["problems"] == [first._asdict(), second._asdict()]
    assert f"Warning: {second}" in repr(result)


def test_results_in_other_forms() -> None:
    result = compare_graphs(CLUB, CLUB, ["density", "transitivity"], model=SameLabel(), n=20, rng=0)
    assert "if the edges were drawn again" in result.question
    assert "density: 0.139 - 0.139 = 0" in repr(result)
    assert list(result.to_pandas().index) == ["density", "transitivity"]
    assert result.to_dict()["statistics"]["density"]["difference"] == 0
    pytest.importorskip("matplotlib").use("agg")
    assert [text.get_text() for text in result.plot().get_yticklabels()] == ["density", "transitivity"]


def test_wrong_settings() -> None:
    with pytest.raises(InputError, match="method of compare_graphs must be"):
        compare_graphs(CLUB, CLUB, "density", method="studentised")
    with pytest.raises(InputError, match="statistic of compare_graphs must be a number; degrees has"):
        compare_graphs(CLUB, CLUB, "degrees", model=SameLabel(), n=5, rng=0)


def test_functions_take_the_library_of_the_first_graph() -> None:
    network = to_networkx(CLUB)
    result = compare_graphs(network, CLUB, nx.transitivity, model=SameLabel(), n=5, rng=0)
    assert result["transitivity"].difference == 0


def test_a_comparison_continues_in_a_store(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"model": SameLabel(), "rng": 0}
    whole = compare_graphs(CLUB, CLUB, "density", n=20, **settings)
    compare_graphs(CLUB, CLUB, "density", n=10, store=tmp_path / "run", **settings)
    assert (
        compare_graphs(CLUB, CLUB, "density", n=20, store=tmp_path / "run", **settings)["density"]
        == (whole["density"])
    )
