from __future__ import annotations

import importlib.util
import sys
from typing import Any

import numpy as np
import pytest

from nodecopy import Interactions, Jaccard
from nodecopy.errors import InputError, MissingExtraError
from nodecopy.recommend import EASE, IALS, CopyEASE, Fusion, ItemKNN, Popularity, Recommender
from tests.contracts.recommenders import RecommenderContract, tastes

CLOSED_FORMS: dict[str, Recommender] = {
    "popularity": Popularity(),
    "fusion": Fusion(CopyEASE(regularisation=5.0), ItemKNN(neighbours=5), weight=0.7),
    "knn": ItemKNN(neighbours=5),
    "ease": EASE(regularisation=5.0),
    "ease-single": EASE(regularisation=5.0, precision="single"),
    "copy-ease": CopyEASE(regularisation=5.0),
    "copy-ease-uniform": CopyEASE(regularisation=5.0, user_law="uniform", item_law="uniform"),
    "copy-ease-users": CopyEASE(regularisation=5.0, item_share=0.0, item_bonus=0.0, user_law=Jaccard()),
}


class TestClosedForms(RecommenderContract):
    @pytest.fixture(scope="class", params=CLOSED_FORMS)
    @classmethod
    def recommender(cls, request: pytest.FixtureRequest) -> Recommender:
        return CLOSED_FORMS[request.param]

    def test_own_group_first(self, fitted: Recommender, split: Any) -> None:
        """Items of the user's group come first, except by popularity."""
        if isinstance(fitted, Popularity):
            return
        assert own_group(fitted) > 0.8


@pytest.mark.skipif(not importlib.util.find_spec("implicit"), reason="implicit is not installed")
class TestIALS(RecommenderContract):
    draws = True

    @pytest.fixture(scope="class")
    @classmethod
    def recommender(cls) -> Recommender:
        return IALS(factors=4, regularisation=1.0, confidence=5.0)

    def test_own_group_first(self, fitted: Recommender) -> None:
        assert own_group(fitted) > 0.8


def own_group(fitted: Recommender) -> float:
    """Share of users whose best unseen item is of their group, among those who have unseen ones of it."""
    known = fitted.interactions_
    best = fitted.recommend(k=1)[0][:, 0]
    theme = {item: number % 3 for number, item in enumerate(known.item_ids.tolist())}
    users = np.flatnonzero(known.rows.degrees)
    return float(np.mean([theme[best[user]] == user % 3 for user in users]))


def test_ials_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("implicit", "implicit.cpu.als"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"IALS needs implicit.*nodecopy\[implicit\]"):
        IALS().fit(tastes(), rng=0)


def test_broken_weights_never_get_in() -> None:
    with pytest.raises(InputError, match="matrix must hold finite numbers; got nan"):
        Interactions([[1.0, np.nan]])


@pytest.mark.parametrize(
    ("recommender", "message"),
    [
        (ItemKNN(neighbours=0), "neighbours of ItemKNN must be an integer of at least 1; got 0"),
        (ItemKNN(shrinkage=-1.0), "shrinkage of ItemKNN must be a number of at least 0; got -1.0"),
        (EASE(regularisation=0.0), "regularisation of EASE must be above 0; got 0.0"),
        (EASE(precision="half"), "precision of EASE must be one of 'double', 'single'; got 'half'"),
        (CopyEASE(user_share=0.7, item_share=0.4), r"user_share \+ item_share .* at most 1; got 1.1"),
        (CopyEASE(user_law="same"), "user_law of CopyEASE must be a donor law such as .* got 'same'"),
        (CopyEASE(item_law=Jaccard), "item_law of CopyEASE must be a donor law"),
        (CopyEASE(item_bonus=-0.1), "item_bonus of CopyEASE must be a number of at least 0"),
        (Fusion(EASE(), ItemKNN(), weight=2.0), "weight of Fusion must be a number between 0 and 1"),
        (Fusion(EASE(), "knn"), "second of Fusion must be a recommender; got 'knn'"),  # type: ignore[arg-type]
        (Fusion(EASE(-1.0), ItemKNN()), "regularisation of EASE must be"),
        (IALS(factors=0), "factors of IALS must be"),
        (IALS(confidence=0.5), "confidence of IALS must be a number of at least 1"),
    ],
)
def test_wrong_settings(recommender: Recommender, message: str) -> None:
    with pytest.raises(InputError, match=message):
        recommender.fit(tastes(), rng=0)


def test_fusion_by_its_definition() -> None:
    """A fitted part is taken as it is; a share of 1 ranks as the first part alone."""
    log = tastes()
    parts = EASE(regularisation=5.0).fit(log), ItemKNN(neighbours=5).fit(log)
    users = np.flatnonzero(log.rows.degrees)
    z = [
        (s - s.mean(axis=1, keepdims=True)) / s.std(axis=1, keepdims=True) for s in (p.score() for p in parts)
    ]
    fused = Fusion(*parts, weight=0.3).fit(log)
    np.testing.assert_allclose(fused.score()[users], (0.3 * z[0] + 0.7 * z[1])[users], atol=1e-4)
    alone = Fusion(EASE(regularisation=5.0), ItemKNN(), weight=1.0).fit(log)
    assert np.array_equal(alone.recommend(k=3)[0][users], parts[0].recommend(k=3)[0][users])
