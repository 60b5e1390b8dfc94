"""Nettack (Zügner et al., 2018) with exact scores of all candidates in closed form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from nodecopy._core.validation import as_array, check_integer
from nodecopy.attacks.base import Nodes, TargetedAttack, degree_budget
from nodecopy.attacks.degree_test import DegreeTest
from nodecopy.attacks.edits import Edits
from nodecopy.attacks.linear_logits import LinearLogits
from nodecopy.attacks.surrogate import LINEAR, Knowledge, linear_weights
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.nn.features import feature_matrix


class Nettack(TargetedAttack):
    """Greedy flips that lower the victim's margin (true logit less the best wrong one) the most.

    The margin is that of a linear surrogate, Â²XW, trained once on the clean graph. Flips that would
    leave a node without edges, or show in the degree distribution, are not considered; the distribution
    is compared with that of the graph which the victim's attack began with.

    Parameters
    ----------
    budget
        Flips for each victim; by default its degree in the clean graph, so that an isolated victim is
        left alone.
    direct
        Whether flips are made at the victim itself, or at ``n_influencers`` other nodes: those of its
        neighbours without which its margin would be lowest, and, where it has fewer, the nodes whose
        edge to it would lower the margin most (that edge is not made).
    structure, features
        What is flipped: edges, features, or whichever of both lowers the margin more. Features must be
        binary; one is added only where it is likely to occur beside those that the node has.
    degree_test
        Whether the degree distribution must look untouched.
    surrogate
        The weights W, ``[n_features, n_classes]``, in place of trained ones.
    together
        Victims one after another in one graph, or each alone.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.attacks import Nettack
    >>> digits = datasets.load("digits").subgraph(range(200))
    >>> flips = Nettack(2).attack(digits, [7], rng=0)
    >>> flips.apply(digits).n_edges == digits.n_edges
    False
    """

    def __init__(
        self,
        budget: int | str = "degree",
        *,
        direct: bool = True,
        n_influencers: int = 5,
        structure: bool = True,
        features: bool = False,
        degree_test: bool = True,
        surrogate: ArrayLike | None = None,
        together: bool = True,
    ) -> None:
        self.budget, self.direct, self.n_influencers = budget, direct, n_influencers
        self.structure, self.features, self.degree_test = structure, features, degree_test
        self.surrogate, self.together = surrogate, together

    def _prepared(
        self, graph: Graph, victims: Nodes, train: ArrayLike | None, seed: SeedSequence
    ) -> Callable[[], LinearLogits]:
        if not (self.structure or self.features):
            raise InputError("structure or features of Nettack must be True; got False for both.")
        check_integer(self.n_influencers, "n_influencers of Nettack", low=1)
        knowledge = Knowledge.of(graph, victims, train, "Nettack")
        matrix = feature_matrix(graph, LINEAR).astype(np.float64)
        words = None
        if self.features:
            if not np.isin(matrix.data, (0, 1)).all():
                raise InputError("features of the graph must be binary for Nettack to flip them.")
            words = CoOccurrence(matrix)
        if self.surrogate is None:
            weights = linear_weights(graph, knowledge, seed)
        else:
            weights = as_array(self.surrogate, "surrogate of Nettack").astype(np.float64)
            shape = (matrix.shape[1], knowledge.n_classes)
            if weights.shape != shape:
                raise InputError(f"surrogate of Nettack must have the shape {shape}; got {weights.shape}.")
        return lambda: _State(graph, matrix, weights, knowledge.codes, words)

    def _budget(self, edits: Edits, target: int) -> int:
        return degree_budget(self.budget, edits, target, "budget of Nettack")

    def _strike(self, edits: Edits, number: int, target: int, budget: int, draws: Generator) -> None:
        state = cast(_State, edits)
        if not budget:
            return
        attackers = [target] if self.direct else self._influencers(state, target)
        test = DegreeTest(state.degrees) if self.degree_test else None
        done: set[tuple[int, int]] = set()
        for _ in range(budget):
            margin, edge = self._best_edge(state, target, attackers, done, test)
            feature_margin, feature = self._best_feature(state, target, attackers)
            if min(margin, feature_margin) == np.inf:
                return
            if margin <= feature_margin:
                first, second = edge
                if test is not None:
                    change = -1 if state.has_edge(first, second) else 1
                    test.flip(int(state.degrees[first]), int(state.degrees[second]), change)
                state.flip(first, second)
                done |= {(first, second), (second, first)}
            else:
                state.flip_feature(*feature)

    def _best_edge(
        self,
        state: _State,
        target: int,
        attackers: list[int],
        done: set[tuple[int, int]],
        test: DegreeTest | None,
    ) -> tuple[float, tuple[int, int]]:
        """The lowest margin that one more edge flip can give, and the pair; infinite where there is none."""
        best, pair = np.inf, (-1, -1)
        for m in attackers if self.structure else ():
            allowed = np.ones(len(state.d), bool)
            allowed[[m, target, *(n for one, n in done if one == m)]] = False
            change = np.ones(len(state.d), np.int64)
            change[state.neighbours(m)] = -1
            allowed &= (state.degrees + change > 0) & (state.degrees[m] + change > 0)
            if test is not None:
                allowed &= test.unnoticed(state.degrees[m], state.degrees, change)
            margins = np.where(allowed, state.margins(state.after_flips(target, m), target), np.inf)
            n = int(margins.argmin())
            if margins[n] < best:
                best, pair = float(margins[n]), (m, n)
        return best, pair

    def _best_feature(
        self, state: _State, target: int, attackers: list[int]
    ) -> tuple[float, tuple[int, int]]:
        """The same for features: a flip moves the logits by its entry of Â² times its row of W."""
        best, flip = np.inf, (-1, -1)
        if not self.features:
            return best, flip
        assert state.words is not None
        logits, common = state.logits(target), state.common(target)
        for node in attackers:
            has = state.has_feature(node)
            part = common[node] / np.sqrt(state.d[target] * state.d[node])
            after = logits + part * np.where(has, -1, 1)[:, None] * state.weights
            allowed = has | state.words.likely(node)
            allowed[[feature for changed, feature in state.feature_flips if changed == node]] = False
            margins = np.where(allowed, state.margins(after, target), np.inf)
            feature = int(margins.argmin())
            if margins[feature] < best:
                best, flip = float(margins[feature]), (node, feature)
        return best, flip

    def _influencers(self, state: _State, target: int) -> list[int]:
        margins = state.margins(state.after_flips(target, target), target)
        margins[target] = np.inf
        near = np.zeros(len(margins), bool)
        near[state.neighbours(target)] = True
        order = np.lexsort((margins, ~near))  # neighbours first, then by margin
        return [int(node) for node in order[: self.n_influencers] if node != target]


class _State(LinearLogits):
    """Edits with the surrogate's logits, and whom they concern."""

    def __init__(
        self,
        graph: Graph,
        features: sparse.csr_array,
        weights: NDArray[np.float64],
        codes: NDArray[np.int64],
        words: CoOccurrence | None,
    ) -> None:
        super().__init__(graph, features, weights)
        self.codes, self.words = codes, words

    def margins(self, logits: NDArray[np.float64], target: int) -> NDArray[np.float64]:
        """True logit less the best wrong one, of each row."""
        true = self.codes[target]
        wrong = np.delete(logits, true, axis=1).max(axis=1)
        margins: NDArray[np.float64] = logits[:, true] - wrong
        return margins


class CoOccurrence:
    """Which features may be added to a node without being noticed.

    A random step from one of the node's features (each with probability one over its degree in the graph
    of features that occur together) must be at least half as likely to reach a feature as it could be.
    """

    def __init__(self, features: sparse.csr_array) -> None:
        together: Any = sparse.csr_array(features.T @ features)
        together.setdiag(0)
        together.eliminate_zeros()
        together.data[:] = 1
        self.features, self.together = features, together
        # A feature that occurs with no other reaches none, and has no part.
        self.inverse = 1 / np.maximum(np.diff(together.indptr), 1)

    def likely(self, node: int) -> NDArray[np.bool_]:
        """Features that pass beside those of the clean node."""
        own = self.features.indices[self.features.indptr[node] : self.features.indptr[node + 1]]
        reached = self.inverse[own] @ self.together[own]
        return np.asarray(reached > 0.5 * self.inverse[own].sum())
