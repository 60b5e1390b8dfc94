"""Copied predictions of modules of users: many donors are evaluated at once if they are far apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.csr import IntArray
from nodecopy.defend.copiers import evaluate_all
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.nn.module_networks import ModuleNetwork

N_PROBES = 8
"""Nodes at which the receptive field is measured."""
MAX_REACH, MAX_REACH_SHARE = 2**24, 0.25
"""Largest number and share of pairs of nodes within the receptive field for which donors are grouped."""
TOLERANCE = 1e-4


class ModuleCopier:
    """Evaluate a module at each donor, with the features of its node in place of its own.

    The prediction for a donor depends on the features within a few hops only, for most modules. Donors that
    are further apart than that do not interfere, and the whole graph is evaluated once for all of them. The
    number of hops is measured: features of one node that are NaN make every prediction NaN that depends on
    them, whatever the values of the hidden layers. All pairs of the first group are evaluated alone to check
    it. If that fails, or predictions depend on all nodes, each pair is evaluated alone.

    Parameters
    ----------
    network
        The module.
    graph
        The graph on which it predicts.
    """

    def __init__(self, network: ModuleNetwork, graph: Graph) -> None:
        self.network, self.graph = network, graph
        self.x, (self.edges, self.weights) = network.features(graph), network.edges(graph)

    def predict_pairs(self, nodes: IntArray, donors: IntArray) -> NDArray[np.float64]:
        """Return the probabilities of each pair of a node and its donor, ``[n_pairs, n_classes]``."""

        def predict_group(group: IntArray) -> NDArray[np.float64]:
            rows = torch.from_numpy(donors[group])
            before = self.x[rows]
            self.x[rows] = self.x[torch.from_numpy(nodes[group])]
            try:
                with torch.no_grad():
                    result = self.network.log_probabilities(self.x, self.edges, self.weights).exp()
            finally:
                self.x[rows] = before
            probabilities: NDArray[np.float64] = result.double().cpu().numpy()[donors[group]]
            return probabilities

        alone = [np.array([pair]) for pair in range(len(nodes))]
        groups, reach = alone, self.reach()
        if reach is not None:
            groups = group_pairs(donors, reach)
            first = max(groups, key=len, default=np.zeros(0, np.int64))
            expected = [predict_group(first[[member]])[0] for member in range(len(first))]
            if expected and not np.allclose(predict_group(first), expected, atol=TOLERANCE):
                groups = alone
        predictions: NDArray[np.float64] = np.concatenate(evaluate_all(predict_group, groups))
        return predictions[np.argsort(np.concatenate(groups))]

    def reach(self) -> sparse.csr_array | None:
        """Return which nodes are within the receptive field of each other, or None if it is too large."""
        if self.graph.directed:
            return None
        identity: Any = sparse.eye_array(self.graph.n_nodes, dtype=np.float32, format="csr")
        pattern = sparse.csr_array((self.graph.adjacency + identity) > 0)
        n_hops, reach = self._count_hops(pattern), sparse.csr_array(identity > 0)
        for _ in range(n_hops or 0):
            reach = sparse.csr_array(reach @ pattern)
            if reach.nnz > min(MAX_REACH, MAX_REACH_SHARE * self.graph.n_nodes**2):
                return None
        return None if n_hops is None else reach

    def _count_hops(self, pattern: sparse.csr_array) -> int | None:
        """Return over how many hops features have an influence, or None if that could not be measured."""
        probes = np.argsort(-self.graph.degrees, kind="stable")[:: max(1, self.graph.n_nodes // N_PROBES)]
        farthest, is_measured = 0, False
        for probe in probes.tolist():
            depends = self._find_dependent(probe)
            within = np.arange(len(depends)) == probe
            n_hops, wider = 0, np.asarray(pattern @ within) > 0
            while (depends & ~within).any():
                if (wider == within).all():
                    return None
                within, wider, n_hops = wider, np.asarray(pattern @ wider) > 0, n_hops + 1
            farthest = max(farthest, n_hops)
            is_measured |= bool((wider != within).any())  # a whole component may be too small for all hops
        return farthest if is_measured else None

    def _find_dependent(self, probe: int) -> NDArray[np.bool_]:
        """Return whether the prediction of each node depends on the features of the probe."""
        x = self.x.detach().clone()
        x[probe] = torch.nan
        try:
            with torch.no_grad():
                output = self.network.evaluate(x, self.edges, self.weights)
        except InputError:  # the module refuses NaN
            return np.ones(len(x), bool)
        depends: NDArray[np.bool_] = output.isnan().any(dim=1).cpu().numpy()
        return depends


def group_pairs(donors: IntArray, reach: sparse.csr_array) -> list[NDArray[np.int64]]:
    """Return groups of pair numbers; the donors of a group are out of each other's reach.

    Donors with the most pairs left come first, so that few groups are needed.
    """
    distinct, which = np.unique(donors, return_inverse=True)
    n_left = np.bincount(which)
    pairs_of = np.split(np.argsort(which, kind="stable"), np.cumsum(n_left)[:-1])
    near = sparse.csr_array(reach[distinct][:, distinct])
    groups = []
    while n_left.any():
        is_free, chosen = n_left > 0, []
        for donor in np.argsort(-n_left, kind="stable")[: is_free.sum()].tolist():
            if is_free[donor]:
                chosen.append(donor)
                is_free[near.indices[near.indptr[donor] : near.indptr[donor + 1]]] = False
        n_left[chosen] -= 1
        groups.append(np.array([pairs_of[donor][n_left[donor]] for donor in chosen], np.int64))
    return groups
