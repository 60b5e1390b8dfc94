"""Experiments: protocols with published numbers, a runner, a store of results and tables.

The order of reading: :mod:`~nodecopy.experiments.config` says what an experiment is,
:mod:`~nodecopy.experiments.runner` computes its trials, :mod:`~nodecopy.experiments.store` keeps them and
:mod:`~nodecopy.experiments.tables` makes tables of them.
"""
