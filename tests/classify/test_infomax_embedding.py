from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from nodecopy.classify.regressions import InfomaxEmbedding
from nodecopy.errors import InputError
from tests.contracts.classifiers import other_edges, planted_graph


def fit(seed: Any = 0) -> tuple[InfomaxEmbedding, Any]:
    training = {"n_hidden": 4, "learning_rate": 0.01, "n_epochs": 3, "patience": 3}
    device = torch.device("cpu")
    return InfomaxEmbedding.fit(
        planted_graph(), seed, features="auto", weights="auto", device=device, **training
    )


def test_the_layer_is_applied_to_any_graph() -> None:
    trained, rows = fit()
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)
    assert np.array_equal(trained.apply(planted_graph()), rows)
    assert not np.allclose(trained.apply(other_edges(planted_graph())), rows)
    assert (trained.n_features, trained.rank) == trained.weights.shape


def test_generators_as_seeds_draw_anew() -> None:
    rng = np.random.default_rng(0)
    assert not np.array_equal(fit(rng)[1], fit(rng)[1])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bias": np.zeros(3, np.float32)}, "weights must be floats of shape"),
        ({"slope": np.zeros(2, np.float32)}, "slope must be floats of shape"),
        ({"weights": np.full((2, 4), np.nan, np.float32)}, "weights must hold finite numbers"),
    ],
)
def test_damaged_parts_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(fit()[0], **changes).check()
