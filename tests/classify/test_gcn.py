from __future__ import annotations

import pytest

from nodecopy.classify import GCN, Classifier
from tests.contracts.classifiers import ClassifierContract

CLASSIFIERS = {
    "plain": GCN(n_epochs=25, learning_rate=0.05),
    "drop-edges": GCN(n_epochs=25, learning_rate=0.05, drop_edges=0.2),
    "patience": GCN(preset="gnn-benchmark", n_epochs=40, patience=5),
    "rank": GCN(rank=10, n_epochs=25, learning_rate=0.05),
}


class TestGCN(ClassifierContract):
    @pytest.fixture(scope="class", params=CLASSIFIERS)
    @classmethod
    def classifier(cls, request: pytest.FixtureRequest) -> Classifier:
        return CLASSIFIERS[request.param]


def test_presets() -> None:
    kipf, benchmark, g3nn = (
        GCN(preset=preset).build_recipe() for preset in ("kipf", "gnn-benchmark", "g3nn")
    )
    assert (kipf.n_hidden, kipf.n_epochs, kipf.patience, kipf.features) == (16, 200, 0, "rows")
    assert (benchmark.n_hidden, benchmark.patience, benchmark.features) == (64, 50, "binary")
    assert (g3nn.patience, g3nn.drop_input, g3nn.decay_all) == (200, False, True)
    assert {recipe.propagation for recipe in (kipf, benchmark, g3nn)} == {"convolution"}
