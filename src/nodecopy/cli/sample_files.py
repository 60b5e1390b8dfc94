"""The folder of samples that ``nodecopy sample`` writes and ``nodecopy stats --samples`` reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nodecopy._core.atomic_files import atomic_folder
from nodecopy.errors import InputError

ORIGIN = "samples.json"
"""Says how the samples of a folder were drawn. A folder without it is not overwritten."""


@contextmanager
def create_sample_folder(
    out: Path, origin: dict[str, Any], suffix: str, *, overwrite: bool
) -> Iterator[Callable[[int], Path]]:
    """Write a folder completely or not at all; yields the function from a sample's number to its path."""
    with atomic_folder(out, mark=ORIGIN, overwrite=overwrite) as folder:
        width = len(str(origin["n"] - 1))
        yield lambda number: folder / f"sample-{number:0{width}d}.{suffix}"
        (folder / ORIGIN).write_text(json.dumps(origin, indent=2) + "\n", encoding="utf-8")


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
