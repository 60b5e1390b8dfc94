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
from nodecopy._core.linalg import one_blas_thread
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
RIDGE = 0.5  # of the weights; the likelihoods of a handful of labels are noisy
PRIOR = 0.05  # weight of each voter without evidence, beside 1 for the propagated features
PSEUDO_WEIGHT = 4.0  # of the pseudo-labels of a class together, per weight of its labels
HALF_TRUST = 5.0  # further labels per class with which what is estimated counts half
MIN_PROBABILITY = 1e-4  # no voter has a veto
N_CANDIDATES = 2500  # nodes that may get pseudo-labels, which bounds the time
N_EM_STEPS = 100  # enough to converge
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
        self.prior = np.where(np.array(self.names) == PROPAGATED, 1.0, PRIOR)
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
    """A round: voters with all labels, log-probabilities of held-out labels, weights, sizes, pseudo-labels."""

    fitted: FittedVoters
    held_out: Array
    weights: Array
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
            logs = [self._predict(*pair) for pair in zip(fitted, base, self.held_out, strict=True)]
            prior = np.append((1 - self.trust) * prior, self.trust * prior) if number else prior
            weights = fit_weights(np.concatenate(logs, axis=1), self.truth, prior, self.frequencies)
            of_free = [self._predict(*pair, self.candidates) for pair in zip(fitted, base, strict=True)]
            sizes = [self._estimate_sizes(pool(part, weights)) for part in of_free]
            pooled = [pool(part, weights, size) for part, size in zip(of_free, sizes, strict=True)]
            codes = labelled[0].labels[len(self.trial.train) :].argmax(axis=1)
            counts = np.bincount(codes, minlength=self.trial.n_classes).tolist()
            rounds.append(VoteRound(fitted[0], np.concatenate(logs, axis=1), weights, sizes[0], counts))
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
        """Return a chain's labels, and as pseudo-labels its predictions of the candidates."""
        codes, n_classes = self.trial.codes[train], self.trial.n_classes
        if pooled is None:
            return LabelledNodes(train, np.eye(n_classes)[codes], np.ones(len(train)))
        pseudo, (second, first) = pooled.argmax(axis=1), np.sort(pooled, axis=1)[:, -2:].T
        # A pseudo-label weighs as much as its class is more probable than any other.
        totals, n_labels = np.bincount(pseudo, first - second, n_classes), np.bincount(codes)
        scales = np.minimum(1.0, PSEUDO_WEIGHT * n_labels / np.maximum(totals, TINY))
        weights = np.append(np.ones(len(train)), scales[pseudo] * (first - second))
        nodes = np.append(train, self.candidates)
        return LabelledNodes(nodes, np.eye(n_classes)[np.append(codes, pseudo)], weights)

    def predict(
        self, rounds: Sequence[VoteRound], factors: Array | None, *, keep_networks: bool
    ) -> Prediction:
        """Return the prediction by the best round; ``factors`` are chosen if they are ``None``."""
        n_classes, names, n_validation = self.trial.n_classes, self.voters.names, len(self.held_out[0])
        pools, scores = [pool(each.held_out, each.weights, each.sizes) for each in rounds], []
        if n_validation:
            scores = [float((p.argmax(axis=1) == self.truth)[:n_validation].mean()) for p in pools]
        best = last_best(scores, len(rounds) - 1)
        chosen, held_out = rounds[best], pools[best]
        logs = self._predict(chosen.fitted, rounds[0].fitted)
        if factors is None:
            factors = choose_factors(pool(logs[:, self.candidates], chosen.weights, chosen.sizes))
        scales = chosen.sizes * factors
        probabilities = pool(logs, chosen.weights, scales).astype(np.float32)
        predicted, total = (held_out * factors).argmax(axis=1), chosen.weights.sum()
        is_right = [(predicted == c)[self.truth == c] for c in range(n_classes)]
        details = {
            "pseudo_label_rounds": best,
            "pseudo_labels": chosen.n_pseudo_labels,
            "vote": dict(
                zip(names, chosen.weights.reshape(-1, len(names)).sum(axis=0).tolist(), strict=True)
            ),
            "weight_without_pseudo_labels": float(chosen.weights[len(names) :].sum() / max(total, TINY)),
            "class_sizes": chosen.sizes.tolist(),
            "held_out_recall": [float(right.mean()) if len(right) else None for right in is_right],
            "class_weight": factors.tolist(),
        } | ({"round_accuracy": scores} if scores else {})
        networks = (
            self._keep(chosen, rounds[0], scales) if keep_networks and self.voters.embeddings else None
        )
        return Prediction(probabilities, mean_entropy(logs, chosen.weights, scales), details, networks)

    def _keep(self, chosen: VoteRound, base: VoteRound, scales: Array) -> PooledRegressions:
        """Return the voters that predict on other graphs, those that read features."""
        embeddings, names = self.voters.embeddings, self.voters.names
        parts = [chosen] if chosen is base else [chosen, base]
        is_kept = np.tile(np.arange(len(names)) < len(embeddings), len(parts))
        prior = np.tile(self.voters.prior, len(parts))[is_kept] / len(parts)
        weights = fit_weights(chosen.held_out[is_kept], self.truth, prior, self.frequencies)
        regressions = [
            EmbeddingRegression(embedding, *solution)
            for part in parts
            for embedding, solution in zip(embeddings, part.fitted.solutions, strict=False)
        ]
        return PooledRegressions(tuple(regressions), weights, scales, digest_graph(self.trial.graph))


def weigh_classes_equally(chain: LabelledNodes) -> Array:
    """Return weights of nodes that add up to one in each class, in the given proportions."""
    weights = np.asarray(chain.weights)
    return np.asarray(weights / (chain.labels @ (weights @ chain.labels)))


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


def assign_folds(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the fold of each training node, -1 for the only node of a class; folds have equal classes."""
    folds = np.full(len(codes), -1)
    for code in np.unique(codes):
        (members,) = np.nonzero(codes == code)
        if len(members) > 1:
            folds[members] = np.arange(len(members)) % N_FOLDS
    return folds


def fit_weights(logs: Array, codes: NDArray[np.int64], prior: Array, sizes: Array) -> Array:
    """Return weights, at least 0, that maximise the likelihood of held-out labels, shrunk to the prior."""
    chosen, centred = np.arange(len(codes)), logs.astype(np.float64)
    centred -= centred.mean(axis=2, keepdims=True)

    def evaluate(weights: Array) -> tuple[float, Array]:
        p = pool(centred, weights, sizes)
        true = centred[:, chosen, codes]
        likelihood = np.log(np.maximum(p[chosen, codes], np.finfo(float).tiny)).sum()
        gradient = ((p * centred).sum(axis=2) - true).sum(axis=1) + 2 * RIDGE * (weights - prior)
        return float(RIDGE * np.square(weights - prior).sum() - likelihood), gradient

    if not len(codes):
        return prior
    bounds = [(0.0, None)] * len(prior)
    return np.asarray(minimize(evaluate, prior, jac=True, bounds=bounds, method="L-BFGS-B").x)


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
        probabilities = pool(logs, self.weights, self.factors).astype(np.float32)
        return probabilities, mean_entropy(logs, self.weights, self.factors)


def digest_graph(graph: Graph) -> str:
    """Return a digest of the edges and features of a graph."""
    digest = hashlib.sha256()
    for matrix in (graph.adjacency, sparse.csr_array(as_matrix(graph.features, "features"))):
        for part in (matrix.indptr, matrix.indices, matrix.data):
            digest.update(np.asarray(part, np.float64).tobytes())
    return digest.hexdigest()
