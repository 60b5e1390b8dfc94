"""A network of the user, built by a factory and trained as the package's own networks are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import torch

from nodecopy.classify.base import Classifier
from nodecopy.classify.batch import fit_by_classes
from nodecopy.classify.ensemble import Prediction
from nodecopy.classify.module_ensemble import OWNER, ModuleBatch
from nodecopy.classify.network_classifier import ANY_DATA, change_recipe
from nodecopy.classify.seeds import ClassifierSeeds
from nodecopy.classify.trial import Trial
from nodecopy.errors import InputError
from nodecopy.nn.module_training import Factory
from nodecopy.nn.networks import KIPF

EXAMPLE = "lambda n_features, n_classes: torch_geometric.nn.GAT(n_features, 16, 2, n_classes)"


@dataclass(eq=False, repr=False)
class CustomNetwork(Classifier):
    """Classify nodes by a network of your own, such as a model of PyTorch Geometric.

    It is the base of :class:`BayesianGCN` and :class:`SelfTraining` that takes any network; those wrap a bare
    factory in it. Networks are trained one after another, in training mode, by Adam and the cross-entropy of
    the training nodes, and predict in evaluation mode.

    Parameters
    ----------
    factory
        A function of the numbers of features and classes, or a class with such a constructor, that returns a
        new ``torch.nn.Module`` with ``forward(x, edge_index)`` or ``forward(x, edge_index, edge_weight)``. It
        returns logits, log-probabilities or probabilities, one row per node and one column per class. ``x``
        is the scaled features as a dense tensor. ``edge_index`` holds both directions of undirected edges.
        Of directed edges it holds sources and targets, as :func:`nodecopy.to_pyg` returns them: layers of PyG
        then read the in-neighbours of a node, where :class:`GCN` and :class:`APPNP` read its out-neighbours,
        and ``fit`` logs this. ``edge_weight`` is given for weighted graphs only, and is 1 for other graphs if
        it has no default.
    n_epochs
        Epochs of training, at most.
    learning_rate, weight_decay
        Of Adam; the decay applies to all parameters.
    patience
        Epochs without a lower validation loss before training stops and takes back the best weights. 0
        trains for ``n_epochs`` and takes the last weights, without validation nodes.
    features, weights
        Scaling of features and edge weights, as in :class:`NetworkClassifier`.
    device
        ``"cpu"`` or ``"cuda"``.

    Notes
    -----
    Weights and dropout masks are drawn from torch's global generators, which are seeded for each network and
    restored afterwards. On a GPU the sums of PyG's layers have no fixed order, so results differ by rounding.

    A file of :meth:`save` holds the trained weights and the name of the factory, not its code:
    ``nodecopy.load(path, classes=[factory])`` takes the function again.

    Examples
    --------
    >>> from torch_geometric.nn import GraphSAGE
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import BayesianGCN, CustomNetwork
    >>> def build(n_features, n_classes):
    ...     return GraphSAGE(n_features, 16, 2, n_classes, dropout=0.5)
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> CustomNetwork(build, n_epochs=50).fit(digits, range(100), rng=0).score() > 0.8
    True

    The same network in an ensemble over sampled graphs:

    >>> ensemble = BayesianGCN(n_graphs=3, base=CustomNetwork(build, n_epochs=50))
    >>> ensemble.fit(digits, range(100), rng=0).score() > 0.8
    True
    """

    factory: Factory
    _: KW_ONLY
    n_epochs: int = 200
    learning_rate: float = 0.01
    weight_decay: float = 5e-4
    patience: int = 0
    features: str = "auto"
    weights: str = "auto"
    device: str = "cpu"

    owner = OWNER  # without an annotation, so that it is no parameter
    """The parameter that took the factory, for errors."""

    @property
    def uses_validation(self) -> bool:
        return self.patience > 0

    def build_batch(self, trials: Sequence[Trial], *, keep_networks: bool = False) -> ModuleBatch:
        """Return trials for which networks can be trained."""
        check_factory(self.factory, self.owner)
        recipe = change_recipe(replace(KIPF, **ANY_DATA), self)
        return ModuleBatch(
            trials, recipe, self.device, self.factory, owner=self.owner, keep_networks=keep_networks
        )

    @fit_by_classes
    def fit_trials(self, trials: Sequence[Trial], *, keep_networks: bool = False) -> list[Prediction]:
        batch = self.build_batch(trials, keep_networks=keep_networks)
        return batch.predict(batch.train(batch.observed, batch.seeds(ClassifierSeeds.NETWORKS)))


def wrap_factory(base: Any, device: str, owner: str) -> Any:
    """Return a bare factory as a :class:`CustomNetwork`, and anything that is not callable as it is."""
    if not callable(base):
        return base
    check_factory(base, f"base of {owner}")
    network = CustomNetwork(base, device=device)
    network.owner = f"base of {owner}"
    return network


def check_factory(factory: Any, name: str) -> None:
    """Raise an error for what is no factory of networks."""
    is_classifier = isinstance(factory, type) and issubclass(factory, Classifier)
    if callable(factory) and not isinstance(factory, torch.nn.Module) and not is_classifier:
        return
    got = f"a {type(factory).__name__}, which is one module" if callable(factory) else repr(factory)
    if is_classifier:
        got = f"the class {factory.__name__}: use {factory.__name__}()"
    raise InputError(
        f"{name} must be a function of the numbers of features and classes that returns a new network, such "
        f"as {EXAMPLE}; got {got}."
    )
