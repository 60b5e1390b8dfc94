"""The task types, by the name that a file gives as ``task``; :mod:`.base` is their contract."""

TASKS = {
    "classify": "nodecopy.experiments.tasks.classify.ClassifyTask",
    "uncertainty": "nodecopy.experiments.tasks.uncertainty.UncertaintyTask",
    "attack": "nodecopy.experiments.tasks.attack.AttackTask",
    "recommend": "nodecopy.experiments.tasks.recommend.RecommendTask",
    "public-split": "nodecopy.experiments.tasks.recommend.PublicSplitTask",
    "coverage": "nodecopy.experiments.tasks.coverage.CoverageTask",
    "level": "nodecopy.experiments.tasks.coverage.LevelTask",
    "generate": "nodecopy.experiments.tasks.generate.GenerateTask",
}
