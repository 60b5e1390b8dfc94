"""``nodecopy attack``: flip edges so that chosen nodes are misclassified."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.random import SeedSequence

from nodecopy._core.arrays import Array, Ints
from nodecopy._core.checks import check_integer, check_real, list_names
from nodecopy._core.files import TABLES, format_of
from nodecopy._core.imports import import_optional
from nodecopy._core.messages import mute_decisions
from nodecopy._core.random import child, generator
from nodecopy.cli import files
from nodecopy.cli import options as opt
from nodecopy.cli.output import print_json, print_note, print_table, print_written, show_progress, show_status
from nodecopy.errors import InputError
from nodecopy.experiments.spec import TrialSeeds
from nodecopy.graph import UNLABELLED, Graph
from nodecopy.io import write_graph
from nodecopy.io.graphs import FORMATS

if TYPE_CHECKING:
    from nodecopy.attacks import Perturbation

N_TARGETS = 5
Method = Literal["dice", "nettack", "fga", "random"]


def attack(
    source: opt.Source,
    method: Method = opt.common("The attack.", "nettack"),
    nodes: str | None = opt.reads("Ids of the targets, separated by commas, or a file with one per line."),
    n_targets: int | None = opt.reads(f"Number of random targets without --nodes. (default: {N_TARGETS})"),
    budget: str | None = opt.common(
        "Flips for each target: a number, 'degree', or a share of its edges (dice: of those that it may "
        "delete). (default: degree, fga 20, dice 0.5)"
    ),
    scale_features: opt.ScaleFeatures | None = opt.more(
        "nettack and fga: how the surrogate scales features. (default: auto)"
    ),
    seed: opt.Seed = 0,
    out: Path | None = opt.writes("File for the attacked graph: .csv .tsv .txt .parquet .npz .graphml."),
    flips: Path | None = opt.writes("File for the flips, for nodecopy defend: .npz, or a table."),
    spreadsheet: opt.Spreadsheet = False,
    json_: opt.AsJson = False,
    tables: opt.UndirectedGraphOptions = opt.UndirectedGraphOptions(),
) -> None:
    """Attack nodes of an undirected, unweighted, labelled graph by flipping edges.

    For a dataset, the attacker knows the training labels of the first trial of the experiments, and random
    targets are test nodes. For a file, the attacker knows all labels but those of the targets, and random
    targets are labelled nodes. Without features, the attacker uses the identity matrix. An isolated target
    has degree 0 and so no budget by default. Classes before and after the attack are predicted by a GCN that
    is trained on the same labels in the clean and in the attacked graph.

    Examples:
        nodecopy attack digits --n-targets 2 --flips flips.npz
        nodecopy attack edges.csv --labels labels.csv --nodes ann,bob --method dice --out attacked.csv
    """
    opt.check_outputs(
        [source, tables.labels, tables.features], out=(out, FORMATS), flips=(flips, (*TABLES, ".npz"))
    )
    import_optional("torch", "nodecopy attack")
    from nodecopy.nn.networks import add_identity_features

    attacker = _create_attack(method, scale_features)
    budget_value = _parse_budget(budget)
    graph = files.load_graph(source, tables)
    split, root = files.split_for_attack(graph, source, seed)
    if nodes is not None:
        opt.check_applicable("random targets", f"--nodes {nodes}", n_targets=n_targets)
        targets = files.parse_nodes(graph, nodes)
    else:
        candidates = split.test[graph.degrees[split.test] > 0]
        number = N_TARGETS if n_targets is None else n_targets
        check_integer(number, "--n-targets", low=1, high=len(candidates), high_name="number of candidates")
        rng = generator(child(root, TrialSeeds.TARGETS))
        targets = np.sort(rng.choice(candidates, number, replace=False))
    train = np.setdiff1d(split.train, targets)
    with show_status("preparing the attack") as end_status:

        def show_targets(targets: list[int]) -> Iterator[int]:
            end_status()
            return show_progress(targets, len(targets), "attacking")

        perturbation = attacker.attack(
            add_identity_features(graph),
            targets,
            budget=budget_value,
            train=train,
            rng=child(root, TrialSeeds.ATTACK),
            progress=show_targets,
        )
    attacked = perturbation.apply(graph)
    if out is not None:
        write_graph(attacked, out, spreadsheet=spreadsheet)
    if flips is not None:
        perturbation.save(flips, spreadsheet=spreadsheet)
    outcomes = _check_targets(graph, perturbation, train, child(root, TrialSeeds.METHOD))
    if json_:
        print_json(files.describe_run(source, seed=seed, **_describe(perturbation, outcomes)))
        return
    _print_flips(perturbation, graph, outcomes)
    print_written(out, "attacked graph")
    print_written(flips, "flips")
    isolated = attacked.node_ids[attacked.degrees == 0]
    if out is not None and len(isolated) and format_of(out, FORMATS) in TABLES:
        print_note(f"isolated nodes, which are not in the table of edges: {list_names(isolated)}")


def _create_attack(method: Method, scale: str | None) -> Any:
    from nodecopy import attacks

    applies_to, settings = {"scale_features": ("nettack", "fga")}, {"scale_features": scale}
    given = opt.select_given("method", method, applies_to, settings)
    kinds = {"dice": "DICE", "nettack": "Nettack", "fga": "FGA", "random": "RandomFlips"}
    return getattr(attacks, kinds[method])(**({"scale": scale} if given else {}))


def _parse_budget(budget: str | None) -> int | float | str | None:
    if budget is None or budget == "degree":
        return budget
    try:
        return int(budget) if budget.isdecimal() else check_real(float(budget), "--budget", low=0, high=1)
    except ValueError as error:
        raise InputError(f"--budget must be a whole number, 'degree' or a share; got {budget!r}.") from error


def _check_targets(
    graph: Graph, perturbation: Perturbation, train: Ints, rng: SeedSequence
) -> list[dict[str, Any]]:
    from nodecopy.classify import GCN
    from nodecopy.nn.networks import add_identity_features

    if not len(train):
        print_note("every labelled node is a target: no classifier can be trained to check who is misled")
        return []
    targets, names = perturbation.targets, graph.labels

    def predict(graph: Graph) -> Array:
        return GCN().fit(add_identity_features(graph), train, rng=rng).predict()

    with show_status("checking who is misled"), mute_decisions():
        before, after = predict(graph), predict(perturbation.apply(graph))
    is_misled = (before == names) & (after != names)
    columns = {"target": graph.node_ids, "before": before, "after": after, "misled": is_misled}
    rows = zip(*(column[targets].tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _describe(perturbation: Perturbation, outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    ids = perturbation.node_ids
    columns = ids[perturbation.flips], perturbation.is_added, ids[perturbation.owners]
    rows = zip(*(column.tolist() for column in columns), strict=True)
    description = {
        "attack": perturbation.attack,
        "targets": ids[perturbation.targets].tolist(),
        "budgets": perturbation.budgets.tolist(),
        "spent": perturbation.spent.tolist(),
        "flips": [
            {"first": first, "second": second, "added": added, "target": target}
            for (first, second), added, target in rows
        ],
    }
    if outcomes:
        description["misled"] = sum(outcome["misled"] for outcome in outcomes)
        description["predictions"] = outcomes
    return description


def _print_flips(perturbation: Perturbation, graph: Graph, outcomes: list[dict[str, Any]]) -> None:
    print_note(f"{graph!r}, {perturbation.attack}")
    names, labels = cast(Any, (graph.labels, graph.label_codes))
    rows, counts = [], (perturbation.targets, perturbation.budgets, perturbation.spent)
    for target, budget, n_flips in zip(*counts, strict=True):
        is_added = perturbation.is_added[perturbation.owners == target]
        numbers = (graph.degrees[target], budget, n_flips, is_added.sum(), (~is_added).sum())
        label = str(names[target]) if labels[target] != UNLABELLED else "-"
        rows.append([str(graph.node_ids[target]), label, *map(int, numbers)])
    heads = ["node", "label", "degree", "budget", "flips", "added", "removed"]
    if outcomes:
        heads += ["before", "after"]
        rows = [[*row, str(o["before"]), str(o["after"])] for row, o in zip(rows, outcomes, strict=True)]
    print_table(heads, rows)
    if outcomes:
        n_misled = sum(outcome["misled"] for outcome in outcomes)
        print_note(f"{n_misled} of {len(outcomes)} targets misled: a GCN predicts their label only before")
