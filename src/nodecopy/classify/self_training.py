"""Self-training: confident predictions become training labels of the next round."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from nodecopy._core.arrays import as_matrix
from nodecopy._core.checks import check_choice, check_integer, check_mapping, check_real, list_names, show
from nodecopy._core.linalg import one_blas_thread
from nodecopy._core.messages import log_decision, log_decisions_once, mute_decisions, warn_about_data
from nodecopy._core.parallel import track
from nodecopy._core.random import child
from nodecopy.classify.base import MAX_ROUNDS, Classifier, ClassifierSeeds, Prediction, Trial, check_trials
from nodecopy.classify.own_networks import wrap_factory
from nodecopy.classify.regressions import normalise
from nodecopy.classify.vote import Vote, Voters, last_best
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.nn.modules import Factory
from nodecopy.nn.training import check_device

TINY = np.finfo(np.float64).tiny
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
        if isinstance(self.class_weight, Mapping):
            allowed = "a mapping from labels to weights, or 'f1'"
            for weight in check_mapping(self.class_weight, "class_weight of SelfTraining", allowed).values():
                check_real(weight, "class_weight of SelfTraining", low=TINY)
        elif self.class_weight is not None:
            check_choice(self.class_weight, "class_weight of SelfTraining", ("f1",))
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
