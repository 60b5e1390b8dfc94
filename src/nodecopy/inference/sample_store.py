"""Values of statistics in a folder, in which a run that was stopped continues."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from nodecopy._core.atomic_files import atomic_write
from nodecopy._core.formats import PathLike
from nodecopy._core.random import Rng, seed_sequence
from nodecopy._core.validation import check_path
from nodecopy.errors import InputError
from nodecopy.graph import Graph

SETTINGS = "settings.json"
NUMBER = np.dtype("<f8")


class SampleStore:
    """A folder with a file of rows per statistic, to which every sample appends one row.

    A row that was written in part is dropped when the run continues.

    Parameters
    ----------
    folder
        The folder, which is created.
    settings
        What the values depend on; a folder with other settings is refused.
    """

    def __init__(self, folder: PathLike, settings: dict[str, Any]) -> None:
        self.folder = Path(folder)
        stored = read_settings(self.folder)
        changed = [name for name, value in settings.items() if stored and stored.get(name) != value]
        if changed:
            raise InputError(
                f"store must be a new folder or one of the same run; the {changed[0]} of {self.folder} is "
                f"{stored.get(changed[0])!r} instead of {settings[changed[0]]!r}. Choose another folder."
            )
        if not stored:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(
                    f"store must be a folder that can be created; got {str(folder)!r}."
                ) from error
            with atomic_write(self.folder / SETTINGS) as temporary:
                temporary.write_text(json.dumps(settings, indent=1))

    def append_all(self, samples: Iterator[Mapping[str, Any]], shapes: Mapping[str, tuple[int, ...]]) -> Any:
        """Yield samples after each has been written."""
        with ExitStack() as stack:
            files = [stack.enter_context(self._path(number).open("ab")) for number in range(len(shapes))]
            for sample in samples:
                for file, (name, shape) in zip(files, shapes.items(), strict=True):
                    row = np.asarray(sample[name], NUMBER)
                    if row.shape != shape:
                        raise InputError(
                            f"statistic must return as many numbers for every sample; {name} did not."
                        )
                    file.write(row.tobytes())
                    file.flush()
                yield sample

    def count_complete(self, shapes: Mapping[str, tuple[int, ...]]) -> int:
        """Return the number of samples of which all rows are complete, and drop what follows them."""
        sizes = [_row_bytes(shape) for shape in shapes.values()]
        paths = [self._path(number) for number in range(len(sizes))]
        for path in paths:
            path.touch()
        n = min(path.stat().st_size // size for path, size in zip(paths, sizes, strict=True))
        for path, size in zip(paths, sizes, strict=True):
            if path.stat().st_size > n * size:
                with path.open("r+b") as file:
                    file.truncate(n * size)
        return int(n)

    def read(self, shapes: Mapping[str, tuple[int, ...]], n: int) -> dict[str, NDArray[np.float64]]:
        """Return the first ``n`` rows of each statistic, mapped from the files."""
        return {
            name: np.memmap(self._path(number), NUMBER, "r", shape=(n, *shape))
            if n
            else np.empty((0, *shape))
            for number, (name, shape) in enumerate(shapes.items())
        }

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:03}.f64"


def _row_bytes(shape: tuple[int, ...]) -> int:
    return NUMBER.itemsize * int(np.prod(shape, dtype=np.int64))


def read_settings(folder: Path) -> dict[str, Any]:
    """Return the settings of a store; nothing if the folder is new."""
    path = folder / SETTINGS
    if not path.is_file():
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(f"store must be a new folder or one of an earlier run; got {str(folder)!r}.")
        return {}
    try:
        settings = json.loads(path.read_text())
    except (ValueError, RecursionError, OSError):
        settings = None
    if not isinstance(settings, dict):
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
