"""The group of commands: ``nodecopy.cli`` itself."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys

import pytest

import nodecopy
from nodecopy import cli
from nodecopy.cli import sample
from tests.cli.conftest import Run

MODULES_AFTER = """
import json, sys
from nodecopy.cli import main
sys.argv[0] = "nodecopy"
try:
    main()
except SystemExit as stop:
    print("\\n" + json.dumps([stop.code, sorted(sys.modules)]))
"""


def modules_after(*arguments: str, **environment: str) -> tuple[str, set[str]]:
    """What a command prints, and the modules that a new process has imported for it."""
    ran = subprocess.run(
        [sys.executable, "-c", MODULES_AFTER, *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    printed, _, last = ran.stdout.rstrip().rpartition("\n")
    code, modules = json.loads(last)
    assert not code, ran.stderr
    return printed, set(modules)


def command_modules(modules: set[str]) -> set[str]:
    return {name for name in modules if name.removeprefix("nodecopy.cli.") in cli.COMMANDS}


def test_version(run: Run) -> None:
    assert run("--version").out == f"nodecopy {nodecopy.__version__}\n"


@pytest.mark.parametrize("arguments", [("--help",), ("--version",)])
def test_help_and_version_import_no_command_and_no_numpy(arguments: tuple[str, ...]) -> None:
    _, modules = modules_after(*arguments)
    assert not {"numpy", "scipy", "numba"} & modules
    assert command_modules(modules) == set()


def test_completion_of_commands_imports_none_of_them() -> None:
    printed, modules = modules_after(
        _NODECOPY_COMPLETE="complete_bash", COMP_WORDS="nodecopy s", COMP_CWORD="1"
    )
    assert printed.split() == ["sample", "stats"]
    assert not {"numpy", "scipy"} & modules
    assert command_modules(modules) == set()


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_help_of_a_command_is_light(name: str) -> None:
    printed, modules = modules_after(name, "--help")
    assert f"Usage: nodecopy {name} " in printed
    assert not {"torch", "scipy.stats", "numba", "pandas", "matplotlib", "networkx"} & modules
    shared = {f"nodecopy.cli.{part}" for part in ("sample", "classify", "recommend", "report")}
    assert command_modules(modules) - {f"nodecopy.cli.{name}"} <= shared


def test_help_lists_every_command_with_its_summary(run: Run) -> None:
    text = " ".join(run("--help").out.split())
    for name, summary in cli.COMMANDS.items():
        assert f"{name} {summary}" in text


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_a_summary_is_the_first_line_of_the_help_of_its_command(name: str) -> None:
    assert cli.import_command(name).help.splitlines()[0] == cli.COMMANDS[name]


@pytest.mark.parametrize(
    ("name", "hint"),
    [("sampl", " Did you mean sample?"), ("nonsense", ""), ("class", " Did you mean classify?")],
)
def test_an_unknown_command_is_one_line_with_close_matches(run: Run, name: str, hint: str) -> None:
    ran = run(name)
    assert (ran.code, ran.out) == (2, "")
    names = ", ".join(sorted(cli.COMMANDS))
    assert ran.err == f"error: a command must be one of {names}; got '{name}'.{hint}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("stats karate --frobnicate", r"No such option: --frobnicate\."),
        ("stats karate --direkted", r"No such option: --direkted\. Did you mean --directed\?"),
        ("sample karate --donors jacard", r".*--donors.*'jacard' is not one of .*"),
        ("sample karate --seed abc", r".*--seed.* integer\."),
        ("sample karate --keep=half", r".*--keep.* number\."),
        ("sample", r"Missing argument .*\."),
        ("stats --labels", r"Option '--labels' requires an argument\."),
    ],
)
def test_a_usage_error_is_one_line_with_the_nearest_name(run: Run, arguments: str, message: str) -> None:
    ran = run(*arguments.split())
    assert (ran.code, ran.out) == (2, "")
    assert re.fullmatch(rf"error: {message}\n", ran.err), ran.err


def test_a_group_without_a_command_shows_its_help(run: Run) -> None:
    ran = run("datasets")
    assert ran.code == 2
    assert "fetch" in ran.out + ran.err
    assert "error" not in ran.err


def test_an_error_of_the_file_system_is_printed_without_a_traceback(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_full_disk(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sample, "write_graph", raise_full_disk)
    ran = run("sample", "karate", "--out", "out")
    assert (ran.code, ran.err.splitlines()[-1]) == (1, "error: [Errno 28] No space left on device")


@pytest.mark.parametrize(("stop", "code"), [(SystemExit(143), 143), (KeyboardInterrupt(), 130)])
def test_a_signal_while_a_lock_is_released_ends_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, stop: BaseException, code: int
) -> None:
    def run_app(standalone_mode: bool) -> None:
        try:
            raise stop
        finally:
            try:
                raise RuntimeError("release unlocked lock")
            finally:
                raise RuntimeError("release unlocked lock")

    monkeypatch.setattr(cli, "app", run_app)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == code


@pytest.mark.parametrize("stream", [">&-", "> /dev/full"])
@pytest.mark.parametrize("arguments", ["--version", "stats karate"])
def test_output_that_cannot_be_written_is_an_error(stream: str, arguments: str) -> None:
    code = "import sys; from nodecopy.cli import main; sys.argv[0] = 'nodecopy'; main()"
    command = f"exec {shlex.quote(sys.executable)} -c {shlex.quote(code)} {arguments} {stream}"
    child = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert (child.returncode, child.stderr.count("\n")) == (1, 1), child.stderr
    assert child.stderr.startswith("error: ")


def test_the_package_can_be_run_as_a_module() -> None:
    ran = subprocess.run([sys.executable, "-m", "nodecopy", "--version"], capture_output=True, text=True)
    assert ran.stdout == f"nodecopy {nodecopy.__version__}\n"
