"""Error correction by node copying (the paper's Algorithm 2)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import softmax

from nodecopy._core.arrays import Array, Bools, FloatArray, Floats, IntArray, Ints, Rows
from nodecopy._core.checks import check_choice, check_integer
from nodecopy._core.messages import warn_about_data
from nodecopy._core.random import child, sample_key, threefry, unit_interval
from nodecopy.classify import Classifier
from nodecopy.defend.base import AttackedState, Correction, Defence, DefenceSeeds, check_distinct
from nodecopy.defend.edges import estimate_trust, score_suspicion
from nodecopy.errors import InputError
from nodecopy.features.embeddings import EMBEDDING_NAMES, NodeEmbeddings
from nodecopy.features.neighbours import NeighbourSearch
from nodecopy.generators import GAE, VGAE
from nodecopy.graph import Graph
from nodecopy.nn.compiled import SLOPES
from nodecopy.nn.engine import Ensemble

# A copier returns the probabilities of pairs of a node and its donor, whose neighbourhood the node gets.
Copier = Callable[[IntArray, IntArray], FloatArray]
Entries = tuple[IntArray, IntArray, FloatArray]  # row number, node and weight
MODES = ("swap-features", "copy-row")
DONOR_NAMES = (*EMBEDDING_NAMES, "vgae", "gae")
MAX_SECONDS = 60.0  # estimated duration beyond which a warning is issued
MAX_ENTRIES = 2**22  # about the largest number of entries in the matrices of pairs evaluated together


class TwoHopCopier:
    """Evaluate two-layer GCNs exactly on the two-hop neighbourhoods of the donors."""

    def __init__(self, networks: Ensemble, graph: Graph, mode: str) -> None:
        self.networks, self.mode = networks, mode
        self.features: Any = graph.features
        self.rows, self.directed = graph.rows, graph.directed
        if networks.weight_scaling.kind != "raw":
            self.rows = Rows.from_matrix(networks.weight_scaling.apply(graph.adjacency), "adjacency")
        row_sums: Any = graph.degrees if self.rows.weights is None else self.rows.csr.sum(axis=1)
        self.row_sums: Floats = 1.0 + np.asarray(row_sums, np.float64)  # of A + I

    def predict_pairs(self, nodes: IntArray, donors: IntArray) -> Floats:
        convolutions = self.swap_features if self.mode == "swap-features" else self.copy_rows
        owner, inner, _ = self._entries(donors)
        # About the number of entries of each pair: the degrees of its donor's neighbours, summed.
        degrees = self.rows.indptr[inner + 1] - self.rows.indptr[inner]
        n_entries = np.bincount(owner, degrees + 1, minlength=len(donors)).astype(np.int64) + 1
        block = np.cumsum(n_entries) // MAX_ENTRIES
        parts = np.split(np.arange(len(nodes)), np.flatnonzero(np.diff(block)) + 1)
        return np.concatenate([self._evaluate(*convolutions(nodes[p], donors[p]), len(p)) for p in parts])

    def swap_features(self, nodes: IntArray, donors: IntArray) -> tuple[Entries, Entries]:
        """Return both convolutions at each donor, which has the node's features."""
        pair, inner, weight = self._entries(donors, self_loops=True)
        second = weight / np.sqrt(self.row_sums[donors[pair]] * self.row_sums[inner])
        owner, outer, weight = self._entries(inner, self_loops=True)
        first = weight / np.sqrt(self.row_sums[inner[owner]] * self.row_sums[outer])
        outer = np.where(outer == donors[pair][owner], nodes[pair][owner], outer)
        return (owner, outer, first), (pair, inner, second)

    def copy_rows(self, nodes: IntArray, donors: IntArray) -> tuple[Entries, Entries]:
        """Return both convolutions at each node with its donor's row, undirected in both directions."""
        row = self._entries(donors)
        change: Entries = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
        if not self.directed:  # no self-loops, and both ends of an edge change
            row = _select(row, row[1] != nodes[row[0]])
            old = self._entries(nodes)
            change = _concatenate(row, (old[0], old[1], -old[2]))
        pairs = np.arange(len(nodes))
        total = 1.0 + np.bincount(row[0], row[2], minlength=len(nodes))
        owner, changed, difference = _concatenate(change, (pairs, nodes, total - self.row_sums[nodes]))
        shape = len(nodes), len(self.row_sums)
        changes = sparse.csr_array((difference, (owner, changed)), shape=shape)

        def changed_row_sums(pair: IntArray, node: IntArray) -> Floats:
            return self.row_sums[node] + np.asarray(changes[pair, node]).ravel()

        is_loop = row[1] == nodes[row[0]]
        own_loop = 1.0 + np.bincount(row[0][is_loop], row[2][is_loop], minlength=len(nodes))
        others = _select(row, ~is_loop)
        pair, inner, weight = _concatenate(others, (pairs, nodes, own_loop))
        second = weight / np.sqrt(changed_row_sums(pairs, nodes)[pair] * changed_row_sums(pair, inner))
        owner, outer, weight = self._changed_rows(row, others, nodes)
        products = changed_row_sums(pair[owner], inner[owner]) * changed_row_sums(pair[owner], outer)
        first = weight / np.sqrt(products)
        return (owner, outer, first), (pair, inner, second)

    def _evaluate(self, first: Entries, second: Entries, n_pairs: int) -> Floats:
        n_inner = len(second[0])
        columns_in_use, column = np.unique(first[1], return_inverse=True)
        shape = n_inner, len(columns_in_use)
        first_convolution = sparse.csr_array((first[2], (first[0], column)), shape=shape)
        entries = second[2], (second[0], np.arange(n_inner))
        second_convolution = sparse.csr_array(entries, shape=(n_pairs, n_inner))
        networks = self.networks
        inputs = networks.feature_scaling.apply(self.features[columns_in_use])
        slope, total = SLOPES[networks.config.activation], np.zeros(())
        for weights, last_weights, *biases in zip(*networks.weights, strict=True):
            hidden = first_convolution @ (inputs @ weights)
            hidden = hidden + biases[0] if biases else hidden
            hidden = np.where(hidden > 0, hidden, slope * hidden)
            logits = (second_convolution @ hidden) @ last_weights
            total = total + softmax(logits + biases[1] if biases else logits, axis=1)
        return np.asarray(total / len(networks.weights[0]))

    def _changed_rows(self, row: Entries, others: Entries, nodes: IntArray) -> Entries:
        """Return changed rows of A + I: those of the nodes in ``others``, then of ``nodes``."""
        pair, inner, weight = others
        second_hop = self._entries(inner)
        if not self.directed:
            second_hop = _select(second_hop, second_hop[1] != nodes[pair[second_hop[0]]])
            second_hop = _concatenate(second_hop, (np.arange(len(inner)), nodes[pair], weight))
        own = row[0] + len(inner), row[1], row[2]
        loop_nodes = np.concatenate([inner, nodes])
        loops = np.arange(len(loop_nodes)), loop_nodes, np.ones(len(loop_nodes))
        return _concatenate(_concatenate(second_hop, own), loops)

    def _entries(self, nodes: IntArray, *, self_loops: bool = False) -> Entries:
        """Return the rows of A, or of A + I with self-loops last."""
        rows = self.rows.csr[nodes].tocoo()
        entries: Entries = rows.row, rows.col, rows.data.astype(np.float64)
        loops = np.arange(len(nodes)), nodes, np.ones(len(nodes))
        return _concatenate(entries, loops) if self_loops else entries


def predict_copies(state: AttackedState, mode: str, nodes: IntArray, donors: IntArray) -> FloatArray:
    """Evaluate any classifier on a whole graph for each pair."""
    swaps = mode == "swap-features"
    change = _replace_features if swaps else _copy_row
    start, rows = time.monotonic(), []
    for pair in zip(nodes.tolist(), donors.tolist(), strict=True):
        rows.append(state.predict(change(state.graph, *pair))[pair[swaps]])
        seconds = (time.monotonic() - start) * (len(nodes) - 1)
        if len(rows) == 1 and seconds > MAX_SECONDS:
            duration = f"{len(nodes):,} graphs, which will take about {seconds / 60:.0f} minutes"
            way_out = "Give the nodes that may be attacked as targets, or use fewer donors."
            warn_about_data(f"corrections by this classifier evaluate {duration}. {way_out}")
    return np.array(rows)


def _predict_nodes(state: AttackedState, nodes: IntArray, donors: IntArray) -> FloatArray:
    return state.probabilities[nodes]  # exact for classifiers that do not use edges


def choose_copier(state: AttackedState, mode: str) -> Copier:
    """Return the cheapest exact copier for a classifier."""
    if isinstance(state.networks, Ensemble):
        config = state.networks.config
        if config.propagation == "none":
            return partial(_predict_nodes, state)
        if config.propagation == "convolution" and config.rank is None:
            return TwoHopCopier(state.networks, state.graph, mode).predict_pairs
    return partial(predict_copies, state, mode)


def _replace_features(graph: Graph, node: int, donor: int) -> Graph:
    rows = np.arange(graph.n_nodes)
    rows[donor] = node
    features: Any = graph.features
    return graph.replace(features=features[rows])


def _copy_row(graph: Graph, node: int, donor: int) -> Graph:
    row, rest = graph.adjacency[[donor]].tocoo(), graph.adjacency.tocoo()
    keep = rest.row != node
    if not graph.directed:
        keep &= rest.col != node
    kept = rest.row[keep], rest.col[keep], rest.data[keep]
    first, second, weight = _concatenate(kept, (np.full(row.nnz, node), row.col, row.data))
    return graph.replace(adjacency=sparse.csr_array((weight, (first, second)), shape=rest.shape))


def _concatenate(first: Entries, second: Entries) -> Entries:
    rows, nodes, weights = (np.concatenate(parts) for parts in zip(first, second, strict=True))
    return rows, nodes, weights


def _select(entries: Entries, mask: Bools) -> Entries:
    return entries[0][mask], entries[1][mask], entries[2][mask]


def find_donors(search: NeighbourSearch, n_donors: int, nodes: IntArray) -> Ints:
    """Return the nearest other nodes, ``[len(nodes), n_donors]``, nearest first."""
    _, donors = search.nearest(n_donors, of=nodes, include_self=False)
    return donors.reshape(len(nodes), n_donors).astype(np.int64)


def build_donor_search(
    donors: Any, embeddings: NodeEmbeddings, *, seed: SeedSequence, device: str, caller: str
) -> NeighbourSearch:
    """Return the search for donors by the parameter ``donors`` of the caller."""
    graph, name = embeddings.graph, f"donors of {caller}"
    if isinstance(donors, str):
        check_choice(donors, name, DONOR_NAMES)
        if donors in EMBEDDING_NAMES:
            try:
                return embeddings.search(donors, parameter="donors", owner=caller)
            except InputError as error:
                if embeddings.feature_counts is not None:
                    raise
                hint = "Donors can be chosen by 'neighbourhoods', 'vgae' or 'gae'."
                raise InputError(f"{error} {hint}") from error
        autoencoder = VGAE if donors == "vgae" else GAE
        model = autoencoder(sampler="raw", device=device)  # no calibration, since no graph is sampled
        return NeighbourSearch(model.fit(graph, rng=seed).embeddings(), owner=caller)
    search = NeighbourSearch(donors(graph) if callable(donors) else donors, owner=caller)
    if (n_rows := search.matrix.shape[0]) != graph.n_nodes:
        raise InputError(name, f"must have {graph.n_nodes} rows, one per node; got {n_rows}.")
    return search


@dataclass(frozen=True, eq=False)
class CopyingCorrection(Correction):
    """Predictions averaged over the nearest nodes by ``search``; see :class:`CopyingDefence`."""

    state: AttackedState
    search: NeighbourSearch
    n_donors: int
    copier: Copier
    n_graphs: int | None = None
    trust_edges: bool = False

    def find_donors(self, nodes: IntArray) -> Ints:
        return find_donors(self.search, self.n_donors, nodes)

    def predict_proba(self, nodes: IntArray) -> FloatArray:
        copied = self.average_copies(nodes)
        if not self.trust_edges:
            return copied
        state = self.state
        trust, trusted_graph = estimate_trust(state.complete_graph, state.embeddings.features, nodes)
        own: FloatArray = state.predict(trusted_graph)[nodes]
        return (1 - trust) * copied + trust * own

    def average_copies(self, nodes: IntArray) -> FloatArray:
        if not len(nodes):
            return self.state.probabilities[:0]
        donors = self.find_donors(nodes)
        if self.n_graphs is not None:
            key = sample_key(child(self.state.seed, DefenceSeeds.DONOR_DRAWS), 0)
            position, draw = np.broadcast_arrays(nodes[:, None], np.arange(self.n_graphs))
            draws = unit_interval(*threefry(key, position, draw)) * self.n_donors
            donors = np.take_along_axis(donors, draws.astype(np.int64), axis=1)
        copies = self.copier(np.repeat(nodes, donors.shape[1]), donors.ravel())
        return np.asarray(copies.reshape(*donors.shape, copies.shape[-1]).mean(axis=1))

    def with_similar_donors(self) -> CopyingCorrection:
        """Return the correction by donors whose neighbourhoods are similar to the node's own."""
        search = self.state.embeddings.search("neighbourhoods", parameter="donors", owner="suspicion")
        return replace(self, search=search)

    def score_nodes(self) -> tuple[Floats, Array, Array]:
        """Return suspicion scores, and the mean predictions by donors and by similar donors."""
        state, nodes = self.state, np.arange(self.state.graph.n_nodes)
        copied, similar = (part.average_copies(nodes) for part in (self, self.with_similar_donors()))
        scores = score_suspicion(state.embeddings, state.probabilities, copied, similar)
        return scores, copied, similar


@dataclass(eq=False, repr=False)
class DonorDefence(Defence):
    """The base class of defences that find donors; parameters as in :class:`CopyingDefence`."""

    classifier: Classifier | str | None = None
    donors: Any = "expected"
    n_donors: int = 10
    n_graphs: int | None = None
    _: KW_ONLY
    retrain: bool = False
    device: str = "cpu"

    mode = "swap-features"
    trust_edges = False

    def check_parameters(self, graph: Graph) -> None:
        caller, n_others = type(self).__name__, graph.n_nodes - 1
        check_integer(self.n_donors, f"n_donors of {caller}", low=1, high=n_others, high_name="n_nodes - 1")
        if self.n_graphs is not None:
            check_integer(self.n_graphs, f"n_graphs of {caller}", low=1)
        check_choice(self.mode, f"mode of {caller}", MODES)

    def build_copier(self, state: AttackedState) -> Copier:
        return choose_copier(state, self.mode)

    def prepare_copying(self, state: AttackedState) -> CopyingCorrection:
        seed, caller = child(state.seed, DefenceSeeds.DONOR_EMBEDDING), type(self).__name__
        search = build_donor_search(
            self.donors, state.embeddings, seed=seed, device=self.device, caller=caller
        )
        copier = self.build_copier(state)
        return CopyingCorrection(state, search, self.n_donors, copier, self.n_graphs, self.trust_edges)

    def prepare_correction(self, state: AttackedState) -> Correction:
        return self.prepare_copying(state)

    def score_suspicion(self, *, graph: Graph | None = None) -> Floats:
        """Return a score of every node; attacked nodes tend to have the highest ones.

        ``graph`` is the attacked graph, by default the one given to ``fit``. The classifier was trained with
        all edges. The time to find donors grows with the square of the number of nodes.
        """
        return self.prepare_copying(self.attacked_state(graph)[1]).score_nodes()[0]

    def nearest_donors(self, nodes: ArrayLike, *, graph: Graph | None = None) -> Ints:
        """Return the donors of some nodes, ``[len(nodes), n_donors]``, nearest first."""
        correction: Any
        _, state, correction = self.prepare_graph(graph)
        return np.asarray(correction.find_donors(check_distinct(state.graph, nodes)))


@dataclass(eq=False, repr=False, kw_only=True)
class CopyingDefence(DonorDefence):
    """Correct predictions at attacked nodes by giving them the neighbourhoods of similar nodes.

    At a node that may have been attacked, the classifier's prediction is replaced by the mean of its
    predictions with each donor's neighbourhood in place of the node's own.

    Parameters
    ----------
    classifier
        The classifier to train, a GCN by default; :meth:`from_classifier` takes one that is trained.
    donors
        How donors are chosen, by Euclidean distances. ``"vgae"`` (the paper) or ``"gae"``: by the
        autoencoder's embedding of the attacked graph. ``"features"``: by features alone.
        ``"neighbourhoods"``: by the features within two hops. ``"expected"``: by features and the
        neighbourhood expected from them, which is learned from all other nodes, so that the node's own edges
        have no direct influence. Or an array with one row per node, or a function that returns one for a
        graph (``load`` then needs it in ``classes``).
    n_donors
        Number of donors of each node (the paper's P).
    n_graphs
        Number of copied graphs that are averaged (the paper's N_G), each with a donor drawn uniformly;
        ``None`` takes every donor once.
    retrain
        Whether the classifier is trained without the edges of the targets, so that an attack affects neither
        training nor donors through these edges. It needs :meth:`fit` with targets.
    trust_edges
        Whether to mix the correction with the prediction from those of the node's own edges that are
        plausible (see :func:`.estimate_trust`), so that a node that was not attacked loses little. An
        attacker may choose plausible edges, so this costs accuracy under strong attacks.
    mode
        ``"swap-features"``: the node's features are put in place of the donor's, as in the authors' code.
        ``"copy-row"``: the node itself gets the donor's row of the adjacency, undirected in both directions.
    device
        ``"cpu"`` or ``"cuda"``, for the default classifier (another has its own) and for autoencoders.

    Notes
    -----
    - With GCNs, those of a Bayesian GCN included, only the two-hop neighbourhoods of donors are evaluated.
      Other classifiers predict on a whole graph for every donor of every target.
    - Edges of donors may have been attacked too; the defence does not correct these.
    - Corrections by a Bayesian GCN draw no dropout.

    Examples
    --------
    >>> from nodecopy import datasets, defend
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> defend.CopyingDefence().fit(digits, range(100), rng=0).score() > 0.8
    True
    """

    trust_edges: bool = False
    mode: str = "swap-features"
