"""Nettack (Zügner et al., 2018) with exact scores of all candidates in closed form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from nodecopy._core.validation import check_integer, check_numbers
from nodecopy.attacks.base import Nodes, TargetedAttack
from nodecopy.attacks.degree_test import DegreeTest
from nodecopy.attacks.edits import Edits
from nodecopy.attacks.linear_logits import LinearLogits
from nodecopy.attacks.surrogate import SurrogateLabels, linear_weights, surrogate_features
from nodecopy.errors import InputError
from nodecopy.graph import Graph


@dataclass(kw_only=True, eq=False, repr=False)
class Nettack(TargetedAttack):
    """Flip greedily what lowers the target's margin (true logit minus the best wrong one) the most.

    The margin is that of a linear surrogate, Â²XW, trained once on the clean graph. Flips that would
    leave a node without edges, or change the degree distribution noticeably, are not considered; the
    distribution is compared with that of the graph at the start of the target's attack. The default
    budget is the target's degree, so that an isolated target is not attacked.

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
        How the surrogate scales features. ``"auto"`` (default): word counts are used as they are, anything
        else is standardised, and the choice is logged; with ``features`` or a given ``surrogate`` it is
        ``"none"``. Also ``"standardise"``, ``"rows"`` and ``"binary"``.
    together
        Whether targets are attacked one after another in one graph, or each alone.

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
        self, graph: Graph, targets: Nodes, train: ArrayLike | None, seed: SeedSequence
    ) -> Callable[[], NettackEdits]:
        if not (self.structure or self.features):
            raise InputError("structure or features of Nettack must be True; got False for both.")
        check_integer(self.n_influencers, "n_influencers of Nettack", low=1)
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
            if isinstance(self.surrogate, torch.nn.Module):
                raise InputError(
                    "surrogate of Nettack must be a matrix of weights; got a torch.nn.Module. "
                    "FGA(surrogate=module) attacks a module."
                )
            weights = check_numbers(self.surrogate, "surrogate of Nettack").astype(np.float64)
            shape = (matrix.shape[1], labels.n_classes)
            if weights.shape != shape:
                raise InputError(f"surrogate of Nettack must have the shape {shape}; got {weights.shape}.")
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
        """Return the lowest margin after one more edge flip and its pair; infinite where there is none."""
        best, pair = np.inf, (-1, -1)
        for m in attackers if self.structure else ():
            allowed = np.ones(len(edits.d), bool)
            allowed[[m, target, *(other for node, other in flipped if node == m)]] = False
            change = np.ones(len(edits.d), np.int64)
            change[edits.neighbours(m)] = -1
            allowed &= (edits.degrees + change > 0) & (edits.degrees[m] + change > 0)
            if test is not None:
                allowed &= test.passes(edits.degrees[m], edits.degrees, change)
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
        if not self.features:
            return best, flip
        assert edits.co_occurrence is not None
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


class NettackEdits(LinearLogits):
    """Edits with the surrogate's logits, the classes of the nodes and the co-occurrence of features."""

    def __init__(
        self,
        graph: Graph,
        features: sparse.csr_array,
        weights: NDArray[np.float64],
        codes: NDArray[np.int64],
        co_occurrence: FeatureCoOccurrence | None,
    ) -> None:
        super().__init__(graph, features, weights)
        self.codes, self.co_occurrence = codes, co_occurrence

    def margins(self, logits: NDArray[np.float64], target: int) -> NDArray[np.float64]:
        """Return the true logit minus the best wrong one, for each row."""
        true = self.codes[target]
        wrong = np.delete(logits, true, axis=1).max(axis=1)
        margins: NDArray[np.float64] = logits[:, true] - wrong
        return margins


class FeatureCoOccurrence:
    """Nettack's test of features that may be added to a node without being noticed.

    A feature passes if a random step from one of the node's features, in the graph of features that
    occur together, reaches it with more than half of the largest possible probability.
    """

    def __init__(self, features: sparse.csr_array) -> None:
        occur_together: Any = sparse.csr_array(features.T @ features)
        occur_together.setdiag(0)
        occur_together.eliminate_zeros()
        occur_together.data[:] = 1
        self.features, self.occur_together = features, occur_together
        # A feature that occurs with no other reaches none and contributes nothing.
        self.inverse = 1 / np.maximum(np.diff(occur_together.indptr), 1)

    def likely(self, node: int) -> NDArray[np.bool_]:
        """Return a mask of the features that pass, given the features of the node in the clean graph."""
        own = self.features.indices[self.features.indptr[node] : self.features.indptr[node + 1]]
        reached = self.inverse[own] @ self.occur_together[own]
        return np.asarray(reached > 0.5 * self.inverse[own].sum())
