"""Experiments: protocols with published numbers, a runner, a store of results and tables.

Read :mod:`~nodecopy.experiments.spec` for what an experiment is, :mod:`~nodecopy.experiments.toml` for how
a file is read, ``tasks/`` for what each task type computes (:mod:`~nodecopy.experiments.tasks.base` is the
contract), :mod:`~nodecopy.experiments.runner` and :mod:`~nodecopy.experiments.store` for how trials are run
and stored, and :mod:`~nodecopy.experiments.summary` and :mod:`~nodecopy.experiments.rendering` for how
tables are made of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodecopy._core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from nodecopy.experiments.observed_graph import ObservedGraph as ObservedGraph
    from nodecopy.experiments.runner import run as run
    from nodecopy.experiments.store import Store as Store
    from nodecopy.experiments.summary import summarise as summarise
    from nodecopy.experiments.tasks.base import Task as Task
    from nodecopy.experiments.toml import load as load

_MODULES = {
    "ObservedGraph": "observed_graph",
    "Store": "store",
    "Task": "tasks.base",
    "load": "toml",
    "run": "runner",
    "summarise": "summary",
}

__all__ = list(_MODULES)
__getattr__, __dir__ = lazy_exports(__name__, _MODULES)
