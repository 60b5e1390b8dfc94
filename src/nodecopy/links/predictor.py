"""Missing and doubtful links of one graph: probabilities of edges, with reasons."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import expit, logit

from nodecopy._core.arrays import Array, IntArray, Rows, check_row_data, find_ids
from nodecopy._core.checks import (
    as_array,
    check_finite,
    check_integer,
    check_numbers,
    check_real,
    check_settings,
    check_vector,
)
from nodecopy._core.estimator import Saveable
from nodecopy._core.imports import import_optional
from nodecopy._core.messages import PrintedTable, log_decision
from nodecopy._core.random import Rng, generator
from nodecopy.errors import InputError, NotFittedError
from nodecopy.graph import Graph
from nodecopy.interactions import Interactions
from nodecopy.io import GraphLike, convert_data
from nodecopy.links.signals import (
    AdditiveModel,
    LinkSignals,
    NodeFacts,
    ObservedLinks,
    name_signals,
    split_by_size,
)

FOLDED_EDGES, MIN_FOLDS, MAX_FOLDS = 10**6, 3, 10  # edges whose signals are computed from others, and folds
MAX_TAUGHT = 50_000  # edges, random pairs and near pairs that the classifier is taught with, of each
MIN_CANDIDATES, CANDIDATES_PER_LINK = 10_000, 20  # of each kind, whose probabilities are computed
MAX_CACHED_NODES = 5000  # of graphs whose signals are kept for every fold
DAMPING = 1e-3  # probabilities given as confidence are kept so far from 0 and 1


@dataclass(frozen=True, eq=False, repr=False)
class Links(PrintedTable):
    """Pairs of nodes with the probabilities that they are edges, in the order of the question.

    Attributes
    ----------
    first, second
        The ids of the nodes, of users and items for interactions.
    probabilities
        The probability of an edge between two nodes with such signals in a graph of this density, without
        knowing whether the edge was observed. For doubtful edges of a graph with ``edge_confidence``, that
        the edge is real given its confidence.
    positions
        The positions of the nodes, ``[n, 2]``.
    """

    heads = ("source", "target", "probability")

    first: Array
    second: Array
    probabilities: NDArray[np.float64]
    positions: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.first)

    def __iter__(self) -> Iterator[tuple[Any, Any, float]]:
        return zip(self.first.tolist(), self.second.tolist(), self.probabilities.tolist(), strict=True)

    def pairs(self) -> list[tuple[Any, Any]]:
        """Return the ids of the nodes of each pair."""
        return [(first, second) for first, second, _ in self]

    def to_list(self) -> list[dict[str, Any]]:
        """Return a dictionary per pair, for JSON."""
        return [dict(zip(self.heads, link, strict=True)) for link in self]

    def to_pandas(self) -> Any:
        """Return a data frame with columns source, target and probability."""
        frame = import_optional("pandas", "Links.to_pandas").DataFrame
        return frame(self.to_list(), columns=list(self.heads))


@dataclass(frozen=True, repr=False)
class LinkExplanation(PrintedTable):
    """Why a pair of nodes has its probability of an edge.

    Attributes
    ----------
    first, second, is_edge, probability
        The pair, whether it is an edge of the graph, and its probability as if that were not known.
    base_rate
        The probability of an average pair without an edge; contributions raise or lower its log-odds.
    reasons
        Of each signal its name, its value and its contribution, the largest contributions for or against the
        edge first. With the log-odds of the base rate they add up to those of the probability.
    donors
        Which donors of either end are linked to the other, the most probable first: the end, its donor, and
        the probability that it has this donor.
    """

    heads = ("signal", "value", "contribution")

    first: Any
    second: Any
    is_edge: bool
    probability: float
    base_rate: float
    reasons: list[tuple[str, float, float]]
    donors: list[tuple[Any, Any, float]]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        reasons = [dict(zip(self.heads, row, strict=True)) for row in self.reasons]
        donors = [dict(zip(("endpoint", "donor", "probability"), row, strict=True)) for row in self.donors]
        own = {name: getattr(self, name) for name in ("is_edge", "probability", "base_rate")}
        return {"source": self.first, "target": self.second, **own, "reasons": reasons, "donors": donors}

    def cells(self) -> list[tuple[str, float, float]]:
        return self.reasons

    def notes(self) -> tuple[list[str], list[str]]:
        what = "edge" if self.is_edge else "no edge"
        above = f"{self.first} - {self.second} ({what}): probability {self.probability:.3g}"
        others = f"; of an average pair {self.base_rate:.3g}"
        return [above + others], [f"{donor}, like {end} ({p:.1%})" for end, donor, p in self.donors]


class LinkPredictor(Saveable):
    """Estimate which absent edges of a graph are missing and which of its edges are doubtful.

    A logistic regression combines signals of a pair: the expected copied graph (whether the donors of the
    ends, nodes with similar neighbourhoods, are linked), similarity by features and by neighbourhoods, walks
    and degrees. It is taught with the edges of the graph itself: each tenth of the edges (up to a third in
    graphs of more than 100,000 edges) is held out in turn, and its signals are computed from the other edges.
    The edges of the graph are judged by these signals, as if they were absent. All probabilities are for the
    density of the graph. Labels are not used.

    For interactions, :meth:`missing` answers the same question as a recommender, for all users together; see
    :mod:`nodecopy.recommend` for lists of items per user.

    Parameters
    ----------
    n_donors
        Donors of each node, 50 by default; 0 leaves the expected copied graph out of the signals.

    Attributes
    ----------
    graph_
        The graph or interactions.

    Examples
    --------
    >>> from nodecopy import Graph
    >>> from nodecopy.links import LinkPredictor
    >>> first, second = np.triu_indices(6, 1)
    >>> cliques = Graph.from_edges([*first, *first + 6, 0], [*second, *second + 6, 11])
    >>> model = LinkPredictor().fit(cliques, rng=0)
    >>> next(iter(model.doubtful(1)))[:2]
    (0, 11)
    """

    graph_: Graph | Interactions
    model_: AdditiveModel
    folds_: NDArray[np.int64]
    edge_signals_: NDArray[np.float32]
    confidence_: NDArray[np.float64] | None

    def __init__(self, n_donors: int = 50) -> None:
        self.n_donors = n_donors

    def fit(
        self,
        graph: GraphLike,
        *,
        edge_confidence: ArrayLike | None = None,
        n_looks: int | None = None,
        rng: Rng = None,
    ) -> Self:
        """Learn what edges of the graph look like.

        Parameters
        ----------
        graph
            A graph or interactions, also of other libraries.
        edge_confidence
            The probability that each edge is real by the way it was measured, in the order of
            ``graph.edges()``. Doubtful edges are then ranked by both.
        n_looks
            How often each edge was looked for, if ``edge_confidence`` counts how often it was seen. An edge
            that was seen in s of t looks has probability (s + 1) / (t + 2).
        rng
            Chooses the folds and the pairs without edges.
        """
        data = convert_data(graph, "graph of LinkPredictor")
        check_settings(self, n_donors=0)
        links = ObservedLinks.from_data(data)
        n_edges = len(links.first)
        if n_edges < 2:
            raise InputError("graph of LinkPredictor", f"must have at least 2 edges; got {n_edges}.")
        if n_edges == links.n_pairs:
            raise InputError("graph of LinkPredictor", "must lack some edge; got a complete graph.")
        if loops := int((~links.is_used).sum()):
            log_decision(f"{loops} self-loops are left out.")
        self.confidence_ = _check_confidence(edge_confidence, n_looks, links.is_used)
        rng = generator(rng)
        n_folds = min(int(np.clip(FOLDED_EDGES // n_edges, MIN_FOLDS, MAX_FOLDS)), n_edges)
        self.graph_, self.folds_ = data, rng.permutation(np.arange(n_edges) % n_folds)
        self._set_parts(links)
        self._teach(rng, n_folds)
        return self

    def _set_parts(self, links: ObservedLinks) -> None:
        if self.confidence_ is not None:  # edges are evidence for others as far as they are credible
            weights = links.weights * self.confidence_
            links = replace(links, weights=weights / weights.mean())
        self._links, self._facts = links, NodeFacts(self.graph_)
        self._names, self._is_logarithmic = zip(*name_signals(links, self._facts, self.n_donors), strict=True)
        self._cache: dict[int, LinkSignals] = {}

    def _signals(self, fold: int = -1) -> LinkSignals:
        """Return the signals without the edges of a fold; by default of all edges."""
        if fold not in self._cache:
            if self._links.n_nodes > MAX_CACHED_NODES:
                self._cache.clear()
            kept = np.flatnonzero(self.folds_ != fold)
            self._cache[fold] = LinkSignals(self._links, kept, self._facts, self.n_donors)
        return self._cache[fold]

    def _teach(self, rng: Generator, n_folds: int) -> None:
        """Compute the signals of held-out edges and of pairs without edges, and fit the classifier."""
        links, n_edges = self._links, len(self.folds_)
        self.edge_signals_ = np.empty((n_edges, len(self._names)), np.float32)
        n_taught = -(-min(n_edges, MAX_TAUGHT) // n_folds)
        parts, n_near = [], 0.0
        for fold in range(n_folds):
            signals, held_out = self._signals(fold), np.flatnonzero(self.folds_ == fold)
            self.edge_signals_[held_out] = signals.compute(links.first[held_out], links.second[held_out])
            near, size = _draw_near(signals, n_taught, rng)
            n_near += size / n_folds
            parts += [signals.compute(*pairs) for pairs in (links.draw_absent(n_taught, rng), near)]
        taught = np.sort(rng.choice(n_edges, min(n_edges, MAX_TAUGHT), replace=False))
        values = np.concatenate([self.edge_signals_[taught], *parts])
        is_edge = np.arange(len(values)) < len(taught)
        # Pairs near each other are over-represented. The log of the share of edges among the pairs that were
        # sampled, over the same share among all pairs, is known for near and for other pairs.
        name = "walks of length 2" if links.n_users is None else "walks of length 3"
        is_near = values[:, self._names.index(name)] > 0
        n_absent = links.n_pairs - n_edges
        n_near = min(n_near, float(n_absent))
        offset = np.empty(len(values))
        for near_part, size in ((True, n_near), (False, n_absent - n_near)):
            chosen = is_near == near_part
            n_drawn = max(int((chosen & ~is_edge).sum()), 0.5)
            offset[chosen] = np.log(len(taught) / n_edges) + np.log(max(size, 1.0) / n_drawn)
        shift = float(offset[~is_edge].mean())
        weights = np.ones(len(values))
        if self.confidence_ is not None:
            weights[: len(taught)] = self.confidence_[taught]
        model = AdditiveModel.fit(
            values, is_edge, is_logarithmic=self._is_logarithmic, offset=offset - shift, weights=weights
        )
        self.model_ = replace(model, intercept=model.intercept - shift)

    def check_fitted(self) -> Graph | Interactions:
        """Return the observed graph, or raise :class:`~nodecopy.errors.NotFittedError`."""
        if not hasattr(self, "model_"):
            raise NotFittedError("this LinkPredictor is not fitted yet: call fit(graph) first.")
        return self.graph_

    def missing(self, k: int = 10) -> Links:
        """Return up to ``k`` of the most probable absent edges, the most probable first.

        Candidates are pairs that are joined by a walk of length 2 (3 between users and items), pairs of a
        node and a neighbour of its donors, and pairs of a node and its donors; of each kind, the
        probabilities of those with the highest scores are computed.
        """
        self.check_fitted()
        check_integer(k, "k of missing", low=1)
        first, second = self._find_candidates(max(MIN_CANDIDATES, CANDIDATES_PER_LINK * k))
        log_odds = self.model_.log_odds(self._signals().compute(first, second))
        best = np.lexsort((second, first, -log_odds))[:k]
        return self._list(first[best], second[best], expit(log_odds[best]))

    def _find_candidates(self, n_kept: int) -> tuple[IntArray, IntArray]:
        """Return absent pairs with the highest scores by one of three simple signals."""
        signals, links = self._signals(), self._links
        best: list[Any] = [(np.zeros(0, np.int64), np.zeros(0))] * 3
        for block in split_by_size(signals.row_sizes):
            nodes = np.arange(block.start, block.stop)
            copied = sparse.csr_array(signals.P[nodes] @ signals.U)
            for kind, scores in enumerate((signals.near_pairs(nodes), copied, signals.P[nodes])):
                ends = links.order(np.repeat(nodes, np.diff(scores.indptr)), scores.indices.astype(np.int64))
                keys, values = best[kind]
                is_open = scores.data > (values.min() if len(values) >= n_kept else 0.0)
                is_open[is_open] = links.absent(*(end[is_open] for end in ends))
                keys = np.concatenate([keys, links.keys(*ends)[is_open]])
                best[kind] = _largest(keys, np.concatenate([values, scores.data[is_open]]), n_kept)
        found = np.unique(np.concatenate([keys for keys, _ in best]))
        return found // links.n_nodes, found % links.n_nodes

    def doubtful(self, k: int = 10) -> Links:
        """Return the ``k`` least credible edges, the least credible first; each is judged as if absent."""
        self.check_fitted()
        check_integer(k, "k of doubtful", low=1)
        log_odds = self._edge_log_odds()
        worst = np.argsort(log_odds, kind="stable")[:k]
        return self._list(self._links.first[worst], self._links.second[worst], expit(log_odds[worst]))

    def edge_probabilities(self) -> NDArray[np.float64]:
        """Return the probability of each edge as :meth:`doubtful` judges it, in the order of ``edges()``.

        Self-loops, which are not judged, have probability one.
        """
        self.check_fitted()
        probabilities = np.ones(len(self._links.is_used))
        probabilities[self._links.is_used] = expit(self._edge_log_odds())
        return probabilities

    def _edge_log_odds(self) -> NDArray[np.float64]:
        """Return the log-odds of the edges, with those of the confidence in place of the density."""
        log_odds = self.model_.log_odds(self.edge_signals_)
        if self.confidence_ is None:
            return log_odds
        density = len(self.folds_) / self._links.n_pairs
        return np.asarray(log_odds - logit(density) + logit(self.confidence_))

    def score(self, pairs: ArrayLike | Links) -> NDArray[np.float64]:
        """Return the probability of an edge for each pair, as if it were not known whether it is one.

        ``pairs`` are two columns of ids, or the result of :meth:`missing` or :meth:`doubtful`. For
        interactions, they are users and items.
        """
        self.check_fitted()
        return np.asarray(expit(self.model_.log_odds(self._values(*self._find_pairs(pairs)))))

    def _values(self, first: IntArray, second: IntArray) -> NDArray[np.float32]:
        """Return the signals of pairs; those of an edge are from the graph without it."""
        position = self._links.find(first, second)
        values, is_edge = self.edge_signals_[position], position >= 0
        if not is_edge.all():
            values[~is_edge] = self._signals().compute(first[~is_edge], second[~is_edge])
        return values

    def _ids(self) -> tuple[Array, Array]:
        """Return the ids of the nodes that may be first and second in a pair."""
        graph = self.graph_
        if isinstance(graph, Interactions):
            return graph.user_ids, graph.item_ids
        return graph.node_ids, graph.node_ids

    def _find_pairs(self, pairs: Any) -> tuple[IntArray, IntArray]:
        """Return the positions of pairs among all nodes, in the order in which edges are stored."""
        if isinstance(pairs, Links):
            first, second = pairs.positions.T
        else:
            given = as_array(pairs, "pairs")
            given = given[None] if given.shape == (2,) else given
            if given.ndim != 2 or given.shape[1] != 2:
                got = f"got shape {given.shape}"
                raise InputError("pairs", f"must be two columns of ids, the ends of each pair; {got}.")
            pairs_of_ids = zip(given.T, self._ids(), strict=True)
            first, second = (find_ids(column, ids, "pairs") for column, ids in pairs_of_ids)
        second = second + self._links.start
        if (first == second).any():
            raise InputError("pairs", "must hold two different nodes each; got a node with itself.")
        return self._links.order(first, second)

    def _list(self, first: IntArray, second: IntArray, probabilities: NDArray[np.float64]) -> Links:
        positions = np.stack([first, second - self._links.start], axis=1)
        first, second = (ids[column] for ids, column in zip(self._ids(), positions.T, strict=True))
        return Links(first, second, probabilities, positions)

    def explain(self, pair: ArrayLike | Links, k: int = 5) -> LinkExplanation:
        """Return the reasons for the probability of a pair of nodes, and its ``k`` most probable donors.

        ``pair`` is given as in :meth:`score`. The reasons for an edge are from the graph without its fold.
        """
        self.check_fitted()
        check_integer(k, "k of explain", low=0)
        first, second = self._find_pairs(pair)
        if len(first) != 1:
            raise InputError(
                "pair", f"must be a single pair of nodes; got {len(first)}. Take them one by one."
            )
        i, j, position = int(first[0]), int(second[0]), int(self._links.find(first, second)[0])
        values = self._values(first, second)
        contributions = self.model_.contributions(values)[0]
        reasons = zip(self._names, values[0].tolist(), contributions.tolist(), strict=True)
        signals = self._signals(-1 if position < 0 else int(self.folds_[position]))
        donors = [
            (self._name(end), self._name(donor), float(signals.P[end, donor]))
            for end, other in ((i, j), (j, i))
            for donor in np.intersect1d(signals.P[[end]].indices, signals.U[[other]].indices)
        ]
        return LinkExplanation(
            self._name(i),
            self._name(j),
            position >= 0,
            float(expit(self.model_.intercept + contributions.sum())),
            float(expit(self.model_.intercept)),
            sorted(reasons, key=lambda reason: -abs(reason[2])),
            sorted(donors, key=lambda donor: -donor[2])[:k],
        )

    def _name(self, node: int) -> Any:
        """Return the id of a node, or of a user or item."""
        first, second = self._ids()
        return (second[node - self._links.start] if node >= self._links.start else first[node]).item()

    def denoise(self, *, remove: float = 0.0, add: float = 0.0) -> Any:
        """Return the graph without its least credible edges and with the most probable missing ones.

        Parameters
        ----------
        remove, add
            The number of edges as an integer, or their share of all edges as a fraction. Added edges have
            weight one in a binary graph, and the median weight in a weighted one.
        """
        graph, links = self.check_fitted(), self._links
        n_edges = len(self.folds_)
        n_removed, n_added = (
            _count(value, f"{name} of denoise", n_edges) for name, value in (("remove", remove), ("add", add))
        )
        is_kept = np.ones(n_edges, bool)
        is_kept[np.argsort(self._edge_log_odds(), kind="stable")[:n_removed]] = False
        rows = links.select(graph.rows, is_kept)
        if n_added:
            first, second = self.missing(n_added).positions.T
            if len(first) < n_added:
                log_decision(f"{len(first)} edges are added, since no more than these are probable.", "add")
            weight = 1.0 if graph.rows.weights is None else float(np.median(graph.rows.weights))
            shape = rows.n_rows, rows.n_columns
            new = sparse.csr_array((np.full(len(first), weight), (first, second)), shape=shape)
            if isinstance(graph, Graph) and not graph.directed:
                new = sparse.csr_array(new + new.T)
            matrix = sparse.csr_array(rows.csr + new)
            matrix.sort_indices()
            rows = Rows.canonical(matrix.indptr, matrix.indices, matrix.data, rows.n_columns)
        return graph.with_rows(rows)

    def get_state(self) -> dict[str, Any]:
        self.check_fitted()
        return super().get_state()

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        check_settings(self, n_donors=0)
        links = ObservedLinks.from_data(check_row_data(self.graph_, "graph_"))
        n_edges = len(links.first)
        check_vector(self.folds_, "folds_", length=n_edges, per="edge")
        if self.confidence_ is not None:
            self.confidence_ = _check_confidence(self.confidence_, None, np.ones(n_edges, bool))
        self._set_parts(links)
        shape = n_edges, len(self._names)
        if self.edge_signals_.shape != shape or n_edges < 2:
            raise InputError("edge_signals_", f"must have shape {shape}; got {self.edge_signals_.shape}.")
        check_finite(self.edge_signals_, "edge_signals_")
        self.model_.check(len(self._names))


def _draw_near(signals: LinkSignals, n: int, rng: Generator) -> tuple[tuple[IntArray, IntArray], float]:
    """Draw absent pairs that are joined by a short walk, and estimate how many there are."""
    links = signals.links
    n_sources = links.n_nodes if links.n_users is None else links.n_users
    sources = rng.permutation(n_sources)
    sources = sources[next(split_by_size(signals.row_sizes[sources]))]
    rows = signals.near_pairs(sources)
    ends = np.repeat(sources, np.diff(rows.indptr)), rows.indices.astype(np.int64)
    first, second = links.order(*ends)
    near: IntArray = np.flatnonzero(links.absent(first, second))
    size = len(near) * n_sources / len(sources)
    if links.n_users is None and not links.directed:
        size /= 2  # each pair is near from both ends
    if len(near):
        near = rng.choice(near, n)
    return (first[near], second[near]), size


def _largest(keys: IntArray, values: Array, n: int) -> tuple[IntArray, Array]:
    """Return the distinct keys with the largest values."""
    order = np.lexsort((-values, keys))
    keys, values = keys[order], values[order]
    is_first = np.diff(keys, prepend=-1) > 0
    keys, values = keys[is_first], values[is_first]
    if len(keys) > n:
        best = np.argpartition(-values, n - 1)[:n]
        keys, values = keys[best], values[best]
    return keys, values


def _check_confidence(
    values: ArrayLike | None, n_looks: int | None, is_used: NDArray[np.bool_]
) -> NDArray[np.float64] | None:
    """Return the confidence of the edges that are no self-loops."""
    if n_looks is not None:
        check_integer(n_looks, "n_looks", low=1)
        if values is None:
            raise InputError("n_looks", "must be given with edge_confidence, the counts; got it alone.")
    if values is None:
        return None
    name, limit = "edge_confidence", n_looks or 1
    confidence = check_numbers(check_vector(values, name, length=len(is_used), per="edge"), name)
    if not (is_right := (confidence >= 0) & (confidence <= limit)).all():  # NaN is neither
        wrong = float(confidence[~is_right][0])
        settings = {"n_looks": math.ceil(wrong)} if n_looks is None and 1 < wrong < np.inf else {}
        way_out = " For counts, give the number of looks." * bool(settings)
        raise InputError(name, f"must lie between 0 and {limit}; got {wrong:g}.{way_out}", **settings)
    confidence = confidence.astype(np.float64)[is_used]
    if n_looks is not None and (confidence % 1).any():
        got = f"got {confidence[confidence % 1 > 0][0]:g}. For probabilities, leave out the number of looks"
        raise InputError(name, f"must be counts of looks in which the edge was seen; {got}.")
    confidence = confidence if n_looks is None else (confidence + 1) / (n_looks + 2)
    return np.clip(confidence, DAMPING, 1 - DAMPING)


def _count(value: Any, name: str, n_edges: int) -> int:
    """Return a number of edges, which is given as such or as a share of all."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return check_integer(value, name, low=0, high=n_edges, high_name="the number of edges")
    return round(check_real(value, name, low=0.0, high=1.0) * n_edges)
