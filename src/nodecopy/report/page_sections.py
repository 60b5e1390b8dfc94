"""The sections of the report page, as plain values that are written as JSON.

Each function returns one section; :func:`nodecopy.report.page.write_page` writes them. Ids and names stay
text: the page never interprets them as markup.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.csr import IntArray
from nodecopy._core.random import Rng
from nodecopy.copying import NodeCopying
from nodecopy.errors import InputError
from nodecopy.graph import UNLABELLED, Graph
from nodecopy.metrics.classification import reliability_curve, scores
from nodecopy.metrics.comparison import Comparison
from nodecopy.report.attacked_node import AttackedNode
from nodecopy.report.layout import choose_nodes, compute_layout
from nodecopy.report.prediction_plots import certainty_curve

Section = dict[str, Any]

MAX_NODES, MAX_EDGES = 3000, 15_000
"""Drawn of the observed graph. Samples have up to twice as many edges."""
MAX_ROWS = 1000
"""Nodes in the table of predictions."""
MAP_SIZE = 10_000
"""Positions of nodes are integers from 0 to this."""
OBSERVED, FROM_SOURCE, FROM_TARGET = 1, 2, 4
"""Flags of a sampled edge: it was observed; it is copied from the donor of its source; of its target."""


class CopiedSample(NamedTuple):
    """A sampled graph and the donor of each node."""

    graph: Graph
    donors: IntArray


def copied_samples(model: NodeCopying[Graph], n_samples: int, seed: int) -> Iterator[CopiedSample]:
    """Yield the first samples of a fitted model with their donors."""
    for number, sample in enumerate(model.sample_many(n_samples, rng=seed)):
        yield CopiedSample(sample, model.draw_donors(rng=seed, sample=number))


def graphs_section(
    title: str,
    observed: Graph,
    samples: Mapping[str, CopiedSample],
    *,
    predicted: ArrayLike | None = None,
    uncertainty: ArrayLike | None = None,
    text: str = "",
    rng: Rng = 0,
) -> Section:
    """Return the section of the observed graph beside samples, all with one layout; a part of a large graph.

    Parameters
    ----------
    title
        Title of the section, by which a table of nodes refers to it.
    observed, samples
        The observed graph, and samples on its nodes by title.
    predicted, uncertainty
        The name of the predicted class and the uncertainty of every node. Nodes can be coloured by them as
        well as by their labels.
    text
        The introduction of the section.
    rng
        Seed of the choice of drawn nodes and of the layout.
    """
    if any(sample.graph.n_nodes != observed.n_nodes for sample in samples.values()):
        raise InputError(
            f"samples must have the {observed.n_nodes} nodes of the observed graph; got "
            f"{', '.join(str(sample.graph.n_nodes) for sample in samples.values())} nodes."
        )
    nodes = choose_nodes(observed, max_nodes=MAX_NODES, max_edges=MAX_EDGES, rng=rng)
    part = observed.subgraph(nodes)
    positions = np.rint(MAP_SIZE * compute_layout(part, rng=rng)).astype(int)
    colours = []
    if observed.labels is not None:
        colours.append(_class_colours("label", observed.named_labels(), nodes))
    if predicted is not None:
        colours.append(_class_colours("predicted class", np.asarray(predicted), nodes))
    if uncertainty is not None:
        colours.append({"name": "uncertainty", "values": round_all(np.asarray(uncertainty)[nodes])})
    return {
        "kind": "graphs",
        "title": title,
        "text": text,
        "n_nodes": observed.n_nodes,
        "directed": observed.directed,
        "ids": to_texts(part.node_ids),
        "x": positions[:, 0].tolist(),
        "y": positions[:, 1].tolist(),
        "colours": colours,
        "graphs": [
            {"title": "observed", "n_edges": observed.n_edges, "edges": _edge_pairs(part).ravel().tolist()},
            *(_sample_data(name, sample, observed, nodes) for name, sample in samples.items()),
        ],
    }


def _class_colours(name: str, values: Any, nodes: IntArray) -> dict[str, Any]:
    """Return the class names, and the class number of every drawn node, -1 where it is unknown."""
    is_labelled = values != (UNLABELLED if values.dtype.kind in "iu" else "")
    names = np.unique(values[is_labelled])
    codes = np.where(is_labelled, np.searchsorted(names, values), UNLABELLED)
    return {"name": name, "classes": to_texts(names), "codes": codes[nodes].tolist()}


def _sample_data(title: str, sample: CopiedSample, observed: Graph, nodes: IntArray) -> dict[str, Any]:
    pairs = _edge_pairs(sample.graph.subgraph(nodes))
    source, target = nodes[pairs].T
    donors = sample.donors
    flags = OBSERVED * _are_edges(observed, source, target)
    flags = flags + FROM_SOURCE * _are_edges(observed, donors[source], target)
    if not observed.directed:
        flags = flags + FROM_TARGET * _are_edges(observed, donors[target], source)
    number = np.full(observed.n_nodes, -1)
    number[nodes] = np.arange(len(nodes))
    ids = observed.node_ids
    return {
        "title": title,
        "n_edges": sample.graph.n_edges,
        "edges": pairs.ravel().tolist(),
        "flags": "".join(map(str, flags.tolist())),
        # The number of a donor that is drawn, the id of a donor that is not.
        "donors": [int(number[d]) if number[d] >= 0 else str(ids[d]) for d in donors[nodes].tolist()],
    }


def _edge_pairs(graph: Graph) -> NDArray[np.int64]:
    pairs = np.column_stack([graph.rows.row_numbers, graph.rows.indices]).astype(np.int64)
    return pairs if graph.directed else pairs[pairs[:, 0] < pairs[:, 1]]


def _are_edges(graph: Graph, source: IntArray, target: IntArray) -> NDArray[np.int64]:
    if not len(source):
        return np.zeros(0, np.int64)
    return np.asarray(graph.adjacency[source, target] > 0).astype(np.int64).ravel()


def statistics_section(comparisons: Mapping[str, Comparison], *, text: str = "") -> Section:
    """Return the section of observed statistics and their values in the samples of one or more models.

    A statistic outside of the range of samples has a sentence that says so.
    """
    outside = {name: comparison.outside for name, comparison in comparisons.items()}
    rows = [
        {
            "name": row.name,
            "observed": round_number(row.observed),
            "samples": [round_all(comparison.values[row.name]) for comparison in comparisons.values()],
            "intervals": [round_all(comparison[row.name][4:], 3) for comparison in comparisons.values()],
            "outside": [
                sentences[row.name] if len(outside) == 1 else f"{name}: {sentences[row.name]}"
                for name, sentences in outside.items()
                if row.name in sentences
            ],
        }
        for row in next(iter(comparisons.values()))
        if row.name != "n_nodes"
    ]
    series = list(comparisons)
    return {"kind": "statistics", "title": "Statistics", "text": text, "series": series, "rows": rows}


class Evaluation(NamedTuple):
    """Predictions for nodes of known class: probabilities, class numbers and uncertainty."""

    probabilities: NDArray[Any]
    codes: NDArray[np.int64]
    uncertainty: NDArray[Any]


def join_trials(predictions: Sequence[Any], tests: Sequence[IntArray], codes: IntArray) -> Evaluation:
    """Return the predictions of one or more trials, each at its test nodes."""
    parts = (
        (prediction.probabilities[test], codes[test], prediction.uncertainty().total[test])
        for prediction, test in zip(predictions, tests, strict=True)
    )
    return Evaluation(*map(np.concatenate, zip(*parts, strict=True)))


def classification_section(
    ids: ArrayLike,
    classes: ArrayLike,
    prediction: Any,
    nodes: ArrayLike,
    *,
    truth: ArrayLike | None = None,
    evaluations: Mapping[str, Evaluation] | None = None,
    graph: str | None = None,
    text: str = "",
) -> Section:
    """Return the section of predictions, the most uncertain first, with calibration and accuracy.

    Parameters
    ----------
    ids, classes
        Ids of all nodes and names of all classes.
    prediction
        The prediction of a classifier, with ``probabilities`` and ``uncertainty()``.
    nodes
        Positions of the nodes in the table.
    truth
        The class number of every node, -1 where it is unknown.
    evaluations
        Predictions on held-out nodes by classifier.
    graph
        Title of the section in which the nodes are drawn.
    text
        The introduction of the section.
    """
    uncertainty, p = prediction.uncertainty(), np.asarray(prediction.probabilities)
    order = np.asarray(nodes)
    order = order[np.argsort(-uncertainty.total[order], kind="stable")]
    codes = np.full(len(p), UNLABELLED) if truth is None else np.asarray(truth)
    n_nodes, order = len(order), order[:MAX_ROWS]
    kinds = ("total", "aleatoric", "epistemic")
    return {
        "kind": "classification",
        "title": "Classification",
        "text": text,
        "graph": graph,
        "classes": to_texts(classes),
        "n_nodes": n_nodes,
        "ids": to_texts(np.asarray(ids)[order]),
        "predicted": p[order].argmax(axis=1).tolist(),
        "truth": codes[order].tolist(),
        "probability": round_all(p[order].max(axis=1), 4),
        **{kind: round_all(getattr(uncertainty, kind)[order], 4) for kind in kinds},
        "evaluations": [_evaluation_data(name, *values) for name, values in (evaluations or {}).items()],
    }


def _evaluation_data(
    name: str, probabilities: ArrayLike, codes: ArrayLike, uncertainty: ArrayLike
) -> dict[str, Any]:
    curve = zip(*reliability_curve(probabilities, codes, n_bins=10), strict=True)
    is_correct = np.asarray(probabilities).argmax(axis=1) == np.asarray(codes)
    certainty = zip(*certainty_curve(is_correct, uncertainty), strict=True)
    return {
        "name": name,
        **{key: round_number(value, 4) for key, value in scores(probabilities, codes).items()},
        "n_nodes": len(is_correct),
        "reliability": [round_all(point, 4) for point in curve],
        "certainty": [round_all(point, 4) for point in certainty],
    }


def attack_section(
    attacked: AttackedNode,
    ids: ArrayLike,
    *,
    images: NDArray[Any] | None = None,
    noun: str = "node",
) -> Section:
    """Return the section of a node before an attack, after it, and with copied neighbours.

    ``images`` [n_nodes, height, width], where they are given, are drawn in place of the nodes; ``noun`` says
    what the nodes are.
    """
    names, codes = np.asarray(ids), attacked.codes
    text = (
        f"Predictions of a GCN for {noun} {names[attacked.node]}: on the clean graph, after FGA flipped "
        f"{attacked.n_flips} edges and the GCN was trained on the attacked graph, and with the "
        f"neighbourhoods of similar {noun}s in place of its own."
    )
    neighbours = {node for stage in attacked.stages for node, _ in stage.neighbours}
    number = {node: position for position, node in enumerate(sorted(neighbours | {attacked.node}))}
    nodes: list[dict[str, Any]] = [{"id": str(names[node]), "class": int(codes[node])} for node in number]
    if images is not None:
        scale = 255 / max(float(images.max()), 1e-9)
        for node, entry in zip(number, nodes, strict=True):
            entry["image"] = np.rint(scale * images[node]).astype(int).tolist()
    return {
        "kind": "attack",
        "title": f"One attacked {noun}",
        "text": text,
        "node": number[attacked.node],
        "nodes": nodes,
        "classes": to_texts(attacked.classes),
        "donors": to_texts(names[attacked.donors]),
        "stages": [
            {
                "name": stage.name,
                "neighbours": [[number[node], origin] for node, origin in stage.neighbours],
                "probabilities": round_all(stage.probabilities, 4),
            }
            for stage in attacked.stages
        ],
    }


def to_texts(values: ArrayLike) -> list[str]:
    """Return ids or names as text."""
    return [str(value) for value in np.asarray(values).tolist()]


def round_number(value: Any, digits: int = 6) -> float | None:
    """Round to a number of significant digits; ``None`` where the value is not finite, as JSON has no NaN."""
    return float(f"{value:.{digits}g}") if math.isfinite(value) else None


def round_all(values: Sequence[Any] | NDArray[Any], digits: int = 6) -> list[float | None]:
    """Round each of some values by :func:`round_number`."""
    return [round_number(float(value), digits) for value in values]
