"""File formats by suffix, and errors that name the file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from nodecopy._core.atomic_files import check_writable
from nodecopy._core.validation import check_path, show
from nodecopy.errors import InputError, MissingExtraError

PathLike: TypeAlias = str | os.PathLike[str]
TableLike: TypeAlias = PathLike | Any
"""A file, or a data frame (pandas, polars, Arrow) instead of a table."""

TEXT = (".csv", ".tsv", ".txt")
TABLES = (*TEXT, ".parquet")
CONVERSION_HINTS = {
    (".xlsx", ".xls", ".ods", ".numbers"): "Save the sheet as 'CSV UTF-8'.",
    (".gml", ".net", ".dot", ".gdf", ".graphmlz"): "Read it with NetworkX or igraph, and write .graphml.",
    (".json", ".gexf", ".graphml", ".mtx"): "A table needs columns: write it as .csv.",
    (".dat", ".data", ".tab", ".base", ".edges"): "If it is text with a row per line, rename it to .txt.",
    (".pkl", ".pickle", ".pt", ".feather", ".dta", ".sav", ".rds"): "Write it as .csv or .parquet.",
}
"""What to do with files of other formats."""


def is_frame(source: Any) -> bool:
    """Return whether the argument is a data frame of pandas or polars, or a table of Arrow."""
    return hasattr(source, "columns") and (hasattr(source, "to_numpy") or hasattr(source, "column_names"))


def format_of(path: TableLike, suffixes: Iterable[str], *, is_read: bool = True) -> str:
    """Return the suffix that selects the format of ``path``, without the ``.gz`` of compressed text.

    A data frame counts as Parquet, since both have typed columns with names. Errors advise how to convert
    files of other formats only if the file ``is_read``.
    """
    if is_frame(path) and ".parquet" in suffixes:
        return ".parquet"
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(f"path must be a string or a pathlib.Path; got {show(path)}.")
    name = Path(path).name.lower()
    plain = name.removesuffix(".gz")
    suffix = Path(plain).suffix
    if suffix in suffixes and (plain == name or suffix in TEXT):
        return suffix
    if ".txt" in suffixes and name.startswith("out.") and "." not in name[4:] and Path(path).is_file():
        return ".txt"  # out.NAME, as KONECT calls edge lists
    compressed = " (text also in .gz)" if set(TEXT) & set(suffixes) else ""
    raise InputError(
        f"{path} must end in one of {', '.join(suffixes)}{compressed}; got {Path(name).suffix!r}."
        + next((f" {hint}" for others, hint in CONVERSION_HINTS.items() if is_read and suffix in others), "")
    )


def target_format(path: PathLike, suffixes: Iterable[str]) -> str:
    """Return the format of a file to be written, and check that it can be written there."""
    check_writable(path)
    return format_of(path, suffixes, is_read=False)


def is_table(path: PathLike) -> bool:
    """Return whether a file is a table, which holds edges but neither isolated nodes nor labels."""
    return Path(Path(path).name.lower().removesuffix(".gz")).suffix in TABLES


def exists(path: Path) -> bool:
    """Return whether there is a file or a folder; a name that is too long names none."""
    try:
        return path.exists()
    except OSError:
        return False


@contextmanager
def reading(path: TableLike) -> Iterator[Any]:
    """Turn every error that occurs while a file is read into an :class:`InputError` that names it.

    Decoders raise errors of many types on damaged files, so all of them are caught.
    """
    file = path
    if is_frame(path):
        path = "the data frame"
    else:
        file = Path(check_path(path, "path"))
        if not exists(file):
            raise InputError(f"{path} does not exist.")
        if file.is_dir():
            raise InputError(f"{path} must be a file; it is a folder.")
    try:
        if isinstance(file, Path) and not file.is_file():
            raise InputError("only files can be read, not devices and pipes. Write the data to a file first.")
        if isinstance(file, Path) and not file.stat().st_size:
            raise InputError("the file is empty.")
        yield file
    except MissingExtraError:
        raise
    except InputError as error:
        raise InputError(f"{path}: {error.message}", *error.hints) from error
    except Exception as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        if "allow_pickle" in reason:  # NumPy's advice for every file that is not its own
            reason = "neither an array nor an archive of arrays without pickles"
        raise InputError(f"{path}: cannot be read, it is damaged or of another format ({reason}).") from error
