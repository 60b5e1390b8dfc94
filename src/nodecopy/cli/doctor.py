"""``nodecopy doctor``: describe the installation and the machine, and test that they work together."""

from __future__ import annotations

import os
import platform
import re
import time
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

import typer

import nodecopy
from nodecopy import datasets
from nodecopy._core.imports import import_optional, install_command
from nodecopy._core.messages import mute_decisions
from nodecopy.cli import options as opt
from nodecopy.cli.output import print_json, print_note, print_table, show_status
from nodecopy.copying import NodeCopying, SameLabel
from nodecopy.datasets import fetching
from nodecopy.errors import InputError, MissingExtraError

CPU_FEATURES = ("sse4.2", "avx", "avx2", "fma", "avx512f", "neon", "sve")
GROUPS = ("all",)  # extras that are not listed
EXPECTED_EDGES = 54  # of a sample of the karate club with seed 0


def doctor(json_: opt.AsJson = False) -> None:
    """Check the installation: versions, extras, data, processor, GPU and a short self-test.

    The output is what a bug report needs: paste it there. Folders below the home directory start with ~. If a
    part of the self-test fails, the exit code is 1.

    Examples:
        nodecopy doctor
        nodecopy doctor --json
    """
    with show_status("checking the installation"):
        extras, checks = _describe_extras(), _run_checks()
        about = {"system": _describe_system(), "extras": extras, "data": _describe_data(), "checks": checks}
    if json_:
        print_json(about)
    else:
        _print(about)
    if any(check["error"] for check in checks.values()):
        raise typer.Exit(1)


def _describe_system() -> dict[str, str]:
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    names = [name for name in CPU_FEATURES if features.get(name)]
    lines = [line for line in requires("nodecopy") or () if "extra ==" not in line]
    packages = sorted(re.split(r"[^\w-]", line)[0] for line in lines)
    return {
        "nodecopy": f"{nodecopy.__version__} in {_shorten(Path(nodecopy.__file__).parent)}",
        "Python": f"{platform.python_version()} ({platform.python_implementation()})",
        "system": platform.platform(),
        "processor": f"{llvm.get_host_cpu_name()}, {os.cpu_count()} cores; {', '.join(names)}",
        "GPU": _describe_gpu(),
        **{name: version(name) for name in packages},
    }


def _describe_gpu() -> str:
    try:
        torch = import_optional("torch", "a GPU")
    except MissingExtraError:
        return "unknown, since torch is not installed"
    if not torch.cuda.is_available():
        return "none that torch can use"
    count = torch.cuda.device_count()
    return f"{torch.cuda.get_device_name(0)} ({count} device{'s' * (count > 1)}), CUDA {torch.version.cuda}"


def _describe_extras() -> dict[str, dict[str, Any]]:
    extras: dict[str, dict[str, str | None]] = {}
    for line in requires("nodecopy") or ():
        match = re.fullmatch(r"([\w.-]+).*extra == [\"'](\w+)[\"']", line)
        if match is not None and match[2] not in GROUPS:
            try:
                number = version(match[1])
            except PackageNotFoundError:
                number = None
            extras.setdefault(match[2], {})[match[1]] = number
    described = {}
    for name, packages in sorted(extras.items()):
        present = None not in packages.values()
        install = None if present else install_command(name)
        described[name] = {"present": present, "packages": packages, "install": install}
    return described


def _describe_data() -> dict[str, Any]:
    try:
        folder = fetching.data_folder()
        descriptions = [datasets.describe(name) for name in datasets.names()]
    except InputError as error:
        return {"error": str(error)}
    return {
        "NODECOPY_DATA": None if folder is None else _shorten(folder),
        "cache": _shorten(fetching.cache_folder()),
        "present": [dataset.name for dataset in descriptions if dataset.present],
        "missing": [dataset.name for dataset in descriptions if not dataset.present],
    }


def _run_checks() -> dict[str, dict[str, Any]]:
    checks = {"sample": _check_sampling, "classify": _check_classification}
    results: dict[str, dict[str, Any]] = {}
    for name, check in checks.items():
        start, error, result = time.perf_counter(), None, None
        try:
            with mute_decisions():
                result = check()
        except MissingExtraError as missing:
            result = f"left out: {missing}"
        except Exception as problem:
            error = f"{type(problem).__name__}: {problem}"
        seconds = round(time.perf_counter() - start, 2)
        results[name] = {"result": result, "error": error, "seconds": seconds}
    return results


def _check_sampling() -> str:
    n_edges = NodeCopying(SameLabel()).fit(datasets.load("karate")).sample(rng=0).n_edges
    if n_edges != EXPECTED_EDGES:
        raise AssertionError(f"the sample must have {EXPECTED_EDGES} edges; it has {n_edges}")
    return f"a sample of the karate club has {n_edges} edges, as it must"


def _check_classification() -> str:
    import_optional("torch", "classification")
    from nodecopy.classify import LabelPropagation

    accuracy = LabelPropagation().fit(datasets.load("karate"), [0, 33]).score()
    if accuracy < 0.8:
        raise AssertionError(f"the accuracy at the karate club must be at least 0.8; it is {accuracy:.2f}")
    return f"two labels of the karate club give an accuracy of {accuracy:.2f}"


def _print(about: dict[str, Any]) -> None:
    print_table(["part", "value"], about["system"].items())
    print()
    rows = []
    for name, extra in about["extras"].items():
        packages = ", ".join(f"{part} {number or 'missing'}" for part, number in extra["packages"].items())
        rows.append([name, "yes" if extra["present"] else "no", packages, extra["install"] or ""])
    print_table(["extra", "present", "packages", "to install it"], rows)
    print()
    data = about["data"].items()
    rows = [[key, (", ".join(part) if isinstance(part, list) else part) or "none"] for key, part in data]
    print_table(["data", "value"], rows)
    print()
    rows = []
    for name, check in about["checks"].items():
        status, result = ("failed", check["error"]) if check["error"] else ("passed", check["result"])
        rows.append([name, status, f"{check['seconds']:.2f} s", result])
    print_table(["self-test", "status", "time", "result"], rows)
    print_note("Paste the lines above into a bug report.")


def _shorten(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home).as_posix()}" if path.is_relative_to(home) else str(path)
