from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from nodecopy import Interactions
from nodecopy.errors import InputError
from nodecopy.recommend import EASE
from nodecopy.recommend import base as best_items
from nodecopy.recommend.base import find_candidates, select_best

IDS = np.array(["a", "b", "c", "d"])
SCORES = np.array([[1, 4, 3, 3], [5, 0, 5, 2], [0, 0, 0, 0]], np.float32)
SEEN = sparse.csr_array(np.array([[0, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 0]]))


@pytest.mark.parametrize("block", [1, 8, 100])
@pytest.mark.parametrize(
    ("k", "candidates", "exclude_seen", "expected"),
    [
        (2, None, True, ["cd", "ac", "da"]),
        (2, None, False, ["bc", "ac", "ab"]),
        (1, ["b", "d"], True, ["d", "d", "d"]),
        (2, ["a", "b"], True, ["ab", "ab", "ab"]),
    ],
)
def test_select_best(
    k: int, candidates: Any, exclude_seen: bool, expected: Any, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ties go to the first item; seen items come last with minus infinity; blocks do not matter."""
    monkeypatch.setattr(best_items, "MAX_BLOCK_SCORES", block)
    items, scores = select_best(
        lambda users: SCORES[users].copy(),
        len(SCORES),
        k,
        IDS,
        find_candidates(candidates, None, IDS),
        SEEN if exclude_seen else None,
    )
    assert ["".join(row) for row in items.tolist()] == expected
    position = {item: number for number, item in enumerate(IDS.tolist())}
    for user, row in enumerate(items.tolist()):
        for item, score in zip(row, scores[user].tolist(), strict=True):
            is_seen = exclude_seen and SEEN.toarray()[user, position[item]]
            assert score == (-np.inf if is_seen else SCORES[user, position[item]])


def test_find_candidates() -> None:
    assert find_candidates(None, None, IDS) is None
    assert find_candidates(["d", "a", "d"], None, IDS).tolist() == [0, 3]  # type: ignore[union-attr]
    assert find_candidates(None, ["d", "a"], IDS).tolist() == [1, 2]  # type: ignore[union-attr]
    assert find_candidates(["d", "a"], ["a", "b"], IDS).tolist() == [3]  # type: ignore[union-attr]
    assert find_candidates(["d", "x"], ["y"], IDS, "ignore").tolist() == [3]  # type: ignore[union-attr]
    with pytest.raises(InputError, match="exclude must hold known ids; got 'y'"):
        find_candidates(["d"], ["y"], IDS)
    for items in ([], ["x"]):
        with pytest.raises(InputError, match="items must hold a candidate"):
            find_candidates(items, None, IDS, "ignore")


def test_a_million_items_are_scored_in_blocks() -> None:
    """The scores of all users are never held at once: 200 users x 10^6 items would take 800 MB."""
    n_users, n_items, sizes = 200, 10**6, []

    def score(users: slice) -> Any:
        sizes.append(users.stop - users.start)
        scores = np.zeros((sizes[-1], n_items), np.float32)
        for row, user in enumerate(range(users.start, users.stop)):
            scores[row, [user, 5 * user + 7, n_items - 1 - user]] = [1.0, 3.0, 2.0]
        return scores

    seen = sparse.csr_array((np.ones(1), ([3], [22])), shape=(n_users, n_items))
    items, best = select_best(score, n_users, 2, np.arange(n_items), seen=seen)
    assert max(sizes) * n_items <= best_items.MAX_BLOCK_SCORES
    assert sum(sizes) == n_users
    expected = [[5 * user + 7, n_items - 1 - user] for user in range(n_users)]
    expected[3] = [n_items - 4, 3]
    assert items.tolist() == expected
    assert best[4].tolist() == [3.0, 2.0]


@pytest.mark.parametrize("choice", [{}, {"items": np.arange(0, 10**6, 3)}, {"exclude": np.arange(500)}])
def test_a_million_items_need_no_matrix_of_users_and_items(
    choice: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All scores of 60 users would take 240 MB; blocks of 4 users take 16 MB, and as much to select."""
    n_users, n_items, rng = 60, 10**6, np.random.default_rng(0)
    columns = rng.integers(n_items, size=n_users * 5)
    model = EASE()
    model.interactions_ = model.seen_ = Interactions(
        sparse.csr_array((np.ones(len(columns)), (np.arange(len(columns)) // 5, columns)), (n_users, n_items))
    ).binary()
    weights = rng.random(20 * len(columns)).astype(np.float32)
    targets = rng.integers(n_items, size=len(weights))
    entries = weights, (np.repeat(columns, 20), targets)
    model.weights_ = sparse.csr_array(entries, shape=(n_items, n_items))
    monkeypatch.setattr(best_items, "MAX_BLOCK_SCORES", 2**22)
    tracemalloc.start()
    items, scores = model.recommend(None, 10, **choice)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 80e6
    assert (scores[:, 0] > 0).all()
    full = model.score([7])[0]
    full[model.seen_.matrix[[7]].indices] = -np.inf
    if "items" in choice:
        full[np.setdiff1d(np.arange(n_items), choice["items"])] = -np.inf
    assert items[7].tolist() == np.argsort(-full, kind="stable")[:10].tolist()
