from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from nodecopy._core.random import seed_sequence
from nodecopy.classify import APPNP, GCN, SBMGCN, Trial
from nodecopy.classify.networks import TrainingBatch
from nodecopy.classify.sbm_gcn import GenerativeBatch, GenerativeObjective
from nodecopy.errors import InputError
from nodecopy.nn.networks import Networks, SparseStack
from nodecopy.nn.training import LabelledNodes, Targets
from tests.contracts.classifiers import ClassifierContract, planted_graph


class TestSBMGCN(ClassifierContract):
    base = GCN(preset="g3nn", n_hidden=16, n_epochs=30, patience=10, learning_rate=0.03)
    classifiers = (SBMGCN(objective="paper", base=base), SBMGCN(objective="authors", base=base))


def test_wrong_base() -> None:
    base: Any = APPNP()
    with pytest.raises(InputError, match=r"base of SBMGCN must be GCN\(\); got APPNP\(\)"):
        SBMGCN(base=base).fit(planted_graph(), [0, 1, 2], validation=[3, 4])


@pytest.mark.parametrize(("share", "kind"), [(0.1, "rows"), (0.35, "unit"), (1.0, "standardise")])
def test_sparse_word_counts_are_scaled_to_sums_of_one(share: float, kind: str) -> None:
    """``share`` of the counts are not zero; with all of them, they are not word counts."""
    features = (np.random.default_rng(0).random((60, 40)) < share).astype(float)
    trial = Trial(planted_graph().replace(features=features), [0, 1, 2], [3, 4])
    assert SBMGCN().build_batch([trial]).feature_scaling.kind == kind
    assert GCN().build_batch([trial]).feature_scaling.kind == {"rows": "unit"}.get(kind, kind)


@pytest.mark.parametrize("objective", ["paper", "authors"])
def test_losses_against_loops_over_edges_and_pairs(objective: str) -> None:
    graph, classifier = planted_graph(), SBMGCN(objective=objective)
    train = np.array([0, 1, 2, 5])
    trial = Trial(graph, train, np.array([7]), 0)
    batch = GenerativeBatch(classifier, GCN(preset="g3nn", dropout=0.0), [trial])
    features, device = SparseStack([batch.engine.features], torch.device("cpu")), torch.device("cpu")
    posterior = Networks.initialise(batch.engine.config, features, 3, [seed_sequence(1)])
    codes = trial.codes[train]
    targets = Targets([LabelledNodes(train, codes)], device)
    goal = GenerativeObjective(batch, batch.observed, [seed_sequence(2)], posterior, targets)
    with torch.no_grad():
        loss = goal.losses(0).item()
        q, p = (
            logits[0].double().softmax(dim=1).numpy()
            for logits in (posterior.logits(goal.graphs, None, None), goal.prior.logits(None, None, None))
        )
    labels = dict(zip(train.tolist(), codes.tolist(), strict=True))
    source = q if objective == "paper" else p
    clamped = [np.eye(3)[labels[i]] if i in labels else source[i] for i in range(60)]
    first, second = graph.adjacency.nonzero()
    edges = np.mean([clamped[i] @ clamped[j] for i, j in zip(first, second, strict=True)])
    pairs = np.mean([clamped[i] @ clamped[j] for i in range(60) for j in range(60)])
    edge_loss = -edges * math.log(0.9 / 0.1) - pairs * math.log(0.1 / 0.9)
    unlabelled = [i for i in range(60) if i not in labels]
    cross_entropy = np.mean([-(q[i] @ np.log(p[i])) for i in unlabelled])
    entropy = np.mean([-(q[i] @ np.log(q[i])) for i in unlabelled])
    labelled_loss = np.mean([-np.log(p[i, k]) - np.log(q[i, k]) for i, k in labels.items()])
    if objective == "paper":
        unlabelled_loss = edge_loss + cross_entropy - entropy
    else:
        unlabelled_loss = (edge_loss + cross_entropy + entropy) / 3
    assert loss == pytest.approx(unlabelled_loss + labelled_loss, rel=1e-4)


def test_both_networks_are_trained() -> None:
    """The prior's weights are trained with the posterior's, all with weight decay."""
    trial, base = Trial(planted_graph(), [0, 1, 2], rng=0), GCN(preset="g3nn", n_epochs=2, patience=0)
    batch = GenerativeBatch(SBMGCN(), base, [trial])
    objectives: list[GenerativeObjective] = []
    before: list[torch.Tensor] = []

    def build_objective(posterior: Networks, targets: Targets) -> GenerativeObjective:
        seeds = [seed_sequence(1)]
        objectives.append(GenerativeObjective(batch, batch.observed, seeds, posterior, targets))
        before.extend(weight.detach().clone() for weight in objectives[0].prior.weights)
        return objectives[0]

    TrainingBatch.train(batch, batch.observed, [seed_sequence(0)], build_objective=build_objective)
    (objective,) = objectives
    assert not any(torch.equal(*pair) for pair in zip(objective.prior.weights, before, strict=True))
    decays = {group["weight_decay"] for group in objective.parameter_groups}
    assert decays == {batch.engine.config.weight_decay}


def test_networks_on_sampled_graphs() -> None:
    """Each network has the edges of its own graph, and a prior network with a seed of its own."""
    graph = planted_graph()
    base = GCN(preset="g3nn", n_epochs=5, patience=0)
    trials = [Trial(graph, [0, 1, 2], rng=0), Trial(graph, [3, 4, 5], rng=1)]
    batch = SBMGCN(base=base).build_batch(trials)
    empty = sparse.csr_array((60, 60), dtype=np.float32)
    graphs: list[Any] = [batch.observed[0], empty, empty, batch.observed[0]]
    seeds = [seed_sequence(number) for number in range(4)]
    together = batch.train(graphs, seeds).weights[0].detach()
    for number, trial in enumerate(trials):
        alone = SBMGCN(base=base).build_batch([trial])
        pair = slice(2 * number, 2 * number + 2)
        np.testing.assert_allclose(
            together[pair], alone.train(graphs[pair], seeds[pair]).weights[0].detach(), atol=1e-5
        )
    assert not torch.allclose(*(batch.train(graphs, [seeds[0]] * 4).weights[0].detach()[:2]))
