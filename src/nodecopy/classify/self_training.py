"""Self-training: confident predictions become training labels of the next round.

By default they are those of a vote of linear voters and label propagation, weighted by held-out likelihood.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass, replace
from itertools import zip_longest
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import softmax

from nodecopy._core.arrays import as_matrix
from nodecopy._core.checks import check_integer, check_mapping, check_real, list_names, show
from nodecopy._core.linalg import one_blas_thread
from nodecopy._core.messages import log_decision, log_decisions_once, mute_decisions, warn_about_data
from nodecopy._core.parallel import track
from nodecopy._core.random import child, generator
from nodecopy.classify.base import (
    MAX_ROUNDS,
    Classifier,
    ClassifierSeeds,
    Prediction,
    Trial,
    check_trials,
    entropy,
)
from nodecopy.classify.own_networks import wrap_factory
from nodecopy.classify.regressions import (
    DEFAULT_ALPHA,
    SGC,
    EmbeddingRegression,
    PropagatedFeatures,
    normalise,
    propagate,
    scale_distances,
    softmax_regressions,
    spreading_matrix,
)
from nodecopy.errors import InputError
from nodecopy.features.embeddings import embed_connections
from nodecopy.features.scaling import WeightScaling
from nodecopy.graph import Graph
from nodecopy.nn.modules import Factory
from nodecopy.nn.training import LabelledNodes, check_device

MIN_PER_CLASS = 5  # unlabelled nodes per class below which sizes of classes are not estimated
Probabilities: TypeAlias = NDArray[np.float32]


@dataclass(eq=False, repr=False)
class SelfTraining(Classifier):
    """Classify nodes with few labels: the most confident predictions become training labels.

    The default base is the vote described below. With another base, the most confident predictions of each
    class become pseudo-labels in every round, and the base is trained again on labels and pseudo-labels.

    Parameters
    ----------
    base
        Any classifier, or the factory of a :class:`CustomNetwork`; by default the vote.
    n_rounds
        Rounds with pseudo-labels; 0 is the base alone.
    class_weight
        Weights of classes in the prediction of the vote: its probabilities are multiplied by them and scaled
        to a sum of one. A mapping from labels to weights (1 if missing), or ``"f1"``: those with the highest
        mean F1 of the classes that the probabilities let expect, for rare classes. By default all are 1.
    features, weights
        Scaling as in :class:`SGC` (``"auto"``), of the vote.
    device
        ``"cpu"`` or ``"cuda"``, for the vote and a function; another base has its own.

    Notes
    -----
    The voters are four logistic regressions and :class:`LabelPropagation`. The regressions read the features,
    those of the neighbours within two hops, features that are propagated far along edges (all three are
    settings of :class:`SGC`), and an embedding of the connections. Without features, the first three are left
    out, and in graphs of more than 100,000 nodes the embedding. Classes weigh equally in their training.

    The probabilities of the vote are proportional to the size of the class and to the product of the
    probabilities of the voters, each to the power of its weight. Weights maximise the likelihood of labels
    that are held out in five-fold cross-validation, under a normal prior with means of 2 for the propagated
    features and 0.2 for the others.
    Validation nodes count as held-out labels. Sizes of classes are those with the highest likelihood on up to
    1,000 unlabelled nodes, averaged with the frequencies of the labels; with 1 + 5 labels per class both
    count half, with one label only the frequencies.

    These nodes get their predicted class as a pseudo-label, with the difference between the largest and the
    second largest probability as its weight. The voters without pseudo-labels vote in all rounds, and the
    held-out likelihood decides how much. Each fold has pseudo-labels of its own, so that no label is seen by
    the voters that predict it. The chosen round has the highest penalised likelihood of held-out labels; with
    one label per class, where nothing can be held out, it is the last. With another base it has the highest
    validation accuracy, and is the last without validation nodes.

    ``prediction_.details`` holds the number of the chosen round (``pseudo_label_rounds``) and its
    pseudo-labels of each class (``pseudo_labels``); of the vote the weights of the voters (``vote``), the
    share of voters without pseudo-labels in them (``weight_without_pseudo_labels``), ``class_sizes``, the
    share of held-out labels of each class that are predicted correctly (``held_out_recall``, ``None`` for a
    class with one label), ``class_weight``, and the mean penalised log-likelihood of every round
    (``round_likelihood``); of another base the validation accuracy of every round (``round_accuracy``), if
    there is one. On other graphs, a regression on features that was trained on the prediction replaces the
    vote.

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
    class_weight: str | Mapping[Any, float] | None = None
    features: str | None = None
    weights: str | None = None
    device: str = "cpu"

    observed_ = ""  # digest of the observed graph; no parameter without an annotation

    def fit_trials(self, trials: Sequence[Trial], *, keep_networks: bool = False) -> list[Prediction]:
        base, trials = self._check_parameters(), check_trials(trials)
        if base is not None:
            return self._fit_rounds(base, trials, keep_networks)
        with log_decisions_once():
            return [self._fit_vote(trial, keep_networks) for trial in track(trials, "training")]

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
        return [self._choose_round(trial, of_trial) for trial, *of_trial in by_trial]

    def _choose_round(self, trial: Trial, rounds: Sequence[Prediction]) -> Prediction:
        scores = trial.validation_accuracy(rounds) if trial.has_validation else []
        best = last_best(scores, self.n_rounds)
        details = {"pseudo_label_rounds": best} | ({"round_accuracy": scores} if scores else {})
        chosen = rounds[best]
        return replace(chosen, details={**chosen.details, **details})

    def _fit_vote(self, trial: Trial, keep_networks: bool) -> Prediction:
        scalings = {"features": self.features, "weights": self.weights}
        given = {name: value for name, value in scalings.items() if value is not None}
        factors, vote = self._class_factors(trial), Vote(trial, Voters(trial, given, self.device))
        with one_blas_thread():
            return vote.predict(vote.fit(self.n_rounds), factors, keep_networks=keep_networks)

    def _class_factors(self, trial: Trial) -> NDArray[np.float64] | None:
        """Return the weights of classes in the prediction; ``None`` if F1 chooses them."""
        if self.class_weight == "f1":
            return None
        names, given = trial.graph.label_names, self.class_weight or {}
        classes = trial.classes.tolist() if names is None else np.array(names)[trial.classes].tolist()
        assert isinstance(given, Mapping)
        for name in given:
            if name not in classes:
                allowed = f"weights of classes, {list_names(classes)}"
                raise InputError("class_weight of SelfTraining", f"must hold {allowed}; got {show(name)}.")
        return np.array([float(given.get(name, 1.0)) for name in classes])

    def _check_parameters(self) -> Classifier | None:
        """Check everything before anything is trained; return the base that was given, if any."""
        check_integer(self.n_rounds, "n_rounds of SelfTraining", low=0, high=MAX_ROUNDS - 1)
        check_device(self.device)
        is_name = isinstance(self.class_weight, str) and self.class_weight == "f1"
        if self.class_weight is not None and not is_name:
            allowed = "'f1', or a mapping from labels to weights such as {'fraud': 5}"
            for weight in check_mapping(self.class_weight, "class_weight of SelfTraining", allowed).values():
                check_real(weight, "class_weight of SelfTraining", low=TINY)
        if self.base is None:
            return None
        base = wrap_factory(self.base, self.device, "SelfTraining")
        if not isinstance(base, Classifier):
            allowed = "a classifier, or a function that builds a network"
            raise InputError("base of SelfTraining", f"must be {allowed}; got {base!r}.")
        for name in ("class_weight", "features", "weights"):
            if getattr(self, name) is not None:
                got = f"{show(getattr(self, name))}. Set it in the base"
                raise InputError(
                    f"{name} of SelfTraining", f"must be left out if a base is given; got {got}."
                )
        return base

    def _add_pseudo_labels(self, trial: Trial, prediction: Prediction, number: int) -> Trial:
        """Return the problem of a round: labels, pseudo-labels, and a seed of its own."""
        free, p = np.setdiff1d(np.arange(trial.graph.n_nodes), trial.labelled), prediction.probabilities
        scarcity = float((trial.n_classes / len(trial.train)) ** 0.5)  # at most 1: each class has a label
        scales = class_scales(p[free], _class_sizes(p[free], scarcity))
        scaled = normalise(p * scales).astype(np.float32) if (scales != 1).any() else p
        numbers = (0.8 - 0.4 * scarcity) * _class_sizes(scaled[free], scarcity)
        nodes = free[most_confident(scaled[free], numbers)]
        # All pseudo-labels together weigh at most as much as all labels.
        n_labels = len(trial.train)
        weights = np.ones(n_labels + len(nodes), np.float32)
        weights[n_labels:] = min(1.0, n_labels / max(1, len(nodes)))
        seed = child(trial.rng, ClassifierSeeds.SELF_TRAINING, number)
        codes = scaled[nodes].argmax(axis=1)
        return trial.with_pseudo_labels(nodes, codes, weights=weights, predictions=scaled, rng=seed)

    def set_prediction(self, trial: Trial, prediction: Prediction) -> Self:
        self.observed_ = digest_graph(trial.graph)
        return super().set_prediction(trial, prediction)

    def predict_graph(self, graph: Graph) -> ArrayLike | Prediction:
        other = super().predict_graph(graph)  # which checks the graph
        is_vote = self.base is None and digest_graph(graph) == self.observed_
        return self.prediction_ if is_vote else other

    def log_choices(self) -> None:
        details, rounds = self.prediction_.details, f"of {self.n_rounds}"
        self._warn_if_a_class_has_died_out()
        if vote := details.get("vote"):
            shown = ", ".join(f"{name} {weight:.2f}" for name, weight in vote.items())
            log_decision(f"vote: the weights are {shown}.")
        reason = "the last one, since there are no held-out labels"
        if details.get("round_likelihood"):
            reason = "the one with the highest likelihood of held-out labels"
        elif details.get("round_accuracy"):
            reason = "the most accurate one at the validation nodes, or the latest of several"
        if self.n_rounds:
            number = details["pseudo_label_rounds"]
            log_decision(
                f"self-training: the prediction is that of round {number} {rounds}, {reason}.", "n_rounds"
            )

    def _warn_if_a_class_has_died_out(self) -> None:
        free = np.setdiff1d(np.arange(len(self.node_ids_)), self.trial_.labelled)
        predicted = self.prediction_.probabilities[free].argmax(axis=1)
        missing = np.setdiff1d(np.arange(len(self.classes_)), predicted)
        if len(missing) and len(free) >= MIN_PER_CLASS * len(self.classes_):
            names = list_names(self.classes_[missing].tolist())
            warn_about_data(
                f"no unlabelled node is predicted to be of class {names}, which has labels. If the class is "
                "rare, class_weight='f1' chooses weights of classes that find it; n_rounds=0 leaves "
                "out pseudo-labels."
            )


def _class_sizes(probabilities: Probabilities, balance: float) -> NDArray[np.float64]:
    """Return sizes of classes between predicted and, with ``balance`` 1, equal ones."""
    sizes = np.bincount(probabilities.argmax(axis=1), minlength=probabilities.shape[1]).astype(np.float64)
    return np.asarray(sizes ** (1.0 - balance) * (sizes.sum() / len(sizes)) ** balance)


def class_scales(probabilities: Probabilities, sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return factors of class probabilities with which they add up to the sizes of classes."""
    scale, n = np.ones(probabilities.shape[1]), len(probabilities)
    if n < MIN_PER_CLASS * len(scale):  # too few to estimate sizes of classes
        return scale
    of_free, target = probabilities.astype(np.float64), np.maximum(sizes, 1)
    target = target * (n / target.sum())
    for _ in range(20):  # it converges in fewer steps
        scale *= target / np.maximum(normalise(of_free * scale).sum(axis=0), TINY)
    return scale


def most_confident(probabilities: Probabilities, numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return so many rows of each predicted class, those with the largest probability."""
    order = np.argsort(-probabilities.max(axis=1), kind="stable")
    predicted = probabilities[order].argmax(axis=1)
    return np.concatenate([order[predicted == c][: int(np.ceil(n))] for c, n in enumerate(numbers)])


def digest_graph(graph: Graph) -> str:
    """Return a digest of the edges and features of a graph."""
    features = () if graph.features is None else (sparse.csr_array(as_matrix(graph.features, "features")),)
    digest = hashlib.sha256()
    for matrix in (graph.adjacency, *features):
        for part in (matrix.indptr, matrix.indices, matrix.data):
            digest.update(np.asarray(part, np.float64).tobytes())
    return digest.hexdigest()


PROPAGATED, CONNECTIONS, LABELS = "propagated", "connections", "labels"
VIEWS = {"features": SGC(n_steps=0), "two hops": SGC(0.0, n_steps=2), PROPAGATED: SGC()}
N_FOLDS = 5  # of the training nodes of each class, to compare voters
PRIOR, MAIN_PRIOR = 0.2, 2.0  # weights of voters without evidence; the second is that of propagated features
HALF_TRUST = 5.0  # further labels per class with which what is estimated counts half
MIN_PROBABILITY = 1e-4  # no voter has a veto
N_CANDIDATES = 1000  # nodes that may get pseudo-labels, which bounds the time
N_EM_STEPS = 50  # enough to converge
TINY = np.finfo(np.float64).tiny  # divisor in place of a sum that is zero
MAX_NODES_FOR_CONNECTIONS = 100_000  # the singular vectors of larger graphs take minutes
FACTORS = np.exp(np.linspace(0, 4, 41))  # of a class's probabilities, compared by F1
Array: TypeAlias = NDArray[Any]


@dataclass(frozen=True, eq=False)
class FittedVoters:
    """Coefficients and intercepts of each regression, and the scores of label propagation."""

    solutions: list[tuple[Array, Array]]
    spread: Array


class Voters:
    """The voters for a graph: regressions on ``rows`` by name, and label propagation.

    Classes have equal weights in their training, so that they predict as if classes were equally large.
    """

    def __init__(self, trial: Trial, settings: dict[str, Any], device: str) -> None:
        graph, weights = trial.graph, settings.get("weights", "auto")
        self.n_classes, self.device = trial.n_classes, device
        fitted = {}
        if graph.features is not None:
            fitted = {n: PropagatedFeatures.fit(graph, replace(v, **settings)) for n, v in VIEWS.items()}
        self.embeddings = [embedding for embedding, _ in fitted.values()]
        self.rows: dict[str, Array] = {n: rows.astype(np.float32) for n, (_, rows) in fitted.items()}
        if graph.n_nodes <= MAX_NODES_FOR_CONNECTIONS:
            scaled = WeightScaling.fit(graph.adjacency, weights).apply(graph.adjacency)
            connections = embed_connections(graph.replace(adjacency=scaled), VIEWS[PROPAGATED].rank)
            self.rows[CONNECTIONS] = scale_distances(connections)[0].astype(np.float32)
        else:
            size = f"more than {MAX_NODES_FOR_CONNECTIONS:,} nodes"
            log_decision(f"vote: the embedding of connections is left out in a graph with {size}.")
        self.matrix, self.names = spreading_matrix(graph, weights), [*self.rows, LABELS]
        self.prior = np.where(np.array(self.names) == PROPAGATED, MAIN_PRIOR, PRIOR)
        if PROPAGATED not in self.names:
            self.prior = np.full(len(self.names), 1 / len(self.names))

    def fit(self, chains: Sequence[LabelledNodes]) -> list[FittedVoters]:
        """Return the voters for each chain of training nodes."""
        shape = (self.matrix.shape[0], len(chains), self.n_classes)
        own, view = np.zeros(shape, np.float32), VIEWS[PROPAGATED]
        balanced = [weigh_classes_equally(chain) for chain in chains]
        for number, (chain, weights) in enumerate(zip(chains, balanced, strict=True)):
            own[chain.nodes, number] = chain.labels * weights[:, None]
        flat = propagate(self.matrix, own.reshape(shape[0], -1), 1 - DEFAULT_ALPHA, view.n_steps, self.device)
        fitted = []
        for number, (chain, weights) in enumerate(zip(chains, balanced, strict=True)):
            solutions = [
                softmax_regressions(rows[chain.nodes], chain.labels, (view.C,), weights)[0]
                for rows in self.rows.values()
            ]
            fitted.append(FittedVoters(solutions, flat.reshape(shape)[:, number]))
        return fitted

    def predict(self, fitted: FittedVoters, nodes: Any = slice(None)) -> Array:
        """Return log-probabilities of nodes, [voter, node, class]."""
        logs = [
            floored(softmax(rows[nodes] @ coefficients.astype(np.float32) + intercepts, axis=1))
            for rows, (coefficients, intercepts) in zip(self.rows.values(), fitted.solutions, strict=True)
        ]
        return np.array([*logs, floored(normalise(fitted.spread[nodes]))], np.float32)


@dataclass(frozen=True, eq=False)
class VoteRound:
    """Voters with all labels, and what followed from their predictions of held-out labels."""

    fitted: FittedVoters
    held_out: Array
    weights: Array
    likelihood: float
    sizes: Array
    n_pseudo_labels: list[int]


class Vote:
    """Self-training of the voters of a trial, with all labels and without those of each fold."""

    def __init__(self, trial: Trial, voters: Voters) -> None:
        self.trial, self.voters = trial, voters
        train, free = trial.train, np.setdiff1d(np.arange(trial.graph.n_nodes), trial.labelled)
        if len(free) > N_CANDIDATES:
            rng = generator(child(trial.rng, ClassifierSeeds.SELF_TRAINING))
            free = np.sort(rng.choice(free, N_CANDIDATES, replace=False))
        folds = assign_folds(trial.codes[train])
        self.candidates = free
        self.chains = [train, *(train[folds != fold] for fold in range(folds.max() + 1))]
        # Held-out labels by chain: validation nodes, and the nodes of each fold.
        validation = train[:0] if trial.validation is None else trial.validation
        self.held_out = [validation, *(train[folds == fold] for fold in range(folds.max() + 1))]
        self.truth = trial.codes[np.concatenate(self.held_out)]
        self.frequencies = np.bincount(trial.codes[trial.labelled]) / len(trial.labelled)
        n_further = len(trial.labelled) / trial.n_classes - 1
        self.trust = n_further / (n_further + HALF_TRUST)

    def fit(self, n_rounds: int) -> list[VoteRound]:
        """Return the rounds; the pool of each has its voters and those of the first round."""
        rounds: list[VoteRound] = []
        base: list[FittedVoters] = []
        pooled: list[Array] = []
        for number in range(n_rounds + 1):
            labelled = [self._label(*pair) for pair in zip_longest(self.chains, pooled)]
            fitted, prior = self.voters.fit(labelled), self.voters.prior
            base = base or fitted
            if number:
                prior = np.append((1 - self.trust) * prior, self.trust * prior)
            pairs = list(zip(fitted, base, strict=True))
            parts = [self._predict(*pair, nodes) for pair, nodes in zip(pairs, self.held_out, strict=True)]
            held_out = np.concatenate(parts, axis=1)
            weights, likelihood = fit_weights(held_out, self.truth, prior, self.frequencies)
            logs = [self._predict(*pair, self.candidates) for pair in pairs]
            sizes = [self._estimate_sizes(pool(part, weights)) for part in logs]
            pooled = [pool(part, weights, size) for part, size in zip(logs, sizes, strict=True)]
            codes = labelled[0].labels[len(self.trial.train) :].argmax(axis=1)
            counts = np.bincount(codes, minlength=self.trial.n_classes).tolist()
            rounds.append(VoteRound(fitted[0], held_out, weights, likelihood, sizes[0], counts))
        return rounds

    def _predict(self, fitted: FittedVoters, base: FittedVoters, nodes: Any = slice(None)) -> Array:
        parts = [fitted] if fitted is base else [fitted, base]
        return np.concatenate([self.voters.predict(part, nodes) for part in parts])

    def _estimate_sizes(self, likelihoods: Array) -> Array:
        """Return the shares of classes, by EM, drawn towards the frequencies of the labels."""
        sizes = self.frequencies
        for _ in range(N_EM_STEPS if len(likelihoods) else 0):
            predicted = normalise(likelihoods * sizes).mean(axis=0)
            sizes = self.trust * predicted + (1 - self.trust) * self.frequencies
        return sizes

    def _label(self, train: NDArray[np.int64], pooled: Array | None) -> LabelledNodes:
        """Return a chain's labels, and its predictions of the candidates as pseudo-labels.

        A pseudo-label weighs as much as its class is more probable than any other.
        """
        nodes, codes, weights = train, self.trial.codes[train], np.ones(len(train))
        if pooled is not None:
            second, first = np.sort(pooled, axis=1)[:, -2:].T
            nodes, codes = np.append(nodes, self.candidates), np.append(codes, pooled.argmax(axis=1))
            weights = np.append(weights, first - second)
        return LabelledNodes(nodes, np.eye(self.trial.n_classes)[codes], weights)

    def predict(
        self, rounds: Sequence[VoteRound], factors: Array | None, *, keep_networks: bool
    ) -> Prediction:
        """Return the prediction by the best round; ``factors`` are chosen if they are ``None``."""
        names, scores = self.voters.names, [each.likelihood for each in rounds]
        best = last_best(scores, len(rounds) - 1)  # the last if there are no held-out labels
        chosen = rounds[best]
        logs = self._predict(chosen.fitted, rounds[0].fitted)
        if factors is None:
            factors = choose_factors(pool(logs[:, self.candidates], chosen.weights, chosen.sizes))
        scales, by_voter = chosen.sizes * factors, chosen.weights.reshape(-1, len(names))
        probabilities = pool(logs, chosen.weights, scales).astype(np.float32)
        is_right = pool(chosen.held_out, chosen.weights, scales).argmax(axis=1) == self.truth
        of_class = [is_right[self.truth == code] for code in range(self.trial.n_classes)]
        details = {
            "pseudo_label_rounds": best,
            "pseudo_labels": chosen.n_pseudo_labels,
            "vote": dict(zip(names, by_voter.sum(axis=0).tolist(), strict=True)),
            "weight_without_pseudo_labels": float(by_voter[-1].sum() / max(by_voter.sum(), TINY)),
            "class_sizes": chosen.sizes.tolist(),
            "held_out_recall": [float(part.mean()) if len(part) else None for part in of_class],
            "class_weight": factors.tolist(),
            "round_likelihood": scores if len(self.truth) else None,
        }
        networks = self._distil(probabilities, by_voter.sum(axis=0)) if keep_networks else None
        return Prediction(probabilities, mean_entropy(logs, chosen.weights, scales), details, networks)

    def _distil(self, probabilities: Array, weights: Array) -> EmbeddingRegression | None:
        """Return a regression on features, trained on the prediction, that predicts on other graphs."""
        embeddings = self.voters.embeddings
        if not embeddings:
            return None
        best = int(weights[: len(embeddings)].argmax())
        nodes, rows = np.append(self.trial.train, self.candidates), list(self.voters.rows.values())[best]
        solution = softmax_regressions(rows[nodes], probabilities[nodes], (VIEWS[PROPAGATED].C,))[0]
        return EmbeddingRegression(embeddings[best], *solution)


def weigh_classes_equally(chain: LabelledNodes) -> Array:
    """Return weights of nodes that add up to one in each class, in the given proportions."""
    weights = np.asarray(chain.weights)
    return np.asarray(weights / (chain.labels @ (weights @ chain.labels)))


def floored(probabilities: Array) -> Array:
    """Return the logarithms of probabilities, none of which is a veto."""
    return np.asarray(np.log(np.maximum(probabilities, MIN_PROBABILITY)))


def last_best(scores: Sequence[float], last: int) -> int:
    """Return the number of the highest score, ties going to the latest, or the last without scores."""
    return last - int(np.argmax(scores[::-1])) if scores else last


def assign_folds(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the fold of each training node, -1 for the only node of a class; folds have equal classes."""
    folds = np.full(len(codes), -1)
    for code in np.unique(codes):
        (members,) = np.nonzero(codes == code)
        if len(members) > 1:
            folds[members] = np.arange(len(members)) % N_FOLDS
    return folds


def fit_weights(logs: Array, codes: NDArray[np.int64], prior: Array, sizes: Array) -> tuple[Array, float]:
    """Return the weights, at least 0, that are most probable given held-out labels, and the objective.

    It is the log-likelihood of the labels plus that of a normal prior with a variance of 1, per label.
    """
    chosen, centred = np.arange(len(codes)), logs.astype(np.float64)
    centred -= centred.mean(axis=2, keepdims=True)

    def evaluate(weights: Array) -> tuple[float, Array]:
        p = pool(centred, weights, sizes)
        true = centred[:, chosen, codes]
        likelihood = np.log(np.maximum(p[chosen, codes], TINY)).sum()
        gradient = ((p * centred).sum(axis=2) - true).sum(axis=1) + weights - prior
        return float(0.5 * np.square(weights - prior).sum() - likelihood), gradient

    if not len(codes):
        return prior, 0.0
    bounds = [(0.0, None)] * len(prior)
    result = minimize(evaluate, prior, jac=True, bounds=bounds, method="L-BFGS-B")
    return np.asarray(result.x), -float(result.fun) / len(codes)


def pool(logs: Array, weights: Array, sizes: Array | float = 1.0) -> Array:
    """Return probabilities proportional to the size of a class and to a product over voters.

    The factors are the probabilities of the voters, each to the power of its weight; ``logs`` is
    [voter, node, class].
    """
    return np.asarray(softmax(np.tensordot(weights, logs, 1) + np.log(sizes), axis=-1))


def mean_entropy(logs: Array, weights: Array, factors: Array) -> Array:
    """Return the mean entropy of the voters; that of a voter is the pool's if it had all weight."""
    total, scales = weights.sum(), np.log(factors)
    of_voters = [entropy(softmax(total * part + scales, axis=1)) for part in logs]
    mean = np.average(of_voters, axis=0, weights=weights if total else None)
    return np.asarray(mean, np.float32)


def choose_factors(probabilities: Array) -> Array:
    """Return factors of class probabilities with the highest expected mean F1, by coordinate ascent."""
    n_classes, factors = probabilities.shape[1], np.ones(probabilities.shape[1])
    classes, totals = np.arange(n_classes), probabilities.sum(axis=0)
    for code in [*classes] * 2:
        scores = []
        for factor in FACTORS:
            changed = np.where(classes == code, factor, factors)
            predicted = (probabilities * changed).argmax(axis=1)
            right = np.bincount(predicted, probabilities[np.arange(len(predicted)), predicted], n_classes)
            scores.append(
                (right / np.maximum(totals + np.bincount(predicted, minlength=n_classes), TINY)).sum()
            )
        factors[code] = FACTORS[int(np.argmax(scores))]
    return np.asarray(factors / factors.max())
