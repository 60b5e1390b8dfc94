"""Which format a file is in, and errors that name the file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from nodecopy._core.atomic_files import check_writable
from nodecopy.errors import InputError, MissingExtraError

PathLike: TypeAlias = str | os.PathLike[str]
TableLike: TypeAlias = PathLike | Any
"""A file, or a pandas data frame where a table is read."""

TEXT = (".csv", ".tsv", ".txt")
TABLES = (*TEXT, ".parquet")


def is_frame(source: Any) -> bool:
    """Whether somebody gave a data frame in place of a file."""
    return hasattr(source, "columns") and hasattr(source, "to_numpy")


def format_of(path: TableLike, known: Iterable[str]) -> str:
    """The suffix that decides how ``path`` is read, without the ``.gz`` of compressed text.

    A data frame counts as Parquet, which has typed columns with names, too.
    """
    if is_frame(path) and ".parquet" in known:
        return ".parquet"
    name = Path(path).name.lower()
    plain = name.removesuffix(".gz")
    suffix = Path(plain).suffix
    if suffix in known and (plain == name or suffix in TEXT):
        return suffix
    raise InputError(
        f"{path} must end in one of {', '.join(known)} (text also in .gz); got {Path(name).suffix!r}."
    )


def target_format(path: PathLike, known: Iterable[str]) -> str:
    """The same for a file that is to be written, which must be possible: commands ask before they compute."""
    suffix = format_of(path, known)
    check_writable(path)
    return suffix


def is_table(path: PathLike) -> bool:
    """Whether a file is a table, which knows edges but neither isolated nodes nor labels."""
    return Path(Path(path).name.lower().removesuffix(".gz")).suffix in TABLES


@contextmanager
def reading(path: TableLike) -> Iterator[Any]:
    """Turn whatever goes wrong with a file into an :class:`InputError` that names it.

    The decoders behind a suffix answer broken bytes with errors of a dozen kinds, so all are caught.
    """
    file = path
    if is_frame(path):
        path = "the data frame"
    else:
        file = Path(path)
        if not file.exists():
            raise InputError(f"{path} does not exist.")
        if file.is_dir():
            raise InputError(f"{path} must be a file; it is a folder.")
    try:
        if isinstance(file, Path) and not file.stat().st_size:
            raise InputError("the file is empty.")
        yield file
    except MissingExtraError:
        raise
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except Exception as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise InputError(f"{path}: cannot be read, it is damaged or of another format ({reason}).") from error
