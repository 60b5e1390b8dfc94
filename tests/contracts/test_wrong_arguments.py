"""Wrong types and crafted arrays, to every public callable: a result or an error of the package."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from nodecopy import Balanced, Graph, Interactions, Jaccard, NodeCopying
from nodecopy.errors import InputError
from nodecopy.experiments import config as toml
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


@pytest.mark.parametrize(
    "labels", [np.array([2**63, 0], np.uint64), [2.0**63, 0.0], [1e300, 0.0], [2**70, 0]]
)
def test_labels_that_do_not_fit_are_errors(labels: Any) -> None:
    with pytest.raises(InputError, match="labels must"):
        Graph(np.eye(2), labels=labels)


def test_big_endian_arrays_are_read() -> None:
    native, other = np.array([[0, 1.5], [1.5, 0]]), np.array([[0, 1.5], [1.5, 0]], ">f8")
    assert Graph(other, other, [0, 1]) == Graph(native, native, [0, 1])
    assert Graph.from_edges(np.array([0, 1], ">i4"), np.array([1, 2], ">u2")).n_edges == 2


def test_limits_of_settings() -> None:
    graph = Graph.from_edges([0, 1], [1, 2])
    many, every = (NodeCopying(Jaccard(max_donors=n)).fit(graph) for n in (2**63, None))
    assert many.sample(rng=0) == every.sample(rng=0)
    with pytest.raises(InputError, match="donors of Balanced must be a donor rule"):
        NodeCopying(Balanced(None)).fit(graph)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="rating of at_least must be a finite number; got nan"):
        Interactions([[1]]).at_least(rating=np.nan)


TOML = files("nodecopy.experiments").joinpath("configs/table2.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("number", ["1e400", "-1e400", "inf", "nan"])
@pytest.mark.parametrize("setting", ["trials = ", "n_epochs = "])
def test_numbers_of_toml_files_are_finite(setting: str, number: str) -> None:
    assert toml.parse(TOML, "valid").name == "valid"
    text = re.sub(rf"{setting}\d+", setting + number, TOML, count=1)
    with pytest.raises(InputError, match=rf"number {number} of x.toml must be a finite number; got -?\w+\."):
        toml.parse(text, "x")


@pytest.mark.parametrize(
    ("number", "message"), [("9" * 400, "trials of .* between 1 and"), ("9" * 5000, "must be valid TOML")]
)
def test_large_integers_of_toml_files_are_errors(number: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        toml.parse(re.sub(r"trials = \d+", f"trials = {number}", TOML, count=1), "x")
