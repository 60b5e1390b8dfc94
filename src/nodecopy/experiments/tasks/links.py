"""The tasks ``links``, of missing and doubtful edges, and ``denoise``, of classifiers on noisy graphs.

Link predictors have ``fit(graph, rng=...)``, ``score(pairs)`` and ``edge_probabilities()``. The controls of
:class:`.LinkPredictor` are here, too.
"""

from __future__ import annotations

import copy
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit, logit

from nodecopy._core.arrays import IntArray, unit_rows
from nodecopy._core.checks import check_choice
from nodecopy._core.estimator import Configurable
from nodecopy._core.linalg import truncated_svd
from nodecopy._core.random import Rng, generator
from nodecopy.attacks import GlobalDICE
from nodecopy.datasets import label_split
from nodecopy.experiments.spec import Cell, Column, TrialSeeds, instantiate, key
from nodecopy.experiments.store import Record, Store
from nodecopy.experiments.tasks import BEST_NOTE, Task
from nodecopy.generators.base import list_edges, replace_edges, sample_non_edges, split_edges
from nodecopy.graph import Graph
from nodecopy.inference import spectral_communities
from nodecopy.links import LinkPredictor
from nodecopy.links.signals import LinkSignals, NodeFacts, ObservedLinks
from nodecopy.metrics.classification import area_under_roc

Values = NDArray[np.float64]
N_FOLDS = 10  # in which controls judge the edges of a graph
N_RANKED = 20_000  # random pairs among which test edges are ranked
N_CORRUPTED, MAX_CORRUPTED = 50, 1000  # pairs that share each end of a test edge, and such edges
BLOCK, PAIR_BLOCK = 256, 2**14  # sources of walks, and other pairs, at once
N_BINS = 15  # of calibration errors
PREDICTED_SHARE = 0.3  # of the edges, in each epoch of a GCN
WALKS = {"pagerank": (0.8, 15), "katz": (0.5, 10)}  # factor of every step, and number of steps
SIGNALS = (
    *("common-neighbours", "adamic-adar", "katz", "pagerank", "spectral", "block-model"),
    *("features", "neighbourhoods", "copied-one", "copied-both"),
)
SCORES = {
    "auc": "AUC", "ap": "AP", "hits@20": "Hits@20", "hits@50": "Hits@50", "hits@100": "Hits@100",
    "mrr": "MRR", "hard auc": "AUC, hard", "hard mrr": "MRR, hard",
    "ece": "ECE", "balanced ece": "ECE, balanced",
}  # fmt: skip
QUESTIONS = {"missing": "held-out edges", "random": "random edges", "similar": "similar ends", "dice": "DICE"}
NOTES = [
    "Held-out edges: {test:.0%} of the edges are test edges, {validation:.0%} are left out as for methods "
    "that need validation edges. AUC and AP: against as many random pairs. Hits@k: the share of test edges "
    f"above the k-th of {N_RANKED:,} random pairs. MRR: the rank of up to {MAX_CORRUPTED:,} test edges, each "
    f"among {2 * N_CORRUPTED} pairs that share an end with it. Hard: these pairs are two steps apart where "
    "there are such. ECE: expected calibration error of probabilities at the density of the graph; balanced: "
    "where half of the pairs are edges.",
    "Other columns: AUC for finding planted edges, {planted:.0%} of the edges, among all edges: random ones, "
    "those between the nodes with the most similar features out of ten random pairs, and those of DICE, "
    "between classes. Controls judge each tenth of the edges by the others.",
]  # fmt: skip
NOISE = {"clean": "clean", "added": "edges added", "removed": "edges removed"}


class LinkControl(Configurable, ABC):
    """A link predictor with scores in place of probabilities."""

    graph_: Graph

    def fit(self, graph: Graph, *, rng: Rng = None) -> Self:
        """Prepare the scores of pairs."""
        self.graph_, self._rng = graph, generator(rng)
        self._prepare(graph, self._rng)
        return self

    @abstractmethod
    def _prepare(self, graph: Graph, rng: Generator) -> None: ...

    @abstractmethod
    def score(self, pairs: IntArray) -> Values:
        """Return the scores of pairs of positions, ``[n, 2]``."""

    def edge_probabilities(self) -> Values:
        """Return the score of each edge, computed without its fold."""
        first, second = list_edges(self.graph_)
        scores = np.empty(len(first))
        folds = self._rng.permutation(np.arange(len(first)) % N_FOLDS)
        for fold in range(N_FOLDS):
            kept, pairs = folds != fold, np.stack([first, second], axis=1)[folds == fold]
            train = replace_edges(self.graph_, first[kept], second[kept])
            scores[folds == fold] = copy.copy(self).fit(train, rng=self._rng).score(pairs)
        return scores


class SignalControl(LinkControl):
    """A single signal: a heuristic of link prediction, or a column of :class:`.LinkSignals`."""

    def __init__(self, signal: str = "adamic-adar", n_donors: int = 100) -> None:
        self.signal, self.n_donors = check_choice(signal, "signal of SignalControl", SIGNALS), n_donors

    def _prepare(self, graph: Graph, rng: Generator) -> None:
        A = sparse.csr_array(graph.binary().adjacency.astype(np.float64))
        self._left: Any
        self._right: Any
        degrees = np.maximum(graph.degrees, 1).astype(np.float64)
        if self.signal in ("features", "neighbourhoods", "copied-one", "copied-both"):
            n_donors = self.n_donors if self.signal.startswith("copied") else 0
            facts = NodeFacts(graph)
            signals = LinkSignals(ObservedLinks.from_data(graph), slice(None), facts, n_donors)
            P, U = signals.P, signals.U
            if self.signal == "features":
                self._left = self._right = facts.weighted
            elif self.signal == "neighbourhoods":
                self._left = self._right = signals.embedding
            elif self.signal == "copied-one":
                self._left, self._right = sparse.hstack([P, U], "csr"), sparse.hstack([U, P], "csr")
            else:
                self._left, self._right = sparse.csr_array(P @ U), P
        elif self.signal in WALKS:
            scales = degrees  # PageRank with symmetric normalisation, so that one direction suffices
            if self.signal == "katz":
                scales = np.full(len(degrees), truncated_svd(A, 1)[1][0])
            root = sparse.diags_array(scales**-0.5)
            self._step = sparse.csr_array(root @ A @ root)
        elif self.signal == "spectral":
            u, s, vt = truncated_svd(A, min(32, graph.n_nodes - 1))
            self._left, self._right = u * s, vt.T
        elif self.signal == "block-model":
            blocks = spectral_communities(graph)
            member: Any = sparse.csr_array((np.ones(len(blocks)), (np.arange(len(blocks)), blocks)))
            counts, totals = (member.T @ A @ member).toarray(), member.T @ graph.degrees
            self._left = graph.degrees[:, None] * (counts / np.maximum(np.outer(totals, totals), 1))[blocks]
            self._right = member.toarray() * graph.degrees[:, None]
        else:
            is_weighted = self.signal == "adamic-adar"
            weights = 1 / np.log(np.maximum(degrees, 2)) if is_weighted else np.ones_like(degrees)
            self._left, self._right = sparse.csr_array(A @ sparse.diags_array(weights)), A

    def score(self, pairs: IntArray) -> Values:
        if self.signal in WALKS:
            return self._walk(*pairs.T)
        scores = np.empty(len(pairs))
        for start in range(0, len(pairs), PAIR_BLOCK):
            block = slice(start, start + PAIR_BLOCK)
            both = self._left[pairs[block, 0]], self._right[pairs[block, 1]]
            is_sparse = sparse.issparse(self._left)
            scores[block] = both[0].multiply(both[1]).sum(axis=1) if is_sparse else (both[0] * both[1]).sum(1)
        return scores

    def _walk(self, first: IntArray, second: IntArray) -> Values:
        """Return sums over walks from the first to the second nodes."""
        counts = np.bincount(np.concatenate([first, second]))
        is_turned = counts[second] > counts[first]  # walks are symmetric: start from few nodes
        first, second = np.where(is_turned, second, first), np.where(is_turned, first, second)
        factor, n_steps = WALKS[self.signal]
        scores, (sources, row) = np.empty(len(first)), np.unique(first, return_inverse=True)
        for start in range(0, len(sources), BLOCK):
            block = sources[start : start + BLOCK]
            state: Any = np.zeros((self.graph_.n_nodes, len(block)))
            state[block, np.arange(len(block))] = 1.0
            total = np.zeros(state.shape)
            for _ in range(n_steps):
                state = factor * (self._step @ state)
                total += state
            chosen = (row >= start) & (row < start + BLOCK)
            scores[chosen] = total[second[chosen], row[chosen] - start]
        return scores


class AutoencoderControl(LinkControl):
    """The inner products of a graph autoencoder."""

    def __init__(self, model: Any = None) -> None:
        self.model = model

    def _prepare(self, graph: Graph, rng: Generator) -> None:
        self._decoded = copy.copy(self.model).fit(graph, rng=rng).decoded_

    def score(self, pairs: IntArray) -> Values:
        both = self._decoded[pairs[:, 0]], self._decoded[pairs[:, 1]]
        return np.asarray(np.einsum("nd,nd->n", *both, dtype=np.float64))


class NetworkControl(LinkControl):
    """A GCN of PyTorch Geometric with a decoder on products of embeddings, trained on edges.

    In each epoch, a random share of the edges is predicted from the others, as with ``disjoint_train_ratio``
    of PyTorch Geometric's RandomLinkSplit, which is better than to predict edges that the network sees.
    """

    def __init__(
        self, n_hidden: int = 256, n_epochs: int = 200, dropout: float = 0.5, device: str = "cpu"
    ) -> None:
        self.n_hidden, self.n_epochs, self.dropout, self.device = n_hidden, n_epochs, dropout, device

    def _prepare(self, graph: Graph, rng: Generator) -> None:
        import torch
        from torch_geometric.nn import GCNConv

        from nodecopy.nn.networks import add_identity_features

        def tensor(array: Any) -> Any:
            return torch.as_tensor(np.asarray(array), device=self.device)

        with torch.random.fork_rng(devices=[self.device] if self.device.startswith("cuda") else []):
            torch.manual_seed(int(rng.integers(2**31)))
            given: Any = add_identity_features(graph).features
            x = tensor(unit_rows(sparse.csr_array(given)).toarray().astype(np.float32))
            edges = tensor(np.stack(list_edges(graph)))
            n = self.n_hidden
            layers = torch.nn.ModuleList([GCNConv(x.shape[1], n), GCNConv(n, n)]).to(self.device)
            head = torch.nn.Sequential(torch.nn.Linear(n, n), torch.nn.ReLU(), torch.nn.Linear(n, 1))
            head = head.to(self.device)
            drop = torch.nn.functional.dropout

            def embed(seen: Any, is_training: bool) -> Any:
                both = torch.cat([seen, seen.flip(0)], dim=1)
                z = layers[0](drop(x, self.dropout, is_training), both).relu()
                return layers[1](drop(z, self.dropout, is_training), both)

            optimiser = torch.optim.Adam([*layers.parameters(), *head.parameters()], 0.01)
            n_predicted = max(1, round(PREDICTED_SHARE * edges.shape[1]))
            targets = torch.tensor([1.0, 0.0], device=self.device).repeat_interleave(n_predicted)
            for _ in range(self.n_epochs):
                edges = edges[:, torch.randperm(edges.shape[1], device=self.device)]
                predicted = edges[:, :n_predicted]
                pairs = torch.cat([predicted, torch.randint_like(predicted, graph.n_nodes)], dim=1)
                z = embed(edges[:, n_predicted:], True)
                logits = head(z[pairs[0]] * z[pairs[1]]).ravel()
                loss: Any = torch.nn.functional.binary_cross_entropy_with_logits(logits, targets)
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
            with torch.no_grad():
                self._embedding, self._head = embed(edges, False), head

    def score(self, pairs: IntArray) -> Values:
        import torch

        with torch.no_grad():
            first, second = torch.as_tensor(pairs, device=self.device).T
            logits = self._head(self._embedding[first] * self._embedding[second])
            return np.asarray(logits.ravel().cpu().numpy(), np.float64)


@dataclass(frozen=True, kw_only=True)
class LinksTask(Task):
    """Prediction of held-out edges, and detection of planted ones."""

    validation: float = key("share")
    test: float = key("share")
    planted: float = key("share")
    questions: tuple[str, ...] = key([QUESTIONS], default=tuple(QUESTIONS))

    main_score = "auc"
    family = "a link predictor"
    family_methods = ("fit", "score", "edge_probabilities")
    protocol_fields = ("validation", "test", "planted", "largest_component")

    @property
    def conditions(self) -> tuple[dict[str, Any], ...]:
        return tuple({"question": question} for question in self.questions)

    @property
    def columns(self) -> tuple[Column, ...]:
        columns = []
        for question in self.questions:
            scores = SCORES if question == "missing" else {"auc": QUESTIONS[question]}
            place = (("question", question),)
            columns += [
                Column(score, place, heading, lower_is_better="ece" in score)
                for score, heading in scores.items()
            ]
        return tuple(columns)

    def notes(self, titles: Mapping[str, str]) -> list[str]:
        return [*(note.format(**vars(self)) for note in NOTES), BEST_NOTE]

    def solve(self, cell: Cell, trials: Sequence[int], store: Store, device: str) -> Iterator[Record]:
        graph, question = self.load(cell).undirected().binary(), cell.conditions["question"]
        graph = graph.replace(node_ids=range(graph.n_nodes))  # methods score pairs of ids
        for trial in trials:
            rng = np.random.default_rng(cell.trial_seed(trial, TrialSeeds.SPLIT))
            model: Any = instantiate(cell.path, cell.settings, cell.section, device)
            seed = cell.trial_seed(trial, TrialSeeds.METHOD)
            if question == "missing":
                split = split_edges(graph, validation=self.validation, test=self.test, rng=rng)
                start = time.perf_counter()
                model.fit(split.train, rng=seed)
                scores = rank_edges(graph, split, model, rng)
            else:
                noisy, is_planted = plant_edges(graph, self.planted, question, rng)
                start = time.perf_counter()
                probabilities = model.fit(noisy, rng=seed).edge_probabilities()
                scores = {"auc": area_under_roc(-probabilities, is_planted)}
            yield Record(trial, scores, time.perf_counter() - start, {})


def rank_edges(graph: Graph, split: Any, model: Any, rng: Generator) -> dict[str, float]:
    """Return the scores of held-out edges among random and hard pairs."""
    edges, others = split.test.edges.T, split.test.non_edges.T
    n_absent = graph.n_nodes * (graph.n_nodes - 1) // 2 - graph.n_edges
    n = min(N_RANKED, n_absent)
    many = sample_non_edges(graph, n, rng=rng).T
    ours, theirs, ranked = (model.score(pairs) for pairs in (edges, others, many))
    scores = compare_scores(ours, theirs)
    ranked = np.sort(ranked)[::-1]
    scores |= {f"hits@{k}": float((ours > ranked[min(k, n) - 1]).mean()) for k in (20, 50, 100)}
    if isinstance(model, LinkPredictor):
        scores |= calibration_errors(ours, theirs, density=split.train.n_edges / (n_absent + graph.n_edges))
    edges, ours = edges[:MAX_CORRUPTED], ours[:MAX_CORRUPTED]
    for prefix, is_hard in (("", False), ("hard ", True)):
        pairs = corrupt(graph, split.train, edges, is_hard, rng)
        values = model.score(pairs.reshape(-1, 2)).reshape(len(edges), -1)
        rank = 1 + (values > ours[:, None]).sum(axis=1) + (values == ours[:, None]).sum(axis=1) / 2
        scores[f"{prefix}mrr"] = float((1 / rank).mean())
        if is_hard:
            scores["hard auc"] = compare_scores(ours, values.ravel())["auc"]
    return scores


def compare_scores(ours: Values, others: Values) -> dict[str, float]:
    """Return the area under the ROC curve and the average precision; ties count half."""
    scores, is_edge = np.concatenate([ours, others]), np.arange(len(ours) + len(others)) < len(ours)
    levels, level_of = np.unique(-scores, return_inverse=True)
    hits = np.cumsum(np.bincount(level_of, is_edge, len(levels)))
    precision = hits / np.cumsum(np.bincount(level_of, minlength=len(levels)))
    average = float(np.diff(hits, prepend=0.0) @ precision / len(ours))
    return {"auc": area_under_roc(scores, is_edge), "ap": average}


def calibration_errors(ours: Values, others: Values, density: float) -> dict[str, float]:
    """Return expected calibration errors at the density of the graph, and where half are edges."""
    p, is_edge = np.concatenate([ours, others]), np.arange(len(ours) + len(others)) < len(ours)
    errors = {}
    for name, share in (("ece", density), ("balanced ece", 0.5)):
        shifted = expit(logit(p) - logit(density) + logit(share))
        weights = np.where(is_edge, share, 1 - share)
        excess = np.bincount((shifted * N_BINS).astype(int), weights * (shifted - is_edge), N_BINS + 1)
        errors[name] = float(np.abs(excess).sum() / weights.sum())
    return errors


def corrupt(graph: Graph, train: Graph, edges: IntArray, is_hard: bool, rng: Generator) -> IntArray:
    """Return pairs without an edge that share an end with each edge, ``[n, 2 * N_CORRUPTED, 2]``."""
    A, known = train.adjacency, graph.adjacency
    pairs = np.empty((len(edges), 2 * N_CORRUPTED, 2), np.int64)
    for number, edge in enumerate(edges):
        for part, end in enumerate(edge.tolist()):
            is_excluded = np.zeros(graph.n_nodes, bool)
            is_excluded[end] = True
            is_excluded[known.indices[known.indptr[end] : known.indptr[end + 1]]] = True
            near = np.zeros(0, np.int64)
            if is_hard:
                neighbours = A.indices[A.indptr[end] : A.indptr[end + 1]]
                near = np.unique(A[neighbours].indices).astype(np.int64)
                near = rng.permutation(near[~is_excluded[near]])[:N_CORRUPTED]
            rest = np.flatnonzero(~is_excluded)
            others = np.concatenate([near, rng.choice(rest, N_CORRUPTED - len(near))])
            place = slice(part * N_CORRUPTED, (part + 1) * N_CORRUPTED)
            pairs[number, place] = np.sort(np.stack([np.full(N_CORRUPTED, end), others], axis=1), axis=1)
    return pairs


def plant_edges(graph: Graph, share: float, kind: str, rng: Generator) -> tuple[Graph, NDArray[np.bool_]]:
    """Return the graph with planted edges, and which of its edges, in their order, are planted."""
    n = max(1, round(share * graph.n_edges))
    if kind == "dice":
        noisy = GlobalDICE().attack(graph, budget=2 * n, rng=rng).apply(graph)  # half of them connect
    else:
        pairs = sample_non_edges(graph, n * (10 if kind == "similar" else 1), rng=rng)
        if kind == "similar":
            facts = NodeFacts(graph)
            signals = LinkSignals(ObservedLinks.from_data(graph), slice(None), facts, 0)
            column = 0 if facts.features is None else 1  # neighbourhoods where there are no features
            pairs = pairs[:, np.argsort(-signals.compute(*pairs)[:, column], kind="stable")[:n]]
        ends = np.concatenate([np.stack(list_edges(graph)), pairs], axis=1)
        noisy = replace_edges(graph, *ends)
    first, second = list_edges(noisy)
    return noisy, ObservedLinks.from_data(graph).absent(first, second)


class Denoised(Configurable):
    """A classifier on a graph without its least credible edges, and with the most probable missing ones."""

    def __init__(self, base: Any = None, remove: float = 0.0, add: float = 0.0) -> None:
        self.base, self.remove, self.add = base, remove, add

    def fit(self, graph: Graph, train: IntArray, *, validation: Any = None, rng: Rng = None) -> Any:
        """Return the classifier, fitted to the denoised graph."""
        rng = generator(rng)
        cleaned = LinkPredictor().fit(graph, rng=rng).denoise(remove=self.remove, add=self.add)
        return self.base.fit(cleaned, train, validation=validation, rng=rng)


@dataclass(frozen=True, kw_only=True)
class DenoiseTask(Task):
    """Classification on graphs with added or removed edges."""

    labels: int = key("count")
    test: int = key("count")
    validation: int = key("count")
    noise: tuple[str, ...] = key([NOISE], default=tuple(NOISE))
    shares: tuple[int, ...] = key(["count"], default=(10, 30, 50))  # percent of the edges

    main_score = "accuracy"
    family = "a classifier"
    family_methods = ("fit",)
    protocol_fields = ("labels", "test", "validation", "largest_component")

    @property
    def conditions(self) -> tuple[dict[str, Any], ...]:
        kinds = [kind for kind in self.noise if kind != "clean"]
        clean = [{"noise": "clean", "percent": 0}] * ("clean" in self.noise)
        return (*clean, *({"noise": kind, "percent": share} for kind in kinds for share in self.shares))

    @property
    def columns(self) -> tuple[Column, ...]:
        columns = []
        for place in self.conditions:
            noise, percent = NOISE[place["noise"]], place["percent"]
            title = f"{percent} % {noise}" if percent else noise
            columns.append(Column("accuracy", tuple(place.items()), title))
        return tuple(columns)

    def notes(self, titles: Mapping[str, str]) -> list[str]:
        what = f"Accuracy at {self.test} test nodes, with {self.labels} labels per class."
        return [f"{what} Added edges are random.", BEST_NOTE]

    def solve(self, cell: Cell, trials: Sequence[int], store: Store, device: str) -> Iterator[Record]:
        graph: Graph = self.load(cell)
        for trial in trials:
            seed = cell.trial_seed(trial, TrialSeeds.SPLIT)
            split = label_split(graph.label_codes, self.labels, self.validation, self.test, rng=seed)
            rng = np.random.default_rng(cell.trial_seed(trial, TrialSeeds.TARGETS))
            n = round(cell.conditions["percent"] / 100 * graph.n_edges)
            ends = np.stack(list_edges(graph))
            if cell.conditions["noise"] == "removed":
                ends = ends[:, np.sort(rng.permutation(graph.n_edges)[n:])]
            elif n:
                ends = np.concatenate([ends, sample_non_edges(graph, n, rng=rng)], axis=1)
            noisy, start = replace_edges(graph, *ends), time.perf_counter()
            method: Any = instantiate(cell.path, cell.settings, cell.section, device)
            fitted = method.fit(
                noisy, split.train, validation=split.validation, rng=cell.trial_seed(trial, TrialSeeds.METHOD)
            )
            yield Record(trial, {"accuracy": fitted.score(split.test)}, time.perf_counter() - start, {})
