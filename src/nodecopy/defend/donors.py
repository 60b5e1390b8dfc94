"""Who may give a neighbourhood to an attacked node: the nearest nodes by some embedding."""

from __future__ import annotations

from typing import Any

from numpy.random import SeedSequence

from nodecopy._core.validation import check_choice
from nodecopy.errors import InputError
from nodecopy.features.neighbours import NeighbourSearch
from nodecopy.features.node_embeddings import EMBEDDING_NAMES, NodeEmbeddings
from nodecopy.generators import GAE, VGAE


def search(
    donors: Any, places: NodeEmbeddings, *, seed: SeedSequence, device: str, owner: str
) -> NeighbourSearch:
    """A search for donors."""
    graph = places.graph
    if isinstance(donors, str):
        check_choice(donors, f"donors of {owner}", [*EMBEDDING_NAMES, "vgae", "gae"])
        if donors in EMBEDDING_NAMES:
            return places.search(donors, owner=owner)
        kind = VGAE if donors == "vgae" else GAE
        model = kind(sampler="raw", device=device)  # nothing is sampled, so nothing is calibrated
        return NeighbourSearch(model.fit(graph, rng=seed).embeddings(), owner=owner)
    given = NeighbourSearch(donors(graph) if callable(donors) else donors, owner=owner)
    if given.matrix.shape[0] != graph.n_nodes:
        raise InputError(
            f"donors of {owner} must have {graph.n_nodes} rows, one per node; got {given.matrix.shape[0]}."
        )
    return given
