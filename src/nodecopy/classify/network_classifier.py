"""What MLP, GCN and APPNP share: two-layer networks, one trained on the observed graph of each trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, TypeVar

from nodecopy._core.lookup import check_name
from nodecopy.classify.base import Classifier
from nodecopy.classify.batch import TrainingBatch, fit_by_classes
from nodecopy.classify.ensemble import Prediction
from nodecopy.classify.seeds import ClassifierSeeds
from nodecopy.classify.trial import Trial
from nodecopy.errors import InputError
from nodecopy.nn.networks import Recipe

ANY_DATA: dict[str, Any] = {"features": "auto", "weights": "auto"}
"""Settings that choose the scaling of features and weights by the data."""
DEFAULT: dict[str, Any] = {**ANY_DATA, "weight_decay": 5e-3}
"""Settings of the preset ``"default"``; the decay suits features of unit length."""
AnyRecipe = TypeVar("AnyRecipe", bound=Recipe)

GNN_BENCHMARK = Recipe(
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

    presets: ClassVar[dict[str, Recipe]]

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

    def build_recipe(self) -> Recipe:
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
