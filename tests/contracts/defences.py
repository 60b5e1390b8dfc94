"""The contract of defences, beyond that of classifiers, as tests that a test class inherits.

To check a defence of your own, inherit :class:`DefenceContract` and override ``classifier``.
"""

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
    """Inherit and override ``classifier`` with a defence that is not fitted."""

    def test_corrections_are_probabilities(self, fitted: Defence) -> None:
        p = fitted.correct_proba(SOME)
        assert p.shape == (4, 3)
        assert p.dtype == np.float32
        assert p.min() >= 0
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-5)

    def test_corrected_classes_are_the_likeliest(self, fitted: Defence, observed: Graph) -> None:
        expected = fitted.classes_[fitted.correct_proba(SOME).argmax(axis=1)]
        assert fitted.correct(SOME).tolist() == expected.tolist()
        assert fitted.correct(SOME, graph=observed).tolist() == expected.tolist()

    def test_nodes_are_positions_a_mask_or_ids(self, fitted: Defence, observed: Graph) -> None:
        ascending = np.sort(SOME)
        by_position = fitted.correct_proba(ascending)
        mask = np.isin(np.arange(N_NODES), ascending)
        assert np.array_equal(fitted.correct_proba(mask), by_position)
        assert np.array_equal(fitted.correct_proba(observed.node_ids[ascending].tolist()), by_position)

    def test_correction_of_a_node_does_not_depend_on_others(self, fitted: Defence) -> None:
        together = fitted.correct_proba(SOME)
        alone = [fitted.correct_proba([node])[0] for node in SOME]
        np.testing.assert_allclose(together, alone, atol=1e-6)
        assert np.array_equal(fitted.correct_proba(SOME), together)
        assert fitted.correct_proba([]).shape == (0, 3)

    def test_same_seed_gives_the_same_correction(
        self, classifier: Defence, fitted: Defence, observed: Graph, nodes: Any
    ) -> None:
        again: Any = self.fit(classifier, observed, nodes)
        assert np.array_equal(again.correct_proba(SOME), fitted.correct_proba(SOME))

    def test_trials_do_not_depend_on_each_other(
        self, classifier: Defence, fitted: Defence, observed: Graph, nodes: Any
    ) -> None:
        other = label_split(observed.labels, 2, validation=12, test=30, rng=1)
        trials = [
            Trial(other_edges(observed), other.train, other.validation, 5),
            Trial(observed, nodes.train, nodes.validation, 0),
        ]
        first, second = classifier.correct_trials(trials, [[1], SOME])
        assert first.probabilities.shape == (1, 3)
        np.testing.assert_allclose(second.probabilities, fitted.correct_proba(SOME), atol=1e-5)

    def test_another_graph_is_corrected(self, fitted: Defence, observed: Graph) -> None:
        again = fitted.correct_proba(SOME, graph=observed)
        np.testing.assert_allclose(again, fitted.correct_proba(SOME), atol=1e-6)
        part = observed.subgraph(np.arange(20))
        np.testing.assert_allclose(fitted.correct_proba([0, 19], graph=part).sum(axis=1), 1, atol=1e-5)
        with pytest.raises(InputError, match="nodes must lie between 0 and 19; got 20"):
            fitted.correct_proba([20], graph=part)

    def test_isolated_and_labelled_nodes_are_corrected(
        self, fitted: Defence, observed: Graph, nodes: Any
    ) -> None:
        graph = other_edges(observed)
        assert not graph.degrees[3]
        np.testing.assert_allclose(fitted.correct_proba([3, 7], graph=graph).sum(axis=1), 1, atol=1e-5)
        np.testing.assert_allclose(fitted.correct_proba(nodes.train).sum(axis=1), 1, atol=1e-5)

    def test_directed_and_weighted_graphs(self, classifier: Defence, observed: Graph, nodes: Any) -> None:
        draw = np.random.default_rng(0)
        weights = observed.adjacency.toarray() * draw.uniform(0.5, 2.0, (N_NODES, N_NODES))
        for changed in (
            observed.replace(adjacency=weights),
            observed.replace(adjacency=np.triu(weights) + np.diag(weights[0]), directed=True),
        ):
            fitted: Any = self.fit(classifier, changed, nodes)
            np.testing.assert_allclose(fitted.correct_proba(SOME).sum(axis=1), 1, atol=1e-5)

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ([0, 60], "nodes must lie between 0 and 59; got 60"),
            ([-1], "nodes must lie between 0 and 59; got -1"),
            ([5, 5], "nodes must be unique; got 5 more than once"),
            ([0.5], "nodes must be positions, a boolean mask or node ids; got float64"),
            ([[1]], "nodes must be positions, a boolean mask or node ids; got int64"),
        ],
    )
    def test_error_names_wrong_nodes(self, fitted: Defence, wrong: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            fitted.correct_proba(wrong)

    def test_no_correction_before_fit(self, classifier: Defence, observed: Graph) -> None:
        for graph in (None, observed):
            with pytest.raises(NotFittedError, match=r"call fit\(graph, train\) first"):
                classifier.correct(SOME, graph=graph)

    def test_corrections_after_saving_and_pickling(
        self, fitted: Defence, observed: Graph, tmp_path: Path
    ) -> None:
        fitted.save(tmp_path / "model.npz")
        loaded: Any = load(tmp_path / "model.npz", classes=[type(fitted)])
        expected = fitted.correct_proba(SOME, graph=observed)
        if not _uses_the_seed(fitted):
            np.testing.assert_allclose(loaded.correct_proba(SOME, graph=observed), expected, atol=1e-6)
        with pytest.raises(InputError, match="graph must be given to a defence that was loaded"):
            loaded.correct(SOME)
        again = pickle.loads(pickle.dumps(fitted))
        np.testing.assert_allclose(again.correct_proba(SOME), expected, atol=1e-6)

    def test_corrections_change_nothing(self, fitted: Defence, observed: Graph) -> None:
        before, graph = fitted.predict_proba().copy(), copy.deepcopy(observed)
        parameters, nodes = repr(fitted.get_params()), SOME.copy()
        fitted.correct(nodes)
        assert np.array_equal(fitted.predict_proba(), before)
        assert np.array_equal(nodes, SOME)
        assert observed == graph
        assert repr(fitted.get_params()) == parameters


def _uses_the_seed(defence: Any) -> bool:
    """Whether corrections depend on the seed, which files do not hold."""
    return getattr(defence, "n_graphs", None) is not None or getattr(defence, "donors", "") in ("gae", "vgae")
