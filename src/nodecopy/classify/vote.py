"""The vote of :class:`SelfTraining`: linear voters and label propagation, weighted by held-out likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import softmax

from nodecopy._core.messages import log_decision
from nodecopy._core.random import child, generator
from nodecopy.classify.base import ClassifierSeeds, Prediction, Trial, entropy
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
from nodecopy.features.embeddings import embed_connections
from nodecopy.features.scaling import WeightScaling
from nodecopy.nn.training import LabelledNodes

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
