"""Every public callable with arguments of wrong types and with crafted arrays, one argument at a time.

``python -m tests.contracts.wrong_arguments NAME...`` calls the public names, in a process of its own, since
compiled code that reads a wrong array ends it. Allowed are a result and an error of the package; anything
else is printed, and the exit status is 1. A parameter is given one in ``EVERY`` of the arrays, and a method
that classes inherit is called on one of them; with ``--all``, everything is called.
"""

from __future__ import annotations

import math
import os
import re
import signal
import sys
import tempfile
import warnings
from collections.abc import Iterator
from typing import Any
from zlib import crc32

import numpy as np
from scipy import sparse

from nodecopy.errors import InputError, MissingExtraError, NotFittedError
from tests.checked_kernels import force_checked_kernels
from tests.contracts.public_calls import Call, build_calls
from tests.contracts.valid_arguments import shared_arguments

MEMORY, SECONDS = 16 * 2**30, 60  # limits on the address space of the process and on the time of a call
TAKES_ARRAYS = re.compile("Array|Any|Like|Graph|Interactions|Sequence|Nodes|float")
"""Annotations of parameters that are given arrays."""
COUNTS = re.compile(
    r"n|n_(epochs|steps|iterations|graphs|rounds|swaps|layers|\w+_steps|transitions)|workers|threads"
)
"""Parameters that say how much is computed, for which a large number is right and takes long."""
EVERY = 24  # A parameter is given one in so many of the arrays, others than the next parameter
PACKAGE_ERRORS = (InputError, NotFittedError, MissingExtraError)
SCIKIT_LEARN_CHECKS = re.compile(r"GraphClassifier\.\w+ (X|y)$")
"""Arguments that scikit-learn checks, with the errors that its own suite of estimators expects."""


class OutOfTime(BaseException):
    """A call took longer than ``SECONDS``."""


def wrong_types() -> dict[str, Any]:
    """Return values that few parameters accept."""
    import networkx

    return {
        "None": None, "an object": object(), "a text": "text", "bytes": b"x", "lists": [[1], [2, 3]],
        "a dictionary": {"a": 1}, "a set": {1, 2}, "a module": math, "a network": networkx.path_graph(4),
        "NaN": math.nan, "inf": math.inf, "-1": -1, "2^63": 2**63, "True": True,
    }  # fmt: skip


def crafted_arrays(valid: Any) -> Iterator[tuple[str, Any]]:
    """Yield arrays of unusual types, layouts and values, of the shape of a valid argument among others."""
    shapes: list[tuple[int, ...]] = [(12,), (12, 12)]
    if shape := getattr(valid, "shape", None):
        shapes.append(shape)
    for shape in dict.fromkeys(shapes):
        base = np.arange(math.prod(shape)).reshape(shape) % 3
        for dtype in ("i1", "u1", "u8", ">i4", ">f8", "f2", "g", "c16", "?", "O", "U2", "S2", "M8[s]", "V4"):
            yield f"{dtype} of shape {shape}", base.astype(dtype)
        for value in (math.nan, math.inf, -math.inf, -1.0, 1e308, 0.5, 2.0**63):
            yield f"{value} in shape {shape}", np.where(base == 1, value, base)
        for number in (-1, 2**31, 2**62, -(2**63)):
            yield f"{number} in shape {shape}", np.where(base == 1, number, base)
        yield f"2^64 - 1 in shape {shape}", np.where(base == 1, np.uint64(2**64 - 1), base.astype(np.uint64))
        yield f"large texts in shape {shape}", np.where(base == 1, "x" * 1000, "")
        yield f"missing objects in shape {shape}", np.where(base == 1, np.array(None), base)
        yield f"a longer shape than {shape}", np.concatenate([base, base])
        yield f"a shorter shape than {shape}", base[:-1]
        yield f"no rows of shape {shape}", base[:0]
        yield f"a dimension more than {shape}", base[None]
        yield f"negative strides of shape {shape}", base[::-1]
        yield f"strides of shape {shape}", np.repeat(base, 2, axis=0)[::2]
        yield f"a broadcast of shape {shape}", np.broadcast_to(np.float32(1), shape)
        yield f"masked values of shape {shape}", np.ma.masked_equal(base, 1)
        yield f"records of shape {shape}", np.zeros(shape, [("a", "i4"), ("b", "f4")])
    yield "no dimension", np.array(3)
    yield "no columns", np.zeros((12, 0))
    yield "a matrix", np.asmatrix(np.eye(12))
    yield from crafted_matrices(shapes[-1] if sparse.issparse(valid) else (12, 12))


def crafted_matrices(shape: Any) -> Iterator[tuple[str, Any]]:
    """Yield sparse matrices whose arrays do not fit together, which no constructor of SciPy returns."""
    size = shape[0]
    ends = np.arange(size + 1)
    parts: dict[str, dict[str, Any]] = {
        "indptr that ends at 0": {"indptr": np.append(ends[:-1] * 10**7, 0)},
        "indptr that falls": {"indptr": np.concatenate([[0, size + 1], ends[2:]])},
        "indptr that starts at 3": {"indptr": ends + 3},
        "negative indptr": {"indptr": -ends},
        "large indptr": {"indptr": ends * 2**40},
        "short indptr": {"indptr": ends[:-2]},
        "no indptr": {"indptr": ends[:0]},
        "columns out of range": {"indices": np.full(size, 10**6)},
        "negative columns": {"indices": np.full(size, -(10**6))},
        "columns of floats": {"indices": np.linspace(0, 1, size)},
        "columns of 8 bits": {"indices": np.arange(size).astype(np.int8)},
        "big-endian columns": {"indices": np.arange(size).astype(">i4")},
        "few columns": {"indices": np.arange(2)},
        "few values": {"data": np.ones(1)},
        "small integers": {"data": np.full(size, 128, np.uint8), "indices": np.zeros(size, np.int32)},
        "NaN": {"data": np.full(size, math.nan)},
        "objects": {"data": np.full(size, None)},
        "complex values": {"data": np.ones(size, complex)},
        "a matrix of values": {"data": np.ones((size, 2))},
    }
    for name, changes in parts.items():
        for build in (sparse.csr_array, sparse.csc_array):
            matrix: Any = build((np.ones(size), np.arange(size), ends), shape=(size, size))
            matrix.resize(shape)
            vars(matrix).update(changes)
            yield f"{matrix.format} with {name}", matrix
    for column in (-1, 10**6, 2**40):
        coo = sparse.coo_array((np.ones(size), (np.arange(size), np.zeros(size, int))), shape=shape)
        coo.coords = (coo.coords[0], np.full(size, column))
        yield f"coo with column {column}", coo
    blocks = sparse.bsr_array(sparse.csr_array(np.eye(*shape)), blocksize=(1, 1))
    blocks.indices = blocks.indices + 10**6
    yield "bsr with columns out of range", blocks
    diagonals = sparse.dia_array(np.eye(*shape))
    diagonals.offsets = np.array([2**31 - 1])
    yield "dia with an offset out of range", diagonals
    lists = sparse.lil_array(np.eye(*shape))
    lists.rows[0] = [10**6]
    yield "lil with a column out of range", lists
    yield "10^15 rows", sparse.coo_array(([1.0], ([0], [1])), shape=(10**15, shape[1]))
    attributes = (
        ("csr", "data"), ("csc", "_shape"), ("coo", "coords"), ("lil", "rows"), ("dia", "offsets"),
        ("dok", "_dict"),
    )  # fmt: skip
    for kind, attribute in attributes:
        for value in (None, 5, np.arange(size)):
            wrong: Any = getattr(sparse, f"{kind}_array")(np.eye(*shape))
            setattr(wrong, attribute, value)
            yield f"{kind} with {attribute} {value}", wrong


def check_call(call: Call, parameter: str, value: Any, name: str) -> str | None:
    """Return what is wrong with a call with one argument changed."""
    where = f"{call.name} {parameter}"
    signal.alarm(SECONDS)
    try:
        call.function(**call.arguments | {parameter: value})
    except PACKAGE_ERRORS:
        return None
    except OutOfTime:
        return f"{where}={name}: more than {SECONDS} seconds"
    except Exception as error:
        if isinstance(error, (ValueError, TypeError)) and SCIKIT_LEARN_CHECKS.search(where):
            return None
        return f"{where}={name}: {type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
    return None


def check_calls(names: list[str], *, is_complete: bool) -> Iterator[str]:
    """Yield what is wrong with the calls of public names."""
    checked = set()
    for call in build_calls(names):
        if call.code in checked and not is_complete:
            continue
        checked.add(call.code)
        for parameter, annotation in call.parameters.items():
            values = list(wrong_types().items())
            if "edge_tables" in call.name and not is_complete:
                values = values[crc32(parameter.encode()) % 5 :: 5]  # every call opens a database
            if TAKES_ARRAYS.search(annotation) and "edge_tables" not in call.name:  # those take files
                valid = call.arguments.get(parameter, shared_arguments().get(parameter))
                arrays = list(crafted_arrays(valid))
                values += arrays if is_complete else arrays[crc32(call.name.encode()) % EVERY :: EVERY]
            for name, value in values:
                if name == "2^63" and COUNTS.fullmatch(parameter):
                    continue
                # The last line, if the process ends:
                print(f"{call.name} {parameter}={name}", file=sys.stderr)
                if wrong := check_call(call, parameter, value, name):
                    yield wrong


def main() -> None:
    """Call the public names that the command line holds, with limits on memory and time."""

    def interrupt(*_: Any) -> None:
        raise OutOfTime

    signal.signal(signal.SIGALRM, interrupt)
    import resource  # not on Windows

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    force_checked_kernels()
    names = [name for name in sys.argv[1:] if name != "--all"]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        is_wrong = False
        for wrong in check_calls(names, is_complete="--all" in sys.argv):
            is_wrong = True
            print(wrong, flush=True)
    sys.exit(is_wrong)


if __name__ == "__main__":
    main()
