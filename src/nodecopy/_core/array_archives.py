"""Archives of arrays (``.npz``) whose large arrays can be memory-mapped.

Large arrays of floating-point numbers are stored as they are, since compression takes long and saves little;
all others are compressed. Integers are never mapped: they are positions in other arrays, which are checked
once, and a file that is changed afterwards must not lead compiled code outside those arrays.
"""

from __future__ import annotations

import math
import struct
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.file_limits import open_archive

MIN_MAPPED_BYTES = 2**24
"""Size from which arrays are mapped; smaller ones are read in milliseconds."""
ALIGNMENT = 64
LOCAL_HEADER_BYTES, ZIP64_BYTES = 30, 20
PADDING_ID = 0xD935
"""Identifier of the padding in an extra field, as Android's zipalign writes it."""


def write_arrays(file: BinaryIO, arrays: dict[str, NDArray[Any]]) -> None:
    """Write named arrays, of numbers and strings, to an archive that :func:`numpy.load` reads, too."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy")
            member.compress_type = zipfile.ZIP_DEFLATED
            if array.dtype.kind == "f" and array.nbytes >= MIN_MAPPED_BYTES:
                member.compress_type = zipfile.ZIP_STORED
                member.extra = _padding(file.tell() + LOCAL_HEADER_BYTES + len(member.filename) + ZIP64_BYTES)
            with archive.open(member, "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)


def read_arrays(path: Path, *, mmap: bool = False) -> dict[str, NDArray[Any]]:
    """Return the arrays of an archive by name; with ``mmap`` large ones are mapped, read-only."""
    arrays = {}
    with path.open("rb") as file, open_archive(file) as archive:
        for name in archive.files:
            mapped = _map_array(file, archive.zip, f"{name}.npy") if mmap else None
            arrays[name] = archive[name] if mapped is None else mapped
    return arrays


def _padding(start: int) -> bytes:
    """Return an extra field after which data that would start at ``start`` are aligned."""
    n_bytes = 4 + (-start - 4) % ALIGNMENT
    return struct.pack("<HH", PADDING_ID, n_bytes - 4) + bytes(n_bytes - 4)


def _map_array(file: BinaryIO, archive: zipfile.ZipFile, name: str) -> NDArray[Any] | None:
    """Return a member of an archive by memory map, or ``None`` if it must be read."""
    if name not in archive.namelist():
        return None
    info = archive.getinfo(name)
    if info.compress_type != zipfile.ZIP_STORED or info.file_size < MIN_MAPPED_BYTES:
        return None
    with archive.open(info) as member:
        if np.lib.format.read_magic(member) != (1, 0):
            return None
        shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(member)
        header_bytes = member.tell()
    file.seek(info.header_offset + LOCAL_HEADER_BYTES - 4)
    start = info.header_offset + LOCAL_HEADER_BYTES + sum(struct.unpack("<HH", file.read(4))) + header_bytes
    if dtype.kind != "f" or not dtype.isnative or start % dtype.itemsize:
        return None
    if header_bytes + math.prod(shape) * dtype.itemsize != info.file_size:
        raise ValueError(f"{name} must hold an array of shape {shape}")
    mapped = np.memmap(file, dtype, "r", offset=start, shape=shape, order="F" if is_fortran else "C")
    return np.asarray(mapped)  # an array like any other, whose results are no maps
