"""The Bayesian GCN (the paper's Algorithm 1): an ensemble of networks trained on sampled graphs."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy import sparse

from nodecopy._core.checks import check_integer, check_settings, show
from nodecopy._core.random import child
from nodecopy.classify.base import MAX_ROUNDS, ClassifierSeeds, Prediction, Trial, entropy
from nodecopy.classify.networks import APPNP, GCN, BatchClassifier, NetworkClassifier, TrainingBatch
from nodecopy.classify.own_networks import CustomNetwork, wrap_factory
from nodecopy.classify.sbm_gcn import SBMGCN
from nodecopy.copying import NodeCopying, SameLabel
from nodecopy.errors import InputError
from nodecopy.models import GraphModel, check_graph_model
from nodecopy.nn.modules import Factory

ROUNDS_TRIED = 3  # rounds that are compared on validation nodes
MIN_ENTRIES_FOR_THREADS = 10**5  # entries of an adjacency matrix above which several threads draw samples


@dataclass(eq=False, repr=False)
class BayesianGCN(BatchClassifier):
    """Classify nodes by an ensemble over sampled graphs and sampled weights.

    A graph model is fitted to the observed graph with the labels that a base network predicts, a network is
    trained on each of its samples, and predictions on the observed graph are averaged.

    Parameters
    ----------
    graph_model
        Any :class:`~nodecopy.GraphModel`; by default, as in the paper,
        ``NodeCopying(SameLabel(), symmetrise="maximum")``.
    n_graphs
        Sampled graphs (the paper's N_G), with one network trained on each.
    n_weight_samples
        Monte Carlo dropout samples of each network (the paper's S).
    n_rounds
        How often the graph model is fitted to predicted labels: 1 in the paper.
        ``"validation"`` compares zero to three rounds by the validation accuracy.
    base
        The networks: ``GCN()`` by default, ``APPNP()``, ``SBMGCN()``, :class:`CustomNetwork` or its factory.
        The edges that ``SBMGCN()`` explains are those of the sampled graph.
    device
        ``"cpu"`` or ``"cuda"``, for the default base and a function; another base has its own.

    Examples
    --------
    >>> import numpy as np
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import GCN, BayesianGCN
    >>> club = datasets.load("karate").replace(features=np.eye(34))
    >>> fitted = BayesianGCN(n_graphs=3, base=GCN(n_epochs=50)).fit(club, [0, 33], rng=0)  # two labels
    >>> fitted.predict()[[1, 32]].tolist()
    ['Mr. Hi', 'Officer']
    >>> bool(fitted.uncertainty().epistemic.max() > 0)
    True
    """

    graph_model: GraphModel[Any] | None = None
    n_graphs: int = 10
    n_weight_samples: int = 10
    _: KW_ONLY
    n_rounds: int | str = 1
    base: NetworkClassifier | SBMGCN | CustomNetwork | Factory | str | None = None
    device: str = "cpu"

    @property
    def uses_validation(self) -> bool:
        return self.n_rounds == "validation" or self._build_base().uses_validation

    def build_batch(self, trials: Sequence[Trial], *, keep_networks: bool = False) -> TrainingBatch:
        self._check_parameters(trials)
        return self._build_base().build_batch(trials, keep_networks=keep_networks)

    def fit_batch(self, batch: TrainingBatch) -> list[Prediction]:
        n_rounds: Any = ROUNDS_TRIED if self.n_rounds == "validation" else self.n_rounds
        earlier = [trial.predictions for trial in batch.trials]  # of self-training
        predictions = [[Prediction(p, entropy(p)) for p in earlier if p is not None]]
        if len(predictions[0]) < len(earlier):
            predictions = [batch.predict_observed()]
        for number in range(1, n_rounds + 1):
            sampled = self.sample_graphs(batch, predictions[-1], number, self.n_graphs)
            seeds = batch.seeds(ClassifierSeeds.NETWORKS + number, self.n_graphs)
            predictions.append(batch.predict(batch.train(sampled, seeds), self.n_weight_samples))
        if self.n_rounds != "validation":
            return predictions[-1]
        chosen = []
        for trial, *rounds in zip(batch.trials, *predictions, strict=True):
            best = int(np.argmax(trial.validation_accuracy(rounds)))  # ties go to the earliest round
            chosen.append(replace(rounds[best], details={"rounds": best}))
        return chosen

    def _check_parameters(self, trials: Sequence[Trial]) -> None:
        check_settings(self, n_graphs=1, n_weight_samples=1)
        if self.graph_model is not None:
            check_graph_model(self.graph_model, "graph_model of BayesianGCN")
        name = "n_rounds of BayesianGCN"
        if self.n_rounds != "validation":
            if isinstance(self.n_rounds, str):
                raise InputError(name, f"must be an integer or 'validation'; got {show(self.n_rounds)}.")
            check_integer(self.n_rounds, name, low=1, high=MAX_ROUNDS - 1)
        elif not all(trial.has_validation for trial in trials):
            reason = "since it decides the number of rounds. n_rounds=NUMBER needs none."
            raise InputError("validation", f"must be given, {reason}")

    def _build_base(self) -> GCN | APPNP | SBMGCN | CustomNetwork:
        if self.base is None:
            return GCN(device=self.device)
        base = wrap_factory(self.base, self.device, "BayesianGCN")
        if not isinstance(base, (GCN, APPNP, SBMGCN, CustomNetwork)):
            allowed = "GCN(), APPNP(), SBMGCN(), CustomNetwork(...) or a function that builds a network"
            raise InputError("base of BayesianGCN", f"must be {allowed}; got {show(base)}.")
        return base

    def sample_graphs(
        self, batch: TrainingBatch, predictions: Sequence[Prediction], number: int, n_graphs: int
    ) -> list[sparse.csr_array]:
        """Return adjacencies, with scaled weights, that the graph model samples for each trial in a round."""
        default = NodeCopying(SameLabel(), symmetrise="maximum")
        adjacencies = []
        for trial, prediction, scaling in zip(batch.trials, predictions, batch.weight_scalings, strict=True):
            codes = prediction.probabilities.argmax(axis=1)
            codes[trial.train] = trial.codes[trial.train]
            model = default if self.graph_model is None else copy.deepcopy(self.graph_model)
            seed = child(child(trial.rng, ClassifierSeeds.GRAPH_MODEL), number)
            model.fit(trial.graph.replace(labels=codes), rng=seed)
            seed = child(trial.rng, ClassifierSeeds.GRAPHS + number)
            is_large = isinstance(model, NodeCopying) and trial.graph.adjacency.nnz >= MIN_ENTRIES_FOR_THREADS
            workers = torch.get_num_threads() if is_large else 1
            samples = model.sample_many(n_graphs, rng=seed, workers=workers)
            adjacencies += [scaling.apply(sample.adjacency) for sample in samples]
        return adjacencies
