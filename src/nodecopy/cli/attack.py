"""``nodecopy attack``: flip edges so that classifiers err at chosen nodes."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

import nodecopy
from nodecopy._core.formats import TABLES, format_of
from nodecopy._core.optional_imports import import_optional
from nodecopy._core.random import child
from nodecopy._core.validation import check_integer, check_real
from nodecopy.cli import node_splits, options, sources
from nodecopy.cli.output_files import check_outputs
from nodecopy.cli.terminal import format_value, print_json, print_note, print_table
from nodecopy.errors import InputError
from nodecopy.graph import UNLABELLED, Graph
from nodecopy.io import write_graph
from nodecopy.io.graphs import FORMATS

if TYPE_CHECKING:
    from nodecopy.attacks import Attack, Perturbation
    from nodecopy.datasets import Split

N_VICTIMS = 5


class Delete(StrEnum):
    """Whom DICE cuts off."""

    SAME_CLASS = "same-class"
    ANY = "any"


class Method(StrEnum):
    """The attacks."""

    DICE = "dice"
    NETTACK = "nettack"
    FGA = "fga"
    RANDOM = "random"


def attack(
    source: options.Source,
    labels: options.Labels = None,
    features: options.Features = None,
    largest_component: options.LargestComponent = False,
    method: Annotated[Method, typer.Option(help="The attack.")] = Method.NETTACK,
    nodes: Annotated[
        str | None, typer.Option(help="Ids of the victims, commas between, or a file with one a line.")
    ] = None,
    victims: Annotated[
        int | None, typer.Option(help=f"Without --nodes: that many at random. (default: {N_VICTIMS})")
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            help="Flips for each victim: a number, 'degree', or a share of its edges such as 0.5 (dice: of "
            "its neighbours that can be cut off). (default: degree, fga 20, dice 0.5)"
        ),
    ] = None,
    delete: Annotated[
        Delete | None, typer.Option(help="dice: which neighbours are cut off. (default: same-class)")
    ] = None,
    influencers: Annotated[
        int | None,
        typer.Option(help="nettack: flip at that many nodes around the victim, none of its own edges."),
    ] = None,
    alone: Annotated[
        bool, typer.Option("--alone", help="Each victim against the clean graph, not one after another.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of victims, surrogate and draws.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="The attacked graph: .csv .tsv .txt .parquet .npz .graphml.")
    ] = None,
    flips: Annotated[Path | None, typer.Option(help="Keep the flips as .npz, for nodecopy defend.")] = None,
    json_: options.AsJson = False,
) -> None:
    """Attack nodes of an undirected, unweighted, labelled graph by flipping edges.

    Of a dataset, the attacker learns from the labels of the first trial of the experiments and victims
    are test nodes; of a file, victims are labelled nodes and the attacker learns from all others. Where
    there are no features, the attacker gives each node one of its own. A budget that a victim cannot bear
    is spent as far as possible; an isolated victim has no degree to spend, and is left alone by default.
    """
    check_outputs([source, labels, features], out=(out, FORMATS), flips=(flips, (".npz",)))
    import_optional("torch", "nodecopy attack")
    from nodecopy.experiments.trials import TrialSeeds
    from nodecopy.nn.features import with_features

    striking, granted = _attack(method, delete, influencers, together=not alone), _budget(budget)
    graph = sources.load_graph(source, labels, features, False, largest_component)
    split, root = node_splits.split_for_attack(graph, source, seed, largest_component)
    targets = _targets(graph, split, nodes, victims, np.random.default_rng(child(root, TrialSeeds.VICTIMS)))
    known = np.setdiff1d(split.train, targets)
    draws = child(root, TrialSeeds.ATTACK)
    found = striking.attack(with_features(graph), targets, budget=granted, train=known, rng=draws)
    left = found.apply(graph)
    if out is not None:
        write_graph(left, out)
    if flips is not None:
        found.save(flips)
    if json_:
        print_json(_described(found, Path(source).name, seed))
        return
    _tell(found, graph)
    for path, what in ((out, "attacked graph"), (flips, "flips")):
        if path is not None:
            print_note(f"{what} written to {path}")
    isolated = left.node_ids[left.degrees == 0]
    if out is not None and len(isolated) and format_of(out, FORMATS) in TABLES:
        names = ", ".join(map(str, isolated[:N_VICTIMS])) + (", ..." if len(isolated) > N_VICTIMS else "")
        print_note(f"without edges, so not in that table of edges: {names}")


def _attack(method: Method, delete: Delete | None, influencers: int | None, *, together: bool) -> Attack:
    from nodecopy.attacks import DICE, FGA, Nettack, RandomFlips

    if influencers is not None and method is not Method.NETTACK:
        raise InputError(f"--influencers goes with nettack; got {influencers} for {method.value}.")
    if delete is not None and method is not Method.DICE:
        raise InputError(f"--delete goes with dice; got {delete.value} for {method.value}.")
    if method is Method.DICE:
        return DICE(delete=(delete or Delete.SAME_CLASS).value, together=together)
    if method is Method.NETTACK and influencers is not None:
        return Nettack(direct=False, n_influencers=influencers, together=together)
    if method is Method.FGA:
        return FGA(together=together)
    return (Nettack if method is Method.NETTACK else RandomFlips)(together=together)


def _budget(budget: str | None) -> int | float | str | None:
    """Return the budget that an attack is called with."""
    if budget is None or budget == "degree":
        return budget
    try:
        return int(budget) if budget.isdecimal() else check_real(float(budget), "--budget", low=0, high=1)
    except ValueError as error:
        raise InputError(
            f"--budget must be a whole number, 'degree' or a share between 0.0 and 1.0; got {budget!r}."
        ) from error


def _targets(
    graph: Graph,
    split: Split[NDArray[np.int64]],
    nodes: str | None,
    victims: int | None,
    draws: np.random.Generator,
) -> NDArray[np.int64]:
    if nodes is not None:
        if victims is not None:
            raise InputError("--nodes and --victims exclude each other: one names them, the other draws.")
        return sources.parse_nodes(graph, nodes)
    reachable = split.test[graph.degrees[split.test] > 0]
    number = N_VICTIMS if victims is None else victims
    check_integer(number, "victims", low=1, high=len(reachable), high_name="nodes that can be attacked")
    return np.sort(draws.choice(reachable, number, replace=False))


def _described(found: Perturbation, source: str, seed: int) -> dict[str, Any]:
    ids = found.node_ids
    return {
        "nodecopy": nodecopy.__version__,
        "source": source,
        "seed": seed,
        "attack": found.attack,
        "targets": ids[found.targets].tolist(),
        "budgets": found.budgets.tolist(),
        "spent": found.spent.tolist(),
        "flips": [
            {"first": first, "second": second, "added": bool(added), "target": target}
            for (first, second), added, target in zip(
                ids[found.flips].tolist(), found.is_added, ids[found.owners].tolist(), strict=True
            )
        ],
    }


def _tell(found: Perturbation, graph: Graph) -> None:
    print_note(f"{graph!r}, {found.attack}")
    names: Any = graph.named_labels()
    rows = []
    for target, budget, spent in zip(found.targets, found.budgets, found.spent, strict=True):
        mine = found.owners == target
        counts = (found.is_added[mine].sum(), (~found.is_added[mine]).sum())
        unknown = graph.labels is None or graph.labels[target] == UNLABELLED
        label = "-" if unknown else str(names[target])
        degree = int(graph.degrees[target])
        numbers = map(format_value, (degree, int(budget), int(spent), *map(int, counts)))
        rows.append([str(graph.node_ids[target]), label, *numbers])
    print_table(["node", "label", "degree", "budget", "flips", "added", "removed"], rows)
