from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

import nodecopy
from nodecopy.classify import APPNP, GCN, MLP, BayesianGCN, Classifier, NetworkClassifier, SelfTraining
from nodecopy.errors import InputError
from nodecopy.nn.networks import TrainingConfig
from tests.contracts.classifiers import planted_graph
from tests.measurements import measured_graph


def test_parameters_are_the_fields_of_a_recipe() -> None:
    of_recipe = {field.name for field in fields(TrainingConfig)} - {"propagation"}
    names = {name for kind in (MLP, GCN, APPNP) for name in kind.parameter_names()}
    assert names == of_recipe | {"preset", "device"}


@pytest.mark.parametrize("kind", [MLP, GCN, APPNP])
def test_parameters_replace_those_of_the_preset(kind: type[NetworkClassifier]) -> None:
    changed = kind(preset="gnn-benchmark", n_hidden=3, patience=0, dropout=0.0).build_recipe()
    assert (changed.n_hidden, changed.patience, changed.dropout) == (3, 0, 0.0)
    assert (changed.n_epochs, changed.features) == (2000, "binary")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"device": "abacus"}, "device must be"),
        (
            {"preset": "kip"},
            "preset of GCN must be one of default, g3nn, gnn-benchmark, kipf; got 'kip'. Did",
        ),
        ({"n_hidden": 0}, "^n_hidden of GCN must be an integer of at least 1; got 0"),
        ({"patience": -1}, "^patience of GCN must be an integer of at least 0; got -1"),
    ],
)
def test_wrong_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        GCN(**parameters).fit(planted_graph(), [0, 1, 2])


@pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")  # after so few epochs
def test_sparse_and_dense_features_give_the_same_prediction() -> None:
    graph = planted_graph()
    packed_features = sparse.csr_array(np.asarray(graph.features))
    dense = GCN(n_epochs=5).fit(graph, [0, 1, 2], rng=0)
    packed = GCN(n_epochs=5).fit(graph.replace(features=packed_features), [0, 1, 2], rng=0)
    assert np.array_equal(dense.predict_proba(), packed.predict_proba())


def test_patience_needs_validation_nodes() -> None:
    nothing: list[Any] = [None, []]
    for validation in nothing:
        with pytest.raises(InputError, match="validation must be given, since training stops by the loss"):
            GCN(preset="gnn-benchmark").fit(planted_graph(), [0, 1, 2], validation=validation, rng=0)


def test_a_missing_gpu_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(InputError, match="this machine has no CUDA devices"):
        GCN(device="cuda").fit(planted_graph(), [0, 1, 2], rng=0)


@pytest.mark.parametrize("kind", [MLP, GCN, APPNP])
def test_presets_of_papers_state_their_scalings(kind: type[NetworkClassifier]) -> None:
    """The experiments name these presets, so that they do not depend on what is chosen for users."""
    stated = {name: (recipe.features, recipe.weights) for name, recipe in kind.presets.items()}
    published = {"kipf": ("rows", "raw"), "gnn-benchmark": ("binary", "raw")}
    published |= {"g3nn": ("rows", "raw")} if kind is GCN else {}
    assert stated == published | {"default": ("auto", "auto")}


@pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")
@pytest.mark.parametrize("seed", [0, 1])
def test_measurements_are_not_scaled_like_words(seed: int) -> None:
    """By rows of raw features, which was the default, GCN and APPNP did little better than chance (25 %)."""
    graph = measured_graph(seed=seed)
    train = np.concatenate([np.flatnonzero(graph.labels == code)[:10] for code in range(4)])

    def accuracy(classifier: Classifier) -> float:
        return classifier.fit(graph, train, rng=0).score()

    for kind in (GCN, APPNP):
        standardised = accuracy(kind(features="standardise", weights="raw"))
        by_rows, default = accuracy(kind(preset="kipf")), accuracy(kind())
        assert by_rows < 0.4 < 0.55 < standardised < default - 0.1
        assert default > 0.85
    assert accuracy(BayesianGCN(n_graphs=3)) > 0.85


@pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")  # after so few epochs
def test_the_default_of_word_counts_is_that_of_kipf_and_welling_but_for_scaling_and_decay() -> None:
    words = (np.random.default_rng(0).random((60, 30)) < 0.1).astype(float)
    graph = planted_graph().replace(features=words)
    changes: dict[str, Any] = {"preset": "kipf", "features": "unit", "weight_decay": 0.005}
    for classifier in (GCN, MLP, APPNP):
        default, changed = (
            built.fit(graph, [0, 1, 2], rng=0).predict_proba()
            for built in (classifier(n_epochs=5), classifier(n_epochs=5, **changes))
        )
        np.testing.assert_array_equal(default, changed)


@pytest.mark.parametrize(
    "classifier",
    [
        MLP(),
        APPNP(n_epochs=50),
        APPNP(preset="gnn-benchmark", bias=True, n_epochs=60),
        BayesianGCN(n_graphs=2, n_weight_samples=3, base=APPNP(n_epochs=30)),
        SelfTraining(APPNP(n_epochs=30), 2, pseudo_labels="soft", loss_weights="confidence"),
    ],
    ids=str,
)
def test_compiled_predictions_are_those_of_torch(
    classifier: Classifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, nodes = planted_graph(), np.random.default_rng(0).permutation(60)
    predictions = []
    for is_compiled in (True, False):
        monkeypatch.setattr(TrainingConfig, "is_compiled", lambda recipe, device, use=is_compiled: use)
        predictions.append(classifier.fit(graph, nodes[:20], validation=nodes[20:40], rng=0).predict_proba())
    compiled, plain = predictions
    np.testing.assert_allclose(compiled, plain, rtol=0, atol=1e-4)
    np.testing.assert_array_equal(compiled.argmax(axis=1), plain.argmax(axis=1))
    assert not np.array_equal(compiled, plain)  # they differ by rounding, so both were computed


@pytest.mark.parametrize("classifier", [GCN(n_epochs=20), BayesianGCN(n_graphs=2, n_weight_samples=2)])
def test_other_graphs_are_scaled_as_the_observed_one(classifier: Classifier, tmp_path: Path) -> None:
    """Nodes that are more than two hops away from a changed one keep their predictions."""
    graph = measured_graph(120)
    classifier.fit(graph, np.arange(40), rng=0)
    np.testing.assert_allclose(classifier.predict_proba(graph), classifier.predict_proba(), atol=1e-6)
    classifier.save(tmp_path / "fitted.npz")
    loaded = nodecopy.load(tmp_path / "fitted.npz")
    features = np.array(graph.features)
    features[-1] = 1e9
    larger = graph.replace(features=features)
    np.testing.assert_array_equal(loaded.predict_proba(larger), classifier.predict_proba(larger))
    reached = graph.adjacency[[119]] + graph.adjacency[[119]] @ graph.adjacency
    far = np.setdiff1d(np.arange(119), reached.indices)
    np.testing.assert_allclose(loaded.predict_proba(larger)[far], classifier.predict_proba()[far], atol=1e-6)
