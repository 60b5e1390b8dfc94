from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from nodecopy import Graph
from nodecopy.classify import SGC, Classifier, SelfTraining
from nodecopy.errors import DataWarning, InputError
from nodecopy.features.embeddings import NodeEmbeddings
from tests.contracts.classifiers import ClassifierContract, planted_graph


class TestSGC(ClassifierContract):
    is_random = False

    @pytest.fixture(scope="class")
    @classmethod
    def classifier(cls) -> Classifier:
        return SGC()


def test_it_is_the_regression_of_scikit_learn_on_propagated_features() -> None:
    graph, train = planted_graph(), np.arange(12)
    restart, n_steps, C = 0.3, 4, 5.0
    adjacency = graph.adjacency.toarray() + np.eye(graph.n_nodes)
    roots = 1 / np.sqrt(adjacency.sum(axis=1))
    matrix = roots[:, None] * adjacency * roots
    own = NodeEmbeddings(graph, 3).features
    rows = own
    for _ in range(n_steps):
        rows = (1 - restart) * matrix @ rows + restart * own
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows /= np.sqrt(((rows - rows.mean(axis=0)) ** 2).sum(axis=1).mean())
    assert graph.labels is not None
    own_C = C * 3 / len(train)  # of three classes, whose nodes weigh one each
    oracle = LogisticRegression(C=own_C, max_iter=1000, tol=1e-8).fit(rows[train], graph.labels[train])
    fitted = SGC(restart, n_steps=n_steps, rank=3, C=C).fit(graph, train)
    np.testing.assert_allclose(fitted.predict_proba(), oracle.predict_proba(rows), atol=2e-3)


def test_without_steps_edges_do_not_count() -> None:
    graph, train = planted_graph(), [0, 1, 2, 3]
    empty = Graph(np.zeros((graph.n_nodes,) * 2), features=graph.features, labels=graph.labels)
    first, second = (SGC(n_steps=0).fit(each, train).predict_proba() for each in (graph, empty))
    assert np.array_equal(first, second)
    assert not np.array_equal(SGC().fit(graph, train).predict_proba(), first)


def test_self_training_improves_it() -> None:
    graph = planted_graph()
    alone = SGC().fit(graph, [0, 1, 2]).score()
    assert SelfTraining(SGC()).fit(graph, [0, 1, 2], rng=0).score() >= alone


def test_equal_nodes_have_equal_probabilities() -> None:
    """Nothing is left to divide by where propagation makes all nodes equal."""
    graph = Graph(1 - np.eye(4), features=np.ones((4, 2)), labels=[0, 1, 0, 1])
    with pytest.warns(DataWarning, match="learned almost nothing"):
        fitted = SGC().fit(graph)
    np.testing.assert_allclose(fitted.predict_proba(), 0.5, atol=1e-6)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"restart": 1.5}, "restart of SGC must be"),
        ({"n_steps": -1}, "n_steps of SGC must be an integer of at least 0; got -1"),
        ({"rank": 0}, "rank of SGC must be an integer of at least 1; got 0"),
        ({"C": 0}, "C of SGC must be above 0; got 0"),
    ],
)
def test_wrong_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        SGC(**parameters).fit(planted_graph(), [0, 1, 2])
