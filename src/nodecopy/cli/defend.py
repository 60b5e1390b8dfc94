"""``nodecopy defend``: correct the predictions for nodes that were, or may have been, attacked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.formats import TABLES
from nodecopy._core.optional_imports import import_optional
from nodecopy._core.random import child
from nodecopy.cli import node_splits, options, sources
from nodecopy.cli.options import at_least, between, check_applicable, check_outputs, flag, option
from nodecopy.cli.reading_options import ReadingOptions, reads
from nodecopy.cli.terminal import print_json, print_note, print_table, print_written, show_status
from nodecopy.errors import InputError
from nodecopy.experiments.trials import TrialSeeds
from nodecopy.graph import UNLABELLED, Graph
from nodecopy.io.table_files import write_table

if TYPE_CHECKING:
    from nodecopy.defend import CopyingDefence, SuspectCorrection

    CommandDefence: TypeAlias = CopyingDefence | SuspectCorrection

N_SHOWN = 10
"""Corrected nodes that are printed."""


Donors = Literal["expected", "features", "neighbourhoods", "vgae", "gae"]
"""The embeddings by which donors are similar."""


@reads("graph")
def defend(
    source: options.Source,
    labels: options.Labels = None,
    features: options.Features = None,
    largest_component: options.LargestComponent = False,
    nodes: str | None = option(
        "Ids of the attacked nodes, separated by commas, or a file with one id per line."
    ),
    flips: Path | None = option(
        "Flips that nodecopy attack wrote, or a table of first,second[,change,target]. They are applied to "
        "the graph, and their targets are corrected."
    ),
    suspects: float | None = option(
        "Detect attacked nodes: correct this share of the nodes, the most suspicious ones.",
        None,
        between(0, 1),
    ),
    donors: Donors = option(
        "The embeddings in which the donors of a node are its nearest neighbours.", "expected"
    ),
    n_donors: int = option("Donors of each node.", 10, at_least(1)),
    retrain: bool = flag("--retrain", "Train the classifier again without the edges of the attacked nodes."),
    trust_edges: bool = flag(
        "--trust-edges", "Keep those of a node's own edges that are plausible; not with --suspects."
    ),
    device: options.Device = "cpu",
    seed: int = option("Seed of training.", 0, at_least(0)),
    out: Path | None = option("File for the table of corrections: .csv, .tsv, .txt or .parquet."),
    scores: Path | None = option(
        "With --suspects: file for the suspicion scores of all nodes, the highest first: .csv, .tsv, .txt or "
        ".parquet."
    ),
    spreadsheet: options.Spreadsheet = False,
    json_: options.AsJson = False,
    reading: ReadingOptions = sources.DEFAULT,
) -> None:
    """Correct the predictions for attacked nodes by node copying.

    A GCN is trained on the attacked graph. Each attacked node is then predicted with the neighbourhoods of
    similar nodes in place of its own. Nodes named by --nodes or --flips are not training nodes, even where
    they have labels.

    Examples:
        nodecopy defend digits --flips flips.npz --out corrected.csv
        nodecopy defend edges.csv --features features.csv --labels labels.csv --nodes ann,bob
        nodecopy defend edges.csv --features features.csv --labels labels.csv --suspects 0.1
    """
    check_outputs([source, labels, features, flips], out=(out, TABLES), scores=(scores, TABLES))
    _check_targets(nodes, suspects, trust_edges, scores)
    import_optional("torch", "nodecopy defend")
    from nodecopy.nn.feature_matrices import add_identity_features

    graph = sources.load_graph(source, labels, features, False, largest_component, reading)
    graph, attacked = _find_attacked(graph, nodes, flips, suspects)
    split, root = node_splits.split_for_attack(graph, source, seed)
    if graph.features is None:
        _check_without_features(donors, suspects, trust_edges)
    graph = add_identity_features(graph)
    defence = _create_defence(suspects, donors, n_donors, retrain, trust_edges, device)
    train, validation = (np.setdiff1d(part, attacked) for part in split[:2])
    with show_status("training the classifier" if suspects is None else "detecting attacked nodes"):
        defence.fit(graph, train, validation=validation, rng=child(root, TrialSeeds.METHOD))
        corrected = attacked if suspects is None else _find_suspects(defence, suspects)
        columns = _correct(defence, graph, corrected)
    is_held_out = ~np.isin(corrected, np.concatenate([train, validation]))
    evaluation = _evaluate(columns, graph, corrected, is_held_out)
    results = sources.describe_run(source, seed=seed, train=len(train), **evaluation)
    if out is not None:
        write_table(out, columns, spreadsheet=spreadsheet)
    if scores is not None:
        write_table(scores, _score_nodes(defence, graph, corrected), spreadsheet=spreadsheet)
    if json_:
        print_json(results | {"nodes": _describe_nodes(columns, defence.classes_)})
        return
    _print_corrections(results, columns, graph)
    print_written(out, "table of corrections", option="--out FILE")
    print_written(scores, "suspicion scores")


def _check_targets(nodes: str | None, suspects: float | None, trust_edges: bool, scores: Path | None) -> None:
    """Reject options that contradict each other about which nodes are attacked."""
    if nodes is not None and suspects is not None:
        raise InputError(
            "--nodes and --suspects must not be given together: one names the attacked nodes, the other "
            "detects them. Leave one out."
        )
    if suspects is not None:
        check_applicable("known attacked nodes", "--suspects", trust_edges=trust_edges)
    else:
        check_applicable("--suspects", "known attacked nodes", scores=scores)


def _find_attacked(
    graph: Graph, nodes: str | None, flips: Path | None, suspects: float | None
) -> tuple[Graph, NDArray[np.int64]]:
    """Return the attacked graph and the nodes that are known to be attacked."""
    if nodes is None and flips is None and suspects is None:
        raise InputError(
            "the attacked nodes must be given; got none. Give --nodes or --flips, or --suspects SHARE to "
            "detect them."
        )
    attacked = np.zeros(0, np.int64) if nodes is None else sources.parse_nodes(graph, nodes)
    if flips is not None:
        from nodecopy.attacks import Perturbation

        perturbation = Perturbation.load(flips, graph)
        graph = perturbation.apply(graph)
        if nodes is None and suspects is None:
            attacked = perturbation.targets
            if not len(attacked):
                raise InputError(
                    f"{flips} must name the attacked nodes in a column target. Add it, or give --nodes."
                )
    return graph, attacked


def _check_without_features(donors: Donors, suspects: float | None, trust_edges: bool) -> None:
    """Reject options that compare features; without features, those are the identity matrix."""
    needs_features = {
        f"--donors {donors}": donors in ("expected", "features"),
        "--suspects": suspects is not None,
        "--trust-edges": trust_edges,
    }
    for name, is_given in needs_features.items():
        if is_given:
            raise InputError(
                f"{name} needs features; the graph has none. Give --features FILE, or use --donors "
                "neighbourhoods, vgae or gae without --suspects and --trust-edges."
            )


def _create_defence(
    share: float | None, donors: Donors, n_donors: int, retrain: bool, trust_edges: bool, device: str
) -> CommandDefence:
    from nodecopy.defend import CopyingDefence, SuspectCorrection

    settings: Any = {"donors": donors, "n_donors": n_donors, "retrain": retrain, "device": device}
    if share is None:
        return CopyingDefence(trust_edges=trust_edges, **settings)
    return SuspectCorrection(share=share, **settings)


def _find_suspects(defence: CommandDefence, share: float) -> NDArray[np.int64]:
    """Return the most suspicious nodes, ties by position."""
    suspicion = defence.score_suspicion()
    return np.argsort(-suspicion, kind="stable")[: round(share * len(suspicion))]


def _score_nodes(
    defence: CommandDefence, graph: Graph, corrected: NDArray[np.int64]
) -> dict[str, NDArray[Any]]:
    """Return the table of the suspicion of all nodes, the highest first, and whether they are corrected."""
    suspicion = defence.score_suspicion()
    order = np.argsort(-suspicion, kind="stable")
    return {
        "id": graph.node_ids[order],
        "suspicion": np.array([float(f"{score:.7g}") for score in suspicion[order]]),
        "corrected": np.isin(order, corrected).astype(int),
    }


def _correct(defence: CommandDefence, graph: Graph, nodes: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    """Return the table of ids, classes before and after the correction, and probabilities."""
    before, after = defence.predict_proba()[nodes], defence.correct_proba(nodes)
    classes = defence.classes_
    columns = {
        "id": graph.node_ids[nodes],
        "before": classes[before.argmax(axis=1)],
        "p_before": np.round(before.max(axis=1).astype(np.float64), 7),
        "after": classes[after.argmax(axis=1)],
    }
    for name, column in zip(classes, after.T, strict=True):
        columns[f"p_{name}"] = np.round(column.astype(np.float64), 7)
    return columns


def _describe_nodes(columns: dict[str, NDArray[Any]], classes: NDArray[Any]) -> list[dict[str, Any]]:
    """Return one dictionary for each node, for JSON."""
    names = ("id", "before", "p_before", "after")
    rows = zip(*(columns[name].tolist() for name in names), strict=True)
    after = zip(*(columns[f"p_{name}"].tolist() for name in classes), strict=True)
    return [
        dict(zip(names, row, strict=True)) | {"probabilities": dict(zip(map(str, classes), p, strict=True))}
        for row, p in zip(rows, after, strict=True)
    ]


def _evaluate(
    columns: dict[str, NDArray[Any]], graph: Graph, nodes: NDArray[np.int64], is_held_out: NDArray[np.bool_]
) -> dict[str, Any]:
    """Return how many predictions changed, and the accuracy on labelled nodes that are held out."""
    assert graph.labels is not None
    changes = {"corrected": len(nodes), "changed": int((columns["before"] != columns["after"]).sum())}
    is_test = is_held_out & (graph.labels[nodes] != UNLABELLED)
    if not is_test.any():
        return changes
    truth = np.asarray(graph.named_labels())[nodes]
    stages = ("before", "after")
    accuracy = {f"accuracy_{stage}": float((columns[stage] == truth)[is_test].mean()) for stage in stages}
    return changes | accuracy | {"labelled": int(is_test.sum())}


def _print_corrections(results: dict[str, Any], columns: dict[str, NDArray[Any]], graph: Graph) -> None:
    print_note(f"{graph!r}, seed {results['seed']}")
    keys = ("train", "corrected", "changed", "labelled", "accuracy_before", "accuracy_after")
    values = {key.replace("_", " "): results[key] for key in keys if key in results}
    print_table(list(values), [list(values.values())])
    rows = list(zip(*(map(str, columns[name].tolist()) for name in ("id", "before", "after")), strict=True))
    print_table(["node", "before", "after"], rows[:N_SHOWN])
    if len(rows) > N_SHOWN:
        print_note(f"and {len(rows) - N_SHOWN} more")
