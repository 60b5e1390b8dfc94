"""The layout of the package: tests mirror the source, module names are unique, layers name nothing above."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "nodecopy"
MODULES = sorted(
    path.relative_to(SOURCE)
    for path in SOURCE.rglob("*.py")
    if path.name != "__init__.py" and "__pycache__" not in path.parts
)
LONGEST = 420
"""Lines of a file; about 400 are meant."""
TESTED_ELSEWHERE = {
    "__main__.py": "cli/test_cli.py",
    "errors.py": "test_imports.py",
    "inference/spectral_kernels.py": "inference/test_spectra.py",
    "metrics/counting_kernels.py": "metrics/test_counting.py",
    "report/layout_kernels.py": "report/test_layout.py",
}
"""Modules that the tests of another module cover: compiled twins of plain code, and names without code."""
OF_SEVERAL_MODULES = {"io/test_files_of_other_programs.py"}
"""Tests of what several modules do together."""


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_every_module_has_a_test_module_at_the_same_path(module: Path) -> None:
    place = TESTED_ELSEWHERE.get(module.as_posix(), (module.parent / f"test_{module.name}").as_posix())
    assert (ROOT / "tests" / place).is_file()


def test_every_test_module_has_a_source_module() -> None:
    """A module ``test_<package>.py`` tests a package as a whole."""
    beside = {"contracts", "oracles", "statistical", "benchmarks", "browser", "cluster"}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        place = path.relative_to(ROOT / "tests")
        if len(place.parts) > 1 and place.parts[0] not in beside and str(place) not in OF_SEVERAL_MODULES:
            name = place.stem.removeprefix("test_")
            is_package = name == place.parts[-2] or (SOURCE / place.parent / name).is_dir()
            assert is_package or place.parent / f"{name}.py" in MODULES, f"{place} tests no module"


def test_a_module_name_occurs_once() -> None:
    counts = Counter(path.name for path in MODULES if path.name != "base.py")
    assert [name for name, count in counts.items() if count > 1] == []


def test_files_are_short() -> None:
    lengths = {str(path): len((SOURCE / path).read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {name: length for name, length in lengths.items() if length > LONGEST} == {}


def layers() -> list[list[str]]:
    """The layers of the import contract, the highest first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (contract,) = (one for one in contracts if one["type"] == "layers")
    return [re.findall(r"\w+", layer) for layer in contract["layers"]]


def test_nothing_below_names_something_above() -> None:
    """Strings, comments and docstrings included; the names that users import are no exception."""
    above: list[str] = []
    for layer in layers():
        pattern = re.compile(rf"nodecopy\.({'|'.join(above)})\b") if above else None
        for name in layer:
            home = SOURCE / name
            for path in sorted(home.rglob("*.py")) if home.is_dir() else [SOURCE / f"{name}.py"]:
                if pattern is not None and path.exists():
                    match = pattern.search(path.read_text(encoding="utf-8"))
                    assert match is None, f"{path.relative_to(SOURCE)} names {match and match[0]}"
        above += layer
