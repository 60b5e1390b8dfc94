"""What MLP, GCN and APPNP share: two-layer networks, one trained on the observed graph of each trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, TypeVar

from nodecopy._core.imports import check_name
from nodecopy.classify.base import Classifier, ClassifierSeeds, Trial
from nodecopy.classify.batch import TrainingBatch, fit_by_classes
from nodecopy.classify.ensemble import Prediction
from nodecopy.errors import InputError
from nodecopy.nn.networks import KIPF, TrainingConfig

ANY_DATA: dict[str, Any] = {"features": "auto", "weights": "auto"}
"""Settings that choose the scaling of features and weights by the data."""
DEFAULT: dict[str, Any] = {**ANY_DATA, "weight_decay": 5e-3}
"""Settings of the preset ``"default"``; the decay suits features of unit length."""
AnyRecipe = TypeVar("AnyRecipe", bound=TrainingConfig)

GNN_BENCHMARK = TrainingConfig(
    n_hidden=64, bias=True, features="binary", dropout=0.8, weight_decay=1e-3, n_epochs=2000, patience=50
)


@dataclass(kw_only=True, eq=False, repr=False)
class NetworkClassifier(Classifier):
    """A two-layer network that is trained on the observed graph.

    A parameter that is ``None`` has the value of the preset.

    Parameters
    ----------
    preset
        ``"default"``: the settings of ``"kipf"``, with ``features`` and ``weights`` that are ``"auto"`` and a
        weight decay of 0.005.
        ``"kipf"``: those of Kipf and Welling (2017), 200 epochs, with features by ``"rows"`` and ``"raw"``
        weights.
        ``"gnn-benchmark"``: those of Shchur et al. (2018), which stop by the validation loss, with
        ``"binary"`` features and ``"raw"`` weights.
    n_hidden
        Hidden units.
    activation
        ``"relu"``, ``"leaky"`` (a slope of 0.2 below zero) or ``"none"``, a linear network.
    bias
        Whether both layers have a bias.
    features
        ``"auto"``: word counts are scaled by ``"unit"``, anything else is standardised, and the choice is
        logged (:class:`~nodecopy.features.scaling.FeatureScaling`). ``"unit"``: each node's features are
        scaled to a length of one; ``"rows"``: to a sum of one; ``"standardise"``: each column to mean 0 and
        deviation 1; ``"binary"``: present or not; ``"none"``: as they are.
    weights
        Of edges. ``"auto"``: heavy-tailed weights are ``"log"``, others ``"raw"``, and the choice is logged
        (:class:`~nodecopy.features.scaling.WeightScaling`). ``"raw"``: as they are; ``"log"``:
        log(1 + weight / smallest weight); ``"binary"``: all one.
    dropout
        Share of hidden units and, with ``drop_input``, of features that a training step drops.
    drop_input
        Whether features are dropped too.
    learning_rate
        Of Adam.
    weight_decay
        Decay of the first layer's weights, or of all weights with ``decay_all``.
    decay_all
        Whether ``weight_decay`` applies to all weights.
    n_epochs
        Epochs of training, at most.
    patience
        Epochs without a lower validation loss before training stops and takes back the best weights. 0
        trains for ``n_epochs`` and takes the last weights, without validation nodes.
    device
        ``"cpu"`` or ``"cuda"``.

    Examples
    --------
    >>> from nodecopy.classify import GCN
    >>> GCN(preset="gnn-benchmark", n_hidden=32).build_recipe().patience
    50
    """

    presets: ClassVar[dict[str, TrainingConfig]]

    preset: str = "default"
    n_hidden: int | None = None
    activation: str | None = None
    bias: bool | None = None
    features: str | None = None
    weights: str | None = None
    dropout: float | None = None
    drop_input: bool | None = None
    learning_rate: float | None = None
    weight_decay: float | None = None
    decay_all: bool | None = None
    n_epochs: int | None = None
    patience: int | None = None
    device: str = "cpu"

    def build_recipe(self) -> TrainingConfig:
        """Return how networks are built and trained: the preset with the parameters that are given."""
        name = check_name(self.preset, self.presets, f"preset of {type(self).__name__}")
        return change_recipe(self.presets[name], self)

    @property
    def uses_validation(self) -> bool:
        return self.build_recipe().patience > 0

    def build_batch(self, trials: Sequence[Trial], *, keep_networks: bool = False) -> TrainingBatch:
        """Return trials for which networks can be trained."""
        return TrainingBatch(trials, self.build_recipe(), self.device, keep_networks=keep_networks)

    @fit_by_classes
    def fit_trials(self, trials: Sequence[Trial], *, keep_networks: bool = False) -> list[Prediction]:
        batch = self.build_batch(trials, keep_networks=keep_networks)
        return batch.predict(batch.train(batch.observed, batch.seeds(ClassifierSeeds.NETWORKS)))


def change_recipe(recipe: AnyRecipe, classifier: Classifier) -> AnyRecipe:
    """Return the recipe with those fields that are parameters of a classifier and not ``None``."""
    values = {field.name: getattr(classifier, field.name, None) for field in fields(recipe)}
    try:
        return replace(recipe, **{name: value for name, value in values.items() if value is not None})
    except InputError as error:  # of the form "parameter must be ...", where the owner is known here
        parameter, must, rest = str(error).partition(" must be ")
        raise InputError(f"{parameter} of {type(classifier).__name__}{must}{rest}") from None


# The graph convolutional network (Kipf and Welling, 2017).


G3NN = TrainingConfig(n_hidden=64, bias=True, drop_input=False, decay_all=True, n_epochs=2000, patience=200)


@dataclass(kw_only=True, eq=False, repr=False)
class GCN(NetworkClassifier):
    """Classify nodes by two graph convolutions (Kipf and Welling, 2017).

    Parameters
    ----------
    preset
        As in :class:`NetworkClassifier`; ``"g3nn"`` has the settings of Ma et al. (2019), which stop by the
        validation loss.
    drop_edges
        Share of edges that each layer drops in a training step.
    rank
        Replace the adjacency by its truncated SVD of this rank (GCN-SVD; Entezari et al., 2020).
    n_hidden, ..., device
        As in :class:`NetworkClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import GCN
    >>> club = datasets.load("karate").replace(features=np.eye(34))
    >>> fitted = GCN(n_epochs=50).fit(club, [0, 33], rng=0)  # two labels
    >>> fitted.predict()[[1, 32]].tolist()
    ['Mr. Hi', 'Officer']
    """

    presets = {  # noqa: RUF012
        "default": replace(KIPF, **DEFAULT),
        "kipf": KIPF,
        "gnn-benchmark": GNN_BENCHMARK,
        "g3nn": G3NN,
    }

    drop_edges: float | None = None
    rank: int | None = None


# The multilayer perceptron, which ignores edges.


class MLP(NetworkClassifier):
    """Classify nodes by a two-layer perceptron on their features alone.

    Parameters are those of :class:`NetworkClassifier`.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import MLP
    >>> club = datasets.load("karate")
    >>> club = club.replace(features=club.adjacency)  # neighbours as features
    >>> MLP().fit(club, [0, 33], rng=0).predict()[[0, 33]].tolist()
    ['Mr. Hi', 'Officer']
    """

    presets = {  # noqa: RUF012
        "default": replace(KIPF, propagation="none", **DEFAULT),
        "kipf": replace(KIPF, propagation="none"),
        "gnn-benchmark": replace(GNN_BENCHMARK, propagation="none"),
    }


# APPNP (Gasteiger et al., 2019): a perceptron with personalised PageRank.


APPNP_KIPF = replace(KIPF, propagation="pagerank", n_hidden=64, weight_decay=5e-3)


@dataclass(kw_only=True, eq=False, repr=False)
class APPNP(NetworkClassifier):
    """Classify nodes by a perceptron whose logits are propagated by personalised PageRank.

    Parameters
    ----------
    n_steps
        Steps of propagation; 10 in all presets.
    teleport
        Probability of returning to the node itself in each step; 0.1 in all presets.
    drop_edges
        Share of edges that each step of propagation drops in a training step.
    preset, n_hidden, ..., device
        As in :class:`NetworkClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import APPNP
    >>> club = datasets.load("karate").replace(features=np.eye(34))
    >>> fitted = APPNP(n_epochs=50).fit(club, [0, 33], rng=0)  # two labels
    >>> fitted.predict()[[1, 32]].tolist()
    ['Mr. Hi', 'Officer']
    """

    presets = {  # noqa: RUF012
        "default": replace(APPNP_KIPF, **ANY_DATA),
        "kipf": APPNP_KIPF,
        "gnn-benchmark": replace(APPNP_KIPF, features="binary", patience=50, n_epochs=2000),
    }

    n_steps: int | None = None
    teleport: float | None = None
    drop_edges: float | None = None
