"""A trained module of PyTorch Geometric as a classifier."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nodecopy import Graph, to_pyg
from nodecopy.classify import Classifier, ModuleClassifier, Trial
from nodecopy.defend import CopyingDefence
from nodecopy.errors import InputError
from tests.contracts.classifiers import N_NODES, ClassifierContract, planted_graph

pyg = pytest.importorskip("torch_geometric.nn")


def train_module(module: Any, graph: Graph, train: Any = range(N_NODES), n_epochs: int = 60) -> Any:
    """Train a module by a plain loop and return it, in training mode."""
    data, nodes = to_pyg(graph), torch.tensor(list(train))
    steps = torch.optim.Adam(module.parameters(), lr=0.02)
    for _ in range(n_epochs):
        steps.zero_grad()
        logits = module(data.x, data.edge_index)
        torch.nn.functional.cross_entropy(logits[nodes], data.y[nodes]).backward()  # type: ignore[no-untyped-call]
        steps.step()
    return module


def trained_gcn(graph: Graph) -> Any:
    torch.manual_seed(0)
    return train_module(pyg.GCN(12, 8, 2, out_channels=3, dropout=0.5), graph)


class TestModuleClassifier(ClassifierContract):
    is_random = trains = can_be_saved = False

    @pytest.fixture(scope="class")
    @classmethod
    def classifier(cls) -> Classifier:
        return ModuleClassifier(trained_gcn(planted_graph()))

    def test_scores_need_training_nodes_or_a_graph(self, classifier: Classifier, observed: Graph) -> None:
        fitted = ModuleClassifier(classifier.get_params()["module"]).fit(observed)
        with pytest.raises(InputError, match="train must be given to fit, or graph to score"):
            fitted.score()
        assert fitted.score(graph=observed) > 0.6

    def test_a_class_without_training_nodes_stays(
        self, classifier: Classifier, observed: Graph, nodes: Any
    ) -> None:
        train = nodes.train[np.array(observed.named_labels())[nodes.train] != "yew"]
        fitted = ModuleClassifier(classifier.get_params()["module"]).fit(observed, train)
        assert fitted.classes_.tolist() == ["ash", "oak", "yew"]
        assert "yew" in fitted.predict()

    def test_saving_names_the_way_out(self, fitted: Classifier, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="save it by torch"):
            fitted.save(tmp_path / "model.npz")

    def test_a_graph_without_labels(self, classifier: Classifier, observed: Graph) -> None:
        module = classifier.get_params()["module"]
        unlabelled = observed.replace(labels=None)
        assert ModuleClassifier(module).fit(unlabelled).classes_.tolist() == [0, 1, 2]
        fitted = ModuleClassifier(module, ["ash", "oak", "yew"]).fit(unlabelled)
        assert np.array_equal(fitted.predict(), ModuleClassifier(module).fit(observed).predict())
        reordered = ModuleClassifier(module, ["oak", "ash", "yew"]).fit_trials([Trial(observed)])
        assert np.array_equal(reordered[0].probabilities[:, [1, 0, 2]], fitted.predict_proba())
        with pytest.raises(InputError, match="must hold every class of the graph; got no 'yew'"):
            ModuleClassifier(module, ["oak", "ash", "elm"]).fit_trials([Trial(observed)])
        with pytest.raises(InputError, match=r"must be 3 different names.* got \['ash', 'oak'\]"):
            ModuleClassifier(module, ["ash", "oak"]).fit(observed)


def test_the_training_mask_of_data_is_used() -> None:
    """Before, it was ignored, and score() spoke of a loaded classifier."""
    graph = planted_graph(strings=False)
    module, data = trained_gcn(graph), to_pyg(graph)
    data.train_mask = torch.arange(N_NODES) < 30
    fitted = ModuleClassifier(module).fit(data)
    assert fitted.trial_.train.tolist() == list(range(30))
    assert fitted.score() == ModuleClassifier(module).fit(graph, range(30)).score()
    data.y = None
    assert not hasattr(ModuleClassifier(module).fit(data), "trial_")


def test_a_graph_without_a_class_of_the_module() -> None:
    """The columns keep the classes of training; before, they would have been renumbered."""
    graph = planted_graph(strings=False)
    module = trained_gcn(graph)
    part = graph.subgraph(np.flatnonzero(graph.labels != 1))
    fitted = ModuleClassifier(module).fit(part)
    assert fitted.classes_.tolist() == [0, 1, 2]
    assert (fitted.predict() == part.labels).mean() > 0.6


@pytest.mark.parametrize("mode", ["swap-features", "copy-row"])
def test_a_defence_corrects_a_module(mode: str) -> None:
    graph = planted_graph()
    module = trained_gcn(graph)
    classifier = ModuleClassifier(module).fit(graph)
    defences = [
        CopyingDefence(n_donors=3, mode=mode).from_classifier(victim, graph, rng=0)
        for victim in (module, classifier)
    ]
    corrected = [defence.predict_proba()[[4, 50]] for defence in defences]
    assert np.array_equal(corrected[0], corrected[1])
    assert defences[0].classes_.tolist() == ["ash", "oak", "yew"]
    assert np.array_equal(defences[0].undefended_proba(), classifier.predict_proba())
    fitted = CopyingDefence(ModuleClassifier(module), n_donors=3, mode=mode).fit(graph, range(30), rng=0)
    np.testing.assert_allclose(fitted.predict_proba()[[4, 50]], corrected[0], atol=1e-6)
    with pytest.raises(InputError, match="retrain must be False for a module"):
        CopyingDefence(ModuleClassifier(module), retrain=True).fit(graph, range(30), targets=[4], rng=0)
