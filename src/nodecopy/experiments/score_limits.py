"""The values that scores can have, by which damaged records are recognised."""

from __future__ import annotations

import math

SHARES = (
    "accuracy others auc precision recall ndcg coverage covered warned rejected ece edge_overlap "
    "transitivity degree_gini average_clustering claw_share cross_community_share edge_entropy"
)
NOT_NEGATIVE = (
    "nll novelty ratio max_degree mean_degree n_components path_length power_law_exponent triangles seconds"
)
ROUNDING = 1e-6

LIMITS = (
    dict.fromkeys(SHARES.split(), (0.0, 1.0))
    | dict.fromkeys(NOT_NEGATIVE.split(), (0.0, math.inf))
    | {"brier": (0.0, 2.0), "assortativity": (-1.0, 1.0), "bias": (-math.inf, math.inf)}
)


def check_score(score: str, value: object) -> float:
    """Return a finite number that a score can be; the last of its words that is known decides.

    >>> check_score("printed recall@20", 0.25)
    0.25
    """
    words = reversed(score.partition("@")[0].split())
    low, high = next((LIMITS[word] for word in words if word in LIMITS), (-math.inf, math.inf))
    if type(value) not in (int, float) or not isinstance(value, int | float):
        raise ValueError(f"{score} must be a number; got {value!r}")
    if not math.isfinite(value) or not low - ROUNDING <= value <= high + ROUNDING:
        raise ValueError(f"{score} must be finite and between {low:g} and {high:g}; got {value}")
    return float(value)
