"""Samplers of autoencoders, their calibration, and draws of normal variables."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from nodecopy import Graph, GraphModel
from nodecopy._core.random import Rng
from nodecopy.errors import InputError, NotFittedError
from nodecopy.generators import GAE, VGAE
from nodecopy.generators import autoencoders as autoencoder
from nodecopy.generators.autoencoders import GraphAutoencoder, draw_normal
from nodecopy.generators.edges import calibrate_scores
from tests.contracts.graph_models import GraphModelContract, community_graph
from tests.generators.test_edge_distribution import draw_edges_by_score, random_vectors

UPPER = np.triu_indices(30, 1)


class TestContract(GraphModelContract):
    @pytest.fixture(
        scope="class",
        params=[VGAE(n_epochs=20, sampler=sampler) for sampler in ("raw", "calibrated", "corrected")]
        + [GAE(n_epochs=20, sampler="corrected", balanced=False)],
        ids=lambda model: f"{type(model).__name__}-{model.sampler}",
    )
    @classmethod
    def model(cls, request: pytest.FixtureRequest) -> GraphModel[Graph]:
        model: GraphModel[Graph] = request.param
        return model


class Untrained(GraphAutoencoder):
    """An autoencoder that takes given vectors in place of a graph and draws edges by their scores."""

    def __init__(self, sampler: str, balanced: bool = True) -> None:
        self.sampler, self.balanced, self.device = sampler, balanced, "cpu"

    def fit(self, graph: Any, *, rng: Rng = None) -> Self:
        vectors = torch.from_numpy(graph)
        edges, _, _ = draw_edges_by_score(graph)
        self._set_fitted(Graph.from_edges(*edges, node_ids=np.arange(len(graph))), vectors, vectors)
        return self


@pytest.mark.parametrize("first", ["raw", "corrected"])
@pytest.mark.parametrize("then", ["raw", "calibrated", "corrected"])
def test_another_sampler_gives_the_same_as_a_fit_with_it(first: str, then: str) -> None:
    model = Untrained(first).fit(random_vectors())
    model.edge_probabilities([0], [1])  # calibrates for the first sampler
    other, expected = model.with_sampler(then), Untrained(then).fit(random_vectors())
    assert (model.sampler, model.sampler_) == (first, first)
    np.testing.assert_array_equal(other.edge_probabilities(*UPPER), expected.edge_probabilities(*UPPER))


def test_calibration_happens_once_and_only_for_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []

    def calibrate(*args: Any, **options: Any) -> Any:
        threads.append(threading.current_thread())
        return calibrate_scores(*args, **options)

    monkeypatch.setattr(autoencoder, "calibrate_scores", calibrate)
    model = Untrained("corrected").fit(random_vectors())
    model.embeddings()
    assert not threads
    list(model.sample_many(8, rng=0, workers=4))
    model.edge_probabilities([0], [1])
    assert threads == [threading.current_thread()]


@pytest.mark.parametrize("calibrated_before", [False, True])
def test_settings_of_the_fit_are_used(calibrated_before: bool) -> None:
    model = Untrained("corrected").fit(random_vectors())
    if calibrated_before:
        model.edge_probabilities([0], [1])
    model.set_params(sampler="raw", balanced=False)
    expected = Untrained("corrected").fit(random_vectors()).edge_probabilities(*UPPER)
    np.testing.assert_array_equal(model.edge_probabilities(*UPPER), expected)


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_a_model_trained_on_a_gpu_samples_on_a_machine_without_one() -> None:
    model = Untrained("corrected").fit(random_vectors())
    expected = model.sample(rng=0)
    other = Untrained("corrected").fit(random_vectors())
    other.device = "cuda"
    assert other.sample(rng=0) == expected


def test_an_unknown_sampler_is_named() -> None:
    with pytest.raises(InputError, match=r"sampler of Untrained must be .*got 'plain'"):
        Untrained("raw").fit(random_vectors()).with_sampler("plain")
    with pytest.raises(NotFittedError):
        Untrained("raw").with_sampler("corrected")


@given(
    st.integers(0, 2**32), st.sampled_from([("calibrated", False), ("corrected", False), ("corrected", True)])
)
@settings(max_examples=20, deadline=None)
def test_the_expected_number_of_edges_is_the_observed_one(seed: int, kind: tuple[str, bool]) -> None:
    model = Untrained(*kind).fit(random_vectors(seed))
    total = model.edge_probabilities(*UPPER).sum()
    assert total == pytest.approx(model.graph_.n_edges, rel=1e-6)


def test_corrected_probabilities_are_scaled_calibrated_ones() -> None:
    calibrated, corrected = (Untrained(kind).fit(random_vectors()) for kind in ("calibrated", "corrected"))
    p = calibrated.edge_probabilities(*UPPER)
    assert p.sum() > 1.2 * calibrated.graph_.n_edges
    scaled = p * calibrated.graph_.n_edges / p.sum()
    np.testing.assert_allclose(corrected.edge_probabilities(*UPPER), scaled, rtol=1e-6)


def test_a_second_fit_replaces_the_first() -> None:
    model = Untrained("corrected").fit(random_vectors(1))
    before = model.edge_probabilities(*UPPER)
    after = model.fit(random_vectors(2)).edge_probabilities(*UPPER)
    assert not np.allclose(before, after)
    assert np.array_equal(after, Untrained("corrected").fit(random_vectors(2)).edge_probabilities(*UPPER))


def test_samples_of_directed_and_weighted_graphs_are_undirected_and_binary() -> None:
    graph = Graph(np.triu(np.random.default_rng(0).integers(0, 3, (20, 20))), directed=True, labels=[0] * 20)
    model = VGAE(n_epochs=2).fit(graph, rng=0)
    sample = pickle.loads(pickle.dumps(model)).sample(rng=0)
    assert not sample.directed
    assert not sample.is_weighted
    assert sample.replace(adjacency=graph.adjacency, directed=True) == graph


def test_divergence_of_normals_is_the_integral() -> None:
    mean, log_s = 0.7, -0.4

    def integrand(x: float) -> float:
        q = stats.norm(mean, np.exp(log_s))
        return float(q.pdf(x) * (q.logpdf(x) - stats.norm.logpdf(x)))

    expected, _ = integrate.quad(integrand, -10, 10)
    heads = torch.tensor([[mean, mean, log_s, log_s]] * 3)
    _, divergence = draw_normal(heads, np.random.default_rng(0))
    assert divergence.item() == pytest.approx(2 * expected, rel=1e-5)


def test_gradients_of_normal_draws() -> None:
    heads = torch.randn(5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def draw(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return draw_normal(tensor, np.random.default_rng(1))

    noise = np.random.default_rng(1).standard_normal((5, 2), dtype=np.float32)
    expected = heads[:, :2] + heads[:, 2:].exp() * torch.from_numpy(noise)
    torch.testing.assert_close(draw(heads)[0], expected)
    assert torch.autograd.gradcheck(draw, heads.requires_grad_())


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("decoded_", np.ones((3, 2)), "decoded_ must hold one row for each of 20 nodes"),
        ("decoded_", np.full((20, 2), np.nan), "decoded_ must hold finite numbers"),
        ("embeddings_", np.full((20, 2), "a"), "embeddings_ must hold numbers"),
        ("sampler_", "none", "sampler of GAE must be one of"),
    ],
)
def test_damaged_files_are_errors(part: str, value: Any, message: str, tmp_path: Path) -> None:
    model = GAE(n_epochs=1).fit(community_graph(), rng=0)
    setattr(model, part, value)
    model.save(tmp_path / "model.npz")
    with pytest.raises(InputError, match=message):
        GAE.load(tmp_path / "model.npz")
