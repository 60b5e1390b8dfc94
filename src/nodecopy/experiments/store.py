"""Results on disk: one small file per trial, complete or not there at all.

    results/store/table2/cora/5/bgcn-copy/seed-0-1f2e3d4c5b6a/007.json

The last folder is named by the seed and the fingerprint of settings and protocol, so that changed settings
start a new folder. Files have a checksum: damaged ones count as missing. Each process locks its trials, which
saves work but is not needed: a trial has the same result in every process.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from nodecopy._core.files import atomic_write, check_file
from nodecopy.errors import InputError
from nodecopy.experiments.spec import Cell

if sys.platform != "win32":
    import fcntl

LOG = logging.getLogger(__name__)
Content = TypeVar("Content")
CHECKSUM, CHECKSUM_DIGITS = "checksum", 16
COPIED_FROM = "copied_from"  # key of the provenance of a trial that was copied from another cell
# What reading a damaged file may raise.
DAMAGE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
MAX_REASON = 200
_reported: set[Path] = set()  # damaged files about which a warning was given
ROUNDING = 1e-6
SHARES = (
    "accuracy others auc precision recall ndcg coverage covered warned rejected ece edge_overlap "
    "transitivity degree_gini average_clustering claw_share cross_community_share edge_entropy"
)
NOT_NEGATIVE = (
    "nll novelty ratio max_degree mean_degree n_components path_length power_law_exponent triangles seconds"
)
LIMITS = (  # of scores, by which damaged records are recognised
    dict.fromkeys(SHARES.split(), (0.0, 1.0))
    | dict.fromkeys(NOT_NEGATIVE.split(), (0.0, math.inf))
    | {"brier": (0.0, 2.0), "assortativity": (-1.0, 1.0), "bias": (-math.inf, math.inf)}
)


@dataclass(frozen=True)
class Record:
    """A finished trial: its number, scores in their own units, and its share of the time of its batch."""

    trial: int
    scores: dict[str, float]
    seconds: float
    details: dict[str, Any]
    provenance: dict[str, Any] = field(default_factory=dict)


class Store:
    """Finished trials below a folder; any number of processes may use one."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def path(self, cell: Cell, trial: int) -> Path:
        home = self.folder.joinpath(cell.experiment, *cell.folders, f"seed-{cell.seed}-{cell.fingerprint}")
        return home / f"{trial:03d}.json"

    def read(self, cell: Cell, trial: int) -> Record | None:
        return read_checked(self.path(cell, trial), lambda content: _read_record(content, cell, trial))

    def write(self, cell: Cell, record: Record) -> None:
        content = _address(cell, record.trial) | {"settings": dict(cell.settings)} | asdict(record)
        # NumPy's numbers and arrays among the details become plain ones.
        plain = json.loads(json.dumps(content, allow_nan=False, default=lambda value: value.tolist()))
        write_checked(self.path(cell, record.trial), plain)

    def read_finished(self, cell: Cell, trials: Iterable[int]) -> list[Record]:
        records = (self.read(cell, trial) for trial in trials)
        return [record for record in records if record is not None]

    def find_missing(self, cell: Cell, trials: Iterable[int]) -> list[int]:
        return [trial for trial in trials if self.read(cell, trial) is None]

    def remove(self, cell: Cell, trials: Iterable[int]) -> None:
        for trial in trials:
            shared = (self.folder / file for file in cell.task.shared_files(cell, trial))
            for path in (self.path(cell, trial), *shared):
                path.unlink(missing_ok=True)

    @contextmanager
    def claim(self, cell: Cell, trials: Sequence[int], *, wait: bool = False) -> Iterator[list[int]]:
        if sys.platform == "win32":  # no such locks: trials may be computed twice
            yield sorted(trials)
            return
        home = self.path(cell, 0).parent
        try:
            home.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise InputError(f"the store must be a folder; {self.folder} is or has a file.") from error
        (home / "locks").touch()
        with check_file(home / "locks").open("ab") as file:
            held = []
            for trial in sorted(trials):
                try:
                    fcntl.lockf(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), 1, trial)
                except (BlockingIOError, PermissionError):
                    continue
                held.append(trial)
            yield held  # closing the file releases them


def list_forms(records: Iterable[Record]) -> set[str]:
    """Return the digests of the data of trials; older trials have none."""
    digests = (record.provenance.get("data") for record in records)
    return {digest for digest in digests if digest is not None}


def check_score(score: str, value: object) -> float:
    """Check that a number is a possible value of a score, by the last known word of its name."""
    words = reversed(score.partition("@")[0].split())
    low, high = next((LIMITS[word] for word in words if word in LIMITS), (-math.inf, math.inf))
    if type(value) not in (int, float) or not isinstance(value, int | float):
        raise ValueError(f"{score} must be a number; got {value!r}")
    if not math.isfinite(value) or not low - ROUNDING <= value <= high + ROUNDING:
        raise ValueError(f"{score} must be finite and between {low:g} and {high:g}; got {value}")
    return float(value)


def write_checked(path: Path, content: dict[str, Any]) -> None:
    """Write plain values as JSON with a checksum; the file is complete or not there."""
    text = json.dumps(content | {CHECKSUM: _checksum(content)}, indent=1) + "\n"
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def read_checked(path: Path, parse: Callable[[dict[str, Any]], Content]) -> Content | None:
    """Return what ``parse`` makes of a checked file; ``None`` if it is missing or damaged."""
    if not path.exists():
        return None
    file = check_file(path)
    try:
        content = json.loads(file.read_bytes())
        if not isinstance(content, dict):
            raise ValueError("it must be a JSON object")
        if content.pop(CHECKSUM, None) not in (None, _checksum(content)):
            raise ValueError("its content has another checksum")
        return parse(content)
    except FileNotFoundError:  # removed by another process since then
        return None
    except DAMAGE as error:
        if path not in _reported:
            _reported.add(path)
            reason = str(error)[:MAX_REASON] or repr(error)
            LOG.warning("%s is damaged and counts as missing: %s", path, reason)
        return None


def _read_record(content: dict[str, Any], cell: Cell, trial: int) -> Record:
    address = _address(cell, trial)
    if unknown := set(content) - {*address, "settings", *(entry.name for entry in fields(Record))}:
        raise ValueError(f"it must not have the key {min(unknown)!r}")
    for key, value in address.items():
        if content[key] != value or isinstance(content[key], bool) != isinstance(value, bool):
            raise ValueError(f"{key} must be {value!r}; got {content[key]!r}")
    scores = {key: check_score(key, value) for key, value in content["scores"].items()}
    if cell.task.main_score not in scores:
        raise ValueError(f"it must have the score {cell.task.main_score}")
    details, provenance = content["details"], content["provenance"]
    for key, values in details.get("samples", {}).items():
        details["samples"][key] = [check_score(key, value) for value in values]
    return Record(trial, scores, check_score("seconds", content["seconds"]), details, dict(provenance))


def _checksum(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:CHECKSUM_DIGITS]


def _address(cell: Cell, trial: int) -> dict[str, Any]:
    place = {"experiment": cell.experiment, "dataset": cell.dataset, **cell.conditions, "method": cell.method}
    return {**place, "seed": cell.seed, "fingerprint": cell.fingerprint, "trial": trial}
