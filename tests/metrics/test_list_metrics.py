"""Metrics of lists by hand; ``test_ranking.py`` compares them with their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from nodecopy import Interactions
from nodecopy.metrics.ranking import HIT_METRICS, ItemStatistics, Lists

LISTS = Lists(
    items=np.array([[0, 1, 2], [2, 1, -1]]),
    hits=np.array([[False, True, True], [False, False, False]]),
    n_relevant=np.array([4, 1]),
    n_ideal=np.array([4, 1]),
)


def test_metrics_of_hits() -> None:
    gain, ideal = 1 / np.log2(3) + 1 / np.log2(4), 1 + 1 / np.log2(3) + 1 / np.log2(4)
    values = {name: LISTS.metric(name, 3)[0] for name in HIT_METRICS}
    assert values == pytest.approx(
        {
            "recall": 2 / 4,
            "ndcg": gain / ideal,
            "precision": 2 / 3,
            "hit_rate": 1.0,
            "map": (1 / 2 + 2 / 3) / 3,
            "mrr": 1 / 2,
        }
    )
    assert {name: LISTS.metric(name, 3)[1] for name in HIT_METRICS} == dict.fromkeys(HIT_METRICS, 0.0)
    assert LISTS.metric("hit_rate", 1)[0] == 0.0


def test_metrics_of_items() -> None:
    items = ItemStatistics(Interactions([[1, 1, 0, 0], [1, 0, 0, 0]]).rows)
    assert items.per_list("popularity", LISTS.items).tolist() == pytest.approx([(1 + 0.5) / 3, 0.25])
    assert items.per_list("diversity", LISTS.items).tolist() == pytest.approx([1 - 2**-0.5 / 3, 1.0])
    assert items.per_list("diversity", LISTS.items[:, :1]).tolist() == [0.0, 0.0]
    assert items.overall("coverage", LISTS.items) == 0.75
    assert items.overall("novelty", LISTS.items) == pytest.approx((0 + 1 + 1 + 1 + 1) / 5)
    assert items.overall("novelty", np.full((1, 2), -1)) == 0.0
