"""Results on disk: one small file per trial, there whole or not at all.

    results/store/table2/cora/5/bgcn-copy/seed-0-1f2e3d4c5b6a/007.json

The last folder carries the seed and the fingerprint of settings and protocol, so changed settings start
anew and the old results stay. A file gets its name only when it is complete: a kill at any moment loses
the trials under way, nothing else. What two processes compute twice is the same, so either may write
last; to save the work, each locks the trials it has under way, and the system drops the locks of a
process that dies.
"""

from __future__ import annotations

import json
import logging
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodecopy._core.atomic_files import atomic_write
from nodecopy.errors import InputError
from nodecopy.experiments.spec import Cell

if sys.platform != "win32":
    import fcntl

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Record:
    """What is kept of a finished trial.

    ``scores`` are those of :func:`nodecopy.metrics.classification.scores` on the judged nodes, or of
    :func:`nodecopy.metrics.ranking.evaluate` on the test interactions, and what else columns may show;
    ``seconds`` is the trial's share of its batch; ``details`` is what the method tells of itself;
    ``provenance`` holds commit, versions, machine and time.
    """

    trial: int
    scores: dict[str, float]
    seconds: float
    details: dict[str, Any]
    provenance: dict[str, Any]


@dataclass(frozen=True)
class Store:
    """Finished trials below a folder; any number of processes may use one."""

    folder: Path

    def path(self, cell: Cell, trial: int) -> Path:
        """Where a trial is kept."""
        return self._home(cell) / f"{trial:03d}.json"

    def flips(self, cell: Cell, trial: int) -> Path:
        """Where the attack of a trial is kept, which all methods of all experiments share."""
        *place, _ = cell.folders
        home = self.folder.joinpath("flips", *place, f"seed-{cell.seed}-{cell.attack_fingerprint}")
        return home / f"{trial:03d}.npz"

    def read(self, cell: Cell, trial: int) -> Record | None:
        """A finished trial; ``None`` if it is not there, or damaged, which is logged."""
        path = self.path(cell, trial)
        try:
            content = json.loads(path.read_bytes())
            return _record(content, _address(cell, trial), cell.main_score)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (ValueError, KeyError, TypeError) as error:
            LOG.warning("%s is damaged and counts as missing: %s", path, str(error) or repr(error))
            return None

    def write(self, cell: Cell, record: Record) -> None:
        """Keep a finished trial."""
        content = _address(cell, record.trial) | {
            "settings": dict(cell.settings),
            "scores": record.scores,
            "seconds": record.seconds,
            "details": record.details,
            "provenance": record.provenance,
        }
        # NumPy's numbers and arrays among the details become plain ones.
        text = json.dumps(content, indent=1, allow_nan=False, default=lambda value: value.tolist())
        with atomic_write(self.path(cell, record.trial)) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")

    def records(self, cell: Cell, trials: Iterable[int]) -> list[Record]:
        """Those of the trials that are finished."""
        found = (self.read(cell, trial) for trial in trials)
        return [record for record in found if record is not None]

    def missing(self, cell: Cell, trials: Iterable[int]) -> list[int]:
        """Those of the trials that are not finished."""
        return [trial for trial in trials if self.read(cell, trial) is None]

    def forget(self, cell: Cell, trials: Iterable[int]) -> None:
        """Remove trials, with the flips of their attack, so that they are computed again."""
        for trial in trials:
            self.path(cell, trial).unlink(missing_ok=True)
            if cell.attack:
                self.flips(cell, trial).unlink(missing_ok=True)

    @contextmanager
    def claim(self, cell: Cell, trials: Sequence[int], *, wait: bool = False) -> Iterator[list[int]]:
        """Hold trials that no other process has under way, and yield which; with ``wait``, all of them.

        A lock is one byte, the trial's, in a file that all processes open; trials are taken in
        ascending order, so that two processes never wait for each other.
        """
        if sys.platform == "win32":  # no such locks: trials may be computed twice, to the same result
            yield sorted(trials)
            return
        home = self._home(cell)
        try:
            home.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise InputError(f"the store must be a folder; {self.folder} has a file in its way.") from error
        with (home / "locks").open("ab") as file:
            held = []
            for trial in sorted(trials):
                try:
                    fcntl.lockf(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), 1, trial)
                except (BlockingIOError, PermissionError):
                    continue
                held.append(trial)
            yield held  # closing the file lets go of them

    def _home(self, cell: Cell) -> Path:
        return self.folder.joinpath(cell.experiment, *cell.folders, f"seed-{cell.seed}-{cell.fingerprint}")


def _address(cell: Cell, trial: int) -> dict[str, Any]:
    return {
        "experiment": cell.experiment,
        "dataset": cell.dataset,
        **({"labels": cell.labels} if cell.labels else {}),
        **({"attack": cell.attack} if cell.attack else {}),
        "method": cell.method,
        "seed": cell.seed,
        "fingerprint": cell.fingerprint,
        "trial": trial,
    }


def _record(content: dict[str, Any], address: dict[str, Any], needed: str) -> Record:
    """What a file holds, after a look at whether it is what its path says."""
    for key, value in address.items():
        if content[key] != value:
            raise ValueError(f"{key} must be {value!r}; got {content[key]!r}")
    scores = {key: float(number) for key, number in content["scores"].items()}
    for key, number in (scores | {needed: scores[needed], "seconds": content["seconds"]}).items():
        if not math.isfinite(number):
            raise ValueError(f"{key} must be finite; got {number}")
    return Record(
        address["trial"],
        scores,
        float(content["seconds"]),
        dict(content["details"]),
        dict(content["provenance"]),
    )
