from __future__ import annotations

import pytest

from nodecopy import datasets
from nodecopy.errors import NotFittedError
from nodecopy.experiments import ObservedGraph


def test_every_sample_is_the_observed_graph() -> None:
    graph = datasets.load("karate")
    samples = ObservedGraph().fit(graph).sample_many(3, rng=0)
    assert all(sample is graph for sample in samples)
    with pytest.raises(NotFittedError):
        ObservedGraph().sample(rng=0)
