"""Completion of names in the shell: datasets, experiments and what is in them, statistics, models."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from importlib.resources import files
from typing import Any

import typer

Complete = Callable[..., list[str]]


def complete_among(list_names: Callable[[], Iterable[str]]) -> Complete:
    """Return a completion among names that are listed when it is asked for."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in list_names() if name.startswith(incomplete)]

    return complete


def _list_datasets() -> Iterable[str]:
    from nodecopy import datasets

    return datasets.names()


def _list_interactions() -> Iterable[str]:
    from nodecopy import datasets

    return [name for name in datasets.names() if datasets.describe(name).kind == "interactions"]


def _list_experiments() -> Iterable[str]:
    from nodecopy.experiments import toml

    return toml.names()


complete_dataset = complete_among(_list_datasets)
complete_interactions = complete_among(_list_interactions)
complete_experiment = complete_among(_list_experiments)
complete_device = complete_among(lambda: ("cpu", "cuda"))


def complete_part(kind: str) -> Complete:
    """Return a completion of the last of several names with commas between: parts of the experiment.

    ``kind`` is "datasets", "methods" or "attacks".
    """

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        names = set(_list_experiments())
        words = [ctx.params.get("experiment"), *ctx.args]  # arguments before an unfinished option
        name = next((word for word in words if word in names), None)
        before, comma, last = incomplete.rpartition(",")
        return [before + comma + part for part in _list_parts(name, kind) if part.startswith(last)]

    return complete


def _list_parts(experiment: str | None, kind: str) -> Iterable[str]:
    """Return the names of the parts of an experiment, without importing its methods."""
    while experiment is not None:
        path = files("nodecopy.experiments") / "configs" / f"{experiment}.toml"
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        if parts := content.get(kind) or content.get("protocol", {}).get(kind):
            return _list_attacks(parts) if kind == "attacks" else list(parts)
        experiment = content.get("base")
    return []


def _list_attacks(sections: dict[str, Any]) -> list[str]:
    """Return the names of attacks, with their budgets."""
    from nodecopy.experiments.sections import expand_budgets  # here, since it imports NumPy

    return list(expand_budgets(sections))
