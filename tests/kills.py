"""Kills at every call that changes the file system: ``python -m tests.kills [COMMAND ...]``.

Each command that writes is run once to count these calls, and then once for each of them in a process that
is killed just before it, or in the middle of a write. Nothing that was there before may be lost, no output
may be partial, and the next start of the same command must leave what an unbroken run leaves and nothing
else. The calls are intercepted by a preloaded library, which needs Linux and a C compiler.
"""

from __future__ import annotations

import ctypes
import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow
from pyarrow import parquet
from rich.console import Console
from rich.progress import track

from nodecopy import Interactions, cli, write_graph, write_interactions
from nodecopy.datasets import fetching
from nodecopy.datasets.fetching import DataFile, Source
from tests.cli.labelled_files import write_files

Tree: TypeAlias = dict[str, bytes]
SHIM = Path(__file__).with_name("kill_shim.c")
MANIFEST = "samples/samples.json"  # lists the samples, which are written one by one
SECONDS = 300  # after which a command is ended
KINDS = ("lost", "partial", "left_behind")
NUMBERS = re.compile(rb"[-+0-9a-fT:.]+")
"""Times and what depends on them: two runs of an experiment differ in these alone."""
IMPORTED = "classify attacks defend recommend inference report.page edge_tables experiments.config"
TABLES = ["--features", "features.csv", "--labels", "labels.csv"]
REPRODUCE = ["reproduce", "kills.toml", "--store", "store", "--out", "tables"]
EXPERIMENT = """
title = "Kills"
task = "attack"
[protocol]
datasets = ["karate"]
labels = [3]
trials = 2
validation = 4
test = 16
n_targets = 2
[attacks.dice]
title = "DICE"
class = "nodecopy.attacks.DICE"
budget = 1.0
[methods.propagation]
title = "Label propagation"
class = "nodecopy.classify.LabelPropagation"
"""


@dataclass(frozen=True)
class Command:
    """What is run: the arguments of ``nodecopy``, or a function.

    ``earlier`` are the arguments of a run before. ``varies``: numbers differ between runs. ``unordered``:
    rows of Parquet files have no order.
    """

    arguments: list[str] | Callable[[], object]
    earlier: list[str] | None = None
    varies: bool = False
    unordered: bool = False


@dataclass
class Outcome:
    """How many kills there were, and what went wrong at which of them."""

    n_calls: int = 0
    lost: list[str] = field(default_factory=list)
    partial: list[str] = field(default_factory=list)
    left_behind: list[str] = field(default_factory=list)


def sample(*options: str, seed: int = 0, suffix: str = "csv") -> list[str]:
    return ["sample", f"graph.{suffix}", "-n", "2", "--seed", str(seed), "--out", "samples", *options]


def fetch_file() -> None:
    """Fetch a file into a cache, from a source that answers at once."""
    content = b"content of a dataset" * 1000
    fetching.download = lambda location: content
    os.environ["NODECOPY_CACHE"] = "cache"
    os.environ.pop("NODECOPY_DATA", None)
    fetching.obtain([DataFile("some/file.txt", hashlib.sha256(content).hexdigest(), (Source("https://x"),))])


def small_demo() -> None:
    """Run the demo with fewer samples and trials."""
    demo: Any = import_module("nodecopy.cli.demo")
    demo.N_SAMPLES, demo.N_INTERACTION_SPLITS, demo.N_SPLITS, demo.N_GRAPHS, demo.N_ROUNDS = 4, 1, 1, 1, 1
    sys.argv = ["nodecopy", "demo", "--out", "demo"]
    cli.main()


def with_earlier(*arguments: str, **options: Any) -> Command:
    """Return a command whose outputs of another seed are there before."""
    return Command([*arguments, "--seed", "1"], [*arguments, "--seed", "2"], **options)


COMMANDS = {
    "sample": Command(sample()),
    "sample-overwrite": Command(sample("--overwrite", "--format", "npz"), sample("-n", "4", seed=1)),
    "sample-graphml": Command(sample("--format", "graphml")),
    "sample-parquet": Command(sample("--format", "parquet")),
    "sample-duckdb": Command(
        sample("--engine", "duckdb", "--donors", "jaccard", suffix="parquet"), unordered=True
    ),
    "classify": with_earlier(
        "classify", "graph.csv", *TABLES, "--method", "gcn", "--out", "out.csv", "--save", "model.npz"
    ),
    "attack": with_earlier(
        "attack", "graph.csv", *TABLES, "--nodes", "p03,p04", "--out", "out.graphml", "--flips", "flips.npz"
    ),
    "defend": with_earlier("defend", "graph.csv", *TABLES, "--nodes", "p03,p04", "--out", "out.parquet"),
    "recommend": Command(
        ["recommend", "log.csv", "--all-users", "--out", "out.csv", "--save", "model.npz"],
        ["recommend", "log.csv", "--model", "ease", "--all-users", "--out", "out.csv", "--save", "model.npz"],
    ),
    "evaluate": with_earlier("evaluate", "log.csv", "--model", "popularity", "--per-user", "out.csv"),
    "infer": with_earlier("infer", "graph.csv", "-n", "5", "--picture", "out.svg", varies=True),
    "report": with_earlier("report", "graph.csv", "--samples", "2", "--out", "report.html"),
    "reproduce": Command(REPRODUCE, varies=True),
    "reproduce-fresh": Command([*REPRODUCE, "--fresh"], REPRODUCE, varies=True),
    "demo": Command(small_demo, varies=True),
    "datasets": Command(fetch_file),
}


def write_inputs(folder: Path) -> None:
    """Write a graph, its nodes, a log and an experiment."""
    graph = write_files(folder)
    write_graph(graph, folder / "graph.parquet")
    write_interactions(Interactions.from_table(*graph.edges()[:2]), folder / "log.csv")
    (folder / "kills.toml").write_text(EXPERIMENT)


def run(arguments: list[str] | Callable[[], object], folder: Path, kill_at: int = 0) -> tuple[int, int]:
    """Run a command in a child process; return its exit status and the number of its calls."""
    reading, writing = os.pipe()
    process = os.fork()
    if process:
        os.close(writing)
        with os.fdopen(reading, "rb") as file:
            counted = file.read()
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), int(counted or 0)
    code = 1
    try:
        signal.alarm(SECONDS)
        os.chdir(folder)
        log = os.open(folder.parent / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        shim = ctypes.CDLL(None)
        shim.arm(os.fsencode(f"{folder}/"), ctypes.c_long(kill_at))
        try:
            if callable(arguments):
                arguments()
            else:
                sys.argv = ["nodecopy", *arguments]
                cli.main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        os.write(writing, str(shim.count()).encode())
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def read_tree(folder: Path, command: Command) -> dict[str, bytes]:
    """Return the files below a folder with their contents, without what differs between unbroken runs."""
    contents = {
        str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }
    contents |= {str(path.relative_to(folder)): b"" for path in folder.rglob(".nodecopy-*")}
    if command.unordered:
        contents |= {
            name: sort_rows(content) for name, content in contents.items() if name.endswith(".parquet")
        }
    if not command.varies:
        return contents
    return {
        name: b"a figure" * content.endswith(b"IEND\xaeB`\x82")
        or NUMBERS.sub(b"0", content if len(content) < 10**5 else content[-100:])
        for name, content in contents.items()
    }


def sort_rows(content: bytes) -> bytes:
    """Return the columns and the sorted rows of a Parquet file, or the file as it is if it is damaged."""
    try:
        table = parquet.read_table(io.BytesIO(content))
    except pyarrow.ArrowInvalid:
        return content
    rows = sorted(tuple(row.values()) for row in table.to_pylist())
    return f"{table.schema.to_string()}\n{rows}".encode()


def is_temporary(name: str) -> bool:
    return any(part.startswith(".nodecopy-") for part in Path(name).parts)


def check_command(command: Command, folder: Path, name: str) -> Outcome:
    """Kill a command at each of its calls, in a folder of its own."""
    start, work = folder / "start", folder / "work"
    start.mkdir()
    write_inputs(start)
    if command.earlier is not None and run(command.earlier, start)[0]:
        raise RuntimeError((folder / "log").read_text())
    before = read_tree(start, command)
    shutil.copytree(start, work)
    status, n_calls = run(command.arguments, work)
    if status or not n_calls:
        raise RuntimeError((folder / "log").read_text())
    after, outcome = read_tree(work, command), Outcome(n_calls)
    bar = Console(stderr=True)
    for number in track(
        range(1, n_calls + 1), name, console=bar, transient=True, disable=not bar.is_terminal
    ):
        shutil.rmtree(work)
        shutil.copytree(start, work)
        if (status := run(command.arguments, work, number)[0]) != -signal.SIGKILL:
            raise RuntimeError(f"call {number} was not made: {status}\n{(folder / 'log').read_text()}")
        state = {
            name: content for name, content in read_tree(work, command).items() if not is_temporary(name)
        }
        _compare(outcome, command, number, before, state, after)
        run(command.arguments, work)
        final = read_tree(work, command)
        if final != after:
            names = sorted(name for name in {*final, *after} if final.get(name) != after.get(name))
            outcome.left_behind.append(f"call {number}: {', '.join(names)}")
    return outcome


def _compare(outcome: Outcome, command: Command, number: int, before: Tree, state: Tree, after: Tree) -> None:
    """Note what a kill lost, and which outputs are neither the old nor the new ones."""
    is_removed = "--fresh" in command.arguments if isinstance(command.arguments, list) else False
    for name in before.keys() & after.keys() - state.keys():
        if not (is_removed and name.startswith("store")):  # which the user asked for
            outcome.lost.append(f"call {number}: {name}")
    for name, content in state.items():
        if content not in (before.get(name), after.get(name)) and name != MANIFEST:
            outcome.partial.append(f"call {number}: {name}")
    samples = {name for name in state if name.startswith("samples/")}
    old = {name for name in before if name.startswith("samples/")}
    listed = json.loads(state[MANIFEST])["files"] if MANIFEST in state else []
    if samples != old and samples - {f"samples/{name}" for name in listed} != {MANIFEST}:
        outcome.partial.append(f"call {number}: {', '.join(samples)} with a manifest of {listed}")


def preload() -> None:
    """Start this program again with the library that kills it."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if sys.platform != "linux" or compiler is None:
        print("skipped: kills at system calls need Linux and a C compiler (cc)")
        sys.exit(0)
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "kill_shim.so"
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, SHIM, "-ldl"], check=True)
        environment = {**os.environ, "LD_PRELOAD": str(library), "MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"}
        program = [sys.executable, "-m", "tests.kills", *sys.argv[1:]]
        sys.exit(subprocess.run(program, env=environment).returncode)


def main() -> None:
    """Kill the commands that are named, or all of them, and print what went wrong."""
    if "kill_shim" not in os.environ.get("LD_PRELOAD", ""):
        preload()
    for name in IMPORTED.split():  # so that a child process starts at once
        import_module(f"nodecopy.{name}")
    outcomes = {}
    for name in sys.argv[1:] or COMMANDS:
        with tempfile.TemporaryDirectory() as folder:
            outcome = check_command(COMMANDS[name], Path(folder).resolve(), name)
        outcomes[name] = outcome
        print(f"{name}: {outcome.n_calls} kills")
        for kind in KINDS:
            print("".join(f"  {kind}, {line}\n" for line in getattr(outcome, kind)), end="", flush=True)
    n_kills = sum(outcome.n_calls for outcome in outcomes.values())
    counts = {kind: sum(len(getattr(outcome, kind)) for outcome in outcomes.values()) for kind in KINDS}
    found = ", ".join(f"{number} {kind.replace('_', ' ')}" for kind, number in counts.items())
    print(f"{len(outcomes)} commands, {n_kills} kills: {found}")
    sys.exit(any(counts.values()))


if __name__ == "__main__":
    main()
