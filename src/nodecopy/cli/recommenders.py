"""The recommenders of the command line by name, and how they are fitted there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from nodecopy import datasets
from nodecopy._core.hints import Hint
from nodecopy._core.notices import log_decision
from nodecopy._core.optional_imports import import_optional
from nodecopy._core.random import child, seed_sequence
from nodecopy._core.validation import check_real
from nodecopy.cli.options import check_applicable
from nodecopy.errors import InputError
from nodecopy.experiments.trials import TrialSeeds
from nodecopy.interactions import Interactions

if TYPE_CHECKING:
    from nodecopy.recommend import Recommender

VALIDATION_SHARE = 0.1
"""Share of the interactions by which networks choose their number of epochs."""
NETWORKS = ("bprmf", "lightgcn", "mgccf")
Model = Literal["popularity", "item-knn", "ease", "copy-ease", "ials", "bprmf", "lightgcn", "mgccf"]
"""The recommenders."""


def make_recommender(model: Model, device: str) -> Any:
    """Return a recommender that is not fitted."""
    if model in NETWORKS:
        import_optional("torch", f"the model {model}")
    import nodecopy.recommend

    class_names = {name.lower(): name for name in nodecopy.recommend.__all__}
    recommender = getattr(nodecopy.recommend, class_names[model.replace("-", "")])()
    if hasattr(recommender, "device"):
        recommender.device = device
    elif device != "cpu":
        check_applicable("models that use torch", f"--model {model}, which does not", device=device)
    return recommender


def fit_recommender(
    recommender: Any,
    positive: Interactions,
    seed: int,
    *,
    seen: Interactions | None = None,
    validation: Interactions | None = None,
) -> Recommender:
    """Fit a recommender; networks first choose the number of epochs by held-out interactions.

    ``validation`` are those of ``positive`` that are held out, by default a random part.
    """
    root = seed_sequence(seed)
    rng = child(root, TrialSeeds.METHOD)
    if hasattr(recommender, "n_epochs"):
        if validation is None:
            shares = (1 - VALIDATION_SHARE, VALIDATION_SHARE, 0.0)
            split = datasets.interaction_split(positive, shares, rng=child(root, TrialSeeds.VALIDATION))
            rest, validation = split.train, split.validation
        else:
            rest = positive.difference(validation)
        if rest.n_interactions and validation.n_interactions:
            trial = replace(recommender).fit(rest, validation=validation, rng=rng)
            recommender = replace(recommender, n_epochs=max(1, trial.n_epochs_))
    fitted: Recommender = recommender.fit(positive, seen=seen, rng=rng)
    return fitted


def select_positive(seen: Interactions, min_rating: float | None) -> Interactions:
    """Return the interactions with at least that rating, on all users and items; all without a rating."""
    if min_rating is None:
        if seen.is_weighted:
            low, high = seen.matrix.data.min(), seen.matrix.data.max()
            log_decision(
                f"all ratings, {low:g} to {high:g}, count as positive interactions.",
                Hint("{} leaves lower ones out.", min_rating=int),
            )
        return seen
    check_real(min_rating, "--min-rating")
    if not seen.is_weighted:
        raise InputError(
            "--min-rating needs ratings; the source has none, or all of them are one. Name their column with "
            "--rating NAME."
        )
    positive = seen.at_least(rating=min_rating, per_user=0, per_item=0)
    if not positive.n_interactions:
        highest = seen.matrix.data.max()
        raise InputError(f"--min-rating must be at most {highest:g}, the highest rating; got {min_rating:g}.")
    return positive
