"""Data without files; graphs against the libraries that also carry them."""

from __future__ import annotations

import numpy as np
import pytest

from nodecopy import datasets
from nodecopy.datasets.catalogue import DATA


def test_karate_against_networkx() -> None:
    networkx = pytest.importorskip("networkx")
    club = datasets.load("karate")
    reference = networkx.karate_club_graph()
    source, target, _ = club.edges()
    assert club.node_ids.tolist() == list(range(1, 35))
    assert set(zip(source.tolist(), target.tolist(), strict=True)) == {
        (a + 1, b + 1) for a, b in reference.edges
    }
    named = club.named_labels()
    assert named is not None
    assert named.tolist() == [reference.nodes[node]["club"] for node in reference]


def test_digits() -> None:
    pytest.importorskip("sklearn")
    graph = datasets.load("digits")
    assert (graph.n_nodes, graph.n_edges) == (1797, 6309)
    assert graph.features is not None
    assert graph.features.shape == (1797, 64)
    assert graph.labels is not None
    assert np.unique(graph.labels).tolist() == list(range(10))
    source, target, _ = graph.edges()
    assert (graph.labels[source] == graph.labels[target]).mean() > 0.95
    assert graph.degrees.min() >= 5


def test_readers_of_the_library_have_favourite_genres() -> None:
    library = datasets.load("library")
    assert (library.n_users, library.n_items, library.n_interactions) == (300, 72, 3369)
    sizes = library.rows.degrees
    assert (sizes.min(), sizes.max()) == (6, 17)
    genre_of = {title: name for name, titles in DATA["books"].items() for title in titles}
    assert sorted(genre_of) == library.item_ids.tolist()
    genres = sorted(DATA["books"])
    genre = np.array([genres.index(genre_of[title]) for title in library.item_ids.tolist()])
    counts = np.stack([library.matrix[:, genre == number].sum(axis=1) for number in range(6)], axis=1)
    favourites = np.sort(counts, axis=1)[:, ::-1].mean(axis=0) / sizes.mean()
    assert favourites[0] > 0.5  # odds 8 : 3 : 0.5 (four times), without replacement
    assert favourites[1] > 0.2
    # The most popular books of a genre come first in its list.
    assert (
        library.matrix[:, library.item_ids == "Dracula"].sum()
        > library.matrix[:, library.item_ids == "The Monkey's Paw"].sum()
    )
