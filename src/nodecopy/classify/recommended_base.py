"""The default base of self-training: networks on copied graphs and SGC, chosen by what the data are like."""

from __future__ import annotations

from typing import Any

from nodecopy._core.hints import Hint
from nodecopy._core.notices import log_decision
from nodecopy._core.sparse_matrices import as_matrix
from nodecopy.classify.appnp import APPNP
from nodecopy.classify.base import Classifier
from nodecopy.classify.bayesian import BayesianGCN
from nodecopy.classify.gcn import GCN
from nodecopy.classify.sgc import SGC
from nodecopy.classify.soft_voting import SoftVoting
from nodecopy.classify.trial import Trial
from nodecopy.copying import DonorLaw, KeepByDegree, NearestNeighbours, NodeCopying, SameLabel
from nodecopy.features.scaling import explain_no_counts, is_sparse_counts, share_of_zeros
from nodecopy.graph import Graph

NETWORKS = ("auto", "appnp", "gcn")
N_GRAPHS = 5
"""Sampled graphs in every round."""
N_HIDDEN = 16
"""Hidden units of APPNP; with few labels they do better than 64."""
N_DONORS, MAX_NODES_FOR_NEAREST = 100, 50_000
"""Nearest nodes that a donor is drawn from, and the largest graph in which they are sought: the search takes
time in the square of the size of a class."""
PRIOR, N_FEW_LABELS = 4.0, 5
"""Prior of :class:`~nodecopy.KeepByDegree` with one label per class, and the number of labels per class from
which on it falls faster: with many, copying adds nothing and can cost accuracy."""
SGC_WEIGHT = 0.5
"""Weight of SGC beside the networks in the mean of probabilities."""


def build_base(
    trial: Trial,
    n_graphs: int | None,
    *,
    network: str,
    prior: float | None,
    sgc_weight: float | None,
    scarcity: float,
    device: str,
    **scalings: Any,
) -> Classifier:
    """Return the base for a classification problem.

    ``scarcity`` is one over the square root of the labels per class; ``scalings`` are those of features and
    edge weights.
    """
    weight = SGC_WEIGHT if sgc_weight is None else sgc_weight
    given = {name: value for name, value in scalings.items() if value is not None}
    if weight == 1:
        return SGC(**given)
    networks = _build_networks(trial, n_graphs, network, prior, scarcity, {**given, "device": device})
    return SoftVoting([networks, SGC(**given)], [1 - weight, weight]) if weight else networks


def _build_networks(
    trial: Trial,
    n_graphs: int | None,
    network: str,
    prior: float | None,
    scarcity: float,
    settings: dict[str, Any],
) -> BayesianGCN:
    """Return networks on copied graphs."""
    if network == "auto":
        network = _choose_network(trial.graph)
    base = APPNP(n_hidden=N_HIDDEN, **settings) if network == "appnp" else GCN(**settings)
    prior = PRIOR * scarcity * min(1.0, N_FEW_LABELS * scarcity**2) if prior is None else prior
    model = NodeCopying[Any](KeepByDegree(_choose_law(trial.graph, network), prior))
    if not prior:
        model = NodeCopying(SameLabel(), keep=1.0)
    return BayesianGCN(model, N_GRAPHS if n_graphs is None else n_graphs, base=base)


def _choose_network(graph: Graph) -> str:
    """Return APPNP for word counts of which most are zero, a GCN for anything else."""
    network, reason = "gcn", "there are no features"
    if graph.features is not None:
        matrix = as_matrix(graph.features, "features")
        reason = explain_no_counts(matrix, graph.feature_encoder)
        share = share_of_zeros(matrix)
        if not reason and is_sparse_counts(matrix):
            network, reason = "appnp", f"features are word counts and {share:.0%} of them are zero"
        else:
            reason = f"features are not sparse word counts ({reason or f'{share:.0%} of them are zero'})"
    name = {"appnp": "APPNP", "gcn": "GCN"}[network]
    other = "gcn" if network == "appnp" else "appnp"
    log_decision(f"networks: {name}, since {reason}.", Hint(network=other))
    return network


def _choose_law(graph: Graph, network: str) -> DonorLaw:
    """Return the law of nodes that do not keep their neighbours: nearest nodes of the same predicted class.

    Any of that class are as good for a GCN, whose predictions are smooth already, and quicker to find.
    """
    if network == "gcn" or graph.n_nodes > MAX_NODES_FOR_NEAREST:
        return SameLabel()
    return NearestNeighbours(N_DONORS, embeddings="neighbourhoods", groups="labels")
