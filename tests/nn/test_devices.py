from __future__ import annotations

import pytest
import torch

from nodecopy.errors import InputError
from nodecopy.nn.devices import check_device


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
