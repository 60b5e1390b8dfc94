"""The contract of donor laws: ``fit``, and optional attributes with their defaults."""

from __future__ import annotations

from typing import Any, Protocol

from nodecopy._core.sparse_matrices import as_matrix
from nodecopy._core.validation import show, type_name
from nodecopy.copying.distributions import DonorDistribution
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.interactions import Interactions


class DonorLaw(Protocol):
    """An object whose ``fit`` returns the distribution of every node's donor.

    These attributes are optional. ``reads_edges``: whether donors depend on edges, assumed if it is missing.
    ``crosses_components``: whether a donor may be in another connected component, assumed if it is missing.
    ``restrict(nodes, n_nodes)``: the law of a slice of ``n_nodes`` nodes, needed if the law holds values per
    node. ``group_labels(data)``: the labels that donors share, -1 for nodes that keep their own neighbours.
    """

    def fit(self, data: Graph | Interactions) -> DonorDistribution:
        """Return the donor distribution of the nodes of a graph, or of the users of interactions."""


def check_law(law: Any, name: str) -> None:
    """Raise an error that names the parameter unless an object has the method of a law."""
    if isinstance(law, type) or not hasattr(law, "fit"):
        raise InputError(f"{name} must be a donor law such as SameLabel(); got {show(law)}.")


def fit_law(law: Any, data: Graph | Interactions, name: str) -> DonorDistribution:
    """Return the distribution of a law after checking both; ``name`` is what the law is called in errors."""
    check_law(law, name)
    return check_distribution(law.fit(data), data, name)


def check_distribution(distribution: Any, data: Graph | Interactions, name: str) -> DonorDistribution:
    """Return what a law returned if it is a distribution of the donors of every node."""
    n_rows = data.rows.n_rows
    if not isinstance(distribution, DonorDistribution):
        raise InputError(f"{name} must return a DonorDistribution from fit; got {type_name(distribution)}.")
    if distribution.n_nodes != n_rows:
        raise InputError(
            f"{name} must return the donors of {n_rows} nodes from fit; got those of {distribution.n_nodes}."
        )
    return distribution


def reads_edges(law: DonorLaw) -> bool:
    """Return whether the donors of a law may depend on edges."""
    return bool(getattr(law, "reads_edges", True))


def crosses_components(law: DonorLaw) -> bool:
    """Return whether a donor may be in another connected component than its node."""
    return bool(getattr(law, "crosses_components", True))


def restrict_law(law: DonorLaw, nodes: slice, n_nodes: int) -> DonorLaw:
    """Return the law of some of ``n_nodes`` nodes: values per node are those of these nodes."""
    restricted: DonorLaw = law.restrict(nodes, n_nodes) if hasattr(law, "restrict") else law
    return restricted


def group_labels(law: DonorLaw, data: Graph | Interactions) -> Any:
    """Return the labels that a node and its donor share, or ``None`` if there are none."""
    return law.group_labels(data) if hasattr(law, "group_labels") else None


def select_nodes(values: Any, nodes: slice, n_nodes: int) -> Any:
    """Return the values of some nodes; other values than one for each of ``n_nodes`` nodes stay."""
    if values is None or isinstance(values, str):
        return values
    array = as_matrix(values, "values of the nodes")
    return array[nodes] if array.shape[0] == n_nodes else values
