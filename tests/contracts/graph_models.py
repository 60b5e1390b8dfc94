"""What every graph model promises; a test class inherits it and says which models and graphs to try."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from itertools import islice
from typing import Any, Protocol

import numpy as np
import pytest
from scipy import sparse

from nodecopy import Graph
from nodecopy._core.random import Rng
from nodecopy.errors import InputError, NotFittedError


class GraphModel(Protocol):
    def fit(self, data: Graph, *, rng: Rng = None) -> GraphModel: ...
    def sample(self, *, rng: Rng) -> Graph: ...
    def sample_many(self, n: int, *, rng: Rng, workers: int = 1) -> Iterator[Graph]: ...


def community_graph(*, directed: bool = False, weighted: bool = False) -> Graph:
    """Two communities of ten nodes with ids, labels and features."""
    draw = np.random.default_rng(1)
    community = np.arange(20) % 2
    chance = np.where(community[:, None] == community, 0.4, 0.1)
    adjacency = (draw.random((20, 20)) < chance) * (draw.integers(1, 4, (20, 20)) if weighted else 1)
    names = [f"node {i}" for i in draw.permutation(20)]
    features = sparse.csr_array(np.eye(2)[community] + draw.integers(0, 2, (20, 2)))
    return Graph(adjacency, features, np.array(["left", "right"])[community], names, directed)


class GraphModelContract:
    """Inherit, override ``model`` (unfitted) and, if need be, ``observed``.

    Fitting happens once per class and parameter, so models that train for a while stay cheap to test.
    """

    @pytest.fixture(scope="class")
    @classmethod
    def model(cls) -> GraphModel:
        raise NotImplementedError("a contract needs a model")

    @pytest.fixture(scope="class")
    @classmethod
    def observed(cls) -> Graph:
        return community_graph()

    @pytest.fixture(scope="class")
    @classmethod
    def fitted(cls, model: GraphModel, observed: Graph) -> GraphModel:
        unfitted: GraphModel = pickle.loads(pickle.dumps(model))
        assert unfitted.fit(observed, rng=0) is unfitted
        return unfitted

    def test_same_seed_same_graph(self, fitted: GraphModel) -> None:
        assert fitted.sample(rng=3) == fitted.sample(rng=3)
        seed = np.random.SeedSequence(3)
        assert fitted.sample(rng=seed) == fitted.sample(rng=3)
        assert fitted.sample(rng=seed) == fitted.sample(rng=3)
        assert seed.n_children_spawned == 0

    def test_same_seed_same_fit(self, model: GraphModel, fitted: GraphModel, observed: Graph) -> None:
        again: GraphModel = pickle.loads(pickle.dumps(model)).fit(observed, rng=0)
        assert again.sample(rng=3) == fitted.sample(rng=3)

    def test_seeds_matter(self, fitted: GraphModel) -> None:
        assert any(fitted.sample(rng=0) != fitted.sample(rng=seed) for seed in range(1, 10))
        generator = np.random.default_rng(0)
        first = fitted.sample(rng=generator)
        assert any(first != fitted.sample(rng=generator) for _ in range(9))
        assert fitted.sample(rng=np.random.default_rng(0)) == first

    def test_the_observed_graph_stays_as_it_was(self, model: GraphModel, observed: Graph) -> None:
        before = pickle.loads(pickle.dumps(observed))
        pickle.loads(pickle.dumps(model)).fit(observed, rng=1).sample(rng=1)
        assert observed == before

    def test_nodes_keep_who_they_are(self, fitted: GraphModel, observed: Graph) -> None:
        for sample in fitted.sample_many(3, rng=2):
            assert sample.n_nodes == observed.n_nodes
            assert sample.replace(adjacency=observed.adjacency) == observed

    def test_samples_are_valid_graphs(self, fitted: GraphModel, observed: Graph) -> None:
        """The constructor, which checks and cleans, would change nothing."""
        for sample in fitted.sample_many(5, rng=4):
            assert sample.directed == observed.directed
            assert (
                Graph(**{name: getattr(sample, name) for name in ("adjacency", "directed")}).rows
                == sample.rows
            )
            assert sample.rows.indptr.dtype == sample.rows.indices.dtype
            if not observed.directed:
                adjacency = sample.adjacency.toarray()
                assert np.array_equal(adjacency, adjacency.T)
                assert not adjacency.diagonal().any()

    def test_samples_are_frozen(self, fitted: GraphModel) -> None:
        sample = fitted.sample(rng=0)
        with pytest.raises(AttributeError, match="frozen"):
            sample.directed = True
        for array in (sample.rows.indptr, sample.rows.indices):
            assert not array.flags.writeable

    def test_models_and_samples_pickle(self, fitted: GraphModel) -> None:
        sample = fitted.sample(rng=5)
        assert pickle.loads(pickle.dumps(sample)) == sample
        assert pickle.loads(pickle.dumps(fitted)).sample(rng=5) == sample

    def test_a_sample_depends_on_seed_and_number_alone(self, fitted: GraphModel) -> None:
        samples = list(fitted.sample_many(5, rng=6))
        assert samples[0] == fitted.sample(rng=6)
        for n, workers in [(5, 2), (5, 3), (3, 1), (2, 4)]:
            assert list(fitted.sample_many(n, rng=6, workers=workers)) == samples[:n]

    @pytest.mark.parametrize("workers", [1, 2])
    def test_samples_stream(self, fitted: GraphModel, workers: int) -> None:
        """A number of samples that nobody could make in advance."""
        stream = fitted.sample_many(10**15, rng=7, workers=workers)
        assert len(list(islice(stream, 2))) == 2
        stream.close()  # type: ignore[attr-defined]
        assert list(fitted.sample_many(0, rng=7, workers=workers)) == []

    def test_no_sample_before_fit(self, model: GraphModel) -> None:
        unfitted: GraphModel = pickle.loads(pickle.dumps(model))
        with pytest.raises(NotFittedError, match="fit"):
            unfitted.sample(rng=0)
        with pytest.raises(NotFittedError, match="fit"):
            unfitted.sample_many(2, rng=0)

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ({"n": -1}, "n of sample_many .* got -1"),
            ({"workers": 0}, "workers of sample_many .* got 0"),
            ({"rng": "x"}, "rng must be .* got 'x'"),
        ],
    )
    def test_wrong_arguments_are_named(self, fitted: GraphModel, wrong: dict[str, Any], message: str) -> None:
        arguments: dict[str, Any] = {"n": 1, "rng": 0} | wrong
        with pytest.raises(InputError, match=message):
            fitted.sample_many(**arguments)
