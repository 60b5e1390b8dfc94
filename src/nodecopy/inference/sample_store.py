"""Values of statistics in a folder, in which a run that was stopped continues."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import CodeType
from typing import Any
from zlib import crc32

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from nodecopy._core.checks import check_path
from nodecopy._core.files import PathLike, atomic_write, is_temporary, release, try_lock
from nodecopy._core.random import Rng, seed_sequence
from nodecopy.errors import InputError
from nodecopy.graph import Graph

SETTINGS = "settings.json"
FORMAT = {"format": 2}
"""The version of the files, which is stored with the settings."""
NUMBER = np.dtype("<f8")


class SampleStore:
    """A folder with a file of rows per statistic, to which every sample appends one row and its checksum.

    A row that was written in part or is damaged is dropped when the run continues, with all that follow.

    Parameters
    ----------
    folder
        The folder, which is created.
    settings
        What the values depend on; a folder with other settings is refused.
    """

    def __init__(self, folder: PathLike, settings: dict[str, Any]) -> None:
        self.folder, self.settings = Path(folder), FORMAT | settings
        if not self._check_settings():
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(
                    "store", f"must be a folder that can be created; got {str(folder)!r}."
                ) from error
            with atomic_write(self.folder / SETTINGS) as temporary:
                temporary.write_text(json.dumps(self.settings, indent=1))

    def _check_settings(self) -> bool:
        """Return whether there are settings, or raise an error if they are those of another run."""
        stored = read_settings(self.folder)
        changed = [name for name, value in self.settings.items() if stored and stored.get(name) != value]
        if changed:
            raise InputError(
                "store",
                f"must be a new folder or one of the same run; the {changed[0]} of {self.folder} is "
                f"{stored.get(changed[0])!r} instead of {self.settings[changed[0]]!r}. Choose another folder.",
            )
        return bool(stored)

    @contextmanager
    def claim(self) -> Iterator[None]:
        """Lock the folder while samples are drawn, since rows of two processes would be mixed up."""
        handle, is_locked = try_lock(self.folder)
        try:
            if is_locked:
                raise InputError(
                    "store",
                    f"must be a folder that no other run uses; one uses {self.folder}. Wait for its "
                    "end, or choose another folder.",
                )
            self._check_settings()  # another process may have written them since
            yield
        finally:
            release(handle)

    def append_all(self, samples: Iterator[Mapping[str, Any]], shapes: Mapping[str, tuple[int, ...]]) -> Any:
        """Yield samples after each has been written."""
        with ExitStack() as stack:
            files = [stack.enter_context(self._path(number).open("ab")) for number in range(len(shapes))]
            for sample in samples:
                for file, (name, shape) in zip(files, shapes.items(), strict=True):
                    row = np.asarray(sample[name], NUMBER)
                    if row.shape != shape:
                        raise InputError(
                            "statistic", f"must return as many numbers for every sample; {name} did not."
                        )
                    file.write(row.tobytes() + _checksum(row.tobytes()))
                    file.flush()
                yield sample

    def count_complete(self, shapes: Mapping[str, tuple[int, ...]]) -> int:
        """Return the number of samples of which all rows are whole, and drop what follows them."""
        sizes = [_row_bytes(shape) for shape in shapes.values()]
        paths = [self._path(number) for number in range(len(sizes))]
        n = min(_count_rows(path, size) for path, size in zip(paths, sizes, strict=True))
        for path, size in zip(paths, sizes, strict=True):
            if path.stat().st_size > n * size:
                with path.open("r+b") as file:
                    file.truncate(n * size)
        return n

    def read(self, shapes: Mapping[str, tuple[int, ...]], n: int) -> dict[str, NDArray[np.float64]]:
        """Return the first ``n`` rows of each statistic, mapped from the files."""
        if not n:
            return {name: np.empty((0, *shape)) for name, shape in shapes.items()}
        values = {}
        for number, (name, shape) in enumerate(shapes.items()):
            n_columns = _row_bytes(shape) // NUMBER.itemsize
            rows = np.memmap(self._path(number), NUMBER, "r", shape=(n, n_columns))
            values[name] = rows[:, :-1].reshape(n, *shape)  # a view
        return values

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:03}.f64"


def _row_bytes(shape: tuple[int, ...]) -> int:
    """Return the bytes of a row with its checksum."""
    return NUMBER.itemsize * (int(np.prod(shape, dtype=np.int64)) + 1)


def _checksum(row: bytes) -> bytes:
    return np.array(crc32(row), NUMBER).tobytes()


def _count_rows(path: Path, size: int) -> int:
    """Return the number of rows of ``size`` bytes before the first that is not whole."""
    if not path.exists():
        path.touch()  # not where all samples are stored, in a folder that may be read only
    if not path.is_file():  # reading a pipe would wait for ever
        raise InputError(f"store: {path} must be a file. Choose another folder, or delete this one.")
    n, end = 0, size - NUMBER.itemsize
    with path.open("rb") as file:
        while len(row := file.read(size)) == size and _checksum(row[:end]) == row[end:]:
            n += 1
    return n


def read_settings(folder: Path) -> dict[str, Any]:
    """Return the settings of a store; nothing if the folder is new."""
    path = folder / SETTINGS
    if not path.is_file():
        if folder.exists() and (not folder.is_dir() or not all(map(is_temporary, folder.iterdir()))):
            raise InputError("store", f"must be a new folder or one of an earlier run; got {str(folder)!r}.")
        return {}
    try:
        settings = json.loads(path.read_text())
    except (ValueError, RecursionError, OSError):
        settings = None
    if not isinstance(settings, dict) or not settings:
        raise _damaged(folder)
    return settings


def _damaged(folder: Path) -> InputError:
    return InputError(f"store: {folder / SETTINGS} is damaged. Choose another folder, or delete this one.")


def choose_seed(rng: Rng, store: PathLike | None) -> SeedSequence:
    """Return the seed of ``rng``, or without one that of the run which is continued."""
    if store is not None:
        check_path(store, "store")
    if store is None or rng is not None or "seed" not in (stored := read_settings(Path(store))):
        return seed_sequence(rng)
    try:
        entropy, key = stored["seed"]
        return SeedSequence([int(word) for word in entropy], spawn_key=key)
    except (TypeError, ValueError, OverflowError) as error:
        raise _damaged(Path(store)) from error


def describe_seed(seed: SeedSequence) -> list[Any]:
    """Return the entropy, as text since integers of JSON are limited, and the key of a seed."""
    entropy = seed.entropy if isinstance(seed.entropy, (list, tuple)) else [seed.entropy]
    return [[str(word) for word in entropy], list(seed.spawn_key)]


def digest_graph(graph: Graph) -> str:
    """Return a digest of the edges, weights, labels and ids of a graph."""
    rows = graph.rows
    digest = hashlib.sha256(f"{graph.n_nodes} {graph.directed}".encode())
    for part in (rows.indptr, rows.indices, rows.weights, graph.labels):
        digest.update(b"-" if part is None else np.ascontiguousarray(part, np.float64).tobytes())
    digest.update("\n".join(map(str, graph.node_ids.tolist())).encode())
    return digest.hexdigest()[:16]


def digest_function(function: Any) -> str:
    """Return the name of a function and a digest of its code, which tells functions of one name apart.

    Values of variables outside of the function are no part of it.
    """
    name = (
        f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__name__)}"
    )
    digest = hashlib.sha256()
    codes = [getattr(function, "__code__", None)]
    for code in codes:
        if code is not None:
            inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
            others = [constant for constant in code.co_consts if not isinstance(constant, CodeType)]
            digest.update(code.co_code + repr((others, code.co_names)).encode())
            codes += inner
    return f"{name} {digest.hexdigest()[:16]}"
