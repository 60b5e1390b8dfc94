"""The task types, by the name that a file gives as ``task``; :mod:`.base` is their contract."""

TASKS = {
    "classify": "nodecopy.experiments.tasks.node_classification.ClassifyTask",
    "attack": "nodecopy.experiments.tasks.robustness.AttackTask",
    "recommend": "nodecopy.experiments.tasks.recommendation.RecommendTask",
    "generate": "nodecopy.experiments.tasks.generation.GenerateTask",
}
