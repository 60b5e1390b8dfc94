"""The tasks links and denoise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodecopy import Graph, datasets
from nodecopy.experiments import config as toml
from nodecopy.experiments import rendering
from nodecopy.experiments.rendering import summarise
from nodecopy.experiments.runner import run
from nodecopy.experiments.store import Store
from nodecopy.experiments.tasks.links import (
    AutoencoderControl,
    NetworkControl,
    SignalControl,
    compare_scores,
    corrupt,
    plant_edges,
)
from nodecopy.generators import VGAE, split_edges
from nodecopy.links import LinkPredictor
from nodecopy.metrics.classification import area_under_roc

KARATE = datasets.load("karate")
LINKS = """
title = "Links"
task = "links"
[protocol]
datasets = ["karate"]
validation = 0.05
test = 0.1
planted = 0.1
trials = 2
[methods.adamic-adar]
title = "Adamic-Adar"
class = "nodecopy.experiments.tasks.links.SignalControl"
[methods.default]
title = "LinkPredictor()"
class = "nodecopy.links.LinkPredictor"
settings = { n_donors = 20 }
gain_over = ["adamic-adar"]
"""
DENOISE = """
title = "Denoise"
task = "denoise"
[protocol]
datasets = ["karate"]
labels = 4
validation = 4
test = 10
shares = [30]
trials = 1
[methods.label-propagation]
title = "label propagation"
class = "nodecopy.classify.LabelPropagation"
[methods.denoised]
title = "denoised"
class = "nodecopy.experiments.tasks.links.Denoised"
settings = { base = { class = "nodecopy.classify.LabelPropagation" }, remove = 0.2 }
"""


@pytest.mark.filterwarnings("ignore:no label reaches")
@pytest.mark.parametrize(("text", "head"), [(LINKS, "Hits@20"), (DENOISE, "30 % edges removed")])
def test_every_cell_is_computed(text: str, head: str, tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(text)
    experiment, store = toml.load(str(path)), Store(tmp_path / "store")
    run(experiment, store, seed=0, workers=1)
    table = rendering.render_markdown(summarise(experiment, store, seed=0))
    assert head in table
    assert " - |" not in table.partition("gain")[0]


@pytest.mark.parametrize("signal", ["common-neighbours", "adamic-adar", "katz", "pagerank", "copied-one"])
def test_controls_rank_edges_of_a_clique_before_others(signal: str) -> None:
    first, second = np.triu_indices(8, 1)
    cliques = Graph.from_edges([*first, *first + 8, 0], [*second, *second + 8, 15])
    model = SignalControl(signal, n_donors=5).fit(cliques, rng=0)
    inside, across = model.score(np.array([[1, 2], [1, 12]]))
    assert inside > across
    assert np.argmin(model.edge_probabilities()) == 7  # (0, 15), after the other edges of node 0


def test_pagerank_is_the_sum_over_walks() -> None:
    A = KARATE.adjacency.toarray().astype(float)
    W = A / np.sqrt(np.outer(A.sum(0), A.sum(1)))
    expected: Any = sum(0.8**t * np.linalg.matrix_power(W, t) for t in range(1, 16))
    pairs = np.argwhere(np.ones((34, 34)))
    scores = SignalControl("pagerank").fit(KARATE).score(pairs)
    assert np.allclose(scores, expected.ravel())


@pytest.mark.parametrize(
    "model",
    [
        SignalControl("spectral"),
        SignalControl("block-model"),
        AutoencoderControl(VGAE(n_epochs=50)),
        NetworkControl(n_hidden=16, n_epochs=50),
    ],
    ids=["spectral", "blocks", "vgae", "gcn"],
)
def test_trained_controls_learn_the_edges(model: Any) -> None:
    draws = np.random.default_rng(0)
    labels = np.arange(60) % 3
    dense = np.triu(draws.random((60, 60)) < np.where(labels[:, None] == labels, 0.5, 0.02), 1)
    pairs = np.argwhere(np.triu(np.ones((60, 60)), 1))
    scores = model.fit(Graph(dense), rng=0).score(pairs)
    assert area_under_roc(scores, labels[pairs[:, 0]] == labels[pairs[:, 1]]) > 0.7


def test_average_precision_counts_ties_as_one_group() -> None:
    assert compare_scores(np.array([3.0, 1.0]), np.array([2.0, 0.0])) == pytest.approx(
        {"auc": 0.75, "ap": 5 / 6}
    )
    assert compare_scores(np.array([1.0, 1.0]), np.array([1.0, 1.0])) == {"auc": 0.5, "ap": 0.5}


def test_hard_pairs_share_an_end_and_are_no_edges() -> None:
    split = split_edges(KARATE, rng=0)
    pairs = corrupt(KARATE, split.train, split.test.edges.T, True, np.random.default_rng(0))
    dense = KARATE.adjacency.toarray()
    assert not dense[pairs[..., 0], pairs[..., 1]].any()
    ends = split.test.edges.T[:, None, :, None]
    assert (pairs[:, :, None, :] == ends).any(axis=(2, 3)).all()


@pytest.mark.parametrize("kind", ["random", "similar", "dice"])
def test_planted_edges_are_new(kind: str) -> None:
    noisy, is_planted = plant_edges(KARATE, 0.1, kind, np.random.default_rng(0))
    assert is_planted.sum() == 8
    assert len(is_planted) == noisy.n_edges
    assert len(LinkPredictor().fit(noisy, rng=0).edge_probabilities()) == noisy.n_edges
