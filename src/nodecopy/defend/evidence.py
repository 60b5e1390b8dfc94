"""A defence that combines features, similar nodes and credible edges, and an attack on it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import log_softmax, logsumexp

from nodecopy._core.arrays import Array, Bools, FloatArray, Floats, IntArray, Ints
from nodecopy._core.checks import check_integer, check_settings, check_type
from nodecopy._core.messages import log_decision
from nodecopy.attacks import Edits, TargetedAttack
from nodecopy.attacks.nettack import SurrogateLabels
from nodecopy.classify import APPNP, Classifier, SelfTraining, Trial
from nodecopy.defend.base import AttackedState, Correction, Defence, check_distinct
from nodecopy.defend.controls import distil, distil_mlp, sharpen
from nodecopy.defend.copying import find_donors
from nodecopy.defend.edges import EdgeModel, build_credibility
from nodecopy.errors import InputError
from nodecopy.graph import Graph

ATTACKED_SHARE = 1 / 2  # prior probability that a node was attacked, given that it is to be corrected
GRID = (np.arange(8) + 0.5) / 8  # shares of genuine edges under attack; the prior is proportional to it
GENUINE_SHARE = 0.95  # share of genuine edges of a node that was not attacked
# Exponents of the class evidence of a genuine edge: edges of a node repeat each other.
CLASS_WEIGHT, CLEAN_CLASS_WEIGHT = 0.4, 0.6
CLEAN_ODDS_WEIGHT = 0.5  # exponent of the odds that an edge is genuine, without an attack
REMAINING_SHARE = 1 / 3  # share of the edges to the node's own class that an attacker leaves
MIN_OTHER = 0.1  # smallest ratio by which a false edge to a class speaks against that class
MAX_TERMS = 2**23  # about the largest number of values that are computed at once
MAX_LOG_ODDS = 10.0
MIN_CREDIBILITY = 0.5  # edges with a lower probability of being genuine are distrusted
FEATURE_WEIGHT, DONOR_WEIGHT = 0.6, 0.15  # exponents of both kinds of evidence, which repeat each other
N_FOLDS = 10
TIE_WEIGHT = 1e-3  # weight of the loss if edges always counted, which orders flips of edges that do not
MIN_PROBABILITY = 1e-3  # of a class in a prediction, so that no single prediction excludes a class
MAX_NODES_WITH_MLP = 50_000  # beyond, the ten folds of MLPs take minutes
MAX_RANKED_NODES = 2_000  # number of nodes, evenly spaced, that decide how uncertain the uncertain ones are


def combine_evidence(
    log_prior: Floats, owner: IntArray, log_odds: Floats, neighbours: Floats, class_edges: Floats
) -> tuple[Floats, Floats]:
    """Return the log-likelihood of the edges of some nodes, and the probability that each edge is genuine.

    The log-likelihood is ``[n, n_classes]``, up to a constant, as is ``log_prior``, without the edges. Each
    edge has its ``owner``, a row in ``log_prior``, ascending; its log-odds; and the class probabilities of
    its neighbour, ``[n_edges, n_classes]``. ``class_edges`` counts the edges between two classes.
    """
    n, n_classes = log_prior.shape
    per_node = np.bincount(owner, minlength=n)
    terms = np.cumsum((per_node + 1) * n_classes * len(GRID) * (n_classes + 2))
    blocks = np.split(np.arange(n), np.flatnonzero(np.diff(terms // MAX_TERMS)) + 1)
    starts = np.concatenate([[0], np.cumsum(per_node)])
    likelihoods, credibilities = [], []
    weights = weigh_hypotheses(n_classes)
    for block in blocks:
        first, size = block[0] if len(block) else 0, len(block)
        edges = slice(starts[first], starts[first + size])
        of_node, prior = owner[edges] - first, log_prior[block]
        genuine, total = weigh_edges(log_odds[edges], neighbours[edges], class_edges)
        places = of_node, np.arange(len(of_node))
        to_nodes = sparse.csr_array((np.ones(len(of_node)), places), shape=(size, len(of_node)))
        summed = to_nodes @ np.log(total).reshape(len(of_node), weights.size)
        joint = prior[:, :, None] + weights + summed.reshape(size, *weights.shape)
        log_classes = logsumexp(joint, axis=2)
        posterior = np.exp(joint - logsumexp(log_classes, axis=1)[:, None, None])
        likelihoods.append(log_classes - prior)
        credibilities.append((posterior[of_node] * genuine / total).sum(axis=(1, 2)))
    return np.concatenate(likelihoods), np.concatenate(credibilities)


def weigh_hypotheses(n_classes: int) -> Floats:
    """Return the prior log-probabilities of the hypotheses about a node of each class.

    ``[n_classes, n_hypotheses]``: no attack; for each share of genuine edges, an attack that connects the
    node to other classes, and attacks that connect it to each class but its own.
    """
    grid = np.log(GRID / GRID.sum() * ATTACKED_SHARE / 2)
    weights = np.tile([np.log1p(-ATTACKED_SHARE), *grid, *np.tile(grid, n_classes)], (n_classes, 1))
    with np.errstate(divide="ignore"):  # the logarithm of zero is meant
        is_other = np.log((1 - np.eye(n_classes)) / max(n_classes - 1, 1))
    weights[:, 1 + len(GRID) :] += np.repeat(is_other, len(GRID), axis=1)
    return weights


def weigh_edges(log_odds: Floats, neighbours: Floats, class_edges: Floats) -> tuple[Floats, Floats]:
    """Return the likelihood of edges if they are genuine, and in all, for classes and hypotheses.

    Both are ``[n_edges, n_classes, n_hypotheses]``, as in :func:`weigh_hypotheses`. The edges of a node are
    independent, so that its likelihood is the product over them.
    """
    n_edges, n_classes = neighbours.shape
    shares = np.concatenate([[GENUINE_SHARE], np.tile(GRID, n_classes + 1)])
    class_shares = class_edges.sum(axis=0) / class_edges.sum()
    usual = neighbours @ compare_classes(class_edges).T
    remaining = neighbours @ compare_classes(class_edges, REMAINING_SHARE).T
    other = MIN_OTHER + (1 - MIN_OTHER) * (1 - neighbours) / (1 - class_shares)
    genuine = np.empty((n_edges, n_classes, len(shares)))
    genuine[:, :, 0] = np.exp(CLEAN_ODDS_WEIGHT * log_odds)[:, None] * usual**CLEAN_CLASS_WEIGHT
    genuine[:, :, 1:] = (np.exp(log_odds)[:, None] * remaining**CLASS_WEIGHT)[:, :, None]
    false = np.ones_like(genuine)
    false[:, :, 1 : 1 + len(GRID)] = other[:, :, None]
    false[:, :, 1 + len(GRID) :] = np.repeat(usual, len(GRID), axis=1)[:, None, :]
    genuine *= shares
    return genuine, genuine + false * (1 - shares)


def compare_classes(class_edges: Floats, remaining_share: float = 1.0) -> Floats:
    """Return the probability of a neighbour's class given the node's, over its share of all ends of edges."""
    left = class_edges * (1 - (1 - remaining_share) * np.eye(len(class_edges)))
    return np.asarray(left / left.sum(axis=1, keepdims=True) / (class_edges.sum(axis=0) / class_edges.sum()))


def add_evidence(log_prior: Floats, log_evidence: Floats, counts: Bools) -> Floats:
    """Return log-probabilities with the evidence of edges where it counts."""
    return np.asarray(log_softmax(log_prior + np.where(counts[:, None], log_evidence, 0.0), axis=1))


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
    node, predicted, corrected, probabilities
        The node, its class without and with the correction, and the corrected probabilities.
    features, donors
        Probabilities by the node's features, and the mean prediction for similar nodes, empty without these.
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


@dataclass(frozen=True, eq=False)
class EvidenceCorrection(Correction):
    """Corrections by all evidence on one graph."""

    state: AttackedState
    n_donors: int
    uncertain_share: float
    device: str = "cpu"
    owner: str = "EvidenceDefence"

    @cached_property
    def predictions(self) -> Floats:
        p = np.maximum(self.state.probabilities.astype(np.float64), MIN_PROBABILITY)
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    @cached_property
    def from_features(self) -> Floats:
        n_nodes = self.state.graph.n_nodes
        logistic = sharpen(distil(self.state, N_FOLDS), self.state.probabilities)
        if n_nodes > MAX_NODES_WITH_MLP:
            log_decision(f"features: a logistic regression only, since the graph has {n_nodes:,} nodes.")
            return logistic
        mlp = distil_mlp(self.state, N_FOLDS, self.device)
        both = logistic + np.log(np.maximum(mlp, MIN_PROBABILITY))
        return np.asarray(log_softmax(both / 2, axis=1))

    @cached_property
    def credibility(self) -> EdgeModel:
        return build_credibility(self.state.embeddings)

    @cached_property
    def class_edges(self) -> Floats:
        """Return one plus the number of edges between two classes."""
        p = self.predictions
        return np.asarray(p.T @ (self.state.graph.adjacency @ p) + 1.0)

    @cached_property
    def search(self) -> Any:
        return self.state.embeddings.search("expected", parameter="donors", owner=self.owner)

    @cached_property
    def max_probability(self) -> float:
        if self.uncertain_share in (0.0, 1.0):
            return 2 * self.uncertain_share  # no node has a lower one than 0, and all have than 2
        n_nodes = self.state.graph.n_nodes
        nodes = np.arange(0, n_nodes, math.ceil(n_nodes / MAX_RANKED_NODES))
        highest = self.without_edges(nodes).max(axis=1)
        return float(np.exp(np.quantile(highest, self.uncertain_share)))

    def from_donors(self, nodes: IntArray) -> Floats | None:
        if not self.n_donors or not len(nodes):
            return None
        return np.asarray(self.predictions[find_donors(self.search, self.n_donors, nodes)].mean(axis=1))

    def without_edges(self, nodes: IntArray) -> Floats:
        log_p, donors = FEATURE_WEIGHT * self.from_features[nodes], self.from_donors(nodes)
        log_p = log_p if donors is None else log_p + DONOR_WEIGHT * np.log(donors)
        return np.asarray(log_softmax(log_p, axis=1))

    def is_uncertain(self, log_prior: Floats) -> Bools:
        return np.asarray(np.exp(log_prior.max(axis=1)) < self.max_probability)

    def edges_of(self, nodes: IntArray) -> tuple[IntArray, IntArray]:
        rows = self.state.complete_graph.rows.csr[nodes].tocoo()
        return rows.row, rows.col

    def log_odds(self, first: IntArray, second: IntArray, is_edge: Bools | None = None) -> Floats:
        log_odds = self.credibility.log_odds(first, second, is_edge)
        return np.asarray(np.clip(log_odds, -MAX_LOG_ODDS, MAX_LOG_ODDS))

    def weigh(self, nodes: IntArray) -> tuple[Floats, Floats, Floats, Floats]:
        log_prior, (owner, neighbours) = self.without_edges(nodes), self.edges_of(nodes)
        first, is_edge = nodes[owner], None
        if self.state.graph is not self.state.complete_graph and len(first):
            is_edge = np.asarray(self.state.graph.adjacency[first, neighbours]).ravel() != 0
        log_odds = self.log_odds(first, neighbours, is_edge)
        classes = self.predictions[neighbours]
        log_evidence, credibility = combine_evidence(log_prior, owner, log_odds, classes, self.class_edges)
        return log_prior, log_evidence, log_odds, credibility

    def certify(self, nodes: IntArray) -> Bools:
        return ~self.is_uncertain(self.without_edges(nodes))

    def predict_proba(self, nodes: IntArray) -> FloatArray:
        return np.exp(self.predict_log_proba(nodes)) if len(nodes) else self.state.probabilities[:0]

    def predict_log_proba(self, nodes: IntArray) -> Floats:
        log_prior, log_evidence, _, _ = self.weigh(nodes)
        return add_evidence(log_prior, log_evidence, self.is_uncertain(log_prior))

    def explain(self, nodes: IntArray, classes: Array, before: Array, after: Array) -> list[NodeReport]:
        log_prior, log_evidence, log_odds, credibility = self.weigh(nodes)
        owner, neighbours = self.edges_of(nodes)
        features, donors = np.exp(self.from_features[nodes]), self.from_donors(nodes)
        uses_edges = self.is_uncertain(log_prior)
        below_best = log_evidence - log_evidence.max(axis=1, keepdims=True)
        edge_evidence = np.where(uses_edges[:, None], below_best, 0.0)
        names, ids = classes.tolist(), self.state.graph.node_ids.tolist()
        predicted = self.state.probabilities.argmax(axis=1)

        def by_class(values: Any) -> dict[Any, float]:
            return dict(zip(names, np.asarray(values, float).tolist(), strict=True))

        edges: list[list[EdgeReport]] = [[] for _ in nodes]
        columns = (part.tolist() for part in (owner, neighbours, log_odds, credibility))
        for row, other, odds, probability in zip(*columns, strict=True):
            edges[row].append(EdgeReport(ids[other], names[predicted[other]], odds, probability))
        return [
            NodeReport(
                ids[node],
                names[int(before[row].argmax())],
                names[int(after[row].argmax())],
                by_class(after[row]),
                by_class(features[row]),
                {} if donors is None else by_class(donors[row]),
                by_class(edge_evidence[row]),
                tuple(sorted(edges[row], key=lambda edge: edge.credibility)),
                bool(uses_edges[row]),
            )
            for row, node in enumerate(nodes.tolist())
        ]


@dataclass(eq=False, repr=False)
class EvidenceDefence(Defence):
    """Correct predictions at attacked nodes by their features, similar nodes and credible edges.

    Three kinds of evidence are combined. The node's features: a logistic regression and an MLP that learned
    from the predictions for other nodes, as in :class:`.DistilledFeatures`. Similar nodes: the mean
    prediction for the donors of :class:`.CopyingDefence`. The node's own edges, as far as both ends resemble
    the ends of other edges: an attacker connects a node to other classes than its own, often to one of them,
    and removes edges to its own class. Edges count only at nodes whose class is uncertain by the others.

    Parameters
    ----------
    classifier
        The classifier to train, by default ``SelfTraining(APPNP())``; :meth:`from_classifier` takes one that
        is trained.
    n_donors
        Number of similar nodes; 0 disables them, for graphs in which the search takes too long.
    uncertain_share
        Share of the nodes whose edges count: those with the lowest probability of the likeliest class by
        features and donors. With ``retrain``, no other correction depends on the node's own edges. Larger
        values help against attacks that do not know the defence, and harm against those that do.
    retrain
        As in :class:`.CopyingDefence`; recommended where the targets are known.
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
    n_donors: int = 10
    uncertain_share: float = 0.12
    retrain: bool = False
    device: str = "cpu"

    def check_parameters(self, graph: Graph) -> None:
        name, n_others = type(self).__name__, graph.n_nodes - 1
        check_integer(self.n_donors, f"n_donors of {name}", low=0, high=n_others, high_name="n_nodes - 1")
        check_settings(self, uncertain_share=(0.0, 1.0))

    def build_classifier(self) -> Classifier:
        if self.classifier is None:
            return SelfTraining(APPNP(device=self.device))
        return super().build_classifier()

    def prepare_correction(self, state: AttackedState) -> Correction:
        return self.collect_evidence(state)

    def collect_evidence(self, state: AttackedState) -> EvidenceCorrection:
        share = float(self.uncertain_share)
        return EvidenceCorrection(state, self.n_donors, share, self.device, type(self).__name__)

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
        self.log_prior = correction.without_edges(np.array([node]))
        self.weights = weigh_hypotheses(self.log_prior.shape[1])
        self.counts = correction.is_uncertain(self.log_prior)

    def predict(self, log_likelihood: Floats, changes: Floats) -> tuple[Floats, Floats]:
        joint = self.weights + log_likelihood
        highest = joint.max()
        log_evidence = np.log(np.einsum("kh,nkh->nk", np.exp(joint - highest), changes)) + highest
        corrected = add_evidence(self.log_prior, log_evidence, self.counts)
        return corrected, add_evidence(self.log_prior, log_evidence, np.array([True]))

    def losses(self, code: int, log_likelihood: Floats, changes: Floats) -> Floats:
        corrected, always = self.predict(log_likelihood, changes)
        return np.asarray(-corrected[:, code] - TIE_WEIGHT * always[:, code])


@dataclass(eq=False, repr=False)
class AdaptiveEvidenceAttack(TargetedAttack):
    """Attack :class:`EvidenceDefence` by flips of the target's edges, evaluated by the defence itself.

    The attacker trains the defence with ``retrain``. Each step makes the flip that raises the loss of the
    corrected prediction most. The default budget is the target's degree.

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
        ((_, _, correction),) = defence.train_corrections([trial], [targets])
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
