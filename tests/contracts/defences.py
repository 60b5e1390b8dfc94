"""The contract of defences, beyond that of classifiers, as tests that a test class inherits.

To check a defence of your own, inherit :class:`DefenceContract` and set ``classifiers``.
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

TRAIN, SOME = np.arange(9), np.array([40, 3, 7, 59])
QUICK: dict[str, Any] = {"n_epochs": 25, "learning_rate": 0.05}


class DefenceContract(ClassifierContract):
    """Inherit and set ``classifiers`` to defences that are not fitted."""

    @pytest.fixture(scope="class")
    @classmethod
    def targeted(cls, classifier: Defence, observed: Graph, nodes: Any) -> Defence:
        defence = copy.deepcopy(classifier)
        return defence.fit(observed, nodes.train, validation=nodes.validation, targets=SOME, rng=0)

    def test_only_targets_are_corrected(self, fitted: Defence, targeted: Defence, observed: Graph) -> None:
        plain, p = targeted.undefended_proba(), targeted.predict_proba()
        assert p.dtype == np.float32
        others = np.setdiff1d(np.arange(N_NODES), SOME)
        assert np.array_equal(p[others], plain[others])
        assert np.array_equal(plain, fitted.undefended_proba())
        np.testing.assert_allclose(p[SOME], fitted.predict_proba()[SOME], atol=1e-6)
        assert np.array_equal(targeted.undefended(), targeted.classes_[plain.argmax(axis=1)])
        again = targeted.predict_proba(observed)
        np.testing.assert_allclose(again, p, atol=1e-6)
        np.testing.assert_allclose(targeted.undefended_proba(observed), plain, atol=1e-6)

    def test_targets_are_positions_a_mask_or_ids(
        self, classifier: Defence, targeted: Defence, observed: Graph, nodes: Any
    ) -> None:
        for targets in (np.isin(np.arange(N_NODES), SOME), observed.node_ids[SOME].tolist()):
            again = copy.deepcopy(classifier).fit(
                observed, nodes.train, validation=nodes.validation, targets=targets, rng=0
            )
            np.testing.assert_allclose(again.predict_proba(), targeted.predict_proba(), atol=1e-6)
        nothing = copy.deepcopy(classifier).fit(observed, nodes.train, targets=[], rng=0)
        assert np.array_equal(nothing.predict_proba(), nothing.undefended_proba())

    def test_trials_do_not_depend_on_each_other(
        self, classifier: Defence, targeted: Defence, observed: Graph, nodes: Any
    ) -> None:
        other = label_split(observed.label_codes, 2, validation=12, test=30, rng=1)
        trials = [
            Trial(other_edges(observed), other.train, other.validation, 5),
            Trial(observed, nodes.train, nodes.validation, 0),
        ]
        _, second = classifier.fit_trials(trials, targets=[[1], SOME])
        np.testing.assert_allclose(second.probabilities, targeted.predict_proba(), atol=1e-5)
        with pytest.raises(InputError, match="targets must hold 2 lists, one per trial; got 1"):
            classifier.fit_trials(trials, targets=[SOME])

    def test_directed_and_weighted_graphs(self, classifier: Defence, observed: Graph, nodes: Any) -> None:
        draw = np.random.default_rng(0)
        weights = observed.adjacency.toarray() * draw.uniform(0.5, 2.0, (N_NODES, N_NODES))
        for changed in (
            observed.replace(adjacency=weights),
            observed.replace(adjacency=np.triu(weights) + np.diag(weights[0]), directed=True),
            other_edges(observed),  # with isolated nodes
        ):
            fitted: Any = self.fit(classifier, changed, nodes)
            np.testing.assert_allclose(fitted.predict_proba().sum(axis=1), 1, atol=1e-5)

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ([0, 60], "targets must lie between 0 and 59; got 60"),
            ([5, 5], "targets must be unique; got 5 more than once"),
        ],
    )
    def test_wrong_targets(
        self, classifier: Defence, observed: Graph, nodes: Any, wrong: Any, message: str
    ) -> None:
        with pytest.raises(InputError, match=message):
            copy.deepcopy(classifier).fit(observed, nodes.train, targets=wrong, rng=0)

    def test_after_saving_and_pickling(self, targeted: Defence, observed: Graph, tmp_path: Path) -> None:
        targeted.save(tmp_path / "model.npz")
        loaded: Any = load(tmp_path / "model.npz", classes=[type(targeted)])
        again: Any = pickle.loads(pickle.dumps(targeted))
        for defence in (loaded, again):
            assert np.array_equal(defence.predict_proba(), targeted.predict_proba())
            assert np.array_equal(defence.undefended(), targeted.undefended())
        if not _uses_the_seed(targeted):
            changed = other_edges(observed)
            expected = targeted.predict_proba(changed)
            np.testing.assert_allclose(loaded.predict_proba(changed), expected, atol=1e-6)

    def test_nothing_undefended_before_fit(self, classifier: Defence, observed: Graph) -> None:
        for graph in (None, observed):
            with pytest.raises(NotFittedError, match=r"call fit\(graph, train\) first"):
                classifier.undefended(graph)


def _uses_the_seed(defence: Any) -> bool:
    """Whether corrections depend on the seed, which files do not hold."""
    return getattr(defence, "n_graphs", None) is not None or getattr(defence, "donors", "") in ("gae", "vgae")
