"""Donors: the nodes whose neighbourhoods are copied, the nearest neighbours in an embedding.

Attacks change edges. In embeddings of the attacked graph (the paper's choice) a target is where the attack
has moved it; its features, and the neighbourhood expected from them, stay in place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from nodecopy._core.csr import IntArray
from nodecopy._core.random import sample_key, threefry, unit_interval
from nodecopy._core.validation import check_choice
from nodecopy.errors import InputError
from nodecopy.features.neighbours import NeighbourSearch
from nodecopy.features.node_embeddings import EMBEDDING_NAMES, NodeEmbeddings
from nodecopy.generators import GAE, VGAE

DONOR_NAMES = (*EMBEDDING_NAMES, "vgae", "gae")


@dataclass(frozen=True, eq=False)
class DonorFinder:
    """Find the donors of nodes: their nearest neighbours among all other nodes.

    Parameters
    ----------
    search
        A search for nearest neighbours in an embedding; see :func:`build_donor_search`.
    n_donors
        Number of donors of each node.
    """

    search: NeighbourSearch
    n_donors: int

    def find(self, nodes: IntArray) -> NDArray[np.int64]:
        """Return the donors of some nodes, ``[len(nodes), n_donors]``, nearest first."""
        _, donors = self.search.nearest(self.n_donors, of=nodes, include_self=False)
        return donors.reshape(len(nodes), self.n_donors).astype(np.int64)

    def draw(self, nodes: IntArray, n_draws: int, seed: SeedSequence) -> NDArray[np.int64]:
        """Draw donors uniformly with replacement, ``[len(nodes), n_draws]``.

        The draws of a node depend on the seed and its position only, not on the other nodes.
        """
        position, draw = np.broadcast_arrays(nodes[:, None], np.arange(n_draws))
        uniforms = unit_interval(*threefry(sample_key(seed, 0), position, draw))
        return np.take_along_axis(self.find(nodes), (uniforms * self.n_donors).astype(np.int64), axis=1)


def build_donor_search(
    donors: Any, embeddings: NodeEmbeddings, *, seed: SeedSequence, device: str, caller: str
) -> NeighbourSearch:
    """Return the search for donors that the parameter ``donors`` of a defence describes.

    Parameters
    ----------
    donors
        One of ``DONOR_NAMES``, an array with one row per node, or a function that returns one for a graph.
    embeddings
        Embeddings of the attacked graph.
    seed, device
        For the training of autoencoders.
    caller
        Name of the defence in error messages.
    """
    graph = embeddings.graph
    if isinstance(donors, str):
        check_choice(donors, f"donors of {caller}", DONOR_NAMES)
        if donors in EMBEDDING_NAMES:
            try:
                return embeddings.search(donors, parameter="donors", owner=caller)
            except InputError as error:
                if embeddings.feature_counts is not None:
                    raise
                hint = "Donors can be chosen by 'neighbourhoods', 'vgae' or 'gae'."
                raise InputError(f"{error} {hint}") from error
        autoencoder = VGAE if donors == "vgae" else GAE
        model = autoencoder(sampler="raw", device=device)  # no calibration, since no graph is sampled
        return NeighbourSearch(model.fit(graph, rng=seed).embeddings(), owner=caller)
    search = NeighbourSearch(donors(graph) if callable(donors) else donors, owner=caller)
    if search.matrix.shape[0] != graph.n_nodes:
        raise InputError(
            f"donors of {caller} must have {graph.n_nodes} rows, one per node; got {search.matrix.shape[0]}."
        )
    return search
