"""``nodecopy infer``: confidence intervals and p-values for statistics of one network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from nodecopy._core.files import atomic_write
from nodecopy.cli import files
from nodecopy.cli import options as opt
from nodecopy.cli.output import print_json, print_note, print_result, print_written, show_training
from nodecopy.errors import InputError
from nodecopy.inference import bootstrap, null_test
from nodecopy.inference.bootstrapping import METHODS
from nodecopy.inference.null_tests import NULL_MODELS
from nodecopy.inference.resampling import MODELS
from nodecopy.inference.statistics import NODE_STATISTICS

MODEL_NAMES = ("auto", *MODELS["edges"], *MODELS["nodes"])
PICTURES = (".png", ".svg", ".pdf")


def infer(
    source: opt.Source,
    statistic: list[str] = opt.common(
        "A statistic, such as modularity or pagerank. May be repeated.\n\nAn unknown name lists all.",
        ["density", "transitivity", "assortativity"],
        metavar="NAME",
    ),
    resample: Literal["edges", "nodes"] = opt.common(
        "Resample edges of fixed nodes, or nodes with their edges.", "edges"
    ),
    model: Annotated[str | None, MODEL_NAMES] = opt.common(
        "How samples are drawn. (default: node-copying, or node-bootstrap)\n\nThe last three resample nodes; "
        "dc-sbm is the degree-corrected SBM."
    ),
    null: Annotated[str | None, NULL_MODELS] = opt.common(
        "Also test against this null model, and print p-values."
    ),
    n: Annotated[int, opt.at_least(2)] = opt.common("Number of samples.", 500, "--n", "-n"),
    confidence: Annotated[float, opt.between(0.01, 0.9999)] = opt.more(
        "Confidence level of intervals.", 0.95
    ),
    method: Annotated[str, METHODS] = opt.more("How intervals are computed.", "basic"),
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
        result = bootstrap(graph, statistic, model=model, resample=resample, **intervals, **settings)
        if null is not None:
            numbers = [row for row in result if not row.is_array]
            defined = [row for row in numbers if np.isfinite(row.observed)]
            names = [row.name for row in defined or numbers]  # the test says it if none is defined
            tests = null_test(graph, names, null=null, **settings)
    if picture is not None:
        with atomic_write(picture) as temporary:
            figure = np.ravel(result.plot())[0].figure
            figure.savefig(temporary, format=picture.suffix[1:].lower(), dpi=150)
    if json_:
        print_json(result.to_dict() | ({} if tests is None else {"tests": tests.to_dict()}))
    else:
        print_note(repr(graph))
        print_result(result)
        if tests is not None:
            print_result(tests)
    print_written(picture, "picture")
