"""The Bayesian GCN (the paper's Algorithm 1): networks trained on sampled graphs, averaged."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.lookup import check_name
from nodecopy._core.random import child, seed_sequence
from nodecopy._core.validation import check_choice, check_integer
from nodecopy.classify.base import Classifier, Prediction, Problems, Trial, seeds_of
from nodecopy.classify.ensemble import Ensemble
from nodecopy.classify.single_network import RECIPE_SETTINGS, recipe_for
from nodecopy.copying import NodeCopying, SameLabel
from nodecopy.errors import InputError
from nodecopy.nn.networks import Matrix, Networks, spreading
from nodecopy.nn.training import Observer

MOST_ROUNDS, MOST_AVERAGED = 3, 60
BASE, SAMPLING, ONLINE, FITTING = 0, 1000, 2000, 10**6
"""Which of a trial's seeds serve what; round r of training takes r, its graphs take 1000 + r."""


class BayesianGCN(Classifier):
    """Classify nodes by an ensemble over sampled graphs and sampled weights.

    Parameters
    ----------
    graph_model
        Any graph model; it is fitted to the observed graph with predicted labels. Node copying between
        nodes of the same predicted label by default.
    n_graphs
        Sampled graphs (the paper's N_G), with one network trained on each.
    n_weight_samples
        Monte Carlo dropout samples of each network (the paper's S).
    schedule
        ``"retrain"``: Algorithm 1 as printed. ``"online"``: the authors' code; one network, trained on
        the observed graph, goes on for ``n_graphs`` epochs with a fresh graph in each; its last 60
        predictions are averaged.
    rounds
        How often the ensemble's labels define new donors: 1 is the paper's; ``"validation"`` tries up
        to three, and none, and takes what the validation nodes like best. Not for ``"online"``.
    base
        ``"gcn"`` or ``"appnp"``.
    preset, device, settings
        As in :class:`~nodecopy.classify.single_network.GCN`.

    Notes
    -----
    The networks are trained on sampled graphs but predict on the observed one.

    :meth:`save` does not save ``graph_model``, which prediction does not need: a loaded classifier that
    is to be fitted again samples by node copying unless its ``graph_model`` is set.

    Examples
    --------
    >>> import numpy as np
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import BayesianGCN
    >>> club = datasets.load("karate").replace(features=np.eye(34))
    >>> found = BayesianGCN(n_graphs=3, epochs=50).fit(club, [0, 33], rng=0)  # two labels
    >>> found.predict()[[1, 32]].tolist()
    ['Mr. Hi', 'Officer']
    >>> bool(found.uncertainty().epistemic.max() > 0)
    True
    """

    OTHER_SETTINGS = RECIPE_SETTINGS

    def __init__(
        self,
        graph_model: Any = None,
        n_graphs: int = 10,
        n_weight_samples: int = 10,
        *,
        schedule: str = "retrain",
        rounds: int | str = 1,
        base: str = "gcn",
        preset: str = "kipf",
        device: str = "cpu",
        **settings: Any,
    ) -> None:
        self.graph_model = graph_model
        self.n_graphs, self.n_weight_samples = n_graphs, n_weight_samples
        self.schedule, self.rounds = schedule, rounds
        self.base, self.preset, self.device, self.settings = base, preset, device, settings

    def _arguments(self) -> dict[str, Any]:
        names = ("n_graphs", "n_weight_samples", "schedule", "rounds", "base", "preset")
        return {**{name: getattr(self, name) for name in names}, **self.settings}

    def _solved(self, trials: Sequence[Trial], *, keep: bool) -> list[Prediction]:
        check_integer(self.n_graphs, "n_graphs of BayesianGCN", low=1)
        check_integer(self.n_weight_samples, "n_weight_samples of BayesianGCN", low=1)
        if self.graph_model is not None and not hasattr(self.graph_model, "sample_many"):
            given = f"got {self.graph_model!r}."
            raise InputError(
                f"graph_model of BayesianGCN must be a graph model such as NodeCopying(); {given}"
            )
        check_choice(self.schedule, "schedule of BayesianGCN", ["retrain", "online"])
        base = check_name(self.base, ["gcn", "appnp"], "base of BayesianGCN")
        recipe = recipe_for(base, self.preset, self.settings)
        n_rounds = self._n_rounds(trials)
        problems = Problems(trials, recipe, self.device, keep=keep)
        if self.schedule == "online":
            return self._fit_online(problems)
        networks = problems.trained(problems.observed, seeds_of(trials, BASE))
        found = [problems.predictions(networks, 0)]
        for number in range(1, n_rounds + 1):
            sampled = self.sampled(problems, found[-1], number, self.n_graphs)
            networks = problems.trained(sampled, seeds_of(trials, number, self.n_graphs))
            found.append(problems.predictions(networks, self.n_weight_samples))
        by_trial = [list(rounds) for rounds in zip(*found, strict=True)]
        if self.rounds != "validation":
            return [rounds[-1] for rounds in by_trial]
        return [_liked_best(problems, t, rounds) for t, rounds in zip(trials, by_trial, strict=True)]

    def _n_rounds(self, trials: Sequence[Trial]) -> int:
        """How many rounds to train, checked before any of them is."""
        if self.schedule == "online" and self.rounds != 1:
            raise InputError(f"rounds of BayesianGCN must be 1 in the online schedule; got {self.rounds!r}.")
        if self.rounds != "validation":
            if isinstance(self.rounds, str):
                raise InputError(
                    f"rounds of BayesianGCN must be an integer or 'validation'; got {self.rounds!r}."
                )
            return check_integer(self.rounds, "rounds of BayesianGCN", low=1)
        if any(trial.validation is None or not len(trial.validation) for trial in trials):
            raise InputError(
                "validation must be given, since it decides the number of rounds of BayesianGCN."
            )
        return MOST_ROUNDS

    def sampled(
        self, problems: Problems, before: Sequence[Prediction], number: int, n_graphs: int
    ) -> list[sparse.csr_array]:
        """Adjacencies of every trial sampled with its predicted labels."""
        adjacencies = []
        for trial, prediction in zip(problems.trials, before, strict=True):
            root = seed_sequence(trial.rng)
            labelled = _with_labels(problems, trial, prediction.probabilities)
            model = self._graph_model().fit(labelled, rng=child(child(root, FITTING), number))
            samples = list(model.sample_many(n_graphs, rng=child(root, SAMPLING + number)))
            if any(sample.n_nodes != labelled.n_nodes for sample in samples):
                raise InputError("graph_model of BayesianGCN must sample graphs with the observed nodes.")
            adjacencies += [sample.adjacency for sample in samples]
        return adjacencies

    def _graph_model(self) -> Any:
        return NodeCopying(SameLabel()) if self.graph_model is None else copy.deepcopy(self.graph_model)

    def _fit_online(self, problems: Problems) -> list[Prediction]:
        """Train on the observed graph, then on a fresh sample every epoch; average the last predictions."""
        n_observed = problems.recipe.epochs
        problems.recipe = replace(problems.recipe, epochs=n_observed + self.n_graphs, patience=None)
        online = _Online(self, problems, n_observed)
        problems.trained(problems.observed, seeds_of(problems.trials, ONLINE), observer=online)
        return online.averaged()


class _Online(Observer):
    """The authors' schedule: what it keeps between the epochs of one long training."""

    def __init__(self, classifier: BayesianGCN, problems: Problems, n_observed: int) -> None:
        self.classifier, self.problems, self.n_observed = classifier, problems, n_observed
        self.kept: deque[list[Prediction]] = deque(maxlen=MOST_AVERAGED)

    def before(self, epoch: int, networks: Networks) -> Sequence[Matrix] | None:
        if epoch < self.n_observed:
            return None
        now = self.kept[-1] if self.kept else self.problems.predictions(networks, 0)
        sampled = self.classifier.sampled(self.problems, now, epoch, 1)
        return [spreading(adjacency, self.problems.recipe) for adjacency in sampled]

    def after(self, epoch: int, networks: Networks) -> None:
        if epoch >= self.n_observed:
            self.kept.append(self.problems.predictions(networks, 0))

    def averaged(self) -> list[Prediction]:
        return [
            Prediction(
                np.mean([p.probabilities for p in many], axis=0),
                np.mean([p.mean_entropy for p in many], axis=0),
                networks=Ensemble.joined(kept)
                if (kept := [p.networks for p in many if p.networks])
                else None,
            )
            for many in zip(*self.kept, strict=True)
        ]


def _with_labels(problems: Problems, trial: Trial, probabilities: NDArray[np.float32]) -> Any:
    """The trial's graph with predicted labels, and the true ones where they may be seen."""
    codes = probabilities.argmax(axis=1)
    codes[trial.train] = problems.codes(trial.train)
    return trial.graph.replace(labels=codes)


def _liked_best(problems: Problems, trial: Trial, rounds: Sequence[Prediction]) -> Prediction:
    """The round with the best validation accuracy; of equals the earliest."""
    assert trial.validation is not None
    codes = problems.codes(trial.validation)
    scores = [(p.probabilities[trial.validation].argmax(axis=1) == codes).mean() for p in rounds]
    best = int(np.argmax(scores))
    return replace(rounds[best], details={"rounds": best})
