"""The device of tensors: an explicit choice without a silent fallback."""

from __future__ import annotations

import os

import torch

from nodecopy.errors import InputError


def _use_one_thread() -> None:
    """Let torch use one thread in a forked process: it would wait for threads that a fork does not copy."""
    torch.set_num_threads(1)


os.register_at_fork(after_in_child=_use_one_thread)


def check_device(name: str) -> torch.device:
    """Return the device of that name, or raise an error if it is not available."""
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError, ValueError, OverflowError):
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise InputError(f"device must be 'cpu' or 'cuda' (perhaps with a number); got {name!r}.")
    if device.type == "cuda" and torch.cuda._is_in_bad_fork():
        raise InputError(
            f"device {name!r} cannot be used in a process that was forked after CUDA was used. Start "
            "processes by multiprocessing.get_context('spawn')."
        )
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise InputError(
            f"device {name!r} is not available: this machine has {torch.cuda.device_count() or 'no'} CUDA "
            "devices. Use 'cpu'."
        )
    return device
