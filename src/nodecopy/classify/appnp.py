"""APPNP (Gasteiger et al., 2019): a perceptron with personalised PageRank."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nodecopy.classify.network_classifier import ANY_DATA, NetworkClassifier
from nodecopy.nn.networks import KIPF

APPNP_KIPF = replace(KIPF, propagation="pagerank", n_hidden=64, weight_decay=5e-3)


@dataclass(kw_only=True, eq=False, repr=False)
class APPNP(NetworkClassifier):
    """Classify nodes by a perceptron whose logits are propagated by personalised PageRank.

    Parameters
    ----------
    n_steps
        Steps of propagation; 10 in all presets.
    teleport
        Probability of returning to the node itself in each step; 0.1 in all presets.
    drop_edges
        Share of edges that each step of propagation drops in a training step.
    preset, n_hidden, ..., device
        As in :class:`NetworkClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import APPNP
    >>> club = datasets.load("karate").replace(features=np.eye(34))
    >>> fitted = APPNP(n_epochs=50).fit(club, [0, 33], rng=0)  # two labels
    >>> fitted.predict()[[1, 32]].tolist()
    ['Mr. Hi', 'Officer']
    """

    presets = {  # noqa: RUF012
        "default": replace(APPNP_KIPF, **ANY_DATA),
        "kipf": APPNP_KIPF,
        "gnn-benchmark": replace(APPNP_KIPF, features="binary", patience=50, n_epochs=2000),
    }

    n_steps: int | None = None
    teleport: float | None = None
    drop_edges: float | None = None
