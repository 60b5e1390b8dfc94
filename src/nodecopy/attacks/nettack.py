"""Nettack (Zügner et al., 2018) with exact scores in closed form, and the surrogates of all attacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike
from scipy import sparse

from nodecopy._core.arrays import Array, Bools, Floats, Ints
from nodecopy._core.checks import check_choice, check_numbers, check_settings, check_unique
from nodecopy.attacks.base import TargetedAttack, check_labels
from nodecopy.attacks.perturbation import Edits
from nodecopy.errors import InputError
from nodecopy.features.scaling import FEATURE_SCALINGS, FeatureScaling
from nodecopy.graph import UNLABELLED, Graph, class_codes, training_classes
from nodecopy.nn.networks import KIPF, Networks, SparseStack, TrainingConfig, normalise_adjacency
from nodecopy.nn.training import LabelledNodes, Targets, check_device, train

MIN_DEGREE = 2  # smallest degree that the power law describes
MAX_RATIO = 0.004  # largest likelihood ratio that is not noticed: the chi-square quantile of probability 0.05
PURPOSE = "for the attacker's surrogate"  # what features are scaled for, in messages
LINEAR = replace(KIPF, propagation="none", activation="none", features="none", dropout=0.0)  # takes Â²X


class NettackEdits(Edits):
    """Edits that update the sums in the logits of a linear network."""

    def __init__(
        self,
        graph: Graph,
        features: sparse.csr_array,
        weights: Floats,
        codes: Ints,
        co_occurrence: FeatureCoOccurrence | None = None,
    ) -> None:
        super().__init__(graph)
        self.features, self.weights = features, weights
        self.codes, self.co_occurrence = codes, co_occurrence
        self.Y = np.asarray(features @ weights)
        self.d = self.degrees + 1.0
        scaled = self.Y / np.sqrt(self.d)[:, None]
        self.S = graph.adjacency.astype(np.float64) @ scaled + scaled

    def flip(self, first: int, second: int) -> None:
        # A node contributes to its own row and its neighbours' rows of S: subtract its contribution,
        # flip, and add it again with its new scale. This also adds or removes the edge itself.
        for node in (first, second):
            self._add_contribution(node, -1)
        super().flip(first, second)
        self.d[[first, second]] = self.degrees[[first, second]] + 1.0
        for node in (first, second):
            self._add_contribution(node, 1)

    def flip_feature(self, node: int, feature: int) -> None:
        sign = -1 if self.has_feature(node)[feature] else 1
        super().flip_feature(node, feature)
        self._add_contribution(node, -1)
        self.Y[node] += sign * self.weights[feature]
        self._add_contribution(node, 1)

    def has_feature(self, node: int) -> Bools:
        has = np.zeros(self.features.shape[1], bool)
        own = slice(self.features.indptr[node], self.features.indptr[node + 1])
        has[self.features.indices[own][self.features.data[own] != 0]] = True
        for changed, feature in self.feature_flips:
            if changed == node:
                has[feature] ^= True
        return has

    def logits(self, u: int) -> Floats:
        inside = self._closed_neighbourhood(u)
        total = (self.S[inside] / self.d[inside, None]).sum(axis=0)
        return np.asarray(total / np.sqrt(self.d[u]))

    def after_flips(self, u: int, m: int) -> Floats:
        """Return the logits at ``u`` after a flip of (m, n), for every n, ``[n_nodes, n_classes]``.

        Row m has no meaning; where m is not u, row u has none either.
        """
        d, Y, S = self.d, self.Y, self.S
        scale = 1 / np.sqrt(d)
        inside = self._closed_neighbourhood(u)
        member = np.zeros(len(d))  # of u's closed neighbourhood
        member[inside] = 1
        has = np.zeros(len(d))  # the edge (m, n) before the flip
        has[self.neighbours(m)] = 1
        change = 1 - 2 * has
        d_m, d_n = d[m] + change, d + change
        scale_m, scale_n = 1 / np.sqrt(d_m), 1 / np.sqrt(d_n)
        common = self.common(u)
        # Rows of S to which m or n contributes, except the rows of m and n, which follow below.
        others_m = (scale_m - scale[m]) * (common[m] - member[m] / d[m] - has * member / d)
        others_n = (scale_n - scale) * (common - member / d - has * member[m] / d[m])
        # m and n themselves; a flip at u itself decides whether n is a neighbour of u.
        member_after = 1 - has if m == u else member
        keep_n = member_after / d_n
        keep_m = member[m] / d_m
        edge_n = (1 - has) * scale_n - has * scale
        edge_m = (1 - has) * scale_m - has * scale[m]
        of_Y_m = others_m + keep_m * (scale_m - scale[m]) + keep_n * edge_m
        of_Y_n = others_n + keep_n * (scale_n - scale) + keep_m * edge_n
        total = (S[inside] / d[inside, None]).sum(axis=0) + np.outer(of_Y_m, Y[m])
        total += np.outer(keep_m - member[m] / d[m], S[m])
        total += of_Y_n[:, None] * Y + (keep_n - member / d)[:, None] * S
        u_scale = scale_m if m == u else scale[u]
        return np.asarray(total * np.broadcast_to(u_scale, len(d))[:, None])

    def common(self, u: int) -> Floats:
        """Return for every x the sum of 1 / d_k over nodes k at most one step from both u and x."""
        inside = self._closed_neighbourhood(u)
        reached = [self._closed_neighbourhood(k) for k in inside.tolist()]
        weights = np.repeat(1 / self.d[inside], [len(nodes) for nodes in reached])
        return np.bincount(np.concatenate(reached), weights, len(self.d)).astype(np.float64, copy=False)

    def margins(self, logits: Floats, target: int) -> Floats:
        true = self.codes[target]
        return np.asarray(logits[:, true] - np.delete(logits, true, axis=1).max(axis=1))

    def _add_contribution(self, node: int, sign: int) -> None:
        self.S[self._closed_neighbourhood(node)] += sign * self.Y[node] / np.sqrt(self.d[node])

    def _closed_neighbourhood(self, node: int) -> Ints:
        return np.append(self.neighbours(node), node)


class DegreeTest:
    """Likelihood-ratio test of degrees after a flip against those before the attack on a target."""

    def __init__(self, degrees: Array) -> None:
        counted = degrees[degrees >= MIN_DEGREE]
        self._start = len(counted), float(np.log(counted).sum())
        self._now = self._start

    def ratio(self, first: Any, second: Any, change: Any) -> Floats:
        """Return the likelihood ratio after flips, given both degrees before; ``change`` is 1 or -1."""
        n, log_sum = self._after(first, second, change)
        n_start, start = self._start
        separate = _log_likelihood(n, log_sum) + _log_likelihood(n_start, start)
        return np.asarray(2 * (separate - _log_likelihood(n + n_start, log_sum + start)))

    def record(self, first: int, second: int, change: int) -> None:
        n, log_sum = self._after(np.array([first]), np.array([second]), np.array([change]))
        self._now = int(n[0]), float(log_sum[0])

    def _after(self, first: Any, second: Any, change: Any) -> tuple[Any, Any]:
        n: Any
        log_sum: Any
        n, log_sum = self._now
        for degree in (first, second):
            after, before = (np.where(d >= MIN_DEGREE, d, 1) for d in (degree + change, degree))
            n = n + (after > 1).astype(np.int64) - (before > 1)
            log_sum = log_sum + np.log(after) - np.log(before)
        return n, log_sum


def _log_likelihood(n: Any, log_sum: Any) -> Any:
    """Return the log-likelihood under the best power law."""
    n = np.asarray(n, np.float64)
    # Without any counted degree the likelihood is one.
    alpha = 1 + np.divide(n, log_sum - n * np.log(MIN_DEGREE - 0.5), out=np.ones_like(n), where=n > 0)
    return n * np.log(alpha) + n * alpha * np.log(MIN_DEGREE) - (alpha + 1) * log_sum


class FeatureCoOccurrence:
    """Nettack's test of features that may be added to a node without being noticed.

    A random step from a feature of the node to one that occurs together with it must have more than half of
    the largest possible probability.
    """

    def __init__(self, features: sparse.csr_array) -> None:
        occur_together: Any = sparse.csr_array(features.T @ features)
        occur_together.setdiag(0)
        occur_together.eliminate_zeros()
        occur_together.data[:] = 1
        self.features, self.occur_together = features, occur_together
        # A feature that occurs with no other reaches none and contributes nothing.
        self.inverse = 1 / np.maximum(np.diff(occur_together.indptr), 1)

    def likely(self, node: int) -> Bools:
        """Return a mask of the features that pass, given those of the node in the clean graph."""
        own = self.features.indices[self.features.indptr[node] : self.features.indptr[node + 1]]
        reached = self.inverse[own] @ self.occur_together[own]
        return np.asarray(reached > 0.5 * self.inverse[own].sum())


@dataclass(frozen=True, eq=False)
class SurrogateLabels:
    """Class numbers of all nodes (-1 without a label), class names, and training nodes."""

    codes: Ints
    names: tuple[str, ...]
    train: Ints

    @property
    def n_classes(self) -> int:
        return len(self.names)

    @classmethod
    def from_graph(cls, graph: Graph, targets: Ints, train: ArrayLike | None, attack: str) -> SurrogateLabels:
        labels = check_labels(graph, targets, attack)
        if graph.features is None or not graph.features.shape[1]:
            raise InputError("graph", f"must have features for {attack}; this one has none.")
        n_labels = len(class_codes(labels)[0])
        if n_labels < 2:
            message = f"must have labels of at least two classes for {attack}; got {n_labels}."
            raise InputError("graph", message)
        labelled = np.flatnonzero(labels != UNLABELLED)
        nodes = np.setdiff1d(labelled, targets) if train is None else graph.positions(train, "train")
        check_unique(nodes, "train")
        unlabelled = nodes[labels[nodes] == UNLABELLED]
        if len(unlabelled):
            node_id = graph.node_ids[unlabelled].tolist()[0]
            raise InputError("train", f"must hold labelled nodes; got the node with id {node_id!r}.")
        classes, codes = training_classes(graph, labelled if train is None else nodes)
        names = classes if graph.label_names is None else np.array(graph.label_names)[classes]
        if len(left_out := targets[codes[targets] == UNLABELLED]):
            node_id = graph.node_ids[left_out].tolist()[0]
            got = f"the node with id {node_id!r}. Add a node of its class to train."
            raise InputError("targets", f"must be of classes that some training node has; got {got}")
        return cls(codes, tuple(map(str, names)), nodes)


def linear_weights(
    graph: Graph, features: sparse.csr_array, labels: SurrogateLabels, seed: SeedSequence
) -> Floats:
    """Train the surrogate Â²XW, of two linear layers, and return W."""
    matrix = normalise_adjacency(graph.adjacency)
    inputs = sparse.csr_array(matrix[labels.train] @ (matrix @ features))  # the rows of Â²X that are needed
    rows = np.arange(len(labels.train))
    first, second = train_weights(LINEAR, inputs, None, rows, labels, seed)
    return np.asarray(first @ second)


def surrogate_features(graph: Graph, kind: str, counts: str, owner: str) -> sparse.csr_array:
    """Return the features in single precision; ``"auto"`` scales word counts as ``counts``."""
    check_choice(kind, f"scale of {owner}", FEATURE_SCALINGS)
    scaling = FeatureScaling.fit(
        graph.features, kind, encoder=graph.feature_encoder, counts=counts, name="scale", purpose=PURPOSE
    )
    return scaling.apply(graph.features)


def train_weights(
    config: TrainingConfig,
    features: sparse.csr_array,
    matrix: sparse.csr_array | None,
    rows: Ints,
    labels: SurrogateLabels,
    seed: SeedSequence,
    device: str = "cpu",
) -> list[Floats]:
    """Train a surrogate on the training nodes, which are ``rows``; return its layers."""
    missing = np.setdiff1d(np.arange(labels.n_classes), labels.codes[labels.train])
    if len(missing):
        name = labels.names[missing[0]]
        raise InputError("train", f"must hold at least one node of every class; got none of class {name}.")
    torch_device = check_device(device)
    networks = Networks.initialise(config, SparseStack([features], torch_device), labels.n_classes, [seed])
    targets = Targets([LabelledNodes(rows, labels.codes[labels.train])], torch_device)
    train(networks, [] if matrix is None else [matrix], targets)
    return [weight[0].detach().cpu().numpy().astype(np.float64) for weight in networks.weights]


@dataclass(kw_only=True, eq=False, repr=False)
class Nettack(TargetedAttack):
    """Flip greedily what lowers the target's margin (true logit minus the best wrong one) the most.

    The margin is that of a linear surrogate, Â²XW, trained once on the clean graph. Flips that would leave a
    node without edges, or change the degree distribution noticeably since the start of the target's attack,
    are not considered. The default budget is the target's degree.

    Parameters
    ----------
    direct
        Whether flips are made at the target itself, or at ``n_influencers`` other nodes: those of its
        neighbours without which its margin would be lowest, and, where it has fewer, the nodes whose
        edge to it would lower the margin most (that edge is not added).
    n_influencers
        Number of nodes that an indirect attack flips at.
    structure, features
        Whether to flip edges, features, or whichever of both lowers the margin more. Features must be
        binary; one is added only where it is likely to occur together with those of the node.
    degree_test
        Whether flips must pass the test of the degree distribution.
    surrogate
        The weights W, ``[n_features, n_classes]``. By default the attacker trains them.
    scale
        How the surrogate scales features. ``"auto"`` (default): word counts stay as they are, others are
        standardised; with ``features`` or a ``surrogate`` it is ``"none"``. Also ``"standardise"``,
        ``"rows"`` and ``"binary"``.
    together
        As in :class:`.TargetedAttack`.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.attacks import Nettack
    >>> digits = datasets.load("digits").subgraph(range(200))
    >>> Nettack().attack(digits, [7], budget=2, rng=0).spent.tolist()
    [2]
    """

    direct: bool = True
    n_influencers: int = 5
    structure: bool = True
    features: bool = False
    degree_test: bool = True
    surrogate: ArrayLike | None = None
    scale: str = "auto"
    together: bool = True

    def prepare(
        self, graph: Graph, targets: Ints, train: ArrayLike | None, seed: SeedSequence
    ) -> Callable[[], NettackEdits]:
        if not (self.structure or self.features):
            raise InputError("structure or features of Nettack must be True; got False for both.")
        check_settings(self, n_influencers=1)
        labels = SurrogateLabels.from_graph(graph, targets, train, "Nettack")
        # Features that are flipped, and those of a surrogate that is given, are as in the graph.
        is_trained = self.surrogate is None and not self.features
        scale = self.scale if is_trained or self.scale != "auto" else "none"
        inputs = surrogate_features(graph, scale, "none", "Nettack")
        matrix = inputs.astype(np.float64)
        co_occurrence = None
        if self.features:
            if not np.isin(matrix.data, (0, 1)).all():
                raise InputError("features of the graph must be binary for Nettack to flip them.")
            co_occurrence = FeatureCoOccurrence(matrix)
        if self.surrogate is None:
            weights = linear_weights(graph, inputs, labels, seed)
        else:
            name, shape = "surrogate of Nettack", (matrix.shape[1], labels.n_classes)
            if isinstance(self.surrogate, torch.nn.Module):
                raise InputError(name, "must be a matrix of weights; FGA(surrogate=module) attacks a module.")
            weights = check_numbers(self.surrogate, name).astype(np.float64)
            if weights.shape != shape:
                raise InputError(name, f"must have the shape {shape}; got {weights.shape}.")
        return lambda: NettackEdits(graph, matrix, weights, labels.codes, co_occurrence)

    def attack_target(self, edits: Edits, target: int, budget: int, rng: Generator) -> None:
        assert isinstance(edits, NettackEdits)
        if not budget:
            return
        attackers = [target] if self.direct else self._influencers(edits, target)
        test = DegreeTest(edits.degrees) if self.degree_test else None
        flipped: set[tuple[int, int]] = set()
        for _ in range(budget):
            margin, edge = self._best_edge(edits, target, attackers, flipped, test)
            feature_margin, feature = self._best_feature(edits, target, attackers)
            if min(margin, feature_margin) == np.inf:
                return
            if margin <= feature_margin:
                first, second = edge
                if test is not None:
                    change = -1 if edits.has_edge(first, second) else 1
                    test.record(int(edits.degrees[first]), int(edits.degrees[second]), change)
                edits.flip(first, second)
                flipped |= {(first, second), (second, first)}
            else:
                edits.flip_feature(*feature)

    def _best_edge(
        self,
        edits: NettackEdits,
        target: int,
        attackers: list[int],
        flipped: set[tuple[int, int]],
        test: DegreeTest | None,
    ) -> tuple[float, tuple[int, int]]:
        """Return the lowest margin after one more flip, or infinity, and its pair."""
        best, pair = np.inf, (-1, -1)
        for m in attackers if self.structure else ():
            allowed = np.ones(len(edits.d), bool)
            allowed[[m, target, *(other for node, other in flipped if node == m)]] = False
            change = np.ones(len(edits.d), np.int64)
            change[edits.neighbours(m)] = -1
            allowed &= (edits.degrees + change > 0) & (edits.degrees[m] + change > 0)
            if test is not None:
                allowed &= test.ratio(edits.degrees[m], edits.degrees, change) < MAX_RATIO
            margins = np.where(allowed, edits.margins(edits.after_flips(target, m), target), np.inf)
            n = int(margins.argmin())
            if margins[n] < best:
                best, pair = float(margins[n]), (m, n)
        return best, pair

    def _best_feature(
        self, edits: NettackEdits, target: int, attackers: list[int]
    ) -> tuple[float, tuple[int, int]]:
        """Return the same for features: a flip changes the logits by an entry of Â² times a row of W."""
        best, flip = np.inf, (-1, -1)
        if edits.co_occurrence is None:
            return best, flip
        logits, common = edits.logits(target), edits.common(target)
        for node in attackers:
            has = edits.has_feature(node)
            part = common[node] / np.sqrt(edits.d[target] * edits.d[node])
            after = logits + part * np.where(has, -1, 1)[:, None] * edits.weights
            allowed = has | edits.co_occurrence.likely(node)
            allowed[[feature for changed, feature in edits.feature_flips if changed == node]] = False
            margins = np.where(allowed, edits.margins(after, target), np.inf)
            feature = int(margins.argmin())
            if margins[feature] < best:
                best, flip = float(margins[feature]), (node, feature)
        return best, flip

    def _influencers(self, edits: NettackEdits, target: int) -> list[int]:
        margins = edits.margins(edits.after_flips(target, target), target)
        margins[target] = np.inf
        near = np.zeros(len(margins), bool)
        near[edits.neighbours(target)] = True
        order = np.lexsort((margins, ~near))  # neighbours first, then by margin
        return [int(node) for node in order[: self.n_influencers] if node != target]
