"""Networks of the user, alone and inside BayesianGCN and SelfTraining."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import Tensor, nn

import nodecopy
from nodecopy import Graph, to_pyg
from nodecopy._core.parallel import report_progress
from nodecopy.classify import (
    GCN,
    BayesianGCN,
    Classifier,
    CustomNetwork,
    ModuleClassifier,
    SelfTraining,
    Trial,
)
from nodecopy.datasets import label_split
from nodecopy.defend import CopyingDefence
from nodecopy.errors import DataWarning, InputError
from nodecopy.nn.modules import ModuleEnsemble
from tests.contracts.classifiers import N_NODES, ClassifierContract, planted_graph

pyg = pytest.importorskip("torch_geometric.nn")
GRAPH = planted_graph()
SPLIT = label_split(GRAPH.label_codes, 3, validation=15, test=30, rng=0)
FAST: dict[str, Any] = {"n_epochs": 25, "learning_rate": 0.05}


def build_gat(n_features: int, n_classes: int) -> Any:
    return pyg.GAT(n_features, 8, 2, n_classes, heads=2, dropout=0.3)


def build_sage(n_features: int, n_classes: int) -> Any:
    return pyg.GraphSAGE(n_features, 8, 2, n_classes)


def build_gin(n_features: int, n_classes: int) -> Any:
    return pyg.GIN(n_features, 8, 2, n_classes, dropout=0.2, norm="batch_norm")


class Convolution(nn.Module):
    """One layer with a cache, whose forward takes weights and returns probabilities."""

    def __init__(self, n_features: int, n_classes: int) -> None:
        super().__init__()
        self.layer = pyg.GCNConv(n_features, n_classes, cached=True)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        out: Tensor = self.layer(x, edge_index, edge_weight).softmax(dim=1)
        return out


CLASSIFIERS = {
    "gat": CustomNetwork(build_gat, **FAST),
    "batch norm": CustomNetwork(build_gin, **FAST),
    "class with a cache": CustomNetwork(Convolution, n_epochs=40, learning_rate=0.1),
    "early stopping": CustomNetwork(build_sage, n_epochs=40, patience=5, learning_rate=0.05),
    "bayesian": BayesianGCN(n_graphs=2, n_weight_samples=2, base=CustomNetwork(build_gat, **FAST)),
    "self-training": SelfTraining(CustomNetwork(build_sage, **FAST), 1),
}


class TestCustomNetwork(ClassifierContract):
    """Files name factories, so they are given to ``load``."""

    @pytest.fixture(autouse=True)
    def give_factories_to_load(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def load(path: Path, *, classes: Any = ()) -> Any:
            return nodecopy.load(path, classes=[*classes, build_gat, build_sage, build_gin, Convolution])

        monkeypatch.setattr("tests.contracts.classifiers.load", load)

    classifiers = CLASSIFIERS


@pytest.mark.parametrize("wrap", [BayesianGCN, SelfTraining])
def test_a_bare_factory_is_a_custom_network_with_its_defaults(wrap: Any) -> None:
    few: dict[str, Any] = {"n_graphs": 1} if wrap is BayesianGCN else {"n_rounds": 1}

    def short(n_features: int, n_classes: int) -> Any:
        return Convolution(n_features, n_classes)

    bare = wrap(base=short, **few).fit(GRAPH, SPLIT.train, rng=0)
    explicit = wrap(base=CustomNetwork(short), **few).fit(GRAPH, SPLIT.train, rng=0)
    assert np.array_equal(bare.predict_proba(), explicit.predict_proba())
    assert bare.get_params()["base"] is short
    assert bare.network_device() == "cpu"


def test_global_generators_are_not_changed() -> None:
    before = torch.get_rng_state()
    CustomNetwork(build_gat, **FAST).fit(GRAPH, SPLIT.train, rng=0).predict_proba(GRAPH)
    assert torch.equal(torch.get_rng_state(), before)


def test_threads_do_not_draw_from_each_others_generators() -> None:
    classifiers = [CustomNetwork(build_gat, **FAST) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        fitted = list(pool.map(lambda one: one.fit(GRAPH, SPLIT.train, rng=0).predict_proba(), classifiers))
    assert all(np.array_equal(probabilities, fitted[0]) for probabilities in fitted)


def test_weights_are_given_to_networks_that_take_them() -> None:
    rng = np.random.default_rng(0)
    factors = sparse.csr_array(np.triu(rng.integers(1, 9, (60, 60)), 1))
    weighted = GRAPH.replace(adjacency=GRAPH.adjacency.multiply(factors + factors.T))
    base = CustomNetwork(Convolution, n_epochs=40, learning_rate=0.1)
    changed = [base.fit(graph, SPLIT.train, rng=0).predict_proba() for graph in (weighted, GRAPH)]
    assert not np.allclose(changed[0], changed[1], atol=1e-3)
    with pytest.warns(DataWarning, match="not used: GAT takes no edge_weight") as seen:
        BayesianGCN(n_graphs=2, base=CustomNetwork(build_gat, **FAST)).fit(weighted, SPLIT.train, rng=0)
    assert sum("edge_weight" in str(entry.message) for entry in seen) == 1


def test_a_file_names_the_factory_and_load_takes_it_again(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    fitted = SelfTraining(BayesianGCN(n_graphs=1, base=build_sage), 1).fit(GRAPH, SPLIT.train, rng=0)
    fitted.save(path)
    loaded = nodecopy.load(path, classes=[build_sage])
    assert np.array_equal(loaded.predict_proba(GRAPH), fitted.predict_proba(GRAPH))
    with pytest.raises(InputError, match=r"classes must hold build_sage\(\)"):
        nodecopy.load(path)

    def build_other(n_features: int, n_classes: int) -> Any:
        return pyg.GraphSAGE(n_features, 9, 2, n_classes)

    build_other.__name__ = "build_sage"
    with pytest.raises(InputError, match=r"must build the networks that were trained. .* size mismatch"):
        nodecopy.load(path, classes=[build_other]).predict_proba(GRAPH)


def test_trials_have_their_own_modules_and_report_progress() -> None:
    classifier, seen = BayesianGCN(n_graphs=2, n_weight_samples=3, base=CustomNetwork(build_gin, **FAST)), []
    trials = [Trial(GRAPH, SPLIT.train, SPLIT.validation, seed) for seed in range(2)]
    with report_progress(lambda what, *_: seen.append(what)):
        together = classifier.fit_trials(trials, keep_networks=True)
    assert seen[0] == "training network 1 of 2"
    kept = [prediction.networks for prediction in together]
    assert all(isinstance(networks, ModuleEnsemble) for networks in kept)
    assert len({seed for networks in kept for seed in networks.seeds.tolist()}) == 4  # type: ignore[union-attr]
    (alone,) = classifier.fit_trials(trials[1:])
    assert np.array_equal(alone.probabilities, together[1].probabilities)


def test_half_precision_is_kept_in_single_precision() -> None:
    fitted = CustomNetwork(lambda n, k: pyg.GCNConv(n, k).bfloat16(), **FAST).fit(GRAPH, SPLIT.train, rng=0)
    kept: Any = fitted.prediction_.networks
    assert {value.dtype for value in kept.weights[0].values()} == {np.dtype(np.float32)}
    assert np.array_equal(fitted.predict_proba(GRAPH), fitted.predict_proba())


SHARED = pyg.GraphSAGE(12, 8, 2, 3)


class Refusing(nn.Module):
    def __init__(self, n_features: int, n_classes: int) -> None:
        super().__init__()
        self.layer = nn.Linear(n_features, n_classes)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        raise TypeError("no such edges")


class Exploding(Refusing):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out: Tensor = self.layer(x)
        return out * torch.nan if self.training else out


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        ("gat", r"must be a function of the numbers of features and classes .* got 'gat'"),
        (SHARED, "got a GraphSAGE, which is one module"),
        (GCN, r"got the class GCN: use GCN\(\)"),
        (lambda n, k: None, "factory of CustomNetwork must return a torch.nn.Module .* got None"),
        (lambda n: None, "called with 12 and 3, it raised TypeError"),
        (lambda n, k: SHARED, "must return a new module in each call; got the same GraphSAGE again"),
        (lambda n, k: pyg.GraphSAGE(n, 8, 2), "GraphSAGE must return 3 columns, the second argument.* got 8"),
        (lambda n, k: pyg.GraphSAGE(5, 8, 2, k), r"GraphSAGE must accept x \(torch.float32, \[60, 12\]\)"),
        (Refusing, "Refusing must accept .* TypeError: no such edges"),
        (Exploding, "training loss of Exploding must stay finite; got nan by epoch 10"),
    ],
)
def test_errors_name_the_factory(factory: Any, message: str) -> None:
    classifier = BayesianGCN(n_graphs=2, base=CustomNetwork(factory))
    with pytest.raises(InputError, match=message):
        classifier.fit(GRAPH, SPLIT.train, rng=0)


def test_directed_edges_point_to_the_node_that_reads_them(caplog: pytest.LogCaptureFixture) -> None:
    """The convention is that of to_pyg, and it is logged."""
    seen: list[Tensor] = []

    class Recording(nn.Linear):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:  # type: ignore[override]
            seen.append(edge_index)
            return super().forward(x)

    features = np.random.default_rng(0).normal(size=(4, 2))
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3], directed=True)
    graph = graph.replace(labels=[0, 1, 0, 1], features=features)
    CustomNetwork(Recording, n_epochs=30).fit(graph, [0, 1], rng=0)
    assert torch.equal(seen[0], to_pyg(graph).edge_index)
    assert sum("in-neighbours" in record.message for record in caplog.records) == 1


class Constant(nn.Module):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return x[:, :3]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"patience": 10}, "validation must be given, since training stops by the loss"),
        ({"factory": lambda n, k: Constant()}, "Constant must have parameters to train; got none"),
    ],
)
def test_wrong_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        CustomNetwork(**{"factory": build_sage, **parameters}).fit(GRAPH, SPLIT.train, rng=0)


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
    classifiers = (ModuleClassifier(trained_gcn(planted_graph())),)

    def test_all_classes_stay(self, classifier: Classifier, observed: Graph, nodes: Any) -> None:
        train = nodes.train[np.array(observed.labels)[nodes.train] != "yew"]
        fitted = ModuleClassifier(classifier.get_params()["module"]).fit(observed, train)
        assert fitted.classes_.tolist() == ["ash", "oak", "yew"]
        assert "yew" in fitted.predict()

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
