"""Dense reference implementations of what the attacks compute."""

from __future__ import annotations

from collections.abc import Callable
from math import log
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

from nodecopy import Graph


@st.composite
def small_graphs(draw: st.DrawFn, *, min_nodes: int = 3, n_features: int = 5) -> Graph:
    """Labelled graphs of a few nodes with binary features, of any density, isolated nodes among them."""
    n = draw(st.integers(min_nodes, 10))
    seed = draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    upper = np.triu(random.random((n, n)) < draw(st.sampled_from([0.1, 0.3, 0.7])), 1)
    labels = np.append([0, 1, 2], random.integers(0, 3, n - 3))
    features = random.integers(0, 2, (n, n_features)).astype(float)
    features[features.sum(1) == 0, 0] = 1  # the hidden layer of a node without features is at a kink of ReLU
    return Graph(upper | upper.T, features, labels)


def dense_normalised(adjacency: Any) -> Any:
    """D^-1/2 (A + I) D^-1/2 of an array or a tensor."""
    looped = adjacency + (torch.eye(len(adjacency)) if torch.is_tensor(adjacency) else np.eye(len(adjacency)))
    scale = looped.sum(1) ** -0.5
    return scale[:, None] * looped * scale


def linear_logits(adjacency: NDArray[Any], features: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
    spread = dense_normalised(adjacency)
    return np.asarray(spread @ spread @ features @ weights)


def flip(adjacency: NDArray[Any], first: int, second: int) -> NDArray[Any]:
    changed = adjacency.copy()
    changed[first, second] = changed[second, first] = 1 - changed[first, second]
    return changed


def margin(logits: NDArray[Any], true: int) -> float:
    """Return the true logit minus the best wrong one."""
    return float(logits[true] - max(value for code, value in enumerate(logits) if code != true))


def degree_ratio(before: list[int], after: list[int]) -> float:
    """Nettack's likelihood ratio of two lists of degrees, by the formulas of its paper."""
    separate = log_likelihood(before) + log_likelihood(after)
    return -2 * log_likelihood(before + after) + 2 * separate


def log_likelihood(degrees: list[int], lowest: int = 2) -> float:
    counted = [degree for degree in degrees if degree >= lowest]
    if not counted:
        return 0.0
    n, total = len(counted), sum(log(degree) for degree in counted)
    alpha = 1 + n / sum(log(degree / (lowest - 0.5)) for degree in counted)
    return n * log(alpha) + n * alpha * log(lowest) - (alpha + 1) * total


def dense_gcn(adjacency: Any, features: Any, first: Any, second: Any) -> Any:
    """Logits of a GCN on tensors."""
    spread = dense_normalised(adjacency)
    return spread @ torch.relu(spread @ features @ first) @ second


def deeprobust_nettack(
    theirs: Any, graph: Graph, surrogate: NDArray[np.float64]
) -> Callable[[int], set[tuple[int, ...]]]:
    """The flips that the class Nettack of DeepRobust, given as ``theirs``, chooses for one target alone.

    Direct edge flips, budget = degree. Its surrogate has two layers, whose product alone it looks at: here
    the given weights and the identity.
    """
    n_features, n_classes = surrogate.shape
    model = SimpleNamespace(
        nclass=n_classes,
        nfeat=n_features,
        hidden_sizes=[n_classes],
        gc1=SimpleNamespace(weight=torch.from_numpy(surrogate)),
        gc2=SimpleNamespace(weight=torch.eye(n_classes, dtype=torch.float64)),
    )
    adjacency = sparse.csr_matrix(graph.adjacency.astype(np.float64))
    plain: Any = graph.features
    features = sparse.csr_matrix(plain)

    def flips(target: int) -> set[tuple[int, ...]]:
        attack = theirs(model, nnodes=graph.n_nodes, attack_structure=True, attack_features=False)
        attack.attack(
            features, adjacency, graph.label_codes, target, int(graph.degrees[target]), verbose=False
        )
        return {tuple(map(int, edge)) for edge in attack.structure_perturbations}

    return flips
