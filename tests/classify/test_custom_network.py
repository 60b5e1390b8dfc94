"""Networks of the user, built by a factory, alone and inside BayesianGCN and SelfTraining."""

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
from nodecopy.classify import (
    GCN,
    BayesianGCN,
    Classifier,
    CustomNetwork,
    GraphClassifier,
    SelfTraining,
    Trial,
)
from nodecopy.datasets import label_split
from nodecopy.defend import CopyingDefence
from nodecopy.errors import DataWarning, InputError
from tests.contracts.classifiers import ClassifierContract, planted_graph

pyg = pytest.importorskip("torch_geometric.nn")
GRAPH = planted_graph()
SPLIT = label_split(GRAPH.labels, 3, validation=15, test=30, rng=0)
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


ALONE = {
    "gat": CustomNetwork(build_gat, **FAST),
    "batch norm": CustomNetwork(build_gin, **FAST),
    "class with a cache": CustomNetwork(Convolution, n_epochs=40, learning_rate=0.1),
    "early stopping": CustomNetwork(build_sage, n_epochs=40, patience=5, learning_rate=0.05),
}
INSIDE = {
    "bayesian": BayesianGCN(n_graphs=2, n_weight_samples=2, base=CustomNetwork(build_gat, **FAST)),
    "rounds": BayesianGCN(
        n_graphs=1, n_weight_samples=1, n_rounds="validation", base=CustomNetwork(build_sage, **FAST)
    ),
    "self-training": SelfTraining(
        CustomNetwork(build_sage, **FAST), 1, pseudo_labels="soft", loss_weights="confidence"
    ),
}


class NamedFactories(ClassifierContract):
    """The contract of classifiers; files name factories, so they are given to ``load``."""

    @pytest.fixture(autouse=True)
    def give_factories_to_load(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def load(path: Path, *, classes: Any = ()) -> Any:
            return nodecopy.load(path, classes=[*classes, build_gat, build_sage, build_gin, Convolution])

        monkeypatch.setattr("tests.contracts.classifiers.load", load)


class TestCustomNetwork(NamedFactories):
    @pytest.fixture(scope="class", params=ALONE)
    @classmethod
    def classifier(cls, request: pytest.FixtureRequest) -> Classifier:
        return ALONE[request.param]


class TestCustomNetworkAsABase(NamedFactories):
    @pytest.fixture(scope="class", params=INSIDE)
    @classmethod
    def classifier(cls, request: pytest.FixtureRequest) -> Classifier:
        return INSIDE[request.param]


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


def test_a_convolution_learns_what_the_engine_learns() -> None:
    """A GCN of PyG with the settings of Kipf and Welling has about the accuracy of GCN()."""

    def build(n_features: int, n_classes: int) -> Any:
        return pyg.GCN(n_features, 16, 2, n_classes, dropout=0.5)

    digits = nodecopy.datasets.load("digits").subgraph(range(500))
    ours = GCN(features="standardise").fit(digits, range(100), rng=0).score()
    theirs = CustomNetwork(build, features="standardise").fit(digits, range(100), rng=0).score()
    assert abs(ours - theirs) < 0.05


def test_results_do_not_depend_on_global_generators_nor_change_them() -> None:
    classifier = CustomNetwork(build_gat, **FAST)
    states = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        before: Any = torch.get_rng_state(), np.random.get_state()  # noqa: NPY002
        states.append(classifier.fit(GRAPH, SPLIT.train, rng=0).predict_proba(GRAPH))
        assert torch.equal(before[0], torch.get_rng_state())
        after: Any = np.random.get_state()  # noqa: NPY002
        assert np.array_equal(before[1][1], after[1])
    assert np.array_equal(states[0], states[1])


def test_threads_do_not_draw_from_each_others_generators() -> None:
    classifiers = [CustomNetwork(build_gat, **FAST) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        fitted = list(pool.map(lambda one: one.fit(GRAPH, SPLIT.train, rng=0).predict_proba(), classifiers))
    assert all(np.array_equal(probabilities, fitted[0]) for probabilities in fitted)


def test_dropout_samples_and_sampled_graphs_leave_disagreement() -> None:
    base = CustomNetwork(build_gat, **FAST)
    ensemble = BayesianGCN(n_graphs=2, n_weight_samples=3, base=base).fit(GRAPH, SPLIT.train, rng=0)
    assert ensemble.uncertainty().epistemic.mean() > 1e-3
    assert base.fit(GRAPH, SPLIT.train, rng=0).uncertainty().epistemic.max() < 1e-5


def test_pseudo_labels_and_their_weights_reach_the_loss() -> None:
    trial = Trial(GRAPH, SPLIT.train, rng=0)
    nodes, codes = SPLIT.test[:5], np.zeros(5, np.int64)
    weights = np.array([1.0] * len(trial.train) + [0.0] * 5, np.float32)
    changed = (
        trial,
        trial.with_pseudo_labels(nodes, codes, weights=weights, rng=0),
        trial.with_pseudo_labels(nodes, codes, rng=0),
        trial.with_pseudo_labels(nodes, codes, soft=np.full((5, 3), 1 / 3, np.float32), rng=0),
    )
    base = CustomNetwork(build_sage, **FAST)
    plain, ignored, hard, soft = (base.fit_trials([one])[0].probabilities for one in changed)
    np.testing.assert_allclose(plain, ignored, atol=1e-5)
    assert hard[nodes, 0].mean() > plain[nodes, 0].mean() + 0.02
    assert soft[nodes].max(axis=1).mean() < plain[nodes].max(axis=1).mean()


def test_weights_are_given_to_networks_that_take_them() -> None:
    rng = np.random.default_rng(0)
    factors = sparse.csr_array(np.triu(rng.integers(1, 9, (60, 60)), 1))
    weighted = GRAPH.replace(adjacency=GRAPH.adjacency.multiply(factors + factors.T))
    base = CustomNetwork(Convolution, n_epochs=40, learning_rate=0.1)
    changed = [base.fit(graph, SPLIT.train, rng=0).predict_proba() for graph in (weighted, GRAPH)]
    assert not np.allclose(changed[0], changed[1], atol=1e-3)
    with pytest.warns(
        DataWarning, match="weights of the graph are not used: GAT takes no edge_weight"
    ) as seen:
        BayesianGCN(n_graphs=2, base=CustomNetwork(build_gat, **FAST)).fit(weighted, SPLIT.train, rng=0)
    assert sum("edge_weight" in str(entry.message) for entry in seen) == 1


@pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")
def test_early_stopping_takes_the_best_epoch_on_the_observed_graph() -> None:
    """Labels of other nodes are noise here, so that training for long is worse than the first epochs."""
    truth = np.array(GRAPH.labels)
    noisy = GRAPH.replace(labels=np.random.default_rng(0).permutation(truth))
    fit: dict[str, Any] = {"train": SPLIT.train, "validation": SPLIT.validation, "rng": 0}
    long = CustomNetwork(build_sage, n_epochs=100).fit(noisy, **fit)
    stopped = CustomNetwork(build_sage, n_epochs=100, patience=10).fit(noisy, **fit)
    codes = np.array(noisy.labels)[SPLIT.validation]
    losses = [-np.log(c.predict_proba()[SPLIT.validation, codes]).mean() for c in (stopped, long)]
    assert losses[0] < losses[1] - 0.1
    with pytest.raises(InputError, match="validation must be given, since training stops by the loss"):
        CustomNetwork(build_sage, patience=10).fit(GRAPH, SPLIT.train, rng=0)


def test_a_file_names_the_factory_and_load_takes_it_again(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    fitted = SelfTraining(BayesianGCN(n_graphs=1, base=build_sage), 1).fit(GRAPH, SPLIT.train, rng=0)
    fitted.save(path)
    loaded = nodecopy.load(path, classes=[build_sage])
    assert np.array_equal(loaded.predict_proba(GRAPH), fitted.predict_proba(GRAPH))
    with pytest.raises(InputError, match=r"classes must hold build_sage\(\), since the file names it"):
        nodecopy.load(path)

    def build_other(n_features: int, n_classes: int) -> Any:
        return pyg.GraphSAGE(n_features, 9, 2, n_classes)

    build_other.__name__ = "build_sage"
    with pytest.raises(InputError, match=r"must build the networks that were trained. .* size mismatch"):
        nodecopy.load(path, classes=[build_other]).predict_proba(GRAPH)


def test_other_families_take_it() -> None:
    classifier = CustomNetwork(build_sage, **FAST)
    defence = CopyingDefence(classifier, n_donors=2).fit(GRAPH, SPLIT.train, rng=0)
    assert defence.predict_proba()[[3, 4]].shape == (2, 3)
    labels = np.where(np.isin(np.arange(60), SPLIT.train), np.array(GRAPH.labels), -1)
    rows = GraphClassifier(classifier, n_neighbours=3, random_state=0).fit(GRAPH.features, labels)
    assert rows.predict(GRAPH.features).shape == (60,)


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
        (None, "got None"),
        (SHARED, "got a GraphSAGE, which is one module"),
        (GCN, r"got the class GCN: use GCN\(\)"),
        (lambda n, k: None, "factory of CustomNetwork must return a torch.nn.Module .* got None"),
        (
            lambda n: None,
            "must build a network from the numbers of features and classes; called with 12 and 3, it raised "
            "TypeError",
        ),
        (lambda n, k: SHARED, "must return a new module in each call; got the same GraphSAGE again"),
        (
            lambda n, k: pyg.GraphSAGE(n, 8, 2),
            "GraphSAGE must return 3 columns.* got 8. Use the second argument",
        ),
        (lambda n, k: pyg.GraphSAGE(5, 8, 2, k), r"GraphSAGE must accept x \(torch.float32, \[60, 12\]\)"),
        (lambda n, k: pyg.SimpleConv(aggr="sum"), "SimpleConv must return 3 columns"),
        (lambda n, k: nn.Sequential(), "Sequential must accept"),
        (Refusing, "Refusing must accept .* TypeError: no such edges"),
        (
            Exploding,
            "the training loss of Exploding must stay finite; got nan by epoch 10. Lower learning_rate",
        ),
    ],
)
def test_errors_name_the_factory(factory: Any, message: str) -> None:
    classifier = BayesianGCN(n_graphs=2, base=CustomNetwork(factory))
    with pytest.raises(InputError, match=message):
        classifier.fit(GRAPH, SPLIT.train, rng=0)


@pytest.mark.parametrize(
    "factory", [lambda: SHARED, lambda n, k: 3], ids=["without parameters", "without a module"]
)
@pytest.mark.parametrize(
    ("build", "owner"),
    [
        (SelfTraining, "SelfTraining"),
        (lambda factory: BayesianGCN(base=factory), "BayesianGCN"),
        (lambda factory: SelfTraining(BayesianGCN(base=factory)), "BayesianGCN"),
    ],
)
def test_errors_name_the_base_that_took_a_bare_factory(build: Any, owner: str, factory: Any) -> None:
    classifier = build(factory)
    with pytest.raises(InputError, match=f"^base of {owner} must (build a network|return a torch.nn.Module)"):
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
    with caplog.at_level("INFO", "nodecopy"):
        CustomNetwork(Recording, n_epochs=30).fit(graph, [0, 1], rng=0)
    assert torch.equal(seen[0], to_pyg(graph).edge_index)
    assert sum("in-neighbours" in record.message for record in caplog.records) == 1


class Constant(nn.Module):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return x[:, :3]


def test_a_module_without_parameters() -> None:
    with pytest.raises(InputError, match="Constant must have parameters to train; got none"):
        CustomNetwork(lambda n, k: Constant()).fit(GRAPH, SPLIT.train, rng=0)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_epochs": 0}, "n_epochs of CustomNetwork must be an integer of at least 1; got 0"),
        ({"patience": -1}, "patience of CustomNetwork must"),
        ({"learning_rate": -1.0}, "learning_rate of CustomNetwork must"),
        ({"features": "square"}, "features of CustomNetwork must be one of"),
        ({"device": "tpu"}, "device must be 'cpu' or 'cuda'"),
    ],
)
def test_wrong_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        CustomNetwork(build_sage, **parameters).fit(GRAPH, SPLIT.train, rng=0)


def test_the_online_schedule_is_that_of_the_stack() -> None:
    with pytest.raises(
        InputError, match=r"schedule of BayesianGCN must be 'retrain' with .* a network of your own"
    ):
        BayesianGCN(schedule="online", base=build_sage).fit(GRAPH, SPLIT.train, rng=0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_learns_the_same() -> None:
    """Without dropout the results differ by rounding; the generators of the device are restored."""
    on_cpu, on_gpu = (CustomNetwork(build_sage, n_epochs=30, device=device) for device in ("cpu", "cuda"))
    fitted = [base.fit(GRAPH, SPLIT.train, rng=0).predict_proba() for base in (on_cpu, on_gpu)]
    np.testing.assert_allclose(fitted[0], fitted[1], atol=0.01)
    state = torch.cuda.get_rng_state()
    base = CustomNetwork(build_gat, **FAST, device="cuda")
    ensemble = BayesianGCN(n_graphs=2, n_weight_samples=2, base=base).fit(GRAPH, SPLIT.train, rng=0)
    assert torch.equal(state, torch.cuda.get_rng_state())
    np.testing.assert_allclose(ensemble.predict_proba(GRAPH), ensemble.predict_proba(), atol=1e-4)
    assert ensemble.score() > 0.6
    stopping = CustomNetwork(build_gin, n_epochs=20, patience=5, learning_rate=0.05, device="cuda")
    assert stopping.fit(GRAPH, SPLIT.train, validation=SPLIT.validation, rng=0).score() > 0.5
