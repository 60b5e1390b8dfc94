from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodecopy.classify import Trial
from nodecopy.errors import InputError
from tests.contracts.classifiers import planted_graph

GRAPH = planted_graph()


def test_a_trial_holds_positions_codes_and_a_seed() -> None:
    trial = Trial(GRAPH, GRAPH.node_ids[[5, 1, 0]], np.arange(60) == 7, 3)
    assert (trial.train.tolist(), trial.n_classes) == ([5, 1, 0], 3)
    assert trial.validation is not None
    assert trial.validation.tolist() == [7]
    assert (trial.rng.entropy, trial.rng.spawn_key) == (3, ())
    assert np.array_equal(trial.codes, np.arange(60) % 3)


def test_codes_number_the_labels_that_occur() -> None:
    labels = np.array([4, 9, 2])[np.arange(60) % 3]
    labels[10] = -1
    trial = Trial(planted_graph(strings=False).replace(labels=labels))
    assert trial.codes[:3].tolist() == [1, 2, 0]
    assert trial.codes[10] == -1
    assert 10 not in trial.train


@pytest.mark.parametrize(
    ("train", "message"),
    [
        ([], "train must hold at least one node; got none"),
        (
            np.arange(60) % 2,
            r"train must be positions, .* got a mask of integers. Pass np.asarray",
        ),
        (3, "train must be positions, a boolean mask or node ids; got 3"),
        ([0.0, 1.0], "train must be positions, a boolean mask or node ids; got float64"),
    ],
)
def test_wrong_training_nodes(train: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Trial(GRAPH, train)
