"""The task types, by the name that a file gives as ``task``; :mod:`.base` is their contract."""

TASKS = {
    "classify": "nodecopy.experiments.tasks.classify_task.ClassifyTask",
    "uncertainty": "nodecopy.experiments.tasks.uncertainty_task.UncertaintyTask",
    "attack": "nodecopy.experiments.tasks.attack_task.AttackTask",
    "recommend": "nodecopy.experiments.tasks.recommend_task.RecommendTask",
    "public-split": "nodecopy.experiments.tasks.public_split_task.PublicSplitTask",
    "coverage": "nodecopy.experiments.tasks.coverage_task.CoverageTask",
    "level": "nodecopy.experiments.tasks.level_task.LevelTask",
    "generate": "nodecopy.experiments.tasks.generate_task.GenerateTask",
}
