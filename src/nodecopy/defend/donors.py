"""Who may give a neighbourhood to an attacked node: the nearest nodes by some embedding.

Attacks change edges. Embeddings of the attacked graph (the paper's) look for donors from where the
attack has put the victim; features stay where they were.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import svds

from nodecopy import checks
from nodecopy.errors import InputError
from nodecopy.generators import GAE, VGAE
from nodecopy.graph import Graph
from nodecopy.neighbours import Search

Matrix: TypeAlias = NDArray[np.float64]
NAMES = ("expected", "features", "neighbourhoods", "vgae", "gae")
RANK = 64
"""Of the features in which donors are looked for."""
OWN_WEIGHT = 0.5
"""Of the features themselves beside the neighbourhoods that are expected of them."""
RIDGE = 1.0
"""Weight of the penalty in the regression of neighbourhoods on features."""


def search(donors: Any, graph: Graph, *, seed: SeedSequence, device: str, owner: str) -> Search:
    """A search for donors.

    Parameters
    ----------
    donors
        One of ``NAMES``, an array with one row per node, or a function that makes one of a graph.
    graph
        The attacked graph.
    seed, device
        For the training of autoencoders.
    owner
        Who asks; error messages name it.
    """
    if isinstance(donors, str):
        checks.choice(donors, f"donors of {owner}", NAMES)
        if donors in ("vgae", "gae"):
            model = VGAE(device=device) if donors == "vgae" else GAE(device=device)
            return Search(model.fit(graph, rng=seed).embeddings(), owner=owner)
        own = feature_embedding(graph)
        if donors == "features":
            return Search(own, owner=owner)
        around = neighbourhoods(graph, own)
        if donors == "neighbourhoods":
            return Search(around, owner=owner)
        expected = expected_neighbourhoods(graph, own, around)
        places, queries = (np.hstack([part, OWN_WEIGHT * own]) for part in (around, expected))
        return Search(places, queries=queries, owner=owner)
    found = Search(donors(graph) if callable(donors) else donors, owner=owner)
    if found.matrix.shape[0] != graph.n_nodes:
        raise InputError(
            f"donors of {owner} must have {graph.n_nodes} rows, one per node; got {found.matrix.shape[0]}."
        )
    return found


def feature_embedding(graph: Graph, rank: int = RANK) -> Matrix:
    """Directions of the features, rare ones weighing more (TF-IDF), reduced to a rank; rows of length one."""
    if graph.features is None:
        raise InputError("a graph must have features to find donors by them; this one has none.")
    features: Any = graph.features
    plain = sparse.csr_array(features, dtype=np.float64)
    there = np.bincount(plain.indices[plain.data != 0], minlength=plain.shape[1])
    weight = np.log((1.0 + graph.n_nodes) / (1.0 + there)) + 1.0
    plain.data = plain.data * weight[plain.indices]
    weighted = _unit(plain)
    if weighted.shape[1] <= rank or not weighted.nnz:
        return np.asarray(weighted.toarray())
    if weighted.shape[0] <= rank:  # few nodes span fewer directions than the rank; none is lost
        u, s, _ = np.linalg.svd(weighted.toarray(), full_matrices=False)
        return np.asarray(_unit(u * s))
    start = np.random.default_rng(0).uniform(0.5, 1.0, min(weighted.shape))
    u, s, _ = svds(weighted, k=rank, v0=start)
    return np.asarray(_unit(u * s))


def neighbourhoods(graph: Graph, embedding: Matrix) -> Matrix:
    """What stands around each node: embeddings added up over neighbours and oneself, twice."""
    around = embedding
    for _ in range(2):
        around = np.asarray(_unit(around + graph.adjacency @ around))
    return around


def expected_neighbourhoods(graph: Graph, embedding: Matrix, around: Matrix) -> Matrix:
    """What should stand around a node with such features, by ridge regression over all the other nodes.

    Each node is left out of its own regression, so its own edges, attacked or not, have no say.
    """
    teaches = (graph.degrees > 0)[:, None]
    penalty = RIDGE * np.eye(embedding.shape[1])
    inverse = np.linalg.inv(embedding.T @ (teaches * embedding) + penalty)
    fitted = embedding @ (inverse @ (embedding.T @ (teaches * around)))
    # The closed form of leaving out one row of a ridge regression.
    own = np.einsum("nd,nd->n", embedding @ inverse, embedding)[:, None] * teaches
    return np.asarray(_unit((fitted - own * around) / (1.0 - own)))


def _unit(matrix: Any) -> Any:
    """Rows of length one; rows of zeros stay."""
    length = np.sqrt(np.asarray((matrix * matrix).sum(axis=1)))
    scale = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)
    if isinstance(matrix, sparse.csr_array):
        scaled = matrix.copy()
        scaled.data = scaled.data * np.repeat(scale, np.diff(scaled.indptr))
        return scaled
    return matrix * scale[:, None]
