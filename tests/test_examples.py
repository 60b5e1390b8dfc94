"""Examples run as written, and the classes of "Write your own" pass the contracts of their families."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from examples.own.attack import LinkToRarestClass
from examples.own.classifier import RandomWalkClassifier
from examples.own.donor_rule import SameDegree
from examples.own.graph_model import Rewired
from examples.own.recommender import CoOccurrence
from nodecopy import NodeCopying, datasets
from nodecopy.classify import BayesianGCN
from tests.contracts.attacks import AttackContract
from tests.contracts.classifiers import ClassifierContract
from tests.contracts.graph_models import GraphModelContract
from tests.contracts.recommenders import RecommenderContract

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


class TestGraphModel(GraphModelContract):
    models = (Rewired(0.5),)


class TestClassifier(ClassifierContract):
    needs_features = predicts_other_graphs = is_random = False
    classifiers = (RandomWalkClassifier(),)


class TestAttack(AttackContract):
    needs_features = False
    attack = LinkToRarestClass()


class TestRecommender(RecommenderContract):
    classes = (CoOccurrence,)
    recommenders = (CoOccurrence(),)


def test_a_graph_model_of_ones_own_serves_the_bayesian_gcn() -> None:
    club = datasets.load("karate").replace(features=np.eye(34))
    fitted = BayesianGCN(Rewired(0.05), n_graphs=3).fit(club, [0, 33], rng=0)
    assert fitted.score() > 0.8
    assert fitted.uncertainty().epistemic.max() > 0


def test_a_donor_rule_of_ones_own_serves_node_copying() -> None:
    club = datasets.load("karate")
    model = NodeCopying(SameDegree(), symmetrise="none").fit(club)
    node, donor = model.distribution_.probabilities().nonzero()
    np.testing.assert_array_equal(club.degrees[node], club.degrees[donor])
    np.testing.assert_array_equal(model.sample(rng=0).adjacency.sum(axis=1), club.degrees)


def test_the_page_shows_every_example() -> None:
    page = (ROOT / "docs" / "write_your_own.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"literalinclude} \.\./examples/own/(\w+)\.py", page))
    assert shown == {path.stem for path in (ROOT / "examples" / "own").glob("*.py")}


def test_the_gallery_shows_every_example() -> None:
    order = (ROOT / "docs" / "conf.py").read_text(encoding="utf-8")
    assert len(EXAMPLES) >= 7
    assert all(f'"{example.stem}"' in order for example in EXAMPLES)


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: str(example.stem))
def test_an_example_runs(example: Path) -> None:
    command = [sys.executable, str(example)]
    environment = os.environ | {"MPLBACKEND": "Agg"}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout


@pytest.mark.slow
def test_the_notebook_runs_from_top_to_bottom_and_holds_no_output() -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    notebook = nbformat.read(ROOT / "examples" / "tour.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    assert any(cell.get("outputs") for cell in notebook.cells)
