"""The paper's Algorithms 3 and 4: networks trained by pairs, evaluated on graphs whose users are copied.

Users copy users: a donor is drawn by the Jaccard index of the users' items. In Algorithm 4, pairs that are
likely in a copied graph are not drawn as negatives either.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
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
NETWORK, GRAPHS = 0, 1  # children of the seed
EmbeddingStacks = tuple[NDArray[Any], NDArray[Any]]  # of users and of items, [graphs, nodes, factors] each


@dataclass(eq=False)
class EnsembleBPR(Recommender):
    """Train on the observed graph, then average the scores over graphs whose users are copied.

    Parameters
    ----------
    base
        A network trained by pairs, such as :class:`.LightGCN`; not changed, and not trained again if it is
        fitted to the same interactions.
    donors
        Donor rule of users. The default ``Jaccard()`` is the paper's, in which a user may be its own donor.
    n_graphs
        Number of sampled graphs to average over, as in the paper. With ``None``, the network is evaluated
        once, on the exact expected graph P A.
    average
        ``"scores"``, or ``"probabilities"``, the paper's sigma(s_i - s_j) over sampled graphs. The score of
        item i is then their mean over all j, in time that grows with the square of the number of items.
    keep
        Probability that a user keeps its own items, see :class:`.NodeCopying`; the paper has 0.

    Notes
    -----
    Scores are not linear in the graph: the expected graph approximates the limit of many samples.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.recommend import EnsembleBPR, LightGCN
    >>> model = EnsembleBPR(LightGCN(n_epochs=2)).fit(datasets.load("library"), rng=0)
    >>> model.recommend(["reader 001"], 3)[0].shape
    (1, 3)
    """

    base: BPRRecommender
    donors: Any = field(default_factory=Jaccard)
    n_graphs: int | None = None
    average: str = "scores"
    keep: float = 0.0

    def check_params(self) -> None:
        if not isinstance(self.base, BPRRecommender):
            name = f"base of {type(self).__name__}"
            raise InputError(name, f"must be a network such as LightGCN(); got {show(self.base)}.")
        if self.n_graphs is not None:
            check_settings(self, n_graphs=1)
        check_settings(self, average=["scores", "probabilities"], keep=(0.0, 1.0))
        self.base.check_params()

    def fit_interactions(self, interactions: Interactions, validation: Any, seed: SeedSequence) -> None:
        network = fit_copy(self.base, interactions, validation, child(seed, NETWORK))
        graphs = self.copied_matrices(interactions, child(seed, GRAPHS))
        self.copied_embeddings_ = embed_graphs(network, graphs)

    def copied_matrices(self, interactions: Interactions, seed: SeedSequence) -> Iterator[sparse.csr_array]:
        """Yield the matrices to evaluate the network on: the expected one, or samples."""
        model = NodeCopying(self.donors, self.keep).fit(interactions)
        if self.n_graphs is None:
            yield model.expected_adjacency().tocsr()
        else:
            yield from (sample.matrix for sample in model.sample_many(self.n_graphs, rng=seed))

    def embedding_stacks(self) -> EmbeddingStacks:
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
    """Return the embeddings of a trained network on some matrices."""
    embeddings = [network.embed(matrix) for matrix in matrices]
    return np.stack([users for users, _ in embeddings]), np.stack([items for _, items in embeddings])


@dataclass(eq=False)
class SampledGraphBPR(EnsembleBPR):
    """Train without negatives that are likely in the copied graph, then average over copied graphs.

    A pair whose expectation in the copied graph exceeds a threshold is no negative, except for users who
    would have no negatives left.

    Parameters
    ----------
    base, donors, n_graphs, average, keep
        As in :class:`.EnsembleBPR`, except that the network is always trained. With ``n_graphs`` the
        expectation too is a mean over samples, as in the paper.
    threshold
        The paper's b, from 0 to 1. With ``None``, a network is trained for each of ``thresholds``, and the
        best by ``recall@20`` on validation interactions is used; ties go to the first.
    thresholds
        The thresholds to choose from.
    test_graph
        ``"copied"``, or ``"observed"`` for the ablation with the effect of the negatives alone. It may be
        changed after the fit.

    Attributes
    ----------
    threshold_, n_epochs_
        The threshold that is used, and the number of epochs after which the network's weights were kept.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.recommend import LightGCN, SampledGraphBPR
    >>> model = SampledGraphBPR(LightGCN(n_epochs=2), threshold=0.3).fit(datasets.load("library"), rng=0)
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

    def fit_interactions(self, interactions: Interactions, validation: Any, seed: SeedSequence) -> None:
        thresholds = self._candidate_thresholds()
        if len(thresholds) > 1 and validation is None:
            allowed = "must be given if there is no validation"
            raise InputError("threshold of SampledGraphBPR", f"{allowed}; got None. Pass validation to fit.")
        graphs = list(self.copied_matrices(interactions, child(seed, GRAPHS)))
        expected = sparse.csr_array(sum(graphs[1:], start=graphs[0]) / len(graphs))
        best_recall, best = -1.0, {}
        for threshold in thresholds:
            forbidden = forbid_likely_pairs(interactions.matrix, expected > threshold)
            network = copy.copy(self.base)
            network.fit_interactions(interactions, validation, child(seed, NETWORK), forbidden)
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
