"""Donor rules compared by how well their expected copied graphs predict held-out edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nodecopy._core.checks import check_sequence
from nodecopy._core.messages import mute_data_warnings, mute_decisions
from nodecopy._core.random import Rng, generator
from nodecopy.copying import DonorRule, Jaccard, NearestNeighbours, NodeCopying, SameLabel, choose_donors
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.io import GraphLike, convert_data
from nodecopy.links.signals import ObservedLinks
from nodecopy.metrics.classification import area_under_roc

HELD_OUT_SHARE = 0.1
N_DONORS = (10, 30, 100)  # nearest neighbours that are tried


class RankedDonors(NamedTuple):
    """A donor rule and how well it predicts held-out edges.

    >>> from nodecopy import SameLabel
    >>> from nodecopy.links import RankedDonors
    >>> RankedDonors(SameLabel(), 0.9).area
    0.9
    """

    donors: DonorRule
    area: float
    """The area under the ROC curve of held-out edges against pairs without an edge; 0.5 is chance."""


def rank_donors(
    graph: GraphLike, rules: Sequence[DonorRule] | None = None, *, rng: Rng = None
) -> list[RankedDonors]:
    """Return donor rules by how well their expected copied graphs predict held-out edges, the best first.

    A tenth of the edges is held out. Use the best rule where expectations count. Samples need not resemble
    the graph more: rules with many donors predict edges well and lose triangles.

    Parameters
    ----------
    graph
        A graph or interactions, also of other libraries.
    rules
        The donor rules; by default :func:`.choose_donors` and the rules for which the graph has what they
        need, with several numbers of donors.
    rng
        Chooses the held-out edges and the pairs without an edge.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.links import rank_donors
    >>> best, *others = rank_donors(datasets.load("karate"), rng=0)
    >>> best.donors
    SameLabel(labels=None)
    """
    data, rng = convert_data(graph, "graph of rank_donors"), generator(rng)
    if rules is not None and not check_sequence(rules, "rules", "a list of donor rules"):
        raise InputError("rules", "must hold at least one donor rule; got none.")
    links = ObservedLinks.from_data(data)
    n_edges = len(links.first)
    if n_edges < 2 or n_edges == links.n_pairs:
        raise InputError("graph of rank_donors", f"must have 2 edges and lack some; got {data!r}.")
    n_tested = max(1, round(HELD_OUT_SHARE * n_edges))
    is_kept = np.ones(n_edges + 1, bool)  # the last is for self-loops
    is_kept[rng.permutation(n_edges)[:n_tested]] = False
    start, rows = links.n_users or 0, data.rows
    ends = rows.row_numbers.astype(np.int64), rows.indices.astype(np.int64) + start
    train: Any = data.with_rows(rows.keep_entries(is_kept[links.find(*links.order(*ends))]))
    tested = ~is_kept[:-1]
    pairs = np.stack([links.first[tested], links.second[tested]]), np.stack(links.draw_absent(n_tested, rng))
    first, second = np.concatenate(pairs, axis=1)
    ranked = []
    for donors in _list_rules(data) if rules is None else rules:
        with mute_decisions(), mute_data_warnings():
            expected = NodeCopying(donors).fit(train).expected_adjacency()
        area = area_under_roc(expected.entries(first, second - start), np.arange(len(first)) < n_tested)
        ranked.append(RankedDonors(donors, area))
    return sorted(ranked, key=lambda row: -row.area)


def _list_rules(data: Any) -> list[DonorRule]:
    """Return the rules that can be fitted; the default of :class:`.NodeCopying` is the first."""
    rules: list[DonorRule] = [choose_donors(data)[0], Jaccard(), Jaccard(exponent=2.0, max_donors=50)]
    if isinstance(data, Graph):
        numbers = sorted({min(n, data.n_nodes - 1) for n in N_DONORS})
        rules += [SameLabel()] * (data.label_codes is not None)
        rules += [NearestNeighbours(n, embeddings="neighbourhoods") for n in numbers]
        rules += [NearestNeighbours(n) for n in numbers if data.features is not None]
    return list({repr(rule): rule for rule in rules}.values())
