"""Datasets without files: the karate club, a graph of digits, and the books of invented readers."""

from __future__ import annotations

import numpy as np

from nodecopy._core.optional_imports import import_optional
from nodecopy.features.feature_graphs import graph_from_features
from nodecopy.graph import Graph
from nodecopy.interactions import Interactions

# Zachary (1977), "An information flow model for conflict and fission in small groups": each member
# and the members with higher numbers whom he or she met outside the club.
KARATE = """
1: 2 3 4 5 6 7 8 9 11 12 13 14 18 20 22 32
2: 3 4 8 14 18 20 22 31
3: 4 8 9 10 14 28 29 33
4: 8 13 14
5: 7 11
6: 7 11 17
7: 17
9: 31 33 34
10: 34
14: 34
15: 33 34
16: 33 34
19: 33 34
20: 34
21: 33 34
23: 33 34
24: 26 28 30 33 34
25: 26 28 32
26: 32
27: 30 34
28: 34
29: 32 34
30: 33 34
31: 33 34
32: 33 34
33: 34
"""
MR_HI = (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 17, 18, 20, 22)

# The most popular books of a genre come first.
BOOKS = {
    "adventure": "Treasure Island, Robinson Crusoe, Around the World in Eighty Days, The Three Musketeers, "
    "Kidnapped, King Solomon's Mines, The Count of Monte Cristo, The Call of the Wild, Captain Blood, "
    "The Prisoner of Zenda, The Scarlet Pimpernel, Michael Strogoff",
    "crime": "The Hound of the Baskervilles, The Moonstone, A Study in Scarlet, The Sign of the Four, "
    "The Innocence of Father Brown, The Leavenworth Case, Trent's Last Case, The Thirty-Nine Steps, "
    "The Mystery of the Yellow Room, Arsene Lupin, The Big Bow Mystery, Raffles",
    "fantastic": "The Time Machine, The War of the Worlds, Journey to the Centre of the Earth, "
    "The Invisible Man, Flatland, The Lost World, A Princess of Mars, Looking Backward, Erewhon, "
    "News from Nowhere, The Coming Race, The Night Land",
    "ghosts": "Dracula, Frankenstein, The Turn of the Screw, Carmilla, The Castle of Otranto, The Monk, "
    "Uncle Silas, The King in Yellow, The Great God Pan, Melmoth the Wanderer, The Beetle, The Monkey's Paw",
    "love": "Pride and Prejudice, Jane Eyre, Wuthering Heights, Emma, Persuasion, Sense and Sensibility, "
    "A Room with a View, Far from the Madding Crowd, North and South, Evelina, Villette, Cranford",
    "travel": "The Voyage of the Beagle, Three Men in a Boat, The Innocents Abroad, Eothen, Walden, "
    "Travels with a Donkey, Roughing It, The Oregon Trail, Two Years Before the Mast, Arabia Deserta, "
    "The Worst Journey in the World, A Tramp Abroad",
}
N_READERS = 300


def load_karate() -> Graph:
    """Return Zachary's karate club; the label is the club that a member joined after the split."""
    edges = []
    for line in KARATE.split("\n")[1:-1]:
        member, others = line.split(":")
        edges += [(int(member), int(other)) for other in others.split()]
    source, target = np.array(edges).T
    members = np.arange(1, 35)
    labels = np.where(np.isin(members, MR_HI), "Mr. Hi", "Officer")
    return Graph.from_edges(source, target, node_ids=members, labels=labels)


def load_digits() -> Graph:
    """Return scikit-learn's handwritten digits, each joined with its five nearest neighbours by 64 pixels."""
    data = import_optional("sklearn.datasets", "The digits dataset").load_digits()
    return graph_from_features(data.data.astype(np.float32), n_neighbours=5, labels=data.target)


def load_library() -> Interactions:
    """Return books of invented readers: most from a favourite genre, some from a second, few from others.

    Each reader draws 6 to 17 different books, with odds of 8 : 3 : 0.5 by genre and of 1 / sqrt(rank) within
    a genre. Only uniform numbers are drawn, whose stream is stable across versions of NumPy.
    """
    draws = np.random.default_rng(1859)
    titles = [title for genre in BOOKS.values() for title in genre.split(", ")]
    n_genres, per_genre = len(BOOKS), len(titles) // len(BOOKS)
    favourite = (draws.random(N_READERS) * n_genres).astype(np.int64)
    second = (favourite + 1 + (draws.random(N_READERS) * (n_genres - 1)).astype(np.int64)) % n_genres
    odds = np.full((N_READERS, n_genres), 0.5)
    odds[np.arange(N_READERS), favourite] = 8.0
    odds[np.arange(N_READERS), second] = 3.0
    weights = np.repeat(odds, per_genre, axis=1) / np.sqrt(np.tile(np.arange(1, per_genre + 1), n_genres))
    # Taking the smallest exponential waiting times draws books without replacement by these weights.
    order = np.argsort(-np.log(draws.random(weights.shape)) / weights, axis=1)
    sizes = 6 + (draws.random(N_READERS) * 12).astype(np.int64)
    taken = np.concatenate([row[:size] for row, size in zip(order, sizes, strict=True)])
    readers = np.array([f"reader {number:03d}" for number in range(1, N_READERS + 1)])
    return Interactions.from_table(np.repeat(readers, sizes), np.array(titles)[taken])
