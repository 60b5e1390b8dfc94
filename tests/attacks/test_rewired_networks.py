"""The pairs of rows that may be flipped."""

from __future__ import annotations

import numpy as np
import torch

from nodecopy.attacks.gradients import RewiredGCN
from nodecopy.attacks.perturbation import Edits
from tests.contracts.classifiers import N_NODES, planted_graph


def test_pairs_are_free_once_and_loops_never() -> None:
    rows = np.array([4, 9, 30])
    weights = torch.zeros(N_NODES, 2, dtype=torch.float64), torch.zeros(2, 3, dtype=torch.float64)
    network = RewiredGCN(*weights, Edits(planted_graph()), rows)
    free = {(int(rows[row]), node) for row, node in network.free_pairs().nonzero().tolist()}
    expected = {frozenset((row, node)) for row in rows.tolist() for node in range(N_NODES) if node != row}
    assert {frozenset(pair) for pair in free} == expected
    assert len(free) == len(expected)


def test_a_network_without_edges_promises_nothing() -> None:
    weights = torch.zeros(N_NODES, 2, dtype=torch.float64), torch.zeros(2, 3, dtype=torch.float64)
    network = RewiredGCN(*weights, Edits(planted_graph()), np.array([4]))
    left = network.free_pairs()
    gains = network.gains(lambda network, V: network.logits(V).sum(), torch.zeros_like(network.present), left)
    assert (gains[left] == 0).all()
    assert gains[~left].tolist() == [-torch.inf]
