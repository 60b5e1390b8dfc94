"""Experiments: protocols with published numbers, a runner, a store of results and tables.

The order of reading: :mod:`~nodecopy.experiments.config` says what an experiment is,
:mod:`~nodecopy.experiments.trials` what a trial draws, :mod:`~nodecopy.experiments.classifying`,
:mod:`~nodecopy.experiments.attacked`, :mod:`~nodecopy.experiments.recommending` and
:mod:`~nodecopy.experiments.sampling` solve trials,
:mod:`~nodecopy.experiments.runner` has that done where the :mod:`~nodecopy.experiments.store` lacks
something, and :mod:`~nodecopy.experiments.tables` makes tables of what it holds.
"""
