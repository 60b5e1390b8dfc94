"""NumPy archives from outside: a small file must not take gigabytes of memory."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

from nodecopy.errors import InputError

MAX_RATIO, MAX_UNPACKED = 100, 2**28
"""How many times its size, and at least how many bytes, an archive may have once it is unpacked."""
MAX_EMPTY, MAX_PER_ENTRY = 10**7, 1000
"""How many rows and columns a matrix of a file may have: at least, and for each of its entries."""
LIMIT = "NODECOPY_MAX_UNPACKED"
"""Environment variable for a larger number of bytes."""


@contextmanager
def open_archive(file: BinaryIO) -> Iterator[Any]:
    """Yield what ``numpy.load`` returns for a file without pickles, after checking its size in memory."""
    if zipfile.is_zipfile(file):
        file.seek(0)
        _check_members(file)
    file.seek(0)
    loaded = np.load(file, allow_pickle=False)
    try:
        yield loaded
    finally:
        if hasattr(loaded, "close"):
            loaded.close()


def check_shape(shape: Any, n_entries: int) -> None:
    """Raise an error if a matrix of a file has far more rows or columns than entries."""
    limit = max(MAX_EMPTY, MAX_PER_ENTRY * n_entries)
    if any(size > limit for size in shape):
        raise InputError(
            f"the matrix of the file must have at most {limit} rows and columns for its {n_entries} entries; "
            f"got shape {tuple(shape)}."
        )


def _check_members(file: BinaryIO) -> None:
    """Raise an error unless the arrays of an archive are as large as they say and not too large in all."""
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        packed, unpacked = (sum(getattr(m, f"{name}_size") for m in members) for name in ("compress", "file"))
        limit = max(MAX_RATIO * packed, int(os.environ.get(LIMIT, MAX_UNPACKED)))
        if unpacked > limit:
            raise InputError(
                f"the file must take at most {limit} bytes when it is unpacked; it takes {unpacked}. If you "
                f"trust it, set the environment variable {LIMIT} to that number."
            )
        for member in members:
            with archive.open(member) as content:
                _check_header(content, member.file_size)


def _check_header(content: Any, size: int) -> None:
    try:
        version = npy.read_magic(content)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read(content)
    except (ValueError, EOFError):  # not an array, which NumPy says on its own
        return
    n_bytes = dtype.itemsize
    for length in shape:
        n_bytes *= int(length)
    if n_bytes > size and not dtype.hasobject:
        raise InputError(f"the file must hold its arrays as a whole; one of {n_bytes} bytes has {size}.")
