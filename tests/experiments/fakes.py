"""A classifier that answers at once, and experiments on the karate club that use it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from nodecopy._core.random import generator
from nodecopy.classify import Prediction, Trial
from nodecopy.experiments import config as toml
from nodecopy.experiments.spec import Column

TOML = """
title = "A fake"
task = "classify"
[protocol]
datasets = ["karate"]
labels = [1, 3]
trials = 6
validation = 4
test = 16
[methods.weak]
title = "Weak"
class = "tests.experiments.fakes.Fake"
settings = {{ skill = 0.3, pause = {pause}, log = "{log}" }}
[methods.strong]
title = "Strong"
class = "tests.experiments.fakes.Fake"
settings = {{ skill = 2.0, pause = {pause}, log = "{log}" }}
gain_over = ["weak"]
[methods.absent]
title = "Absent"
[published.karate]
weak = ["60.0±5.0", "70±4"]
strong = ["90.0±2.0", "95.0±1.0"]
absent = ["50.0±9.0", "51.0±9.0"]
"""


class Fake:
    """Random probabilities that lean towards the truth by ``skill``; writes what it was given to ``log``."""

    def __init__(self, *, skill: float = 1.0, pause: float = 0.0, log: str = "") -> None:
        self.skill, self.pause, self.log = skill, pause, log

    def fit_trials(self, trials: Sequence[Trial]) -> list[Prediction]:
        return [self._fit(trial) for trial in trials]

    def _fit(self, trial: Trial) -> Prediction:
        time.sleep(self.pause)
        labels = trial.graph.label_codes
        assert labels is not None
        logits = generator(trial.rng).normal(size=(trial.graph.n_nodes, len(np.unique(labels))))
        logits[np.arange(len(labels)), labels] += self.skill
        odds = np.exp(logits)
        seen = f"{trial.train.tolist()} {trial.graph.n_edges}"
        if self.log:
            # One system call, so that lines of several processes do not mix.
            with Path(self.log).open("ab", buffering=0) as file:
                file.write(f"{os.getpid()};{self.skill};{seen}\n".encode())
        probabilities = (odds / odds.sum(axis=1, keepdims=True)).astype(np.float32)
        return Prediction(probabilities, probabilities[:, 0], {"seen": seen, "count": np.int64(2)})


class KilledOnce(Fake):
    """Ends its process by SIGKILL, as the system does for lack of memory, the first time it is used."""

    def fit_trials(self, trials: Sequence[Trial]) -> list[Prediction]:
        with suppress(FileExistsError):
            Path(f"{self.log}-killed").touch(exist_ok=False)
            os.kill(os.getpid(), signal.SIGKILL)
        return super().fit_trials(trials)


class KilledAlways(Fake):
    """Ends its process by SIGKILL."""

    def fit_trials(self, trials: Sequence[Trial]) -> list[Prediction]:
        os.kill(os.getpid(), signal.SIGKILL)
        return []


NETWORK = """
[methods.own]
title = "A network of one's own"
class = "nodecopy.classify.BayesianGCN"
settings.base = { class = "nodecopy.classify.CustomNetwork", factory = "tests.experiments.fakes.build" }
"""


def build(n_features: int, n_classes: int) -> Any:
    return None


@cache
def load(name: str) -> Any:
    """Load an experiment of the package once."""
    return toml.load(name)


def make_experiment(*, pause: float = 0, log: str = "", text: str = TOML) -> Any:
    """Parse an experiment on the karate club."""
    return toml.parse(text.format(pause=pause, log=log), "fake", trust=True)


def column(score: str, **conditions: Any) -> Column:
    """Return a column that is equal to those of an experiment."""
    return Column(score, tuple(conditions.items()))
