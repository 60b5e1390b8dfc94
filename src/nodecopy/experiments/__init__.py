"""Experiments: protocols with published numbers, a runner, a store of results and tables.

Read :mod:`~nodecopy.experiments.spec` for what an experiment is, :mod:`~nodecopy.experiments.config` for how
a file is read, ``tasks/`` for what each task type computes (:mod:`~nodecopy.experiments.tasks` is the
contract), :mod:`~nodecopy.experiments.runner` and :mod:`~nodecopy.experiments.store` for how trials are run
and stored, and :mod:`~nodecopy.experiments.summary` and :mod:`~nodecopy.experiments.rendering` for how
tables are made of them.
"""

from __future__ import annotations

from nodecopy._core.imports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
