"""The default base of self-training: a vote of networks on copied graphs, SGC and DGI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodecopy._core.hints import Hint
from nodecopy._core.notices import log_decision
from nodecopy._core.sparse_matrices import as_matrix
from nodecopy._core.validation import check_choice, show, type_name
from nodecopy.classify.appnp import APPNP
from nodecopy.classify.base import Classifier
from nodecopy.classify.bayesian import BayesianGCN
from nodecopy.classify.dgi import DGI
from nodecopy.classify.gcn import GCN
from nodecopy.classify.sgc import SGC
from nodecopy.classify.soft_voting import SoftVoting
from nodecopy.classify.trial import Trial
from nodecopy.copying import DonorLaw, KeepByDegree, NearestNeighbours, NodeCopying, SameLabel
from nodecopy.errors import InputError
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
which on it falls faster: with many, copying adds nothing and can cost accuracy. So can pseudo-labels, see
``base_weight`` of :class:`.SelfTraining`."""
VOTERS = ("networks", "sgc", "dgi")
"""Classifiers whose probabilities are averaged."""
N_INFOMAX, N_INFOMAX_EPOCHS = 256, 150
"""Dimension of the embeddings of DGI, and epochs of their training: more take long and gain little."""
MAX_NODES_FOR_INFOMAX = 50_000
"""The largest graph in which DGI takes part: it takes as long as all other voters together, and on a CPU
hours in graphs of a million nodes."""


def build_base(
    trial: Trial,
    n_graphs: int | None,
    *,
    network: str,
    prior: float | None,
    voters: Sequence[str] | None,
    scarcity: float,
    device: str,
    **scalings: Any,
) -> Classifier:
    """Return the base for a classification problem.

    ``scarcity`` is one over the square root of the labels per class; ``scalings`` are those of features and
    edge weights.
    """
    given = {name: value for name, value in scalings.items() if value is not None}
    base: list[Classifier] = []
    for voter in _choose_voters(trial.graph) if voters is None else voters:
        if voter == "networks":
            settings = {**given, "device": device}
            base.append(_build_networks(trial, n_graphs, network, prior, scarcity, settings))
        elif voter == "sgc":
            base.append(SGC(**given))
        else:
            base.append(DGI(N_INFOMAX, n_epochs=N_INFOMAX_EPOCHS, device=device, **given))
    return base[0] if len(base) == 1 else SoftVoting(base)


def check_voters(voters: Any) -> None:
    """Raise an error unless these are some of the voters, each once."""
    name, allowed = "voters of SelfTraining", f"a list of at least one of {', '.join(map(repr, VOTERS))}"
    if not isinstance(voters, (list, tuple)):
        raise InputError(f"{name} must be {allowed}; got {type_name(voters)}.")
    given = list(voters)
    if not given:
        raise InputError(f"{name} must be {allowed}; got none.")
    for voter in given:
        check_choice(voter, name, VOTERS)
    if len(set(given)) < len(given):
        raise InputError(f"{name} must be unique; got {show(voters)}. Name each once.")


def _choose_voters(graph: Graph) -> Sequence[str]:
    """Return all voters, without DGI in large graphs."""
    if graph.n_nodes <= MAX_NODES_FOR_INFOMAX:
        return VOTERS
    log_decision(
        f"voters: networks and SGC, without DGI, which takes long with more than {MAX_NODES_FOR_INFOMAX:,} "
        "nodes.",
        Hint("{} includes it.", voters=VOTERS),
    )
    return VOTERS[:2]


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
