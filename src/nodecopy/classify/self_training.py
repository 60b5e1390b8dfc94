"""Self-training: confident predictions become training labels of the next round."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.arrays import as_matrix
from nodecopy._core.checks import (
    check_choice,
    check_finite,
    check_integer,
    check_numbers,
    check_real,
    check_settings,
    check_vector,
    show,
)
from nodecopy._core.imports import from_name
from nodecopy._core.messages import log_decision, log_decisions_once, mute_decisions
from nodecopy._core.parallel import track
from nodecopy._core.random import child
from nodecopy.classify import CLASSIFIERS
from nodecopy.classify.base import (
    MAX_ROUNDS,
    Classifier,
    ClassifierSeeds,
    Prediction,
    TrainedModel,
    Trial,
    check_trials,
    fit_in_groups,
)
from nodecopy.classify.bayesian import BayesianGCN
from nodecopy.classify.networks import APPNP, GCN
from nodecopy.classify.own_networks import wrap_factory
from nodecopy.classify.regressions import DGI, SGC
from nodecopy.copying import DonorRule, KeepByDegree, NearestNeighbours, NodeCopying, SameLabel
from nodecopy.errors import InputError
from nodecopy.features.scaling import explain_no_counts, is_sparse_counts, share_of_zeros
from nodecopy.graph import Graph
from nodecopy.nn.modules import Factory
from nodecopy.nn.training import check_device

VOTERS = ("networks", "sgc", "dgi")  # classifiers whose probabilities the default base averages
N_GRAPHS = 5  # sampled graphs in every round
N_DONORS, MAX_NODES_FOR_NEAREST = 100, 50_000  # the search takes time in the square of the size of a class
# With many labels per class, copying and pseudo-labels gain nothing and can cost accuracy.
PSEUDO_DEGREE, N_FEW_LABELS, BASE_WEIGHT = 4.0, 5, 0.5
MAX_NODES_FOR_INFOMAX = 50_000  # DGI takes as long as all other voters together
TINY = np.finfo(np.float64).tiny  # divisor in place of a sum that is zero
RECOMMENDED_BASE = (
    "The recommended method with a network of your own is "
    f"SelfTraining(BayesianGCN(NodeCopying(KeepByDegree(SameLabel())), {N_GRAPHS}, base=build))."
)
Probabilities: TypeAlias = NDArray[np.float32]


@dataclass(eq=False, repr=False)
class SelfTraining(Classifier):
    """Classify nodes with few labels: the most confident predictions become training labels.

    In every round the most confident predictions of each class become pseudo-labels, and the base is trained
    again on labels and pseudo-labels.

    Parameters
    ----------
    base
        Any classifier, or the factory of a :class:`CustomNetwork`; by default the vote described below.
    n_rounds
        Rounds with pseudo-labels; 0 is the base alone.
    share
        Largest share of the estimated size of a class that gets pseudo-labels, above 0. By default
        0.8 - 0.4 / r, where r is the square root of the mean number of labels per class.
    balance
        A class has the estimated size ``n ** (1 - balance) * m ** balance``, where n is the number of nodes
        predicted to be of it and m the mean over classes. Probabilities are scaled to these sizes before
        pseudo-labels are chosen, so that no class dies out. By default 1 / r.
    base_weight
        Weight of the base, without pseudo-labels, in its mean with the chosen round. By default 0.5 for the
        default base with more than five labels per class on average and no validation nodes, otherwise 0.
    pseudo_labels
        ``"hard"``: a pseudo-label is the predicted class; ``"soft"``: the predicted probabilities.
    loss_weights
        Weights of pseudo-labels in the loss. ``"balanced"``: all together weigh as much as all labels, and
        none more than a label; ``"equal"``: as much as a label; ``"confidence"``: its largest probability.
    network
        Networks of the default base: ``"appnp"``, ``"gcn"``, or ``"auto"`` (default), which is ``"appnp"``
        for word counts of which at least 80 % are zero and ``"gcn"`` otherwise.
    pseudo_degree
        Copying in the default base: a node of degree d keeps its own neighbours with probability
        d / (d + pseudo_degree). By default 4 / r, and 20 / r^3 with more than five labels per class.
    voters
        Classifiers of the default base: some of ``"networks"``, which take the longest, ``"sgc"`` and
        ``"dgi"``. By default all, without ``"dgi"`` in graphs of more than 50,000 nodes.
    n_graphs, features, weights
        Sampled graphs (5), and scaling as in :class:`GCN` (``"auto"``), of the default base.
    device
        ``"cpu"`` or ``"cuda"``, for the default base and a function; another base has its own.

    Notes
    -----
    The default base is a :class:`SoftVoting` of a :class:`BayesianGCN` on copied graphs, :class:`SGC`, and
    :class:`DGI` with 256 dimensions, 150 epochs and a fixed seed. Graphs are copied by ``KeepByDegree`` from
    donors of the same predicted class. With APPNP (of 16 hidden units) these are the 100 nearest by the
    features of their neighbourhoods in graphs of up to 50,000 nodes.

    The chosen round has the highest validation accuracy, ties going to the latest; without validation nodes
    it is the last. ``prediction_.details`` holds its number (``pseudo_label_rounds``), its pseudo-labels of
    each class (``pseudo_labels``), the validation accuracy of every round, if there is one
    (``round_accuracy``), and ``share``, ``balance`` and ``base_weight`` (0 if the base is the chosen round).

    Examples
    --------
    >>> import numpy as np
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import GCN, SelfTraining
    >>> club = datasets.load("karate").replace(features=np.eye(34))
    >>> fitted = SelfTraining(GCN(n_epochs=50), n_rounds=2).fit(club, [0, 33], rng=0)  # two labels
    >>> fitted.score() > 0.9
    True
    """

    base: Classifier | Factory | str | None = None
    n_rounds: int = 4
    _: KW_ONLY
    share: float | None = None
    balance: float | None = None
    base_weight: float | None = None
    pseudo_labels: str = "hard"
    loss_weights: str = "balanced"
    network: str = "auto"
    pseudo_degree: float | None = None
    voters: Sequence[str] | None = None
    n_graphs: int | None = None
    features: str | None = None
    weights: str | None = None
    device: str = "cpu"

    def fit_trials(self, trials: Sequence[Trial], *, keep_networks: bool = False) -> list[Prediction]:
        given = self._check_parameters()

        def fit(part: list[Trial]) -> list[Prediction]:
            base = build_default_base(part[0], self) if given is None else given
            return self._fit_rounds(base, part, keep_networks)

        if given is not None:
            return fit(check_trials(trials))
        return fit_in_groups(trials, fit, lambda trial: (id(trial.graph), _scarcity(trial)))

    def _fit_rounds(self, base: Classifier, trials: Sequence[Trial], keep_networks: bool) -> list[Prediction]:
        rounds: list[list[Prediction]] = []
        for number in track(range(self.n_rounds + 1), "training"):
            labelled: Sequence[Trial] = trials
            if number:
                pairs = zip(trials, rounds[-1], strict=True)
                labelled = [self._add_pseudo_labels(*pair, number) for pair in pairs]
            with mute_decisions() if number else nullcontext():  # they are those of the first round
                predictions = base.fit_trials(labelled, keep_networks=keep_networks)
            rounds.append([])
            for trial, changed, prediction in zip(trials, labelled, predictions, strict=True):
                pseudo = changed.codes[changed.train[len(trial.train) :]]
                counts = np.bincount(pseudo, minlength=trial.n_classes).tolist()
                details = {**prediction.details, "pseudo_labels": counts}
                rounds[-1].append(replace(prediction, details=details))
        by_trial = zip(trials, *rounds, strict=True)
        return [self._average_with_base(trial, of_trial) for trial, *of_trial in by_trial]

    def _average_with_base(self, trial: Trial, rounds: Sequence[Prediction]) -> Prediction:
        best, details, settings = len(rounds) - 1, dict[str, Any](), self._settings(trial)
        if trial.has_validation:
            scores = trial.validation_accuracy(rounds)
            best -= int(np.argmax(scores[::-1]))
            details = {"round_accuracy": scores}
        if not best:
            settings["base_weight"] = 0.0
        weight, chosen = settings["base_weight"], rounds[best]
        mean = average([rounds[0], chosen], np.array([weight, 1 - weight])) if weight else chosen
        details = {**chosen.details, **details, "pseudo_label_rounds": best, **settings}
        return replace(mean, details=details)

    def _check_parameters(self) -> Classifier | None:
        """Check everything before anything is trained; return the base that was given, if any."""
        check_integer(self.n_rounds, "n_rounds of SelfTraining", low=0, high=MAX_ROUNDS - 1)
        check_settings(self, pseudo_labels=["hard", "soft"], network=["auto", "appnp", "gcn"])
        check_settings(self, loss_weights=["balanced", "equal", "confidence"])
        limits = {"share": 1.0, "balance": 1.0, "base_weight": 1.0, "pseudo_degree": math.inf}
        for name, high in limits.items():
            if getattr(self, name) is not None:
                check_real(getattr(self, name), f"{name} of SelfTraining", low=0, high=high)
        check_device(self.device)
        if self.share == 0:
            raise InputError("share of SelfTraining", "must be above 0; got 0. n_rounds=0 is the base alone.")
        if self.voters is not None:
            name, is_list = "voters of SelfTraining", isinstance(self.voters, (list, tuple))
            for voter in self.voters if is_list else ():
                check_choice(voter, name, VOTERS)
            if not is_list or not 0 < len(set(self.voters)) == len(self.voters):
                allowed = f"a list of at least one of {VOTERS}, each once"
                raise InputError(name, f"must be {allowed}; got {show(self.voters)}.")
            if "networks" not in self.voters:
                own = ("network", "pseudo_degree", "n_graphs")
                self._refuse(own, "unless networks vote", "Add 'networks' to the voters.")
        if self.base is None:
            return None
        base = wrap_factory(self.base, self.device, "SelfTraining")
        if not isinstance(base, Classifier):
            allowed = "a classifier, or a function that builds a network"
            raise InputError("base of SelfTraining", f"must be {allowed}; got {base!r}.")
        way_out = RECOMMENDED_BASE if callable(self.base) else "Set it in the base."
        names = ("network", "pseudo_degree", "voters", "n_graphs", "features", "weights")
        self._refuse(names, "if a base is given", way_out)
        return base

    def _refuse(self, names: Sequence[str], condition: str, way_out: str) -> None:
        """Raise an error if parameters are given that have no effect."""
        for name in names:
            value = getattr(self, name)
            if value is not None and (name, value) != ("network", "auto"):
                message = f"must be left out {condition}; got {show(value)}. {way_out}"
                raise InputError(f"{name} of SelfTraining", message)

    def _add_pseudo_labels(self, trial: Trial, prediction: Prediction, number: int) -> Trial:
        """Return the problem of a round: labels, pseudo-labels, and a seed of its own."""
        used = trial.train if trial.validation is None else np.append(trial.train, trial.validation)
        free = np.setdiff1d(np.arange(trial.graph.n_nodes), used)
        probabilities = self._balance_classes(trial, prediction.probabilities, free)
        # The most confident nodes of each predicted class.
        order = free[np.argsort(-probabilities[free].max(axis=1), kind="stable")]
        predicted, share = probabilities[order].argmax(axis=1), self._settings(trial)["share"]
        sizes = enumerate(self._class_sizes(trial, probabilities[free]))
        nodes = np.concatenate([order[predicted == c][: int(np.ceil(share * size))] for c, size in sizes])
        n_labels, n_pseudo = len(trial.train), len(nodes)
        weights = np.ones(n_labels + n_pseudo, np.float32)
        if self.loss_weights == "confidence":
            weights[n_labels:] = probabilities[nodes].max(axis=1)
        elif self.loss_weights == "balanced":
            weights[n_labels:] = min(1.0, n_labels / max(1, n_pseudo))
        soft = probabilities[nodes] if self.pseudo_labels == "soft" else None
        codes = probabilities[nodes].argmax(axis=1)
        seed = child(trial.rng, ClassifierSeeds.SELF_TRAINING, number)
        return trial.with_pseudo_labels(
            nodes, codes, soft=soft, weights=weights, predictions=probabilities, rng=seed
        )

    def _balance_classes(
        self, trial: Trial, probabilities: Probabilities, free: NDArray[np.int64]
    ) -> Probabilities:
        """Return the probabilities, scaled by class until they add up to its estimated size."""
        if len(free) < 5 * trial.n_classes:  # too few to estimate sizes of classes
            return probabilities
        of_free = probabilities[free].astype(np.float64)
        target = np.maximum(self._class_sizes(trial, probabilities[free]), 1)
        target *= len(free) / target.sum()
        scale = np.ones(trial.n_classes)
        for _ in range(20):  # it converges in fewer steps
            scale *= target / np.maximum(_normalise(of_free * scale).sum(axis=0), TINY)
        return _normalise(probabilities * scale).astype(np.float32)

    def _class_sizes(self, trial: Trial, probabilities: Probabilities) -> NDArray[np.float64]:
        balance = self._settings(trial)["balance"]
        n_predicted = np.bincount(probabilities.argmax(axis=1), minlength=trial.n_classes)
        mean = len(probabilities) / trial.n_classes
        return np.asarray(n_predicted ** (1 - balance) * mean**balance)

    def _settings(self, trial: Trial) -> dict[str, float]:
        """Return the parameters that depend on the trial unless they are given."""
        scarcity = _scarcity(trial)
        has_many_labels = trial.n_classes * N_FEW_LABELS < len(trial.train)
        is_averaged = self.base is None and has_many_labels and not trial.has_validation
        return {
            "share": 0.8 - 0.4 * scarcity if self.share is None else self.share,
            "balance": scarcity if self.balance is None else self.balance,
            "base_weight": BASE_WEIGHT * is_averaged if self.base_weight is None else self.base_weight,
        }

    def network_device(self) -> str:
        return self.base.network_device() if isinstance(self.base, Classifier) else self.device

    def log_choices(self) -> None:
        details, nodes = self.prediction_.details, self.trial_.validation
        best, weight = details["pseudo_label_rounds"], details["base_weight"]
        if not self.n_rounds:
            return
        message = f"that of round {best} of {self.n_rounds}" if best else "that without pseudo-labels"
        parameter, reason = "n_rounds", "there are no validation nodes"
        if weight:
            message = f"the mean of that without pseudo-labels (weight {weight:g}) and {message}"
            parameter = "base_weight"
            if self.base_weight is None:
                reason = f"there are more than {N_FEW_LABELS} labels per class and no validation nodes"
        if nodes is not None and len(nodes):
            message += f", chosen by {len(nodes)} validation node{'s' * (len(nodes) > 1)}"
            is_tie = len(set(details["round_accuracy"])) == 1
            message += ": all rounds are equal, and this is the latest" * is_tie
        else:
            message += f", the last one, since {reason}"
        log_decision(f"self-training: the prediction is {message}.", parameter)


def _normalise(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(rows / np.maximum(rows.sum(axis=1, keepdims=True), TINY))


def _scarcity(trial: Trial) -> float:
    """Return one over the square root of the mean number of labels per class."""
    return float((trial.n_classes / len(trial.train)) ** 0.5)  # at most 1: each class has a label


def build_default_base(trial: Trial, settings: SelfTraining) -> Classifier:
    """Return the base for a classification problem: one voter, or several with equal weights."""
    scalings = {"features": settings.features, "weights": settings.weights}
    given: dict[str, Any] = {name: value for name, value in scalings.items() if value is not None}
    base: list[Classifier] = []
    voters: Sequence[str] = VOTERS if settings.voters is None else settings.voters
    if settings.voters is None and trial.graph.n_nodes > MAX_NODES_FOR_INFOMAX:
        voters, size = VOTERS[:2], f"more than {MAX_NODES_FOR_INFOMAX:,} nodes"
        log_decision(f"voters: networks and SGC, without DGI, which takes long with {size}.", "voters")
    for voter in voters:
        if voter == "networks":
            base.append(_build_networks(trial, settings, device=settings.device, **given))
        elif voter == "sgc":
            base.append(SGC(**given))
        else:
            base.append(DGI(256, n_epochs=150, device=settings.device, **given))
    return base[0] if len(base) == 1 else SoftVoting(base)


def _build_networks(trial: Trial, settings: SelfTraining, **options: Any) -> BayesianGCN:
    """Return networks on copied graphs; the more labels there are, the less is copied."""
    network = _choose_network(trial.graph) if settings.network == "auto" else settings.network
    # With few labels, 16 hidden units do better than 64.
    base = APPNP(n_hidden=16, **options) if network == "appnp" else GCN(**options)
    scarcity, degree = _scarcity(trial), settings.pseudo_degree
    if degree is None:
        degree = PSEUDO_DEGREE * scarcity * min(1.0, N_FEW_LABELS * scarcity**2)
    donors: DonorRule = SameLabel()
    if network != "gcn" and trial.graph.n_nodes <= MAX_NODES_FOR_NEAREST:  # predictions of a GCN are smooth
        donors = NearestNeighbours(N_DONORS, embeddings="neighbourhoods", groups="labels")
    model = NodeCopying[Any](KeepByDegree(donors, degree))
    if not degree:
        model = NodeCopying(SameLabel(), keep=1.0)
    return BayesianGCN(model, N_GRAPHS if settings.n_graphs is None else settings.n_graphs, base=base)


def _choose_network(graph: Graph) -> str:
    """Return APPNP for word counts of which most are zero, a GCN for anything else."""
    network, reason = "gcn", "there are no features"
    if graph.features is not None:
        matrix = as_matrix(graph.features, "features")
        reason = explain_no_counts(matrix, graph.feature_encoder)
        share = share_of_zeros(matrix)
        if not reason and is_sparse_counts(matrix):
            network, reason = "appnp", f"features are word counts and {share:.0%} of them are zero"
        else:
            reason = f"features are not sparse word counts ({reason or f'{share:.0%} of them are zero'})"
    name = {"appnp": "APPNP", "gcn": "GCN"}[network]
    log_decision(f"networks: {name}, since {reason}.", "network")
    return network


@dataclass(eq=False, repr=False)
class SoftVoting(Classifier):
    """Classify nodes by the weighted mean of the probabilities of several classifiers.

    Their disagreement counts as epistemic uncertainty.

    Parameters
    ----------
    classifiers
        The classifiers, each fitted to the same training nodes.
    weights
        Weights in the mean, at least 0; equal by default.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import GCN, SGC, SoftVoting
    >>> digits = datasets.load("digits")
    >>> few = datasets.label_split(digits.labels, 3, rng=0).train  # three images of each digit
    >>> SoftVoting([GCN(n_epochs=50), SGC()], [1, 2]).fit(digits, few, rng=0).score() > 0.85
    True
    """

    classifiers: Sequence[Classifier | str]
    weights: ArrayLike | None = None

    def fit_trials(self, trials: Sequence[Trial], *, keep_networks: bool = False) -> list[Prediction]:
        classifiers, weights = self._check_parameters()
        with log_decisions_once():
            of_classifiers = [part.fit_trials(trials, keep_networks=keep_networks) for part in classifiers]
        return [average(predictions, weights) for predictions in zip(*of_classifiers, strict=True)]

    def _check_parameters(self) -> tuple[list[Classifier], NDArray[np.float64]]:
        """Return the classifiers and their weights, which add up to one."""
        is_list = isinstance(self.classifiers, (list, tuple))  # a set has no order that weights could follow
        named = self.classifiers if is_list else ()
        given = [from_name(part, CLASSIFIERS, "classifiers of SoftVoting") for part in named]
        if not given or not all(isinstance(classifier, Classifier) for classifier in given):
            allowed = "a list of at least one classifier, such as [GCN(), SGC()]"
            raise InputError("classifiers of SoftVoting", f"must be {allowed}; got {show(self.classifiers)}.")
        if self.weights is None:
            return given, np.full(len(given), 1 / len(given))
        name = "weights of SoftVoting"
        vector = check_vector(self.weights, name, length=len(given), per="classifier")
        weights = check_numbers(vector, name).astype(np.float64)
        check_finite(weights, name)
        if (weights < 0).any() or not weights.any():
            raise InputError(name, f"must be at least 0, and one above 0; got {show(self.weights)}.")
        weights = weights / weights.max()  # whose sum does not overflow
        return given, weights / weights.sum()

    def predict_graph(self, graph: Graph) -> ArrayLike | Prediction:
        if self.check_fitted().networks is None:
            names = ", ".join(type(part).__name__ for part in self._check_parameters()[0])
            reason = "not all classifiers of the SoftVoting predict on other graphs"
            raise InputError("graph", f"must be left out: {reason}; got {names}.")
        return super().predict_graph(graph)

    def network_device(self) -> str:
        """Return the device of the first classifier that is not on the CPU."""
        devices = [classifier.network_device() for classifier in self._check_parameters()[0]]
        return next((device for device in devices if device != "cpu"), "cpu")


@dataclass(frozen=True, eq=False)
class VotingNetworks:
    """The trained networks of several classifiers, whose predictions are averaged with weights."""

    networks: tuple[TrainedModel, ...]
    weights: NDArray[np.float64]

    def __post_init__(self) -> None:
        name, n = "weights of the vote", len(self.networks)
        weights = check_vector(self.weights, name, length=n, per="classifier")
        if not n or (weights < 0).any() or abs(weights.sum() - 1) > 1e-6:
            raise InputError(name, f"must be at least 0 with a sum of 1; got {weights.tolist()}.")
        if len({networks.n_classes for networks in self.networks}) > 1:
            raise InputError("networks of the vote", "must have the same number of classes.")

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.networks[0].n_classes

    def predict(self, graph: Graph, device: str) -> tuple[Probabilities, NDArray[np.float32]]:
        """Return the weighted mean of the predictions on a graph."""
        mean = average([Prediction(*part.predict(graph, device)) for part in self.networks], self.weights)
        return mean.probabilities, mean.mean_entropy


def average(predictions: Sequence[Prediction], weights: NDArray[np.float64]) -> Prediction:
    """Return the weighted mean of predictions; the networks are kept if all predictions have some."""
    networks = tuple(prediction.networks for prediction in predictions if prediction.networks is not None)
    details = {name: value for prediction in predictions for name, value in prediction.details.items()}
    return Prediction(
        np.average([p.probabilities for p in predictions], axis=0, weights=weights).astype(np.float32),
        np.average([p.mean_entropy for p in predictions], axis=0, weights=weights).astype(np.float32),
        details,
        VotingNetworks(networks, weights) if len(networks) == len(predictions) else None,
    )
