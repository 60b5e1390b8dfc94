"""Where a result comes from: commit, versions, machine, time."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import nodecopy

PACKAGES = ("nodecopy", "numpy", "scipy", "torch")


def provenance(device: str) -> dict[str, Any]:
    """What is kept beside every result; plain values, ready for JSON."""
    return {
        "commit": commit(),
        "versions": {"python": platform.python_version()} | _versions(),
        "machine": machine(device),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


@lru_cache(maxsize=1)
def commit() -> str:
    """The commit of the checkout that the package runs from, as ``git describe`` tells it.

    The environment variable ``NODECOPY_COMMIT`` says it for copies that travel without their history;
    an installed package has its version.
    """
    if told := os.environ.get("NODECOPY_COMMIT"):
        return told
    here = Path(nodecopy.__file__).parent
    # A package installed below some other project's checkout must not be given that one's commit.
    if _git(here, "ls-files", "--error-unmatch", "__init__.py"):
        return _git(here, "describe", "--always", "--dirty", "--tags") or f"version {nodecopy.__version__}"
    return f"version {nodecopy.__version__}"


@lru_cache
def machine(device: str) -> dict[str, Any]:
    """The processor, the number of cores, and the name of the GPU where one was used."""
    found = {"processor": _processor(), "cores": os.cpu_count(), "device": device}
    if device.startswith("cuda"):
        import torch

        found["device"] = f"{device}: {torch.cuda.get_device_name(device)}"
    return found


@lru_cache(maxsize=1)
def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "absent"
    return found


def _processor() -> str:
    try:  # Linux: platform.processor() knows only the architecture
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _git(folder: Path, *arguments: str) -> str:
    """What git prints; empty where it fails or is not there."""
    command = ["git", "-C", str(folder), *arguments]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ran.stdout.strip() if ran.returncode == 0 else ""
