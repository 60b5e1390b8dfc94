"""Files that are written as a whole or not at all, formats by suffix, and errors that name the file.

Output is written under a temporary name beside its target, which it replaces at the end. The name holds the
machine and the process, which locks it; the next write removes what a killed process left.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import os
import re
import shutil
import stat
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from platform import node
from typing import Any

from nodecopy._core.checks import check_path, show
from nodecopy.errors import InputError, MissingExtraError

if sys.platform != "win32":
    import fcntl

PathLike = str | os.PathLike[str]
TableLike = PathLike | Any  # A file, or a data frame (pandas, polars, Arrow) instead of a table
TEXT = (".csv", ".tsv", ".txt")
TABLES = (*TEXT, ".parquet")
CONVERSION_HINTS = {
    (".xlsx", ".xls", ".ods", ".numbers"): "Save the sheet as 'CSV UTF-8'.",
    (".gml", ".net", ".dot", ".gdf", ".graphmlz"): "Read it with NetworkX or igraph, and write .graphml.",
    (".json", ".gexf", ".graphml", ".mtx"): "A table needs columns: write it as .csv.",
    (".dat", ".data", ".tab", ".base", ".edges", ".edgelist"): "If it is text with rows, rename it to .txt.",
    (".pkl", ".pickle", ".pt", ".feather", ".dta", ".sav", ".rds"): "Write it as .csv or .parquet.",
}
PREFIX = ".nodecopy-"  # of temporary names
FULL_OR_BROKEN = (errno.ENOSPC, errno.EDQUOT, errno.EIO)  # after which a file is not on its disk
MAX_SUFFIX = 16
_LOCK = threading.Lock()
_swept: set[Path] = set()


def resolve(path: PathLike) -> Path:
    """Return the absolute path behind links."""
    try:
        target = Path(os.path.realpath(path))
    except ValueError as error:
        raise InputError(f"a path must not hold the character NUL; got {str(path)!r}.") from error
    if any(map(os.path.islink, (target, *target.parents))):  # where realpath gave up
        raise InputError(f"{path} must not be a link that leads back to itself.")
    return target


def check_writable(path: PathLike) -> None:
    """Raise an error if a file cannot be written there; missing folders are created later."""
    target = Path(path)
    resolve(target)
    if target.is_dir():
        raise InputError(f"{target} must be a file; there is a folder of that name.")
    if not _is_special(target):
        check_writable_parent(target)


def check_writable_parent(target: Path) -> None:
    """Raise an error if the nearest folder that exists cannot be written to."""
    folder = next((parent for parent in target.absolute().parents if parent.exists()), None)
    if folder is None:
        raise InputError(f"{target} must be a file or a folder below the root of the file system.")
    if not folder.is_dir():
        raise InputError(f"{target} must lie in a folder; {folder} is a file.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{target} must lie in a folder that may be written to; {folder} may not.")


@contextmanager
def atomic_write(path: PathLike) -> Iterator[Path]:
    """Yield a temporary name with the same suffix, which becomes ``path`` unless the block fails.

    Links are followed, a replaced file keeps its mode, and devices and pipes receive the content.
    """
    check_writable(path)
    target = resolve(path)
    if _is_special(Path(path)):
        with ScratchFolder() as folder:
            yield (content := folder / f"content{target.suffix}")
            with content.open("rb") as source, Path(path).open("wb") as device:
                shutil.copyfileobj(source, device)
        return
    with _temporary(target, is_folder=False) as temporary:
        yield temporary
        os.umask(mask := os.umask(0))
        temporary.chmod(stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~mask)
        _flush(temporary)
        temporary.replace(target)
        _flush(target.parent)


def check_folder(
    path: PathLike, *, manifest: str, overwrite: bool = False, inputs: Iterable[PathLike] = ()
) -> Path:
    """Return the place of a folder that may be written.

    It must be empty or new; with ``overwrite`` it may hold the ``files`` that its JSON ``manifest`` lists
    (:func:`list_tree`). None of the ``inputs`` may lie in it.
    """
    target = resolve(path)
    check_writable_parent(target)
    _sweep(target)
    if target.exists() and not target.is_dir():
        raise InputError(f"{path} must be a folder; there is a file of that name.")
    if target.is_dir() and any(target.iterdir()):
        if not overwrite:
            raise InputError(f"{path} must be empty or new; it holds files (--overwrite replaces it).")
        _check_replaceable(target, manifest)
    for source in inputs:
        if resolve(source).is_relative_to(target):
            raise InputError(f"{path} must not be a folder that is read; it holds {source}.")
    return target


class ScratchFolder:
    """A folder for temporary files, removed at the end or, after a kill, by the next process."""

    def __init__(self, parent: PathLike | None = None) -> None:
        self._stack = ExitStack()
        target = resolve(tempfile.gettempdir() if parent is None else parent) / "scratch"
        self.path = self._stack.enter_context(_temporary(target, is_folder=True))

    def remove(self) -> None:
        self._stack.close()

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *error: object) -> None:
        self.remove()


def list_tree(folder: Path) -> list[str]:
    """Return the names of all files below a folder; links are not followed."""
    paths = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return sorted(path.relative_to(folder).as_posix() for path in paths)


def _check_replaceable(folder: Path, manifest: str) -> None:
    try:
        own = {*map(str, json.loads(check_file(folder / manifest).read_bytes())["files"]), manifest}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        reason = f"it has no {manifest} that lists its files"
    else:
        foreign = [name for name in list_tree(folder) if name not in own or (folder / name).is_symlink()]
        if not foreign:
            return
        reason = f"it also holds {foreign[0]}. Move that away, or write to another folder"
    raise InputError(f"{folder} must hold just what an earlier run wrote to be replaced; {reason}.")


@contextmanager
def _temporary(target: Path, *, is_folder: bool) -> Iterator[Path]:
    """Yield a locked temporary file or folder beside a target, and remove it at the end."""
    target.parent.mkdir(parents=True, exist_ok=True)
    _sweep(target.parent)
    prefix = f"{PREFIX}{_digest(target.name)}-{_digest(node())}-{os.getpid()}-"
    with _LOCK:  # nothing is removed before it is locked
        if is_folder:
            temporary = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
        else:
            suffix = target.suffix if len(target.suffix) <= MAX_SUFFIX else ""
            file, name = tempfile.mkstemp(prefix=prefix, suffix=suffix, dir=target.parent)
            os.close(file)
            temporary = Path(name)
        handle, _ = try_lock(temporary)
    try:
        yield temporary
    finally:
        remove_path(temporary)
        if handle is not None:
            os.close(handle)


def remove_path(path: Path) -> None:
    """Remove a file or a folder, if it exists."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def try_lock(path: Path) -> tuple[int | None, bool]:
    """Return a handle that locks a path, if possible, and whether another process locks it."""
    if sys.platform == "win32":
        return None, False
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe of that name is not waited for
    except OSError:  # of another user, or just removed
        return None, True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None, True
    except OSError:  # of file systems without locks
        pass
    return handle, False


def digest_files(paths: Mapping[str, PathLike], options: Mapping[str, Any]) -> str:
    """Return a digest of the contents of files, also of folders and patterns of Parquet, and of options."""
    contents: dict[str, list[str]] = {name: [] for name in paths}
    for name, path in paths.items():
        for part in filter(Path.is_file, list_parts(path)):
            with part.open("rb") as file:
                contents[name].append(hashlib.file_digest(file, "sha256").hexdigest())
    return hashlib.sha256(json.dumps([contents, options], sort_keys=True).encode()).hexdigest()[:16]


def _digest(text: str) -> str:
    return hashlib.sha256(os.fsencode(text)).hexdigest()[:8]


def _sweep(folder: Path) -> None:
    """Remove what killed processes left."""
    if not folder.is_dir() or folder in _swept:
        return
    _swept.add(folder)
    pattern = re.compile(rf"{re.escape(PREFIX)}\w{{8}}-{_digest(node())}-(\d+)-")
    with _LOCK, suppress(OSError):  # of folders that may be written to but not listed
        for name in sorted(os.listdir(folder)):
            match, path = pattern.match(name), folder / name
            if not match or _is_running(int(match[1])):
                continue
            handle, is_locked = try_lock(path)
            if handle is not None:
                os.close(handle)
            if not is_locked:
                remove_path(path)


def _is_running(process: int) -> bool:
    if sys.platform == "win32":  # where os.kill ends the process, whatever the signal
        return True
    if process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # of another user
        pass
    return True


def _is_special(path: Path) -> bool:
    return path.exists() and not (path.is_file() or path.is_dir())


def _flush(path: Path) -> None:
    try:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno in FULL_OR_BROKEN:
            raise


def list_parts(path: PathLike) -> list[Path]:
    """Return the Parquet files of a folder or of a pattern; the name of a file is no pattern."""
    file = Path(path)
    parts: Iterable[Path] = []
    if os.path.exists(file):
        parts = file.glob("*.parquet") if file.is_dir() else []
    elif file.suffix == ".parquet":
        parts = map(Path, glob.glob(str(file), recursive=True))
    return sorted(parts) or [file]


def is_frame(source: Any) -> bool:
    """Return whether an object is a data frame of pandas or polars, or a table of Arrow."""
    return hasattr(source, "columns") and (hasattr(source, "to_numpy") or hasattr(source, "column_names"))


def format_of(path: TableLike, suffixes: Iterable[str], *, is_read: bool = True) -> str:
    """Return the suffix that selects the format of a file; a data frame is Parquet."""
    if is_frame(path) and ".parquet" in suffixes:
        return ".parquet"
    if not isinstance(path, (str, os.PathLike)):
        raise InputError("path", f"must be a string or a pathlib.Path; got {show(path)}.")
    name = Path(path).name.lower()
    plain = name.removesuffix(".gz")
    suffix = Path(plain).suffix
    if suffix in suffixes and (plain == name or suffix in TEXT):
        return suffix
    if ".txt" in suffixes and name.startswith("out.") and "." not in name[4:] and Path(path).is_file():
        return ".txt"  # out.NAME, as KONECT calls edge lists
    compressed = " (text also in .gz)" if set(TEXT) & set(suffixes) else ""
    hints = [f" {hint}" for others, hint in CONVERSION_HINTS.items() if is_read and suffix in others]
    allowed = f"{', '.join(suffixes)}{compressed}; got {Path(name).suffix!r}.{''.join(hints)}"
    raise InputError(f"{path} must end in one of {allowed}")


def target_format(path: PathLike, suffixes: Iterable[str]) -> str:
    """Return the format of a file, which must be writable."""
    check_writable(path)
    return format_of(path, suffixes, is_read=False)


def is_table(path: PathLike) -> bool:
    """Return whether a file is a table, without isolated nodes and labels."""
    return Path(Path(path).name.lower().removesuffix(".gz")).suffix in TABLES


def check_file(path: PathLike) -> Path:
    """Return the path of a regular file; opening a pipe could wait for ever."""
    file = Path(path)
    if not os.path.exists(file):  # also for a name that is too long
        raise InputError(f"{path} does not exist.")
    if file.is_dir():
        raise InputError(f"{path} must be a file; it is a folder.")
    if not file.is_file():
        raise InputError(f"{path}: only files can be read. Write the data to a file first.")
    return file


@contextmanager
def reading(path: TableLike) -> Iterator[Any]:
    """Turn errors while a file is read into an :class:`InputError` that names it."""
    file: Any = path
    if is_frame(path):
        path = "the data frame"
    else:
        file = Path(check_path(path, "path"))
        for part in list_parts(file) if file.suffix == ".parquet" else [file]:
            if not check_file(part).stat().st_size:
                raise InputError(f"{part}: the file is empty.")
    try:
        yield file
    except (MissingExtraError, Warning):
        raise
    except InputError as error:
        error.place = f"{path}: {error.place}"
        raise
    except Exception as error:  # decoders raise errors of many types on damaged files
        reason = str(error).partition("\n")[0] or type(error).__name__
        if "allow_pickle" in reason:  # NumPy's advice for every file that is not its own
            reason = "neither an array nor an archive of arrays without pickles"
        if isinstance(error, UnicodeDecodeError):
            reason = "not in UTF-8; save it as 'CSV UTF-8', or convert it with iconv -f windows-1252 -t utf-8"
        raise InputError(f"{path}: cannot be read, it is damaged or of another format ({reason}).") from error
