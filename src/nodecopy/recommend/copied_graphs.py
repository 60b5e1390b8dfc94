"""Node copying on top of any network trained by pairs: the paper's Algorithms 3 and 4.

Users copy users: a donor is drawn by the Jaccard index of the users' items (``eq:zeta_rec``).
:class:`EnsembleBPR` evaluates trained weights on copied graphs. :class:`SampledGraphBPR` also trains on
other negatives: pairs that are likely in a copied graph leave the pool.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import sparse, special

from nodecopy._core.csr import IntArray
from nodecopy._core.random import child
from nodecopy._core.validation import check_choice, check_integer, check_real
from nodecopy.copying import Jaccard, NodeCopying
from nodecopy.errors import InputError
from nodecopy.interactions import Interactions
from nodecopy.metrics import ranking
from nodecopy.recommend.base import Recommender
from nodecopy.recommend.bpr import BPRRecommender
from nodecopy.recommend.negatives import with_pools

PAIRS_AT_ONCE = 2**22
Stacks = tuple[NDArray[Any], NDArray[Any]]
"""Embeddings of users and of items, [graphs, nodes, size] each."""


@dataclass(eq=False)
class EnsembleBPR(Recommender):
    """Algorithm 3: train on the observed graph, then evaluate on graphs whose users were copied.

    Parameters
    ----------
    base
        A network trained by pairs, such as :class:`.LightGCN`. One that is fitted to the same
        interactions already is used as it is, without training; either way it stays unchanged.
    law
        Donor law of users. The paper's is ``Jaccard()``, a user among the own donors; see there for
        leaving the user out, the exponent and the number of donors.
    n_graphs
        ``None``: one evaluation on the exact expected graph P A. A number: as in the paper, the average
        over so many sampled graphs.
    average
        What is averaged over sampled graphs. ``"scores"``: the scores. ``"probabilities"``: the paper's
        pairwise probabilities sigma(s_i - s_j). These need not agree on an order, so an item's score is
        their mean over all j: the share of items it is expected to beat. The time of
        that grows with the square of the number of items.
    keep
        Probability that a user keeps the own items, see :class:`.NodeCopying`; 0 in the paper.

    Notes
    -----
    Scores are not linear in the graph, so the expected graph is not the limit of many samples but an
    approximation of it that is free of sampling noise and as cheap as one graph.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.recommend import EnsembleBPR, LightGCN
    >>> library = datasets.load("library")
    >>> model = EnsembleBPR(LightGCN(size=8, epochs=2)).fit(library, rng=0)
    >>> items, scores = model.recommend(["reader 001"], 3)
    >>> items.shape
    (1, 3)
    """

    base: BPRRecommender
    law: Any = field(default_factory=Jaccard)
    n_graphs: int | None = None
    average: str = "scores"
    keep: float = 0.0

    def _check(self) -> None:
        name = type(self).__name__
        if not isinstance(self.base, BPRRecommender):
            raise InputError(f"base of {name} must be a network such as LightGCN(); got {self.base!r}.")
        if self.n_graphs is not None:
            check_integer(self.n_graphs, f"n_graphs of {name}", low=1)
        check_choice(self.average, f"average of {name}", ["scores", "probabilities"])
        check_real(self.keep, f"keep of {name}", low=0.0, high=1.0)
        self.base._check()

    def _fit(self, interactions: Interactions, validation: Interactions | None, seed: SeedSequence) -> None:
        is_ready = getattr(self.base, "interactions_", None) == interactions
        trained = self.base if is_ready else _trained(self.base, interactions, validation, child(seed, 0))
        self._copied = _embedded(trained, self._graphs(interactions, child(seed, 1)))

    def _graphs(self, interactions: Interactions, seed: SeedSequence) -> Iterator[sparse.csr_array]:
        """The matrices to evaluate on: the expected one, or samples."""
        model = NodeCopying(self.law, self.keep).fit(interactions)
        if self.n_graphs is None:
            yield model.expected_adjacency().tocsr()
        else:
            yield from (sample.matrix for sample in model.sample_many(self.n_graphs, rng=seed))

    def _stacks(self) -> Stacks:
        """The embeddings that scores are made of."""
        return self._copied

    def _score(self, users: IntArray) -> NDArray[Any]:
        of_users, of_items = self._stacks()
        if self.average == "scores":
            graphs = zip(of_users, of_items, strict=True)
            return np.asarray(sum(u[users] @ i.T for u, i in graphs) / len(of_users))
        return np.array([self._beaten(user) for user in users.tolist()]).reshape(-1, of_items.shape[1])

    def _beaten(self, user: int) -> NDArray[Any]:
        """For each item the mean over graphs and over all items j of sigma(s_i - s_j)."""
        of_users, of_items = self._stacks()
        scores = np.einsum("gd,gid->gi", of_users[:, user], of_items)
        n_items = scores.shape[1]
        step = max(1, PAIRS_AT_ONCE // scores.size)
        parts = [
            special.expit(scores[:, start : start + step, None] - scores[:, None, :]).mean(axis=(0, 2))
            for start in range(0, n_items, step)
        ]
        return np.concatenate(parts)

    def _state(self) -> dict[str, Any]:
        users, items = self._copied
        return {"users": users, "items": items}

    def _restore(self, state: dict[str, Any]) -> None:
        self._copied = state["users"], state["items"]


@dataclass(eq=False)
class SampledGraphBPR(EnsembleBPR):
    """Algorithm 4: pairs whose expectation in the copied graph exceeds a threshold are no negatives.

    Training goes on the observed graph with the smaller pool of negatives, evaluation on copied graphs.
    A user whose pool would be empty keeps all unobserved items.

    Parameters
    ----------
    base, law, n_graphs, average, keep
        As in :class:`EnsembleBPR`, except that the base is always trained. With ``n_graphs`` the
        expectation too is a mean over samples, as in the paper.
    threshold
        The paper's b, from 0 to 1. ``None``: the best of ``thresholds`` by Recall@20 on validation
        interactions, the first of equals; a network is trained for each.
    thresholds
        What to choose from.
    test_graph
        ``"copied"``, or ``"observed"`` for the ablation that shows what the negatives alone do. What
        copied graphs alone do shows :class:`EnsembleBPR`. Embeddings on both are kept, so a fitted
        recommender may be given the other one.

    Attributes
    ----------
    threshold_
        The threshold in force.
    n_epochs_
        Epochs after which the weights were as they are kept.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.recommend import LightGCN, SampledGraphBPR
    >>> library = datasets.load("library")
    >>> model = SampledGraphBPR(LightGCN(size=8, epochs=2), threshold=0.3).fit(library, rng=0)
    >>> items, scores = model.recommend(["reader 001"], 3)
    >>> items.shape
    (1, 3)
    """

    threshold: float | None = None
    thresholds: Sequence[float] = (0.1, 0.2, 0.3, 0.5)
    test_graph: str = "copied"

    threshold_ = 0.0
    n_epochs_ = 0

    def _check(self) -> None:
        super()._check()
        for value in self._offered():
            check_real(value, "threshold of SampledGraphBPR", low=0.0, high=1.0)
        if not self._offered():
            raise InputError("thresholds of SampledGraphBPR must hold at least one number; got none.")
        check_choice(self.test_graph, "test_graph of SampledGraphBPR", ["copied", "observed"])

    def _offered(self) -> list[float]:
        return list(self.thresholds) if self.threshold is None else [self.threshold]

    def _fit(self, interactions: Interactions, validation: Interactions | None, seed: SeedSequence) -> None:
        offered = self._offered()
        if len(offered) > 1 and validation is None:
            raise InputError(
                "threshold of SampledGraphBPR must be given if there is no validation to choose by."
            )
        graphs = list(self._graphs(interactions, child(seed, 1)))
        expected = sparse.csr_array(sum(graphs[1:], start=graphs[0]) / len(graphs))
        best = -1.0
        for threshold in offered:
            forbidden = with_pools(interactions.matrix, expected > threshold)
            trained = _trained(self.base, interactions, validation, child(seed, 0), forbidden)
            self._copied = _embedded(trained, iter(graphs))
            self._observed = _embedded(trained, iter([interactions.matrix]))
            recall = self._recall(interactions, validation) if len(offered) > 1 else 1.0
            if recall > best:
                best, kept = recall, self._state() | {"threshold": threshold, "n_epochs": trained.n_epochs_}
        self._restore(kept)

    def _stacks(self) -> Stacks:
        return self._observed if self.test_graph == "observed" else self._copied

    def _recall(self, interactions: Interactions, validation: Interactions | None) -> float:
        assert validation is not None
        k = min(20, interactions.n_items)
        found = ranking.per_user(self._score, interactions, validation, k=[k])
        return float(found[f"recall@{k}"].mean())

    def _state(self) -> dict[str, Any]:
        users, items = self._observed
        learnt = {"threshold": self.threshold_, "n_epochs": self.n_epochs_}
        return super()._state() | {"observed users": users, "observed items": items} | learnt

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._observed = state["observed users"], state["observed items"]
        self.threshold_, self.n_epochs_ = float(state["threshold"]), int(state["n_epochs"])


def _embedded(trained: BPRRecommender, matrices: Iterator[sparse.csr_array]) -> Stacks:
    found = [trained.embed(matrix) for matrix in matrices]
    return np.stack([users for users, _ in found]), np.stack([items for _, items in found])


def _trained(
    base: BPRRecommender,
    interactions: Interactions,
    validation: Interactions | None,
    seed: SeedSequence,
    forbidden: sparse.csr_array | None = None,
) -> BPRRecommender:
    """A trained copy of a network, the same as by its own ``fit`` where nothing else is forbidden."""
    model = copy.copy(base)
    model._train(interactions, validation, seed, interactions.matrix if forbidden is None else forbidden)
    model.interactions_ = interactions
    return model
