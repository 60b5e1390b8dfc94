"""Graph autoencoders: the training of Kipf and Welling's code, and errors about settings and graphs."""

from __future__ import annotations

import os
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.metrics import roc_auc_score

from nodecopy import Graph, Interactions, NearestNeighbours, NodeCopying, datasets
from nodecopy._core.random import child, seed_sequence
from nodecopy.errors import InputError, NotFittedError
from nodecopy.generators import GAE, VGAE
from nodecopy.generators.autoencoders import GraphAutoencoder
from nodecopy.nn.stack import normalise_adjacency
from tests.generators.scoring import score_link_prediction
from tests.generators.test_losses import dense_loss, random_adjacency

both = pytest.mark.parametrize("kind", [GAE, VGAE])
needs_data = pytest.mark.skipif(
    not os.environ.get("NODECOPY_DATA"), reason="NODECOPY_DATA does not name the folder of the real files"
)


def two_blocks(**changes: Any) -> Graph:
    """Two blocks of 20 nodes, dense inside, sparse between."""
    block = np.arange(40) // 20
    probability = np.where(block[:, None] == block, 0.5, 0.03)
    return Graph(np.random.default_rng(3).random((40, 40)) < probability).replace(**changes)


def dense_means(graph: Graph, n_epochs: int, seed: int, heads: int) -> Any:
    """Return the means of a dense model in double precision with N x N matrices."""
    weights = np.random.default_rng(child(seed_sequence(seed), 0))
    noise = np.random.default_rng(child(seed_sequence(seed), 1))
    X = torch.from_numpy(graph.features.toarray())  # type: ignore[union-attr]
    S = torch.from_numpy(normalise_adjacency(graph.adjacency).toarray()).double()
    limits = np.sqrt(6 / (X.shape[1] + 6)), np.sqrt(6 / (6 + 3))
    shapes = (X.shape[1], 6), (6, 3 * heads)
    W0, W1 = (
        torch.from_numpy(weights.uniform(-limit, limit, shape)).requires_grad_()
        for limit, shape in zip(limits, shapes, strict=True)
    )
    optimiser = torch.optim.Adam([W0, W1], lr=0.01)
    for _ in range(n_epochs):
        encoded = S @ torch.relu(S @ X @ W0) @ W1
        z, divergence = encoded, torch.zeros(())
        if heads == 2:
            mean, log_s = encoded[:, :3], encoded[:, 3:]
            z = mean + torch.from_numpy(noise.standard_normal(mean.shape, np.float32)) * torch.exp(log_s)
            each = (1 + 2 * log_s - mean**2 - torch.exp(log_s) ** 2).sum(1)
            divergence = -(0.5 / len(z)) * each.mean()
        optimiser.zero_grad()
        (dense_loss(z, graph.adjacency) + divergence).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    return (S @ torch.relu(S @ X @ W0) @ W1)[:, :3].detach().numpy()


@pytest.mark.parametrize(("kind", "heads"), [(GAE, 1), (VGAE, 2)])
def test_training_is_that_of_the_dense_model(kind: type[GraphAutoencoder], heads: int) -> None:
    features = sparse.csr_array(np.random.default_rng(4).integers(0, 2, (23, 9)).astype(float))
    graph = Graph(random_adjacency(), features)
    model = kind(n_hidden=6, n_latent=3, n_epochs=40).fit(graph, rng=5)
    expected = dense_means(graph, 40, 5, heads)
    assert np.abs(expected).max() > 0.3
    np.testing.assert_allclose(model.embeddings(), expected, atol=2e-4)


@pytest.mark.parametrize("pairs", ["all", "sampled"])
@both
def test_blocks_are_recovered(kind: type[GraphAutoencoder], pairs: str) -> None:
    """Non-edges within a block are more likely than those between blocks, without features too."""
    graph = two_blocks()
    model = kind(n_latent=4, sampler="raw", pairs=pairs).fit(graph, rng=0)
    first, second = np.triu_indices(40, 1)
    unlinked = np.asarray(graph.adjacency[first, second]).ravel() == 0
    probability = model.edge_probabilities(first[unlinked], second[unlinked])
    within = first[unlinked] // 20 == second[unlinked] // 20
    assert roc_auc_score(within, probability) > 0.85
    assert ((probability >= 0) & (probability <= 1)).all()
    logits = (model.embeddings() @ model.embeddings().T)[first[unlinked], second[unlinked]]
    np.testing.assert_allclose(probability, 1 / (1 + np.exp(-logits)), atol=1e-6)


@both
def test_same_seed_same_embeddings(kind: type[GraphAutoencoder]) -> None:
    graph = two_blocks(features=np.random.default_rng(0).normal(size=(40, 5)))
    before = pickle.loads(pickle.dumps(graph))
    model = kind(n_epochs=10).fit(graph, rng=1)
    embeddings = model.embeddings()
    assert embeddings.shape == (40, 16)
    assert embeddings.dtype == np.float32
    assert not embeddings.flags.writeable
    assert np.array_equal(
        embeddings, kind(n_epochs=10).fit(graph, rng=np.random.SeedSequence(1)).embeddings()
    )
    assert not np.array_equal(embeddings, kind(n_epochs=10).fit(graph, rng=2).embeddings())
    assert graph == before
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.edge_probabilities([0], [1]), model.edge_probabilities([0], [1]))


def test_the_global_generator_of_torch_is_not_used() -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    VGAE(n_epochs=2).fit(two_blocks(), rng=0)
    assert torch.equal(torch.get_rng_state(), before)


def test_missing_identity_sparse_and_dense_features_agree() -> None:
    graph = two_blocks()
    forms = [None, np.eye(40), sparse.eye_array(40, format="csr"), np.zeros((40, 0))]
    embeddings = [GAE(n_epochs=5).fit(graph.replace(features=form), rng=0).embeddings() for form in forms]
    for other in embeddings[1:]:
        np.testing.assert_allclose(other, embeddings[0], atol=1e-6)


def test_weights_and_directions_are_not_used() -> None:
    graph = two_blocks()
    upper = sparse.triu(graph.adjacency) * 7.0
    expected = VGAE(n_epochs=5).fit(graph, rng=0).embeddings()
    for other in (Graph(upper), Graph(upper, directed=True)):
        assert np.array_equal(VGAE(n_epochs=5).fit(other, rng=0).embeddings(), expected)


@both
def test_before_fit(kind: type[GraphAutoencoder]) -> None:
    with pytest.raises(NotFittedError, match=f"{kind.__name__} is not fitted yet"):
        kind().embeddings()
    with pytest.raises(NotFittedError, match="fit"):
        kind().edge_probabilities([0], [1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_hidden": 0}, "n_hidden of VGAE .* got 0"),
        ({"n_latent": 1.5}, r"n_latent of VGAE .* got 1\.5"),
        ({"n_epochs": 0}, "n_epochs of VGAE .* got 0"),
        ({"n_epochs": "many"}, "n_epochs of VGAE .* got 'many'"),
        ({"learning_rate": -1}, "learning_rate of VGAE .* got -1"),
        (
            {"sampler": "boiled"},
            "sampler of VGAE must be one of 'raw', 'calibrated', 'corrected'; got 'boiled'",
        ),
        ({"pairs": "some"}, "pairs of VGAE must be one of 'all', 'sampled'; got 'some'"),
        ({"balanced": 1}, "balanced of VGAE must be True or False; got 1"),
        ({"device": "abacus"}, "device .* got 'abacus'"),
    ],
)
def test_invalid_settings(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        VGAE(**options).fit(two_blocks())


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (Graph(np.zeros((0, 0))), "must have an edge"),
        (Graph(np.zeros((3, 3))), "must have an edge .* got Graph"),
        (Graph(np.eye(3), directed=True), "must have an edge between two different nodes"),
        (Interactions(np.eye(3)), "graph of GAE must be a Graph.*; got nodecopy.Interactions"),
        (two_blocks(features=np.full((40, 2), 1e30)), "features and settings of GAE must not be so large"),
    ],
)
def test_graphs_that_cannot_be_fitted(graph: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        GAE().fit(graph, rng=0)


def test_invalid_pairs() -> None:
    model = GAE(n_epochs=1).fit(two_blocks(), rng=0)
    invalid: list[tuple[Any, Any, str]] = [
        ([0, 40], [1, 2], "first must lie between 0 and 39; got 40"),
        ([0], [-1], "second must lie between 0 and 39; got -1"),
        ([0, 1], [1], "second must hold one entry per pair, 2 in all; got 1"),
        ([0.5], [1], "first must hold integers"),
    ]
    for first, second, message in invalid:
        with pytest.raises(InputError, match=message):
            model.edge_probabilities(first, second)
    assert model.edge_probabilities([], []).shape == (0,)


@needs_data
@pytest.mark.slow
@pytest.mark.parametrize(("kind", "published"), [(GAE, (91.0, 92.0)), (VGAE, (91.4, 92.6))])
def test_link_prediction_on_cora(kind: type[GraphAutoencoder], published: tuple[float, float]) -> None:
    """Six splits, since from split to split the figures have a deviation of 1.5."""
    scores = score_link_prediction(lambda: kind(sampler="raw"), datasets.load("cora"), n_splits=6)
    assert scores == pytest.approx(published, abs=1.0)


@needs_data
@pytest.mark.slow
def test_node_copying_by_embeddings_on_cora() -> None:
    cora = datasets.load("cora")
    embeddings = GAE(n_epochs=50).fit(cora, rng=0).embeddings()
    model = NodeCopying(NearestNeighbours(5, embeddings=embeddings)).fit(cora)
    donors = model.draw_donors(rng=1)
    assert cora.labels is not None
    assert (cora.labels[donors] == cora.labels).mean() > 0.75
    assert model.sample(rng=1).n_nodes == cora.n_nodes
