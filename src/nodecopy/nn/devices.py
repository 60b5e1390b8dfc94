"""Where tensors live: an explicit choice, never a silent one."""

from __future__ import annotations

import torch

from nodecopy.errors import InputError


def checked_device(name: str) -> torch.device:
    """The device of that name, or an error where it is not there."""
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        raise InputError(f"device must be 'cpu' or 'cuda' (perhaps with a number); got {name!r}.") from None
    if device.type not in ("cpu", "cuda"):
        raise InputError(f"device must be 'cpu' or 'cuda' (perhaps with a number); got {name!r}.")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise InputError(
            f"device must be there to be used; got {name!r}, "
            f"and this machine has {torch.cuda.device_count() or 'no'} CUDA devices."
        )
    return device
