"""The section of predictions, with calibration and accuracy on held-out nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nodecopy.graph import UNLABELLED
from nodecopy.report.evaluations import MIN_CURVE_NODES, Evaluation, summarise_evaluations
from nodecopy.report.headlines import classification_headline
from nodecopy.report.page_sections import Section
from nodecopy.report.rounding import round_all, to_texts

MAX_ROWS = 1000
"""Nodes in the table of predictions."""


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
        Predictions on held-out nodes by classifier; the headline is about the last one.
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
    summaries = summarise_evaluations(evaluations)
    kinds = ("total", "aleatoric", "epistemic")
    return {
        "kind": "classification",
        "title": "Classification",
        "headline": classification_headline(summaries),
        "text": text,
        "graph": graph,
        "classes": to_texts(classes),
        "n_nodes": n_nodes,
        "ids": to_texts(np.asarray(ids)[order]),
        "predicted": p[order].argmax(axis=1).tolist(),
        "truth": codes[order].tolist(),
        "probability": round_all(p[order].max(axis=1), 4),
        **{kind: round_all(getattr(uncertainty, kind)[order], 4) for kind in kinds},
        "min_curve_nodes": MIN_CURVE_NODES,
        "evaluations": summaries,
    }
