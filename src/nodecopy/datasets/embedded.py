"""Datasets without files: the karate club, a graph of digits, and the books of invented readers."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import numpy as np

from nodecopy._core.optional_imports import import_optional
from nodecopy.features.feature_graphs import graph_from_features
from nodecopy.graph import Graph
from nodecopy.interactions import Interactions

DATA = tomllib.loads(files("nodecopy.datasets").joinpath("embedded.toml").read_text())
N_READERS = 300


def load_karate() -> Graph:
    """Return Zachary's karate club; the label is the club that a member joined after the split."""
    karate = DATA["karate"]
    edges = [(int(member), other) for member, others in karate["friends"].items() for other in others]
    source, target = np.array(edges).T
    members = np.arange(1, 35)
    labels = np.where(np.isin(members, karate["mr_hi"]), "Mr. Hi", "Officer")
    return Graph.from_edges(source, target, node_ids=members, labels=labels)


def load_digits() -> Graph:
    """Return scikit-learn's handwritten digits, each connected to its 5 nearest neighbours by 64 pixels."""
    data = import_optional("sklearn.datasets", "The digits dataset").load_digits()
    return graph_from_features(data.data.astype(np.float32), n_neighbours=5, labels=data.target)


def load_library() -> Interactions:
    """Return books of invented readers: most from a favourite genre, some from a second, few from others.

    Each reader draws 6 to 17 different books, with odds of 8 : 3 : 0.5 by genre and of 1 / sqrt(rank) within
    a genre. Only uniform numbers are drawn, whose stream is stable across versions of NumPy.
    """
    draws = np.random.default_rng(1859)
    genres = DATA["books"]
    titles = [title for genre in genres.values() for title in genre]
    n_genres, per_genre = len(genres), len(titles) // len(genres)
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
