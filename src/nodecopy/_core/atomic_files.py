"""Files and folders that are written as a whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nodecopy.errors import InputError


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise an error if a file cannot be written there, before its content is computed.

    Missing folders are no error, since they are created.
    """
    target = Path(path)
    if target.is_dir():
        raise InputError(f"{target} must be a file; there is a folder of that name.")
    check_writable_parent(target)


def check_writable_parent(target: Path) -> None:
    """Raise an error if nothing can be written under that name; parent folders may be missing."""
    folder = next(parent for parent in target.absolute().parents if parent.exists())
    if not folder.is_dir():
        raise InputError(f"{target} must lie in a folder; {folder} is a file.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{target} must lie in a folder that may be written to; {folder} may not.")


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary name next to ``path``, which becomes ``path`` if the block ends without an error.

    The temporary name has the same suffix, since writers choose a format by it.
    """
    check_writable(path)
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{target.stem}-", suffix=target.suffix, dir=target.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)  # mkstemp creates private files
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: str | os.PathLike[str], *, mark: str, overwrite: bool = False) -> Iterator[Path]:
    """Yield a temporary folder next to ``path``, which becomes ``path`` if the block ends without an error.

    An existing folder that is not empty is an error. With ``overwrite`` it is replaced if it holds a file
    named ``mark``, which shows that an earlier run wrote it; other folders are never deleted.
    """
    target = Path(path).resolve()
    if target.exists() and not target.is_dir():
        raise InputError(f"{path} must be a folder; there is a file of that name.")
    if target.is_dir() and any(target.iterdir()):
        if not overwrite:
            raise InputError(
                f"{path} must be empty or new; it holds files already (--overwrite replaces it)."
            )
        if not (target / mark).is_file():
            raise InputError(
                f"{path} must be a folder that an earlier run wrote, with a {mark}, to be replaced."
            )
    check_writable_parent(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    old = temporary.with_name(f"{temporary.name}-old")
    try:
        yield temporary
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o777 & ~mask)
        if target.exists():
            target.replace(old)
        temporary.replace(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
