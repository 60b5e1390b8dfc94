"""The variance of the number of edges, against all samples that are possible."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from nodecopy import Graph, NodeCopying, SameLabel, Weighted
from nodecopy.copying import DonorLaw
from nodecopy.errors import InputError
from nodecopy.inference import edge_count_variance

GRAPH = Graph.from_edges([0, 1, 2, 0], [1, 2, 3, 2], labels=[0, 1, 0, 1])
LAW = Weighted([[1, 2, 0, 0], [0, 1, 1, 2], [3, 0, 1, 1], [0, 0, 2, 1]])


def enumerate_counts(graph: Graph, Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of edges and the probability of every choice of donors and coins."""
    A, n = graph.adjacency.toarray(), graph.n_nodes
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    counts, chances = [], []
    for donors in product(range(n), repeat=n):
        chance = np.prod([Q[node, donor] for node, donor in enumerate(donors)])
        if not chance:
            continue
        for coins in product([0, 1], repeat=len(pairs)):
            edges = [A[donors[(i, j)[c]], (j, i)[c]] for (i, j), c in zip(pairs, coins, strict=True)]
            counts.append(sum(edges))
            chances.append(chance / 2 ** len(pairs))
    return np.array(counts), np.array(chances)


@pytest.mark.parametrize("law", [SameLabel(), SameLabel([0, 0, 0, 0]), LAW])
@pytest.mark.parametrize("keep", [0.0, 0.3])
def test_every_possible_sample(law: DonorLaw, keep: float) -> None:
    model = NodeCopying(law, keep).fit(GRAPH)
    Q = (1 - keep) * model.distribution_.probabilities().toarray() + keep * np.eye(4)
    counts, chances = enumerate_counts(GRAPH, Q)
    assert chances.sum() == pytest.approx(1)
    mean = counts @ chances
    assert edge_count_variance(model).total == pytest.approx((counts - mean) ** 2 @ chances)


@pytest.mark.parametrize("law", [SameLabel(), LAW])
def test_the_samples_of_the_model(law: DonorLaw) -> None:
    """The sample variance of 4,000 counts; with a kurtosis below 3, five standard errors are 11 %."""
    model = NodeCopying(law).fit(GRAPH)
    counts = [sample.n_edges for sample in model.sample_many(4_000, rng=0)]
    assert np.var(counts) == pytest.approx(edge_count_variance(model).total, rel=0.11)


def test_own_donors_give_no_variance() -> None:
    assert edge_count_variance(NodeCopying(SameLabel(), keep=1.0).fit(GRAPH)).total == 0


@pytest.mark.parametrize("block_size", [100, 400])
def test_blocks_have_half_of_the_variance_from_each_source(block_size: int) -> None:
    """The mean over graphs tends to p (1 - p) for each pair, half from donors and half from coins."""
    n, rng, p = 2 * block_size, np.random.default_rng(0), 0.1
    blocks = np.arange(n) % 2
    chance = np.where(blocks[:, None] == blocks, p, p / 4)
    truth = np.triu(chance * (1 - chance), 1).sum()
    parts = []
    for _ in range(10):
        graph = Graph(np.triu(rng.random((n, n)) < chance, 1), labels=blocks)
        parts.append(edge_count_variance(NodeCopying(SameLabel()).fit(graph)))
    assert np.mean(parts, axis=0) / truth == pytest.approx([0.5, 0.5], abs=0.06)


@pytest.mark.parametrize(
    ("graph", "symmetrise"),
    [(GRAPH, "maximum"), (GRAPH.replace(directed=True), "one-endpoint")],
)
def test_other_rules_are_an_error(graph: Graph, symmetrise: str) -> None:
    with pytest.raises(InputError, match="model of edge_count_variance must copy an undirected graph"):
        edge_count_variance(NodeCopying(SameLabel(), symmetrise=symmetrise).fit(graph))
