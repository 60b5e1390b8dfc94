"""Graphs, vectors, frequencies of edges and a recorder of tensor sizes for tests of generators."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import chi2
from torch import Tensor

from nodecopy import Graph, GraphModel

N_SAMPLES = 1500


def two_blocks(**changes: Any) -> Graph:
    """Two blocks of 20 nodes, dense inside, sparse between."""
    block = np.arange(40) // 20
    probability = np.where(block[:, None] == block, 0.5, 0.03)
    return Graph(np.random.default_rng(3).random((40, 40)) < probability).replace(**changes)


def random_adjacency(n_nodes: int = 23) -> sparse.csr_array:
    upper = np.triu(np.random.default_rng(0).random((n_nodes, n_nodes)) < 0.2, 1)
    return sparse.csr_array((upper | upper.T).astype(np.float32))


def random_vectors(seed: int = 0, n_nodes: int = 30, size: float = 1.0) -> Any:
    return (size * np.random.default_rng(seed).normal(size=(n_nodes, 4))).astype(np.float32)


def draw_edges_by_score(decoded: Any, seed: int = 1) -> Any:
    """Draw edges that are more likely at high scores; return them, all scores and which are edges."""
    first, second = np.triu_indices(len(decoded), 1)
    scores = 1 / (1 + np.exp(-(decoded @ decoded.T).astype(float)[first, second]))
    is_edge = np.random.default_rng(seed).random(len(scores)) < 1 / (1 + np.exp(5 - 6 * scores))
    return np.stack([first, second])[:, is_edge], scores, is_edge


class RecordSizes(torch.utils._python_dispatch.TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records the number of entries of the largest dense tensor."""

    largest = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        result = function(*args, **(kwargs or {}))
        if isinstance(result, Tensor) and result.layout == torch.strided:
            self.largest = max(self.largest, result.numel())
        return result


def edge_frequencies(model: GraphModel[Graph], n_samples: int = N_SAMPLES) -> NDArray[np.float64]:
    """Return the share of samples in which each entry of the adjacency matrix is an edge."""
    return np.asarray(
        sum(sample.adjacency.toarray() for sample in model.sample_many(n_samples, rng=0)) / n_samples
    )


def assert_frequencies(observed: NDArray[Any], expected: NDArray[Any], n_samples: int = N_SAMPLES) -> None:
    """Test the counts of independent edges by chi-squared, at an error rate of 1e-6; 0 and 1 are exact."""
    certain = (expected <= 0) | (expected >= 1)
    assert (observed[certain] == expected[certain]).all()
    expected, observed = expected[~certain], observed[~certain]
    distance = n_samples * ((observed - expected) ** 2 / (expected * (1 - expected))).sum()
    assert distance < chi2.ppf(1 - 1e-6, len(expected))
