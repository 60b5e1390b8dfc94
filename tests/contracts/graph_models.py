"""The contract of graph models as a test class, which tests of single models inherit."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import nodecopy
from nodecopy import Graph, GraphModel
from nodecopy._core.estimator import Configurable
from nodecopy.errors import InputError, NotFittedError
from tests.contracts.parameters import parametrise
from tests.fuzzing import check_rows_of, mutate_arrays


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
    """Inherit and set ``models`` (not fitted) and, if necessary, the observed ``graphs``.

    Each model is fitted once per class and graph, so that models with a long training stay cheap to test.
    """

    models: Mapping[str, GraphModel[Graph]] | tuple[GraphModel[Graph], ...] = ()
    graphs: Mapping[str, Graph] | tuple[Graph, ...] = (community_graph(),)

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        parametrise(metafunc, model=self.models, observed=self.graphs)

    @pytest.fixture(scope="class")
    @classmethod
    def fitted(cls, model: GraphModel[Graph], observed: Graph) -> GraphModel[Graph]:
        unfitted: GraphModel[Graph] = pickle.loads(pickle.dumps(model))
        assert unfitted.fit(observed, rng=0) is unfitted
        return unfitted

    def test_parameters_are_read_and_set_by_name(self, model: GraphModel[Graph]) -> None:
        params = model.get_params(deep=False)
        assert list(params) == model.parameter_names()
        copy = type(model)(**params)
        for name, value in params.items():
            assert getattr(model, name) is value  # the constructor stores its arguments unchanged
            assert copy.set_params(**{name: value}) is copy
        assert {name: copy.get_params(deep=False)[name] is params[name] for name in params} == dict.fromkeys(
            params, True
        )
        parts = [name for name, value in params.items() if isinstance(value, Configurable)]
        for part in parts:
            for name, value in params[part].get_params().items():
                assert model.get_params()[f"{part}__{name}"] is value
        with pytest.raises(InputError, match=r"of .* must be .*; got 'no_such_parameter'"):
            copy.set_params(no_such_parameter=1)
        assert not hasattr(copy, "graph_")

    def test_changed_settings_take_effect_at_the_next_fit(self, fitted: GraphModel[Graph]) -> None:
        params, sample = fitted.get_params(deep=False), fitted.sample(rng=0)
        for wrong in (np.nan, "no such setting"):
            fitted.set_params(**dict.fromkeys(params, wrong))
            try:
                assert fitted.sample(rng=0) == sample
            finally:
                fitted.set_params(**params)

    def test_save_and_load(self, fitted: GraphModel[Graph], observed: Graph, tmp_path: Path) -> None:
        fitted.save(tmp_path / "model.npz")
        path, kind = tmp_path / "model.npz", type(fitted)
        for loaded in (nodecopy.load(path, classes=[kind]), kind.load(path)):
            assert type(loaded) is type(fitted)
            assert loaded.graph_ == fitted.graph_
            assert list(loaded.sample_many(3, rng=8)) == list(fitted.sample_many(3, rng=8))
            assert loaded.get_params(deep=False).keys() == fitted.get_params(deep=False).keys()
        assert loaded.fit(observed, rng=0).sample(rng=3) == fitted.sample(rng=3)
        loaded.save(tmp_path / "again.npz")
        assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "model.npz").read_bytes()

    def test_damaged_files_give_samples_or_errors(self, fitted: GraphModel[Graph], tmp_path: Path) -> None:
        path, kind = tmp_path / "model.npz", type(fitted)
        fitted.save(path)
        content = path.read_bytes()
        for seed in range(40):
            path.write_bytes(mutate_arrays(content, np.random.default_rng(seed)))
            with suppress(InputError):
                check_rows_of(kind.load(path).sample(rng=0))

    def test_same_seed_same_graph(self, fitted: GraphModel[Graph]) -> None:
        assert fitted.sample(rng=3) == fitted.sample(rng=3)
        seed = np.random.SeedSequence(3)
        assert fitted.sample(rng=seed) == fitted.sample(rng=3)
        assert fitted.sample(rng=seed) == fitted.sample(rng=3)
        assert seed.n_children_spawned == 0

    def test_seeded_fits(self, model: GraphModel[Graph], fitted: GraphModel[Graph], observed: Graph) -> None:
        again: GraphModel[Graph] = pickle.loads(pickle.dumps(model)).fit(observed, rng=0)
        assert again.sample(rng=3) == fitted.sample(rng=3)

    def test_different_seeds_give_different_graphs(self, fitted: GraphModel[Graph]) -> None:
        assert any(fitted.sample(rng=0) != fitted.sample(rng=seed) for seed in range(1, 10))
        generator = np.random.default_rng(0)
        first = fitted.sample(rng=generator)
        assert any(first != fitted.sample(rng=generator) for _ in range(9))
        assert fitted.sample(rng=np.random.default_rng(0)) == first

    def test_the_observed_graph_is_not_changed(self, model: GraphModel[Graph], observed: Graph) -> None:
        before = pickle.loads(pickle.dumps(observed))
        pickle.loads(pickle.dumps(model)).fit(observed, rng=1).sample(rng=1)
        assert observed == before

    def test_ids_labels_and_features_stay(self, fitted: GraphModel[Graph], observed: Graph) -> None:
        for sample in fitted.sample_many(3, rng=2):
            assert sample.n_nodes == observed.n_nodes
            assert sample.replace(adjacency=observed.adjacency) == observed

    def test_samples_are_valid_graphs(self, fitted: GraphModel[Graph], observed: Graph) -> None:
        """The constructor, which checks and canonicalises, changes nothing."""
        for sample in fitted.sample_many(5, rng=4):
            assert sample.directed == observed.directed
            assert Graph(sample.adjacency, directed=sample.directed).rows == sample.rows
            assert sample.rows.indptr.dtype == sample.rows.indices.dtype
            if not observed.directed:
                adjacency = sample.adjacency.toarray()
                assert np.array_equal(adjacency, adjacency.T)
                assert not adjacency.diagonal().any()

    def test_samples_are_frozen(self, fitted: GraphModel[Graph]) -> None:
        sample = fitted.sample(rng=0)
        with pytest.raises(AttributeError, match="frozen"):
            sample.directed = True
        for array in (sample.rows.indptr, sample.rows.indices):
            assert not array.flags.writeable

    def test_models_and_samples_pickle(self, fitted: GraphModel[Graph]) -> None:
        sample = fitted.sample(rng=5)
        assert pickle.loads(pickle.dumps(sample)) == sample
        assert pickle.loads(pickle.dumps(fitted)).sample(rng=5) == sample

    def test_a_sample_depends_on_seed_and_number_alone(self, fitted: GraphModel[Graph]) -> None:
        samples = list(fitted.sample_many(5, rng=6))
        assert samples[0] == fitted.sample(rng=6)
        for n, workers in [(5, 2), (5, 3), (3, 1), (2, 4)]:
            assert list(fitted.sample_many(n, rng=6, workers=workers)) == samples[:n]

    @pytest.mark.parametrize("workers", [1, 2])
    def test_samples_are_drawn_on_demand(self, fitted: GraphModel[Graph], workers: int) -> None:
        """The number of samples is too large to draw them in advance."""
        stream = fitted.sample_many(10**15, rng=7, workers=workers)
        assert len(list(islice(stream, 2))) == 2
        stream.close()  # type: ignore[attr-defined]
        assert list(fitted.sample_many(0, rng=7, workers=workers)) == []

    def test_no_sample_before_fit(self, model: GraphModel[Graph]) -> None:
        unfitted: GraphModel[Graph] = pickle.loads(pickle.dumps(model))
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
    def test_wrong_arguments(self, fitted: GraphModel[Graph], wrong: dict[str, Any], message: str) -> None:
        arguments: dict[str, Any] = {"n": 1, "rng": 0} | wrong
        with pytest.raises(InputError, match=message):
            fitted.sample_many(**arguments)
