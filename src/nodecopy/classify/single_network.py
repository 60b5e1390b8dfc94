"""MLP, GCN and APPNP: single networks on the observed graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from nodecopy._core.lookup import check_name
from nodecopy.classify.base import Classifier, Prediction, Problems, Trial, seeds_of
from nodecopy.nn.networks import APPNP_RECIPE, G3NN, GNN_BENCHMARK, KIPF, MLP_RECIPE, Recipe

RECIPE_SETTINGS = tuple(entry.name for entry in fields(Recipe))
PRESETS = {
    "mlp": {"kipf": MLP_RECIPE, "gnn-benchmark": replace(GNN_BENCHMARK, spread="none")},
    "gcn": {"kipf": KIPF, "gnn-benchmark": GNN_BENCHMARK},
    "appnp": {
        "kipf": APPNP_RECIPE,
        "gnn-benchmark": replace(APPNP_RECIPE, features="binary", patience=50, epochs=2000),
    },
    "sbm-gcn": {"g3nn": G3NN},
}


def recipe_for(network: str, preset: str, settings: dict[str, Any]) -> Recipe:
    """A preset of a network with some settings changed."""
    presets = PRESETS[check_name(network, PRESETS, "base")]
    recipe = presets[check_name(preset, presets, "preset")]
    for name in settings:
        check_name(name, RECIPE_SETTINGS, "a setting")
    return replace(recipe, **settings)


class _Network(Classifier):
    """One network on the observed graph.

    Parameters
    ----------
    preset
        ``"kipf"``: the settings of Kipf and Welling (2017), 200 epochs. ``"gnn-benchmark"``: those of
        Shchur et al. (2018), which stop by the validation loss.
    device
        ``"cpu"`` or ``"cuda"``.
    settings
        Any field of :class:`~nodecopy.nn.networks.Recipe`, such as ``hidden=32``.
    """

    network: str
    OTHER_SETTINGS = RECIPE_SETTINGS

    def __init__(self, *, preset: str = "kipf", device: str = "cpu", **settings: Any) -> None:
        self.preset, self.device, self.settings = preset, device, settings

    def _solved(self, trials: Sequence[Trial], *, keep: bool) -> list[Prediction]:
        recipe = recipe_for(self.network, self.preset, self.settings)
        problems = Problems(trials, recipe, self.device, keep=keep)
        networks = problems.trained(problems.observed, seeds_of(trials, 0))
        return problems.predictions(networks, 0)

    def _arguments(self) -> dict[str, Any]:
        return {"preset": self.preset, **self.settings}


class MLP(_Network):
    """A two-layer perceptron on the features alone.

    Examples
    --------
    >>> import numpy as np
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import MLP
    >>> club = datasets.load("karate").replace(features=np.eye(34))
    >>> MLP(epochs=50).fit(club, [0, 33], rng=0).predict()[[0, 33]].tolist()
    ['Mr. Hi', 'Officer']
    """

    network = "mlp"


class GCN(_Network):
    """The graph convolutional network of Kipf and Welling (2017).

    Examples
    --------
    >>> import numpy as np
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import GCN
    >>> club = datasets.load("karate").replace(features=np.eye(34))
    >>> found = GCN(epochs=50).fit(club, [0, 33], rng=0)  # two labels
    >>> found.predict()[[1, 32]].tolist()
    ['Mr. Hi', 'Officer']
    """

    network = "gcn"


class APPNP(_Network):
    """Predictions of an MLP spread by personalised PageRank (Gasteiger et al., 2019).

    Examples
    --------
    >>> import numpy as np
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import APPNP
    >>> club = datasets.load("karate").replace(features=np.eye(34))
    >>> found = APPNP(epochs=50).fit(club, [0, 33], rng=0)  # two labels
    >>> found.predict()[[1, 32]].tolist()
    ['Mr. Hi', 'Officer']
    """

    network = "appnp"
