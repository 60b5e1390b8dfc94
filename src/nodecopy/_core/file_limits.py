"""Content from outside: a small file must not take gigabytes of memory."""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

from nodecopy.errors import InputError

MAX_RATIO, MAX_UNPACKED = 16, 2**28
"""How many times its size, and at least how many bytes, a file may have once it is unpacked."""
MAX_TABLE_BYTES = 2**24
"""At least how many bytes a compressed table may have; in memory it takes up to sixty times as many."""
MAX_EMPTY, MAX_PER_ENTRY = 10**6, 1000
"""How many rows and columns a matrix of a file may have: at least, and for each of its entries."""
MAX_TEXT_BYTES, CHARACTER_BYTES = 2**26, 4
"""How many bytes the ids of an array may take at least, and how many a character takes."""
LIMIT = "NODECOPY_MAX_UNPACKED"
"""Environment variable for a larger number of bytes."""
CHUNK = 2**20
ELEMENT_BYTES = {"i": 16, "u": 16, "U": 64, "S": 64}
"""At least how many bytes an element counts, else 8: integers are converted, and texts become objects."""


@contextmanager
def open_archive(file: BinaryIO) -> Iterator[Any]:
    """Yield what ``numpy.load`` returns for a file without pickles, after checking its size in memory."""
    if zipfile.is_zipfile(file):
        file.seek(0)
        _check_members(file)
    else:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        _check_header(file, size)
    file.seek(0)
    loaded = np.load(file, allow_pickle=False)
    try:
        yield loaded
    finally:
        if hasattr(loaded, "close"):
            loaded.close()


def read_member(archive: BinaryIO, name: str) -> bytes:
    """Return the content of one file of a zip archive, after checking its size."""
    with zipfile.ZipFile(archive) as members:
        member = members.getinfo(name)
        check_unpacked(member.file_size, member.compress_size)
        return members.read(member)


def check_stream(unpacked: BinaryIO, packed: int) -> None:
    """Raise an error if a stream that unpacks ``packed`` bytes holds too many; nothing of it is kept."""
    n_bytes = 0
    while chunk := unpacked.read(CHUNK):
        n_bytes += len(chunk)
        check_unpacked(n_bytes, packed, MAX_TABLE_BYTES)


def check_unpacked(unpacked: int, packed: int, least: int | None = None) -> None:
    """Raise an error if a file unpacks to too many bytes.

    Parameters
    ----------
    unpacked
        Number of bytes so far.
    packed
        Number of bytes of the file.
    least
        Number that is allowed whatever the size of the file; ``MAX_UNPACKED`` by default.
    """
    limit = _limit(packed, MAX_UNPACKED if least is None else least)
    if unpacked > limit:
        raise InputError(
            f"the file must take at most {limit} bytes when it is unpacked; it takes {unpacked} or more. If "
            f"you trust it, set the environment variable {LIMIT} to a larger number."
        )


def check_text_size(values: Iterable[Any], name: str) -> None:
    """Raise an error if texts take far more memory in an array, which has the longest in each place."""
    lengths = [len(value) for value in values if isinstance(value, str)]
    if not lengths:
        return
    longest = max(lengths)
    n_bytes, limit = (
        CHARACTER_BYTES * len(lengths) * longest,
        _limit(CHARACTER_BYTES * sum(lengths), MAX_TEXT_BYTES),
    )
    if n_bytes > limit:
        raise InputError(
            f"{name} must take at most {limit} bytes, where each takes as many as the longest; got "
            f"{len(lengths)}, one of {longest} characters, which take {n_bytes}. Shorten it, or set the "
            f"environment variable {LIMIT} to a larger number."
        )


def check_shape(shape: Any, n_entries: int) -> None:
    """Raise an error if a matrix of a file has far more rows or columns than entries."""
    limit = max(MAX_EMPTY, MAX_PER_ENTRY * n_entries)
    if any(size > limit for size in shape):
        raise InputError(
            f"the matrix of the file must have at most {limit} rows and columns for its {n_entries} entries; "
            f"got shape {tuple(shape)}."
        )


def _limit(n_bytes: int, least: int) -> int:
    """Return the number of bytes that content of ``n_bytes`` may take."""
    given = os.environ.get(LIMIT, "")
    if given and not given.isdecimal():
        raise InputError(f"the environment variable {LIMIT} must be a number of bytes; got {given!r}.")
    return max(MAX_RATIO * n_bytes, least, int(given or 0))


def _check_members(file: BinaryIO) -> None:
    """Raise an error unless the arrays of an archive are as large as they say and not too large in all."""
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        packed = sum(member.compress_size for member in members)
        check_unpacked(sum(member.file_size for member in members), packed)
        n_bytes = 0
        for member in members:
            with archive.open(member) as content:
                n_bytes += _check_header(content, member.file_size, is_matrix=member.filename == "data.npy")
        check_unpacked(n_bytes, packed)


def _check_header(content: Any, size: int, *, is_matrix: bool = False) -> int:
    """Return about how many bytes an array takes while it is used, after checking that the file holds it.

    ``is_matrix`` says that it holds the values of a sparse matrix.
    """
    try:
        version = npy.read_magic(content)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read(content)
    except (ValueError, EOFError):  # not an array, which NumPy says on its own
        return 0
    n_bytes = max(dtype.itemsize, 1)  # elements without bytes, as of type V0, would take memory later
    for length in shape:
        n_bytes *= int(length)
    if n_bytes > size and not dtype.hasobject:
        raise InputError(f"the file must hold its arrays as a whole; one of {n_bytes} bytes has {size}.")
    kind = "i" if is_matrix else dtype.kind
    return max(n_bytes, math.prod(map(int, shape)) * ELEMENT_BYTES.get(kind, 8))
