"""Node copying: every node takes the neighbourhood of a similar node, its donor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, TypeVar, overload

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike
from scipy import sparse

from nodecopy._core.arrays import (
    FloatArray,
    Floats,
    IntArray,
    Ints,
    Rows,
    check_positions,
    deduplicate,
    find_ids,
)
from nodecopy._core.checks import (
    check_choice,
    check_indices,
    check_integer,
    check_real,
    check_sequence,
    check_vector,
)
from nodecopy._core.imports import from_name
from nodecopy._core.messages import (
    PrintedTable,
    log_decision,
    mute_data_warnings,
    mute_decisions,
    warn_about_data,
)
from nodecopy._core.random import (
    Key,
    Rng,
    child,
    generator,
    node_uniforms,
    sample_key,
    seed_sequence,
    threefry_key,
)
from nodecopy.copying import rows as row_copying
from nodecopy.copying.distributions import CopiedRows, DonorDistribution, DonorLists, ExpectedAdjacency
from nodecopy.copying.donors import (
    RULES,
    DonorRule,
    Jaccard,
    NearestNeighbours,
    SameLabel,
    check_distribution,
    fit_rule,
    group_labels,
)
from nodecopy.errors import InputError
from nodecopy.graph import UNLABELLED, Graph, class_codes
from nodecopy.interactions import Interactions
from nodecopy.io import GraphLike, convert_data
from nodecopy.models import Data, GraphModel

Fitted = TypeVar("Fitted", Graph, Interactions)

MIN_LABELLED_SHARE = 0.5  # share of nodes with a label below which donor rules by labels warn
EXCHANGE_SEED = 0  # child of a sample's seed for the rotation of copied rows
MAX_RANKED_NODES, MIN_RANKED_EDGES = 5000, 50  # of graphs whose donors are chosen by held-out edges
HELD_OUT_SHARE, N_DONORS = 0.1, (10, 30, 100)  # of edges; numbers of nearest neighbours that are compared
MAX_DISTINCT_WEIGHTS = 64  # distinct weights up to which the expectation under "maximum" is computed exactly


@dataclass(frozen=True, eq=False, repr=False)
class Donors(PrintedTable):
    """The most probable donors of a node, and what they have in common with it.

    Examples
    --------
    >>> from nodecopy import NodeCopying, datasets
    >>> NodeCopying("jaccard").fit(datasets.load("karate")).donors_of(1, 3)
    donors of 1, which has 16 neighbours
    donor  probability  neighbours  in common
        1       0.2605          16         16
        2       0.1013           9          7
        4      0.07663           6          5
    """

    heads = ("donor", "probability", "neighbours", "in common")

    node: Any
    n_neighbours: int
    donors: list[tuple[Any, float, int, int]]

    def cells(self) -> list[list[Any]]:
        return [[str(donor), *numbers] for donor, *numbers in self.donors]

    def notes(self) -> tuple[list[str], list[str]]:
        return [f"donors of {self.node}, which has {self.n_neighbours} neighbours"], []


class NodeCopying(GraphModel[Data]):
    """Sample graphs in which every node has the neighbours of its donor in the observed graph.

    Parameters
    ----------
    donors
        Donor rule: :class:`SameLabel`, :class:`NearestNeighbours`, :class:`Jaccard`, :class:`Weighted`,
        :class:`Balanced`, :class:`KeepByDegree`, or any object with their ``fit``. The first three have the
        names ``"same-label"``, ``"nearest-neighbours"`` and ``"jaccard"``. By default or with ``"auto"``,
        :class:`SameLabel` if at least half of the nodes have a label; :class:`Jaccard` if there are neither
        labels nor features; else the rule that predicts held-out edges best (:func:`rank_donors`), or, with
        more than 5,000 nodes, the 30 nodes with the most similar neighbourhoods.
    keep
        Probability that a node keeps its own neighbours; samples are then closer to the observed graph.
    symmetrise
        How the copied rows of an undirected graph become a symmetric adjacency. ``"one-endpoint"``: a fair
        coin per pair chooses the endpoint whose row decides, which keeps the number of edges, less
        self-loops. ``"maximum"``, the rule of the paper: an edge exists if either row has it, with the larger
        weight; samples have up to twice as many edges and more triangles. ``"none"``: samples are directed
        graphs, as in the paper's Table 1.

    Attributes
    ----------
    graph_
        The graph or interactions that the model was fitted to.
    distribution_
        The fitted donor distribution.
    keep_, symmetrise_
        The settings of the fit; changed settings take effect at the next one.

    Examples
    --------
    >>> from nodecopy import Graph, NodeCopying, SameLabel
    >>> square = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0], labels=[0, 1, 0, 1])
    >>> model = NodeCopying(SameLabel()).fit(square)
    >>> model.sample(rng=7)
    Graph(4 nodes, 4 undirected edges, binary, 2 classes)
    """

    graph_: Data
    distribution_: DonorDistribution
    keep_: float
    symmetrise_: str

    def __init__(
        self, donors: DonorRule | str | None = None, keep: float = 0.0, symmetrise: str = "one-endpoint"
    ) -> None:
        self.donors, self.keep, self.symmetrise = donors, keep, symmetrise

    @overload
    def fit(self: NodeCopying[Any], graph: Fitted, *, rng: Rng = None) -> NodeCopying[Fitted]: ...

    @overload
    def fit(self: NodeCopying[Any], graph: Any, *, rng: Rng = None) -> NodeCopying[Any]: ...

    def fit(self: NodeCopying[Any], graph: Any, *, rng: Rng = None) -> NodeCopying[Any]:
        """Fit the donor rule to a graph or to interactions; ``rng`` is not used.

        :func:`.as_graph` or :func:`.as_interactions` converts objects of other libraries; a data frame with
        columns of users and items is interactions.
        """
        data = convert_data(graph, "graph of NodeCopying")
        keep, symmetrise = self._check_settings(self.keep, self.symmetrise)
        if symmetrise == "none" and isinstance(data, Graph):
            data = data.replace(directed=True)
        is_chosen = self.donors is None or (isinstance(self.donors, str) and self.donors == "auto")
        donors = None if is_chosen else from_name(self.donors, RULES, "donors of NodeCopying")
        if donors is None:
            donors, reason = choose_donors(data)
            log_decision(f"donors: {donors!r}, since {reason}.", "donors")
        self.distribution_ = fit_rule(donors, data, "donors of NodeCopying")
        warn_of_unlabelled_nodes(donors, data)
        self.graph_, self.keep_, self.symmetrise_ = data, keep, symmetrise
        return self

    def _check_state(self) -> None:
        self.keep_, self.symmetrise_ = self._check_settings(self.keep_, self.symmetrise_)
        check_distribution(self.distribution_, self.graph_, "fitted donors of NodeCopying")

    @staticmethod
    def _check_settings(keep: Any, symmetrise: Any) -> tuple[float, str]:
        keep = check_real(keep, "keep of NodeCopying", low=0.0, high=1.0)
        rules = ["maximum", "one-endpoint", "none"]
        return keep, check_choice(symmetrise, "symmetrise of NodeCopying", rules)

    def draw(self, seed: SeedSequence) -> Data:
        key = threefry_key(seed)
        return self.graph_.with_rows(self._sampled_rows(self._donors(key), key))

    def draw_exchanged(self, seed: SeedSequence) -> Data:
        """Return a sample in which the nodes of copied rows are exchanged within the groups of donors.

        Each row has as many nodes of each group as the row of its donor, in other places: they are rotated by
        a random number. An edge between two groups then has the density of edges between them as its
        probability. The model copies an undirected graph by ``"one-endpoint"`` with donors from groups, such
        as labels.
        """
        lists, key, rows = self.distribution_, threefry_key(seed), self.graph_.rows
        if not isinstance(lists, DonorLists) or self._rule() != "one-endpoint" or self.keep_:
            raise InputError("model", f"must copy an undirected graph with donors from groups; got {self!r}.")
        uniforms = self._uniforms(threefry_key(child(seed, EXCHANGE_SEED)))
        classes = row_copying.NodeClasses.of(lists.list_of, lists.offsets, lists.members, uniforms)
        return self.graph_.with_rows(row_copying.one_endpoint(rows, self._donors(key), key, classes))

    def draw_donors(self, *, rng: Rng = None, sample: int = 0) -> IntArray:
        """Return the donors of sample number ``sample`` of :meth:`sample_many` with the same ``rng``."""
        self.check_fitted()
        check_integer(sample, "sample of draw_donors", low=0)
        return self._donors(sample_key(seed_sequence(rng), sample))

    def donors_of(self, node: Any, k: int = 10) -> Donors:
        """Return the ``k`` most probable donors of a node, or of a user, given by id."""
        data = self.check_fitted()
        check_integer(k, "k of donors_of", low=1)
        ids = data.user_ids if isinstance(data, Interactions) else data.node_ids
        (own,) = find_ids([node], ids, "node of donors_of")
        means, row_of = self.distribution_.mean_rows(sparse.eye_array(len(ids), format="csr"))
        p = (1 - self.keep_) * means[[row_of[own]]].toarray()[0]
        p[own] += self.keep_
        best = np.argsort(-p, kind="stable")[:k]
        rows = data.rows.csr.astype(bool)
        common = (rows[best].astype(int) @ rows[[own]].astype(int).T).toarray().ravel()
        columns = (ids[best], p[best], data.rows.degrees[best], common)
        donors = zip(*(column.tolist() for column in columns), strict=True)
        return Donors(node, int(data.rows.degrees[own]), [row for row in donors if row[1] > 0])

    def copy(self, donors: ArrayLike, *, rng: Rng = None, sample: int = 0) -> Data:
        """Return the sample for given donors.

        ``rng`` and ``sample`` choose the coins of ``symmetrise="one-endpoint"`` and are not used otherwise.
        """
        data = self.check_fitted()
        n_rows = data.rows.n_rows
        chosen = check_indices(check_vector(donors, "donors", length=n_rows), "donors", size=n_rows)
        check_integer(sample, "sample of copy", low=0)
        key = sample_key(seed_sequence(rng), sample)
        return data.with_rows(self._sampled_rows(chosen.astype(data.rows.indices.dtype), key))

    def expected_adjacency(self) -> ExpectedAdjacency:
        """Return the exact expectation of the adjacency of a sample (of the users x items matrix).

        With p = P A it is p for directed graphs and interactions, (p_ij + p_ji) / 2 under
        ``"one-endpoint"``, and 1 - (1 - p_ij)(1 - p_ji) for binary graphs under ``"maximum"``. For weighted
        graphs under ``"maximum"`` it is a sum of such terms over the distinct weights, at most 64.
        """
        rows, rule = self.check_fitted().rows, self._rule()
        steps: list[tuple[float, Rows]] = [(1.0, rows)]
        if rule == "maximum" and rows.weights is not None:
            levels = np.unique(rows.weights)
            if len(levels) > MAX_DISTINCT_WEIGHTS:
                raise InputError(
                    f"expected_adjacency needs at most {MAX_DISTINCT_WEIGHTS} different weights; "
                    f"got {len(levels)}. Use monte_carlo_adjacency(n, rng=...) instead."
                )
            heights = np.diff(levels, prepend=0.0).tolist()
            layers = [replace(rows.keep_entries(rows.weights >= level), weights=None) for level in levels]
            steps = list(zip(heights, layers, strict=True))
        expected = []
        for height, layer in steps:
            observed = layer.csr.astype(np.float64)
            means, row_of = self.distribution_.mean_rows(observed)
            expected.append((height, CopiedRows(means, row_of, self.keep_, observed)))
        return ExpectedAdjacency(tuple(expected), rule, (rows.n_rows, rows.n_columns))

    def monte_carlo_adjacency(self, n: int, *, rng: Rng = None, workers: int = 1) -> sparse.csr_array:
        """Return the mean adjacency of ``n`` samples; see :meth:`expected_adjacency` for the exact one."""
        check_integer(n, "n of monte_carlo_adjacency", low=1)
        rows = self.check_fitted().rows
        total = sparse.csr_array((rows.n_rows, rows.n_columns))
        for sample in self.sample_many(n, rng=rng, workers=workers):
            total = total + sample.rows.csr
        return sparse.csr_array(total / n)

    def log_probability(self, sample: Data) -> float:
        """Return log p(G | G_obs, D) of a directed graph or of interactions.

        It is a sum over nodes: the log of the probability of the donors whose observed row equals the row of
        the node in ``sample``; minus infinity if ``sample`` cannot occur.
        """
        data = self.check_fitted()
        if self._rule() is not None:
            raise InputError("log_probability needs a directed graph or interactions. Use symmetrise='none'.")
        if type(sample) is not type(data) or _shape(sample) != _shape(data):
            raise InputError("sample", f"must have the nodes and the type of {data!r}; got {sample!r}.")
        number_of: dict[bytes, int] = {}
        group_of = np.array([number_of.setdefault(row, len(number_of)) for row in _row_bytes(data.rows)], int)
        wanted = np.array([number_of.get(row, -1) for row in _row_bytes(sample.rows)], int)
        from_donors = (1 - self.keep_) * self.distribution_.match_probabilities(group_of, wanted)
        with np.errstate(divide="ignore"):
            return float(np.log(from_donors + self.keep_ * (group_of == wanted)).sum())

    def _rule(self) -> str | None:
        return None if getattr(self.graph_, "directed", True) else self.symmetrise_

    def _uniforms(self, key: Key) -> Floats:
        if not row_copying.is_large(self.graph_.rows):
            return node_uniforms(key, self.graph_.rows.n_rows)
        from nodecopy.copying import kernels

        uniforms = np.empty(self.graph_.rows.n_rows)
        kernels.node_uniforms(key, uniforms)
        return uniforms

    def _donors(self, key: Key) -> IntArray:
        n_rows, compiled = self.graph_.rows.n_rows, row_copying.is_large(self.graph_.rows)
        donors = self.distribution_.draw(self._uniforms(key), self.keep_, compiled=compiled)
        check_positions(check_vector(donors, "donors", length=n_rows), n_rows, "donors of the donor rule")
        return donors

    def _sampled_rows(self, donors: IntArray, key: Key) -> Rows:
        rows, rule = self.graph_.rows, self._rule()
        if rule == "maximum":
            return row_copying.symmetric_union(rows, donors)
        if rule == "one-endpoint":
            return row_copying.one_endpoint(rows, donors, key)
        return row_copying.copy_rows(rows, donors)


def choose_donors(data: Any) -> tuple[DonorRule, str]:
    """Return the default donor rule of :class:`NodeCopying`, and why it was chosen.

    Parameters
    ----------
    data
        A graph, interactions, or an object that :func:`.as_graph` or :func:`.as_interactions` converts.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.copying import choose_donors
    >>> choose_donors(datasets.load("karate"))
    (SameLabel(labels=None), '34 of 34 nodes have a label')
    """
    data = convert_data(data, "data of choose_donors")
    if isinstance(data, Interactions):
        return Jaccard(), "donors of users are users with shared items"
    reason = "no node has a label"
    if data.label_codes is not None:
        n_labelled = int((class_codes(data.label_codes)[1] != UNLABELLED).sum())
        reason = f"{n_labelled} of {data.n_nodes} nodes have a label"
        if n_labelled and n_labelled >= MIN_LABELLED_SHARE * data.n_nodes:
            return SameLabel(), reason
        reason = f"only {reason}, fewer than half"
    if data.features is None:
        return Jaccard(), f"{reason}, and there are no features"
    if data.n_nodes > MAX_RANKED_NODES or data.n_edges < MIN_RANKED_EDGES:
        n_donors = min(N_DONORS[1], max(1, data.n_nodes // 10))
        return NearestNeighbours(n_donors, embeddings="neighbourhoods"), f"{reason}, and there are features"
    ranked = rank_donors(data, rng=0)  # fixed, so that the choice depends on the graph only
    return ranked[0][0], f"{reason}, and of {len(ranked)} rules this predicts held-out edges best"


def rank_donors(
    graph: GraphLike, rules: Sequence[DonorRule] | None = None, *, rng: Rng = None
) -> list[tuple[DonorRule, float]]:
    """Return donor rules by how well their expected copied graphs predict held-out edges, the best first.

    A tenth of the edges is held out. Beside each rule is the area under the ROC curve of these edges against
    as many pairs without an edge; 0.5 is chance.

    Parameters
    ----------
    graph
        A graph or interactions, also of other libraries.
    rules
        The donor rules; by default those for which the graph has what they need, with several numbers of
        donors.
    rng
        Chooses the held-out edges and the pairs without an edge.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.copying import rank_donors
    >>> best, *others = rank_donors(datasets.load("karate"), rng=0)
    >>> best[0].n_neighbours, best[0].embeddings
    (10, 'neighbourhoods')
    """
    from scipy.stats import rankdata

    data: Any = convert_data(graph, "graph of rank_donors")
    rng = generator(rng)
    if rules is not None and not check_sequence(rules, "rules", "a list of donor rules"):
        raise InputError("rules", "must hold at least one donor rule; got none.")
    rows, is_graph = data.rows, isinstance(data, Graph)
    is_mirrored = is_graph and not data.directed

    def number(first: Ints, second: Ints) -> Ints:
        """Return a number for each pair, a negative one for a node with itself."""
        if is_mirrored:
            first, second = np.minimum(first, second), np.maximum(first, second)
        return np.where(is_graph & (first == second), -1, first * rows.n_columns + second)

    numbers = number(rows.row_numbers.astype(np.int64), rows.indices.astype(np.int64))
    edges = np.unique(numbers[numbers >= 0])
    if not 2 <= len(edges) < rows.n_rows * (rows.n_columns - is_graph) // (1 + is_mirrored):
        raise InputError("graph of rank_donors", f"must have 2 edges and lack some; got {data!r}.")
    tested = rng.permutation(edges)[: max(1, round(HELD_OUT_SHARE * len(edges)))]
    absent = np.zeros(0, np.int64)
    while len(absent) < len(tested):
        drawn = number(*(rng.integers(size, size=2 * len(tested)) for size in (rows.n_rows, rows.n_columns)))
        absent = np.concatenate([absent, drawn[(drawn >= 0) & ~np.isin(drawn, edges)]])[: len(tested)]
    train: Any = data.with_rows(rows.keep_entries(~np.isin(numbers, tested)))
    pairs = np.divmod(np.concatenate([tested, absent]), rows.n_columns)
    ranked = []
    for donors in _list_rules(data) if rules is None else rules:
        with mute_decisions(), mute_data_warnings():
            ranks = rankdata(NodeCopying(donors).fit(train).expected_adjacency().entries(*pairs))
        area = (ranks[: len(tested)].mean() - (len(tested) + 1) / 2) / len(absent)
        ranked.append((donors, float(area)))
    return sorted(ranked, key=lambda row: -row[1])


def _list_rules(data: Any) -> list[DonorRule]:
    """Return the rules that can be fitted, the simplest first."""
    rules: list[DonorRule] = [Jaccard(), Jaccard(exponent=2.0, max_donors=50)]
    if isinstance(data, Graph):
        numbers = sorted({min(n, data.n_nodes - 1) for n in N_DONORS})
        rules = [SameLabel()] * (data.label_codes is not None) + rules
        rules += [NearestNeighbours(n, embeddings="neighbourhoods") for n in numbers]
        rules += [NearestNeighbours(n) for n in numbers if data.features is not None]
    return rules


def warn_of_unlabelled_nodes(donors: Any, data: Any) -> bool:
    """Warn if a node and its donor share labels that most nodes lack; return whether it warned."""
    if (labels := group_labels(donors, data)) is None:
        return False
    values = np.asarray(labels)
    is_labelled = values != "" if values.dtype.kind in "OU" else values > UNLABELLED
    return warn_of_few_labels(is_labelled.sum(), len(values))


def warn_of_few_labels(n_labelled: int, n_nodes: int) -> bool:
    """Warn if most nodes have no label, so that samples are nearly the observed graph."""
    if n_labelled >= MIN_LABELLED_SHARE * n_nodes:
        return False
    warn_about_data(
        f"{n_labelled} of {n_nodes} nodes have a label, by which donors are drawn; the others keep their own "
        "neighbours, so samples are nearly the observed graph. Give predicted labels or other donors.",
        "donors",
    )
    return True


def _shape(data: Graph | Interactions) -> tuple[int, int, bool]:
    return data.rows.n_rows, data.rows.n_columns, getattr(data, "directed", True)


def _row_bytes(rows: Rows) -> Iterator[bytes]:
    weights = np.ones(rows.n_entries) if rows.weights is None else rows.weights.astype(np.float64)
    indices = rows.indices.astype(np.int64)
    for start, end in zip(rows.indptr[:-1].tolist(), rows.indptr[1:].tolist(), strict=True):
        yield indices[start:end].tobytes() + weights[start:end].tobytes()


class EdgeTrackingSampler:
    """Sample the edges of a fitted model: their ends, and the observed edge behind each of them.

    Of parallel edges the heaviest is kept; ties go to the last one.
    """

    def __init__(
        self, model: NodeCopying[Graph], first: IntArray, second: IntArray, weights: FloatArray
    ) -> None:
        # Ranks by weight replace the weights, so that the rank of a sampled edge identifies the observed one.
        self.edge_of_rank = np.argsort(weights, kind="stable")
        ranks = np.empty(len(weights))
        ranks[self.edge_of_rank] = np.arange(1, len(weights) + 1)
        matrix = deduplicate(first, second, ranks, model.graph_.adjacency.shape)
        self.model = copy(model)
        self.model.graph_ = Graph(matrix, directed=model.graph_.directed)

    def sample(self, *, rng: Rng = None) -> tuple[IntArray, IntArray, Ints]:
        return next(self.sample_many(1, rng=rng))

    def sample_many(
        self, n: int, *, rng: Rng = None, workers: int = 1
    ) -> Iterator[tuple[IntArray, IntArray, Ints]]:
        """Yield sources, targets and observed edges of ``n`` samples; undirected edges in both directions."""
        for sample in self.model.sample_many(n, rng=rng, workers=workers):
            rows = sample.rows
            ranks = np.ones(rows.n_entries) if rows.weights is None else rows.weights
            yield rows.row_numbers, rows.indices, self.edge_of_rank[ranks.astype(np.int64) - 1]
