"""The sections of predictions, of doubtful and missing edges, and of recommendations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, stdtrit

from nodecopy._core.arrays import Array, Bools, IntArray, Ints
from nodecopy.graph import UNLABELLED
from nodecopy.interactions import Interactions
from nodecopy.links import LinkPredictor
from nodecopy.metrics.classification import (
    ClassReport,
    confidence_bins,
    ranks_classes,
    reliability_curve,
    scores,
    selective_accuracy,
)
from nodecopy.metrics.ranking import Evaluation
from nodecopy.recommend.base import Contributions
from nodecopy.report.headlines import (
    classification_headline,
    links_headline,
    recommendations_headline,
    round_all,
    round_number,
    to_texts,
)
from nodecopy.report.page import Section

MAX_ROWS = 1000  # nodes in the table of predictions
RARE_SHARE = 0.25  # of the mean size of classes; a class with fewer labels comes first
MIN_CURVE_NODES = 30  # held-out nodes that curves need
N_BINS = 10
SHARES = np.arange(1, 21) / 20  # of the most certain nodes
TAIL = 0.025
N_LINKS = 8  # edges in each list
MAX_HISTORY = 60  # items shown of a user's history
N_SIMILAR_USERS, N_REASONS = 5, 3
EVALUATED_LENGTH = 10  # of the lists that are evaluated on held-out items
MAX_ITEMS = 2000  # with more, an explanation by donors takes seconds


class HeldOutPredictions(NamedTuple):
    """Predictions for nodes of known class in one or more splits."""

    probabilities: Array
    codes: Ints
    uncertainty: Array
    splits: Ints | None = None


def classification_section(
    ids: ArrayLike,
    classes: ArrayLike,
    prediction: Any,
    nodes: ArrayLike,
    *,
    truth: ArrayLike | None = None,
    evaluations: Mapping[str, HeldOutPredictions] | None = None,
    graph: str | None = None,
    text: str = "",
) -> Section:
    """Return the section of predictions: first the nodes that are probably of a rare class, or uncertain."""
    uncertainty, p = prediction.uncertainty(), prediction.probabilities
    codes = np.full(len(p), UNLABELLED) if truth is None else np.asarray(truth)
    sizes = np.bincount(codes[codes != UNLABELLED], minlength=p.shape[1])
    rare = int(sizes.argmin()) if sizes.min() < RARE_SHARE * sizes.mean() else None
    order, rank = np.asarray(nodes), uncertainty.total if rare is None else p[:, rare]
    order = order[np.argsort(-rank[order], kind="stable")]
    n_nodes, order = len(order), order[:MAX_ROWS]
    summaries = [summarise_evaluation(name, held_out) for name, held_out in (evaluations or {}).items()]
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
        "rare": rare,
        "rare_probability": [] if rare is None else round_all(p[order, rare], 4),
        **{kind: round_all(getattr(uncertainty, kind)[order], 4) for kind in kinds},
        "min_curve_nodes": MIN_CURVE_NODES,
        "evaluations": summaries,
        "by_class": _report_classes(to_texts(classes), [*evaluations.values()][-1]) if evaluations else {},
    }


def _report_classes(classes: Sequence[str], held_out: HeldOutPredictions) -> dict[str, dict[str, float]]:
    confusion = np.zeros((len(classes), len(classes)), np.int64)
    np.add.at(confusion, (held_out.codes, held_out.probabilities.argmax(axis=1)), 1)
    return ClassReport(tuple(classes), confusion).by_class()


def join_trials(predictions: Sequence[Any], tests: Sequence[IntArray], codes: IntArray) -> HeldOutPredictions:
    """Return the predictions of one or more trials, each at its test nodes."""
    parts = (
        (prediction.probabilities[test], codes[test], prediction.uncertainty().total[test], 0 * test + number)
        for number, (prediction, test) in enumerate(zip(predictions, tests, strict=True))
    )
    return HeldOutPredictions(*map(np.concatenate, zip(*parts, strict=True)))


def accuracy_interval(n_correct: ArrayLike, n_nodes: ArrayLike) -> tuple[float, float]:
    """Return the interval of 95 % of an accuracy over one or more splits.

    It is Wilson's interval or, for several splits, Student's with the variance between splits if that is
    wider, since the nodes of a split share a trained model.
    """
    correct, sizes = np.atleast_1d(n_correct).astype(float), np.atleast_1d(n_nodes).astype(float)
    correct, sizes = correct[sizes > 0], sizes[sizes > 0]
    n, k, z = float(sizes.sum()), len(sizes), float(ndtri(1 - TAIL))
    share = float(correct.sum()) / n
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    width = z / (1 + z**2 / n) * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    low, high = min(centre - width, share), max(centre + width, share)
    if k > 1:
        variance = k / (k - 1) * float(((correct - share * sizes) ** 2).sum()) / n**2
        width = float(stdtrit(k - 1, 1 - TAIL)) * math.sqrt(variance)
        low, high = min(low, share - width), max(high, share + width)
    return max(low, 0.0), min(high, 1.0)


def summarise_evaluation(name: str, evaluation: HeldOutPredictions) -> dict[str, Any]:
    """Return the scores of a classifier with their interval and, if there are enough nodes, its curves."""
    p, codes, uncertainty, splits = evaluation
    is_correct = p.argmax(axis=1) == codes
    splits = np.zeros(len(codes), np.int64) if splits is None else splits
    (low, high), majority = _interval(is_correct, splits), float(np.bincount(codes).max()) / len(codes)
    has_curves = len(codes) >= MIN_CURVE_NODES
    return {
        "name": name,
        **{key: round_number(value, 4) for key, value in scores(p, codes).items()},
        "interval": [round_number(low, 4), round_number(high, 4)],
        "majority": round_number(majority, 4),
        "has_learned": low > majority or ranks_classes(p, codes),
        "n_nodes": len(codes),
        "n_splits": len(np.unique(splits)),
        "reliability": _reliability(p, codes, splits) if has_curves else [],
        "certainty": _certainty(is_correct, uncertainty, splits) if has_curves else [],
    }


def _interval(is_correct: Bools, splits: IntArray) -> tuple[float, float]:
    return accuracy_interval(np.bincount(splits, is_correct), np.bincount(splits))


def _reliability(p: Array, codes: IntArray, splits: IntArray) -> list[list[float | None]]:
    is_correct = p.argmax(axis=1) == codes
    bins = confidence_bins(p.astype(np.float64), N_BINS)[1]
    intervals = [_interval(is_correct[bins == number], splits[bins == number]) for number in np.unique(bins)]
    curve = zip(*reliability_curve(p, codes, n_bins=N_BINS), intervals, strict=True)
    return [
        round_all([confidence, accuracy, *interval, n_nodes], 4)
        for confidence, accuracy, n_nodes, interval in curve
    ]


def _certainty(is_correct: Bools, uncertainty: Array, splits: IntArray) -> list[list[float | None]]:
    groups = [np.flatnonzero(splits == number) for number in np.unique(splits)]
    accuracies = np.array([selective_accuracy(is_correct[g], uncertainty[g], 1 - SHARES) for g in groups])
    n_kept = np.ceil(SHARES * np.array([[len(group)] for group in groups]) - 1e-9).clip(1)
    n_correct = accuracies * n_kept
    means = n_correct.sum(axis=0) / n_kept.sum(axis=0)
    return [
        round_all([share, mean, *accuracy_interval(n_correct[:, i], n_kept[:, i])], 4)
        for i, (share, mean) in enumerate(zip(SHARES, means, strict=True))
    ]


def links_section(model: LinkPredictor, *, graph: str | None = None, text: str = "") -> Section:
    """Return the section of the least credible and the most probable missing edges, each with its reasons."""
    lists = {}
    for kind, links in (("doubtful", model.doubtful(N_LINKS)), ("missing", model.missing(N_LINKS))):
        lists[kind] = [
            {
                "ends": to_texts([why.first, why.second]),
                "probability": round_number(why.probability, 3),
                "base_rate": round_number(why.base_rate, 3),
                "reasons": [[name, *round_all(numbers, 3)] for name, *numbers in why.reasons],
                "donors": [[*map(str, ends), round_number(p, 3)] for *ends, p in why.donors],
            }
            for why in (model.explain(pair) for pair in links.pairs())
        ]
    return {
        "kind": "links",
        "title": "Doubtful and missing edges",
        "headline": links_headline(lists),
        "text": text,
        "graph": graph,
        "lists": lists,
    }


def recommendations_section(
    interactions: Interactions,
    recommender: Any,
    donors: Any,
    users: ArrayLike,
    *,
    k: int = 10,
    evaluations: Mapping[str, Sequence[Evaluation]] | None = None,
    text: str = "",
) -> Section:
    """Return the section of recommendations for some users, with their likeliest donors."""
    positions = np.asarray(users)
    items, item_scores = recommender.recommend(interactions.user_ids[positions], min(k, interactions.n_items))
    names = _Names({}, {})
    summaries = [
        summarise_lists(name, splits)
        for name, splits in (evaluations or {}).items()
        if len(splits[0].users) >= MIN_CURVE_NODES
    ]
    return {
        "kind": "recommendations",
        "title": "Recommendations",
        "headline": recommendations_headline(summaries),
        "text": text,
        "evaluations": summaries,
        "n_users": interactions.n_users,
        "users": [
            _user_data(interactions, user, donors[[user]], names)
            | {"items": _item_data(interactions, recommender, user, items[row], item_scores[row], names)}
            for row, user in enumerate(positions.tolist())
        ],
        "user_names": list(names.users),
        "item_names": list(names.items),
    }


def summarise_lists(name: str, splits: Sequence[Evaluation]) -> dict[str, Any]:
    """Return the mean recall and NDCG of the first 10 items, each with its interval of 95 %."""
    summary: dict[str, Any] = {"name": name, "k": EVALUATED_LENGTH, "n_users": len(splits[0].users)}
    for metric, interval in (("recall", "interval"), ("ndcg", "ndcg_interval")):
        key = f"{metric}@{EVALUATED_LENGTH}"
        means, users = np.array([split[key] for split in splits]), splits[0].per_user[key]
        width = float(ndtri(1 - TAIL)) * users.std(ddof=1) / math.sqrt(len(users))
        if len(means) > 1:
            quantile = float(stdtrit(len(means) - 1, 1 - TAIL))
            width = max(width, quantile * means.std(ddof=1) / math.sqrt(len(means)))
        low, high = max(means.mean() - width, 0.0), min(means.mean() + width, 1.0)
        summary |= {metric: round_number(means.mean(), 4), interval: round_all([low, high], 4)}
    return summary | {"n_splits": len(splits)}


class _Names(NamedTuple):
    """The numbers of users and items on the page."""

    users: dict[str, int]
    items: dict[str, int]


def _numbers(ids: ArrayLike, names: dict[str, int]) -> list[int]:
    return [names.setdefault(name, len(names)) for name in to_texts(ids)]


def _user_data(interactions: Interactions, user: int, donors: Any, names: _Names) -> dict[str, Any]:
    matrix, own = interactions.matrix, interactions.matrix[[user]].indices
    order = np.argsort(-donors.data, kind="stable")[:N_SIMILAR_USERS]
    likeliest = []
    for donor, probability in zip(donors.indices[order].tolist(), donors.data[order].tolist(), strict=True):
        if donor != user:
            history = matrix[[donor]].indices
            counts = len(history), len(np.intersect1d(own, history))
            number = _numbers(interactions.user_ids[[donor]], names.users)
            likeliest.append([*number, round_number(probability, 3), *counts])
    return {
        "id": str(interactions.user_ids[user]),
        "n_items": len(own),
        "history": _numbers(interactions.item_ids[own[:MAX_HISTORY]], names.items),
        "donors": likeliest,
    }


def _item_data(
    interactions: Interactions, recommender: Any, user: int, items: Any, scores: Any, names: _Names
) -> list[list[Any]]:
    is_explained = recommender.is_linear and interactions.rows.degrees[user] > 0
    has_donors = interactions.n_items <= MAX_ITEMS
    entries = []
    for item, score in zip(items.tolist(), scores.tolist(), strict=True):
        if not math.isfinite(score):
            continue
        entry: list[Any] = [*_numbers([item], names.items), round_number(score, 3)]
        if is_explained and score > 0:
            user_id = interactions.user_ids[user]
            explanation = recommender.explain(user_id, item, N_REASONS, donors=has_donors)
            entry.append(_shares(explanation.items, explanation.score, names.items))
            if has_donors and explanation.donors is not None:
                entry.append(_shares(explanation.donors, explanation.score, names.users))
        entries.append(entry)
    return entries


def _shares(part: Contributions, score: float, names: dict[str, int]) -> list[int]:
    is_positive = part.values > 0
    numbers = _numbers(part.ids[is_positive], names)
    shares = np.rint(1000 * part.values[is_positive] / score).astype(int).tolist()
    return [value for pair in zip(numbers, shares, strict=True) for value in pair]
