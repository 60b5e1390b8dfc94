"""The paper's Algorithm 4: pairs that are likely in a copied graph are not drawn as negatives either."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

from numpy.random import SeedSequence
from scipy import sparse

from nodecopy._core.random import child
from nodecopy._core.validation import check_choice, check_real
from nodecopy.errors import InputError
from nodecopy.interactions import Interactions
from nodecopy.recommend.bpr import validation_recall
from nodecopy.recommend.ensemble_bpr import EmbeddingStacks, EnsembleBPR, EnsembleSeeds, embed_graphs
from nodecopy.recommend.negatives import forbid_likely_pairs


@dataclass(eq=False)
class SampledGraphBPR(EnsembleBPR):
    """Train without negatives that are likely in the copied graph, then average over copied graphs.

    A pair whose expectation in the copied graph exceeds a threshold is never drawn as a negative. A user
    without any negative left keeps all unobserved items.

    Parameters
    ----------
    base, law, n_graphs, average, keep
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
    >>> items, scores = model.recommend(["reader 001"], 3)
    >>> items.shape
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
            raise InputError("thresholds of SampledGraphBPR must hold at least one number; got none.")
        check_choice(self.test_graph, "test_graph of SampledGraphBPR", ["copied", "observed"])

    def fit_interactions(
        self, interactions: Interactions, validation: Interactions | None, seed: SeedSequence
    ) -> None:
        thresholds = self._candidate_thresholds()
        if len(thresholds) > 1 and validation is None:
            raise InputError(
                "threshold of SampledGraphBPR must be given if there is no validation to choose it by; "
                "got None. Pass validation to fit, or a threshold."
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
