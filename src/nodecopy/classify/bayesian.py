"""Networks with a model of the graph: the Bayesian GCN (the paper's Algorithm 1) and SBM-GCN."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.random import SeedSequence
from scipy import sparse
from torch import Tensor
from torch.nn.functional import log_softmax

from nodecopy._core.arrays import as_matrix
from nodecopy._core.checks import check_integer, check_settings, show
from nodecopy._core.random import child
from nodecopy.classify.base import MAX_ROUNDS, ClassifierSeeds, Prediction, Trial, entropy
from nodecopy.classify.networks import ANY_DATA, APPNP, GCN, BatchClassifier, NetworkClassifier, TrainingBatch
from nodecopy.classify.own_networks import CustomNetwork, wrap_factory
from nodecopy.copying import NodeCopying, SameLabel
from nodecopy.errors import InputError
from nodecopy.features.scaling import is_sparse_counts
from nodecopy.models import GraphModel, check_graph_model
from nodecopy.nn.modules import Factory
from nodecopy.nn.networks import Networks, SparseStack, propagation_matrix
from nodecopy.nn.training import Targets, stack_matrices

WITHIN, ACROSS = 0.9, 0.1  # probabilities of an edge between nodes of the same class, and of different ones
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


@dataclass(eq=False, repr=False)
class SBMGCN(BatchClassifier):
    """Classify nodes by the posterior of a generative model of labels and edges (G3NN with SBM and GCN).

    A perceptron p(Y | X) draws labels from features, a stochastic block model p(G | Y) draws edges between
    them, and a GCN q(Y | X, G) approximates the posterior of the labels. Both networks minimise

        - E_q[log p(G | Y)] - E_q[log p(Y | X)] - H(q) + (cross-entropy of q on training labels)

    where training labels are certain under q. The probability of an edge is 0.9 between nodes of the same
    class and 0.1 between others, as in the authors' code. Predictions are those of q.

    Parameters
    ----------
    objective
        ``"paper"``: as above. ``"authors"``: their code, in which labels that generate edges come from the
        perceptron instead of q, the entropy has the opposite sign, and expectations are divided by the number
        of classes. With 200 epochs and ``patience=0`` it is as inaccurate with few labels as in the node
        copying paper.
    base
        The network q, whose parameters the perceptron shares: by default
        ``GCN(preset="g3nn", features="auto", weights="auto")``. ``"auto"`` scales word counts by ``"rows"``
        here if at least 80 % of them are zero.
    device
        ``"cpu"`` or ``"cuda"``, for the default base; another base has its own.

    Notes
    -----
    Expectations are means over nodes, edges or pairs, as in the authors' code. They sample missing edges;
    here the mean of q_i . q_j over all pairs is computed exactly, the squared length of the mean of q.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import GCN, SBMGCN
    >>> club = datasets.load("karate").replace(features=np.eye(34))
    >>> model = SBMGCN(base=GCN(preset="g3nn", n_epochs=50))
    >>> fitted = model.fit(club, [0, 1, 32, 33], validation=[2, 3, 30, 31], rng=0)
    >>> fitted.score() > 0.8
    True
    """

    _: KW_ONLY
    objective: str = "paper"
    base: GCN | None = None
    device: str = "cpu"

    def build_batch(self, trials: Sequence[Trial], *, keep_networks: bool = False) -> TrainingBatch:
        check_settings(self, objective=["paper", "authors"])
        if self.base is not None and not isinstance(self.base, GCN):
            raise InputError("base of SBMGCN", f"must be GCN(); got {show(self.base)}.")
        base = GCN(preset="g3nn", **ANY_DATA, device=self.device) if self.base is None else self.base
        return GenerativeBatch(self, base, trials, keep_networks)


class GenerativeBatch(TrainingBatch):
    """Trials whose networks minimise the objective of SBM-GCN."""

    def __init__(
        self, classifier: SBMGCN, base: GCN, trials: Sequence[Trial], keep_networks: bool = False
    ) -> None:
        features = trials[0].graph.features
        is_sparse = features is not None and is_sparse_counts(as_matrix(features, "features"))
        counts = "rows" if is_sparse else "unit"
        super().__init__(trials, base.build_config(), base.device, keep_networks=keep_networks, counts=counts)
        self.classifier = classifier

    def train(
        self, adjacencies: Sequence[sparse.csr_array], seeds: Sequence[SeedSequence], **options: Any
    ) -> Any:
        if adjacencies is self.observed:
            prior_seeds = self.seeds(ClassifierSeeds.LABEL_PRIOR)
        else:
            prior_seeds = [child(seed, ClassifierSeeds.LABEL_PRIOR) for seed in seeds]

        def build_objective(posterior: Networks, targets: Targets) -> GenerativeObjective:
            return GenerativeObjective(self, adjacencies, prior_seeds, posterior, targets)

        return super().train(adjacencies, seeds, build_objective=build_objective, **options)


class GenerativeObjective:
    """The objective of B posterior networks, each with a graph and a prior network of its own."""

    def __init__(
        self,
        batch: GenerativeBatch,
        adjacencies: Sequence[sparse.csr_array],
        prior_seeds: Sequence[SeedSequence],
        posterior: Networks,
        targets: Targets,
    ) -> None:
        self.classifier, self.posterior, self.targets = batch.classifier, posterior, targets
        config, device, n_classes = batch.engine.config, batch.engine.device, batch.engine.n_classes
        per_trial = len(adjacencies) // len(batch.trials)
        trials = [trial for trial in batch.trials for _ in range(per_trial)]
        prior_config = replace(config, propagation="none", drop_input=True)
        self.prior = Networks.initialise(prior_config, posterior.features, n_classes, prior_seeds)
        matrices = {id(adjacency): propagation_matrix(adjacency, config) for adjacency in adjacencies}
        self.graphs = stack_matrices(posterior, [matrices[id(adjacency)] for adjacency in adjacencies])
        patterns = {}
        for part in adjacencies:
            ones = np.ones(part.nnz, np.float32)
            patterns[id(part)] = sparse.csr_array((ones, part.indices, part.indptr), shape=part.shape)
        self.edges = SparseStack([patterns[id(adjacency)] for adjacency in adjacencies], device)
        self.n_edges = torch.tensor([max(1, adjacency.nnz) for adjacency in adjacencies], device=device)
        self.rows = torch.from_numpy(targets.rows).to(device)[:, :, None].expand(-1, -1, n_classes)
        self.labels = torch.zeros(len(trials), trials[0].graph.n_nodes, n_classes, device=device)
        for labels, trial in zip(self.labels, trials, strict=True):
            own = torch.from_numpy(trial.label_probabilities)
            labels[torch.from_numpy(trial.train).to(device)] = own.to(device)
        self.unlabelled = 1.0 - self.labels.sum(dim=2)

    @property
    def parameter_groups(self) -> list[dict[str, Any]]:
        return self.prior.parameter_groups

    def losses(self, step: int) -> Tensor:
        posterior, prior = self.posterior.logits(self.graphs, None, step), self.prior.logits(None, None, step)
        log_q, log_p = log_softmax(posterior, dim=2), log_softmax(prior, dim=2)
        q = log_q.exp()
        cross_entropy = self._mean_unlabelled(-(q * log_p).sum(dim=2))
        entropy = self._mean_unlabelled(-(q * log_q).sum(dim=2))
        discriminative = self.targets.losses(posterior.gather(1, self.rows))
        labelled = self.targets.losses(prior.gather(1, self.rows)) + discriminative
        if self.classifier.objective == "paper":
            return self._edge_loss(q) + cross_entropy - entropy + labelled
        return (self._edge_loss(log_p.exp()) + cross_entropy + entropy) / q.shape[2] + labelled

    def _edge_loss(self, q: Tensor) -> Tensor:
        """Return - E[log p(G | Y)] up to a constant: means over edges and over all pairs of nodes."""
        clamped = self.labels + self.unlabelled[:, :, None] * q
        same_on_edges = ((self.edges @ clamped) * clamped).sum(dim=(1, 2)) / self.n_edges
        same = clamped.mean(dim=1).square().sum(dim=1)
        return -same_on_edges * math.log(WITHIN / ACROSS) - same * math.log((1 - WITHIN) / (1 - ACROSS))

    def _mean_unlabelled(self, values: Tensor) -> Tensor:
        return (values * self.unlabelled).sum(dim=1) / self.unlabelled.sum(dim=1).clamp(min=1)
