"""The vote of :class:`SelfTraining`: linear voters and label propagation, weighted by held-out likelihood."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import softmax

from nodecopy._core.arrays import as_matrix
from nodecopy._core.checks import check_vector
from nodecopy._core.messages import log_decision
from nodecopy._core.random import child, generator
from nodecopy.classify.base import ClassifierSeeds, Prediction, Trial, entropy
from nodecopy.classify.label_propagation import DEFAULT_ALPHA, spreading_matrix
from nodecopy.classify.regressions import (
    SGC,
    EmbeddingRegression,
    PropagatedFeatures,
    scale_distances,
    softmax_regressions,
)
from nodecopy.errors import InputError
from nodecopy.features.embeddings import embed_connections
from nodecopy.features.scaling import WeightScaling
from nodecopy.graph import Graph
from nodecopy.nn.engine import Averages
from nodecopy.nn.networks import SparseStack
from nodecopy.nn.training import LabelledNodes

PROPAGATED, CONNECTIONS, LABELS = "propagated", "connections", "labels"
VIEWS = {"features": SGC(n_steps=0), "two hops": SGC(0.0, n_steps=2), PROPAGATED: SGC()}
N_FOLDS = 5  # of the training nodes of each class, to compare voters
RIDGE = 2.0  # of the weights; the likelihoods of a handful of labels are noisy
PRIOR = 0.05  # weight of each voter without evidence, beside 1 for the propagated features
N_STEPS = 30  # of label propagation
MIN_PROBABILITY = 1e-4  # no voter has a veto
N_CANDIDATES = 2500  # nodes that may get pseudo-labels, which bounds the time
PSEUDO_WEIGHT = 4.0  # of all pseudo-labels together, per weight of all labels
MIN_PER_CLASS = 5  # unlabelled nodes per class below which sizes of classes are not estimated
TINY = np.finfo(np.float64).tiny  # divisor in place of a sum that is zero
CPU = torch.device("cpu")
MAX_NODES_FOR_CONNECTIONS = 100_000  # the singular vectors of larger graphs take minutes
FACTORS = np.exp(np.linspace(0, 4, 41))  # of a class's probabilities, compared by F1
Array: TypeAlias = NDArray[Any]


@dataclass(frozen=True, eq=False)
class FittedVoters:
    """Coefficients and intercepts of each regression, and the scores of label propagation."""

    solutions: list[tuple[Array, Array]]
    spread: Array


class Voters:
    """The voters for a graph: regressions on ``rows`` by name, and label propagation."""

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
        self.prior = np.where(np.array(self.names) == PROPAGATED, 1.0, PRIOR)
        if PROPAGATED not in self.names:
            self.prior = np.full(len(self.names), 1 / len(self.names))

    def fit(self, chains: Sequence[LabelledNodes]) -> list[FittedVoters]:
        """Return the voters for each chain of training nodes."""
        shape = (self.matrix.shape[0], len(chains), self.n_classes)
        own, strength = np.zeros(shape, np.float32), VIEWS[PROPAGATED].C
        for number, chain in enumerate(chains):
            own[chain.nodes, number] = chain.labels * np.asarray(chain.weights)[:, None]
        flat = propagate(self.matrix, own.reshape(shape[0], -1), 1 - DEFAULT_ALPHA, N_STEPS, self.device)
        fitted = []
        for chain, scores in zip(chains, flat.reshape(shape).transpose(1, 0, 2), strict=True):
            weights = np.asarray(chain.weights)
            weights = weights * (self.n_classes / weights.sum())
            solutions = [
                softmax_regressions(
                    rows[chain.nodes].astype(np.float64), chain.labels, (strength,), weights, CPU
                )[0]
                for rows in self.rows.values()
            ]
            fitted.append(FittedVoters(solutions, scores))
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
    """A round: voters with all labels, log-probabilities of held-out labels, weights, and pseudo-labels."""

    fitted: FittedVoters
    held_out: Array
    weights: Array
    n_pseudo_labels: list[int]


class Vote:
    """Self-training of the voters of a trial, with all labels and without those of each fold."""

    def __init__(self, trial: Trial, voters: Voters, share: float, balance: float) -> None:
        self.trial, self.voters, self.share, self.balance = trial, voters, share, balance
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

    def fit(self, n_rounds: int) -> list[VoteRound]:
        """Return the rounds; the pool of each has its voters and those of the first round."""
        rounds: list[VoteRound] = []
        base: list[FittedVoters] = []
        pooled: list[Array] = []
        for number in range(n_rounds + 1):
            labelled = [self._label(*pair) for pair in zip_longest(self.chains, pooled)]
            fitted, prior = self.voters.fit(labelled), self.voters.prior
            base = base or fitted
            logs = [self._predict(*pair) for pair in zip(fitted, base, self.held_out, strict=True)]
            prior = np.append(prior, 0 * prior) if number else prior
            weights = fit_weights(np.concatenate(logs, axis=1), self.truth, prior)
            pooled = [
                pool(self._predict(*pair, self.candidates), weights)
                for pair in zip(fitted, base, strict=True)
            ]
            n_labels = len(self.trial.train)
            codes = labelled[0].labels[n_labels:].argmax(axis=1)
            counts = np.bincount(codes, minlength=self.trial.n_classes).tolist()
            rounds.append(VoteRound(fitted[0], np.concatenate(logs, axis=1), weights, counts))
        return rounds

    def _predict(self, fitted: FittedVoters, base: FittedVoters, nodes: Any = slice(None)) -> Array:
        parts = [fitted] if fitted is base else [fitted, base]
        return np.concatenate([self.voters.predict(part, nodes) for part in parts])

    def _label(self, train: NDArray[np.int64], pooled: Array | None) -> LabelledNodes:
        """Return a chain's labels, and pseudo-labels by its prediction of the candidates."""
        one_hot, weights = np.eye(self.trial.n_classes), np.ones(len(train))
        nodes, codes = train, self.trial.codes[train]
        if pooled is not None:
            sizes = mix_sizes(pooled.sum(axis=0), self.balance)
            scaled = normalise(pooled * class_scales(pooled, sizes))
            rows = most_confident(scaled, self.share * sizes)
            weight = min(1.0, PSEUDO_WEIGHT * len(train) / max(1, len(rows)))
            nodes = np.append(nodes, self.candidates[rows])
            codes, weights = (
                np.append(codes, scaled[rows].argmax(axis=1)),
                np.append(weights, rows * 0 + weight),
            )
        return LabelledNodes(nodes, one_hot[codes], weights)

    def predict(
        self, rounds: Sequence[VoteRound], factors: Array | None, *, keep_networks: bool
    ) -> Prediction:
        """Return the prediction by the best round; ``factors`` are chosen if they are ``None``."""
        n_classes, names, n_validation = self.trial.n_classes, self.voters.names, len(self.held_out[0])
        pools, scores = [pool(each.held_out, each.weights) for each in rounds], []
        if n_validation:
            scores = [float((p.argmax(axis=1) == self.truth)[:n_validation].mean()) for p in pools]
        best = last_best(scores, len(rounds) - 1)
        chosen, held_out = rounds[best], pools[best]
        logs = self._predict(chosen.fitted, rounds[0].fitted)
        if factors is None:
            factors = choose_factors(pool(logs[:, self.candidates], chosen.weights))
        probabilities = softmax(np.tensordot(chosen.weights, logs, 1) + np.log(factors), axis=1).astype(
            np.float32
        )
        predicted, total = (held_out * factors).argmax(axis=1), chosen.weights.sum()
        is_right = [(predicted == c)[self.truth == c] for c in range(n_classes)]
        details = {
            "pseudo_label_rounds": best,
            "pseudo_labels": chosen.n_pseudo_labels,
            "vote": dict(
                zip(names, chosen.weights.reshape(-1, len(names)).sum(axis=0).tolist(), strict=True)
            ),
            "weight_without_pseudo_labels": float(chosen.weights[len(names) :].sum() / max(total, TINY)),
            "held_out_recall": [float(right.mean()) if len(right) else None for right in is_right],
            "class_weight": factors.tolist(),
        } | ({"round_accuracy": scores} if scores else {})
        networks = (
            self._keep(chosen, rounds[0], factors) if keep_networks and self.voters.embeddings else None
        )
        return Prediction(probabilities, mean_entropy(logs, chosen.weights, factors), details, networks)

    def _keep(self, chosen: VoteRound, base: VoteRound, factors: Array) -> PooledRegressions:
        """Return the voters that predict on other graphs, those that read features."""
        embeddings, names = self.voters.embeddings, self.voters.names
        parts = [chosen] if chosen is base else [chosen, base]
        is_kept = np.tile(np.arange(len(names)) < len(embeddings), len(parts))
        prior = np.append(self.voters.prior, 0 * self.voters.prior)[: len(is_kept)]
        weights = fit_weights(chosen.held_out[is_kept], self.truth, prior[is_kept])
        regressions = [
            EmbeddingRegression(embedding, *solution)
            for part in parts
            for embedding, solution in zip(embeddings, part.fitted.solutions, strict=False)
        ]
        return PooledRegressions(tuple(regressions), weights, factors, digest_graph(self.trial.graph))


def propagate(matrix: Any, own: Array, restart: float, n_steps: int, device: str) -> Array:
    """Return ``own`` after steps of propagation with restarts."""
    rows: Any = own
    if device != "cpu":
        matrix = SparseStack([matrix], torch.device(device)).tensor
        rows = own = torch.from_numpy(own).to(device)  # type: ignore[assignment]
    for _ in range(n_steps):
        rows = (1 - restart) * (matrix @ rows) + restart * own
    return np.asarray(rows if device == "cpu" else rows.cpu().numpy())


def normalise(scores: Array) -> Array:
    """Return rows scaled to a sum of one; equal probabilities if all are zero."""
    total = scores.sum(axis=1, keepdims=True)
    equal = np.full(scores.shape, 1 / scores.shape[1], scores.dtype)
    return np.asarray(np.divide(scores, total, where=total > 0, out=equal))


def floored(probabilities: Array) -> Array:
    """Return the logarithms of probabilities, none of which is a veto."""
    return np.asarray(np.log(np.maximum(probabilities, MIN_PROBABILITY)))


def last_best(scores: Sequence[float], last: int) -> int:
    """Return the number of the highest score, ties going to the latest, or the last without scores."""
    return last - int(np.argmax(scores[::-1])) if scores else last


def mix_sizes(sizes: Array, balance: float) -> Array:
    """Return sizes of classes between predicted and equal ones."""
    return np.asarray(sizes ** (1.0 - balance) * (sizes.sum() / len(sizes)) ** balance)


def class_scales(probabilities: Array, sizes: Array) -> Array:
    """Return factors of class probabilities with which they add up to the sizes of classes."""
    scale, n = np.ones(probabilities.shape[1]), len(probabilities)
    if n < MIN_PER_CLASS * len(scale):  # too few to estimate sizes of classes
        return scale
    of_free, target = probabilities.astype(np.float64), np.maximum(sizes, 1)
    target = target * (n / target.sum())
    for _ in range(20):  # it converges in fewer steps
        scale *= target / np.maximum(normalise(of_free * scale).sum(axis=0), TINY)
    return scale


def most_confident(probabilities: Array, numbers: Array) -> NDArray[np.int64]:
    """Return so many rows of each predicted class, those with the largest probability."""
    order = np.argsort(-probabilities.max(axis=1), kind="stable")
    predicted = probabilities[order].argmax(axis=1)
    return np.concatenate([order[predicted == c][: int(np.ceil(n))] for c, n in enumerate(numbers)])


def assign_folds(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the fold of each training node, -1 for the only node of a class; folds have equal classes."""
    folds = np.full(len(codes), -1)
    for code in np.unique(codes):
        (members,) = np.nonzero(codes == code)
        if len(members) > 1:
            folds[members] = np.arange(len(members)) % N_FOLDS
    return folds


def fit_weights(logs: Array, codes: NDArray[np.int64], prior: Array) -> Array:
    """Return weights, at least 0, that maximise the likelihood of held-out labels, shrunk to the prior.

    The probabilities of the pool are proportional to the product of those of the voters, each to the power
    of its weight; ``logs`` is [voter, node, class].
    """
    chosen, centred = np.arange(len(codes)), logs.astype(np.float64)
    centred -= centred.mean(axis=2, keepdims=True)

    def evaluate(weights: Array) -> tuple[float, Array]:
        p = pool(centred, weights)
        true = centred[:, chosen, codes]
        likelihood = np.log(np.maximum(p[chosen, codes], np.finfo(float).tiny)).sum()
        gradient = ((p * centred).sum(axis=2) - true).sum(axis=1) + 2 * RIDGE * (weights - prior)
        return float(RIDGE * np.square(weights - prior).sum() - likelihood), gradient

    if not len(codes):
        return prior
    bounds = [(0.0, None)] * len(prior)
    return np.asarray(minimize(evaluate, prior, jac=True, bounds=bounds, method="L-BFGS-B").x)


def pool(logs: Array, weights: Array) -> Array:
    """Return the normalised product of probabilities to the powers of weights; voters come first."""
    return np.asarray(softmax(np.tensordot(weights, logs, 1), axis=-1))


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


@dataclass(frozen=True, eq=False)
class PooledRegressions:
    """The voters that read features, with weights of their own, and the digest of the observed graph."""

    regressions: tuple[EmbeddingRegression, ...]
    weights: NDArray[np.float64]
    factors: NDArray[np.float64]
    observed: str

    def __post_init__(self) -> None:
        for name, vector, n in (
            ("weights", self.weights, len(self.regressions)),
            ("factors", self.factors, self.n_classes),
        ):
            given = check_vector(vector, f"{name} of the vote", length=n, per="voter or class")
            if not n or not (np.isfinite(given) & (given >= 0)).all() or not given.any():
                raise InputError(f"{name} of the vote", f"must be at least 0; got {given.tolist()}.")
        if len({regression.n_classes for regression in self.regressions}) > 1:
            raise InputError("regressions of the vote", "must have the same number of classes.")

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.regressions[0].n_classes if self.regressions else 0

    def predict(self, graph: Graph, device: str) -> Averages:
        """Return the pooled prediction on a graph; it is computed on the CPU, whatever the device."""
        logs = np.array([floored(part.predict(graph, device)[0]) for part in self.regressions])
        scales = np.log(self.factors)
        probabilities = softmax(np.tensordot(self.weights, logs, 1) + scales, axis=1).astype(np.float32)
        return probabilities, mean_entropy(logs, self.weights, self.factors)


def digest_graph(graph: Graph) -> str:
    """Return a digest of the edges and features of a graph."""
    digest = hashlib.sha256()
    for matrix in (graph.adjacency, sparse.csr_array(as_matrix(graph.features, "features"))):
        for part in (matrix.indptr, matrix.indices, matrix.data):
            digest.update(np.asarray(part, np.float64).tobytes())
    return digest.hexdigest()
