from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence

from nodecopy import Graph, NodeCopying, SameLabel, datasets
from nodecopy._core.messages import mute_data_warnings
from nodecopy.errors import DataWarning, InputError
from nodecopy.experiments.data import KnownNetwork
from nodecopy.generators import ErdosRenyi, RandomDotProduct
from nodecopy.inference import BootstrapResult, bootstrap
from nodecopy.inference.diagnosis import next_model
from nodecopy.inference.resampling import MODELS, choose_sampler
from nodecopy.inference.statistics import prepare_measure
from nodecopy.inference.validity import N_CHECKED, check_validity

CLUB = datasets.load("karate")


@lru_cache
def known_network(name: str, degree: int) -> KnownNetwork:
    return KnownNetwork.by_name(name, 200, degree, SeedSequence(1))


def network(name: str, degree: int = 15, number: int = 0) -> Graph:
    return known_network(name, degree).draw(SeedSequence([2, number]))


def test_a_second_draw_is_as_doubtful_as_stated() -> None:
    """The test is exact at 5 % with 19 samples; more than 8 of 50 happens with chance 1e-3."""
    draws = [[network("dc-sbm", number=20 * trial + k) for k in range(N_CHECKED + 1)] for trial in range(50)]
    checks = [check_validity(first, others) for first, *others in draws]
    n_extreme = sum(check.p_value <= 1 / (N_CHECKED + 1) for check in checks)
    assert sum(check.is_doubtful for check in checks) <= n_extreme <= 8
    assert np.mean([check.score - check.reference for check in checks]) == pytest.approx(0, abs=0.05)


@pytest.mark.parametrize("name", ["sbm", "dc-sbm"])
def test_samples_of_the_default_are_not_doubtful(name: str) -> None:
    with mute_data_warnings():
        results = [bootstrap(network(name, number=k), "density", n=30, rng=k) for k in range(4)]
    checks: list[Any] = [result.validity for result in results]
    assert not any(check.is_doubtful for check in checks)
    assert np.mean([check.score for check in checks]) <= 1.5 * np.mean([check.reference for check in checks])
    assert str(checks[0]) in repr(results[0])
    assert results[0].to_dict()["validity"]["p_value"] == checks[0].p_value


def test_samples_of_a_wrong_model_are_doubtful() -> None:
    """A block model of a network with heavy-tailed degrees; the next model is named."""
    with pytest.warns(
        DataWarning, match="less like the samples than they are like each other.*Use the model 'node-copying'"
    ):
        result = bootstrap(network("dc-sbm"), "density", model=ErdosRenyi(), n=30, rng=0)
    check: Any = result.validity
    assert check.is_doubtful
    assert check.score > 0.4 > check.reference
    assert check.p_values.mean() < 0.05
    assert result.problems[0].next_model == "node-copying"


def test_the_check_can_be_switched_off_and_needs_given_nodes() -> None:
    with mute_data_warnings():
        settings: dict[str, Any] = {"n": 20, "rng": 0}
        assert bootstrap(CLUB, "density", validity=False, **settings).validity is None
        assert bootstrap(CLUB, "density", resample="nodes", **settings).validity is None
        assert bootstrap(Graph(np.zeros((4, 4))), "n_edges", **settings).validity is not None


@pytest.mark.parametrize("name", ["sbm", "graphon"])
def test_standard_errors_of_the_default_are_near_the_truth(name: str) -> None:
    """Mean standard errors of 10 networks, over the deviation of 300: its own error is about 7 %."""
    names = ["degree_variance", "triangles", "transitivity"]
    with mute_data_warnings():
        results = [bootstrap(network(name, 15, k), names, n=50, validity=False, rng=k) for k in range(10)]
    measure = prepare_measure(names, network(name), None)[1]
    values = [measure(network(name, 15, number)) for number in range(100, 400)]
    for statistic in names:
        truth = np.std([float(value[statistic]) for value in values], ddof=1)
        ratio = np.mean([float(result[statistic].standard_error) for result in results]) / truth
        assert 0.8 <= ratio <= 1.2


def test_a_second_level_finds_what_a_fitted_model_misses() -> None:
    """The dot product graph overstates the variance of degrees, also in its own samples."""
    settings: dict[str, Any] = {"model": RandomDotProduct(2), "n": 40, "validity": False, "rng": 0}
    with mute_data_warnings():
        first, second = (
            bootstrap(network("sbm"), ["degree_variance", "degrees"], levels=levels, **settings)
            for levels in (1, 2)
        )
    assert list(second.calibration) == ["degree_variance"]  # numbers only
    factor = second.calibration["degree_variance"]
    assert 0.4 < factor < 0.9
    row, scaled = first["degree_variance"], second["degree_variance"]
    assert scaled.standard_error == pytest.approx(factor * float(row.standard_error))
    assert second.scaled_values("degree_variance").std(ddof=1) == pytest.approx(scaled.standard_error)
    assert not first.calibration
    with pytest.raises(InputError, match="levels must be 1 if nodes are resampled"):
        bootstrap(CLUB, "triangles", resample="nodes", levels=2, n=5)


def test_the_order_of_models() -> None:
    """Messages follow the order of the names that auto tries, and start again after the last."""
    for resample, models in MODELS.items():
        names = list(models)
        samplers = [choose_sampler(name, resample) for name in names]
        assert [next_model(sampler) for sampler in samplers] == [*names[1:], names[0]]
    assert next_model(ErdosRenyi()) == next_model(NodeCopying(SameLabel())) == "node-copying"
    assert next_model(choose_sampler(None, "edges")) == "dc-sbm"


def test_auto_takes_the_first_model_that_represents_the_graph(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "nodecopy")
    graph = network("sbm")
    with mute_data_warnings():
        first, other = (bootstrap(graph, "density", model=model, n=30, rng=0) for model in ("auto", None))
        second = bootstrap(CLUB, "density", model="auto", n=30, rng=0)  # the hubs have no donors
    assert isinstance(first, BootstrapResult)
    assert first["density"] == other["density"]
    assert "ClassCopying" in first.model
    assert "RandomDotProduct" in second.model
    failed = "node-copying does not represent the graph; dc-sbm does not represent the graph"
    assert f"model: dot-product; {failed}." in caplog.text
