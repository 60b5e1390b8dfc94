from __future__ import annotations

from numpy.random import SeedSequence

from nodecopy import NodeCopying, SameLabel, datasets
from nodecopy.inference import DegreeClasses, NodeBootstrap
from nodecopy.inference.measurement import prepare_measure
from nodecopy.inference.resampling import choose_sampler, collect_values, measure_samples

CLUB = datasets.load("karate")


def test_defaults_by_target() -> None:
    assert isinstance(choose_sampler(None, "nodes"), NodeBootstrap)
    model = choose_sampler(None, "edges")
    assert isinstance(model, NodeCopying)
    assert isinstance(model.law, DegreeClasses)
    assert model.symmetrise == "one-endpoint"


def test_values_are_those_of_sample_many() -> None:
    model = NodeCopying(SameLabel()).fit(CLUB)
    _, measure = prepare_measure("n_edges", CLUB, None)
    values = collect_values(measure_samples(model, measure, 5, SeedSequence(3)), {"n_edges": ()}, 5)
    expected = [sample.n_edges for sample in model.sample_many(5, rng=SeedSequence(3))]
    assert values["n_edges"].tolist() == expected
