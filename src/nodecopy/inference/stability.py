"""Stability of communities: how often nodes of a community stay together in resampled networks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.checks import check_integer, create_axes, show
from nodecopy._core.imports import import_optional
from nodecopy._core.messages import PrintedTable, warn_about_data
from nodecopy._core.random import Rng
from nodecopy.errors import InputError
from nodecopy.inference.diagnosis import Diagnostic, diagnose
from nodecopy.inference.donors import ClassCopying, DegreeClasses
from nodecopy.inference.resampling import collect_values, start_sampling
from nodecopy.inference.statistics import Floats, prepare_measure, spectral_communities
from nodecopy.io import GraphLike


def community_stability(
    graph: GraphLike,
    communities: Callable[[Any], Any] | None = None,
    *,
    model: Any = None,
    n: int = 200,
    library: str | None = None,
    workers: int = 1,
    rng: Rng = None,
) -> CommunityStability:
    """Return how stable communities are when they are estimated again from samples with the same nodes.

    The default model takes donors from the same estimated community: small shares show that communities
    cannot be recovered, but large shares do not show that they exist. Test modularity by :func:`.null_test`
    for that.

    Parameters
    ----------
    graph
        The observed graph, or any object that :func:`.as_graph` converts.
    communities
        A function of a graph that returns the community of each node, as an array, as sets of nodes like
        NetworkX or as a clustering of igraph. By default :func:`.spectral_communities`.
    n
        Number of samples, 200 by default.
    model, library, workers, rng
        As in :func:`.bootstrap`.

    Examples
    --------
    >>> import networkx as nx
    >>> from nodecopy import SameLabel
    >>> from nodecopy.inference import community_stability
    >>> cliques, donors = nx.connected_caveman_graph(3, 8), SameLabel([0] * 8 + [1] * 8 + [2] * 8)
    >>> result = community_stability(cliques, nx.community.louvain_communities, model=donors, n=20, rng=0)
    >>> result.sizes.tolist()
    [8, 8, 8]
    """
    check_integer(n, "n of community_stability", low=1)
    find: Any = spectral_communities if communities is None else communities
    if not callable(find):
        raise InputError("communities", f"must be a function of a graph; got {show(communities)}.")

    def communities_of(network: Any) -> Floats:
        return _number_communities(find(network), network)

    observed, measure = prepare_measure(communities_of, graph, "nodecopy" if communities is None else library)
    values = measure(observed)
    (codes,) = values.values()
    if np.shape(codes) != (n_nodes := observed.n_nodes,):
        raise InputError("communities", f"must return one per node, {n_nodes} in all; got {show(codes)}.")
    settings: dict[str, Any] = {"n": n, "workers": workers, "rng": rng}
    sampler, _, samples = start_sampling(observed, measure, model, call="community_stability", **settings)
    problems = diagnose(sampler, [], {})
    rule = getattr(sampler, "donors", sampler)
    if isinstance(rule, (DegreeClasses, ClassCopying)) and rule.communities is None:
        text = "samples are drawn from estimated communities, and have them whether they exist or not."
        way_out = "Test modularity by inference.null_test, or give model."
        problems.append(Diagnostic(None, f"{text} {way_out}"))
    for problem in problems:
        warn_about_data(problem.text)
    (rows,) = collect_values(samples, values, n).values()
    memberships = rows.astype(np.int32)
    own = np.asarray(codes).astype(np.int64)
    sizes, nodes, all_pairs = np.bincount(own), np.zeros(len(own)), 0.0
    for row in memberships:
        joint = own * (int(row.max()) + 1) + row
        _, group, counts = np.unique(joint, return_inverse=True, return_counts=True)
        nodes += (counts[group] - 1) / n
        row_sizes = np.bincount(row).astype(np.float64)
        all_pairs += float((row_sizes * (row_sizes - 1)).sum()) / n
    with np.errstate(invalid="ignore", divide="ignore"):
        nodes /= sizes[own] - 1  # undefined for a node alone
        together = np.bincount(own, nodes) / sizes
        all_pairs = float(np.divide(all_pairs, len(own) * (len(own) - 1)))
    shares = (own, sizes, together, nodes, all_pairs, n, repr(sampler))
    return CommunityStability(*shares, observed.node_ids, memberships, tuple(problems))


def _number_communities(partition: Any, network: Any) -> Floats:
    """Return codes from an array of labels, sets of nodes, or a clustering of igraph."""
    partition = getattr(partition, "membership", partition)
    if not isinstance(partition, Iterable):
        raise InputError("communities", f"must return one per node; got {show(partition)}.")
    groups = list(partition)
    if groups and isinstance(groups[0], (set, frozenset)):
        community_of = {node: number for number, group in enumerate(groups) for node in group}
        groups = [community_of[node] for node in network]
    return np.unique(np.asarray(groups), return_inverse=True)[1].astype(np.float64)


@dataclass(frozen=True, repr=False)
class CommunityStability(PrintedTable):
    """How often pairs of nodes that share an observed community share one in the samples."""

    heads = ("community", "nodes", "pairs that stay together")

    communities: NDArray[np.int64]
    """The observed community of each node, numbered from 0."""
    sizes: NDArray[np.int64]
    together: Floats
    """For each community, the mean share of its pairs that are together in a sample."""
    nodes: Floats
    """For each node, the mean share of the other nodes of its community that are with it in a sample."""
    all_pairs: float
    """The share of all pairs that are together in a sample, for comparison. It is not a null model."""
    n: int
    model: str
    node_ids: NDArray[Any] = field(repr=False)
    memberships: NDArray[np.int32] = field(repr=False)
    """The community of each node in each sample, one row per sample."""
    problems: tuple[Diagnostic, ...] = ()
    """Reasons not to trust the shares, which were also given as warnings."""

    def cells(self) -> Iterable[Iterable[Any]]:
        return zip(map(str, range(len(self.sizes))), self.sizes.tolist(), self.together.tolist(), strict=True)

    def notes(self) -> tuple[list[str], list[str]]:
        return [f"{self.n:,} samples of {self.model}; all pairs: {self.all_pairs:.4g}"], []

    def to_pandas(self) -> Any:
        """Return a data frame with a row per node."""
        pandas = import_optional("pandas", "CommunityStability.to_pandas")
        columns = {"community": self.communities, "stability": self.nodes}
        return pandas.DataFrame(columns, index=pandas.Index(self.node_ids, name="node"))

    def plot(self, axes: Any = None) -> Any:
        """Draw the stability of each community beside that of all pairs, and return the axes."""
        size = (0.5 * len(self.sizes) + 2.5, 2.6)
        (axes,) = create_axes(axes, "CommunityStability.plot", size)
        axes.bar(np.arange(len(self.sizes)), self.together, color="#88c0d0")
        axes.axhline(self.all_pairs, color="#bf616a", label="all pairs")
        axes.set(xlabel="community", ylabel="pairs that stay together", ylim=(0, 1))
        axes.legend(frameon=False)
        return axes
