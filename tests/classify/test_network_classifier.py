from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from nodecopy.classify import APPNP, GCN, MLP, NetworkClassifier
from nodecopy.errors import InputError
from nodecopy.nn.networks import Recipe
from tests.contracts.classifiers import planted_graph


def test_parameters_are_the_fields_of_a_recipe() -> None:
    of_recipe = {field.name for field in fields(Recipe)} - {"propagation"}
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
            "preset of GCN must be one of g3nn, gnn-benchmark, kipf; got 'kip'. Did",
        ),
        ({"n_hidden": 0}, "n_hidden must be an integer of at least 1; got 0"),
        ({"patience": -1}, "patience must be an integer of at least 0; got -1"),
    ],
)
def test_wrong_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        GCN(**parameters).fit(planted_graph(), [0, 1, 2])


@pytest.mark.filterwarnings("ignore:the classifier has hardly learned")  # after so few epochs
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
