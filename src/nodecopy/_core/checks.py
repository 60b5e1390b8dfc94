"""Checks of parameters and of axes to draw on, and limits of the memory that content of files may take."""

from __future__ import annotations

import math
import os
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.imports import import_optional, suggest
from nodecopy.errors import InputError

MAX_SHOWN = 100  # longer values are not shown in messages
MAX_COUNT = 2**31 - 1  # the largest number of epochs, neighbours, ... where no other limit is known
SMALL = 1e-200  # a limit below it stands for 0, which is not allowed
SURROGATES = re.compile("[\ud800-\udfff]")


def check_integer(value: Any, name: str, *, low: int, high: float = MAX_COUNT, high_name: str = "") -> int:
    """Return an integer between ``low`` and ``high``, which errors call ``high_name``."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        value = int(value)  # so that the message shows 50, not np.int64(50)
        if low <= value <= high:
            return int(value)
    is_too_large = isinstance(value, int) and value > high
    if high in (MAX_COUNT, math.inf) and not is_too_large:
        raise InputError(name, f"must be an integer of at least {low}; got {show(value)}.")
    limit = f"{high_name} = {high}" if high_name else str(high)
    raise InputError(name, f"must be an integer between {low} and {limit}; got {show(value)}.")


def check_real(value: Any, name: str, *, low: float = -math.inf, high: float = math.inf) -> float:
    """Return a finite number between ``low`` and ``high``."""
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    is_finite = is_number and (abs(value) < 2**1023 if isinstance(value, int) else math.isfinite(value))
    if is_finite and low <= value <= high:
        return float(value)
    allowed = f"a number between {low:g} and {high:g}"
    if high == math.inf:
        bound = "above 0" if 0 < low < SMALL else f"of at least {low:g}"
        allowed = "a finite number" if low == -math.inf else f"a number {bound}"
    raise InputError(name, f"must be {allowed}; got {show(value)}.")


def check_choice(value: Any, name: str, allowed: Iterable[str]) -> str:
    """Return a string that is one of ``allowed``."""
    allowed = list(allowed)
    if isinstance(value, str) and value in allowed:
        return str(value)
    hint = suggest(value, allowed) if isinstance(value, str) else ""
    raise InputError(name, f"must be one of {', '.join(map(repr, allowed))}; got {show(value)}.{hint}")


def check_settings(model: Any, /, **limits: Any) -> None:
    """Check parameters; a limit is the smallest value, a pair of limits, a list of names or ``bool``."""
    for parameter, limit in limits.items():
        value, name = getattr(model, parameter), f"{parameter} of {type(model).__name__}"
        if limit is bool:
            check_type(value, bool, name, "True or False")
        elif isinstance(limit, list):
            check_choice(value, name, limit)
        elif isinstance(limit, int):
            check_integer(value, name, low=limit)
        else:
            low, high = limit if isinstance(limit, tuple) else (limit, math.inf)
            check_real(value, name, low=low, high=high)


def show(value: Any) -> str:
    """Return ``repr(value)`` for a message, or the type if that is long or unsafe."""
    is_own = type(value).__module__.startswith("nodecopy.")
    is_plain = isinstance(value, (int, float, str, bytes, tuple, list, type(None), np.generic))
    try:
        text = repr(value) if is_own or is_plain else ""
    except Exception:  # an integer of more than 4,300 digits, or an object that cannot be printed
        text = ""
    return text if is_own or 0 < len(text) <= MAX_SHOWN else type_name(value)


def check_type(value: Any, kinds: Any, name: str, allowed: str) -> Any:
    """Return an object of one of the classes ``kinds``; errors call it ``allowed``."""
    if isinstance(value, kinds):
        return value
    raise InputError(name, f"must be {allowed}; got {type_name(value)}.")


def check_text(value: Any, name: str) -> str:
    """Return a string, such as the name of a column."""
    return str(check_type(value, str, name, "a string"))


def check_callable(value: Any, name: str) -> Any:
    """Return a function, or None."""
    return check_type(value, (Callable, type(None)), name, "a function or None")


def check_sequence(values: Any, name: str, allowed: str) -> list[Any]:
    """Return a collection other than text as a list."""
    is_collection = isinstance(values, Iterable) and not isinstance(values, (str, bytes, Mapping))
    if hasattr(type(values), "ndim"):  # the arrays of a sparse matrix are not checked
        is_collection = isinstance(values, np.ndarray) and values.ndim > 0
    if is_collection:
        return list(values)
    raise InputError(name, f"must be {allowed}; got {type_name(values)}.")


def check_mapping(values: Any, name: str, allowed: str) -> Mapping[Any, Any]:
    """Return a dictionary or another mapping; a sparse matrix of keys is none."""
    if isinstance(values, Mapping) and not hasattr(type(values), "tocsr"):
        return values
    raise InputError(name, f"must be {allowed}; got {type_name(values)}.")


def check_path(value: Any, name: str) -> str | os.PathLike[str]:
    """Return the name of a file or folder."""
    return check_type(value, (str, os.PathLike), name, "the name of a file")  # type: ignore[no-any-return]


def type_name(value: Any) -> str:
    """Return the type with its package, such as ``networkx.Graph`` or ``list``."""
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    return kind.__qualname__ if package in ("builtins", "__main__") else f"{package}.{kind.__qualname__}"


def as_array(values: Any, name: str) -> NDArray[Any]:
    """Return an array, or raise an error that names the parameter."""
    kinds = set(map(type, values)) if isinstance(values, (list, tuple)) else {type(values)}
    if isinstance(values, (list, tuple)) and any(issubclass(kind, str) for kind in kinds):
        check_text_size(values, name)
    if any(hasattr(kind, "tocsr") for kind in kinds):  # sparse, not even printed: its arrays are not checked
        raise InputError(name, f"must be an array; got {type_name(values)}. Use its method toarray.")
    try:
        return np.asarray(values)
    except ValueError as error:
        raise InputError(name, "must be a rectangular array; got rows of different lengths.") from error
    except (TypeError, RuntimeError) as error:  # such as tensors with gradients or on a GPU
        raise InputError(name, f"must be an array; got {type_name(values)}: {error}") from error


def check_vector(
    values: ArrayLike, name: str, *, length: int | None = None, per: str = "node"
) -> NDArray[Any]:
    """Return a one-dimensional array, with ``length`` entries if it is given."""
    array = as_array(values, name)
    if array.ndim != 1:
        raise InputError(name, f"must have one dimension; got shape {array.shape}.")
    if length is not None and len(array) != length:
        raise InputError(name, f"must hold one entry per {per}, {length} in all; got {len(array)}.")
    return array


def check_numbers(values: Any, name: str) -> NDArray[Any]:
    """Return an array of numbers."""
    array = as_array(values, name)
    if array.dtype.kind not in "biuf":
        raise InputError(name, f"must hold numbers; got {array.dtype}.")
    return array


def as_integers(values: Sequence[Any], name: str) -> NDArray[np.int64]:
    """Return Python integers as an array."""
    try:
        return np.array(values, np.int64)
    except OverflowError:
        wrong = next(value for value in values if not -(2**63) <= value < 2**63)
        raise InputError(name, f"must fit into 64 bits with a sign; got {show(wrong)}.") from None


def check_indices(values: ArrayLike, name: str, *, size: int) -> NDArray[np.int64]:
    """Return integer positions between 0 and ``size - 1``."""
    array = check_vector(values, name)
    if array.size and array.dtype.kind not in "iu":
        raise InputError(name, f"must hold integers; got {array.dtype}.")
    array = array.astype(np.int64)
    is_wrong = (array < 0) | (array >= size)
    if is_wrong.any():
        raise InputError(name, f"must lie between 0 and {size - 1}; got {array[is_wrong][0]}.")
    return array


def check_finite(values: NDArray[Any], name: str) -> None:
    """Raise an error if a value is NaN or infinite."""
    if values.dtype.kind == "f" and not (is_finite := np.isfinite(values)).all():
        raise InputError(name, f"must hold finite numbers; got {values[~is_finite][0]}.")


def check_unique(values: NDArray[Any], name: str) -> None:
    """Raise an error if a value occurs twice."""
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) != len(values):
        raise InputError(name, f"must be unique; got {distinct[counts > 1].tolist()[0]!r} more than once.")


def check_characters(values: Iterable[Any], name: str) -> None:
    """Raise an error if text holds NUL, which arrays drop, or a surrogate, which no file can hold."""
    for value in values:
        if not isinstance(value, str):
            continue
        if "\0" in value:
            raise InputError(name, f"must not hold the character NUL; got {str(value)!r}.")
        if not value.isascii() and SURROGATES.search(value):
            raise InputError(name, f"must be valid Unicode; got {str(value)!r}, with half a character.")


def list_names(values: Iterable[Any], n: int = 5) -> str:
    """Return the first ``n`` values for a message, and how many more there are."""
    names = list(map(str, values))
    more = f" and {len(names) - n} more" if len(names) > n else ""
    return ", ".join(names[:n]) + more


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN or a missing value of pandas."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


# Limits of memory; the environment variable LIMIT allows more bytes.
MAX_RATIO, MAX_UNPACKED = 16, 2**28  # times the size of a file, and at least so many bytes
MAX_TABLE_BYTES = 2**24  # of a compressed table, at least; in memory it takes up to sixty times as many
MAX_EMPTY, MAX_PER_ENTRY = 10**6, 1000  # rows and columns of a matrix, at least and per entry
MAX_TEXT_BYTES, CHARACTER_BYTES = 2**26, 4
LIMIT = "NODECOPY_MAX_UNPACKED"
CHUNK = 2**20
ELEMENT_BYTES = {"i": 16, "u": 16, "U": 64, "S": 64}  # else 8: integers are converted, texts become objects


@contextmanager
def open_archive(file: BinaryIO) -> Iterator[Any]:
    """Yield what ``numpy.load`` returns for a file without pickles whose size in memory is limited."""
    if zipfile.is_zipfile(file):
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
    """Return the content of one file of a zip archive, whose size is limited."""
    with zipfile.ZipFile(archive) as members:
        member = members.getinfo(name)
        check_unpacked(member.file_size, member.compress_size)
        return members.read(member)


def check_stream(unpacked: BinaryIO, packed: int) -> None:
    """Raise an error if a stream unpacks ``packed`` bytes to far more."""
    n_bytes = 0
    while chunk := unpacked.read(CHUNK):
        n_bytes += len(chunk)
        check_unpacked(n_bytes, packed, MAX_TABLE_BYTES)


def check_unpacked(unpacked: int, packed: int, least: int | None = None) -> None:
    """Raise an error if ``packed`` bytes unpack to far more, and to more than ``least``."""
    limit = _limit(packed, MAX_UNPACKED if least is None else least)
    if unpacked > limit:
        allowed = f"at most {limit} bytes when it is unpacked; it takes {unpacked} or more"
        raise InputError(f"the file must take {allowed}. If you trust it, set the variable {LIMIT}.")


def check_text_size(values: Iterable[Any], name: str) -> None:
    """Raise an error if texts take far more memory in an array, padded to the longest."""
    lengths = [len(value) for value in values if isinstance(value, str)]
    n_bytes = CHARACTER_BYTES * len(lengths) * max(lengths, default=0)
    limit = _limit(CHARACTER_BYTES * sum(lengths), MAX_TEXT_BYTES)
    if n_bytes > limit:
        got = f"{len(lengths)} texts with up to {max(lengths)} characters, which take {n_bytes}"
        raise InputError(name, f"must take at most {limit} bytes; got {got}. Set the variable {LIMIT}.")


def check_shape(shape: Any, n_entries: int) -> None:
    """Raise an error if a matrix of a file has far more rows or columns than entries."""
    limit = max(MAX_EMPTY, MAX_PER_ENTRY * n_entries)
    if any(size > limit for size in shape):
        got = f"{n_entries} entries; got shape {tuple(shape)}"
        raise InputError(f"the matrix of the file must have at most {limit} rows and columns for its {got}.")


def _limit(n_bytes: int, least: int) -> int:
    given = os.environ.get(LIMIT, "")
    if given and not given.isdecimal():
        raise InputError(f"the environment variable {LIMIT} must be a number of bytes; got {given!r}.")
    return max(MAX_RATIO * n_bytes, least, int(given or 0))


def _check_members(file: BinaryIO) -> None:
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
    try:
        version = npy.read_magic(content)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read(content)
    except (ValueError, EOFError):  # not an array, which NumPy says on its own
        return 0
    n_elements = math.prod(map(int, shape))
    n_bytes = max(dtype.itemsize, 1) * n_elements  # elements of type V0, without bytes, take memory later
    if n_bytes > size and not dtype.hasobject:
        raise InputError(f"the file must hold its arrays as a whole; one of {n_bytes} bytes has {size}.")
    return max(n_bytes, n_elements * ELEMENT_BYTES.get("i" if is_matrix else dtype.kind, 8))


def create_axes(
    axes: Any, purpose: str, size: tuple[float, float], shape: tuple[int, ...] = (1,), **grid: Any
) -> NDArray[Any]:
    """Return the given axes in a shape, or new ones of pyplot, each of a size in inches."""
    pyplot = import_optional("matplotlib.pyplot", purpose)
    if axes is None:
        n_rows, n_columns = (1, *shape)[-2:]
        total = (n_columns * size[0], n_rows * size[1])
        _, axes = pyplot.subplots(n_rows, n_columns, figsize=total, layout="constrained", **grid)
    array = np.asarray(axes, object)
    if array.size != math.prod(shape) or not all(hasattr(panel, "set_xlim") for panel in array.flat):
        wanted = " x ".join(map(str, shape))
        raise InputError("axes", f"must be Matplotlib axes, {wanted} of them; got {type_name(axes)}.")
    return array.reshape(shape)
