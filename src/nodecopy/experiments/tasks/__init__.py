"""The contract of tasks: the protocol of trials, their data, how they are solved, and the columns."""

from __future__ import annotations

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import sparse

from nodecopy import datasets
from nodecopy._core.imports import check_name
from nodecopy.errors import InputError
from nodecopy.experiments.spec import Cell, Column, Published, as_reader, key, read_section, rounding_error
from nodecopy.experiments.store import Record, Store
from nodecopy.graph import Graph
from nodecopy.io import FeatureEncoder, read_graph, read_interactions

TASKS = {  # by the name that a file gives as ``task``
    "classify": "nodecopy.experiments.tasks.classify.ClassifyTask",
    "uncertainty": "nodecopy.experiments.tasks.classify.UncertaintyTask",
    "attack": "nodecopy.experiments.tasks.attack.AttackTask",
    "recommend": "nodecopy.experiments.tasks.recommend.RecommendTask",
    "public-split": "nodecopy.experiments.tasks.recommend.PublicSplitTask",
    "coverage": "nodecopy.experiments.tasks.coverage.CoverageTask",
    "level": "nodecopy.experiments.tasks.coverage.LevelTask",
    "generate": "nodecopy.experiments.tasks.generate.GenerateTask",
}
MEAN_AND_STD = r"(\d+(?:\.\d+)?)\s*±\s*(\d+(?:\.\d+)?)"
NUMBER = r"\d+(?:\.(\d+))?(?:e(\d+))?"  # with its digits and its exponent
BEST_NOTE = (
    "Bold: the best method. Asterisk: better than the second best by the Wilcoxon signed-rank test at 5 %."
)
VERDICT_NOTE = (
    "Verdict: level where ours and the paper's mean differ by at most two standard errors of the difference "
    "plus {} (the paper's rounding); otherwise {} by the difference."
)


class FileKind(NamedTuple):
    """The keys that name files, the function that reads them, and the function with its options."""

    required: tuple[str, ...]
    optional: tuple[str, ...]
    read: Callable[..., Any]
    reader: Callable[..., Any]


FILE_KINDS = {
    "interactions": FileKind(("interactions",), (), read_interactions, read_interactions),
    "split": FileKind(("train", "test"), ("validation",), datasets.read_split, read_interactions),
    "graph": FileKind(("edges",), ("labels", "features"), read_graph, read_graph),
}


@lru_cache(maxsize=1)
def load_data(dataset: str | FileDataset, largest_component: bool = False) -> Any:
    """Load a dataset, which is kept in memory until another is loaded."""
    if isinstance(dataset, FileDataset):
        return dataset.load(largest_component)
    return datasets.load(dataset, largest_component=largest_component)


@lru_cache
def digest_dataset(dataset: str, largest_component: bool = False) -> str:
    """Return a digest of the nodes, edges, labels and features of a graph."""
    graph = load_data(dataset, largest_component)
    parts = hashlib.sha256(f"{graph.n_nodes} {graph.directed}".encode())
    for part in (graph.rows.indptr, graph.rows.indices, graph.rows.weights, graph.label_codes):
        parts.update(b"-" if part is None else np.ascontiguousarray(part, np.float64).tobytes())
    parts.update("\n".join(map(str, graph.node_ids.tolist())).encode())
    digest = hashlib.sha256(parts.hexdigest()[:16].encode())
    if graph.features is not None:
        features = sparse.csr_array(graph.features)
        for part in (features.indptr, features.indices, features.data):
            digest.update(np.ascontiguousarray(part, np.float64).tobytes())
    return digest.hexdigest()[:12]


@dataclass(frozen=True)
class FileDataset:
    """A graph, interactions or a split in files."""

    name: str
    kind: str
    files: tuple[tuple[str, Path], ...]
    options: tuple[tuple[str, Any], ...]
    fingerprint: str

    def load(self, largest_component: bool = False) -> Any:
        if fingerprint_files(self.files, self.options) != self.fingerprint:
            raise InputError(f"files of the dataset {self.name} must not change while an experiment runs.")
        (_, path), *others = self.files
        options = dict(self.options)
        if "ignore_columns" in options:
            options["encoder"] = FeatureEncoder(options.pop("ignore_columns"))
        data = FILE_KINDS[self.kind].read(path, **dict(others), **options)
        return data.largest_component() if largest_component and isinstance(data, Graph) else data


def fingerprint_files(files: tuple[tuple[str, Path], ...], options: tuple[tuple[str, Any], ...]) -> str:
    """Return a digest of the contents of files, with their suffixes, and of options."""
    contents = {}
    for name, path in files:
        with path.open("rb") as file:
            suffix = Path(path.name.removesuffix(".gz")).suffix
            contents[name] = [suffix, hashlib.file_digest(file, "sha256").hexdigest()]
    return hashlib.sha256(json.dumps([contents, options], sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Task(ABC):
    """What the trials of an experiment are; its fields are the keys of the section ``[protocol]``.

    Subclasses have a :attr:`main_score`, define :attr:`columns`, :meth:`solve` and :meth:`notes`, and
    override other defaults.
    """

    datasets: tuple[str, ...] = key(["text"])
    trials: int = key("count")
    largest_component: tuple[str, ...] = key(  # datasets of which only the largest component is used
        lambda value, where: () if value == [] else as_reader(["text"])(value, where), default=()
    )
    own_datasets: tuple[FileDataset, ...] = ()  # datasets in files of the user
    reference: str = ""  # the row to which the others should be near; empty where higher is better
    verdict_of: str = ""  # the method compared with the published numbers of methods that are not run

    main_score: ClassVar[str]  # a score that every finished trial has
    protocol_fields: ClassVar[tuple[str, ...]] = ()  # further fields that the data of a trial depend on
    result_fields: ClassVar[tuple[str, ...]] = ()  # further fields that results depend on
    family: ClassVar[str] = ""  # what the class of a method must be, in errors
    family_methods: ClassVar[tuple[str, ...]] = ()  # methods that the class of a method must have
    sections: ClassVar[tuple[str, ...]] = ("protocol",)  # that the task reads
    data_kind: ClassVar[str] = "graph"  # the kind of datasets: ``"graph"`` or ``"interactions"``
    file_kind: ClassVar[str] = ""  # the kind of datasets in files where it is not ``data_kind``
    digits: ClassVar[int | None] = 1  # digits after the decimal point; ``None``: three significant ones
    filters: ClassVar[tuple[str, ...]] = ("datasets",)  # fields by which an experiment can be narrowed
    unused_keys: ClassVar[tuple[str, ...]] = ("search",)  # keys of [methods.x] that mean nothing to the task
    allowed_uses: ClassVar[tuple[str, ...]] = ()  # values that ``use`` may have in an object among settings
    extra_scores: ClassVar[tuple[str, ...]] = ()  # scores whose means are listed beside every column
    published_by: ClassVar[str] = "paper"  # heading of the published numbers
    published_examples: ClassVar[str] = "'70.0±3.7'"  # with or without deviations
    has_fixed_split: ClassVar[bool] = False  # then a single trial has a verdict
    picture: ClassVar[str] = ""  # what is drawn of the results: ``"samples"``, ``"coverage"`` or nothing
    is_batched: ClassVar[bool] = False  # if not, all methods solve one trial after another and share fits

    @classmethod
    def read(cls, sections: Mapping[str, Any], **others: Any) -> Self:
        task = read_section(cls, sections["protocol"], "[protocol]", **others)
        task.check()
        return task

    def check(self) -> None:
        kind = self.file_kind or self.data_kind
        for own in self.own_datasets:
            if own.kind != kind:
                wanted, got = " and ".join(FILE_KINDS[kind].required), own.files[0][0]
                raise InputError(f"{own.name} of datasets of [protocol] must have {wanted}; it has {got}.")
        allowed = [name for name in datasets.names() if datasets.describe(name).kind == self.data_kind]
        allowed += [own.name for own in self.own_datasets]
        for name in self.datasets:
            check_name(name, allowed, "datasets of [protocol]")
        for name in self.largest_component:
            check_name(name, self.datasets, "largest_component of [protocol]")
        if self.largest_component and self.data_kind != "graph":
            raise InputError("largest_component of [protocol] must be left out: interactions have none.")

    def read_published(self, entry: Any, where: str) -> Published:
        has_deviation = "±" in self.published_examples
        form = MEAN_AND_STD if has_deviation else NUMBER
        printed = re.fullmatch(form, entry) if isinstance(entry, str) else None
        if printed is None:
            examples = self.published_examples
            raise InputError(f"{where} must hold entries such as {examples} or '-'; got {entry!r}.")
        if has_deviation:
            return Published(*map(float, printed.groups()))
        digits, exponent = len(printed[1] or ""), int(printed[2] or 0)
        return Published(float(entry), None, rounding_error(digits - exponent))

    @property
    def conditions(self) -> tuple[dict[str, Any], ...]:
        return ({},)

    @property
    @abstractmethod
    def columns(self) -> tuple[Column, ...]:
        """Columns of a dataset's table."""

    def load(self, cell: Cell) -> Any:
        return load_data(self.find_own(cell) or cell.dataset, cell.dataset in self.largest_component)

    def log_decisions(self, cell: Cell) -> None:
        if self.find_own(cell) is not None:
            self.load(cell)

    def find_own(self, cell: Cell) -> FileDataset | None:
        return next((own for own in self.own_datasets if own.name == cell.dataset), None)

    def digest_data(self, cell: Cell) -> str:
        is_public = cell.dataset in datasets.names() and self.data_kind == "graph"
        return digest_dataset(cell.dataset, cell.dataset in self.largest_component) if is_public else ""

    def protocol(self, cell: Cell) -> dict[str, Any]:
        """Return everything that the data of a cell's trials depend on, by name."""
        own = {name: getattr(self, name) for name in self.protocol_fields}
        if "largest_component" in own:
            own["largest_component"] = cell.dataset in self.largest_component
        files = self.find_own(cell)
        return own if files is None else {**own, "files": files.fingerprint}

    def fingerprint_extras(self) -> dict[str, Any]:
        """Return what else results depend on, by name."""
        extras = {name: getattr(self, name) for name in self.result_fields}
        return extras | ({"scores": sorted(extras["scores"])} if "scores" in extras else {})

    def shared_files(self, cell: Cell, trial: int) -> tuple[str, ...]:
        return ()

    @abstractmethod
    def solve(self, cell: Cell, trials: Sequence[int], store: Store, device: str) -> Iterator[Record]:
        """Yield the records of trials of a cell, each as soon as it is finished."""

    @abstractmethod
    def notes(self, titles: Mapping[str, str]) -> list[str]:
        """Return how to read the table; ``titles`` are the titles of methods."""

    def notes_on_paper(self) -> list[str]:
        return [VERDICT_NOTE.format(f"{rounding_error(self.digits or 0):g}", "ahead or behind")]
