"""``nodecopy infer``: confidence intervals and p-values for statistics of one network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import numpy as np

from nodecopy._core.files import atomic_write
from nodecopy.cli import files
from nodecopy.cli import options as opt
from nodecopy.cli.output import print_json, print_note, print_table, print_written, show_training
from nodecopy.errors import InputError
from nodecopy.generators import SBM, DegreeCorrectedSBM, RandomDotProduct
from nodecopy.inference import (
    BootstrapResult,
    LatentPositionBootstrap,
    NodeBootstrap,
    NodeSubsampling,
    SignificanceTests,
    bootstrap,
    null_test,
)
from nodecopy.inference.statistics import NODE_STATISTICS

Resample = Literal["edges", "nodes"]
Method = Literal["basic", "percentile", "normal"]
Null = Literal["configuration", "erdos-renyi", "degree-corrected-blocks", "node-copying"]
Alternative = Literal["two-sided", "greater", "less"]
Model = Literal[
    "node-copying", "sbm", "dc-sbm", "dot-product", "node-bootstrap", "subsampling", "latent-positions"
]
EDGE_MODELS = (lambda: None, SBM, DegreeCorrectedSBM, RandomDotProduct)
NODE_MODELS = (NodeBootstrap, NodeSubsampling, LatentPositionBootstrap)
MODELS: dict[str, dict[str, Callable[[], Any]]] = {
    "edges": dict(zip(get_args(Model)[:4], EDGE_MODELS, strict=True)),
    "nodes": dict(zip(get_args(Model)[4:], NODE_MODELS, strict=True)),
}
TEST_HEADS = ["p-value", "Monte Carlo error", "z"]
PICTURES = (".png", ".svg", ".pdf")
MAX_NODES = 10  # nodes that the table shows, those with the largest values


def infer(
    source: opt.Source,
    statistic: list[str] = opt.common(
        "A statistic, such as modularity or pagerank. May be repeated.\n\nAn unknown name lists all.",
        ["density", "transitivity", "assortativity"],
        metavar="NAME",
    ),
    resample: Resample = opt.common("Resample edges of fixed nodes, or nodes with their edges.", "edges"),
    model: Model | None = opt.common(
        "How samples are drawn. (default: node-copying, or node-bootstrap)\n\nedges: node-copying, sbm, "
        "dc-sbm (degree-corrected), dot-product. nodes: node-bootstrap, subsampling, latent-positions."
    ),
    null: Null | None = opt.common("Also test against this null model, and print p-values."),
    alternative: Alternative | None = opt.more("Which values p-values count. (default: two-sided)"),
    n: Annotated[int, opt.at_least(2)] = opt.common("Number of samples.", 500, "--n", "-n"),
    confidence: Annotated[float, opt.between(0.01, 0.9999)] = opt.more(
        "Confidence level of intervals.", 0.95
    ),
    method: Method = opt.more("How intervals are computed.", "basic"),
    simultaneous: bool = opt.more("Make the intervals of nodes hold for all nodes at once.", False),
    seed: opt.Seed = 0,
    workers: opt.Count = opt.engine("Threads that draw samples in parallel.", 1),
    picture: Path | None = opt.more("Draw the samples and intervals to this .png, .svg or .pdf file."),
    json_: opt.AsJson = False,
    tables: opt.StructureOptions = opt.StructureOptions(),
) -> None:
    """Bootstrap confidence intervals and p-values for network statistics.

    An interval is for the expected value of the statistic under the distribution that generated the network.

    Examples:
        nodecopy infer karate --statistic transitivity --null configuration
        nodecopy infer edges.csv --statistic pagerank --json
    """
    opt.check_outputs([source, tables.labels], picture=(picture, PICTURES))
    create = next(iter(MODELS[resample].values())) if model is None else MODELS[resample].get(model)
    if create is None:
        allowed = f"{', '.join(MODELS[resample])} for --resample {resample}"
        raise InputError(f"--model must be one of {allowed}; got {model}.")
    if null is None:
        opt.check_applicable("--null", "none", alternative=alternative)
    of_nodes = set(statistic) & set(NODE_STATISTICS)
    if not of_nodes:
        allowed = f"--statistic {' and '.join(NODE_STATISTICS)}"
        opt.check_applicable(allowed, ", ".join(statistic), simultaneous=simultaneous)
    elif resample == "nodes":
        raise InputError(f"--statistic {min(of_nodes)} needs --resample edges; got nodes.")
    if null is not None and of_nodes == set(statistic):
        raise InputError("--null needs a --statistic of the graph, such as transitivity; got those of nodes.")
    graph = files.load_graph(source, tables)
    settings: dict[str, Any] = {"n": n, "workers": workers, "rng": seed}
    intervals: dict[str, Any] = {"method": method, "simultaneous": simultaneous, "confidence": confidence}
    tests = None
    with show_training("sampling"):
        result = bootstrap(graph, statistic, model=create(), resample=resample, **intervals, **settings)
        if null is not None:
            numbers = [row for row in result if not row.is_array]
            defined = [row for row in numbers if np.isfinite(row.observed)]
            names = [row.name for row in defined or numbers]  # the test says it if none is defined
            settings["alternative"] = alternative or "two-sided"
            tests = null_test(graph, names, null=null, **settings)
    if picture is not None:
        with atomic_write(picture) as temporary:
            figure = np.ravel(result.plot())[0].figure
            figure.savefig(temporary, format=picture.suffix[1:].lower(), dpi=150)
    if json_:
        print_json(result.to_dict() | ({} if tests is None else {"tests": tests.to_dict()}))
    else:
        print_note(f"{graph!r}. {result.question}")
        print_note(f"{result.n:,} samples of {result.model}; --model draws them in another way")
        if tests is not None:
            first = next(iter(tests))
            print_note(f"p-values ({first.alternative}) by {first.n_samples:,} samples of {first.null}")
        heads = ["statistic", "observed", "standard error", "bias", "low", "high"]
        print_table(heads if tests is None else [*heads, *TEST_HEADS], _rows(result, tests))
    print_written(picture, "picture")


def _rows(result: BootstrapResult, tests: SignificanceTests | None) -> Iterator[list[Any]]:
    of_null = {} if tests is None else {row.name: row for row in tests}
    for row in result:
        numbers = [np.atleast_1d(part) for part in row[1:]]
        chosen = np.argsort(-numbers[0], kind="stable")[:MAX_NODES]
        for position in chosen.tolist():
            name = f"{row.name} of {result.keys_of(row.name)[position]}" if row.is_array else row.name
            cells: list[Any] = [name, *(float(part[position]) for part in numbers)]
            if row.name in of_null:
                null = of_null[row.name]
                cells += [null.p_value, null.p_value_error, null.z_score]
            elif tests is not None:  # of nodes, or undefined
                cells += ["" if row.is_array else float("nan")] * len(TEST_HEADS)
            yield cells
