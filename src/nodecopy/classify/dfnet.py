"""DFNet and DFNet-ATT (Wijesinghe and Wang, 2019): densely connected spectral filters with feedback."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from nodecopy._core.lookup import check_name
from nodecopy._core.validation import check_integer
from nodecopy.classify.base import Classifier, Prediction, Problems, Trial, seeds_of
from nodecopy.errors import InputError
from nodecopy.nn.filters import FilterNetworks, FilterRecipe

RECIPES = {
    True: FilterRecipe(),
    False: FilterRecipe(heads=0, widths=(8, 16, 32, 64, 128), weight_decay=0.18),
}


class DFNet(Classifier):
    """Classify nodes by densely connected layers of feedback-looped filters.

    Parameters
    ----------
    attention
        DFNet-ATT, whose layers average over neighbours with attention, or plain DFNet.
    device
        ``"cpu"`` or ``"cuda"``.
    settings
        Those of :class:`~nodecopy.nn.filters.FilterRecipe`, such as ``widths=(8, 16)``.

    Notes
    -----
    Settings are the authors', but for these. The last of the 200 epochs counts, where their code shows the
    accuracy on test nodes after every epoch. With ``patience`` the one with the lowest loss on validation
    nodes counts, but these networks are so sure of themselves that the loss is lowest after a few epochs,
    long before the accuracy is highest. Normalisation takes mean and variance of the graph at hand, in
    predictions too, where their code takes a moving average that has not settled after 200 epochs. The
    Laplacian's largest eigenvalue counts as 2, its bound. Classes have equal weights; theirs are meant to
    balance, but are shifted by one class.

    The filters multiply by up to 36, so rounding is magnified: a trial that runs beside others may differ
    visibly from the same trial alone where a prediction hangs in the balance.

    Examples
    --------
    >>> import numpy as np
    >>> from nodecopy import datasets
    >>> club = datasets.load("karate").replace(features=np.eye(34))
    >>> small = DFNet(widths=(8,), epochs=50, learning_rate=0.02)
    >>> fitted = small.fit(club, [0, 1, 32, 33], rng=0)
    >>> int((fitted.predict() == club.named_labels()).sum()) > 28
    True
    """

    OTHER_SETTINGS = FilterRecipe.SETTINGS

    def __init__(self, attention: bool = True, *, device: str = "cpu", **settings: Any) -> None:
        self.attention, self.device, self.settings = attention, device, settings

    def _arguments(self) -> dict[str, Any]:
        return {"attention": self.attention, **self.settings}

    def _solved(self, trials: Sequence[Trial], *, keep: bool) -> list[Prediction]:
        for name in self.settings:
            check_name(name, FilterRecipe.SETTINGS, "a setting")
        recipe = replace(RECIPES[bool(self.attention)], **self.settings)
        if not self.attention and recipe.heads:
            raise InputError(f"heads of DFNet must be left out without attention; got {recipe.heads}.")
        check_integer(recipe.heads, "heads of a recipe", low=int(self.attention))
        problems = Problems(trials, recipe, self.device, keep=keep, kind=FilterNetworks)
        networks = problems.trained(problems.observed, seeds_of(trials, 0))
        return problems.predictions(networks, 0)
