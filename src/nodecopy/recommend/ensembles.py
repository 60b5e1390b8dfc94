"""The paper's Algorithms 3 and 4: networks trained by pairs, evaluated on graphs whose users are copied.

Users copy users: a donor is drawn by the Jaccard index of the users' items. In Algorithm 4, pairs that are
likely in a copied graph are not drawn as negatives either.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import sparse, special

from nodecopy._core.arrays import IntArray
from nodecopy._core.checks import check_real, check_settings, show
from nodecopy._core.random import child
from nodecopy.copying import Jaccard, NodeCopying
from nodecopy.errors import InputError
from nodecopy.interactions import Interactions
from nodecopy.recommend.base import Recommender, cosines, fit_copy
from nodecopy.recommend.bpr import BPRRecommender, forbid_likely_pairs, validation_recall

MAX_BLOCK_PAIRS = 2**22
EmbeddingStacks = tuple[NDArray[Any], NDArray[Any]]
"""Embeddings of users and of items, [graphs, nodes, factors] each."""


class EnsembleSeeds(IntEnum):
    """Children of the seed of :class:`EnsembleBPR` and its subclass."""

    NETWORK = 0
    GRAPHS = 1


@dataclass(eq=False)
class EnsembleBPR(Recommender):
    """Train on the observed graph, then average the scores over graphs whose users are copied.

    Parameters
    ----------
    base
        A network trained by pairs, such as :class:`.LightGCN`. One that is already fitted to the same
        interactions is not trained again. It is not changed.
    donors
        Donor rule of users. The default ``Jaccard()`` is the paper's, in which a user may be its own donor;
        its parameters exclude the user, sharpen the donor rule and limit the number of donors.
    n_graphs
        Number of sampled graphs to average over, as in the paper. With ``None``, the default, the network is
        evaluated once, on the exact expected graph P A.
    average
        How to average over sampled graphs. ``"scores"`` (default) averages the scores.
        ``"probabilities"`` averages the paper's pairwise probabilities sigma(s_i - s_j). These need not
        agree on an order, so the score of item i is their mean over all j, the expected share of items that
        it precedes; the time grows with the square of the number of items.
    keep
        Probability that a user keeps its own items, see :class:`.NodeCopying`; 0 by default, as in the paper.

    Notes
    -----
    Scores are not linear in the graph. The expected graph is therefore not the limit of many samples but an
    approximation of it that has no sampling noise and costs as much as one graph.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.recommend import EnsembleBPR, LightGCN
    >>> library = datasets.load("library")
    >>> model = EnsembleBPR(LightGCN(n_factors=8, n_epochs=2)).fit(library, rng=0)
    >>> model.recommend(["reader 001"], 3)[0].shape
    (1, 3)
    """

    base: BPRRecommender
    donors: Any = field(default_factory=Jaccard)
    n_graphs: int | None = None
    average: str = "scores"
    keep: float = 0.0

    def check_params(self) -> None:
        name = type(self).__name__
        if not isinstance(self.base, BPRRecommender):
            raise InputError(
                f"base of {name}", f"must be a network such as LightGCN(); got {show(self.base)}."
            )
        if self.n_graphs is not None:
            check_settings(self, n_graphs=1)
        check_settings(self, average=["scores", "probabilities"], keep=(0.0, 1.0))
        self.base.check_params()

    def fit_interactions(
        self, interactions: Interactions, validation: Interactions | None, seed: SeedSequence
    ) -> None:
        """Train the network, if it is not fitted, and embed the nodes of the copied graphs."""
        network = fit_copy(self.base, interactions, validation, child(seed, EnsembleSeeds.NETWORK))
        graphs = self.copied_matrices(interactions, child(seed, EnsembleSeeds.GRAPHS))
        self.copied_embeddings_ = embed_graphs(network, graphs)

    def copied_matrices(self, interactions: Interactions, seed: SeedSequence) -> Iterator[sparse.csr_array]:
        """Yield the matrices to evaluate the network on: the expected one, or samples."""
        model = NodeCopying(self.donors, self.keep).fit(interactions)
        if self.n_graphs is None:
            yield model.expected_adjacency().tocsr()
        else:
            yield from (sample.matrix for sample in model.sample_many(self.n_graphs, rng=seed))

    def embedding_stacks(self) -> EmbeddingStacks:
        """Return the embeddings that scores are computed from."""
        return self.copied_embeddings_

    def similarity_rows(self, rows: sparse.csr_array) -> NDArray[Any]:
        """Return the cosine of the item embeddings, concatenated over all graphs."""
        return cosines(np.concatenate(self.embedding_stacks()[1], axis=1), rows.indices)

    def score_positions(self, positions: IntArray) -> NDArray[Any]:
        users, items = self.embedding_stacks()
        if self.average == "scores":
            graphs = zip(users, items, strict=True)
            return np.asarray(sum(u[positions] @ i.T for u, i in graphs) / len(users))
        scores = [_mean_win_probabilities(users[:, user], items) for user in positions.tolist()]
        return np.array(scores).reshape(-1, items.shape[1])


def _mean_win_probabilities(user: NDArray[Any], items: NDArray[Any]) -> NDArray[Any]:
    """Return for each item i the mean over graphs and over all items j of sigma(s_i - s_j)."""
    scores = np.einsum("gd,gid->gi", user, items)
    step = max(1, MAX_BLOCK_PAIRS // scores.size)
    parts = [
        special.expit(scores[:, start : start + step, None] - scores[:, None, :]).mean(axis=(0, 2))
        for start in range(0, scores.shape[1], step)
    ]
    return np.concatenate(parts)


def embed_graphs(network: BPRRecommender, matrices: Iterable[sparse.csr_array]) -> EmbeddingStacks:
    """Return the embeddings of a trained network on each of some matrices."""
    embeddings = [network.embed(matrix) for matrix in matrices]
    return np.stack([users for users, _ in embeddings]), np.stack([items for _, items in embeddings])


@dataclass(eq=False)
class SampledGraphBPR(EnsembleBPR):
    """Train without negatives that are likely in the copied graph, then average over copied graphs.

    A pair whose expectation in the copied graph exceeds a threshold is never drawn as a negative. A user
    without any negative left keeps all unobserved items.

    Parameters
    ----------
    base, donors, n_graphs, average, keep
        As in :class:`.EnsembleBPR`, except that the network is always trained. With ``n_graphs`` the
        expectation too is a mean over samples, as in the paper.
    threshold
        The paper's b, from 0 to 1. With ``None``, the default, a network is trained for each of
        ``thresholds``, and the best by ``recall@20`` on validation interactions is used; ties go
        to the first.
    thresholds
        The thresholds to choose from.
    test_graph
        ``"copied"`` (default), or ``"observed"`` for the ablation that shows the effect of the negatives
        alone; :class:`.EnsembleBPR` shows that of copied graphs alone. The embeddings on both graphs are
        stored, so the parameter of a fitted recommender may be changed.

    Attributes
    ----------
    threshold_
        The threshold that is used.
    n_epochs_
        Number of epochs after which the network's weights were kept.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.recommend import LightGCN, SampledGraphBPR
    >>> library = datasets.load("library")
    >>> model = SampledGraphBPR(LightGCN(n_factors=8, n_epochs=2), threshold=0.3).fit(library, rng=0)
    >>> model.recommend(["reader 001"], 3)[0].shape
    (1, 3)
    """

    threshold: float | None = None
    thresholds: Sequence[float] = (0.1, 0.2, 0.3, 0.5)
    test_graph: str = "copied"

    def check_params(self) -> None:
        super().check_params()
        for value in self._candidate_thresholds():
            check_real(value, "threshold of SampledGraphBPR", low=0.0, high=1.0)
        if not self._candidate_thresholds():
            raise InputError("thresholds of SampledGraphBPR", "must hold at least one number; got none.")
        check_settings(self, test_graph=["copied", "observed"])

    def fit_interactions(
        self, interactions: Interactions, validation: Interactions | None, seed: SeedSequence
    ) -> None:
        thresholds = self._candidate_thresholds()
        if len(thresholds) > 1 and validation is None:
            raise InputError(
                "threshold of SampledGraphBPR",
                "must be given if there is no validation to choose it by; "
                "got None. Pass validation to fit, or a threshold.",
            )
        graphs = list(self.copied_matrices(interactions, child(seed, EnsembleSeeds.GRAPHS)))
        expected = sparse.csr_array(sum(graphs[1:], start=graphs[0]) / len(graphs))
        best_recall, best = -1.0, {}
        for threshold in thresholds:
            forbidden = forbid_likely_pairs(interactions.matrix, expected > threshold)
            network = copy.copy(self.base)
            network_seed = child(seed, EnsembleSeeds.NETWORK)
            network.fit_interactions(interactions, validation, network_seed, forbidden)
            network.interactions_ = interactions
            self.copied_embeddings_ = embed_graphs(network, graphs)
            self.observed_embeddings_ = embed_graphs(network, [interactions.matrix])
            self.threshold_, self.n_epochs_ = threshold, network.n_epochs_
            recall = 1.0
            if len(thresholds) > 1 and validation is not None:
                recall = validation_recall(self.score_positions, interactions, validation)
            if recall > best_recall:
                best_recall, best = recall, dict(vars(self))
        vars(self).update(best)

    def embedding_stacks(self) -> EmbeddingStacks:
        return self.observed_embeddings_ if self.test_graph == "observed" else self.copied_embeddings_

    def _candidate_thresholds(self) -> list[float]:
        return list(self.thresholds) if self.threshold is None else [self.threshold]
