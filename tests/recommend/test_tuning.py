"""The coordinate search: its scores, what it computes again, and which parts it takes for validation."""

from __future__ import annotations

import copy
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from nodecopy import Interactions, Jaccard, datasets
from nodecopy.errors import InputError, NotFittedError
from nodecopy.recommend import EASE, CopyEASE, tuning
from nodecopy.recommend.tuning import ScoredSettings
from tests.contracts.recommenders import tastes

LIBRARY = datasets.load("library")


def parts(seed: int = 0) -> tuple[Interactions, Interactions]:
    fitted, held_out, _ = datasets.interaction_split(LIBRARY, (0.8, 0.2, 0.0), rng=seed)
    return fitted.binary(), held_out.binary()


@pytest.mark.parametrize("model", [EASE(), CopyEASE(item_bonus=0.1), CopyEASE(user_donors="uniform")])
def test_scores_are_those_of_fitted_models(model: EASE | CopyEASE) -> None:
    fitted, held_out = parts()
    model.tune(LIBRARY, held_out, budget=7)
    assert 4 < len(model.tuning_) <= 7
    for trial in model.tuning_:
        single = copy.deepcopy(model).set_params(**trial["settings"]).fit(fitted)
        expected = single.evaluate(held_out, metrics=["recall@20", "ndcg@20"])
        assert {name: trial[name] for name in expected} == pytest.approx(expected, abs=1e-3)
    scores = [trial["recall@20"] + trial["ndcg@20"] for trial in model.tuning_]
    chosen = {name: model.get_params()[name] for name in model.tuning_[0]["settings"]}
    assert scores[[trial["settings"] for trial in model.tuning_].index(chosen)] >= scores[0]
    with pytest.raises(NotFittedError):
        model.score()


def test_the_search_finds_the_peak_of_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Along a path of one parameter with a single peak, climbing finds the best of all values."""
    monkeypatch.setattr(tuning, "MIN_STANDARD_ERRORS", 0.0)
    _, held_out = parts(1)
    model = EASE(regularisation=5.0).tune(LIBRARY, held_out, budget=60)
    trials = model.tuning_
    scores = {tuple(t["settings"].values()): t["recall@20"] + t["ndcg@20"] for t in trials}
    chosen = tuple(model.get_params()[name] for name in model.tuning_[0]["settings"])
    assert scores[chosen] == max(scores.values()) > scores[5.0, 0.0, 0.0, 0.0, 0.0]
    assert len(scores) == len(model.tuning_) < 60


def test_gains_must_exceed_noise() -> None:
    """A mean gain of 0.01 over 100 users is one standard error if gains vary by 0.1, a tenth if by 1."""
    draws = np.random.default_rng(0)
    before = ScoredSettings({}, np.zeros((2, 100)))
    noise = draws.choice([-1.0, 1.0], 100)
    noise -= noise.mean()
    gains = {scale: ScoredSettings({}, np.array([0.01 + scale * noise, 0 * noise])) for scale in (1.0, 0.1)}
    assert gains[0.1].is_better_than(before)
    assert not gains[1.0].is_better_than(before)
    assert not before.is_better_than(before)


def test_a_seed_gives_the_same_search() -> None:
    first, second, other = (CopyEASE().tune(LIBRARY, budget=12, rng=seed) for seed in (0, 0, 1))
    assert first.tuning_ == second.tuning_ != other.tuning_
    assert len(first.tuning_) <= 12


def test_moments_and_rules_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    fits, computed = (Mock(side_effect=part) for part in (Jaccard.fit, CopyEASE.moments))
    monkeypatch.setattr(Jaccard, "fit", lambda donors, data: fits(donors, data))
    monkeypatch.setattr(CopyEASE, "moments", lambda model, log, rules: computed(model, log, rules=rules))
    model = CopyEASE().tune(LIBRARY, budget=14, rng=0)
    assert len(model.tuning_) == 14
    settings = [trial["settings"] for trial in model.tuning_]
    rules = {(side, s[f"{side}__exponent"], s[f"{side}__max_donors"]) for s in settings for side in RULES}
    assert fits.call_count == len(rules)
    n_regularisations = len({s["regularisation"] for s in settings})
    assert computed.call_count <= len(settings) - n_regularisations + 1


RULES = ("user_donors", "item_donors")


def test_validation_inside_and_outside(caplog: pytest.LogCaptureFixture) -> None:
    fitted, held_out = parts()
    inside, outside = (EASE().tune(log, held_out, budget=4) for log in (LIBRARY, fitted))
    assert inside.tuning_ == outside.tuning_
    with pytest.raises(InputError, match=r"validation must be inside interactions or have none .* outside"):
        EASE().tune(datasets.interaction_split(LIBRARY, rng=5).train, held_out)
    EASE().tune(LIBRARY, held_out, budget=2)
    assert "EASE was tuned with 2 settings on 674 held-out interactions: regularisation=" in caplog.text
    assert "Set budget to change this" in caplog.text
    first = inside.tuning_[0]
    assert "validation curves, recall@20 + ndcg@20 around the choice: regularisation " in caplog.text
    assert (
        f"{first['settings']['regularisation']:g}: {first['recall@20'] + first['ndcg@20']:.4f}" in caplog.text
    )


def test_empty_rows_and_few_items() -> None:
    matrix = np.zeros((70, 30))
    matrix[:60, :24] = tastes().matrix.toarray()
    assert len(CopyEASE().tune(Interactions(matrix), k=5, budget=3, rng=0).tuning_) == 3
    log = Interactions(np.random.default_rng(0).random((30, 6)) < 0.4)
    assert "recall@6" in EASE().tune(log, budget=2, rng=0).tuning_[0]


def test_tuning_with_torch() -> None:
    _, held_out = parts()
    expected = CopyEASE().tune(LIBRARY, held_out, budget=4).tuning_
    model = CopyEASE(device="cpu:0").tune(LIBRARY, held_out, budget=4)
    for ours, theirs in zip(model.tuning_, expected, strict=True):
        assert ours["recall@20"] == pytest.approx(theirs["recall@20"], abs=1e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 25}, "k must be"),
        ({"validation": tastes().difference(tastes())}, "validation must hold at least one interaction"),
        ({"validation": Interactions(np.ones((3, 24)))}, "validation: users must hold strings"),
        ({"validation": tastes()}, "interactions without validation must hold at least one"),
    ],
)
def test_wrong_arguments(options: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        EASE().tune(tastes(), **options)
    with pytest.raises(InputError, match="a user must have interactions to fit and others"):
        EASE().tune(Interactions(np.eye(3)), k=2)
