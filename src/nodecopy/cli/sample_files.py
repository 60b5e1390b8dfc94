"""The folder of samples that ``nodecopy sample`` writes and ``nodecopy stats --samples`` reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nodecopy._core.atomic_files import atomic_folder, list_tree
from nodecopy.errors import InputError

ORIGIN = "samples.json"
"""Says how the samples of a folder were drawn, and lists them. No other folder is overwritten."""


@contextmanager
def create_sample_folder(
    out: Path, origin: dict[str, Any], suffix: str, *, overwrite: bool, inputs: Iterable[Any] = ()
) -> Iterator[Callable[[int], Path]]:
    """Write a folder completely or not at all; yields the function from a sample's number to its path."""
    files = [path for path in inputs if path is not None]
    with atomic_folder(out, manifest=ORIGIN, overwrite=overwrite, inputs=files) as folder:
        width = len(str(origin["n"] - 1))
        yield lambda number: folder / f"sample-{number:0{width}d}.{suffix}"
        about = origin | {"files": list_tree(folder)}
        (folder / ORIGIN).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")


def find_samples(path: Path) -> list[Path]:
    """Return the files of a folder of samples, or the path itself where it is a file."""
    if path.is_dir():
        files = sorted(file for file in path.glob("sample-*") if file.is_file())
        if not files:
            raise InputError(
                f"--samples must be a graph or a folder with sample-* files; {path} has none. "
                "Write some with nodecopy sample --out FOLDER."
            )
        return files
    if not path.exists():
        raise InputError(f"--samples must be graphs or folders of graphs; {path} does not exist.")
    return [path]
