from __future__ import annotations

import json
import math
from collections.abc import Iterator

import numpy as np
import pytest

from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.metrics.structure import Comparison, compare, statistics

PATH = Graph.from_edges([0, 1, 2], [1, 2, 3])
CYCLE = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
TAILED = Graph.from_edges([0, 1, 2, 2], [1, 2, 0, 3])


@pytest.fixture
def comparison() -> Comparison:
    def samples() -> Iterator[Graph]:
        yield from (PATH, CYCLE, TAILED)

    return compare(PATH, samples())


def test_means_and_deviations(comparison: Comparison) -> None:
    each = [statistics(sample, observed=PATH) for sample in (PATH, CYCLE, TAILED)]
    assert comparison.n_samples == 3
    assert comparison.statistics == tuple(each[0])
    for name, observed, mean, deviation, *_ in comparison:
        values = [sample[name] for sample in each]
        assert observed == pytest.approx(each[0][name], nan_ok=True)
        assert mean == pytest.approx(np.mean(values), nan_ok=True)
        assert deviation == pytest.approx(np.std(values, ddof=1), nan_ok=True)
        assert comparison.values[name] == pytest.approx(values, nan_ok=True)
    assert comparison["edge_overlap"].observed == 1
    assert comparison["edge_overlap"].mean == pytest.approx((1 + 1 + 2 / 3 + 1 / 3) / 3)


def test_one_sample_has_no_deviation() -> None:
    assert all(math.isnan(row.deviation) for row in compare(PATH, [CYCLE]))


def test_forms(comparison: Comparison) -> None:
    table = json.loads(json.dumps(comparison.to_dict()))
    assert table["n_samples"] == 3
    assert table["statistics"]["n_edges"]["observed"] == 3
    assert list(table["statistics"]) == list(comparison.statistics)
    frame = comparison.to_pandas()
    assert list(frame.columns) == ["observed", "mean", "deviation", "low", "high", "p_value"]
    assert frame.loc["n_edges", "mean"] == pytest.approx(11 / 3)
    lines = str(comparison).splitlines()
    assert len(lines) == len(comparison.statistics) + 1
    assert len({len(line) for line in lines}) == 1
    assert lines[2].split() == ["n_edges", "3", "3.66667", "0.57735", "3", "4", "1"]
    with pytest.raises(KeyError):
        comparison["modularity"]


def test_errors() -> None:
    with pytest.raises(InputError, match="at least one graph; got none"):
        compare(PATH, [])
    smaller = Graph.from_edges([0], [1])
    with pytest.raises(InputError, match=r"graphs on 4 nodes; got Graph\(2 nodes.* as number 1"):
        compare(PATH, [PATH, smaller])
    with pytest.raises(InputError, match="several graphs"):
        compare(PATH, PATH)  # type: ignore[arg-type]
    for other in (PATH.replace(node_ids=[5, 6, 7, 8]), PATH.replace(directed=True)):
        with pytest.raises(InputError, match="node ids and directedness; number 0 has not"):
            compare(PATH, [other])


def test_intervals_and_p_values_of_samples() -> None:
    rng = np.random.default_rng(0)
    samples = [Graph(np.triu(rng.random((4, 4)) < 0.5, 1)) for _ in range(99)]
    row = compare(PATH, samples)["n_edges"]
    values = np.sort([sample.n_edges for sample in samples])
    assert row.low == pytest.approx(np.quantile(values, 0.025, method="weibull"))
    below, above = (values <= 3).sum(), (values >= 3).sum()
    assert row.p_value == pytest.approx(min(1.0, 2 * (min(below, above) + 1) / 100))


def test_undefined_samples_count_as_extreme() -> None:
    row = compare(PATH, [CYCLE, *[TAILED] * 8])["assortativity"]  # undefined where all degrees are equal
    assert math.isnan(row.low)
    assert row.p_value == pytest.approx(2 * (1 + 1) / (9 + 1))


def test_a_statistic_outside_of_all_samples_has_a_sentence() -> None:
    comparison = compare(PATH, [CYCLE, CYCLE])
    assert comparison.outside["n_edges"] == (
        "n_edges is 3, less than in all 2 samples (4 to 4): draw more samples to be sure."
    )
    assert compare(PATH, [CYCLE] * 40).outside["n_edges"].endswith("their model does not explain it.")
    assert "n_nodes" not in comparison.outside
    assert "edge_overlap" not in comparison.outside
    assert not compare(PATH, [PATH]).outside
