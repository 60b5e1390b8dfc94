"""The paper's two theorems, over many draws of the observed graph and of the donors.

Each test draws ``N_GRAPHS`` observed graphs, joins them into one block-diagonal graph and takes one sample
of it. This gives as many independent pairs of an observed graph and a sample, by the package's own code. A
count of entries is binomial, so it is compared with an exact interval. All intervals of this file together
(fewer than ``N_CHECKS``) fail by chance with probability below ``ERROR_RATE``; seeds are fixed, so that
results are reproducible. A claimed probability that is off by ``DETECTABLE`` or more survives with
probability below 1e-8 (see the first test), so the expected rejections, also fewer than ``N_CHECKS``, are
as certain. See ``docs/theory.md`` for the formulas.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse, stats

from nodecopy import Graph, NodeCopying, SameLabel, Weighted

ERROR_RATE = 1e-4
N_CHECKS = 8_000
N_GRAPHS = 200_000
DETECTABLE = 0.013
N = 6
THETA = 0.3
LOOPLESS, WITH_LOOPS = False, True
Floats = NDArray[np.float64]

# Arbitrary donors: those of nodes 0 and 1 are similar, node 4 only copies node 5, node 5 keeps its own row.
DONORS = np.array(
    [
        [0.0, 0.2, 0.3, 0.5, 0.0, 0.0],
        [0.1, 0.0, 0.3, 0.6, 0.0, 0.0],
        [0.0, 0.0, 0.4, 0.0, 0.3, 0.3],
        [0.2, 0.2, 0.2, 0.2, 0.1, 0.1],
        [0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
        [0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
    ]
)
COMMUNITY = np.array([0, 0, 0, 1, 1, 1])
BETA = np.array([[0.5, 0.15], [0.15, 0.35]])
SAME_COMMUNITY = (COMMUNITY[:, None] == COMMUNITY) / 3


def interval(probability: Any) -> tuple[Floats, Floats]:
    """Return bounds that a binomial count exceeds with probability ERROR_RATE / N_CHECKS at most."""
    error_rate, p = ERROR_RATE / N_CHECKS / 2, np.clip(probability, 0, 1)
    return stats.binom.ppf(error_rate, N_GRAPHS, p), stats.binom.isf(error_rate, N_GRAPHS, p)


def agrees(counts: Any, probability: Any) -> NDArray[np.bool_]:
    """Return whether counts lie in the interval of a probability."""
    low, high = interval(probability)
    return np.asarray((counts >= low) & (counts <= high))


def observe(edge_probability: Floats, seed: int, *, symmetric: bool, loops: bool) -> NDArray[np.bool_]:
    """Return independent graphs whose entry (i, j) is present with probability ``edge_probability[i, j]``."""
    graphs = np.random.default_rng(seed).random((N_GRAPHS, N, N)) < edge_probability
    if symmetric:
        graphs = np.triu(graphs, 1)
        graphs |= graphs.transpose(0, 2, 1)
    return np.asarray(graphs & (loops | ~np.eye(N, dtype=bool)))


def block_diagonal(blocks: Any) -> sparse.csr_array:
    """Return one block-diagonal matrix."""
    block, i, j = np.nonzero(blocks)
    positions = N * block + i, N * block + j
    return sparse.csr_array((blocks[block, i, j], positions), shape=(N * len(blocks),) * 2)


def draw_samples(
    observed: NDArray[np.bool_], donors: Any, *, directed: bool, rule: str = "maximum"
) -> NDArray[np.bool_]:
    """Return one sample of every observed graph."""
    graph = Graph(block_diagonal(observed), directed=directed)
    sample = NodeCopying(donors, symmetrise=rule).fit(graph).sample(rng=17)
    i, j = sample.rows.row_numbers, sample.rows.indices
    result = np.zeros(observed.shape, bool)
    result[i // N, i % N, j % N] = True
    assert np.array_equal(i // N, j // N)
    return result


def weighted() -> Weighted:
    return Weighted(block_diagonal(np.broadcast_to(DONORS, (N_GRAPHS, N, N))))


def same_community() -> SameLabel:
    return SameLabel((2 * np.arange(N_GRAPHS)[:, None] + COMMUNITY).ravel())


def observed_moment(
    first: tuple[int, int], second: tuple[int, int], edge_probability: Floats, loops: bool
) -> float:
    """Return E[A_e A_f] of an observed undirected graph without loops, or of a directed graph with them."""
    if loops:
        return float(
            edge_probability[first] if first == second else edge_probability[first] * edge_probability[second]
        )
    if first[0] == first[1] or second[0] == second[1]:
        return 0.0
    same = sorted(first) == sorted(second)
    return float(edge_probability[first] if same else edge_probability[first] * edge_probability[second])


def joint(
    first: tuple[int, int], second: tuple[int, int], P: Floats, edge_probability: Floats, loops: bool
) -> float:
    """Return P(both entries are in the directed sample), summed over the donors of their rows."""
    (i, j), (k, m) = first, second
    if i == k:
        return sum(
            float(P[i, v]) * observed_moment((v, j), (v, m), edge_probability, loops) for v in range(N)
        )
    return sum(
        float(P[i, v] * P[k, u]) * observed_moment((v, j), (u, m), edge_probability, loops)
        for v, u in product(range(N), repeat=2)
        if P[i, v] and P[k, u]
    )


def all_joints(P: Floats, edge_probability: Floats, loops: bool) -> Floats:
    entries = [(i, j) for i in range(N) for j in range(N)]
    return np.array([[joint(e, f, P, edge_probability, loops) for f in entries] for e in entries])


def joint_counts(samples: NDArray[np.bool_]) -> Floats:
    flat = samples.reshape(N_GRAPHS, N * N).astype(np.float32)  # counts up to 2**24 are exact
    return np.asarray(flat.T @ flat, np.float64)


def theta() -> Floats:
    return np.full((N, N), THETA)


def beta() -> Floats:
    return np.asarray(BETA[COMMUNITY][:, COMMUNITY])


def test_a_deviation_of_the_stated_size_is_detected() -> None:
    """For any p and a claim that is off by DETECTABLE, a count is rarely inside the interval of the claim."""
    for p in np.linspace(0.02, 0.98, 49):
        for claim in (p - DETECTABLE, p + DETECTABLE):
            low, high = interval(claim)
            missed = stats.binom.cdf(high, N_GRAPHS, p) - stats.binom.cdf(low - 1, N_GRAPHS, p)
            assert missed < 1e-8


def test_er_with_loops_keeps_its_marginals_exactly() -> None:
    """Where loops are part of the model, every donor's entry has probability theta."""
    samples = draw_samples(observe(theta(), 1, symmetric=False, loops=WITH_LOOPS), weighted(), directed=True)
    assert agrees(samples.sum(0), THETA).all()


def test_er_without_loops_loses_where_the_donor_is_the_neighbour() -> None:
    """P(A_ij) = theta (1 - P(donor of i is j)): a copied entry (j, j) of the observed graph is zero."""
    samples = draw_samples(observe(theta(), 2, symmetric=True, loops=LOOPLESS), weighted(), directed=True)
    counts = samples.sum(0)
    assert agrees(counts, THETA * (1 - DONORS)).all()
    holds = agrees(counts, THETA)
    assert holds[DONORS == 0].all()  # the theorem's marginal, where j cannot be i's donor
    assert not holds[THETA * DONORS >= DETECTABLE].any()  # and only there
    assert samples[:, 4, 4].mean() > 0.25  # the directed sample has loops


def test_sbm_keeps_its_marginals_across_communities() -> None:
    observed = observe(beta(), 3, symmetric=True, loops=LOOPLESS)
    samples = draw_samples(observed, same_community(), directed=True)
    counts = samples.sum(0)
    assert agrees(counts, beta() * (1 - SAME_COMMUNITY)).all()
    holds = agrees(counts, beta())
    assert np.array_equal(holds, COMMUNITY[:, None] != COMMUNITY)


def test_sbm_with_loops_keeps_its_marginals_exactly() -> None:
    observed = observe(beta(), 4, symmetric=False, loops=WITH_LOOPS)
    samples = draw_samples(observed, same_community(), directed=True)
    assert agrees(samples.sum(0), beta()).all()


def test_donors_of_another_community_break_the_sbm() -> None:
    """The theorem's condition matters: the arbitrary donor rule mixes communities."""
    samples = draw_samples(observe(beta(), 5, symmetric=False, loops=WITH_LOOPS), weighted(), directed=True)
    assert agrees(samples.sum(0), DONORS @ beta()).all()
    assert not agrees(samples.sum(0), beta()).all()


@pytest.mark.parametrize(
    ("edge_probability", "P", "donors"),
    [(theta(), DONORS, weighted), (beta(), SAME_COMMUNITY, same_community)],
)
def test_symmetric_samples(edge_probability: Floats, P: Floats, donors: Any) -> None:
    """One endpoint averages the two marginals; the maximum adds them and takes off the joint probability."""
    observed = observe(edge_probability, 6, symmetric=True, loops=LOOPLESS)
    p = edge_probability * (1 - P)
    one_endpoint = draw_samples(observed, donors(), directed=False, rule="one-endpoint")
    maximum = draw_samples(observed, donors(), directed=False)
    different = ~np.eye(N, dtype=bool)
    assert agrees(one_endpoint.sum(0), (p + p.T) / 2 * different).all()
    both = np.array(
        [[joint((i, j), (j, i), P, edge_probability, LOOPLESS) for j in range(N)] for i in range(N)]
    )
    assert agrees(maximum.sum(0), (p + p.T - both) * different).all()
    assert 1.4 < maximum.sum() / one_endpoint.sum() < 2


def test_joint_probabilities_with_loops() -> None:
    """The product of the theorems, but for two rows that may share a donor and ask for the same column."""
    samples = draw_samples(observe(theta(), 7, symmetric=False, loops=WITH_LOOPS), weighted(), directed=True)
    counts, exact = joint_counts(samples), all_joints(DONORS, theta(), WITH_LOOPS)
    i, j = np.divmod(np.arange(N * N), N)
    shared = (DONORS @ DONORS.T)[i][:, i]  # probability that two rows have one donor
    same_column, same_row = j[:, None] == j, i[:, None] == i
    by_formula = THETA**2 + same_column * shared * THETA * (1 - THETA)
    np.testing.assert_allclose(exact[~same_row], by_formula[~same_row], rtol=1e-12)
    assert agrees(counts, exact).all()
    holds = agrees(counts, THETA**2)
    assert holds[~same_column].all()
    assert not holds[same_column & ~same_row & (shared * THETA * (1 - THETA) >= DETECTABLE)].any()


def test_the_closed_form_is_the_sum_over_donors() -> None:
    """The formulas of docs/theory.md for an undirected Erdos-Renyi graph."""
    for i, j, k, m in product(range(N), repeat=4):
        if i == k:
            expected = THETA**2 * (1 - DONORS[i, j] - DONORS[i, m]) if j != m else THETA * (1 - DONORS[i, j])
        else:
            same = (
                DONORS[i] @ DONORS[k] - DONORS[i, j] * DONORS[k, j] if j == m else DONORS[i, m] * DONORS[k, j]
            )
            expected = THETA**2 * (1 - DONORS[i, j]) * (1 - DONORS[k, m]) + THETA * (1 - THETA) * same
        assert joint((i, j), (k, m), DONORS, theta(), LOOPLESS) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("edge_probability", "P", "donors"),
    [(theta(), DONORS, weighted), (beta(), SAME_COMMUNITY, same_community)],
)
def test_joint_probabilities_without_loops(edge_probability: Floats, P: Floats, donors: Any) -> None:
    """The right joint probability holds for all pairs; the product of the proofs fails for many."""
    observed = observe(edge_probability, 8, symmetric=True, loops=LOOPLESS)
    samples = draw_samples(observed, donors(), directed=True)
    counts, exact = joint_counts(samples), all_joints(P, edge_probability, LOOPLESS)
    assert agrees(counts, exact).all()
    claimed = np.outer(edge_probability, edge_probability)
    distinct = ~np.eye(N * N, dtype=bool)
    right = distinct & np.isclose(exact, claimed, rtol=1e-12)
    wrong = distinct & (np.abs(exact - claimed) >= DETECTABLE)
    holds = agrees(counts, claimed)
    assert holds[right].all()
    assert not holds[wrong].any()
    i, j = np.divmod(np.arange(N * N), N)
    shared_column = (j[:, None] == j) & (i[:, None] != i)
    assert (wrong & shared_column).any()
    assert right.any()


def test_samples_do_not_depend_on_the_order_of_nodes() -> None:
    """Mean degree and triangles of a graph and of its renumbered copy, 3,000 samples each, for each rule.

    Two-sided two-sample tests at 6 standard errors: all four fail by chance with probability 1e-8. A
    shift by 12 standard errors (at most 5% of the mean degree, 20% of the triangles) is missed as rarely.
    """
    draws = np.random.default_rng(9)
    n = 14
    graph = Graph(draws.random((n, n)) < 0.2, labels=np.arange(n) % 3)
    renumbered = graph.subgraph(draws.permutation(n))
    for rule in ("maximum", "one-endpoint"):
        statistics = []
        for data, seed in [(graph, 0), (renumbered, 1)]:
            samples = NodeCopying(SameLabel(), symmetrise=rule).fit(data).sample_many(3000, rng=seed)
            stack = np.array([sample.adjacency.toarray() for sample in samples])
            degree = stack.sum((1, 2)) / n
            triangles = np.einsum("sij,sjk,ski->s", stack, stack, stack, optimize=True) / 6
            statistics.append(np.stack([degree, triangles]))
        first, second = statistics
        error = np.sqrt((first.var(axis=1) + second.var(axis=1)) / 3000)
        assert (np.abs(first.mean(axis=1) - second.mean(axis=1)) < 6 * error).all()
        assert (12 * error < np.array([0.05, 0.2]) * first.mean(axis=1)).all()
