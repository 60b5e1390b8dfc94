"""The group of commands: ``nodecopy.cli`` itself."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import nodecopy
from docs.reference_pages import list_commands
from nodecopy import Graph, cli, write_graph
from nodecopy._core.messages import LOGGER, log_decision, warn_about_data
from nodecopy.cli import sample, stats
from nodecopy.cli.output import (
    describe_error,
    print_error,
    print_json,
    print_note,
    print_table,
    print_warning,
    show_notices,
)
from nodecopy.errors import InputError
from nodecopy.io.tables import write_table
from tests.cli.conftest import Ran, Run

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


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_a_summary_is_the_first_line_of_the_help_of_its_command(name: str) -> None:
    assert cli.import_command(name).help.splitlines()[0] == cli.COMMANDS[name]


@pytest.mark.parametrize(("name", "hint"), [("sampl", " Did you mean sample?"), ("nonsense", "")])
def test_an_unknown_command_is_one_line_with_close_matches(run: Run, name: str, hint: str) -> None:
    ran = run(name)
    assert (ran.code, ran.out) == (2, "")
    names = ", ".join(sorted(cli.COMMANDS))
    assert ran.err == f"error: a command must be one of {names}; got '{name}'.{hint}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("stats karate --direkted", r"No such option: --direkted\. Did you mean --directed\?"),
        ("sample karate --donors jacard", r"--donors must be one of .*'jacard'\. Did you mean jaccard\?"),
        ("sample karate --seed abc", r".*--seed.* integer\."),
        ("sample", r"Missing argument .*\."),
    ],
)
def test_a_usage_error_is_one_line_with_the_nearest_name(run: Run, arguments: str, message: str) -> None:
    ran = run(*arguments.split())
    assert (ran.code, ran.out) == (2, "")
    assert re.fullmatch(rf"error: {message}\n", ran.err), ran.err


def test_an_error_of_the_file_system_has_no_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_full_disk(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sample, "write_graph", raise_full_disk)
    ran = run("sample", "karate", "--out", "out")
    assert (ran.code, ran.err.splitlines()[-1]) == (1, "error: [Errno 28] No space left on device")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("error", [RuntimeError("release unlocked lock"), InputError("Query interrupted")])
def test_a_signal_has_one_exit_code_whatever_becomes_of_its_exception(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str, error: Exception
) -> None:
    """Errors of DuckDB had exit code 2."""

    def run_app(standalone_mode: bool) -> None:
        try:
            os.kill(os.getpid(), getattr(signal, name))
            time.sleep(60)
        except SystemExit:
            raise error from None

    monkeypatch.setattr(cli, "app", run_app)
    message = "error: interrupted.\n" if name == "SIGINT" else ""
    assert run() == Ran(128 + getattr(signal, name), "", message)


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


def test_ids_outside_the_encoding_of_the_output_are_escaped(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("user,item\nbob,tea\nann,tea\nann,Ж\n", encoding="utf-8")
    command = [sys.executable, "-m", "nodecopy", "recommend", str(tmp_path / "log.csv"), "--user", "bob"]
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    ran = subprocess.run(command, capture_output=True, encoding="latin-1", env=environment)
    assert "\\u0416" in ran.stdout, ran.stderr


MAX_LINES = 48  # two screens
COMMANDS = list_commands()


@pytest.mark.parametrize("name", ["", "datasets", *COMMANDS])
def test_help_fits_two_screens(run: Run, name: str) -> None:
    lines = run(*name.split(), "--help").out.rstrip().splitlines()
    assert 5 < len(lines) <= MAX_LINES
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_help_names_every_option_and_help_all_explains_it(run: Run, name: str) -> None:
    short, full = (run(*name.split(), flag).out for flag in ("--help", "--help-all"))
    for parameter in COMMANDS[name].params:
        if parameter.param_type_name == "option":
            option = max(parameter.opts, key=len)
            assert option in short, option
            assert parameter.help.split()[-1] in full, option
    assert "More options (--help-all" not in full


def write_example_files() -> None:
    """Write the files that the examples of the help name: two groups of people, and what they rated."""
    rng = np.random.default_rng(0)
    names = np.array(["ann", "bob", *(f"p{number:02d}" for number in range(38))])
    group = np.arange(40) % 2
    first = np.repeat(np.arange(40), 2)
    second = (first + np.tile([2, 4], 40)) % 40
    graph = Graph.from_edges(names[first], names[second])
    for suffix in ("csv", "parquet"):
        write_graph(graph, f"edges.{suffix}")
    features = np.eye(2)[group] + rng.normal(0, 0.3, (40, 2))
    write_table("features.csv", {"id": names, "age": features[:, 0], "income": features[:, 1]})
    labels = np.array(["cat", "dog"])[group]
    write_table("labels.csv", {"id": names, "label": labels})
    write_table("few_labels.csv", {"id": names[:10], "label": labels[:10]})
    users, items = np.meshgrid(np.arange(12), np.arange(20), indexing="ij")
    is_rated = rng.random(users.shape) < np.where(users % 2 == items % 2, 0.8, 0.2)
    columns = {"user": users[is_rated], "item": items[is_rated], "rating": rng.integers(2, 6, is_rated.sum())}
    write_table("ratings.csv", columns | {"time": np.arange(is_rated.sum())})


def has_cora() -> bool:
    from nodecopy import datasets

    return datasets.describe("cora").present


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - {"demo", "doctor"}))
def test_the_examples_run(run: Run, name: str) -> None:
    """In order, in a folder with files of the names that they use; ``stats`` and ``defend`` follow others."""
    if name == "reproduce" and not has_cora():
        pytest.skip("the examples of reproduce need Cora (NODECOPY_DATA)")
    write_example_files()
    if name == "stats":
        run("sample", "edges.csv", "--out", "samples", "--n", "3")
    if name == "defend":
        run("attack", "digits", "--n-targets", "2", "--flips", "flips.npz")
    examples = COMMANDS[name].epilog.splitlines()[1:]
    assert examples
    for example in examples:
        program, *arguments = shlex.split(example)
        ran = run(*arguments)
        assert program == "nodecopy"
        assert ran.code == 0, ran.err


def test_quiet_prints_results_only(run: Run) -> None:
    noisy, quiet = run("sample", "karate"), run("sample", "karate", "-q")
    assert quiet.out == noisy.out != ""
    assert "donor rule same-label" in noisy.err
    assert quiet.err == ""


def test_quiet_keeps_warnings_and_errors(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def warn(*_: object, **__: object) -> dict[str, float]:
        warn_about_data("few edges.")
        return {"n_edges": 1}

    monkeypatch.setattr(stats, "statistics", warn)
    assert run("stats", "karate", "--quiet").err == "warning: few edges.\n"
    assert run("stats", "none.csv", "--quiet").err.startswith("error: ")


def test_tables_align_numbers_to_the_right(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [["a", "1"], ["[bold]b", "-"], ["c" * 90, "1,000"]]
    print_table(["name", "value"], rows)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines] == [["name", "value"], *rows]
    assert {len(line) for line in lines} == {97}
    assert lines[1].startswith("a ")


def test_control_characters_do_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    name = "a\x1b]0;title\x07\x9b2J\r\u202eb\udc80\\\\[red]"
    print_table(["name"], [[f"{name}\n"]])
    for show in (print_error, print_note, print_warning):
        show(f"{name}\nmore")
    out, err = capsys.readouterr()
    shown = r"a\x1b]0;title\x07\x9b2J\r\u202eb\udc80\\[red]"
    assert out.splitlines() == ["name", shown + r"\n"]
    assert err.splitlines() == [f"error: {shown}", "more", shown, "more", f"warning: {shown}", "more"]


def test_json_has_null_in_place_of_undefined_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": [1.5, math.nan], "b": ({"c": math.inf},)})
    assert json.loads(capsys.readouterr().out) == {"a": [1.5, None], "b": [{"c": None}]}


def test_decisions_and_warnings_are_printed_once_and_kept(capsys: pytest.CaptureFixture[str]) -> None:
    with show_notices():
        log_decision("read the first row as a header")
        log_decision("read the first row as a header")
        warn_about_data("few nodes have labels")
        print_json({"a": 1})
    out, err = capsys.readouterr()
    assert err.splitlines() == ["read the first row as a header", "warning: few nodes have labels"]
    expected = ["read the first row as a header", "few nodes have labels"]
    assert json.loads(out) == {"a": 1, "notices": expected}
    assert not LOGGER.handlers


def test_notices_and_errors_name_options(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--header", "--duplicates", "--scale-features"]
    with show_notices(options):
        warn_about_data("edges are repeated.", "duplicates", "workers")
        log_decision("columns are standardised.", "features", "header")
        log_decision("nothing to change.", "workers")
    assert capsys.readouterr().err.splitlines() == [
        "warning: edges are repeated. Use --duplicates to change this.",
        "columns are standardised. Use --scale-features or --header to change this.",
        "nothing to change.",
    ]
    error = InputError("n_steps of VGAE", "must be 3.")
    assert describe_error(error, options) == "n_steps of VGAE must be 3."
