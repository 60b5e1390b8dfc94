"""Wrong types and crafted arrays, to every public callable: a result or an error of the package."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from nodecopy import Graph
from nodecopy.errors import InputError
from tests.contracts.public_calls import NAMES, NOT_CALLED, Call, build_calls
from tests.contracts.wrong_arguments import check_call

N_GROUPS = 4  # processes, each of which imports everything once


@pytest.mark.parametrize("group", range(N_GROUPS))
def test_a_wrong_argument_gives_a_result_or_an_error_of_the_package(group: int) -> None:
    command = [sys.executable, "-m", "tests.contracts.wrong_arguments", *NAMES[group::N_GROUPS]]
    folders = os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])
    child = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": folders, "MPLBACKEND": "agg"}
    )
    last = child.stderr[-1000:]
    assert (child.returncode, child.stdout) == (0, ""), f"status {child.returncode} at {last}"


def test_every_public_name_is_called_or_named_as_an_exception() -> None:
    shorts = {name.rpartition(".")[2] for name in NAMES}
    assert set(NOT_CALLED) <= shorts


@pytest.mark.parametrize(
    ("error", "is_right"),
    [(None, True), (InputError("no"), True), (TypeError("no"), False), (KeyError(1), False)],
)
def test_errors_of_others_are_wrong(error: Exception | None, is_right: bool) -> None:
    def function(n: int) -> None:
        if error is not None:
            raise error

    wrong = check_call(Call("f", function, {}, {"n": "int"}, function), "n", 3, "3")
    assert (wrong is None) == is_right


def test_calls_succeed_with_valid_arguments(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(str(tmp_path))
    call = next(iter(build_calls(["nodecopy.Graph"])))
    assert isinstance(call.function(**call.arguments), Graph)
