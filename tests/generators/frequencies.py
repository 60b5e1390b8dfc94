"""Frequencies of edges in samples, and their comparison with probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from nodecopy import Graph, GraphModel

N_SAMPLES = 1500


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
