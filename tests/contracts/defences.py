"""What every defence promises beyond what every classifier does."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodecopy import Graph, load
from nodecopy.classify import Trial
from nodecopy.datasets import label_split
from nodecopy.defend import Defence
from nodecopy.errors import InputError, NotFittedError
from tests.contracts.classifiers import N_NODES, ClassifierContract, other_edges

SOME = np.array([40, 3, 7, 59])


class DefenceContract(ClassifierContract):
    """Inherit and override ``classifier`` (an unfitted defence)."""

    def test_corrections_are_probabilities(self, fitted: Defence) -> None:
        p = fitted.correct(SOME)
        assert p.shape == (4, 3)
        assert p.dtype == np.float32
        assert p.min() >= 0
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-5)

    def test_nodes_are_corrected_one_by_one(self, fitted: Defence) -> None:
        together = fitted.correct(SOME)
        alone = [fitted.correct([node])[0] for node in SOME]
        np.testing.assert_allclose(together, alone, atol=1e-6)
        assert np.array_equal(fitted.correct(SOME), together)
        assert fitted.correct([]).shape == (0, 3)

    def test_same_seed_same_correction(
        self, classifier: Defence, fitted: Defence, observed: Graph, nodes: Any
    ) -> None:
        again: Any = self.fit(classifier, observed, nodes)
        assert np.array_equal(again.correct(SOME), fitted.correct(SOME))

    def test_trials_are_corrected_as_if_alone(
        self, classifier: Defence, fitted: Defence, observed: Graph, nodes: Any
    ) -> None:
        other = label_split(observed.labels, 2, validation=12, test=30, rng=1)
        trials = [
            Trial(other_edges(observed), other.train, other.validation, 5),
            Trial(observed, nodes.train, nodes.validation, 0),
        ]
        first, second = classifier.correct_trials(trials, [[1], SOME])
        assert first.probabilities.shape == (1, 3)
        np.testing.assert_allclose(second.probabilities, fitted.correct(SOME), atol=1e-5)

    def test_another_graph_is_corrected(self, fitted: Defence, observed: Graph) -> None:
        np.testing.assert_allclose(fitted.correct(SOME, graph=observed), fitted.correct(SOME), atol=1e-6)
        few = observed.subgraph(np.arange(20))
        assert fitted.correct([0, 19], graph=few).shape == (2, 3)
        with pytest.raises(InputError, match="nodes must lie between 0 and 19; got 20"):
            fitted.correct([20], graph=few)

    def test_an_isolated_node_is_corrected(self, fitted: Defence, observed: Graph) -> None:
        graph = other_edges(observed)
        assert not graph.degrees[3]
        assert np.isfinite(fitted.correct([3, 7], graph=graph)).all()

    def test_a_labelled_node_is_corrected(self, fitted: Defence, nodes: Any) -> None:
        assert np.isfinite(fitted.correct(nodes.train)).all()

    def test_directed_and_weighted_graphs(self, classifier: Defence, observed: Graph, nodes: Any) -> None:
        draw = np.random.default_rng(0)
        weights = observed.adjacency.toarray() * draw.uniform(0.5, 2.0, (N_NODES, N_NODES))
        for changed in (
            observed.replace(adjacency=weights),
            observed.replace(adjacency=np.triu(weights) + np.diag(weights[0]), directed=True),
        ):
            fitted: Any = self.fit(classifier, changed, nodes)
            assert np.isfinite(fitted.correct(SOME)).all()

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ([0, 60], "nodes must lie between 0 and 59; got 60"),
            ([-1], "nodes must lie between 0 and 59; got -1"),
            ([5, 5], "nodes must be unique; got 5 more than once"),
            ([0.5], "nodes must hold integers"),
            ([[1]], "nodes must have one dimension"),
        ],
    )
    def test_wrong_nodes(self, fitted: Defence, wrong: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            fitted.correct(wrong)

    def test_no_correction_before_fit(self, classifier: Defence, observed: Graph) -> None:
        for graph in (None, observed):
            with pytest.raises(NotFittedError, match=r"call fit\(graph, train\) first"):
                classifier.correct(SOME, graph=graph)

    def test_corrections_survive_files_and_pickles(
        self, fitted: Defence, observed: Graph, tmp_path: Path
    ) -> None:
        fitted.save(tmp_path / "model.npz")
        loaded: Any = load(tmp_path / "model.npz")
        expected = fitted.correct(SOME, graph=observed)
        if not _draws(fitted):
            np.testing.assert_allclose(loaded.correct(SOME, graph=observed), expected, atol=1e-6)
        again = pickle.loads(pickle.dumps(fitted))
        np.testing.assert_allclose(again.correct(SOME), expected, atol=1e-6)

    def test_correcting_changes_nothing(self, fitted: Defence, observed: Graph) -> None:
        before, graph = fitted.predict_proba().copy(), copy.deepcopy(observed)
        asked = SOME.copy()
        fitted.correct(asked)
        assert np.array_equal(fitted.predict_proba(), before)
        assert np.array_equal(asked, SOME)
        assert observed == graph


def _draws(defence: Any) -> bool:
    """Whether a correction depends on the seed, which no file keeps."""
    return getattr(defence, "n_graphs", None) is not None or getattr(defence, "donors", "") in ("gae", "vgae")
