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


def collect_provenance(device: str) -> dict[str, Any]:
    """Return what is stored with every result; plain values, ready for JSON."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {
        "commit": find_commit(),
        "versions": list_versions(),
        "machine": describe_machine(device),
        "finished": now,
    }


@lru_cache(maxsize=1)
def find_commit() -> str:
    """Return the commit of the checkout that the package runs from, as ``git describe`` prints it.

    The environment variable ``NODECOPY_COMMIT`` replaces it, for copies without their history. For an
    installed package it is the version.
    """
    if given := os.environ.get("NODECOPY_COMMIT"):
        return given
    here = Path(nodecopy.__file__).parent
    # A package that is installed inside another project's checkout must not get that project's commit.
    if _git(here, "ls-files", "--error-unmatch", "__init__.py"):
        return _git(here, "describe", "--always", "--dirty", "--tags") or f"version {nodecopy.__version__}"
    return f"version {nodecopy.__version__}"


@lru_cache
def describe_machine(device: str) -> dict[str, Any]:
    """Return the processor, the number of cores, and the name of the GPU if one was used."""
    try:  # Linux: platform.processor() knows only the architecture
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        processor = platform.processor() or platform.machine()
    if device.startswith("cuda"):
        import torch

        device = f"{device}: {torch.cuda.get_device_name(device)}"
    return {"processor": processor, "cores": os.cpu_count(), "device": device}


@lru_cache(maxsize=1)
def list_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that numbers depend on."""
    installed = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            installed[package] = "absent"
    return installed


def _git(folder: Path, *arguments: str) -> str:
    """Return what git prints; empty if it fails or is not installed."""
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
