"""``nodecopy defend``: correct predictions at nodes that were, or may have been, attacked."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

import nodecopy
from nodecopy._core.formats import TABLES
from nodecopy._core.optional_imports import import_optional
from nodecopy._core.random import child
from nodecopy.cli import node_splits, options, sources
from nodecopy.cli.output_files import check_outputs
from nodecopy.cli.terminal import format_value, print_json, print_note, print_table
from nodecopy.errors import InputError
from nodecopy.graph import UNLABELLED, Graph
from nodecopy.io.table_files import write_table

if TYPE_CHECKING:
    from nodecopy.defend import CopyingDefence, SuspectCorrection

N_SHOWN = 10


class Donors(StrEnum):
    """How donors are found."""

    EXPECTED = "expected"
    FEATURES = "features"
    NEIGHBOURHOODS = "neighbourhoods"
    VGAE = "vgae"
    GAE = "gae"


def defend(
    source: options.Source,
    labels: options.Labels = None,
    features: options.Features = None,
    largest_component: options.LargestComponent = False,
    nodes: Annotated[
        str | None, typer.Option(help="Ids of attacked nodes, commas between, or a file with one a line.")
    ] = None,
    flips: Annotated[
        Path | None,
        typer.Option(
            help="What nodecopy attack kept: applied to the graph first, its victims are corrected."
        ),
    ] = None,
    suspects: Annotated[
        float | None, typer.Option(help="Nobody tells: correct this share of nodes, the most suspicious.")
    ] = None,
    donors: Annotated[Donors, typer.Option(help="How donors are found.")] = Donors.EXPECTED,
    n_donors: Annotated[int, typer.Option(help="Donors of each node.")] = 10,
    retrain: Annotated[
        bool, typer.Option("--retrain", help="Train anew without the edges of the attacked nodes.")
    ] = False,
    trust_edges: Annotated[
        bool,
        typer.Option(
            "--trust-edges", help="Keep those of a node's own edges that are plausible; not with --suspects."
        ),
    ] = False,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    seed: Annotated[int, typer.Option(help="Seed of training.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Table of corrections: .csv, .tsv, .txt or .parquet.")
    ] = None,
    json_: options.AsJson = False,
) -> None:
    """Correct the predictions for attacked nodes by node copying.

    A GCN is trained on the attacked graph. Each attacked node is then predicted with the neighbourhoods of
    similar nodes in place of its own. Nodes named by --nodes or --flips are not training nodes, even where
    they have labels.
    """
    check_outputs([source, labels, features, flips], out=(out, TABLES))
    import_optional("torch", "nodecopy defend")
    from nodecopy.nn.features import add_identity_features

    graph = sources.load_graph(source, labels, features, False, largest_component)
    told: NDArray[np.int64] | None = None if nodes is None else sources.parse_nodes(graph, nodes)
    if flips is not None:
        from nodecopy.attacks import Perturbation

        made = Perturbation.load(flips)
        graph = made.apply(graph)
        told = made.targets if told is None else told
    if nodes is not None and suspects is not None:
        raise InputError("--nodes and --suspects exclude each other: one tells, the other looks for them.")
    if told is None and suspects is None:
        raise InputError("--nodes or --flips must tell who was attacked, or --suspects SHARE look for them.")
    if trust_edges and suspects is not None:
        raise InputError(
            "--trust-edges and --suspects exclude each other: it is for nodes that are known to be attacked."
        )
    told = told if suspects is None else None
    split, root = node_splits.split_for_attack(graph, source, seed)
    if graph.features is None:
        _check_featureless(donors, suspects, trust_edges)
    graph = add_identity_features(graph)
    defence = _defence(suspects, donors, n_donors, retrain, trust_edges, device)
    train, validation = (np.setdiff1d(part, [] if told is None else told) for part in split[:2])
    defence.fit(graph, train, validation=validation, rng=child(root, 1))
    chosen = _suspicious(defence, suspects) if told is None else np.asarray(told)
    columns = _columns(defence, graph, chosen)
    found = {
        "nodecopy": nodecopy.__version__,
        "source": Path(source).name,
        "seed": seed,
        "train": len(train),
        "corrected": len(chosen),
        "changed": int((columns["before"] != columns["after"]).sum()),
        **_accuracies(columns, graph, chosen, ~np.isin(chosen, np.concatenate([train, validation]))),
    }
    if out is not None:
        write_table(out, columns)
    if json_:
        print_json(found | {"nodes": _nodes(columns, defence.classes_)})
        return
    _tell(found, columns, graph)
    print_note(f"written to {out}" if out else "nothing written: give --out FILE for a table of corrections")


def _check_featureless(donors: Donors, suspects: float | None, trust_edges: bool) -> None:
    """Each node gets a feature of its own, by which no two are alike."""
    needing = {f"--donors {donors.value}": donors in (Donors.EXPECTED, Donors.FEATURES)}
    needing |= {"--suspects": suspects is not None, "--trust-edges": trust_edges}
    for option, needs in needing.items():
        if needs:
            raise InputError(
                f"{option} needs features, and the graph has none: for a file, give --features FILE; "
                "--donors neighbourhoods, vgae and gae can do without."
            )


def _defence(
    share: float | None, donors: Donors, n_donors: int, retrain: bool, trust_edges: bool, device: str
) -> CopyingDefence | SuspectCorrection:
    from nodecopy.defend import CopyingDefence, SuspectCorrection

    settings: Any = {"donors": donors.value, "n_donors": n_donors, "retrain": retrain, "device": device}
    if share is None:
        return CopyingDefence(trust_edges=trust_edges, **settings)
    return SuspectCorrection(share=share, **settings)


def _suspicious(defence: CopyingDefence | SuspectCorrection, share: float | None) -> NDArray[np.int64]:
    scores = defence.suspicion()
    return np.argsort(-scores, kind="stable")[: round((share or 0.0) * len(scores))]


def _columns(
    defence: CopyingDefence | SuspectCorrection, graph: Graph, nodes: NDArray[np.int64]
) -> dict[str, NDArray[Any]]:
    """The table: ids, classes before and after, probabilities after, and the label where it is known."""
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


def _nodes(columns: dict[str, NDArray[Any]], classes: NDArray[Any]) -> list[dict[str, Any]]:
    """The table for programs: a record for each node, its probabilities by class."""
    names = ("id", "before", "p_before", "after")
    rows = zip(*(columns[name].tolist() for name in names), strict=True)
    after = zip(*(columns[f"p_{name}"].tolist() for name in classes), strict=True)
    return [
        dict(zip(names, row, strict=True)) | {"probabilities": dict(zip(map(str, classes), p, strict=True))}
        for row, p in zip(rows, after, strict=True)
    ]


def _accuracies(
    columns: dict[str, NDArray[Any]], graph: Graph, nodes: NDArray[np.int64], unseen: NDArray[np.bool_]
) -> dict[str, Any]:
    """How often right before and after, where labels are known and were not learnt from."""
    names: Any = graph.named_labels()
    known = unseen & (graph.labels is not None and graph.labels[nodes] != UNLABELLED)
    if not known.any():
        return {}
    truth = names[nodes]
    return {
        f"accuracy_{when}": float((columns[when] == truth)[known].mean()) for when in ("before", "after")
    } | {"labelled": int(known.sum())}


def _tell(found: dict[str, Any], columns: dict[str, NDArray[Any]], graph: Graph) -> None:
    print_note(f"{graph!r}, seed {found['seed']}")
    keys = ("train", "corrected", "changed", "labelled", "accuracy_before", "accuracy_after")
    told = {key: found[key] for key in keys if key in found}
    print_table([key.replace("_", " ") for key in told], [[format_value(value) for value in told.values()]])
    rows = list(zip(*(map(str, columns[name].tolist()) for name in ("id", "before", "after")), strict=True))
    print_table(["node", "before", "after"], rows[:N_SHOWN])
    if len(rows) > N_SHOWN:
        print_note(f"and {len(rows) - N_SHOWN} more")
