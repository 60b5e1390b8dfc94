"""The sections of predictions, of links, of an attacked node and its correction, and of recommendations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, stdtrit

from nodecopy._core.arrays import Array, Bools, IntArray, Ints, Singles
from nodecopy._core.random import Rng, generator
from nodecopy.errors import InputError
from nodecopy.graph import UNLABELLED, Graph
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
from nodecopy.report.page import (
    Section,
    attack_headline,
    classification_headline,
    links_headline,
    recommendations_headline,
    round_all,
    round_number,
    to_texts,
)

if TYPE_CHECKING:
    from nodecopy.defend import NodeReport

MAX_ROWS = 1000  # nodes in the table of predictions
RARE_SHARE = 0.25  # of the mean size of classes; a class with fewer labels comes first
MIN_CURVE_NODES = 30  # held-out nodes that curves need
N_BINS = 10
SHARES = np.arange(1, 21) / 20  # of the most certain nodes
TAIL = 0.025
N_LINKS = 8  # edges in each list
PREFERRED_DEGREE, MAX_DEGREE = 3, 8  # of the attacked node
MAX_ATTACKED = 20
N_DONORS, N_DONORS_SHOWN = 10, 3
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


class Stage(NamedTuple):
    """Neighbours with the origin of each edge (own, added, copied), and the class probabilities."""

    name: str
    neighbours: list[tuple[int, str]]
    probabilities: Singles


@dataclass(frozen=True, eq=False)
class AttackedNode:
    """A node before an attack, after it, and with copied neighbours."""

    node: int
    n_flips: int
    n_attacked: int
    classes: Array
    codes: Ints
    donors: IntArray
    stages: tuple[Stage, ...]
    evidence: NodeReport | None = None


def attack_and_correct(graph: Graph, train: ArrayLike, candidates: ArrayLike, *, rng: Rng) -> AttackedNode:
    """Attack nodes by FGA until one is misclassified, and correct it by node copying and by all evidence."""
    from nodecopy.classify import GCN
    from nodecopy.defend import EvidenceDefence

    fitted = GCN().fit(graph, train, rng=rng)
    clean, codes = fitted.predict_proba(), fitted.trial_.codes
    positions = graph.positions(candidates, "candidates")
    degrees, is_correct = graph.degrees[positions], clean[positions].argmax(axis=1) == codes[positions]
    suitable = positions[is_correct & (degrees > 0) & (degrees <= MAX_DEGREE)]
    if not len(suitable):
        needed = f"a node with 1 to {MAX_DEGREE} neighbours that a GCN classifies correctly"
        raise InputError(f"an attack needs {needed}; none of the {len(positions)} candidates is one.")
    degrees = graph.degrees[suitable]
    suitable = suitable[degrees >= min(PREFERRED_DEGREE, degrees.max())]
    nodes = generator(rng).permutation(suitable)[:MAX_ATTACKED].tolist()
    chosen, n_attacked = (np.inf, nodes[0], graph, None), 0
    for node in nodes:
        n_attacked += 1
        attacked, defence = _attack(graph, node, train, rng)
        probabilities = defence.undefended_proba()[node]
        change = probabilities[codes[node]] - clean[node, codes[node]]
        is_misled = probabilities.argmax() != codes[node]
        if is_misled or change < chosen[0]:
            chosen = change, node, attacked, defence
        if is_misled:
            break
    _, node, attacked, defence = chosen
    stages, donors = _stages(graph, node, attacked, defence, clean)
    by_evidence = EvidenceDefence(GCN(), retrain=True)
    evidence = by_evidence.fit(attacked, train, targets=[node], rng=rng).explain([node])[0]
    n_flips = int(graph.degrees[node])
    return AttackedNode(node, n_flips, n_attacked, fitted.classes_, codes, donors, stages, evidence)


def _attack(graph: Graph, node: int, train: ArrayLike, rng: Rng) -> tuple[Graph, Any]:
    from nodecopy.attacks import FGA
    from nodecopy.defend import CopyingDefence

    attacked = FGA().attack(graph, [node], budget="degree", train=train, rng=rng).apply(graph)
    defence = CopyingDefence(n_donors=min(N_DONORS, graph.n_nodes - 1))
    return attacked, defence.fit(attacked, train, targets=[node], rng=rng)


def _stages(
    graph: Graph, node: int, attacked: Graph, defence: Any, clean: Singles
) -> tuple[tuple[Stage, ...], IntArray]:
    own, rewired = graph.adjacency[[node]].indices, attacked.adjacency[[node]].indices
    donors = defence.nearest_donors([node])[0][:N_DONORS_SHOWN]
    copied = np.setdiff1d(attacked.adjacency[donors].indices, [node])
    edges = _edges(added=np.setdiff1d(rewired, own), own=np.intersect1d(rewired, own))
    stages = (
        Stage("before", _edges(own=np.sort(own)), clean[node]),
        Stage("attacked", edges, defence.undefended_proba()[node]),
        Stage("with copied neighbours", _edges(copied=copied), defence.predict_proba()[node]),
    )
    return stages, donors


def _edges(**nodes: IntArray) -> list[tuple[int, str]]:
    return [(node, origin) for origin, neighbours in nodes.items() for node in neighbours.tolist()]


def attack_section(
    attacked: AttackedNode, ids: ArrayLike, *, images: Array | None = None, noun: str = "node"
) -> Section:
    """Return the section of an attacked node."""
    names, codes, classes = np.asarray(ids), attacked.codes, to_texts(attacked.classes)
    text = (
        f"Predictions of a GCN for {noun} {names[attacked.node]}: on the clean graph, after FGA flipped "
        f"{attacked.n_flips} edges and the GCN was trained on the attacked graph, and with the "
        f"neighbourhoods of similar {noun}s in place of its own. {_describe_choice(attacked, noun)}"
    ).rstrip()
    probabilities = [stage.probabilities.tolist() for stage in attacked.stages]
    if attacked.evidence is not None:
        probabilities.append(list(attacked.evidence.probabilities.values()))
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
        "headline": attack_headline(classes, int(codes[attacked.node]), probabilities, attacked.n_flips),
        "text": text,
        "node": number[attacked.node],
        "nodes": nodes,
        "classes": classes,
        "donors": to_texts(names[attacked.donors]),
        "stages": [
            {
                "name": stage.name,
                "neighbours": [[number[node], origin] for node, origin in stage.neighbours],
                "probabilities": round_all(stage.probabilities, 4),
            }
            for stage in attacked.stages
        ],
        "evidence": _describe_evidence(attacked, names),
    }


def _describe_evidence(attacked: AttackedNode, names: Array) -> Section | None:
    report, (_, after, _) = attacked.evidence, attacked.stages
    if report is None:
        return None
    added = {str(names[node]) for node, origin in after.neighbours if origin == "added"}
    parts = {"features": report.features, "all": report.probabilities}
    return {
        "parts": {name: round_all(list(part.values()), 4) for name, part in parts.items()},
        "edge_evidence": round_all(list(report.edge_evidence.values()), 2),
        "edges": [
            {
                "neighbour": str(edge.neighbour),
                "class": str(edge.predicted),
                "credibility": round_number(edge.credibility, 3),
                "distrusted": edge.is_distrusted,
                "reason": edge.reason,
                "added": str(edge.neighbour) in added,
            }
            for edge in report.edges
        ],
    }


def _describe_choice(attacked: AttackedNode, noun: str) -> str:
    truth, (_, after, _), n = attacked.codes[attacked.node], attacked.stages, attacked.n_attacked
    if after.probabilities.argmax() == truth:
        return "" if n == 1 else f"None of {n} attacked {noun}s changed its class; this one came closest."
    if n == 1:
        return f"It is the first {noun} that was attacked, drawn from those that were classified correctly."
    return (
        f"Of correctly classified {noun}s, attacked one at a time in random order, it is the first that "
        f"changed its class, after {n - 1} that did not."
    )


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
