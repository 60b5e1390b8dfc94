"""What the sections of the report page show, as plain values ready for JSON.

Each function makes one section; :func:`nodecopy.report.page.write` puts them together. Ids and names stay
text all the way: the page never takes them for markup.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.csr import IntArray
from nodecopy._core.random import Rng
from nodecopy.errors import InputError
from nodecopy.graph import UNLABELLED, Graph
from nodecopy.interactions import Interactions
from nodecopy.metrics.classification import reliability, scores
from nodecopy.metrics.comparison import Comparison
from nodecopy.report.layout import places, view
from nodecopy.report.prediction_plots import certainty_curve
from nodecopy.report.repair import Repair

Section = dict[str, Any]

MOST_NODES, MOST_EDGES = 3000, 15_000
"""Of the observed graph that are drawn; of a larger one, a part. Samples have up to twice as many edges."""
MOST_ROWS = 1000
MOST_ITEMS = 60
N_DONORS = 5
MAP_SIZE = 10_000
KNOWN, FROM_SOURCE, FROM_TARGET = 1, 2, 4
"""Marks of a sampled edge: it was observed; the donor of its first end has it; that of its second."""


class Sampled(NamedTuple):
    """A sample and who gave each node its row."""

    graph: Graph
    donors: IntArray


def graphs(
    title: str,
    observed: Graph,
    samples: Mapping[str, Sampled],
    *,
    predicted: ArrayLike | None = None,
    uncertainty: ArrayLike | None = None,
    text: str = "",
    rng: Rng = 0,
) -> Section:
    """The observed graph beside samples on the same places; of a large graph, a part.

    Parameters
    ----------
    title
        Also the name by which a table of nodes may refer to it.
    observed, samples
        On the same nodes; samples by title.
    predicted, uncertainty
        Of every node: the name of its predicted class, and how unsure that is; nodes may be coloured by
        them as well as by their labels.
    text
        What to say of it.
    rng
        Seed of the part and of the places.
    """
    if any(one.graph.n_nodes != observed.n_nodes for one in samples.values()):
        raise InputError("samples must have the nodes of the observed graph to be drawn beside it.")
    shown = view(observed, most_nodes=MOST_NODES, most_edges=MOST_EDGES, rng=rng)
    part = observed.subgraph(shown)
    where = np.rint(MAP_SIZE * places(part, rng=rng)).astype(int)
    colours = []
    if observed.labels is not None:
        colours.append(_classes("label", observed.named_labels(), shown))
    if predicted is not None:
        colours.append(_classes("predicted class", np.asarray(predicted), shown))
    if uncertainty is not None:
        colours.append({"name": "uncertainty", "values": numbers(np.asarray(uncertainty)[shown])})
    return {
        "kind": "graphs",
        "title": title,
        "text": text,
        "n_nodes": observed.n_nodes,
        "directed": observed.directed,
        "ids": texts(part.node_ids),
        "x": where[:, 0].tolist(),
        "y": where[:, 1].tolist(),
        "colours": colours,
        "graphs": [
            {"title": "observed", "n_edges": observed.n_edges, "edges": _pairs(part).ravel().tolist()},
            *(_drawn(name, one, observed, shown) for name, one in samples.items()),
        ],
    }


def _classes(name: str, values: Any, shown: IntArray) -> dict[str, Any]:
    """Class names, and the class of every node that is shown, -1 where unknown."""
    known = values != (UNLABELLED if values.dtype.kind in "iu" else "")
    names = np.unique(values[known])
    codes = np.where(known, np.searchsorted(names, values), UNLABELLED)
    return {"name": name, "classes": texts(names), "codes": codes[shown].tolist()}


def _drawn(title: str, sample: Sampled, observed: Graph, shown: IntArray) -> dict[str, Any]:
    part = sample.graph.subgraph(shown)
    pairs = _pairs(part)
    source, target = shown[pairs].T
    donors = sample.donors
    marks = KNOWN * _joined(observed, source, target) + FROM_SOURCE * _joined(
        observed, donors[source], target
    )
    if not observed.directed:
        marks = marks + FROM_TARGET * _joined(observed, donors[target], source)
    place = np.full(observed.n_nodes, -1)
    place[shown] = np.arange(len(shown))
    ids = observed.node_ids
    return {
        "title": title,
        "n_edges": sample.graph.n_edges,
        "edges": pairs.ravel().tolist(),
        "marks": "".join(map(str, marks.tolist())),
        # The number of a donor that is shown, the id of one that is not.
        "donors": [int(place[d]) if place[d] >= 0 else str(ids[d]) for d in donors[shown].tolist()],
    }


def _pairs(graph: Graph) -> NDArray[np.int64]:
    pairs = np.column_stack([graph.rows.row_numbers, graph.rows.indices]).astype(np.int64)
    return pairs if graph.directed else pairs[pairs[:, 0] < pairs[:, 1]]


def _joined(graph: Graph, source: IntArray, target: IntArray) -> NDArray[np.int64]:
    if not len(source):
        return np.zeros(0, np.int64)
    return np.asarray(graph.adjacency[source, target] > 0).astype(np.int64).ravel()


def statistics(found: Mapping[str, Comparison], *, title: str = "Statistics", text: str = "") -> Section:
    """Each statistic's observed value among those of the samples of one or more models."""
    first = next(iter(found.values()))
    rows = [
        {
            "name": row.name,
            "observed": number(row.observed),
            "samples": [numbers(comparison.values[row.name]) for comparison in found.values()],
        }
        for row in first
        if row.name != "n_nodes"
    ]
    return {"kind": "statistics", "title": title, "text": text, "series": list(found), "rows": rows}


def classification(
    ids: ArrayLike,
    classes: ArrayLike,
    prediction: Any,
    nodes: ArrayLike,
    *,
    truth: ArrayLike | None = None,
    judged: Mapping[str, tuple[ArrayLike, ArrayLike, ArrayLike]] | None = None,
    graph: str | None = None,
    title: str = "Classification",
    text: str = "",
) -> Section:
    """Predictions, the most uncertain first, and how far they can be believed.

    Parameters
    ----------
    ids, classes
        Of all nodes and of all classes.
    prediction
        What a classifier predicted: ``probabilities`` and ``uncertainty()``.
    nodes
        Whose predictions to show.
    truth
        The class number of every node, -1 where unknown.
    judged
        For each classifier the probabilities of some nodes whose class is known, their class numbers and
        their uncertainty.
    graph
        Title of the section in which these nodes are drawn.
    title, text
        What to say of it.
    """
    chosen, unsure, p = np.asarray(nodes), prediction.uncertainty(), np.asarray(prediction.probabilities)
    chosen = chosen[np.argsort(-unsure.total[chosen], kind="stable")]
    known = np.full(len(p), UNLABELLED) if truth is None else np.asarray(truth)
    n_all, chosen = len(chosen), chosen[:MOST_ROWS]
    return {
        "kind": "classification",
        "title": title,
        "text": text,
        "graph": graph,
        "classes": texts(classes),
        "n_nodes": n_all,
        "ids": texts(np.asarray(ids)[chosen]),
        "predicted": p[chosen].argmax(axis=1).tolist(),
        "truth": known[chosen].tolist(),
        "probability": numbers(p[chosen].max(axis=1), 4),
        **{kind: numbers(getattr(unsure, kind)[chosen], 4) for kind in ("total", "aleatoric", "epistemic")},
        "judged": [_judged(name, *one) for name, one in (judged or {}).items()],
    }


def _judged(name: str, probabilities: ArrayLike, codes: ArrayLike, uncertainty: ArrayLike) -> dict[str, Any]:
    confidence, accuracy, n_nodes = reliability(probabilities, codes, n_bins=10)
    correct = np.asarray(probabilities).argmax(axis=1) == np.asarray(codes)
    return {
        "name": name,
        **{key: number(value, 4) for key, value in scores(probabilities, codes).items()},
        "n_nodes": len(correct),
        "reliability": [numbers(row, 4) for row in zip(confidence, accuracy, n_nodes, strict=True)],
        "certainty": [numbers(row, 4) for row in zip(*certainty_curve(correct, uncertainty), strict=True)],
    }


def attack(
    repair: Repair,
    ids: ArrayLike,
    *,
    images: NDArray[Any] | None = None,
    title: str = "One attacked node",
    text: str = "",
) -> Section:
    """An attacked node before, after, and with copied neighbours.

    ``images`` [n_nodes, height, width] stand for nodes where they are given.
    """
    names, codes = np.asarray(ids), repair.codes
    around = {node for stage in repair.stages for node, _ in stage.neighbours} | {repair.node}
    order = {node: place for place, node in enumerate(sorted(around))}
    nodes: list[dict[str, Any]] = [{"id": str(names[node]), "class": int(codes[node])} for node in order]
    if images is not None:
        scale = 255 / max(float(images.max()), 1e-9)
        for node, entry in zip(order, nodes, strict=True):
            entry["image"] = np.rint(scale * images[node]).astype(int).tolist()
    return {
        "kind": "attack",
        "title": title,
        "text": text,
        "node": order[repair.node],
        "nodes": nodes,
        "classes": texts(repair.classes),
        "donors": texts(names[repair.donors]),
        "stages": [
            {
                "name": stage.name,
                "neighbours": [[order[node], kind] for node, kind in stage.neighbours],
                "probabilities": numbers(stage.probabilities, 4),
            }
            for stage in repair.stages
        ],
    }


def recommendations(
    interactions: Interactions,
    recommender: Any,
    donors: Any,
    users: ArrayLike,
    *,
    k: int = 10,
    title: str = "Recommendations",
    text: str = "",
) -> Section:
    """What some users may like, and the users whose rows were copied.

    Parameters
    ----------
    interactions, recommender
        Who took what, and a recommender fitted to it.
    donors
        Sparse ``[n_users, n_users]``: probability that one copies another's row.
    users
        Their numbers.
    k
        Items for each.
    title, text
        What to say of it.
    """
    chosen = np.asarray(users)
    items, best = recommender.recommend(interactions.user_ids[chosen], min(k, interactions.n_items))
    lent = donors[chosen]
    each = [
        _user(interactions, int(user), lent[[place]], items[place], best[place])
        for place, user in enumerate(chosen.tolist())
    ]
    about = {"kind": "recommendations", "title": title, "text": text}
    return {**about, "n_users": interactions.n_users, "users": each}


def _user(
    interactions: Interactions, user: int, lent: Any, items: NDArray[Any], best: NDArray[Any]
) -> dict[str, Any]:
    matrix, names = interactions.matrix, interactions.item_ids
    own = matrix[[user]].indices
    first = np.argsort(-lent.data, kind="stable")[:N_DONORS]
    rows = [
        (int(lent.indices[place]), float(lent.data[place])) for place in first if lent.indices[place] != user
    ]
    shelves = {donor: matrix[[donor]].indices for donor, _ in rows}
    owners = {donor: set(names[shelf].tolist()) for donor, shelf in shelves.items()}
    return {
        "id": str(interactions.user_ids[user]),
        "n_items": len(own),
        "history": texts(names[own[:MOST_ITEMS]]),
        "items": [
            {
                "id": str(item),
                "score": number(score, 4),
                "donors": [place for place, donor in enumerate(owners) if item in owners[donor]],
            }
            for item, score in zip(items.tolist(), best.tolist(), strict=True)
            if math.isfinite(score)
        ],
        "donors": [
            {
                "id": str(interactions.user_ids[donor]),
                "probability": number(probability, 4),
                "n_items": len(shelves[donor]),
                "n_common": len(np.intersect1d(own, shelves[donor])),
            }
            for donor, probability in rows
        ],
    }


def texts(values: ArrayLike) -> list[str]:
    """Ids and names as text."""
    return [str(value) for value in np.asarray(values).tolist()]


def number(value: Any, digits: int = 6) -> float | None:
    """A number with so many significant digits; None where undefined, since JSON knows no NaN."""
    return float(f"{value:.{digits}g}") if math.isfinite(value) else None


def numbers(values: Sequence[Any] | NDArray[Any], digits: int = 6) -> list[float | None]:
    """The same of many."""
    return [number(float(value), digits) for value in values]
