"""Embeddings of nodes that need no training: by features, neighbourhoods and expected neighbourhoods."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar
from weakref import ref

import numpy as np
from scipy import sparse

from nodecopy._core.arrays import Floats, IntArray, Ints, unit_rows
from nodecopy._core.checks import check_choice
from nodecopy._core.linalg import truncated_svd
from nodecopy.errors import InputError
from nodecopy.features.neighbours import NeighbourSearch
from nodecopy.features.scaling import scale_features
from nodecopy.graph import Graph

Matrix = Floats  # of embeddings, a row per node
Result = TypeVar("Result")
EMBEDDING_NAMES = ("expected", "features", "neighbourhoods")
FEATURE_WEIGHT = 0.5  # weight of features beside the neighbourhood in ``"expected"`` searches
N_DECIMALS = 8  # decimals of embeddings that donor rules of copying search in
RIDGE = 1.0  # weight of the penalty in the regression of neighbourhoods on features


class GraphCache(Generic[Result]):
    """Results for the edges and features of the graphs seen last, dropped with these edges or features."""

    def __init__(self, n_results: int = 4) -> None:
        self._entries: deque[tuple[Any, list[Any], list[Result]]] = deque(maxlen=n_results)

    def find(self, graph: Graph, key: Any, compute: Callable[[], Result]) -> Result:
        """Return the result for the edges and features of a graph and a key, computed if it is missing."""
        parts = graph.rows, graph.features
        for its_key, references, found in tuple(self._entries):
            is_same = (reference() is part for reference, part in zip(references, parts, strict=True))
            if found and its_key == key and all(is_same):
                return found[0]
        value = compute()
        result = [value]
        references = [
            ref(part, lambda _: result.clear()) if part is not None else lambda: None for part in parts
        ]
        self._entries.append((key, references, result))
        return value


@dataclass(eq=False)
class SharedEmbedding:
    """An embedding, how often nearest nodes in it were asked for, and these nodes once they were found."""

    embedding: Floats
    n_searches: int = 0
    nearest: IntArray | None = None


_SHARED = GraphCache[SharedEmbedding]()


class NodeEmbeddings:
    """Embeddings of the nodes of a graph, of dimension up to ``rank``, each computed once and on use.

    Rows have length one. Without features that some nodes share, only ``neighbourhoods`` can be computed.
    """

    def __init__(self, graph: Graph, rank: int = 64) -> None:
        self.graph, self.rank = graph, rank

    @cached_property
    def feature_counts(self) -> Ints | None:
        if self.graph.features is None:
            return None
        counts = _count_features(sparse.csr_array(self.graph.features))
        return None if counts.max(initial=0) == 1 else counts

    @cached_property
    def weighted_features(self) -> sparse.csr_array:
        """Return the features, standardised unless they are word counts, weighted by TF-IDF."""
        if self.feature_counts is None:
            has_none = self.graph.features is None
            state = "this one has none" if has_none else "in this one no two nodes share any"
            raise InputError("graph", f"must have features to find similar nodes by them; {state}.")
        return weigh_by_rarity(scale_features(self.graph, purpose="to find similar nodes"))

    @cached_property
    def features(self) -> Floats:
        return _reduce_rank(self.weighted_features, self.rank)

    @cached_property
    def neighbourhoods(self) -> Floats:
        """Return the features within two hops; the nodes within two hops where no two share features."""
        if self.feature_counts is not None:
            return embed_neighbourhoods(self.graph, self.features)
        return embed_connections(self.graph, self.rank)

    @cached_property
    def expected(self) -> Floats:
        return expected_neighbourhoods(self.graph, self.features, self.neighbourhoods)

    def search(self, name: str, *, parameter: str, owner: str) -> NeighbourSearch:
        check_choice(name, f"{parameter} of {owner}", EMBEDDING_NAMES)
        if name != "expected":
            return NeighbourSearch(getattr(self, name), owner=owner)
        features = FEATURE_WEIGHT * self.features
        rows, queries = (np.hstack([part, features]) for part in (self.neighbourhoods, self.expected))
        return NeighbourSearch(rows, queries=queries, owner=owner)


def shared_neighbourhoods(graph: Graph) -> Floats:
    """Return :attr:`NodeEmbeddings.neighbourhoods`, computed once for graphs that differ in labels only."""
    return _find_shared(graph).embedding


def shared_nearest(graph: Graph, n_nearest: int) -> IntArray | None:
    """Return at least so many nodes nearest to each in :func:`shared_neighbourhoods`, in order, itself first.

    The first call returns ``None``, since it is faster to search within the classes of a single graph.
    """
    shared = _find_shared(graph)
    shared.n_searches += 1
    if shared.n_searches > 1 and (shared.nearest is None or shared.nearest.shape[1] < n_nearest):
        search = NeighbourSearch(shared.embedding, owner="shared_nearest")
        nearest = search.nearest(n_nearest)[1].reshape(graph.n_nodes, n_nearest)
        shared.nearest = nearest.astype(np.int32)  # half the memory
    return shared.nearest


def _find_shared(graph: Graph) -> SharedEmbedding:

    def embed() -> SharedEmbedding:
        # Rounded, since nodes that tie would be ordered by errors that depend on the number of threads.
        embedding = np.round(NodeEmbeddings(graph).neighbourhoods, N_DECIMALS)
        embedding.setflags(write=False)
        return SharedEmbedding(embedding)

    return _SHARED.find(graph, None, embed)


def embed_neighbourhoods(graph: Graph, embedding: Floats) -> Floats:
    """Return an embedding summed over each node and its neighbours, twice."""
    for _ in range(2):
        embedding = np.asarray(unit_rows(embedding + graph.adjacency @ embedding))
    return embedding


def embed_connections(graph: Graph, rank: int) -> Floats:
    """Return :func:`embed_neighbourhoods` of the identity, reduced to a rank after the first sum."""
    identity = sparse.eye_array(graph.n_nodes, format="csr")
    once = unit_rows(sparse.csr_array(graph.adjacency.astype(np.float64) + identity))
    reduced = _reduce_rank(once, rank)
    return np.asarray(unit_rows(reduced + graph.adjacency @ reduced))


def expected_neighbourhoods(graph: Graph, features: Floats, neighbourhoods: Floats) -> Floats:
    """Return the neighbourhood expected from each node's features, by ridge regression over other nodes."""
    has_edges = (graph.degrees > 0)[:, None]
    penalty = RIDGE * np.eye(features.shape[1])
    inverse = np.linalg.inv(features.T @ (has_edges * features) + penalty)
    fitted = features @ (inverse @ (features.T @ (has_edges * neighbourhoods)))
    # The closed form of a ridge regression with one row left out.
    leverage = np.einsum("nd,nd->n", features @ inverse, features)[:, None] * has_edges
    return np.asarray(unit_rows((fitted - leverage * neighbourhoods) / (1.0 - leverage)))


def cosines(features: Floats, expected: Floats, first: IntArray, second: IntArray) -> tuple[Floats, Floats]:
    """Return the cosines of pairs of nodes by their features and by their expected neighbourhoods."""
    by_features, by_neighbourhoods = (
        np.einsum("ed,ed->e", part[first], part[second]) for part in (features, expected)
    )
    return by_features, by_neighbourhoods


def weigh_by_rarity(features: Any, rarity: Floats | None = None) -> sparse.csr_array:
    """Return features weighted by TF-IDF, with rows of length one; ``rarity`` may be that of other nodes."""
    weighted = sparse.csr_array(features, dtype=np.float64)
    rarity = rarity_weights(weighted) if rarity is None else rarity
    weighted.data = weighted.data * rarity[weighted.indices]
    return sparse.csr_array(unit_rows(weighted))


def rarity_weights(features: Any) -> Floats:
    """Return the inverse document frequency of each feature: the weights of TF-IDF."""
    counts = _count_features(features)
    return np.asarray(np.log((1.0 + features.shape[0]) / (1.0 + counts)) + 1.0)


def _count_features(features: Any) -> Ints:
    return np.bincount(features.indices[features.data != 0], minlength=features.shape[1])


def _reduce_rank(matrix: sparse.csr_array, rank: int) -> Floats:
    svd = _leading_svd(matrix, rank)
    return np.asarray(matrix.toarray() if svd is None else unit_rows(svd[0] * svd[1]))


def leading_directions(matrix: sparse.csr_array, rank: int) -> Floats | None:
    """Return the directions of the largest singular values as columns; ``None`` if all columns are kept."""
    svd = _leading_svd(matrix, rank)
    return None if svd is None else np.asarray(svd[2].T)


def _leading_svd(matrix: sparse.csr_array, rank: int) -> tuple[Floats, Floats, Floats] | None:
    if matrix.shape[1] <= rank or not matrix.nnz:
        return None
    if matrix.shape[0] <= rank:  # with no more nodes than the rank, all directions are kept
        return np.linalg.svd(matrix.toarray(), full_matrices=False)
    return truncated_svd(matrix, rank)
