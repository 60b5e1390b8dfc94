"""The engine against plain torch (one network, dense matrices, the same masks and weights)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
import torch
from numpy.random import SeedSequence
from scipy import sparse
from torch import Tensor

from nodecopy.errors import InputError
from nodecopy.nn.networks import (
    HIDDEN,
    INPUT,
    KIPF,
    Networks,
    SparseStack,
    TrainingConfig,
    normalise_adjacency,
)
from nodecopy.nn.training import (
    LARGE,
    AdamStepper,
    EarlyStopping,
    LabelledNodes,
    Targets,
    check_device,
    choose_threads,
    map_on_threads,
    one_thread_per_operation,
    train,
)

CPU = torch.device("cpu")
N_NODES, N_FEATURES, N_CLASSES = 30, 12, 3
draw = np.random.default_rng(0)
LABELS = np.arange(N_NODES) % N_CLASSES
FEATURES = sparse.csr_array((draw.random((N_NODES, N_FEATURES)) < 0.4).astype(np.float32))
SEEDS = [SeedSequence(number) for number in range(4)]
TRAIN = [np.sort(draw.permutation(N_NODES)[:size]) for size in (6, 9, 6, 4)]
WATCHED = [np.setdiff1d(np.arange(N_NODES), nodes)[:12] for nodes in TRAIN]
MLP = replace(KIPF, propagation="none")
APPNP = replace(KIPF, propagation="pagerank", weight_decay=5e-3)
SHORT = replace(KIPF, n_epochs=25, n_hidden=5, weight_decay=0.05)


def graph(seed: int) -> sparse.csr_array:
    chance = np.where(LABELS[:, None] == LABELS, 0.3, 0.05)
    upper = np.triu(np.random.default_rng(seed).random((N_NODES, N_NODES)) < chance, 1)
    return normalise_adjacency(sparse.csr_array((upper | upper.T).astype(np.float32)))


GRAPHS = [graph(seed) for seed in range(4)]


def trained(config: TrainingConfig, models: Sequence[int], *, stop_early: bool = False) -> Networks:
    """Networks of some of four problems that differ in graph, labelled nodes and seed."""
    stack = SparseStack([FEATURES] * len(models), CPU)
    networks = Networks.initialise(config, stack, N_CLASSES, [SEEDS[m] for m in models])
    targets, validation = (
        Targets([LabelledNodes(nodes[m], LABELS[nodes[m]]) for m in models], CPU)
        for nodes in (TRAIN, WATCHED)
    )
    graphs = [GRAPHS[m] for m in models]
    early_stopping = EarlyStopping(networks, graphs, validation) if stop_early else None
    train(networks, graphs, targets, early_stopping=early_stopping)
    return networks


def weights(networks: Networks, model: int) -> list[Tensor]:
    return [weight[model].detach() for weight in networks.weights]


class Plain:
    """One GCN in plain torch, with the engine's masks."""

    def __init__(self, config: TrainingConfig, model: int) -> None:
        self.config, self.model = config, model
        self.engine = Networks.initialise(config, SparseStack([FEATURES], CPU), N_CLASSES, [SEEDS[model]])
        self.graph = torch.from_numpy(GRAPHS[model].toarray())
        self.parameters = [weight[0].detach().clone().requires_grad_() for weight in self.engine.weights]

    def logits(self, step: int | None) -> Tensor:
        first, second, *biases = self.parameters
        features, scale = torch.from_numpy(FEATURES.toarray()), torch.ones(N_NODES, self.config.n_hidden)
        if step is not None:
            masks = self.engine.masks
            rows = np.repeat(np.arange(N_NODES), np.diff(FEATURES.indptr))
            features[rows, FEATURES.indices] *= masks.draw(FEATURES.nnz, step=step, place=INPUT)[0]
            scale = masks.draw(scale.numel(), step=step, place=HIDDEN).view_as(scale)
        hidden = torch.relu(self.graph @ (features @ first) + (biases[0] if biases else 0)) * scale
        return self.graph @ (hidden @ second) + (biases[1] if biases else 0)

    def loss(self, nodes: Any, step: int | None) -> Tensor:
        return torch.nn.functional.cross_entropy(self.logits(step)[nodes], torch.from_numpy(LABELS[nodes]))

    def train(self) -> list[Tensor]:
        first, *others = self.parameters
        groups: list[dict[str, Any]] = [
            {"params": [first], "weight_decay": self.config.weight_decay},
            {"params": others, "weight_decay": 0},
        ]
        optimiser = torch.optim.Adam(groups, lr=self.config.learning_rate)
        best, best_loss, best_epoch = [], np.inf, 0
        for epoch in range(self.config.n_epochs):
            optimiser.zero_grad()
            self.loss(TRAIN[self.model], epoch).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            loss = self.loss(WATCHED[self.model], None).item()
            if loss < best_loss:
                best, best_loss, best_epoch = [p.detach().clone() for p in self.parameters], loss, epoch
            elif self.config.patience and epoch - best_epoch >= self.config.patience:
                break
        return [p.detach() for p in self.parameters] if not self.config.patience else best


@pytest.mark.parametrize("config", [SHORT, replace(SHORT, bias=True)], ids=["plain", "bias"])
def test_a_network_is_what_plain_torch_trains(config: TrainingConfig) -> None:
    """Among them that weight decay is on the first layer alone."""
    networks = trained(config, range(4))
    for model in range(4):
        torch.testing.assert_close(weights(networks, model), Plain(config, model).train(), rtol=0, atol=1e-5)


@pytest.mark.parametrize("patience", [1, 2, 3, 5])
def test_each_model_stops_on_its_own(patience: int) -> None:
    config = replace(SHORT, patience=patience, n_epochs=60, learning_rate=0.1)
    networks = trained(config, range(4), stop_early=True)
    for model in range(4):
        torch.testing.assert_close(weights(networks, model), Plain(config, model).train(), rtol=0, atol=1e-4)
        alone = trained(config, [model], stop_early=True)
        torch.testing.assert_close(weights(networks, model), weights(alone, 0), rtol=0, atol=1e-6)
    whole = trained(replace(config, patience=0), range(4))
    assert not any(torch.allclose(weights(networks, m)[0], weights(whole, m)[0]) for m in range(4))


@pytest.mark.parametrize(
    "config",
    [SHORT, replace(APPNP, n_epochs=10, n_steps=3, n_hidden=6), replace(MLP, n_epochs=10)],
    ids=["gcn", "appnp", "mlp"],
)
def test_a_model_of_many_is_the_model_alone(config: TrainingConfig) -> None:
    assert len({matrix.nnz for matrix in GRAPHS}) > 1
    networks = trained(config, range(4))
    for model in range(4):
        alone = trained(config, [model])
        torch.testing.assert_close(weights(networks, model), weights(alone, 0), rtol=0, atol=1e-6)


def test_only_given_weights_change() -> None:
    mine, unused, other = (torch.ones(3, requires_grad=True) for _ in range(3))
    descent = AdamStepper([mine, unused], 0.1)
    for _ in range(3):
        descent.step(lambda: (mine * other).sum())
    assert (mine < 1).all()
    assert torch.equal(other, torch.ones(3))
    assert other.grad is None
    assert torch.equal(unused, torch.ones(3))


@pytest.mark.parametrize("shape", [(1, 7), (5, 3), (16, 2)])
def test_models_have_the_same_bits_alone_and_beside_others(shape: tuple[int, ...]) -> None:
    """Before, Adam rounded the last entries of a tensor differently, whichever model they were of."""
    source = torch.Generator().manual_seed(0)
    start, pulls = (torch.randn(5, *shape, generator=source) for _ in range(2))

    def train(models: slice) -> Tensor:
        weight, unused = (start[models].clone().requires_grad_() for _ in range(2))
        groups = [{"params": [weight, unused], "weight_decay": 0.1}]
        stepper = AdamStepper(groups, 0.05, models_first=True)
        for _ in range(50):
            stepper.step(lambda: ((weight - pulls[models]) ** 4).sum())
        assert torch.equal(unused, start[models])
        return weight.detach()

    together = train(slice(None))
    assert (together - start).abs().mean() > 0.1
    for model in range(5):
        assert torch.equal(train(slice(model, model + 1))[0], together[model])


@pytest.fixture
def two_threads() -> Iterator[None]:
    n_threads = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(n_threads)


@pytest.mark.usefixtures("two_threads")
def test_only_large_networks_share_operations_among_threads() -> None:
    for n_entries, n_threads in ((LARGE - 1, 1), (LARGE, 2)):
        with choose_threads(n_entries, CPU):
            assert torch.get_num_threads() == n_threads
    with choose_threads(0, torch.device("cuda")):
        assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_parts_run_at_the_same_time_with_one_thread_each() -> None:
    started = [Event(), Event()]

    def wait_for_the_other(part: int) -> tuple[int, int]:
        started[part].set()
        assert started[1 - part].wait(timeout=60)
        return part, torch.get_num_threads()

    assert map_on_threads(wait_for_the_other, [0, 1]) == [(0, 1), (1, 1)]
    assert torch.get_num_threads() == 2


def test_an_error_in_one_part_stops_the_others() -> None:
    stop = Event()

    def fail_or_wait(part: int) -> bool:
        if part == 0:
            raise ValueError("part 0")
        return stop.wait(timeout=60)

    with pytest.raises(ValueError, match="part 0"):
        map_on_threads(fail_or_wait, [0, 1], on_error=stop.set)


@pytest.mark.usefixtures("two_threads")
def test_blocks_of_two_threads_that_overlap_leave_no_trace() -> None:
    """Without the count of open blocks, the second thread left one thread for all threads to come."""
    entered, leave = Event(), Event()

    def stay_inside() -> None:
        with one_thread_per_operation():
            entered.set()
            leave.wait(timeout=60)

    other = Thread(target=stay_inside)
    with one_thread_per_operation():
        other.start()
        assert entered.wait(timeout=60)
    assert torch.get_num_threads() == 2
    leave.set()
    other.join()
    later: list[int] = []
    new = Thread(target=lambda: later.append(torch.get_num_threads()))
    new.start()
    new.join()
    assert later == [2]


@pytest.mark.parametrize(
    ("name", "count", "message"),
    [
        ("mps", 1, "device must be 'cpu' or 'cuda'"),
        (None, 1, "device must be 'cpu' or 'cuda'"),
        ("cuda", 0, "device 'cuda' is not available: this machine has no CUDA devices. Use 'cpu'."),
        ("cuda:2", 2, "device 'cuda:2' is not available: this machine has 2 CUDA devices"),
    ],
)
def test_wrong_devices(monkeypatch: pytest.MonkeyPatch, name: Any, count: int, message: str) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    with pytest.raises(InputError, match=message):
        check_device(name)


FORK = """
import os, signal, warnings
import numpy as np
import torch
from nodecopy import Graph
from nodecopy.classify import GCN

warnings.simplefilter("ignore")
torch.set_num_threads(2)
draws = np.random.default_rng(0)
source, target = draws.integers(4000, size=(2, 12000))  # large enough for torch to use several threads
graph = Graph.from_edges(
    source, target, node_ids=np.arange(4000), labels=np.arange(4000) % 3, features=draws.random((4000, 300))
)
fit = lambda: GCN(n_epochs=2).fit(graph, range(30), rng=0).predict_proba()
before = fit()
child = os.fork()
if not child:
    signal.alarm(60)
    os._exit(not np.allclose(fit(), before, atol=1e-5))
print(os.waitpid(child, 0)[1])
"""


def test_networks_are_trained_after_a_fork() -> None:
    """The threads of torch do not exist in the child; it waited for them for ever."""
    child = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True)
    assert (child.stdout, child.stderr) == ("0\n", "")
