"""Datasets in files of the user's own, which stand beside the names of others in ``datasets``.

An entry ``{ name = "mine", edges = "edges.csv", labels = "labels.csv", directed = true }`` names files,
relative to the folder of the TOML file. Interactions have the key ``interactions``, or ``train``, ``test``
and perhaps ``validation`` where the parts of a split are files of their own; other keys are parameters of
the function that reads them, and ``ignore_columns``, a list of columns of the features to leave out.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from nodecopy import datasets
from nodecopy._core.atomic_files import resolve
from nodecopy.errors import InputError
from nodecopy.experiments.sections import (
    check_keys,
    make_list_reader,
    make_reader,
    read_mapping,
    read_name,
    read_text,
)
from nodecopy.graph import Graph
from nodecopy.interactions import Interactions
from nodecopy.io import FeatureEncoder, read_graph, read_interactions

FILES = {
    "graph": ("edges", "labels", "features"),
    "interactions": ("interactions",),
    "split": ("train", "test", "validation"),
}
"""The keys that name files by the kind of data, the required ones first."""
REQUIRED = {"graph": ("edges",), "interactions": ("interactions",), "split": ("train", "test")}
Data: TypeAlias = Graph | Interactions | datasets.Split[Interactions]
READERS: dict[str, Callable[..., Data]] = {
    "graph": read_graph,
    "interactions": read_interactions,
    "split": datasets.read_split,
}
OPTIONS: dict[str, Callable[..., Any]] = READERS | {"split": read_interactions}
"""The functions whose parameters are keys of a section."""
OBJECTS = ("path", "labels", "features", "node_ids", "encoder")
"""Parameters of readers that are files or objects, and so no options of a section."""
read_columns = make_list_reader(read_text)
read_option = make_reader(
    "a text, a number, true or false", lambda value: isinstance(value, str | int | float)
)


@dataclass(frozen=True)
class FileDataset:
    """A graph, interactions or a split of interactions in files.

    Attributes
    ----------
    name
        What tables and folders call it.
    kind
        ``"graph"``, ``"interactions"`` or ``"split"``.
    files
        Keys and absolute paths, the required key first.
    options
        Names and values of further parameters of the function that reads the files.
    fingerprint
        Digest of the contents of the files and of the options, but not of where the files are.
    """

    name: str
    kind: str
    files: tuple[tuple[str, Path], ...]
    options: tuple[tuple[str, Any], ...]
    fingerprint: str

    def load(self, largest_component: bool = False) -> Data:
        """Read the files, which must not have changed since the experiment was read."""
        if _fingerprint(self.files, self.options) != self.fingerprint:
            raise InputError(
                f"the files of the dataset {self.name} must not change while an experiment runs; they did. "
                "Start it again."
            )
        (_, path), *others = self.files
        options = dict(self.options)
        if "ignore_columns" in options:
            options["encoder"] = FeatureEncoder(options.pop("ignore_columns"))
        data = READERS[self.kind](path, **dict(others), **options)
        return data.largest_component() if largest_component and isinstance(data, Graph) else data


def separate_file_datasets(
    content: Mapping[str, Any], folder: Path
) -> tuple[dict[str, Any], tuple[FileDataset, ...]]:
    """Return the content of a TOML file with names in place of datasets in files, and those datasets."""
    protocol = read_mapping(content.get("protocol", {}), "[protocol]")
    if not isinstance(protocol.get("datasets"), list):
        return dict(content), ()
    own = {
        number: _read_file_dataset(entry, folder)
        for number, entry in enumerate(protocol["datasets"])
        if isinstance(entry, dict)
    }
    names = [own[n].name if n in own else entry for n, entry in enumerate(protocol["datasets"])]
    return {**content, "protocol": {**protocol, "datasets": names}}, tuple(own.values())


def _read_file_dataset(section: dict[str, Any], folder: Path) -> FileDataset:
    where = "an entry of datasets of [protocol]"
    kind = next((kind for kind in ("interactions", "split") if REQUIRED[kind][0] in section), "graph")
    keys, parameters = FILES[kind], inspect.signature(OPTIONS[kind]).parameters
    options = [name for name in parameters if name not in OBJECTS]
    if "features" in section:
        options.append("ignore_columns")
    check_keys(section, where, ("name", *keys, *options), ("name", *REQUIRED[kind]))
    name = read_name(section["name"], f"name of {where}")
    if name in datasets.names():
        raise InputError(f"name of {where} must not be that of a dataset of the package; got {name!r}.")
    files = tuple(
        (key, _find_file(section[key], folder, f"{key} of {name}")) for key in keys if key in section
    )
    readers = {"ignore_columns": read_columns}
    values = tuple(
        (key, readers.get(key, read_option)(section[key], f"{key} of {name}"))
        for key in options
        if key in section
    )
    return FileDataset(name, kind, files, values, _fingerprint(files, values))


def _find_file(value: Any, folder: Path, where: str) -> Path:
    path = resolve(Path(folder, read_text(value, where)))
    if not path.is_file():
        raise InputError(
            f"{where} must be a file; {path} is none. Paths are relative to the folder of the TOML file."
        )
    return path


def _fingerprint(files: tuple[tuple[str, Path], ...], options: tuple[tuple[str, Any], ...]) -> str:
    contents = {}
    for key, path in files:
        with path.open("rb") as file:
            contents[key] = [
                Path(path.name.removesuffix(".gz")).suffix,
                hashlib.file_digest(file, "sha256").hexdigest(),
            ]
    text = json.dumps([contents, options], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
