"""Statistics of graphs, by name or as functions of graphs of several libraries, and communities of nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.arrays import FloatArray, IntArray
from nodecopy._core.checks import check_choice, check_integer, check_sequence, show, type_name
from nodecopy._core.imports import check_name
from nodecopy._core.random import Rng, generator
from nodecopy.errors import InputError
from nodecopy.generators.base import binary_adjacency
from nodecopy.graph import Graph
from nodecopy.io import GraphLike, convert_graph, to_networkx
from nodecopy.io.networks import to_igraph
from nodecopy.metrics import statistics
from nodecopy.metrics.classification import warn_about_missing_labels
from nodecopy.metrics.structure import MIN_COMPILED_ENTRIES, select_counting, select_statistics

Floats: TypeAlias = NDArray[np.float64]
Statistic: TypeAlias = (
    str
    | Callable[[Any], Any]
    | Sequence[str | Callable[[Any], Any]]
    | Mapping[str, Callable[[Any], Any]]  # functions by name
)
Values: TypeAlias = Mapping[str, float | Floats]

NODE_STATISTICS = ("degrees", "pagerank")
DAMPING, PAGERANK_TOLERANCE, MAX_PAGERANK_STEPS, MAX_POWER_STEPS = 0.85, 1e-10, 200, 300
EIGENVALUE_TOLERANCE, RESIDUAL_TOLERANCE = 1e-10, 1e-8  # relative, at which compiled code stops
CONVERT: dict[str, Callable[[Graph], Any]] = {
    "nodecopy": lambda graph: graph,
    "networkx": to_networkx,
    "igraph": to_igraph,
}
MAX_COMMUNITIES = 30
MAX_DENSE_NODES = 600  # nodes up to which all eigenvalues are computed; larger graphs use subspace iteration
N_EXTRA_VECTORS, N_ITERATIONS = 10, 20
N_STARTS, MAX_KMEANS_STEPS = 5, 100


def statistic_names() -> list[str]:
    """Return the names of all statistics, node statistics last.

    Examples
    --------
    >>> from nodecopy.inference import statistic_names
    >>> {"transitivity", "modularity", "pagerank"} <= set(statistic_names())
    True
    """
    return [*statistics(Graph(np.zeros((0, 0)))), "modularity", *EXTRA]


def prepare_measure(
    statistic: Statistic,
    graph: GraphLike,
    library: str | None,
    *,
    fixed_nodes: bool = True,
    fixed_number: bool = True,
) -> tuple[Graph, GraphMeasure]:
    """Return the converted graph, and a function from graphs to the values of the statistics by name."""
    own = convert_graph(graph, "graph")
    if not own.n_nodes:
        raise InputError("graph", "must have nodes; got none.")
    convert = CONVERT[check_choice(library or find_library(graph), "library", CONVERT)]
    allowed = "a name, a function, several of them, or a dictionary of functions by name"
    if isinstance(statistic, Mapping):
        chosen: list[tuple[str, Any]] = [(str(title), part) for title, part in statistic.items()]
    else:
        is_single = isinstance(statistic, str) or not isinstance(statistic, Iterable)
        parts = [statistic] if is_single else check_sequence(statistic, "statistic", allowed)
        chosen = [("", part) for part in parts]
    if not chosen:
        raise InputError("statistic", f"must be {allowed}; got none.")
    names: list[str] = []
    functions: list[KeyedFunction] = []
    for title, part in chosen:
        if isinstance(part, str) and not title:
            names.append(check_name(part, statistic_names(), "statistic"))
        elif callable(part):
            name = title or str(getattr(part, "__name__", type(part).__name__))
            name = f"statistic {len(functions) + 1}" if name == "<lambda>" else name
            functions.append(KeyedFunction(name, part))
        else:
            raise InputError("statistic", f"must be {allowed}; got {show(part)}.")
    every = [*names, *(function.name for function in functions)]
    if twice := [name for name in every if every.count(name) > 1]:
        raise InputError("statistic", f"must name each statistic once; got {twice[0]!r} more than once.")
    warn_about_missing_labels(own, names)
    extra = dict(EXTRA)
    if "modularity" in names:
        extra["modularity"] = _make_modularity(own, fixed_nodes, fixed_number)
    return own, GraphMeasure(
        names, functions, convert, extra, own.label_codes is None and "modularity" in names
    )


@dataclass(eq=False)
class GraphMeasure:
    """Compute statistics of graphs; the observed graph comes first and defines the order of values."""

    names: Sequence[str]
    functions: Sequence[KeyedFunction]
    convert: Callable[[Graph], Any]
    extra: Mapping[str, Callable[[Graph], float | Floats]]
    estimates_communities: bool

    def __call__(self, graph: Graph) -> Values:
        structural = [name for name in self.names if name not in self.extra]
        values: dict[str, Any] = dict(select_statistics(graph, structural)) if structural else {}
        values |= {name: self.extra[name](graph) for name in self.names if name in self.extra}
        if self.functions:
            converted = self.convert(graph)
            values |= {function.name: function(converted) for function in self.functions}
        return {name: values[name] for name in [*self.names, *(part.name for part in self.functions)]}

    @property
    def keys(self) -> dict[str, list[Any]]:
        """Return the nodes or edges of the functions that return mappings, by name of the function."""
        return {function.name: function.keys for function in self.functions if function.keys is not None}


class KeyedFunction:
    """A function whose values are in the order of its first result, where it returns a mapping."""

    def __init__(self, name: str, function: Callable[[Any], Any]) -> None:
        self.name, self.function = name, function
        self.keys: list[Any] | None = None
        self._is_computed = False  # on the observed graph, which comes first

    def __call__(self, graph: Any) -> float | Floats:
        try:
            value = self.function(graph)
        except Exception as error:
            hint = "Set library to choose the type of graph that it receives."
            if self._is_computed:
                hint = "This is a sample, perhaps not connected. Return nan where the statistic is undefined."
            error.add_note(f"The statistic {self.name} was computed on {graph!r}. {hint}")
            raise
        self._is_computed = True
        allowed = "must return a number, or one per node or edge"
        if value is None:
            raise InputError(self.name, f"{allowed}; it returned none.")
        if isinstance(value, Mapping):
            self.keys = list(value) if self.keys is None else self.keys
            value = [_look_up(value, key) for key in self.keys]
        try:
            array = np.asarray(value, np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(self.name, f"{allowed}; got {value!r:.200}.") from error
        if array.ndim > 1:
            raise InputError(self.name, f"{allowed}; got shape {array.shape}. Choose one of its columns.")
        if not array.size:
            raise InputError(self.name, "must return at least one number; it returned none.")
        array = np.where(np.isfinite(array), array, np.nan)  # infinite is undefined
        return array if array.ndim else float(array)


def _look_up(values: Mapping[Any, Any], key: Any) -> Any:
    """Return the value of a node or edge, which may be listed from its other end."""
    if key in values:
        return values[key]
    is_pair = isinstance(key, tuple) and len(key) == 2
    return values.get(key[::-1], np.nan) if is_pair else np.nan


def check_scalars(values: Values, purpose: str, where: str = "") -> None:
    """Raise an error unless every statistic is a number."""
    for name, value in values.items():
        if np.ndim(value):
            got = f"{name} has {np.size(value)} values{where}. Give a function that returns their maximum"
            raise InputError("statistic", f"must be a number to be {purpose}; {got}, or another number.")


def find_library(graph: GraphLike) -> str:
    """Return the library of the graph, whose objects functions receive by default."""
    package = type_name(graph).partition(".")[0]
    return package if package in CONVERT else "nodecopy"


def _make_modularity(observed: Graph, fixed_nodes: bool, fixed_number: bool) -> Callable[[Graph], float]:
    """Return the modularity of the labels, or of communities that are estimated from each graph."""
    if observed.label_codes is None:
        # Intervals fix their number, since samples with another number would dominate the variance.
        n = count_communities(observed) if fixed_number else None
        return lambda graph: compute_modularity(graph, spectral_communities(graph, n))

    def modularity(graph: Graph) -> float:
        labels: Any = observed.label_codes if fixed_nodes else graph.label_codes
        return compute_modularity(graph, np.unique(labels, return_inverse=True)[1])

    return modularity


def compute_modularity(graph: Graph, community: NDArray[np.int64]) -> float:
    """Return the modularity of communities, numbered from 0."""
    rows, n = graph.rows, int(community.max(initial=-1)) + 1
    if not rows.n_entries:
        return float("nan")
    same, outgoing = select_counting(rows).label_counts(rows, community.astype(np.int32), n)
    incoming = np.bincount(community[rows.indices], minlength=n) if graph.directed else outgoing
    return float(same.sum() / rows.n_entries - int(outgoing @ incoming) / rows.n_entries**2)


def density(graph: Graph) -> float:
    """Return the share of pairs of different nodes that are edges."""
    n_pairs = graph.n_nodes * (graph.n_nodes - 1)
    loops = int((graph.rows.row_numbers == graph.rows.indices).sum()) if graph.directed else 0
    return (graph.rows.n_entries - loops) / n_pairs if n_pairs else float("nan")


def degree_variance(graph: Graph) -> float:
    """Return the variance of the degrees (out-degrees of a directed graph), with divisor n."""
    return float(graph.degrees.var()) if graph.n_nodes else float("nan")


def degrees(graph: Graph) -> Floats:
    """Return the degree (out-degree of a directed graph) of each node."""
    return graph.degrees.astype(np.float64)


def largest_eigenvalue(graph: Graph) -> float:
    """Return the largest singular value of the adjacency matrix, its largest eigenvalue if undirected."""
    if _is_large(graph):
        from nodecopy.metrics import eigenvalue_kernels as kernels
        from nodecopy.metrics.counting_kernels import sort_by_degree

        *rows, _ = sort_by_degree(graph.rows.indptr, graph.rows.indices)
        return float(kernels.largest_eigenvalue(*rows, EIGENVALUE_TOLERANCE, MAX_POWER_STEPS))
    matrix: Any = binary_adjacency(graph).astype(np.float64)
    vector, value = np.ones(graph.n_nodes) / max(graph.n_nodes, 1) ** 0.5, 0.0
    for _ in range(MAX_POWER_STEPS):
        image = matrix.T @ (matrix @ vector)
        length = float(np.linalg.norm(image))
        if length <= value * (1 + EIGENVALUE_TOLERANCE):
            break
        vector, value = image / length, length
    return float(value**0.5)


def pagerank(graph: Graph) -> Floats:
    """Return the PageRank of each node, with damping 0.85; it adds up to one. Weights are ignored."""
    if _is_large(graph):
        from nodecopy.metrics import eigenvalue_kernels as kernels
        from nodecopy.metrics.counting_kernels import sort_by_degree

        *rows, number = sort_by_degree(graph.rows.indptr, graph.rows.indices)
        rank = kernels.pagerank(*rows, DAMPING, RESIDUAL_TOLERANCE, MAX_PAGERANK_STEPS)
        return np.asarray(rank[number], np.float64)
    n_nodes, is_sink = graph.n_nodes, graph.degrees == 0
    transition = sparse.csr_array(binary_adjacency(graph).astype(np.float64).T / np.maximum(graph.degrees, 1))
    rank = np.full(n_nodes, 1 / max(n_nodes, 1))
    for _ in range(MAX_PAGERANK_STEPS):
        previous = rank
        base = (1 - DAMPING + DAMPING * rank[is_sink].sum()) / n_nodes
        rank = DAMPING * (transition @ rank) + base
        if np.abs(rank - previous).sum() < PAGERANK_TOLERANCE:
            break
    return np.asarray(rank, np.float64)


def _is_large(graph: Graph) -> bool:
    """Return whether compiled code, which is for undirected graphs, is faster."""
    return not graph.directed and graph.rows.n_entries >= MIN_COMPILED_ENTRIES


EXTRA: dict[str, Callable[[Graph], float | Floats]] = {
    "density": density,
    "degree_variance": degree_variance,
    "largest_eigenvalue": largest_eigenvalue,
    "degrees": degrees,
    "pagerank": pagerank,
}


def count_communities(graph: GraphLike) -> int:
    """Return the number of communities that differ from chance, at least 1 and at most 30.

    This is the number of negative eigenvalues of the Bethe-Hessian matrices (r^2 - 1) I - r A + D with
    r^2 = sum d^2 / sum d - 1 (Le and Levina, 2022), for r > 0 and r < 0 (Saade et al., 2014), which finds
    groups with few edges inside. Directions and weights are ignored.
    """
    adjacency = _undirected_adjacency(convert_graph(graph, "graph"))
    degrees = adjacency.sum(axis=0)
    total = degrees.sum()
    r = np.sqrt(max((degrees**2).sum() / total - 1, 1.0)) if total else 1.0
    basis = _span(_normalise(adjacency), MAX_COMMUNITIES)
    diagonal = basis.T @ ((degrees + (r**2 - 1))[:, None] * basis)
    links = r * (basis.T @ (adjacency @ basis))
    linked, unlinked = (int((np.linalg.eigvalsh(diagonal - s * links) < -1e-8).sum()) for s in (1, -1))
    return min(max(linked, 1) + unlinked, MAX_COMMUNITIES)


def spectral_communities(
    graph: GraphLike, n_communities: int | None = None, *, rng: Rng = 0
) -> NDArray[np.int64]:
    """Return the community of each node by spherical spectral clustering of the regularised adjacency.

    D^-1/2 A D^-1/2 is regularised by adding the mean degree to all degrees. The rows of its eigenvectors with
    the largest absolute eigenvalues are scaled to length one and clustered by k-means (Qin and Rohe, 2013).
    Directions and weights are ignored.

    Parameters
    ----------
    graph
        The graph, or any object that :func:`.as_graph` converts.
    n_communities
        Number of communities, by default :func:`count_communities`.
    rng
        Seed or generator of the starts of k-means; 0 by default, so that the result is reproducible.

    Examples
    --------
    >>> import numpy as np
    >>> from nodecopy import Graph
    >>> from nodecopy.inference import spectral_communities
    >>> cliques = np.kron(np.eye(2), np.ones((10, 10))) - np.eye(20)
    >>> np.unique(spectral_communities(Graph(cliques)), return_counts=True)[1].tolist()
    [10, 10]
    """
    graph = convert_graph(graph, "graph")
    if n_communities is None:
        n_communities = count_communities(graph)
    check_integer(n_communities, "n_communities", low=1, high=max(graph.n_nodes, 1), high_name="n_nodes")
    if n_communities == 1:
        return np.zeros(graph.n_nodes, np.int64)
    matrix = _normalise(_undirected_adjacency(graph))
    basis = _span(matrix, n_communities)
    values, vectors = np.linalg.eigh(basis.T @ (matrix @ basis))
    vectors = basis @ vectors[:, np.argsort(-np.abs(values), kind="stable")[:n_communities]]
    rows = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    starts = generator(rng)
    _, best = min((_cluster(rows, n_communities, starts) for _ in range(N_STARTS)), key=lambda run: run[0])
    return np.unique(best, return_inverse=True)[1].astype(np.int64)


def _cluster(rows: FloatArray, k: int, rng: np.random.Generator) -> tuple[float, IntArray]:
    """Return the loss and the clusters of k-means, initialised by k-means++."""
    centres = rows[rng.integers(len(rows), size=1)]
    while len(centres) < k:
        distances = _squared_distances(rows, centres).min(axis=1)
        total = distances.sum()
        weights = distances / total if total > 0 else None
        centres = np.vstack([centres, rows[rng.choice(len(rows), p=weights)]])
    nearest = np.full(len(rows), -1)
    for _ in range(MAX_KMEANS_STEPS):
        distances = _squared_distances(rows, centres)
        previous, nearest = nearest, distances.argmin(axis=1)
        if np.array_equal(previous, nearest):
            break
        sizes = np.bincount(nearest, minlength=k)
        sums = sparse.csr_array((np.ones(len(rows)), (nearest, np.arange(len(rows)))), (k, len(rows))) @ rows
        centres = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], centres)
    return float(distances.min(axis=1).sum()), nearest


def _squared_distances(rows: FloatArray, centres: FloatArray) -> FloatArray:
    distances = (rows**2).sum(axis=1)[:, None] - 2 * rows @ centres.T + (centres**2).sum(axis=1)
    return np.asarray(np.maximum(distances, 0.0))


def _undirected_adjacency(graph: Graph) -> sparse.csr_array:
    """Return the adjacency matrix without directions, weights and self-loops."""
    return binary_adjacency(graph.undirected()).astype(np.float64)


def _normalise(adjacency: sparse.csr_array) -> sparse.csr_array:
    """Return D^-1/2 A D^-1/2 with the mean degree, at least 1, added to all degrees."""
    degrees = adjacency.sum(axis=0)
    mean = degrees.sum() / max(len(degrees), 1)
    scale = sparse.diags_array(1 / np.sqrt(degrees + max(mean, 1.0)))
    return sparse.csr_array(scale @ adjacency @ scale)


def _span(matrix: sparse.csr_array, k: int) -> FloatArray:
    """Return an orthonormal basis nearly containing the ``k`` leading eigenvectors, by subspace iteration."""
    n_nodes = matrix.shape[0]
    if n_nodes <= MAX_DENSE_NODES:
        return np.eye(n_nodes)
    size = min(k + N_EXTRA_VECTORS, n_nodes)
    basis = np.random.default_rng(0).normal(size=(n_nodes, size))  # fixed, to be reproducible
    for _ in range(N_ITERATIONS):
        basis = np.linalg.qr(matrix @ basis)[0]
    return basis
