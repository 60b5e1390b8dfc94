from __future__ import annotations

from typing import Any, get_args

import pytest

from nodecopy import Interactions, datasets
from nodecopy.cli.recommend import Model, fit_recommender, make_recommender, select_positive
from nodecopy.errors import InputError
from nodecopy.recommend import EASE
from tests.cli.conftest import Run


@pytest.mark.parametrize("model", get_args(Model))
def test_every_name_is_a_recommender(model: Model) -> None:
    pytest.importorskip("torch")
    assert type(make_recommender(model, "cpu")).__name__.lower() == model.replace("-", "")


def test_a_device_needs_a_model_that_uses_torch() -> None:
    with pytest.raises(
        InputError, match="--device applies to models that use torch only; got --model item-knn"
    ):
        make_recommender("item-knn", "cuda")


def test_networks_choose_their_epochs_by_the_validation_part_that_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("torch")
    from nodecopy.recommend import BPRMF

    fits: list[Any] = []
    plain = BPRMF.fit

    def record_fit(self: Any, interactions: Any, **options: Any) -> Any:
        fits.append((interactions, options.get("validation"), self.n_epochs))
        return plain(self, interactions, **options)

    monkeypatch.setattr(BPRMF, "fit", record_fit)
    library = datasets.load("library")
    validation = datasets.interaction_split(library, (0.9, 0.1, 0.0), rng=5).validation
    model = BPRMF(n_factors=4, n_epochs=3, evaluate_every=1)
    fitted = fit_recommender(model, library, 0, validation=validation)
    assert fits[0] == (library.difference(validation), validation, 3)
    assert (fits[1][0], fits[1][1]) == (library, None)
    assert fitted.interactions_ == library
    assert fit_recommender(EASE(), library, 0, validation=validation).interactions_ == library


def test_networks_learn_when_to_stop_and_then_from_all(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    bpr = pytest.importorskip("nodecopy.recommend.bpr")
    monkeypatch.setattr(bpr.BPRMF, "__init__", _short(bpr.BPRMF.__init__))
    fits = []
    fit = bpr.BPRRecommender.fit

    def record_fit(self: Any, interactions: Any, **options: Any) -> Any:
        fit(self, interactions, **options)
        fits.append((interactions.n_interactions, self.n_epochs, self.n_epochs_))
        return self

    monkeypatch.setattr(bpr.BPRRecommender, "fit", record_fit)
    arguments = ("recommend", "library", "--user", "reader 001", "--model", "bprmf", "--seed", "5", "--json")
    answer = run(*arguments).out
    (part, most, stopped), (everything, epochs, last) = fits
    assert (part, everything, most) == (3032, 3369, 6)
    assert stopped == epochs == last
    assert run(*arguments).out == answer


def _short(make: Any) -> Any:
    def short(self: Any, **settings: Any) -> None:
        make(self, **({"n_epochs": 6, "evaluate_every": 2, "n_factors": 4} | settings))

    return short


def test_positive_interactions() -> None:
    log = Interactions([[1, 5], [4, 0]])
    assert select_positive(log, 4) == Interactions([[0, 5], [4, 0]])
    with pytest.raises(InputError, match="--min-rating must be at most 5, the highest rating; got 6"):
        select_positive(log, 6)
    with pytest.raises(InputError, match="--min-rating needs ratings; the source has none"):
        select_positive(log.binary(), 4)
