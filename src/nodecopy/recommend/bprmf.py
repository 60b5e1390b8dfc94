"""Matrix factorisation trained by Bayesian personalised ranking (Rendle et al., 2009)."""

from __future__ import annotations

from dataclasses import dataclass

from nodecopy.interactions import Interactions
from nodecopy.recommend.bpr import BPRRecommender, EmbeddingNetwork


@dataclass(eq=False)
class BPRMF(BPRRecommender):
    """Learn free embeddings of users and items (Rendle et al., 2009).

    The parameters and attributes are those of every network trained by pairs: ``n_factors``,
    ``learning_rate``, ``batch_size``, ``regularisation``, ``n_epochs``, ``evaluate_every``, ``patience``
    and ``device``, described in :class:`.BPRRecommender`.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.recommend import BPRMF
    >>> library = datasets.load("library")
    >>> items, scores = BPRMF(n_factors=8, n_epochs=2).fit(library, rng=0).recommend(["reader 001"], 3)
    >>> items.shape
    (1, 3)
    """

    def build_network(self, interactions: Interactions) -> EmbeddingNetwork:
        return EmbeddingNetwork(interactions.n_users, interactions.n_items, self.n_factors)
