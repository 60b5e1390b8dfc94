"""DICE by hand."""

from __future__ import annotations

import numpy as np
import pytest

from nodecopy import Graph
from nodecopy.attacks import DICE, GlobalDICE, RandomFlips
from nodecopy.errors import InputError


def hub() -> Graph:
    """Node 0, of class 0, has neighbours 1 to 4 of class 0, 5 and 6 of class 1, 7 without a label."""
    adjacency = np.zeros((16, 16))
    adjacency[0, 1:8] = 1
    labels = np.array([0, 0, 0, 0, 0, 1, 1, -1, 1, 1, 1, 1, 0, 0, -1, 2])
    return Graph(adjacency, labels=labels)


@pytest.mark.parametrize(("share", "n"), [(0, 0), (0.25, 1), (0.5, 2), (0.51, 3), (0.75, 3), (1, 4)])
def test_same_class_neighbours_go_and_others_come(share: float, n: int) -> None:
    seen = set()
    for seed in range(8):
        found = DICE(share).attack(hub(), [0], rng=seed)
        assert found.budgets.tolist() == found.spent.tolist() == [2 * n]
        assert set(found.removed[:, 1].tolist()) <= {1, 2, 3, 4}
        assert set(found.added[:, 1].tolist()) <= {8, 9, 10, 11, 15}
        assert len(found.removed) == len(found.added) == n
        seen |= set(found.added[:, 1].tolist())
    assert len(seen) > 3 or n == 0


@pytest.mark.parametrize(("share", "n"), [(0.5, 4), (0.75, 6), (1, 7)])
def test_any_neighbour_may_go(share: float, n: int) -> None:
    found = DICE(share, delete="any").attack(hub(), [0], rng=1)
    assert set(found.removed[:, 1].tolist()) <= set(range(1, 8))
    assert len(found.removed) == n
    assert len(found.added) == min(n, 5)  # only five other-class nodes are free
    assert found.budgets.tolist() == [2 * n]


def test_global_dice_counts() -> None:
    """Half of the flips delete inside a class, the odd one connects."""
    graph = hub()
    found = GlobalDICE(5).attack(graph, rng=0)
    assert graph.labels is not None
    assert (len(found.removed), len(found.added)) == (2, 3)
    assert (graph.labels[found.removed[:, 0]] == graph.labels[found.removed[:, 1]]).all()
    ends = graph.labels[found.added]
    assert (ends[:, 0] != ends[:, 1]).all()
    assert (ends >= 0).all()
    assert found.apply(graph).n_edges == 8
    assert found.targets.tolist() == []
    assert set(found.owners.tolist()) == {-1}
    assert "on the whole graph: 3 edges added, 2 removed" in str(found)
    assert found == GlobalDICE(5).attack(graph, rng=0)
    assert found != GlobalDICE(5).attack(graph, rng=1)


def test_global_dice_ends_with_what_there_is() -> None:
    """Classes of 7, 6 and 1 nodes: 42 + 7 + 6 pairs between them, of which two are edges already."""
    found = GlobalDICE(1000).attack(hub(), rng=0)
    assert len(found.removed) == 4
    assert len(found.added) == 7 * 6 + 7 + 6 - 2
    assert GlobalDICE(0).attack(hub()).apply(hub()) == hub()


def test_global_dice_has_no_targets() -> None:
    with pytest.raises(InputError, match="targets of GlobalDICE must be None"):
        GlobalDICE(3).attack(hub(), [1])
    with pytest.raises(InputError, match="budget of GlobalDICE must be an integer of at least 0; got -1"):
        GlobalDICE(-1).attack(hub())
    with pytest.raises(InputError, match="graph must have labels for GlobalDICE"):
        GlobalDICE(1).attack(hub().replace(labels=None))
    with pytest.raises(InputError, match="graph must be undirected to be attacked"):
        GlobalDICE(1).attack(hub().replace(directed=True))
    with pytest.raises(InputError, match="graph must be binary to be attacked"):
        GlobalDICE(1).attack(hub().replace(adjacency=2 * hub().adjacency))


def test_random_flips_are_uniform() -> None:
    """Each of 15 others is hit by one of 300 single flips with probability 1 - 1e-9."""
    hit = {int(RandomFlips(1).attack(hub(), [0], rng=seed).flips[0, 1]) for seed in range(300)}
    assert hit == set(range(1, 16))
