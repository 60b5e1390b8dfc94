"""A defence that combines features and credible edges, and an attack on it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, asdict, dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import log_softmax, logsumexp, softmax

from nodecopy._core.arrays import Array, Bools, FloatArray, Floats, IntArray, Ints
from nodecopy._core.checks import check_settings, check_type
from nodecopy._core.messages import PrintedTable
from nodecopy.attacks import Edits, TargetedAttack
from nodecopy.attacks.nettack import SurrogateLabels
from nodecopy.classify import APPNP, Classifier, SelfTraining, Trial
from nodecopy.defend.base import AttackedState, Correction, Defence, check_distinct
from nodecopy.defend.controls import distil, sharpen
from nodecopy.defend.edges import EdgeModel, build_credibility
from nodecopy.errors import InputError
from nodecopy.graph import Graph

GENUINE_SHARES = (np.arange(8) + 0.5) / 8  # shares of a node's edges that are genuine under an attack
ATYPICAL_SHARE = 0.05  # share of unattacked nodes whose features say nothing about their edges
N_ROUNDS = 50  # of the EM algorithm
MAX_TERMS = 2**23  # about the largest number of values that are computed at once
MAX_LOG_ODDS = 10.0
MIN_CREDIBILITY = 0.5  # edges with a lower probability of being genuine are distrusted
TIE_WEIGHT = 1e-3  # weight of the loss if edges always counted, which orders flips of edges that do not
MIN_PROBABILITY = 1e-3  # of a class in a prediction, so that no single prediction excludes a class


class Edges(NamedTuple):
    """The edges of some nodes.

    Each has its ``owner``, the number of the node, ascending; its log-odds; and the class probabilities of
    its neighbour, ``[n_edges, n_classes]``. ``class_edges`` counts the edges between two classes.
    """

    n_nodes: int
    owner: IntArray
    log_odds: Floats
    neighbours: Floats
    class_edges: Floats

    def blocks(self) -> Iterator[tuple[slice, slice, Floats, Floats, Floats]]:
        """Yield nodes, their edges, :func:`weigh_edges` of these, and the log-likelihoods of the nodes."""
        n_classes, per_node = self.neighbours.shape[1], np.bincount(self.owner, minlength=self.n_nodes)
        terms = np.cumsum((per_node + 1) * n_classes * len(GENUINE_SHARES) * (n_classes + 2))
        ends = [*np.flatnonzero(np.diff(terms // MAX_TERMS)) + 1, self.n_nodes]
        starts = np.concatenate([[0], np.cumsum(per_node)])
        for first, last in zip([0, *ends[:-1]], ends, strict=True):
            edges = slice(starts[first], starts[last])
            genuine, total = weigh_edges(self.log_odds[edges], self.neighbours[edges], self.class_edges)
            n_edges, *shape = total.shape
            entries = np.ones(n_edges), (self.owner[edges] - first, np.arange(n_edges))
            to_nodes = sparse.csr_array(entries, shape=(last - first, n_edges))
            summed = to_nodes @ np.log(total).reshape(n_edges, math.prod(shape))
            yield slice(first, last), edges, genuine, total, summed.reshape(last - first, *shape)

    def log_likelihoods(self) -> Floats:
        """Return ``[n_nodes, n_classes, 1 + n_shares]``: without an attack, and for each share."""
        n_classes = self.neighbours.shape[1]
        likelihoods = np.empty((self.n_nodes, n_classes, 1 + len(GENUINE_SHARES)))
        weights = weigh_hypotheses(np.ones(likelihoods.shape[2]), n_classes)
        for nodes, _, _, _, summed in self.blocks():
            joint = summed + weights
            likelihoods[nodes, :, 0] = logsumexp(joint[:, :, :2], axis=2)
            by_aim = joint[:, :, 2:].reshape(len(joint), n_classes, n_classes, len(GENUINE_SHARES))
            likelihoods[nodes, :, 1:] = logsumexp(by_aim, axis=2)
        return likelihoods

    def rate(self, log_prior: Floats, prior: Floats) -> Floats:
        """Return the probability that each edge is genuine."""
        weights, rates = weigh_hypotheses(prior, log_prior.shape[1]), np.empty(len(self.owner))
        for nodes, edges, genuine, total, summed in self.blocks():
            joint = log_prior[nodes, :, None] + weights + summed
            posterior = softmax(joint, axis=(1, 2))
            rates[edges] = (posterior[self.owner[edges] - nodes.start] * genuine / total).sum(axis=(1, 2))
        return rates


def weigh_hypotheses(prior: Floats, n_classes: int) -> Floats:
    """Return the log-probabilities of the hypotheses about a node of each class, before its edges are seen.

    ``[n_classes, n_hypotheses]``: no attack, on a node with typical and with atypical edges; then, for each
    class but the node's own and each share of genuine edges, an attack that connects the node to the class.
    ``prior`` has the probability of no attack, and of each share.
    """
    with np.errstate(divide="ignore"):  # the logarithm of zero is meant
        aims = np.log((1 - np.eye(n_classes)) / max(n_classes - 1, 1))
        attacked = aims[:, :, None] + np.log(prior[1:])
    unattacked = np.log(prior[0] * np.array([1 - ATYPICAL_SHARE, ATYPICAL_SHARE]))
    return np.hstack([np.tile(unattacked, (n_classes, 1)), attacked.reshape(n_classes, -1)])


def weigh_edges(log_odds: Floats, neighbours: Floats, class_edges: Floats) -> tuple[Floats, Floats]:
    """Return the likelihood of edges if they are genuine, and in all, for classes and hypotheses.

    Both are ``[n_edges, n_classes, n_hypotheses]``, as in :func:`weigh_hypotheses`, over the likelihood of a
    random pair. The edges of a node are independent, so that its likelihood is the product over them.
    """
    n_classes = neighbours.shape[1]
    shares = np.concatenate([[1.0, 1.0], np.tile(GENUINE_SHARES, n_classes)])
    by_class = neighbours @ compare_classes(class_edges).T
    genuine = (np.exp(log_odds)[:, None] * by_class)[:, :, None] * shares
    genuine[:, :, 1] = by_class
    total = genuine.copy()
    total[:, :, 2:] += (np.repeat(by_class, len(GENUINE_SHARES), axis=1) * (1 - shares[2:]))[:, None]
    return genuine, total


def compare_classes(class_edges: Floats) -> Floats:
    """Return the probability of a neighbour's class given the node's, over its share of all ends of edges."""
    ratios = class_edges / class_edges.sum(axis=1, keepdims=True)
    return np.asarray(ratios / (class_edges.sum(axis=0) / class_edges.sum()))


def estimate_prior(log_likelihoods: Floats) -> Floats:
    """Return the probability that a node was not attacked, and of each share of genuine edges, by EM.

    ``log_likelihoods`` are ``[n_nodes, 1 + n_shares]``. The pseudo-count is one node.
    """
    start = np.append(0.5, np.full(len(GENUINE_SHARES), 0.5 / len(GENUINE_SHARES)))
    prior = start
    for _ in range(N_ROUNDS):
        posterior = softmax(log_likelihoods + np.log(prior), axis=1)
        prior = (posterior.sum(axis=0) + start) / (len(posterior) + 1)
    return prior


@dataclass(frozen=True)
class EdgeReport:
    """Evidence about one edge of a corrected node.

    Parameters
    ----------
    neighbour, predicted
        The other node, and its predicted class.
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

    @property
    def reason(self) -> str:
        """Return in words why the edge is distrusted, or trusted."""
        by_features = f"its ends {'do not ' * (self.log_odds <= 0)}resemble those of other edges"
        if self.is_distrusted == (self.log_odds <= 0):
            return by_features
        verb = "contradicts" if self.is_distrusted else "agrees with"
        return f"{by_features}, but its neighbour's class {verb} the other evidence"


@dataclass(frozen=True, repr=False)
class NodeReport(PrintedTable):
    """The evidence behind the correction of a node, by class name.

    Parameters
    ----------
    node, predicted, corrected, probabilities
        The node, its class without and with the correction, and the corrected probabilities.
    attacked
        Probability that the node was attacked.
    features
        Probabilities by the node's features.
    edge_evidence
        The log-likelihood of the edges for each class, the likeliest being zero, as far as it counts.
    edges
        Its edges, the least credible first.
    uses_edges
        Whether the edges counted: the features left the class uncertain.
    """

    heads = ("neighbour", "predicted", "credibility", "reason")

    node: Any
    predicted: Any
    corrected: Any
    probabilities: dict[Any, float]
    attacked: float
    features: dict[Any, float]
    edge_evidence: dict[Any, float]
    edges: tuple[EdgeReport, ...]
    uses_edges: bool = True

    def cells(self) -> list[tuple[Any, ...]]:
        return [
            (str(edge.neighbour), str(edge.predicted), edge.credibility, edge.reason) for edge in self.edges
        ]

    def notes(self) -> tuple[list[str], list[str]]:
        change = f"{self.predicted}, corrected {self.corrected} ({self.probabilities[self.corrected]:.0%})"
        unused = (
            [] if self.uses_edges else ["The edges did not count, since the features leave little doubt."]
        )
        return [f"{self.node}: predicted {change}; attacked with probability {self.attacked:.2f}"], unused

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


@dataclass(frozen=True, eq=False)
class EvidenceCorrection(Correction):
    """Corrections by all evidence on one graph."""

    state: AttackedState
    uncertain_share: float
    trusts_classifier: bool = True

    @cached_property
    def from_features(self) -> Floats:
        return sharpen(distil(self.state), self.state.probabilities)

    @cached_property
    def predictions(self) -> Floats:
        """Return the predictions for neighbours."""
        p = self.state.probabilities if self.trusts_classifier else np.exp(self.from_features)
        p = np.maximum(p.astype(np.float64), MIN_PROBABILITY)
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    @cached_property
    def credibility(self) -> EdgeModel:
        return build_credibility(self.state.embeddings)

    @cached_property
    def class_edges(self) -> Floats:
        """Return one plus the number of edges between two classes."""
        p = self.predictions
        return np.asarray(p.T @ (self.state.graph.adjacency @ p) + 1.0)

    @cached_property
    def prior(self) -> Floats:
        """Return the result of :func:`estimate_prior` for the targets, or all nodes, that have edges."""
        nodes = np.arange(self.state.graph.n_nodes) if self.state.targets is None else self.state.targets
        nodes = nodes[self.state.complete_graph.degrees[nodes] > 0]
        log_likelihoods = self.collect_edges(nodes).log_likelihoods()
        return estimate_prior(logsumexp(self.from_features[nodes][:, :, None] + log_likelihoods, axis=1))

    @cached_property
    def max_probability(self) -> float:
        if self.uncertain_share in (0.0, 1.0):
            return 2 * self.uncertain_share  # no node has a lower one than 0, and all have than 2
        return float(np.exp(np.quantile(self.from_features.max(axis=1), self.uncertain_share)))

    def is_uncertain(self, log_prior: Floats) -> Bools:
        return np.asarray(np.exp(log_prior.max(axis=1)) < self.max_probability)

    def edges_of(self, nodes: IntArray) -> tuple[IntArray, IntArray]:
        rows = self.state.complete_graph.rows.csr[nodes].tocoo()
        return rows.row, rows.col

    def log_odds(self, first: IntArray, second: IntArray, is_edge: Bools | None = None) -> Floats:
        log_odds = self.credibility.log_odds(first, second, is_edge)
        return np.asarray(np.clip(log_odds, -MAX_LOG_ODDS, MAX_LOG_ODDS))

    def collect_edges(self, nodes: IntArray) -> Edges:
        owner, neighbours = self.edges_of(nodes)
        first, is_edge = nodes[owner], None
        if self.state.graph is not self.state.complete_graph and len(first):
            is_edge = np.asarray(self.state.graph.adjacency[first, neighbours]).ravel() != 0
        log_odds = self.log_odds(first, neighbours, is_edge)
        return Edges(len(nodes), owner, log_odds, self.predictions[neighbours], self.class_edges)

    def judge(self, nodes: IntArray) -> tuple[Floats, Floats]:
        """Return the probabilities of each class with an attack and without one, by all evidence."""
        likelihoods = self.collect_edges(nodes).log_likelihoods() + np.log(self.prior)
        joint = softmax(self.from_features[nodes][:, :, None] + likelihoods, axis=(1, 2))
        return joint[:, :, 1:].sum(axis=2), joint[:, :, 0]

    def attack_probability(self, nodes: IntArray) -> Floats:
        return np.asarray(self.judge(nodes)[0].sum(axis=1))

    def certify(self, nodes: IntArray) -> Bools:
        return ~self.is_uncertain(self.from_features[nodes])

    def predict_proba(self, nodes: IntArray) -> FloatArray:
        if not len(nodes):
            return self.state.probabilities[:0]
        attacked, unattacked = self.judge(nodes)
        if self.trusts_classifier:  # where no attack is probable, its prediction is the better one
            own = self.state.probabilities if self.state.with_all_edges is None else self.state.with_all_edges
            unattacked = unattacked.sum(axis=1, keepdims=True) * own[nodes]
        without = self.from_features[nodes]
        return np.where(self.is_uncertain(without)[:, None], attacked + unattacked, np.exp(without))

    def explain(self, nodes: IntArray, classes: Array, before: Array, after: Array) -> list[NodeReport]:
        without, joint = self.from_features[nodes], self.judge(nodes)
        owner, neighbours = self.edges_of(nodes)
        edges_of_nodes = self.collect_edges(nodes)
        log_evidence = np.log(np.maximum(sum(joint), np.finfo(float).tiny)) - without
        credibility = edges_of_nodes.rate(without, self.prior)
        uses_edges = self.is_uncertain(without)
        below_best = log_evidence - log_evidence.max(axis=1, keepdims=True)
        edge_evidence = np.where(uses_edges[:, None], below_best, 0.0)
        names, ids = classes.tolist(), self.state.graph.node_ids.tolist()
        predicted = self.state.probabilities.argmax(axis=1)

        def by_class(values: Any) -> dict[Any, float]:
            return dict(zip(names, np.asarray(values, float).tolist(), strict=True))

        edges: list[list[EdgeReport]] = [[] for _ in nodes]
        columns = (part.tolist() for part in (owner, neighbours, edges_of_nodes.log_odds, credibility))
        for row, other, odds, probability in zip(*columns, strict=True):
            edges[row].append(EdgeReport(ids[other], names[predicted[other]], odds, probability))
        return [
            NodeReport(
                ids[node],
                names[int(before[row].argmax())],
                names[int(after[row].argmax())],
                by_class(after[row]),
                float(joint[0][row].sum()),
                by_class(np.exp(without[row])),
                by_class(edge_evidence[row]),
                tuple(sorted(edges[row], key=lambda edge: edge.credibility)),
                bool(uses_edges[row]),
            )
            for row, node in enumerate(nodes.tolist())
        ]


@dataclass(eq=False, repr=False)
class EvidenceDefence(Defence):
    """Correct predictions at attacked nodes by their features and the credible ones of their edges.

    The features are judged by a logistic regression that learned from the predictions for other nodes, as in
    :class:`.DistilledFeatures`. Each edge is judged by how far both ends resemble the ends of other edges,
    and by the class of the neighbour. Either the node was not attacked and all its edges are genuine, or an
    attacker has connected it to another class, and a share of its edges is genuine. How often either is the
    case is estimated from the graph. The classifier's prediction counts as much as the node was probably not
    attacked, and the evidence as much as it was, so that a clean node keeps its prediction.

    Parameters
    ----------
    classifier
        The classifier to train, by default ``SelfTraining(APPNP())``; :meth:`from_classifier` takes one that
        is trained.
    uncertain_share
        Share of the nodes whose edges count: those with the lowest probability of the likeliest class by
        features. With ``retrain``, no other correction depends on the node's own edges. A small share, such
        as 0.1, helps if the attacker knows the defence, and costs accuracy at nodes that were not attacked.
    retrain
        As in :class:`.CopyingDefence`; recommended where the targets are known. The share of attacked nodes
        is then estimated from the targets instead of all nodes.
    device
        As in :class:`.CopyingDefence`.

    Notes
    -----
    The nodes need features that some of them share. Weights of edges are ignored by the evidence.

    Examples
    --------
    >>> from nodecopy import datasets, defend
    >>> from nodecopy.classify import GCN
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> defend.EvidenceDefence(GCN()).fit(digits, range(100), rng=0).score() > 0.8
    True
    """

    classifier: Classifier | str | None = None
    _: KW_ONLY
    uncertain_share: float = 1.0
    retrain: bool = False
    device: str = "cpu"
    needs_all_edges = True

    def check_parameters(self, graph: Graph) -> None:
        check_settings(self, uncertain_share=(0.0, 1.0))

    def build_classifier(self) -> Classifier:
        if self.classifier is None:
            return SelfTraining(APPNP(device=self.device))
        return super().build_classifier()

    def prepare_correction(self, state: AttackedState) -> Correction:
        return EvidenceCorrection(state, float(self.uncertain_share))

    def attack_probability(self, nodes: ArrayLike, *, graph: Graph | None = None) -> Floats:
        """Return the probability that each of some nodes was attacked; see :meth:`certify`."""
        correction, positions = self._correction_of(nodes, graph)
        return np.asarray(correction.attack_probability(positions))

    def certify(self, nodes: ArrayLike, *, graph: Graph | None = None) -> Bools:
        """Return for which nodes no flip of their own edges can change the corrected class.

        With ``retrain`` it is a guarantee.

        Parameters
        ----------
        nodes
            Positions, a boolean mask or node ids, each once; with ``retrain``, targets given to ``fit``.
        graph
            The attacked graph; by default the one given to ``fit``.
        """
        correction, positions = self._correction_of(nodes, graph)
        return np.asarray(correction.certify(positions))

    def explain(self, nodes: ArrayLike, *, graph: Graph | None = None) -> list[NodeReport]:
        """Return the evidence behind the correction of some nodes, given as in :meth:`certify`."""
        correction, positions = self._correction_of(nodes, graph)
        before, after = self.undefended_proba(graph)[positions], correction.predict_proba(positions)
        return list(correction.explain(positions, self.classes_, before, after))

    def _correction_of(self, nodes: ArrayLike, graph: Graph | None) -> tuple[Any, IntArray]:
        _, state, correction = self.prepare_graph(graph)
        positions = check_distinct(state.graph, nodes)
        targets: Any = self.targets_
        if self._prunes and not np.isin(positions, targets).all():
            raise InputError("nodes", "must be targets given to fit: training leaves out only their edges.")
        return correction, positions


class _EvidenceEdits(Edits):
    def __init__(self, graph: Graph, codes: Ints, correction: EvidenceCorrection) -> None:
        super().__init__(graph)
        self.codes, self.correction = codes, correction


class TargetEvidence:
    """The evidence about a node; ``factors`` are the likelihoods of its edges to each of ``others``."""

    def __init__(self, correction: EvidenceCorrection, node: int, others: IntArray) -> None:
        nodes, no_edges = np.full(len(others), node), np.zeros(len(others), bool)
        log_odds = correction.log_odds(nodes, others, no_edges)
        self.factors = weigh_edges(log_odds, correction.predictions[others], correction.class_edges)[1]
        self.without_edges = correction.from_features[np.array([node])]
        # The prior is the one before the attack.
        self.weights = weigh_hypotheses(correction.prior, self.without_edges.shape[1])
        self.counts = bool(correction.is_uncertain(self.without_edges)[0])

    def predict(self, log_likelihood: Floats, changes: Floats) -> tuple[Floats, Floats]:
        joint = self.weights + log_likelihood
        highest = joint.max()
        log_evidence = np.log(np.einsum("kh,nkh->nk", np.exp(joint - highest), changes)) + highest
        always = np.asarray(log_softmax(self.without_edges + log_evidence, axis=1))
        return always if self.counts else np.repeat(self.without_edges, len(always), axis=0), always

    def losses(self, code: int, log_likelihood: Floats, changes: Floats) -> Floats:
        corrected, always = self.predict(log_likelihood, changes)
        return np.asarray(-corrected[:, code] - TIE_WEIGHT * always[:, code])


@dataclass(eq=False, repr=False)
class AdaptiveEvidenceAttack(TargetedAttack):
    """Attack :class:`EvidenceDefence` by flips of the target's edges, evaluated by the defence itself.

    The attacker trains the defence with ``retrain``. Each step makes the flip that raises the loss of the
    prediction by the evidence most; the part of the classifier in a correction is left out. The default
    budget is the target's degree.

    Parameters
    ----------
    defence
        The defence; by default ``EvidenceDefence(retrain=True)``.
    n_candidates
        Number of random nodes that are tried as new neighbours of each target.
    together
        As in :class:`.TargetedAttack`.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import GCN
    >>> from nodecopy.defend import AdaptiveEvidenceAttack, EvidenceDefence
    >>> digits = datasets.load("digits").subgraph(range(200))
    >>> attack = AdaptiveEvidenceAttack(EvidenceDefence(GCN(), retrain=True))
    >>> attack.attack(digits, [7], budget=2, rng=0).spent.tolist()
    [2]
    """

    defence: EvidenceDefence | None = None
    n_candidates: int = 20_000
    together: bool = True

    def prepare(
        self, graph: Graph, targets: Ints, train: ArrayLike | None, seed: SeedSequence
    ) -> Callable[[], _EvidenceEdits]:
        check_settings(self, n_candidates=1)
        name = type(self).__name__
        defence = EvidenceDefence(retrain=True) if self.defence is None else self.defence
        check_type(defence, EvidenceDefence, f"defence of {name}", "an EvidenceDefence")
        labels = SurrogateLabels.from_graph(graph, targets, train, name)
        defence = type(defence)(**(defence.get_params(deep=False) | {"retrain": True}))
        trial = Trial(graph, labels.train, rng=seed)
        ((_, _, correction),) = defence.train_corrections([trial], [targets], [None])
        assert isinstance(correction, EvidenceCorrection)
        return lambda: _EvidenceEdits(graph, trial.codes, correction)

    def attack_target(self, edits: Edits, target: int, budget: int, rng: Generator) -> None:
        assert isinstance(edits, _EvidenceEdits)
        code, neighbours = int(edits.codes[target]), edits.neighbours(target)
        others = np.delete(np.arange(edits.graph.n_nodes), target)
        if len(others) > self.n_candidates:
            others = np.union1d(rng.choice(others, self.n_candidates, replace=False), neighbours)
        evidence, is_neighbour = TargetEvidence(edits.correction, target, others), np.isin(others, neighbours)
        likelihood = np.log(evidence.factors[is_neighbour]).sum(axis=0)
        changes, is_flipped = evidence.factors, np.zeros(len(others), bool)
        changes[is_neighbour] = 1 / changes[is_neighbour]
        best = evidence.losses(code, likelihood, np.ones((1, *likelihood.shape)))[0]
        for _ in range(min(budget, len(others))):
            losses = np.where(is_flipped, -np.inf, evidence.losses(code, likelihood, changes))
            chosen = int(losses.argmax())
            if losses[chosen] <= best:
                return
            best, likelihood = losses[chosen], likelihood + np.log(changes[chosen])
            edits.flip(target, int(others[chosen]))
            is_flipped[chosen] = True
