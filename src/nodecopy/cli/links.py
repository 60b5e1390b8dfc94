"""``nodecopy links``: missing and doubtful edges of a graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nodecopy._core.files import TABLES
from nodecopy._core.messages import escape_controls
from nodecopy.cli import files
from nodecopy.cli import options as opt
from nodecopy.cli.output import print_json, print_note, print_table, print_title, print_written, show_status
from nodecopy.cli.sample import load_data
from nodecopy.errors import InputError
from nodecopy.interactions import Interactions
from nodecopy.io import write_graph, write_interactions
from nodecopy.io.tables import write_table

N_REASONS = 2  # signals named with each explained pair


def links(
    source: opt.Source,
    interactions: bool | None = opt.more(
        "Read interactions or a graph. (default: by the header)", None, "--interactions/--graph"
    ),
    missing: opt.Natural = opt.common("Number of the most probable absent edges to list.", 10),
    doubtful: opt.Natural = opt.common("Number of the least credible edges to list.", 10),
    explain: opt.Natural = opt.common("Donors to name with each edge, with the strongest signals.", 0),
    confidence: bool = opt.more(
        "Weights are the probabilities that edges are real, by the way they were measured.", False
    ),
    looks: opt.Count | None = opt.more(
        "Weights count in how many of so many looks each edge was seen, in place of --confidence.", None
    ),
    seed: opt.Seed = 0,
    out: Path | None = opt.writes("File for the edges: .csv, .tsv, .txt or .parquet."),
    denoised: Path | None = opt.writes(
        "File for the graph without the doubtful and with the missing edges that are listed.\n\n"
        "A table, or .npz; also .graphml for a graph."
    ),
    save: Path | None = opt.writes("File for the fitted predictor: .npz."),
    spreadsheet: opt.Spreadsheet = False,
    json_: opt.AsJson = False,
    graph: opt.GraphOptions = opt.GraphOptions(),
    log: opt.InteractionOptions = opt.InteractionOptions(),
) -> None:
    """List the most probable missing edges and the least credible edges of a graph.

    Each edge is judged as if it were absent, by signals from the other edges. Probabilities are for the
    density of the graph. Features are used if the source has them.

    Examples:
        nodecopy links karate --missing 5 --doubtful 5 --explain 2
        nodecopy links edges.csv --features features.csv --out links.csv
    """
    from nodecopy.links import LinkPredictor

    formats = (*TABLES, ".npz", ".graphml")
    outputs = {"out": (out, TABLES), "denoised": (denoised, formats), "save": (save, (".npz",))}
    opt.check_outputs([source, graph.labels, graph.features], **outputs)
    if not (missing or doubtful or save):
        raise InputError("--missing or --doubtful must be above 0; got 0 for both.")
    data: Any = load_data(source, interactions, graph, log)
    weights = data.rows.csr.data
    given = None
    if confidence or looks is not None:
        if not data.is_weighted:
            raise InputError("--confidence and --looks need weights; the source has none.")
        given = weights if isinstance(data, Interactions) else np.asarray(data.edges()[2])
        data = data.binary()
    with show_status("learning from held-out edges"):
        model = LinkPredictor().fit(data, edge_confidence=given, n_looks=looks, rng=seed)
        lists: dict[str, Any] = {}
        if missing:
            lists["missing"] = model.missing(missing)
        if doubtful:
            lists["doubtful"] = model.doubtful(doubtful)
    if out is not None:
        kinds = np.repeat(list(lists), [len(part) for part in lists.values()])
        columns = {
            name: np.concatenate([getattr(part, attribute) for part in lists.values()])
            for name, attribute in (
                ("source", "first"),
                ("target", "second"),
                ("probability", "probabilities"),
            )
        }
        write_table(out, {"kind": kinds} | columns, spreadsheet=spreadsheet)
    if denoised is not None:
        n_removed, n_added = (len(lists.get(name, ())) for name in ("doubtful", "missing"))
        write: Any = write_interactions if isinstance(data, Interactions) else write_graph
        write(model.denoise(remove=n_removed, add=n_added), denoised, spreadsheet=spreadsheet)
    if save is not None:
        model.save(save)
    reasons = {
        name: [model.explain(pair, explain).to_dict() for pair in part.pairs()] if explain else []
        for name, part in lists.items()
    }
    if json_:
        run = files.describe_run(source, seed=seed, edges=len(model.edge_probabilities()))
        rows = {name: part.to_list() for name, part in lists.items()}
        for name, entries in rows.items():
            for entry, reason in zip(entries, reasons[name], strict=bool(explain)):
                entry |= {key: reason[key] for key in ("reasons", "donors")}
        print_json(run | rows)
        return
    print_note(f"{data!r}, seed {seed}")
    for name, part in lists.items():
        print_title(f"{name} edges")
        cells = [[str(a), str(b), p] for a, b, p in part]
        heads = ["source", "target", "probability"]
        if explain:
            heads += ["strongest signals", "donors"]
            for row, reason in zip(cells, reasons[name], strict=True):
                signals = [f"{r['signal']} ({r['contribution']:+.1f})" for r in reason["reasons"][:N_REASONS]]
                donors = [f"{donor['donor']} (like {donor['endpoint']})" for donor in reason["donors"]]
                row += [", ".join(signals), escape_controls(", ".join(donors))]
        print_table(heads, cells)
    print_written(out, "table of edges")
    print_written(denoised, "graph")
    print_written(save, "predictor")
