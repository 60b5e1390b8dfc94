"""GCN-SVD: a GCN on a low-rank approximation of the graph (Entezari et al., 2020)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

from nodecopy._core.random import Rng
from nodecopy._core.validation import check_integer
from nodecopy.classify import GCN, Classifier
from nodecopy.defend.base import Defence
from nodecopy.errors import InputError
from nodecopy.graph import Graph


@dataclass(eq=False, repr=False)
class GCNSVD(Defence):
    """Train a GCN on the best low-rank approximation of the adjacency (Entezari et al., 2020).

    The adjacency is approximated, then self-loops are added and the sum is normalised, as in public
    implementations. No dense N x N matrix is computed. Corrected predictions are the GCN's own.

    Parameters
    ----------
    rank
        Rank of the approximation (the paper's K); at most the number of nodes minus one is used.
    classifier
        The GCN to train; ``GCN()`` by default. Its own ``rank`` is not used.
    device
        ``"cpu"`` or ``"cuda"``, for the default classifier; another one has its own.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.defend import GCNSVD
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> split = datasets.label_split(digits.labels, 5, validation=0, test=200, rng=0)
    >>> GCNSVD(20).fit(digits, split.train, rng=0).correct([7, 3]).tolist()
    [7, 3]
    """

    rank: int = 50
    _: KW_ONLY
    classifier: Classifier | None = None
    device: str = "cpu"

    def check_parameters(self, graph: Graph) -> None:
        check_integer(self.rank, "rank of GCNSVD", low=1)

    def build_classifier(self) -> Classifier:
        """Return the GCN with the rank of the approximation."""
        base = super().build_classifier()
        if not isinstance(base, GCN):
            raise InputError(f"classifier of GCNSVD must be a GCN; got {base!r}.")
        return GCN(**(base.get_params(deep=False) | {"rank": self.rank}))

    def from_classifier(self, classifier: Any, graph: Graph, *, rng: Rng = None) -> Self:
        """Raise an error: a trained classifier does not use a low-rank approximation."""
        raise InputError("GCNSVD must be trained by fit; it cannot correct a trained classifier.")
