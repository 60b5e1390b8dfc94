from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from nodecopy.errors import InputError
from nodecopy.nn.training import check_device


@pytest.mark.parametrize("name", ["mps", "abacus", "cpu:x", None])
def test_only_cpu_and_cuda_are_devices(name: str) -> None:
    with pytest.raises(InputError, match="device must be 'cpu' or 'cuda'"):
        check_device(name)


@pytest.mark.parametrize(
    ("name", "count", "number"), [("cuda", 0, "no"), ("cuda:0", 0, "no"), ("cuda:2", 2, "2")]
)
def test_a_missing_gpu_is_an_error(
    name: str, count: int, number: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    message = f"device '{name}' is not available: this machine has {number} CUDA devices. Use 'cpu'."
    with pytest.raises(InputError, match=message):
        check_device(name)


def test_available_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert check_device("cpu") == torch.device("cpu")
    assert check_device("cuda:1") == torch.device("cuda", 1)


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


def test_cuda_after_a_fork_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "_is_in_bad_fork", lambda: True)
    with pytest.raises(InputError, match="device 'cuda' cannot be used in a process that was forked"):
        check_device("cuda")
