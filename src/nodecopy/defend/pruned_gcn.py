"""Two GCNs on repaired graphs, the defences that copying is compared with."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.validation import check_integer, check_real
from nodecopy.classify import GCN, Classifier, Prediction, Trial
from nodecopy.defend.base import Defence
from nodecopy.defend.pruning import with_entries
from nodecopy.errors import InputError
from nodecopy.graph import Graph

EDGES_AT_ONCE = 2**16


class GCNSVD(Defence):
    """A GCN on the best approximation of the adjacency of a low rank (Entezari et al., 2020).

    The adjacency A is approximated, then loops are added and the sum is normalised, as in public
    implementations. Nothing of N x N is ever made.

    Parameters
    ----------
    rank
        The paper's K; at most the number of nodes less one is used.
    base
        The network: ``GCN()`` by default, or one with other parameters.
    device
        ``"cpu"`` or ``"cuda"``, for the default base; another base has its own.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.defend import GCNSVD
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> split = datasets.label_split(digits.labels, 5, validation=0, test=200, rng=0)
    >>> GCNSVD(20).fit(digits, split.train, rng=0).correct([7, 3]).shape
    (2, 10)
    """

    def __init__(self, rank: int = 50, *, base: GCN | None = None, device: str = "cpu") -> None:
        self.rank, self.base, self.device = rank, base, device

    def fit_trials(self, trials: Sequence[Trial], *, keep_networks: bool = False) -> list[Prediction]:
        rank = check_integer(self.rank, "rank of GCNSVD", low=1)
        network = copy.copy(_base(self)).set_params(rank=rank)
        return network.fit_trials(trials, keep_networks=keep_networks)

    fit_trials.__doc__ = Classifier.fit_trials.__doc__

    def _network_device(self) -> str:
        return _base(self).device


class GCNJaccard(Defence):
    """A GCN on the graph without edges between nodes that have hardly a feature in common (Wu et al., 2019).

    Parameters
    ----------
    threshold
        Edges stay whose ends have at least this share of features in common: those both have of those
        either has. A feature is there where it is not zero, so this is for sparse features. Two nodes
        without any feature tell nothing; their edge stays.
    base
        The network: ``GCN()`` by default, or one with other parameters.
    device
        ``"cpu"`` or ``"cuda"``, for the default base; another base has its own.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.defend import GCNJaccard
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> split = datasets.label_split(digits.labels, 5, validation=0, test=200, rng=0)
    >>> GCNJaccard(0.1).fit(digits, split.train, rng=0).correct([7, 3]).shape
    (2, 10)
    """

    def __init__(self, threshold: float = 0.01, *, base: GCN | None = None, device: str = "cpu") -> None:
        self.threshold, self.base, self.device = threshold, base, device

    def seen(self, graph: Graph) -> Graph:
        """The graph without the edges that the threshold cuts."""
        check_real(self.threshold, "threshold of GCNJaccard", low=0.0, high=1.0)
        if graph.features is None:
            raise InputError("a graph must have features to be classified; this one has none.")
        return with_entries(graph, jaccard(graph) >= self.threshold)

    def fit_trials(self, trials: Sequence[Trial], *, keep_networks: bool = False) -> list[Prediction]:
        made = {id(trial.graph): trial.graph for trial in trials}
        seen = {key: self.seen(graph) for key, graph in made.items()}
        pruned = [replace(trial, graph=seen[id(trial.graph)]) for trial in trials]
        return _base(self).fit_trials(pruned, keep_networks=keep_networks)

    fit_trials.__doc__ = Classifier.fit_trials.__doc__

    def predict_graph(self, graph: Graph) -> Prediction:
        return super().predict_graph(self.seen(graph))

    def _network_device(self) -> str:
        return _base(self).device


def _base(defence: GCNSVD | GCNJaccard) -> GCN:
    if defence.base is not None and not isinstance(defence.base, GCN):
        raise InputError(f"base of {type(defence).__name__} must be GCN(); got {defence.base!r}.")
    return GCN(device=defence.device) if defence.base is None else defence.base


def jaccard(graph: Graph) -> NDArray[np.float64]:
    """The share of common features of the ends of every stored entry of A; one where neither has any."""
    features: Any = graph.features
    present = sparse.csr_array(features, copy=True)
    present.eliminate_zeros()
    present.data = np.ones(present.nnz, np.float32)
    sizes = np.diff(present.indptr)
    first, second = graph.rows.row_numbers, graph.rows.indices
    common: list[NDArray[Any]] = [np.zeros(0)]
    for start in range(0, len(first), EDGES_AT_ONCE):
        part = slice(start, start + EDGES_AT_ONCE)
        common.append((present[first[part]] * present[second[part]]).sum(axis=1))
    both = np.concatenate(common)
    either = sizes[first] + sizes[second] - both
    shares: NDArray[np.float64] = np.divide(both, either, out=np.ones(len(both)), where=either > 0)
    return shares
