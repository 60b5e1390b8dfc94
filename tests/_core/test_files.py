"""Output that is there as a whole or not at all, formats by suffix, and errors that name the file."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from nodecopy._core import files as atomic_files
from nodecopy._core.files import (
    TABLES,
    ScratchFolder,
    atomic_write,
    check_folder,
    format_of,
    is_table,
    reading,
)
from nodecopy.errors import InputError


def test_a_file_appears_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "new" / "out.csv"
    with atomic_write(target) as temporary:
        temporary.write_text("done")
        assert temporary.suffix == ".csv"
        assert not target.exists()
    assert target.read_text() == "done"
    assert list(target.parent.iterdir()) == [target]
    plain = tmp_path / "plain"
    plain.touch()
    assert target.stat().st_mode == plain.stat().st_mode


def test_a_failure_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    target.write_text("old")
    with pytest.raises(TypeError), atomic_write(target) as temporary:
        temporary.write_text(None)  # type: ignore[arg-type]
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def sorted_names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def check(target: Path, **options: Any) -> Path:
    return check_folder(target, manifest="made", overwrite=True, **options)


def test_folders_that_may_be_written(tmp_path: Path) -> None:
    target, thesis = tmp_path / "out", tmp_path / "thesis.tex"
    assert check(target) == target
    target.mkdir()
    assert check_folder(target, manifest="made") == target
    (target / "a").touch()
    (target / "made").write_text('{"files": ["a"]}')
    assert check(target) == target
    with pytest.raises(InputError, match="must be empty or new"):
        check_folder(target, manifest="made")
    with pytest.raises(InputError, match="must be a folder"):
        check(target / "made")
    with pytest.raises(InputError, match="/ must be a file or a folder below the root"):
        check(Path("/"))
    (tmp_path / "link.csv").symlink_to(target / "a")
    for source in (target / "a", target, tmp_path / "link.csv"):
        with pytest.raises(InputError, match="must not be a folder that is read"):
            check(target, inputs=[source])
    thesis.write_text("years of work")  # in the place of a listed file
    (target / "a").unlink()
    (target / "a").symlink_to(thesis)
    with pytest.raises(InputError, match=r"it also holds a\. Move that away"):
        check(target)
    (target / "a").unlink()
    (target / "a").mkdir()
    thesis.rename(target / "a" / "thesis.tex")
    with pytest.raises(InputError, match=r"it also holds a/thesis\.tex\. Move that away"):
        check(target)


@pytest.mark.parametrize("content", [None, "[", "{}", '{"files": 3}', '{"files": ["sample.csv"]}'])
def test_somebody_elses_files_are_never_replaced(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / "made").write_text(content)
    for target in (tmp_path, Path()):
        with pytest.raises(InputError, match="what an earlier run wrote"):
            check(target)


@pytest.mark.parametrize("name", ["n" * 251 + ".csv", "n." + "s" * 253, "ü" * 127])
def test_names_may_have_255_bytes(tmp_path: Path, name: str) -> None:
    with atomic_write(tmp_path / name) as temporary:
        temporary.write_text("done")
    assert (tmp_path / name).read_text() == "done"


def test_devices_and_pipes_receive_the_content(tmp_path: Path) -> None:
    with atomic_write("/dev/null") as temporary:
        temporary.write_text("done")
    assert not Path("/dev/null").is_file()
    os.mkfifo(tmp_path / "pipe.csv")
    received: list[str] = []
    reader = Thread(target=lambda: received.append((tmp_path / "pipe.csv").read_text()))
    reader.start()
    with atomic_write(tmp_path / "pipe.csv") as temporary:
        temporary.write_text("done")
    reader.join()
    assert received == ["done"]
    assert sorted_names(tmp_path) == ["pipe.csv"]


KILLED = """
import os, signal, sys
from nodecopy._core.files import ScratchFolder, atomic_write
with ScratchFolder(".") if sys.argv[1] == "scratch" else atomic_write("out.csv"):
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("when", ["file", "scratch"])
def test_a_kill_loses_nothing_and_the_next_write_removes_its_remains(tmp_path: Path, when: str) -> None:
    (tmp_path / "out.csv").write_text("old")
    child = subprocess.run([sys.executable, "-c", KILLED, when], cwd=tmp_path)
    assert child.returncode == -signal.SIGKILL
    (remains,) = (name for name in sorted_names(tmp_path) if name.startswith("."))
    other = tmp_path / f".nodecopy-00000000-{remains.split('-')[2]}-{os.getppid()}-x.csv"
    other.touch()  # of a process that runs
    with pytest.raises(RuntimeError), atomic_write(tmp_path / "out.csv"):
        raise RuntimeError
    assert (tmp_path / "out.csv").read_text() == "old"
    assert sorted_names(tmp_path) == [other.name, "out.csv"]


def test_scratch_folders_are_removed_and_leave_no_handle_open(tmp_path: Path) -> None:
    handles = Path("/proc/self/fd")
    before = sorted_names(handles) if handles.is_dir() else []
    with ScratchFolder(tmp_path / "new") as first, ScratchFolder(tmp_path / "new") as second:
        assert first != second
        assert first.parent == tmp_path / "new"
        (first / "file").touch()
    assert sorted_names(tmp_path / "new") == []
    assert (sorted_names(handles) if handles.is_dir() else []) == before


@pytest.mark.skipif(sys.platform == "win32", reason="no such locks there")
def test_what_is_locked_is_never_removed(tmp_path: Path) -> None:
    """Processes of several containers may have the same numbers and the same name of the machine."""
    with atomic_write(tmp_path / "out.csv") as temporary:
        first = re.sub(r"-\d+-", "-1000000000-", temporary.name)  # as a process that does not run here
        temporary.with_name(first).hardlink_to(temporary)
        left = re.sub(r"-[^-]*$", "-left", temporary.name)  # of an earlier process with our number
        (tmp_path / left).touch()
        atomic_files._swept.clear()
        with atomic_write(tmp_path / "other.csv"):
            pass
        assert sorted_names(tmp_path) == sorted([temporary.name, first, "other.csv"])


def test_a_full_disk_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(handle: int) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr("os.fsync", fail)
    (tmp_path / "out.csv").write_text("old")
    number = errno.ENOSPC
    with pytest.raises(OSError, match="no"), atomic_write(tmp_path / "out.csv") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "out.csv").read_text() == "old"
    number = errno.EINVAL  # of file systems without fsync
    with atomic_write(tmp_path / "out.csv") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "out.csv").read_text() == "new"
    assert sorted_names(tmp_path) == ["out.csv"]


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        ("edges.csv", ".csv"),
        ("EDGES.CSV", ".csv"),
        ("a.b.tsv.gz", ".tsv"),
        ("edges.TXT.GZ", ".txt"),
        ("graph.parquet", ".parquet"),
        ("graph.npz", ".npz"),
    ],
)
def test_the_suffix_selects_the_format(name: str, suffix: str) -> None:
    assert format_of(Path("folder") / name, (*TABLES, ".npz")) == suffix
    assert is_table(name) == (suffix != ".npz")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (InputError("line 2 is wrong."), "line 2 is wrong."),
        (ValueError("bad\nmore"), "cannot be read, it is damaged or of another format (bad)."),
        (KeyError(), "cannot be read, it is damaged or of another format (KeyError)."),
    ],
)
def test_errors_while_reading_name_the_file(error: Exception, message: str, tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text("x")
    with pytest.raises(InputError) as caught, reading(path):
        raise error
    assert str(caught.value) == f"{path}: {message}"
    assert error in (caught.value, caught.value.__cause__)


def read(path: Any) -> None:
    with reading(path):
        pass


def test_missing_and_empty_files_and_folders_are_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing\.csv does not exist"):
        read(tmp_path / "nothing.csv")
    with pytest.raises(InputError, match="must be a file; it is a folder"):
        read(tmp_path)
    (tmp_path / "empty.csv").touch()
    with pytest.raises(InputError, match=r"empty\.csv: the file is empty"):
        read(tmp_path / "empty.csv")


@pytest.mark.skipif(sys.platform == "win32", reason="has no named pipes")
def test_pipes_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "edges.csv")
    with pytest.raises(InputError, match="only files can be read"):
        read(tmp_path / "edges.csv")
