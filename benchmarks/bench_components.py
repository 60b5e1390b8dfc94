"""Components of samples of a connected graph, and what keeps them together.

Run from the repository: ``python -m benchmarks.bench_components [dataset] ...``, by default for Cora and
Citeseer. The table has means over samples of the largest component.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

from nodecopy import (
    Balanced,
    Graph,
    Jaccard,
    KeepByDegree,
    NearestNeighbours,
    NodeCopying,
    SameLabel,
    datasets,
)
from nodecopy._core.messages import align_table
from nodecopy.errors import DataWarning
from nodecopy.inference import DegreeClasses
from nodecopy.metrics import compare

N_SAMPLES = 20
STATISTICS = ("n_components", "largest_component", "n_edges", "triangles", "edge_homophily", "edge_overlap")


def models() -> dict[str, NodeCopying[Any]]:
    """Return the models by a description: the default, keep, donors by degree, other donors, the maximum."""
    by_label = SameLabel()
    return {
        "same label": NodeCopying(by_label),
        **{f"same label, keep={keep}": NodeCopying(by_label, keep) for keep in (0.25, 0.5, 0.75, 0.9)},
        **{f"keep by degree, {d}": NodeCopying(KeepByDegree(by_label, d)) for d in (0.5, 1.0, 2.0)},
        "donors by degree": NodeCopying(DegreeClasses("labels")),
        "nearest neighbours": NodeCopying(NearestNeighbours(10)),
        "of equal degree": NodeCopying(NearestNeighbours(10, max_degree_ratio=1.0)),
        "balanced": NodeCopying(Balanced(by_label)),
        "jaccard": NodeCopying(Jaccard()),
        "same label, maximum": NodeCopying(by_label, symmetrise="maximum"),
    }


def main(*names: str) -> None:
    warnings.simplefilter("ignore", DataWarning)
    for name in names or ("cora", "citeseer"):
        loaded = datasets.load(name)
        assert isinstance(loaded, Graph)
        graph = loaded.largest_component()
        rows = []
        for title, model in models().items():
            samples = model.fit(graph).sample_many(N_SAMPLES, rng=0)
            comparison = compare(graph, samples, path_length=False)
            rows.append([title, *(comparison[statistic].mean for statistic in STATISTICS)])
        observed = ["observed", *(comparison[statistic].observed for statistic in STATISTICS)]
        print(f"{name}: {graph!r}", *align_table(["donors", *STATISTICS], [observed, *rows]), sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
