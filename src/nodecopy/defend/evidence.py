"""A defence that combines what features, similar nodes and credible edges say of a node's class."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import log_softmax, logsumexp

from nodecopy._core.arrays import IntArray
from nodecopy._core.checks import check_integer, check_real
from nodecopy._core.messages import log_decision, mute_decisions
from nodecopy.classify import APPNP, MLP, Classifier, SelfTraining
from nodecopy.defend.base import AttackedState, Correction, Defence, check_nodes, find_entries
from nodecopy.defend.controls import assign_folds, distil, distil_mlp, sharpen
from nodecopy.defend.copying import DonorFinder
from nodecopy.defend.edges import EdgeCredibility
from nodecopy.graph import Graph
from nodecopy.io import convert_graph

# The posterior of a node's class and of what happened to its edges.


Array = NDArray[np.float64]
GRID = (np.arange(8) + 0.5) / 8
"""Shares of genuine edges of an attacked node; the prior is proportional to the share."""
GENUINE_SHARE = 0.95
"""Share of genuine edges of a node that was not attacked."""
CLASS_WEIGHT, CLEAN_CLASS_WEIGHT = 0.4, 0.6
"""Exponents of what a genuine edge says of the class, under an attack and without: edges of a node repeat
each other."""
CLEAN_ODDS_WEIGHT = 0.5
"""Exponent of the odds that an edge is genuine, without an attack."""
REMAINING_SHARE = 1 / 3
"""Share of the edges to the node's own class that an attacker leaves."""
MIN_OTHER = 0.1
"""Smallest ratio by which a false edge to a class speaks against that class."""
MAX_TERMS = 2**23
"""About the largest number of values that are computed at once."""


@dataclass(frozen=True, eq=False)
class Compatibility:
    """How often classes are connected, relative to chance.

    Parameters
    ----------
    counts
        ``[n_classes, n_classes]``: the edges between classes.
    """

    counts: Array

    @classmethod
    def from_graph(cls, graph: Graph, probabilities: Array) -> Compatibility:
        """Count the edges of a graph whose nodes have class probabilities, and one edge of each kind more."""
        return cls(probabilities.T @ (graph.adjacency @ probabilities) + 1.0)

    @property
    def class_shares(self) -> Array:
        """Return the share of each class among the ends of edges."""
        shares: Array = self.counts.sum(axis=0) / self.counts.sum()
        return shares

    def ratios(self, remaining_share: float = 1.0) -> Array:
        """Return the probability of a neighbour's class given the node's, over its share.

        ``remaining_share`` is the share of the edges within a class that is left.
        """
        counts = self.counts * (1 - (1 - remaining_share) * np.eye(len(self.counts)))
        ratios: Array = counts / counts.sum(axis=1, keepdims=True) / self.class_shares
        return ratios


@dataclass(frozen=True, eq=False)
class Posterior:
    """What is known of some nodes and their edges.

    Parameters
    ----------
    log_evidence
        ``[n, n_classes]``: the log-likelihood of the edges for each class, up to a constant.
    credibility
        Probability that each edge is genuine.
    """

    log_evidence: Array
    credibility: Array


def combine_evidence(
    log_prior: Array,
    owner: IntArray,
    log_odds: Array,
    neighbours: Array,
    compatibility: Compatibility,
    attacked_share: float,
) -> Posterior:
    """Return the posterior of some nodes.

    Parameters
    ----------
    log_prior
        ``[n, n_classes]``: log-probabilities of the classes without the edges.
    owner
        The row in ``log_prior`` of the node of each edge, ascending.
    log_odds
        The log-odds that each edge is genuine, by its credibility.
    neighbours
        ``[n_edges, n_classes]``: class probabilities of the neighbour of each edge.
    compatibility
        How often classes are connected.
    attacked_share
        Prior probability that a node was attacked.
    """
    n, n_classes = log_prior.shape
    per_node = np.bincount(owner, minlength=n)
    terms = np.cumsum((per_node + 1) * n_classes * len(GRID) * (n_classes + 2))
    blocks = np.split(np.arange(n), np.flatnonzero(np.diff(terms // MAX_TERMS)) + 1)
    starts = np.concatenate([[0], np.cumsum(per_node)])
    parts = []
    for block in blocks:
        edges = slice(starts[block[0]], starts[block[-1] + 1]) if len(block) else slice(0, 0)
        rows = owner[edges] - (block[0] if len(block) else 0)
        parts.append(
            _combine_block(
                log_prior[block], rows, log_odds[edges], neighbours[edges], compatibility, attacked_share
            )
        )
    return Posterior(
        np.concatenate([part.log_evidence for part in parts]),
        np.concatenate([part.credibility for part in parts]),
    )


def _combine_block(
    log_prior: Array,
    owner: IntArray,
    log_odds: Array,
    neighbours: Array,
    compatibility: Compatibility,
    attacked_share: float,
) -> Posterior:
    (n, n_classes), n_edges = log_prior.shape, len(owner)
    to_nodes = sparse.csr_array((np.ones(n_edges), (owner, np.arange(n_edges))), shape=(n, n_edges))
    genuine, total = weigh_edges(log_odds, neighbours, compatibility)
    weights = weigh_hypotheses(n_classes, attacked_share)
    summed = to_nodes @ np.log(total).reshape(n_edges, weights.size)
    joint = log_prior[:, :, None] + weights + summed.reshape(n, *weights.shape)
    log_classes = logsumexp(joint, axis=2)
    posterior = np.exp(joint - logsumexp(log_classes, axis=1)[:, None, None])
    credibility: Array = (posterior[owner] * genuine / total).sum(axis=(1, 2))
    return Posterior(log_classes - log_prior, credibility)


def weigh_hypotheses(n_classes: int, attacked_share: float) -> Array:
    """Return the prior log-probabilities of the hypotheses about a node of each class.

    They are ``[n_classes, n_hypotheses]``: no attack; an attack that connects the node to other classes, for
    each share of genuine edges; and attacks that connect it to each class, which is not its own.
    """
    grid = np.log(GRID / GRID.sum() * attacked_share / 2)
    weights = np.tile([np.log1p(-attacked_share), *grid, *np.tile(grid, n_classes)], (n_classes, 1))
    with np.errstate(divide="ignore"):  # the logarithm of zero is meant
        is_other = np.log((1 - np.eye(n_classes)) / max(n_classes - 1, 1))
    weights[:, 1 + len(GRID) :] += np.repeat(is_other, len(GRID), axis=1)
    return weights


def weigh_edges(log_odds: Array, neighbours: Array, compatibility: Compatibility) -> tuple[Array, Array]:
    """Return the likelihood of edges if they are genuine, and in all, for classes and hypotheses.

    Both are ``[n_edges, n_classes, n_hypotheses]``, as in :func:`weigh_hypotheses`. The edges of a node are
    independent, so that its likelihood is the product over them. Parameters are those of
    :func:`combine_evidence`.
    """
    n_edges, n_classes = neighbours.shape
    shares = np.concatenate([[GENUINE_SHARE], np.tile(GRID, n_classes + 1)])
    usual = neighbours @ compatibility.ratios().T
    remaining = neighbours @ compatibility.ratios(REMAINING_SHARE).T
    other = MIN_OTHER + (1 - MIN_OTHER) * (1 - neighbours) / (1 - compatibility.class_shares)
    genuine = np.empty((n_edges, n_classes, len(shares)))
    genuine[:, :, 0] = np.exp(CLEAN_ODDS_WEIGHT * log_odds)[:, None] * usual**CLEAN_CLASS_WEIGHT
    genuine[:, :, 1:] = (np.exp(log_odds)[:, None] * remaining**CLASS_WEIGHT)[:, :, None]
    false = np.ones_like(genuine)
    false[:, :, 1 : 1 + len(GRID)] = other[:, :, None]
    false[:, :, 1 + len(GRID) :] = np.repeat(usual, len(GRID), axis=1)[:, None, :]
    genuine *= shares
    return genuine, genuine + false * (1 - shares)


def add_evidence(log_prior: Array, log_evidence: Array, counts: NDArray[np.bool_]) -> Array:
    """Return the log-probabilities of classes with the evidence of the nodes for which it counts.

    Parameters
    ----------
    log_prior
        ``[n, n_classes]``: log-probabilities of the classes without the edges.
    log_evidence
        ``[n, n_classes]``: the log-likelihood of the edges for each class.
    counts
        Whether the evidence of each node counts.
    """
    posterior: Array = log_softmax(log_prior + np.where(counts[:, None], log_evidence, 0.0), axis=1)
    return posterior


# What is known of a corrected node and its edges, for people.


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

    Examples
    --------
    >>> from nodecopy.defend import EdgeReport
    >>> EdgeReport("bob", "dog", log_odds=-2.0, credibility=0.1).reason
    'its ends do not resemble those of other edges'
    """

    neighbour: Any
    predicted: Any
    log_odds: float
    credibility: float

    @property
    def is_distrusted(self) -> bool:
        """Return whether the edge is more likely false than genuine."""
        return self.credibility < MIN_CREDIBILITY

    @property
    def reason(self) -> str:
        """Return in words why the edge is distrusted, or trusted."""
        ends = "resemble" if self.log_odds > 0 else "do not resemble"
        by_features = f"its ends {ends} those of other edges"
        if self.is_distrusted == (self.log_odds <= 0):
            return by_features
        verb = "contradicts" if self.is_distrusted else "agrees with"
        return f"{by_features}, but its neighbour's class {verb} the other evidence"


@dataclass(frozen=True)
class NodeReport:
    """The evidence behind the correction of a node, by class name.

    Parameters
    ----------
    node, predicted, corrected
        The node, the class that the classifier predicts on the attacked graph, and the corrected class.
    probabilities
        The corrected probabilities.
    features
        What the node's features say, taught by the predictions for other nodes.
    donors
        The mean prediction for similar nodes; empty where none were searched.
    edge_evidence
        The log-likelihood of the edges for each class, the likeliest being zero, as far as it counts.
    edges
        Its edges, the least credible first.
    uses_edges
        Whether the edges counted: features and donors left the class uncertain.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import GCN
    >>> from nodecopy.defend import EvidenceDefence
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> split = datasets.label_split(digits.labels, 5, validation=0, test=200, rng=0)
    >>> report = EvidenceDefence(GCN()).fit(digits, split.train, rng=0).explain([7])[0]
    >>> report.corrected, len(report.edges)
    (7, 1)
    """

    node: Any
    predicted: Any
    corrected: Any
    probabilities: dict[Any, float]
    features: dict[Any, float]
    donors: dict[Any, float]
    edge_evidence: dict[Any, float]
    edges: tuple[EdgeReport, ...] = field(repr=False)
    uses_edges: bool = True

    @property
    def distrusted(self) -> tuple[EdgeReport, ...]:
        """Return the edges that are more likely false than genuine."""
        return tuple(edge for edge in self.edges if edge.is_distrusted)

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain types, with whether and why each edge is distrusted."""
        edges = [
            asdict(edge) | {"distrusted": edge.is_distrusted, "reason": edge.reason} for edge in self.edges
        ]
        return asdict(self) | {"edges": edges}


# Corrections by a node's features, similar nodes and credible edges.


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


ATTACKED_SHARE = 1 / 2
"""Prior probability that a node was attacked, given that it is to be corrected."""


@dataclass(eq=False, repr=False)
class EvidenceDefence(Defence):
    """Correct predictions at attacked nodes by their features, similar nodes and credible edges.

    Three kinds of evidence are combined. The node's features: a logistic regression and an MLP that learned
    from the classifier's predictions for other nodes, see :class:`.DistilledFeatures`. Similar nodes: the
    mean prediction for the donors of :class:`.CopyingDefence`. The node's own edges: each connects it to a
    class, and is credible as far as both ends resemble the ends of other edges. The model knows that an
    attacker connects a node to other classes than its own, often to one of them, and removes edges to its
    own class (see :func:`~nodecopy.defend.evidence.combine_evidence`). Edges count only at nodes whose class
    is uncertain by features and donors; of all others, the correction does not depend on their own edges.

    Parameters
    ----------
    classifier
        The classifier to train, by default ``SelfTraining(APPNP())``; :meth:`from_classifier` takes one that
        is trained.
    n_donors
        Number of similar nodes; 0 does without, for graphs in which the search takes too long.
    uncertain_share
        Share of the nodes whose edges count: those whose likeliest class, by features and donors, has the
        lowest probability. At all other nodes the correction does not depend on the node's own
        edges, if ``retrain`` is set. Larger values gain accuracy under attacks that do not know the
        defence, and lose it under those that do.
    retrain
        Whether :meth:`correct` trains the classifier again on the graph without the edges of the nodes that
        it corrects, so that flips of these edges change neither the predictions for other nodes nor what is
        learned from them. It needs :meth:`fit`. Recommended where the targets are known.
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
    uncertain_share: float = 0.12
    retrain: bool = False
    device: str = "cpu"

    def check_parameters(self, graph: Graph) -> None:
        name, n_others = type(self).__name__, graph.n_nodes - 1
        check_integer(self.n_donors, f"n_donors of {name}", low=0, high=n_others, high_name="n_nodes - 1")
        check_real(self.uncertain_share, f"uncertain_share of {name}", low=0.0, high=1.0)

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
        return EvidenceCorrection(state, finder, float(self.uncertain_share), attacked_share, self.device)

    def certify(self, nodes: ArrayLike, *, graph: Graph | None = None) -> NDArray[np.bool_]:
        """Return for which nodes no change of their own edges can change the corrected class.

        Their features and donors leave the class less uncertain than those of ``uncertain_share`` of the
        nodes. It is a guarantee if the classifier was trained without the edges of these nodes
        (``retrain``), and does not extend to flips of other edges.

        Parameters
        ----------
        nodes, graph
            As in :meth:`correct_proba`.
        """
        graph = None if graph is None else convert_graph(graph, f"graph of {type(self).__name__}")
        correction, positions = self._correction_of(nodes, graph)
        return find_evidence(correction).certify(positions)

    def explain(self, nodes: ArrayLike, *, graph: Graph | None = None) -> list[NodeReport]:
        """Return the evidence behind the correction of some nodes, and how credible their edges are.

        Parameters
        ----------
        nodes, graph
            As in :meth:`correct_proba`.
        """
        graph = None if graph is None else convert_graph(graph, f"graph of {type(self).__name__}")
        correction, positions = self._correction_of(nodes, graph)
        before = self.check_fitted() if graph is None else self.predict_graph(graph)
        after = correction.predict_proba(positions)
        reports = find_evidence(correction).explain(
            positions, self.classes_, before.probabilities[positions], after
        )
        return reports

    def _correction_of(self, nodes: ArrayLike, graph: Graph | None) -> tuple[Correction, IntArray]:
        """Return the correction of some nodes, trained without their edges if ``retrain``, and the nodes."""
        self.check_fitted()
        if self.retrain and self.expects_targets:
            trial = self.check_retrainable(self._trial_on(graph))
            positions = check_nodes(trial.graph, nodes)
            with mute_decisions():  # they are those of fit
                ((_, correction),) = self.train_corrections([trial], [positions])
            return correction, positions
        state, correction = self.get_state_and_correction(graph)
        return correction, check_nodes(state.graph, nodes)


def find_evidence(correction: Correction) -> EvidenceCorrection:
    """Return the evidence behind a correction."""
    evidence: Any = getattr(correction, "evidence", correction)
    assert isinstance(evidence, EvidenceCorrection)
    return evidence
