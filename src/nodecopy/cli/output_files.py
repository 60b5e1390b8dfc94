"""Files that commands write."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from nodecopy._core.formats import target_format
from nodecopy._core.optional_imports import import_optional
from nodecopy.errors import InputError


def check_outputs(inputs: Iterable[object], **targets: tuple[Path | None, Iterable[str]]) -> None:
    """See that files can be written, before anything is computed: none that is read, and each another.

    Parameters
    ----------
    inputs
        Files that are read, and whatever else a command takes in their place.
    targets
        By option, the file and the formats it may have; ``None`` where the option was left out.
    """
    taken = {Path(one).resolve() for one in inputs if isinstance(one, (str, os.PathLike))}
    for option, (path, formats) in targets.items():
        if path is None:
            continue
        if target_format(path, formats) == ".parquet":
            import_optional("pyarrow", "writing Parquet")
        if path.resolve() in taken:
            raise InputError(f"--{option} must not name a file that is read, or written too; got {path}.")
        taken.add(path.resolve())
