"""Streams of samples and checks of :class:`nodecopy.GraphModel`, with a model of the user."""

from __future__ import annotations

import pickle
import threading
import weakref
from itertools import islice
from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence

from nodecopy import Graph, GraphModel, SameLabel
from nodecopy._core.parallel import sample_stream
from nodecopy._core.random import Rng
from nodecopy.errors import InputError
from nodecopy.models import check_graph_model


class RandomPairs(GraphModel[Graph]):
    """Each pair is an edge with a probability, whatever the observed graph."""

    def __init__(self, probability: float = 0.5) -> None:
        self.probability = probability

    def fit(self, graph: Graph, *, rng: Rng = None) -> RandomPairs:
        self.graph_ = graph
        return self

    def draw(self, seed: SeedSequence) -> Graph:
        n = self.graph_.n_nodes
        is_edge = np.random.default_rng(seed).random((n, n)) < self.probability
        return self.graph_.replace(adjacency=np.triu(is_edge, 1))


class Item(set[int]):
    """A set that can be referenced weakly."""


@pytest.fixture
def model() -> RandomPairs:
    return RandomPairs().fit(Graph(np.eye(12, k=1), node_ids=[f"n{number}" for number in range(12)]))


@pytest.mark.parametrize("wrong", [RandomPairs, SameLabel(), None, "sbm"], ids=repr)
def test_other_objects_are_no_graph_models(wrong: Any, model: RandomPairs) -> None:
    assert check_graph_model(model, "model") is model
    with pytest.raises(InputError, match=r"graph_model must be a graph model such as .*; got"):
        check_graph_model(wrong, "graph_model")


def test_samples_without_a_seed_differ_and_leave_the_global_generator_alone(model: RandomPairs) -> None:
    before = pickle.dumps(np.random.get_state())  # noqa: NPY002
    assert model.sample() != model.sample(rng=None)
    assert pickle.dumps(np.random.get_state()) == before  # noqa: NPY002


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_few_items_of_a_stream_are_alive_at_once(workers: int) -> None:
    references: list[weakref.ref[Item]] = []

    def make(number: int) -> Item:
        item = Item([number])
        references.append(weakref.ref(item))
        return item

    stream = sample_stream(make, 10**12, workers)
    assert references == []  # nothing is made before the first item is asked for
    for number, item in enumerate(islice(stream, 30)):
        assert item == {number}
        assert sum(reference() is not None for reference in list(references)) <= workers + 1
    assert len(references) <= 30 + workers


def test_closing_a_stream_stops_its_threads() -> None:
    before = threading.active_count()
    stream: Any = sample_stream(str, 10**12, 3)
    assert next(stream) == "0"
    assert threading.active_count() > before
    stream.close()
    assert threading.active_count() == before


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_a_stream_has_n_items_in_order(workers: int) -> None:
    for n in (0, 1, 5):
        assert list(sample_stream(str, n, workers)) == [str(number) for number in range(n)]


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_in_a_thread_reaches_the_caller_in_its_place(workers: int) -> None:
    stream = sample_stream(lambda number: 1 / (2 - number), 4, workers)
    assert [next(stream), next(stream)] == [0.5, 1.0]
    with pytest.raises(ZeroDivisionError):
        next(stream)


class FixedSample(GraphModel[Graph]):
    """Return a given sample, whatever the seed."""

    def __init__(self, given: Any = None) -> None:
        self.given = given

    def fit(self, graph: Graph, *, rng: Rng = None) -> FixedSample:
        self.graph_ = graph
        return self

    def draw(self, seed: SeedSequence) -> Any:
        return self.given


PATH = Graph.from_edges(["a", "b"], ["b", "c"])


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        (None, "must return a Graph; got NoneType"),
        (PATH.adjacency, "must return a Graph; got scipy.csr_array"),
        (PATH.subgraph([0, 1]), "must return the nodes and directions"),
        (PATH.replace(node_ids=["a", "c", "b"]), "must return the nodes and directions"),
        (PATH.replace(directed=True), "must return the nodes and directions"),
    ],
)
def test_results_of_draw_are_checked(sample: Any, message: str) -> None:
    with pytest.raises(InputError, match="draw of FixedSample " + message):
        FixedSample(sample).fit(PATH).sample(rng=0)


def test_equal_ids_need_not_be_the_same_array() -> None:
    sample = Graph.from_edges(["a"], ["c"], node_ids=["a", "b", "c"])
    assert FixedSample(sample).fit(PATH).sample(rng=0) is sample


def test_constructors_must_store_their_arguments() -> None:
    class Forgetful(FixedSample):
        def __init__(self, given: Any = None, probability: float = 0.5) -> None:
            self.given = given

    with pytest.raises(InputError, match="probability must be stored by the constructor of Forgetful"):
        Forgetful().get_params()
