"""The first inputs of the fuzzer; ``make fuzz`` reads more."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nodecopy._core.estimator import Saveable
from nodecopy.datasets import fetching
from tests.contracts.public_calls import NAMES, import_object
from tests.fuzz_corpus import build_corpus
from tests.fuzzing import check


@pytest.mark.parametrize(("first", "last", "checks"), [("0", "500", "0"), ("500", "1000", "1")])
def test_damaged_files_give_a_result_or_an_error_of_the_package(
    first: str, last: str, checks: str, pytestconfig: pytest.Config
) -> None:
    """Half of them are read with compiled code whose bounds are checked, kept in a cache of its own."""
    folder = str(pytestconfig.cache.mkdir(f"numba-{checks}")) if pytestconfig.cache else ""
    command = [sys.executable, "-m", "tests.fuzzing", first, last]
    env = os.environ | {"NUMBA_BOUNDSCHECK": checks, "NUMBA_CACHE_DIR": folder}
    child = subprocess.run(command, capture_output=True, text=True, env=env)
    assert (child.returncode, child.stdout) == (0, f"inputs {first} to {last}: nothing wrong\n"), child.stderr


@pytest.mark.filterwarnings("ignore")
def test_files_that_are_not_damaged_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODECOPY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(fetching, "download", fetching.download)  # which the corpus replaces
    for path, read in build_corpus(tmp_path):
        check(read(path))


@pytest.mark.filterwarnings("ignore")
def test_the_corpus_holds_a_file_of_every_class_that_is_saved(tmp_path: Path) -> None:
    classes = [value for value in map(import_object, NAMES) if inspect.isclass(value)]
    saved = {cls.__name__ for cls in classes if issubclass(cls, Saveable) and not inspect.isabstract(cls)}
    bases = {"Classifier", "NetworkClassifier", "Defence"}
    cannot = {"ModuleClassifier"}  # whose file would need the code of the module
    files = {path.stem for path, _ in build_corpus(tmp_path)}
    assert saved - bases - cannot <= files
