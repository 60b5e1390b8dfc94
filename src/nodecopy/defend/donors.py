"""Who may give a neighbourhood to an attacked node: the nearest nodes by some embedding.

Attacks change edges. Embeddings of the attacked graph (the paper's) look for donors from where the
attack has put the victim; features stay where they were.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.csr import IntArray, unit_rows
from nodecopy._core.validation import check_choice
from nodecopy.errors import InputError
from nodecopy.features.neighbours import NeighbourSearch
from nodecopy.generators import GAE, VGAE
from nodecopy.graph import Graph
from nodecopy.nn.lowrank import truncated_svd

Matrix: TypeAlias = NDArray[np.float64]
NAMES = ("expected", "features", "neighbourhoods", "vgae", "gae")
RANK = 64
"""Of the features in which donors are looked for."""
OWN_WEIGHT = 0.5
"""Of the features themselves beside the neighbourhoods that are expected of them."""
RIDGE = 1.0
"""Weight of the penalty in the regression of neighbourhoods on features."""


class Places:
    """Where the nodes of a graph stand, each computed once and on use.

    Features that no two nodes share, or none at all, do not tell who is alike. Who is connected with
    whom still tells whose neighbourhoods are.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @cached_property
    def own(self) -> Matrix:
        """By features; see :func:`feature_embedding`."""
        return feature_embedding(self.graph)

    @cached_property
    def around(self) -> Matrix:
        """By what stands around a node: features or, where they tell nothing, the nodes themselves."""
        return neighbourhoods(self.graph, self.own) if are_shared(self.graph) else connections(self.graph)

    @cached_property
    def expected(self) -> Matrix:
        """By what should stand around a node."""
        return expected_neighbourhoods(self.graph, self.own, self.around)


def search(donors: Any, places: Places, *, seed: SeedSequence, device: str, owner: str) -> NeighbourSearch:
    """A search for donors.

    Parameters
    ----------
    donors
        One of ``NAMES``, an array with one row per node, or a function that makes one of a graph.
    places
        Of the attacked graph.
    seed, device
        For the training of autoencoders.
    owner
        Who asks; error messages name it.
    """
    graph = places.graph
    if isinstance(donors, str):
        check_choice(donors, f"donors of {owner}", NAMES)
        if donors == "features":
            return NeighbourSearch(places.own, owner=owner)
        if donors == "neighbourhoods":
            return NeighbourSearch(places.around, owner=owner)
        if donors == "expected":
            own = OWN_WEIGHT * places.own
            found, wanted = (np.hstack([part, own]) for part in (places.around, places.expected))
            return NeighbourSearch(found, queries=wanted, owner=owner)
        kind = VGAE if donors == "vgae" else GAE
        model = kind(sampler="raw", device=device)  # nothing is sampled, so nothing is calibrated
        return NeighbourSearch(model.fit(graph, rng=seed).embeddings(), owner=owner)
    given = NeighbourSearch(donors(graph) if callable(donors) else donors, owner=owner)
    if given.matrix.shape[0] != graph.n_nodes:
        raise InputError(
            f"donors of {owner} must have {graph.n_nodes} rows, one per node; got {given.matrix.shape[0]}."
        )
    return given


def are_shared(graph: Graph) -> bool:
    """Whether a graph has features and some of them belong to more than one node."""
    return graph.features is not None and _counts(graph.features).max(initial=0) != 1


def feature_embedding(graph: Graph, rank: int = RANK) -> Matrix:
    """Directions of the features, rare ones weighing more (TF-IDF), reduced to a rank; rows of length one."""
    if not are_shared(graph):
        state = "this one has none" if graph.features is None else "in this one no two nodes share any"
        raise InputError(
            f"a graph must have features to tell by them which nodes are alike; {state} (donors may be "
            "found by 'neighbourhoods', 'vgae' or 'gae')."
        )
    features: Any = graph.features
    plain = sparse.csr_array(features, dtype=np.float64)
    weight = np.log((1.0 + graph.n_nodes) / (1.0 + _counts(features))) + 1.0
    plain.data = plain.data * weight[plain.indices]
    return _reduced(unit_rows(plain), rank)


def neighbourhoods(graph: Graph, embedding: Matrix) -> Matrix:
    """What stands around each node: embeddings added up over neighbours and oneself, twice."""
    around = embedding
    for _ in range(2):
        around = np.asarray(unit_rows(around + graph.adjacency @ around))
    return around


def connections(graph: Graph, rank: int = RANK) -> Matrix:
    """The :func:`neighbourhoods` of nodes that have nothing but themselves, reduced to a rank on the way."""
    themselves = sparse.eye_array(graph.n_nodes, format="csr")
    once = _reduced(unit_rows(sparse.csr_array(graph.adjacency.astype(np.float64) + themselves)), rank)
    return np.asarray(unit_rows(once + graph.adjacency @ once))


def expected_neighbourhoods(graph: Graph, embedding: Matrix, around: Matrix) -> Matrix:
    """What should stand around a node with such features, by ridge regression over all the other nodes.

    Each node is left out of its own regression, so its edges, attacked or not, speak through others only.
    """
    teaches = (graph.degrees > 0)[:, None]
    penalty = RIDGE * np.eye(embedding.shape[1])
    inverse = np.linalg.inv(embedding.T @ (teaches * embedding) + penalty)
    fitted = embedding @ (inverse @ (embedding.T @ (teaches * around)))
    # The closed form of leaving out one row of a ridge regression.
    own = np.einsum("nd,nd->n", embedding @ inverse, embedding)[:, None] * teaches
    return np.asarray(unit_rows((fitted - own * around) / (1.0 - own)))


def cosines(own: Matrix, expected: Matrix, first: IntArray, second: IntArray) -> tuple[Matrix, Matrix]:
    """How alike pairs of nodes are: by their features, and by the neighbourhoods that these promise."""
    by_features, by_neighbourhoods = (
        np.einsum("ed,ed->e", part[first], part[second]) for part in (own, expected)
    )
    return by_features, by_neighbourhoods


def _counts(features: Any) -> NDArray[np.int64]:
    """How many nodes have each feature."""
    plain = sparse.csr_array(features)
    return np.bincount(plain.indices[plain.data != 0], minlength=plain.shape[1])


def _reduced(matrix: sparse.csr_array, rank: int) -> Matrix:
    """Rows in the directions of the largest singular values, of length one."""
    if matrix.shape[1] <= rank or not matrix.nnz:
        return np.asarray(matrix.toarray())
    if matrix.shape[0] <= rank:  # few nodes span fewer directions than the rank; none is lost
        u, s, _ = np.linalg.svd(matrix.toarray(), full_matrices=False)
    else:
        u, s, _ = truncated_svd(matrix, rank)
    return np.asarray(unit_rows(u * s))
