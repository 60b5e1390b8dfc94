"""``nodecopy defend``: correct the predictions for nodes that were, or may have been, attacked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from nodecopy._core.arrays import Array, Bools, Floats, Ints
from nodecopy._core.checks import list_names
from nodecopy._core.files import TABLES
from nodecopy._core.imports import import_optional
from nodecopy._core.messages import log_decision
from nodecopy._core.random import child
from nodecopy.cli import files
from nodecopy.cli import options as opt
from nodecopy.cli.output import print_json, print_note, print_table, print_written, show_status
from nodecopy.errors import InputError
from nodecopy.experiments.spec import TrialSeeds
from nodecopy.graph import UNLABELLED, Graph
from nodecopy.io.tables import write_table

if TYPE_CHECKING:
    from nodecopy.defend import NodeReport

N_SHOWN = 10  # corrected nodes that are printed
N_LISTED = 3  # distrusted edges of a node, and nodes of a note, that are printed
EVIDENCE = ("attacked", "features", "edge_evidence", "uses_edges", "edges")  # in the JSON of a node
PARAMETERS = ("n_donors", "uncertain_share", "share", "retrain")  # of defences, in the JSON
Method = Literal["evidence", "copying"]
Donors = Literal["expected", "features", "neighbourhoods", "vgae", "gae"]


def defend(
    source: opt.Source,
    nodes: str | None = opt.reads("Ids of attacked nodes, separated by commas, or a file with one per line."),
    flips: Path | None = opt.reads(
        "Flips that nodecopy attack wrote, or a table of first,second[,change,target].\n\nSOURCE is the "
        "graph before the attack. They are applied, and their targets are corrected."
    ),
    suspects: opt.Share | None = opt.reads(
        "Detect attacked nodes, and treat this share of the nodes, the most suspicious ones, as attacked."
        "\n\nWithout --nodes and --flips, each node is corrected by its probability of an attack (copying: "
        "a share chosen by validation nodes, or 0.07)."
    ),
    method: Method = opt.common(
        "How nodes are corrected.\n\nevidence: by their features and credible edges, with a self-trained "
        "APPNP. copying: by the neighbourhoods of similar nodes, with a GCN, as in the paper.",
        "evidence",
    ),
    donors: Donors | None = opt.more("copying: embeddings to find donors by. (default: expected)"),
    n_donors: opt.Natural | None = opt.more(
        "copying: donors of each node. (default: 10, or all other nodes if fewer)"
    ),
    uncertain_share: opt.Share | None = opt.more(
        "evidence: share of the nodes, the most uncertain ones, whose own edges count. A small share, such "
        "as 0.1, helps if the attacker knows the defence. (default: 1)"
    ),
    retrain: bool = opt.more("copying: train again without edges of attacked nodes.", False),
    trust_edges: bool = opt.more("copying: keep plausible edges of known attacked nodes.", False),
    device: opt.Device = "cpu",
    seed: opt.Seed = 0,
    out: Path | None = opt.writes("File for the table of corrections: .csv, .tsv, .txt or .parquet."),
    scores: Path | None = opt.more("File for the suspicion scores of all nodes, if nodes are detected."),
    spreadsheet: opt.Spreadsheet = False,
    json_: opt.AsJson = False,
    tables: opt.UndirectedGraphOptions = opt.UndirectedGraphOptions(),
) -> None:
    """Correct predictions at attacked nodes, and list the edges that are distrusted.

    A classifier is trained on the attacked graph, and the attacked nodes, given or detected, are corrected.
    Nodes named by --nodes or --flips are not training nodes, even if they have labels. --json gives the
    evidence for each corrected node. Without --nodes and --flips, the most suspicious nodes are corrected and
    listed even if no node was attacked.

    Examples:
        nodecopy defend digits --flips flips.npz --out corrected.csv
        nodecopy defend edges.csv --features features.csv --labels labels.csv --nodes ann,bob
        nodecopy defend edges.csv --features features.csv --labels labels.csv --suspects 0.1
    """
    opt.check_outputs(
        [source, tables.labels, tables.features, flips], out=(out, TABLES), scores=(scores, TABLES)
    )
    detects = suspects is not None or (nodes is None and flips is None)
    if method == "evidence":
        copying = {"donors": donors, "n_donors": n_donors, "trust_edges": trust_edges}
        opt.check_applicable("--method copying", "--method evidence", **copying)
    else:
        opt.check_applicable("--method evidence", "--method copying", uncertain_share=uncertain_share)
    if nodes is not None and suspects is not None:
        raise InputError("--nodes and --suspects must not be given together. Leave one out.")
    if detects:
        opt.check_applicable("known attacked nodes", "--suspects", trust_edges=trust_edges)
    else:
        opt.check_applicable("--suspects", "known attacked nodes", scores=scores)
    import_optional("torch", "nodecopy defend")
    from nodecopy.defend import CopyingDefence, EvidenceDefence, SuspectCorrection, WholeGraphDefence
    from nodecopy.nn.networks import add_identity_features

    graph = files.load_graph(source, tables)
    if "before" in (graph.label_names or ()):
        raise InputError("a class must not be named before, as the column p_before is. Rename the class.")
    graph, attacked = _find_attacked(graph, nodes, flips, detects)
    split, root = files.split_for_attack(graph, source, seed)
    if graph.features is None:
        needs_features = {
            "--method evidence": method == "evidence",
            f"--donors {donors or 'expected'}": donors in (None, "expected", "features"),
            "detecting attacked nodes" if suspects is None else "--suspects": detects,
            "--trust-edges": trust_edges,
        }
        way_out = "Give --features FILE, or --nodes with --method copying --donors vgae."
        for name, is_given in needs_features.items():
            if is_given:
                raise InputError(f"{name} needs features; the graph has none. {way_out}")
    graph = add_identity_features(graph)
    settings: dict[str, Any] = {"device": device}
    defence: Any
    if method == "evidence":
        shares = {"uncertain_share": uncertain_share, "share": suspects}
        settings |= {name: share for name, share in shares.items() if share is not None}
        defence = (WholeGraphDefence if detects else EvidenceDefence)(retrain=True, **settings)
    else:
        n_donors = min(10, graph.n_nodes - 1) if n_donors is None else n_donors
        settings |= {"donors": donors or "expected", "n_donors": n_donors, "retrain": retrain}
        if detects:
            defence = SuspectCorrection(share=suspects, **settings)
        else:
            defence = CopyingDefence(trust_edges=trust_edges, **settings)
    train, validation = (np.setdiff1d(part, attacked) for part in split[:2])
    with show_status("detecting attacked nodes" if detects else "training the classifier"):
        targets, method_seed = None if detects else attacked, child(root, TrialSeeds.METHOD)
        defence.fit(graph, train, validation=validation, targets=targets, rng=method_seed)
        corrected, suspicion = attacked, None
        if detects:  # the most suspicious first
            correction = defence.correction_
            order = np.argsort(-correction.suspicion, kind="stable")
            corrected = order[correction.is_corrected[order]]
            suspicion = correction.suspicion[corrected]
        columns, reports = _correct(defence, graph, corrected)
    if detects:
        share = getattr(defence, "share", None)
        most = "most" if share is None else f"{100 * share:.3g} % most"
        log_decision(
            f"the {most} suspicious nodes, {len(corrected):,} of {graph.n_nodes:,}, are corrected and "
            "listed; they need not have been attacked.",
            "suspects",
        )
    is_held_out = ~np.isin(corrected, np.concatenate([train, validation]))
    differs = ~is_held_out & (columns["after"] != np.asarray(graph.labels)[corrected])
    if differs.any():
        ids = list_names(columns["id"][differs], N_LISTED)
        message = f"nodes whose corrected class is not their label: {ids}."
        log_decision(f"{message} A node is corrected as if its label were unknown.")
    evaluation = _evaluate(columns, graph, corrected, is_held_out)
    parameters = {name: getattr(defence, name) for name in PARAMETERS if hasattr(defence, name)}
    results = files.describe_run(
        source, seed=seed, method=method, **parameters, train=len(train), **evaluation
    )
    if out is not None:
        write_table(out, columns, spreadsheet=spreadsheet)
    if scores is not None:
        table = {
            "id": graph.node_ids[order],
            "suspicion": np.array([float(f"{score:.7g}") for score in correction.suspicion[order]]),
            "corrected": correction.is_corrected[order].astype(int),
        }
        write_table(scores, table, spreadsheet=spreadsheet)
    if json_:
        print_json(results | {"nodes": _describe_nodes(columns, defence.classes_, reports)})
        return
    print_note(f"method: {defence!r}")
    _print_corrections(results, columns, graph, reports, suspicion)
    print_written(out, "table of corrections", option="--out FILE")
    print_written(scores, "suspicion scores")


def _find_attacked(graph: Graph, nodes: str | None, flips: Path | None, detects: bool) -> tuple[Graph, Ints]:
    attacked = np.zeros(0, np.int64) if nodes is None else files.parse_nodes(graph, nodes)
    if flips is not None:
        from nodecopy.attacks import Perturbation

        perturbation = Perturbation.load(flips, graph)
        try:
            graph = perturbation.apply(graph)
        except InputError as error:
            way_out = "Give the graph before the attack as SOURCE, or --nodes instead of --flips."
            raise InputError(f"{error} {way_out}") from error
        if nodes is None and not detects:
            attacked = perturbation.targets
            if not len(attacked):
                raise InputError(f"{flips} must name the attacked nodes in a column target.")
    return graph, attacked


def _correct(defence: Any, graph: Graph, nodes: Ints) -> tuple[dict[str, Array], list[NodeReport]]:
    classes, before = defence.classes_, defence.undefended_proba()[nodes]
    if hasattr(defence, "explain"):
        reports = defence.explain(nodes)
        rows = [list(report.probabilities.values()) for report in reports]
        after = np.array(rows, np.float64).reshape(len(nodes), len(classes))
    else:
        reports, after = [], defence.predict_proba()[nodes].astype(np.float64)
    columns = {
        "id": graph.node_ids[nodes],
        "before": classes[before.argmax(axis=1)],
        "p_before": np.round(before.max(axis=1).astype(np.float64), 7),
        "after": classes[after.argmax(axis=1)],
    }
    for name, column in zip(classes, after.T, strict=True):
        columns[f"p_{name}"] = np.round(column, 7)
    if hasattr(defence, "explain"):
        columns["n_edges"] = np.array([len(report.edges) for report in reports], np.int64)
        columns["n_distrusted"] = np.array([len(report.distrusted) for report in reports], np.int64)
    return columns, reports


def _describe_nodes(
    columns: dict[str, Array], classes: Array, reports: list[NodeReport]
) -> list[dict[str, Any]]:
    rows = {name: column.tolist() for name, column in columns.items()}
    nodes: list[dict[str, Any]] = []
    for number in range(len(rows["id"])):
        node = {name: rows[name][number] for name in ("id", "before", "p_before", "after")}
        node["probabilities"] = {str(name): rows[f"p_{name}"][number] for name in classes}
        if reports:
            content = reports[number].to_dict()
            node["evidence"] = {name: content[name] for name in EVIDENCE}
        nodes.append(node)
    return nodes


def _evaluate(columns: dict[str, Array], graph: Graph, nodes: Ints, is_held_out: Bools) -> dict[str, Any]:
    assert graph.label_codes is not None
    changes = {"corrected": len(nodes), "changed": int((columns["before"] != columns["after"]).sum())}
    is_test = is_held_out & (graph.label_codes[nodes] != UNLABELLED)
    if not is_test.any():
        return changes
    truth = np.asarray(graph.labels)[nodes]
    stages = ("before", "after")
    accuracy = {f"accuracy_{stage}": float((columns[stage] == truth)[is_test].mean()) for stage in stages}
    return changes | accuracy | {"labelled": int(is_test.sum())}


def _print_corrections(
    results: dict[str, Any],
    columns: dict[str, Array],
    graph: Graph,
    reports: list[NodeReport],
    suspicion: Floats | None,
) -> None:
    print_note(f"{graph!r}, seed {results['seed']}")
    keys = ("train", "corrected", "changed", "labelled", "accuracy_before", "accuracy_after")
    values = {key.replace("_", " "): results[key] for key in keys if key in results}
    print_table(list(values), [list(values.values())])
    shown: dict[str, Any] = {"node": columns["id"]}
    if suspicion is not None:
        shown["suspicion"] = [f"{score:.3g}" for score in suspicion]
    shown |= {"before": columns["before"], "after": columns["after"]}
    if reports:
        shown["edges"] = columns["n_edges"]
        distrusted = [[edge.neighbour for edge in report.distrusted] for report in reports]
        shown["distrusted edges"] = [
            (list_names(ends, N_LISTED) or "none") if report.uses_edges else "not used"
            for report, ends in zip(reports, distrusted, strict=True)
        ]
    rows = [list(map(str, row)) for row in zip(*shown.values(), strict=True)]
    print_table(list(shown), rows[:N_SHOWN])
    if len(rows) > N_SHOWN:
        print_note(f"and {len(rows) - N_SHOWN} more")
