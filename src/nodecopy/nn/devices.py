"""The device of tensors: an explicit choice without a silent fallback."""

from __future__ import annotations

import torch

from nodecopy.errors import InputError


def check_device(name: str) -> torch.device:
    """Return the device of that name, or raise an error if it is not available."""
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise InputError(f"device must be 'cpu' or 'cuda' (perhaps with a number); got {name!r}.")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise InputError(
            f"device {name!r} is not available: this machine has {torch.cuda.device_count() or 'no'} CUDA "
            "devices. Use 'cpu'."
        )
    return device
