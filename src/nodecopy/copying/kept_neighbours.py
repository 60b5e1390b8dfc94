"""A law under which nodes with many neighbours mostly keep them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.csr import IntArray, check_row_data
from nodecopy._core.params import Configurable
from nodecopy._core.validation import check_real
from nodecopy.copying.distributions import DonorDistribution
from nodecopy.copying.donor_law import DonorLaw, crosses_components, fit_law, group_labels, restrict_law
from nodecopy.graph import Graph
from nodecopy.interactions import Interactions


@dataclass(eq=False)
class KeepByDegree(Configurable):
    """Let a node of degree d keep its own neighbours with probability d / (d + prior).

    Otherwise another law draws its donor. A node with few neighbours says little about itself and takes those
    of similar nodes; a node with many keeps them.

    Parameters
    ----------
    law
        The other law.
    prior
        The degree at which a node keeps its neighbours half of the time, 2 by default.

    Examples
    --------
    >>> from nodecopy import Graph, KeepByDegree, NodeCopying, SameLabel
    >>> star = Graph.from_edges([0, 0, 0], [1, 2, 3])
    >>> model = NodeCopying(KeepByDegree(SameLabel([0, 0, 0, 0]), prior=1)).fit(star)
    >>> model.distribution_.probabilities().diagonal().tolist()
    [0.8125, 0.625, 0.625, 0.625]
    """

    law: DonorLaw
    prior: float = 2.0
    reads_edges: ClassVar[bool] = True

    @property
    def crosses_components(self) -> bool:
        """Whether the donors of the other law may be in another component."""
        return crosses_components(self.law)

    def fit(self, data: Graph | Interactions) -> KeepingDistribution:
        prior = check_real(self.prior, "prior of KeepByDegree", low=0.0)
        degrees = check_row_data(data).rows.degrees.astype(np.float64)
        # A node without neighbours draws a donor, also with a prior of 0.
        keep = np.divide(degrees, degrees + prior, out=np.zeros_like(degrees), where=degrees > 0)
        return KeepingDistribution(fit_law(self.law, data, "law of KeepByDegree"), keep)

    def restrict(self, nodes: slice, n_nodes: int) -> KeepByDegree:
        """Return the law of some of ``n_nodes`` nodes."""
        return replace(self, law=restrict_law(self.law, nodes, n_nodes))

    def group_labels(self, data: Graph | Interactions) -> Any:
        """Return the labels that the donors of the other law share."""
        return group_labels(self.law, data)


@dataclass(frozen=True, eq=False)
class KeepingDistribution(DonorDistribution):
    """A node is its own donor with a probability of its own, and otherwise another distribution draws one.

    Parameters
    ----------
    other
        The other distribution.
    keep_probabilities
        The probability of each node.
    """

    other: DonorDistribution
    keep_probabilities: NDArray[np.float64]

    @property
    def n_nodes(self) -> int:  # type: ignore[override]
        return self.other.n_nodes

    def draw(self, uniforms: NDArray[np.float64], keep: float, *, compiled: bool = False) -> IntArray:
        p = keep + (1 - keep) * self.keep_probabilities
        is_kept = uniforms < p
        rest = np.divide(uniforms - p, 1 - p, out=np.zeros(self.n_nodes), where=~is_kept)
        below_one = np.nextafter(1.0, 0.0)  # a quotient can round to one
        donors = self.other.draw(np.minimum(rest, below_one), 0.0, compiled=compiled)
        return np.where(is_kept, np.arange(self.n_nodes, dtype=donors.dtype), donors)

    def mean_rows(self, matrix: Any) -> tuple[sparse.csr_array, IntArray]:
        means, row_of = self.other.mean_rows(matrix)
        copied = sparse.diags_array(1 - self.keep_probabilities) @ means[row_of]
        mixed = copied + sparse.diags_array(self.keep_probabilities) @ sparse.csr_array(matrix)
        return sparse.csr_array(mixed), np.arange(self.n_nodes)

    def match_probabilities(self, group_of: IntArray, wanted: IntArray) -> NDArray[np.float64]:
        p = self.keep_probabilities
        return np.asarray(
            (1 - p) * self.other.match_probabilities(group_of, wanted) + p * (group_of == wanted)
        )
