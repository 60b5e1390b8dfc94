from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nodecopy.classify import regressions as propagated_features
from nodecopy.classify.regressions import PropagatedFeatures
from nodecopy.errors import InputError
from nodecopy.features.embeddings import leading_directions
from nodecopy.graph import Graph
from tests.contracts.classifiers import other_edges, planted_graph


def fit(graph: Graph, **changes: Any) -> tuple[PropagatedFeatures, Any]:
    settings: dict[str, Any] = {"rank": 2, "restart": 0.1, "n_steps": 5, **changes}
    return PropagatedFeatures.fit(graph, **settings, features="auto", weights="auto")


@pytest.mark.parametrize("rank", [2, 64])
def test_the_graph_of_the_fit_has_the_same_features_again(rank: int) -> None:
    graph = planted_graph()
    fitted, rows = fit(graph, rank=rank)
    np.testing.assert_allclose(fitted.apply(graph), rows, atol=1e-6)
    assert rows.shape[1] == fitted.rank
    assert np.square(rows - rows.mean(axis=0)).sum(axis=1).mean() == pytest.approx(1)
    assert not np.allclose(fitted.apply(other_edges(graph)), rows)


def test_they_are_computed_once_for_graphs_that_differ_in_labels_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[int] = []

    def find(matrix: Any, rank: int) -> Any:
        calls.append(rank)
        return leading_directions(matrix, rank)

    monkeypatch.setattr(propagated_features, "leading_directions", find)
    graph = planted_graph()
    for other in (graph, graph.replace(labels=None)):
        fit(other)
    assert calls == [2]
    fit(graph, rank=3)
    assert calls == [2, 3]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rarity": np.zeros((2, 2))}, "rarity must be floats of shape"),
        ({"directions": np.zeros((1, 2))}, "directions must be floats of shape"),
        ({"restart": 2.0}, "restart must be"),
        ({"n_steps": -1}, "n_steps must be"),
    ],
)
def test_damaged_parts_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(fit(planted_graph())[0], **changes).check()
