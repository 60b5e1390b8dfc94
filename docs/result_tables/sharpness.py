"""How sharp node copying is beside fitted models, and what Monte Carlo errors explain of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from docs.result_tables.cells import COVERAGE, SMOOTH, Cells, Row, find_default, not_computed, read_cells
from nodecopy.experiments.tasks.coverage import N_TRUE

FITTED = ("dot-product", "sbm")
N_DEVIATIONS = 401
"""True standard deviations, within their Monte Carlo error, for which methods are compared."""
NOT_WORSE = 1.05
"""Standard errors whose factor from the truth is larger by no more than this count as equally good."""
WRONG_FAMILY = ("dc-sbm", "graphon", "directed")
"""Networks that no block model with few blocks describes."""


def read_errors(rows: Iterable[Row]) -> Cells:
    """Return the relative standard error of the mean of each cell over its trials, 0 if it is not stored."""
    keys = ("dataset", "nodes", "degree", "method", "score")
    return {
        tuple(row[key] for key in keys): float(row.get("std") or 0)  # type: ignore[misc]
        / (float(row["mean"]) * np.sqrt(int(row["n"])))
        for row in rows
        if row["mean"] and float(row["mean"]) and row["score"].endswith("ratio")
    }


class Sharpness(NamedTuple):
    """Ratios of standard errors to the truth: of node copying first, then of the fitted models.

    ``errors`` are the relative standard errors of the ratios over trials, and ``all_cover`` says whether all
    intervals cover often enough.
    """

    ratios: Sequence[float]
    errors: Sequence[float]
    all_cover: bool

    @property
    def factors(self) -> list[float]:
        return [max(ratio, 1 / ratio) for ratio in self.ratios]

    def compare(self, n_errors_of_truth: float, n_errors_of_ratios: float) -> tuple[bool, bool]:
        """Return whether node copying may be at least as sharp as both fitted models, and whether it must be.

        A factor is exp |log r|. If the true standard deviation is exp(e) times the simulated one, all ratios
        of the cell change to r exp(-e): factors on the same side of 1 change alike, those on different
        sides in opposite directions. ``e`` is at most ``n_errors_of_truth`` times the standard error of the
        logarithm of a standard deviation of normal variables. The difference of two logarithms may also be
        off by some of its own standard errors, as if the methods had different networks (they share them, and
        the error is a little smaller).
        """
        furthest = n_errors_of_truth / np.sqrt(2 * (N_TRUE - 1))
        deviations = np.linspace(-furthest, furthest, N_DEVIATIONS)
        distances = np.abs(np.log(self.ratios)[:, None] - deviations)
        margins = n_errors_of_ratios * np.hypot(self.errors[0], self.errors[1:])[:, None]
        excess = distances[0] - distances[1:]
        return bool((excess <= margins).all(axis=0).any()), bool((excess < -margins).all())


def find_sharpness(rows: Sequence[Row]) -> dict[tuple[str, ...], Sharpness]:
    """Return the ratios of the default and of the fitted models, by network, size and statistic."""
    cells, errors = read_cells(rows), read_errors(rows)
    default, default_errors = find_default(cells), find_default(errors)
    sharpness = {}
    for (*size, _, score), ratio in default.items():
        name, _, kind = score.partition(" ")
        others: list[Any] = [(*size, method, score) for method in FITTED]
        if (
            kind != "ratio"
            or name not in SMOOTH
            or name == "mean_degree"
            or not all(o in cells for o in others)
        ):
            continue
        own: Any = (*size, "default", score)
        covered = [default[*own[:4], f"{name} covered"], *(cells[*o[:4], f"{name} covered"] for o in others)]
        sharpness[*size, name] = Sharpness(
            [ratio / 100, *(cells[other] / 100 for other in others)],
            [default_errors[own], *(errors[other] for other in others)],
            min(covered) >= COVERAGE[0],
        )
    return sharpness


def describe_sharpness(rows: Sequence[Row]) -> str:
    """Return how far standard errors are from the truth beside those of the fitted models."""
    cells = find_sharpness(rows)
    covering = [cell for cell in cells.values() if cell.all_cover]
    if not covering:
        return not_computed("coverage")
    n_cover, factors = len(covering), [cell.factors for cell in cells.values()]
    n_sharpest = sum(cell.factors[0] <= min(cell.factors[1:]) for cell in covering)
    n_good = sum(cell.factors[0] <= NOT_WORSE * min(cell.factors[1:]) for cell in covering)
    wrong = [cell.factors for place, cell in cells.items() if place[0] in WRONG_FAMILY]
    n_better = sum(values[0] <= values[2] for values in wrong)
    n_clear = sum(NOT_WORSE * values[0] < values[2] for values in wrong)
    median, worst = (
        "{:.2f} (node copying), {:.2f} (dot product graph) and {:.2f} (block model)".format(*values)
        for values in (np.median(factors, axis=0), np.max(factors, axis=0))
    )
    sizes = "; ".join(
        dict.fromkeys(f"{int(nodes):,} nodes with mean degree {degree}" for _, nodes, degree, _ in cells)
    )
    overstated = Counter(
        place[3] for place, cell in cells.items() if cell.all_cover and not cell.compare(2, 2)[0]
    )
    often = ", ".join(f"{name.replace('_', ' ')} ({n})" for name, n in overstated.most_common())
    return (
        f"Beside the fitted dot product graph and the fitted block model, in {len(cells)} cells (networks of "
        f"{sizes}; density stands for the mean degree): standard errors are off by a factor of {median} in "
        f"the median, and by up to {worst}. All three cover at least 90 % in {n_cover} cells. In "
        f"{n_sharpest} of them "
        f"({n_sharpest / n_cover:.0%}) the factor of node copying is at most that of the better one of the "
        f"other two, in {n_good} ({n_good / n_cover:.0%}) it is at most 5 % larger. "
        f"{describe_sharpness_errors(covering)} The former are of {often or 'none'}. Where a "
        "block model is "
        f"the wrong family ({', '.join(WRONG_FAMILY)}), it is at most that of the fitted block model in "
        f"{n_better} of "
        f"{len(wrong)} cells, and smaller by more than 5 % in {n_clear}."
    )


def describe_sharpness_errors(cells: Sequence[Sharpness]) -> str:
    """Return in how many cells Monte Carlo errors explain that node copying is not the sharpest."""
    by_truth = sum(cell.compare(2, 0)[0] for cell in cells)
    may_be, must_be = np.sum([cell.compare(2, 2) for cell in cells], axis=0).tolist()
    n_worse = len(cells) - may_be
    return (
        "The true standard deviations are simulated, too: their relative standard error is "
        f"{100 / np.sqrt(2 * (N_TRUE - 1)):.1f} % (if the statistic is normal), the same error for the three "
        "models of a cell. For some true value within two of these standard errors, the factor of node "
        f"copying is at most that of both others in {by_truth} cells ({by_truth / len(cells):.0%}); if the "
        "mean standard errors, from as many networks as the table says, may be off by two of their standard "
        f"errors as well, in {may_be} ({may_be / len(cells):.0%}). In the other {n_worse} "
        f"({n_worse / len(cells):.0%}) it is larger by more than these errors explain, and in {must_be} it "
        "is smaller by more than they explain."
    )
