"""Time and memory of missing and doubtful links by the number of edges, beside NetworKit's Adamic-Adar index.

Run from the repository: ``python -m benchmarks.bench_links [edges ...]``, by default with 10^4, 10^5 and 10^6
edges; 10^7 take a quarter of an hour on one core. NetworKit computes its index, if it is installed, for the
10,000 most probable missing edges and for as many doubtful ones.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np

from benchmarks.synthetic_graphs import power_law_graph
from nodecopy import Graph
from nodecopy.links import LinkPredictor

SIZES = (10**4, 10**5, 10**6)
MEAN_DEGREE, COMMUNITY_SIZE = 20, 1000
N_LISTED, N_COMPARED = 1000, 10_000


def timed(task: Callable[[], Any]) -> tuple[Any, float]:
    start = process_time()
    return task(), process_time() - start


def peak() -> float:
    """Return the peak memory of the process in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def adamic_adar(graph: Graph, pairs: Any) -> float | None:
    """Return the seconds that NetworKit takes for the index of some pairs."""
    try:
        import networkit
    except ImportError:
        return None
    first, second, _ = graph.edges()
    network = networkit.GraphFromCoo((first, second), n=graph.n_nodes)
    index = networkit.linkprediction.AdamicAdarIndex(network)
    return timed(lambda: index.runOn([tuple(pair) for pair in pairs.tolist()]))[1]


def main() -> None:
    sizes = [int(float(size)) for size in sys.argv[1:]] or SIZES
    names = ("edges", "graph GiB", "fit s", f"missing({N_LISTED}) s", f"doubtful({N_LISTED}) s", "peak GiB")
    heads = [*names, f"{N_COMPARED:,} pairs: us", "Adamic-Adar us"]
    print("Processor seconds and memory of one process\n" + "".join(f"{head:>20}" for head in heads))
    for size in sizes:
        n_communities = max(1, 2 * size // MEAN_DEGREE // COMMUNITY_SIZE)
        graph = power_law_graph(2 * size, n_communities=n_communities, mean_degree=MEAN_DEGREE)
        numbers: list[float | None] = [peak()]
        model, seconds = timed(lambda graph=graph: LinkPredictor().fit(graph, rng=0))  # type: ignore[misc]
        numbers += [seconds, timed(lambda model=model: model.missing(N_LISTED))[1]]  # type: ignore[misc]
        numbers += [timed(lambda model=model: model.doubtful(N_LISTED))[1], peak()]  # type: ignore[misc]
        n = N_COMPARED // 2
        pairs = np.array(model.missing(n).pairs() + model.doubtful(n).pairs())
        ours = timed(lambda model=model, pairs=pairs: model.score(pairs))[1]  # type: ignore[misc]
        theirs = adamic_adar(graph, pairs)
        numbers += [part and 1e6 * part / len(pairs) for part in (ours, theirs)]
        cells = ["-" if number is None else f"{number:.3g}" for number in numbers]
        print("".join(f"{cell:>20}" for cell in (f"{graph.n_edges:,}", *cells)), flush=True)


if __name__ == "__main__":
    main()
