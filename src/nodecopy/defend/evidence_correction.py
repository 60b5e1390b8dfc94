"""Corrections by a node's features, similar nodes and credible edges."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from nodecopy._core.csr import IntArray
from nodecopy._core.notices import log_decision
from nodecopy.classify import MLP
from nodecopy.defend.corrections import AttackedState, Correction
from nodecopy.defend.credibility import EdgeCredibility
from nodecopy.defend.distillation import assign_folds, distil, distil_mlp, sharpen
from nodecopy.defend.donors import DonorFinder
from nodecopy.defend.evidence import Array, Compatibility, Posterior, add_evidence, combine_evidence
from nodecopy.defend.evidence_reports import EdgeReport, NodeReport
from nodecopy.defend.pruning import find_entries

FEATURE_WEIGHT, DONOR_WEIGHT = 0.6, 0.15
"""Exponents of the distilled probabilities and of the donors' mean prediction, which repeat each other."""
N_FOLDS = 10
MIN_PROBABILITY = 1e-3
"""Least probability of a class in a prediction, so that no single prediction excludes a class."""
MAX_NODES_WITH_MLP = 50_000
"""Largest number of nodes for which MLPs are trained, too; beyond, their ten folds take minutes."""
MAX_RANKED_NODES = 2_000
"""Number of nodes, evenly spaced, by which it is decided how uncertain the uncertain ones are."""


@dataclass(frozen=True, eq=False)
class EvidenceCorrection(Correction):
    """Corrections by all evidence on one graph: features, a donor finder, and the credibility of edges.

    Parameters
    ----------
    state
        The attacked graph and the classifier's predictions.
    finder
        Finds similar nodes; ``None`` to do without.
    uncertain_share
        Share of the nodes whose edges count.
    attacked_share
        Prior probability that a node was attacked.
    device
        Where MLPs are trained.
    """

    state: AttackedState
    finder: DonorFinder | None
    uncertain_share: float
    attacked_share: float
    device: str = "cpu"

    @cached_property
    def predictions(self) -> Array:
        """Return the classifier's predictions, in which every class has at least about 0.001."""
        p = np.maximum(self.state.probabilities.astype(np.float64), MIN_PROBABILITY)
        predictions: Array = p / p.sum(axis=1, keepdims=True)
        return predictions

    @cached_property
    def from_features(self) -> Array:
        """Return the log-probabilities of the classes by the features of each node.

        They are the mean of those of a logistic regression and of an MLP.
        """
        n_nodes = self.state.graph.n_nodes
        folds = assign_folds(n_nodes, N_FOLDS)
        logistic = sharpen(distil(self.state, folds), self.state.probabilities)
        if n_nodes > MAX_NODES_WITH_MLP:
            log_decision(f"features: a logistic regression only, since the graph has {n_nodes:,} nodes.")
            return logistic
        mlp = distil_mlp(self.state, folds, MLP(device=self.device))
        both: Array = log_softmax((logistic + np.log(np.maximum(mlp, MIN_PROBABILITY))) / 2, axis=1)
        return both

    @cached_property
    def credibility(self) -> EdgeCredibility:
        """Return how credible edges are."""
        return EdgeCredibility(self.state.embeddings)

    @cached_property
    def compatibility(self) -> Compatibility:
        """Return how often classes are connected."""
        return Compatibility.from_graph(self.state.graph, self.predictions)

    def prepare(self) -> EvidenceCorrection:
        """Compute everything that all nodes share."""
        _ = self.from_features, self.credibility.weights, self.compatibility, self.max_probability
        return self

    def from_donors(self, nodes: IntArray) -> Array | None:
        """Return the mean prediction of the donors of each node."""
        if self.finder is None or not len(nodes):
            return None
        mean: Array = self.predictions[self.finder.find(nodes)].mean(axis=1)
        return mean

    def without_edges(self, nodes: IntArray) -> Array:
        """Return the log-probabilities of the classes of some nodes without their edges."""
        log_p = FEATURE_WEIGHT * self.from_features[nodes]
        donors = self.from_donors(nodes)
        combined: Array = log_softmax(
            log_p if donors is None else log_p + DONOR_WEIGHT * np.log(donors), axis=1
        )
        return combined

    @cached_property
    def max_probability(self) -> float:
        """Return the probability of the likeliest class from which on a node's edges do not count.

        Without its edges, an ``uncertain_share`` of the nodes have a lower one.
        """
        if self.uncertain_share in (0.0, 1.0):
            return 2 * self.uncertain_share  # no node has a lower one than 0, and all have than 2
        n_nodes = self.state.graph.n_nodes
        nodes = np.arange(0, n_nodes, math.ceil(n_nodes / MAX_RANKED_NODES))
        highest = self.without_edges(nodes).max(axis=1)
        return float(np.exp(np.quantile(highest, self.uncertain_share)))

    def is_uncertain(self, log_prior: Array) -> NDArray[np.bool_]:
        """Return whether the edges of nodes count, by the log-probabilities without these edges."""
        uncertain: NDArray[np.bool_] = np.exp(log_prior.max(axis=1)) < self.max_probability
        return uncertain

    def edges_of(self, nodes: IntArray) -> tuple[IntArray, IntArray]:
        """Return the edges of some nodes: the position in ``nodes``, and the neighbour."""
        rows = self.state.complete_graph.rows
        degrees = rows.indptr[nodes + 1] - rows.indptr[nodes]
        owner = np.repeat(np.arange(len(nodes)), degrees)
        first = np.repeat(rows.indptr[nodes] - np.cumsum(degrees) + degrees, degrees)
        return owner, rows.indices[first + np.arange(len(owner))]

    def log_odds(self, nodes: IntArray, owner: IntArray, neighbours: IntArray) -> Array:
        """Return the log-odds of edges of some nodes."""
        first = nodes[owner]
        is_edge = np.ones(len(first), bool)
        if self.state.graph is not self.state.complete_graph:
            is_edge = find_entries(self.state.graph, first, neighbours) >= 0
        return self.credibility.log_odds(first, neighbours, is_edge=is_edge)

    def weigh(self, nodes: IntArray) -> tuple[Array, Posterior]:
        """Return the log-probabilities of some nodes without their edges, and the posterior with them."""
        log_prior, (owner, neighbours) = self.without_edges(nodes), self.edges_of(nodes)
        posterior = combine_evidence(
            log_prior,
            owner,
            self.log_odds(nodes, owner, neighbours),
            self.predictions[neighbours],
            self.compatibility,
            self.attacked_share,
        )
        return log_prior, posterior

    def certify(self, nodes: IntArray) -> NDArray[np.bool_]:
        """Return whether no change of a node's own edges can change its corrected class."""
        return ~self.is_uncertain(self.without_edges(nodes))

    def predict_proba(self, nodes: IntArray) -> NDArray[np.floating[Any]]:
        if not len(nodes):
            return self.state.probabilities[:0]
        return np.exp(self.predict_log_proba(nodes))

    def predict_log_proba(self, nodes: IntArray) -> Array:
        """Return the corrected log-probabilities of some nodes."""
        log_prior, posterior = self.weigh(nodes)
        return add_evidence(log_prior, posterior.log_evidence, self.is_uncertain(log_prior))

    def explain(
        self, nodes: IntArray, classes: NDArray[Any], before: NDArray[Any], after: NDArray[Any]
    ) -> list[NodeReport]:
        """Return the evidence of some nodes.

        Parameters
        ----------
        nodes
            Positions of the nodes.
        classes
            Names of the classes.
        before, after
            Class probabilities of these nodes before and after the correction.
        """
        log_prior, posterior = self.weigh(nodes)
        owner, neighbours = self.edges_of(nodes)
        log_odds = self.log_odds(nodes, owner, neighbours)
        features, donors = np.exp(self.from_features[nodes]), self.from_donors(nodes)
        below_best = posterior.log_evidence - posterior.log_evidence.max(axis=1, keepdims=True)
        uses_edges = self.is_uncertain(log_prior)
        edge_evidence = np.where(uses_edges[:, None], below_best, 0.0)
        names, ids = classes.tolist(), self.state.graph.node_ids.tolist()
        predicted = self.state.probabilities.argmax(axis=1)

        def by_class(values: Any) -> dict[Any, float]:
            return dict(zip(names, np.asarray(values, float).tolist(), strict=True))

        def describe_edge(edge: int) -> EdgeReport:
            other = neighbours[edge]
            numbers = float(log_odds[edge]), float(posterior.credibility[edge])
            return EdgeReport(ids[other], names[predicted[other]], *numbers)

        reports = []
        for row, node in enumerate(nodes.tolist()):
            edges = [describe_edge(edge) for edge in np.flatnonzero(owner == row).tolist()]
            reports.append(
                NodeReport(
                    ids[node],
                    names[int(before[row].argmax())],
                    names[int(after[row].argmax())],
                    by_class(after[row]),
                    by_class(features[row]),
                    {} if donors is None else by_class(donors[row]),
                    by_class(edge_evidence[row]),
                    tuple(sorted(edges, key=lambda edge: edge.credibility)),
                    bool(uses_edges[row]),
                )
            )
        return reports
