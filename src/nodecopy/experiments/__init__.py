"""Experiments: protocols with published numbers, a runner, a store of results and tables.

Read :mod:`~nodecopy.experiments.spec` for what an experiment is, :mod:`~nodecopy.experiments.toml` for how a
file is read, ``tasks/`` for what each task type computes, :mod:`~nodecopy.experiments.runner` and
:mod:`~nodecopy.experiments.store` for how trials are run and kept, and :mod:`~nodecopy.experiments.summary`
and :mod:`~nodecopy.experiments.rendering` for how tables are made of them.
"""
