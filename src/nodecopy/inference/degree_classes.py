"""The default donor law of inference: nodes of one community whose degrees differ by chance only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from nodecopy._core.params import Configurable
from nodecopy._core.validation import check_real, check_vector, show
from nodecopy.copying import DonorLists
from nodecopy.copying.donor_law import select_nodes
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.inference.communities import spectral_communities


@dataclass(eq=False)
class DegreeClasses(Configurable):
    """Draw donors uniformly from the nodes of the same community and class of degrees.

    Nodes of a community are sorted by degree and divided into classes from below. A class is as large as
    possible while the variance of its degrees is no more than chance explains: the mean over its nodes of
    sum_j p_ij (1 - p_ij), estimated from the numbers of edges to each community. Under one-endpoint copying
    the variance of the number of edges is then that of independent edges. Donors from whole communities
    overstate it where expected degrees differ, and donors of the same degree understate it. The largest class
    within the tolerance is taken, so that the variance tends to be somewhat too large.

    Parameters
    ----------
    communities
        One integer per node, or ``"labels"`` for the labels of the graph. By default they are estimated by
        :func:`.spectral_communities`.
    tolerance
        Standard errors by which the variance of a class may exceed what chance explains, 2 by default.
        Smaller values give more and smaller classes.

    Examples
    --------
    >>> from nodecopy import NodeCopying, datasets
    >>> from nodecopy.inference import DegreeClasses
    >>> club = datasets.load("karate")
    >>> model = NodeCopying(DegreeClasses("labels")).fit(club)
    >>> classes = model.distribution_.list_of
    >>> int(classes[0]) == int(classes[33]), int(classes.max()) + 1  # the hubs lead different factions
    (False, 4)
    """

    communities: ArrayLike | str | None = None
    tolerance: float = 2.0
    reads_edges: ClassVar[bool] = True

    def fit(self, data: Any) -> DonorLists:
        if not isinstance(data, Graph):
            raise InputError(f"graph of DegreeClasses must be a graph; got {show(data)}.")
        tolerance = check_real(self.tolerance, "tolerance of DegreeClasses", low=0.0)
        communities = self.find_communities(data)
        degrees, variances = data.degrees.astype(np.float64), _chance_variances(data, communities)
        class_of, n_classes = np.zeros(data.n_nodes, np.int64), 0
        for community in range(communities.max(initial=-1) + 1):
            members = np.flatnonzero(communities == community)
            members = members[np.argsort(degrees[members], kind="stable")]
            while len(members):
                size = _class_size(degrees[members], variances[members], tolerance)
                class_of[members[:size]] = n_classes
                members, n_classes = members[size:], n_classes + 1
        return DonorLists.from_groups(class_of)

    def find_communities(self, graph: Graph) -> NDArray[np.int64]:
        """Return the community of each node, as the settings say, numbered from 0."""
        values: Any = self.communities
        if values is None:
            return spectral_communities(graph)
        name = "communities of DegreeClasses"
        if isinstance(values, str):
            if values != "labels" or graph.labels is None:
                raise InputError(
                    f"{name} must be integers, 'labels' of a graph that has them, or None; got {values!r}."
                )
            values = graph.labels
        codes = check_vector(values, name, length=graph.n_nodes)
        if codes.dtype.kind not in "biu":
            raise InputError(f"{name} must be integers; got {codes.dtype}.")
        return np.unique(codes, return_inverse=True)[1].astype(np.int64)

    def restrict(self, nodes: slice, n_nodes: int) -> DegreeClasses:
        """Return the law of some of ``n_nodes`` nodes."""
        return replace(self, communities=select_nodes(self.communities, nodes, n_nodes))


def _chance_variances(graph: Graph, communities: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return d_i - sum_b e_ib^2 / n_b, with e_ib edges from node i to the n_b nodes of community b."""
    n_nodes, sizes = graph.n_nodes, np.bincount(communities)
    member = sparse.csr_array((np.ones(n_nodes), (np.arange(n_nodes), communities)))
    rows = graph.rows
    pattern = sparse.csr_array((np.ones(rows.n_entries), rows.indices, rows.indptr), (n_nodes, n_nodes))
    edges = sparse.csr_array(pattern @ member)
    squares = edges.multiply(edges) @ (1 / sizes)
    return np.asarray(rows.degrees - squares, np.float64)


def _class_size(degrees: NDArray[np.float64], variances: NDArray[np.float64], tolerance: float) -> int:
    """Return how many of the smallest degrees form a class."""
    sizes = np.arange(1, len(degrees) + 1)
    excess = degrees - degrees[0]
    freedom = np.maximum(sizes - 1, 1)
    spread = (np.cumsum(excess**2) - np.cumsum(excess) ** 2 / sizes) / freedom
    limit = np.cumsum(variances) / sizes * (1 + tolerance * np.sqrt(2 / freedom))
    return int(np.flatnonzero((spread <= limit + 1e-9) | (sizes == 1))[-1]) + 1
