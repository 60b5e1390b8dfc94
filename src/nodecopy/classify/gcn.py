"""The graph convolutional network (Kipf and Welling, 2017)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nodecopy.classify.network_classifier import DEFAULT, GNN_BENCHMARK, NetworkClassifier
from nodecopy.nn.networks import KIPF, Recipe

G3NN = Recipe(n_hidden=64, bias=True, drop_input=False, decay_all=True, n_epochs=2000, patience=200)


@dataclass(kw_only=True, eq=False, repr=False)
class GCN(NetworkClassifier):
    """Classify nodes by two graph convolutions (Kipf and Welling, 2017).

    Parameters
    ----------
    preset
        As in :class:`NetworkClassifier`; ``"g3nn"`` has the settings of Ma et al. (2019), which stop by the
        validation loss.
    drop_edges
        Share of edges that each layer drops in a training step.
    rank
        Replace the adjacency by its truncated SVD of this rank (GCN-SVD; Entezari et al., 2020).
    n_hidden, ..., device
        As in :class:`NetworkClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import GCN
    >>> club = datasets.load("karate").replace(features=np.eye(34))
    >>> fitted = GCN(n_epochs=50).fit(club, [0, 33], rng=0)  # two labels
    >>> fitted.predict()[[1, 32]].tolist()
    ['Mr. Hi', 'Officer']
    """

    presets = {  # noqa: RUF012
        "default": replace(KIPF, **DEFAULT),
        "kipf": KIPF,
        "gnn-benchmark": GNN_BENCHMARK,
        "g3nn": G3NN,
    }

    drop_edges: float | None = None
    rank: int | None = None
