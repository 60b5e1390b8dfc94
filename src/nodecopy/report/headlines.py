"""One sentence about each section of the report page, and the format of its numbers and names."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nodecopy.metrics.structure import Comparison, Row

MAX_NAMED = 3  # statistics that a sentence names
COUNTS = ("n_edges", "triangles", "n_components")
CORRECTIONS = (  # what corrects an attacked node, the ending of its verb, and the words of its failure
    ("copied neighbours", "", "do", "they give"),
    ("all evidence, the method of nodecopy defend,", "s", "does", "it gives"),
)
Summary = Mapping[str, Any]


def graphs_headline(n_edges: int, samples: Sequence[tuple[int, int]]) -> str:
    """Describe the edges of samples, given as numbers of all and of observed edges."""
    if not samples:
        return ""
    sizes = _range([size for size, _ in samples])
    shares = _range([round(100 * n_observed / max(size, 1)) for size, n_observed in samples])
    verb = "The pictured sample has" if len(samples) == 1 else f"The {len(samples)} pictured samples have"
    return f"{verb} {sizes} edges (observed: {n_edges:,}), of which {shares} % are observed edges."


def statistics_headline(comparisons: Mapping[str, Comparison]) -> str:
    """Count the observed statistics in the range of all samples, and name those that change most."""
    models = ["" if len(comparisons) == 1 else f" by {name}" for name in comparisons]
    return " ".join(map(_describe_comparison, comparisons.values(), models))


def _describe_comparison(comparison: Comparison, model: str) -> str:
    rows = [row for row in comparison if row.name not in ("n_nodes", "edge_overlap") and row.p_value >= 0]
    outside = sorted((row for row in rows if row.name in comparison.outside), key=_change, reverse=True)
    n = comparison.n_samples
    samples = f"The sample{model} keeps" if n == 1 else f"The {n:,} samples{model} keep"
    if not outside:
        return f"{samples} all {len(rows)} statistics."
    n_kept = len(rows) - len(outside)
    # The mean degree is redundant beside the number of edges.
    named = [row for row in outside if row.name != "mean_degree" or "n_edges" not in comparison.outside]
    parts = [_describe_statistic(row) for row in named[:MAX_NAMED]]
    rest = len(outside) - len(parts)
    parts += [f"{rest} {'other differs' if rest == 1 else 'others differ'}"] if rest else []
    return f"{samples} {n_kept} of {len(rows)} statistics; on average, {_join(parts)}."


def _change(row: Row) -> float:
    """Return the absolute log ratio of a statistic; 1 to, from and across zero."""
    return abs(math.log(row.mean / row.observed)) if row.mean * row.observed > 0 else 1.0


def _describe_statistic(row: Row) -> str:
    is_count = row.name in COUNTS
    subject = f"{row.name.removeprefix('n_').replace('_', ' ')} {'are' if is_count else 'is'}"
    if row.mean <= 0 or row.observed <= 0:
        return f"{subject} {row.mean:.3g} instead of {row.observed:.3g}"
    ratio = row.mean / row.observed
    if 0.95 < ratio < 1.05:
        return f"{subject} {100 * abs(ratio - 1):.1f} % {'higher' if ratio > 1 else 'lower'}"
    return f"{subject} {ratio:.2g} times as {'many' if is_count else 'large'}"


def classification_headline(evaluations: Sequence[Summary]) -> str:
    """Give the accuracy of the last classifier beside the others, or say that it did not learn."""
    if not evaluations:
        return "No label is held out, so the accuracy is unknown."
    *others, main = evaluations
    splits = f" in {main['n_splits']} splits" if main["n_splits"] > 1 else ""
    accuracy = _format_interval(main["accuracy"], main["interval"])
    verb = f"is right on {accuracy} of {main['n_nodes']:,} held-out nodes{splits}"
    if not main["has_learned"]:
        return (
            f"The model did not learn: {main['name']} {verb}, not clearly more than the "
            f"{_percent(main['majority'])} of always predicting the largest class."
        )
    beside = [f"{part['name']} on {_format_interval(part['accuracy'], part['interval'])}" for part in others]
    return "; ".join([f"{_capitalise(main['name'])} {verb}", *beside]) + "."


def attack_headline(
    classes: Sequence[str], truth: int, probabilities: Sequence[Sequence[float]], n_flips: int
) -> str:
    """Describe the effect of an attack and its corrections on a prediction."""
    before, attacked, *corrected = (classes[int(np.argmax(stage))] for stage in probabilities)
    chances = [_percent(stage[truth]) for stage in probabilities]
    start = f"{n_flips} flipped {'edge' if n_flips == 1 else 'edges'}"
    if attacked != before:
        start += f" {'changes' if n_flips == 1 else 'change'} the prediction from {before} to {attacked}"
    else:
        verb = "does" if n_flips == 1 else "do"
        start += f" {verb} not change the prediction {before} ({chances[0]} before, {chances[1]} after)"
    effects, stages = [], zip(corrected, chances[2:], CORRECTIONS, strict=False)
    for found, chance, (subject, ending, auxiliary, pronoun) in stages:
        verb = ("restore" if attacked != before else "keep") + ending
        is_true = found == classes[truth]
        effect = f"{verb} it ({chance})" if is_true else f"{auxiliary} not correct it: {pronoun} {found}"
        effects.append(f"{subject} {effect}")
    return f"{start}. {_capitalise('; '.join(effects))}."


def _capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]


def links_headline(lists: Mapping[str, Sequence[Summary]]) -> str:
    """Name the least credible and the most probable missing edge."""
    names = ("doubtful", "least credible"), ("missing", "most probable missing")
    firsts = [(what, lists[kind][0]) for kind, what in names if lists[kind]]
    parts = [
        f"the {what} edge is between {' and '.join(link['ends'])} ({100 * link['probability']:.2g} %)"
        for what, link in firsts
    ]
    return f"{_capitalise('; '.join(parts))}."


def recommendations_headline(evaluations: Sequence[Summary]) -> str:
    """Give the recall of the last recommender beside the others."""
    if not evaluations:
        return ""
    *others, main = evaluations
    beside = [f"{other['name']} {_format_interval(other['recall'], other['interval'])}" for other in others]
    recall = _format_interval(main["recall"], main["interval"])
    text = f"The first {main['k']} recommendations of {main['name']} contain {recall} of a user's held-out"
    return f"{text} items; {_join(beside)}." if beside else f"{text} items."


def tables_headline(verdicts: Sequence[str]) -> str:
    """Count the verdicts of the cells with published numbers."""
    if not verdicts:
        return ""
    n = Counter(verdicts)
    differ = n["above"] + n["below"]  # of statistics, for which neither is better
    parts = [f"{n['level']:,} are level with them", f"{n['ahead']:,} ahead", f"{n['behind']:,} behind"]
    parts += [f"{differ:,} statistics differ"] if differ else []
    return f"Of {len(verdicts):,} results with published numbers, {_join(parts)}, at 2 standard errors."


def _format_interval(value: float, interval: Sequence[float]) -> str:
    percent, low, high = (100 * part for part in (value, *interval))
    if round(percent - low) == round(high - percent):
        return f"{percent:.0f} ± {(high - low) / 2:.0f} %"
    return f"{percent:.0f} % ({low:.0f} to {high:.0f} %)"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _range(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _join(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def to_texts(values: ArrayLike) -> list[str]:
    """Return ids or names as text."""
    return [str(value) for value in np.asarray(values).tolist()]


def round_number(value: Any, digits: int = 6) -> float | None:
    """Round to some significant digits; ``None`` if the value is not finite."""
    if not math.isfinite(value):
        return None
    number = float(f"{value:.{digits}g}")
    return int(number) if number.is_integer() else number


def round_all(values: Sequence[Any] | NDArray[Any], digits: int = 6) -> list[float | None]:
    """Round each of some values by :func:`round_number`."""
    return [round_number(float(value), digits) for value in values]
