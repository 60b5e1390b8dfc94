"""Checks of the files that commands write."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from nodecopy._core.formats import target_format
from nodecopy._core.optional_imports import import_optional
from nodecopy.errors import InputError


def check_outputs(inputs: Iterable[object], **outputs: tuple[Path | None, Iterable[str]]) -> None:
    """Check before any computation that outputs can be written and replace no input and no other output.

    Parameters
    ----------
    inputs
        Paths that are read. Names of datasets and ``None`` are allowed among them.
    outputs
        By option, the path and its allowed formats; the path is ``None`` where the option was not given.
    """
    used = {Path(path).resolve() for path in inputs if isinstance(path, (str, os.PathLike))}
    for option, (path, formats) in outputs.items():
        if path is None:
            continue
        if target_format(path, formats) == ".parquet":
            import_optional("pyarrow", "writing Parquet")
        if path.resolve() in used:
            raise InputError(
                f"--{option} must be a file that is neither an input nor another output; got {path}. "
                "Choose another name."
            )
        used.add(path.resolve())
