"""Graphite: the factored decoder against the dense formula, and errors about settings."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from nodecopy import Graph, GraphModel, datasets
from nodecopy.errors import InputError
from nodecopy.generators import VGAE, Graphite
from nodecopy.generators.autoencoders import FeedbackDecoder, factor_intermediate_graph
from nodecopy.nn.stack import SparseStack
from tests.contracts.graph_models import GraphModelContract
from tests.generators.scoring import score_link_prediction
from tests.generators.test_losses import random_adjacency
from tests.generators.test_vgae import two_blocks


class TestContract(GraphModelContract):
    @pytest.fixture(scope="class")
    @classmethod
    def model(cls) -> GraphModel[Graph]:
        model: GraphModel[Graph] = Graphite(n_epochs=20)
        return model


def dense_decoder(z: Any, X: Any, weights: Any, feedback: float) -> Any:
    """Compute the formula of the paper with N x N matrices."""
    W0, W1, W2 = weights
    rows = z / np.linalg.norm(z, axis=1, keepdims=True)
    graph = rows @ rows.T + 1
    scale = 1 / np.sqrt(graph.sum(axis=1))
    T = scale[:, None] * graph * scale
    update = np.maximum(T @ z @ W1, 0) + np.maximum(T @ X @ W0, 0)
    return (1 - feedback) * z + feedback * T @ update @ W2


@pytest.mark.parametrize("feedback", [0.0, 0.5, 1.0])
def test_the_factored_decoder_is_the_dense_formula(feedback: float) -> None:
    rng = np.random.default_rng(0)
    z, X = rng.normal(size=(13, 3)), rng.integers(0, 2, (13, 7)).astype(float)
    features = SparseStack([sparse.csr_array(X)], torch.device("cpu"))
    decoder = FeedbackDecoder(features, 3, 5, feedback, np.random.default_rng(1))
    weights = [weight.detach()[0].double().numpy() for weight in decoder.weights]
    decoded = decoder(torch.from_numpy(z.astype(np.float32))).detach().numpy()
    np.testing.assert_allclose(decoded, dense_decoder(z, X, weights, feedback), rtol=1e-5, atol=1e-6)


def test_opposite_and_zero_embeddings_have_positive_degrees() -> None:
    z = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]])
    factor = factor_intermediate_graph(z)
    # Degrees 2 + 0 + 1, 0 + 2 + 1, 1 + 1 + 1 of [[2, 0, 1], [0, 2, 1], [1, 1, 1]]
    expected = torch.tensor([[2.0, 0, 1], [0, 2, 1], [1, 1, 1]]) / 3
    torch.testing.assert_close(factor @ factor.T, expected)


def test_without_feedback_it_is_the_vgae() -> None:
    graph = two_blocks()
    plain, without_feedback = (
        VGAE(n_epochs=5).fit(graph, rng=0),
        Graphite(n_epochs=5, feedback=0).fit(graph, rng=0),
    )
    np.testing.assert_allclose(without_feedback.embeddings(), plain.embeddings(), atol=1e-6)
    assert not np.allclose(Graphite(n_epochs=5).fit(graph, rng=0).embeddings(), plain.embeddings(), atol=1e-3)
    plain, without_feedback = plain.set_params(pairs="sampled"), without_feedback.set_params(pairs="sampled")
    sampled = plain.fit(graph, rng=0).embeddings()
    np.testing.assert_allclose(without_feedback.fit(graph, rng=0).embeddings(), sampled, atol=1e-6)
    assert not np.allclose(VGAE(n_epochs=5).fit(graph, rng=0).embeddings(), sampled, atol=1e-4)


def test_probabilities_are_those_of_the_decoded_vectors() -> None:
    features = np.random.default_rng(4).integers(0, 2, (23, 9)).astype(float)
    model = Graphite(n_hidden=6, n_latent=3, n_epochs=10, sampler="raw")
    model.fit(Graph(random_adjacency(), features), rng=0)
    decoded = model.decoded_
    assert model.embeddings().shape == decoded.shape == (23, 3)
    assert not np.allclose(model.embeddings(), decoded, atol=1e-2)
    probabilities = model.edge_probabilities([0, 3], [1, 2])
    np.testing.assert_allclose(
        probabilities, 1 / (1 + np.exp(-(decoded[[0, 3]] * decoded[[1, 2]]).sum(1))), rtol=1e-5
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"feedback": 1.5}, r"feedback of Graphite .* between 0 and 1; got 1\.5"),
        ({"n_decoder_hidden": 0}, "n_decoder_hidden of Graphite .* got 0"),
        ({"n_latent": 0}, "n_latent of Graphite .* got 0"),
    ],
)
def test_invalid_settings(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Graphite(**options).fit(two_blocks())


@pytest.mark.skipif(not os.environ.get("NODECOPY_DATA"), reason="NODECOPY_DATA does not name a folder")
@pytest.mark.slow
def test_link_prediction_on_cora() -> None:
    """Four splits, each with a deviation of 1.6."""
    scores = score_link_prediction(lambda: Graphite(sampler="raw"), datasets.load("cora"), n_splits=4)
    assert scores == pytest.approx((91.5, 93.2), abs=1.5)
