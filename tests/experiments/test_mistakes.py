"""Mistakes in TOML files: one table of (file, what is replaced, by what, a fragment of the error)."""

from __future__ import annotations

import re

import pytest

from nodecopy.errors import InputError
from nodecopy.experiments import config
from tests.experiments import fakes, test_attacks, test_generation, test_recommendation, test_summary

FILES = {
    "fake": fakes.TOML.format(pause=0, log=""),
    "attack": test_attacks.TOML,
    "samples": test_generation.TOML,
    "books": test_recommendation.TOML,
    "splits": test_recommendation.PUBLIC_SPLIT_TOML,
    "net": f"{fakes.TOML.format(pause=0, log='')}{fakes.NETWORK}",
    "time": test_summary.TIMED.format(pause=0, log=""),
}
MISTAKES = [
    ("fake", "trials = 6", "trails = 6", "Did you mean trials or labels?"),
    ("fake", '"karate"', '"karate", "ml-100k"', "datasets of [protocol] must be one"),
    ("fake", "test = 16", 'test = 16\nscores = ["auc"]', "key of [protocol] must be one"),
    ("fake", 'title = "Weak"', 'title = "Weak"\nsearch = [{}]', "search of [methods.weak] must be left"),
    ("fake", "test = 16", 'test = 16\nlargest_component = ["cora"]', "of [protocol] must be one"),
    ("fake", "methods.absent", "methods.'a/b'", "name of a method must be of"),
    ("fake", '["weak"]', '["absent"]', "gain_over of [methods.strong] must be one"),
    ("fake", '"70±4"', "", "weak of [published.karate] must hold one"),
    ("fake", "published.karate", "published.cora", "dataset of [published] must be one"),
    ("fake", "[protocol]", "[protocol", "mine.toml must be valid"),
    ("fake", 'title = "A fake"', "", "mine.toml must have title"),
    ("fake", "tests.experiments.fakes.Fake", "nodecopy.recommend.EASE", "class of [methods.weak] must be a"),
    ("fake", "fakes.Fake", "fakes.Missing", "class of [methods.weak] must be importable"),
    ("fake", "skill = 0.3", "skil = 0.3", "Did you mean skill?"),
    ("fake", 'title = "Weak"', 'title = "Weak"\non.karate = { paus = 1 }', "Did you mean pause?"),
    ("fake", "skill = 0.3", "skill = { class = 3 }", "skill in [methods.weak] must have a"),
    ("fake", "test = 16", "test = 16\nvisible_validation = [4, 5]", "of [protocol] must be at"),
    ("fake", 'title = "Weak"', 'title = "Weak"\nconditions = { labels = [1, 2] }', "must be some"),
    ("fake", "skill = 0.3", 'skill = { class = "nodecopy.NodeCopying", use = "embeddings" }', "must be one"),
    ("fake", "skill = 0.3", 'skill = { class = "GCN" }', "skill in [methods.weak] must be importable"),
    ("net", "fakes.build", "fakes.bild", "factory of base in [methods.own] must be importable"),
    ("net", "fakes.build", "fakes.Fake", "factory of base in [methods.own] must be a function"),
    ("net", "fakes.build", "fakes.TOML", "factory of base in [methods.own] must be a function"),
    ("net", "fakes.build", "fakes.load", "must be a function of the numbers of features"),
    ("net", '"tests.experiments.fakes.build"', "3", "factory of base in [methods.own] must be a path"),
    ("time", "absent = 86573", "missing = 1", "published of [seconds] must be one of absent"),
    ("attack", "nodecopy.attacks.DICE", "nodecopy.classify.GCN", "class of [attacks.dice] must be an"),
    ("attack", "budget = 1.0", "budget = 2.0", "budget of [attacks.dice] must be an"),
    ("attack", "budget = 1.0", "budgets = [1, -1]", "each of budgets of [attacks.dice] must be an"),
    ("attack", "budget = 1.0", "budget = 1\nbudgets = [1]", "[attacks.dice] must have a"),
    ("attack", 'title = "no attack"', 'title = "none"\nbudgets = [1]', "of [attacks.none-1] must be left"),
    ("attack", "budget = 1.0", 'budgets = [1]\n[attacks.dice-1]\ntitle = "none"', "attacks must be unique"),
    ("samples", 'reference = "observed"', "", "[protocol] must have reference"),
    ("samples", 'title = "Near"', 'title = "Near"\ngain_over = ["far"]', "of [methods.near] must be left"),
    ("books", "test = 0.2", "test = 0.95", "validation and test of [protocol] must be above"),
    ("splits", '"gowalla"]', '"library"]', "datasets of [protocol] must have a"),
    ("splits", 'verdict_of = "ease"', 'verdict_of = "other"', "verdict_of of [protocol] must be one"),
]


@pytest.mark.parametrize(("file", "old", "new", "fragment"), MISTAKES)
def test_a_mistake_in_a_file_is_named(file: str, old: str, new: str, fragment: str) -> None:
    assert old in FILES[file]
    with pytest.raises(InputError, match=re.escape(fragment)):
        config.parse(FILES[file].replace(old, new, 1 if file == "samples" else -1), "mine", trust=True)
