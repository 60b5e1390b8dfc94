"""A defence that combines what features, similar nodes and credible edges say of a node's class."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax

from nodecopy._core.csr import IntArray
from nodecopy._core.notices import log_decision
from nodecopy._core.validation import check_integer, check_real
from nodecopy.classify import APPNP, MLP, Classifier, SelfTraining
from nodecopy.defend.base import Defence, check_nodes
from nodecopy.defend.corrections import AttackedState, Correction
from nodecopy.defend.credibility import EdgeCredibility
from nodecopy.defend.distillation import assign_folds, distil, distil_mlp, sharpen
from nodecopy.defend.donors import DonorFinder
from nodecopy.defend.evidence import Array, Compatibility, Posterior, combine_evidence, limit_evidence
from nodecopy.defend.pruning import find_entries
from nodecopy.graph import Graph

FEATURE_WEIGHT, DONOR_WEIGHT = 0.55, 0.25
"""Exponents of the distilled probabilities and of the donors' mean prediction, which repeat each other."""
ATTACKED_SHARE = 2 / 3
"""Prior probability that a node was attacked that somebody asks to correct."""
N_FOLDS = 10
MIN_PROBABILITY = 1e-3
"""Predictions are at least this probable, so that no single one excludes a class."""
MAX_NODES_WITH_MLP = 50_000
"""Largest graph in which a perceptron is taught, too; its ten folds take minutes beyond."""
MAX_NODES_WITH_DONORS = 50_000
"""Largest graph in which the donors of all nodes are found; the time grows with the square."""
MIN_CREDIBILITY = 0.5
"""Edges with a lower probability of being genuine are distrusted."""


@dataclass(frozen=True)
class EdgeReport:
    """What is known of an edge of a corrected node.

    Parameters
    ----------
    neighbour
        The other node.
    predicted
        Its predicted class.
    log_odds
        The log-odds that the pair is an edge of the graph rather than a random pair, by its features.
    credibility
        Probability that the edge is genuine, given all evidence.
    """

    neighbour: Any
    predicted: Any
    log_odds: float
    credibility: float

    @property
    def is_distrusted(self) -> bool:
        """Return whether the edge is more likely false than genuine."""
        return self.credibility < MIN_CREDIBILITY


@dataclass(frozen=True)
class NodeReport:
    """The evidence behind the correction of a node, by class name.

    Parameters
    ----------
    node, predicted, corrected
        The node, the class that the classifier predicts for it, and the corrected class.
    probabilities
        The corrected probabilities.
    features
        What the node's features say, taught by the predictions for other nodes.
    donors
        The mean prediction for similar nodes; empty where none were searched.
    edges_say
        The log-likelihood of the edges for each class, the likeliest being zero, as far as it counts.
    edges
        Its edges, the least credible first.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import GCN
    >>> from nodecopy.defend import EvidenceDefence
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> split = datasets.label_split(digits.labels, 5, validation=0, test=200, rng=0)
    >>> report = EvidenceDefence(GCN()).fit(digits, split.train, rng=0).explain(7)
    >>> report.corrected, len(report.edges)
    (7, 1)
    """

    node: Any
    predicted: Any
    corrected: Any
    probabilities: dict[Any, float]
    features: dict[Any, float]
    donors: dict[Any, float]
    edges_say: dict[Any, float]
    edges: tuple[EdgeReport, ...] = field(repr=False)


@dataclass(frozen=True, eq=False)
class EvidenceCorrection(Correction):
    """Corrections by all evidence on one graph: features, a donor finder, and the credibility of edges.

    Parameters
    ----------
    state
        The attacked graph and the classifier's predictions.
    finder
        Finds similar nodes; ``None`` to do without.
    max_evidence
        How much edges may count, in nats.
    attacked_share
        Prior probability that a node was attacked.
    device
        Where perceptrons are trained.
    """

    state: AttackedState
    finder: DonorFinder | None
    max_evidence: float
    attacked_share: float
    device: str = "cpu"

    @cached_property
    def predictions(self) -> Array:
        """Return the classifier's predictions, none of which is certain."""
        p = np.maximum(self.state.probabilities.astype(np.float64), MIN_PROBABILITY)
        certain: Array = p / p.sum(axis=1, keepdims=True)
        return certain

    @cached_property
    def from_features(self) -> Array:
        """Return the log-probabilities that the features of each node give its classes.

        They are the mean of those of a logistic regression and of a perceptron.
        """
        n_nodes = self.state.graph.n_nodes
        folds = assign_folds(n_nodes, N_FOLDS)
        logistic = sharpen(distil(self.state, folds), self.state.probabilities)
        if n_nodes > MAX_NODES_WITH_MLP:
            log_decision(f"features: a logistic regression only, since the graph has {n_nodes:,} nodes.")
            return logistic
        perceptron = distil_mlp(self.state, folds, MLP(device=self.device))
        both: Array = log_softmax((logistic + np.log(np.maximum(perceptron, MIN_PROBABILITY))) / 2, axis=1)
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
        _ = self.from_features, self.credibility.weights, self.compatibility
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
        ordered = np.sort(self.without_edges(nodes), axis=1)
        certain: NDArray[np.bool_] = ordered[:, -1] - ordered[:, -2] > self.max_evidence
        return certain

    def predict_neighbourhoods(self, node: int, neighbourhoods: list[IntArray]) -> tuple[Array, Array]:
        """Return log-probabilities of a node with each of many neighbourhoods in place of its own.

        The first array is the correction; in the second the evidence of the edges is not limited. The edges
        must not be among those of the graph on which the classifier was trained.
        """
        distinct, which = np.unique(np.concatenate(neighbourhoods), return_inverse=True)
        nodes, no_edges = np.full(len(distinct), node), np.zeros(len(distinct), bool)
        log_odds = self.credibility.log_odds(nodes, distinct, is_edge=no_edges)
        owner = np.repeat(np.arange(len(neighbourhoods)), [len(part) for part in neighbourhoods])
        log_prior = np.repeat(self.without_edges(np.array([node])), len(neighbourhoods), axis=0)
        posterior = combine_evidence(
            log_prior,
            owner,
            log_odds[which],
            self.predictions[distinct[which]],
            self.compatibility,
            self.attacked_share,
        )
        limited = limit_evidence(log_prior, posterior.log_evidence, self.max_evidence)
        return np.log(limited), log_softmax(log_prior + posterior.log_evidence, axis=1)

    def predict_proba(self, nodes: IntArray) -> NDArray[np.floating[Any]]:
        if not len(nodes):
            return self.state.probabilities[:0]
        log_prior, posterior = self.weigh(nodes)
        return limit_evidence(log_prior, posterior.log_evidence, self.max_evidence)


@dataclass(eq=False, repr=False)
class EvidenceDefence(Defence):
    """Correct predictions at attacked nodes by their features, similar nodes and credible edges.

    Three kinds of evidence are combined. What the node's features say: a logistic regression and a perceptron
    that the classifier's predictions for other nodes have taught, see :class:`.DistilledFeatures`. What
    similar nodes are: the mean prediction for the donors of :class:`.CopyingDefence`. And what the node's own
    edges say: each connects it to a class, and is credible as far as both ends resemble the ends of other
    edges. The model knows that an attacker connects a node to other classes than its own, often to one of
    them, and removes edges to its own class (see :func:`~nodecopy.defend.evidence.combine_evidence`).

    Parameters
    ----------
    classifier
        The classifier to train, by default ``SelfTraining(APPNP())``; :meth:`from_classifier` takes one that
        is trained.
    n_donors
        Number of similar nodes; 0 does without, for graphs in which the search takes too long.
    max_evidence
        How much the edges of a node may count, in nats. If its features and donors favour a class by more
        than this, no change of its edges can change the correction. Larger values gain accuracy
        under attacks that do not know the defence, and lose it under those that do.
    retrain
        Whether :meth:`correct` trains the classifier again on the graph without the edges of the nodes that
        it corrects, so that flips of these edges change neither the predictions for other nodes nor what
        they teach. It needs :meth:`fit`. Recommended where the targets are known.
    device
        ``"cpu"`` or ``"cuda"``, for the default classifier; another one has its own.

    Notes
    -----
    The nodes need features that some of them share. Weights of edges are ignored by the evidence.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import GCN
    >>> from nodecopy.defend import EvidenceDefence
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> split = datasets.label_split(digits.labels, 5, validation=0, test=200, rng=0)
    >>> EvidenceDefence(GCN()).fit(digits, split.train, rng=0).correct([7, 3]).tolist()
    [7, 3]
    """

    classifier: Classifier | None = None
    _: KW_ONLY
    n_donors: int = 10
    max_evidence: float = 1.0
    retrain: bool = False
    device: str = "cpu"

    def check_parameters(self, graph: Graph) -> None:
        name, n_others = type(self).__name__, graph.n_nodes - 1
        check_integer(self.n_donors, f"n_donors of {name}", low=0, high=n_others, high_name="n_nodes - 1")
        check_real(self.max_evidence, f"max_evidence of {name}", low=0.0)

    def build_classifier(self) -> Classifier:
        if self.classifier is None:
            return SelfTraining(APPNP(device=self.device))
        return super().build_classifier()

    def prepare_correction(self, state: AttackedState) -> EvidenceCorrection:
        return self.build_correction(state, ATTACKED_SHARE).prepare()

    def build_correction(self, state: AttackedState, attacked_share: float) -> EvidenceCorrection:
        """Return the correction with the parameters of the defence."""
        finder = None
        if self.n_donors:
            search = state.embeddings.search("expected", parameter="donors", owner=type(self).__name__)
            finder = DonorFinder(search, self.n_donors)
        return EvidenceCorrection(state, finder, float(self.max_evidence), attacked_share, self.device)

    def certify(self, nodes: ArrayLike, *, graph: Graph | None = None) -> NDArray[np.bool_]:
        """Return for which nodes no change of their own edges can change the corrected class.

        Their features and donors favour a class by more than ``max_evidence``. It is a guarantee if the
        classifier was trained without the edges of these nodes (``retrain``), and does not extend to flips of
        other edges.

        Parameters
        ----------
        nodes, graph
            As in :meth:`correct_proba`.
        """
        if self.retrain and self.expects_targets:
            trial = self.check_retrainable(self._trial_on(graph))
            ((_, correction),) = self.train_corrections([trial], [check_nodes(trial.graph, nodes)])
        else:
            correction = self.get_state_and_correction(graph)[1]
        assert isinstance(correction, EvidenceCorrection)
        return correction.certify(check_nodes(correction.state.graph, nodes))

    def explain(self, node: Any, *, graph: Graph | None = None) -> NodeReport:
        """Return the evidence behind the correction of a node, and how credible its edges are.

        With ``retrain`` the evidence is that of the classifier that :meth:`fit` has trained.

        Parameters
        ----------
        node
            Position or string id of the node.
        graph
            The attacked graph; by default the one given to ``fit``.
        """
        state, correction = self.get_state_and_correction(graph)
        assert isinstance(correction, EvidenceCorrection)
        nodes = check_nodes(state.graph, [node])
        posterior = correction.weigh(nodes)[1]
        owner, neighbours = correction.edges_of(nodes)
        log_odds = correction.log_odds(nodes, owner, neighbours)
        probabilities, donors = correction.predict_proba(nodes)[0], correction.from_donors(nodes)
        below_best = posterior.log_evidence[0] - posterior.log_evidence[0].max()
        ids, names = state.graph.node_ids, self.classes_.tolist()
        predicted = self.classes_[state.probabilities.argmax(axis=1)]

        def by_class(values: Any) -> dict[Any, float]:
            return dict(zip(names, np.asarray(values, float).tolist(), strict=True))

        reports = [
            EdgeReport(_plain(ids[other]), _plain(predicted[other]), float(odds), float(credibility))
            for other, odds, credibility in zip(neighbours, log_odds, posterior.credibility, strict=True)
        ]
        return NodeReport(
            _plain(ids[nodes[0]]),
            _plain(predicted[nodes[0]]),
            names[int(probabilities.argmax())],
            by_class(probabilities),
            by_class(np.exp(correction.from_features[nodes[0]])),
            {} if donors is None else by_class(donors[0]),
            by_class(np.maximum(below_best, -self.max_evidence)),
            tuple(sorted(reports, key=lambda edge: edge.credibility)),
        )


def _plain(value: Any) -> Any:
    """Return a scalar of NumPy as one of Python."""
    return value.item() if hasattr(value, "item") else value
