"""The task types, by the name that a file gives as ``task``; :mod:`.base` is their contract."""

from __future__ import annotations

from nodecopy._core.lookup import import_by_name
from nodecopy.experiments.tasks.base import Task

TASKS = {
    "classify": "nodecopy.experiments.tasks.node_classification.ClassifyTask",
    "attack": "nodecopy.experiments.tasks.robustness.AttackTask",
    "recommend": "nodecopy.experiments.tasks.recommendation.RecommendTask",
    "generate": "nodecopy.experiments.tasks.generation.GenerateTask",
}


def import_task(name: str, what: str) -> type[Task]:
    """Return the class of a task type; errors call the name ``what``."""
    task: type[Task] = import_by_name(name, TASKS, what)
    return task
