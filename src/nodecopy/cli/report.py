"""``nodecopy report``: one page to look at, for one's own data."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from nodecopy._core.optional_imports import import_optional
from nodecopy._core.random import child, generator, seed_sequence
from nodecopy._core.validation import check_integer
from nodecopy.cli import node_splits, options, sources
from nodecopy.cli.output_files import check_outputs
from nodecopy.cli.sample import choose_law, create_law
from nodecopy.cli.terminal import error_console, print_note
from nodecopy.copying import NodeCopying
from nodecopy.errors import InputError, MissingExtraError
from nodecopy.graph import UNLABELLED, Graph, class_codes
from nodecopy.interactions import Interactions
from nodecopy.metrics import compare
from nodecopy.report import sections
from nodecopy.report.page import write_page
from nodecopy.report.result_tables import result_tables_section
from nodecopy.report.sections import Evaluation, Section, copied_samples

if TYPE_CHECKING:
    from nodecopy.classify import BayesianGCN
    from nodecopy.datasets import Split

N_DRAWN, N_GRAPHS = 3, 5
MOST_USERS = 100
GRAPH = "The graph"


class Part(StrEnum):
    """What may be left out, since it trains networks."""

    CLASSIFICATION = "classification"
    ATTACK = "attack"


def report(
    source: Annotated[
        str | None,
        typer.Argument(help="A dataset or a file with a graph; may be left out where other data are given."),
    ] = None,
    labels: options.Labels = None,
    features: options.Features = None,
    directed: options.Directed = False,
    largest_component: options.LargestComponent = False,
    interactions: Annotated[
        str | None, typer.Option(help="A dataset or table of user, item[, rating, time]: recommendations.")
    ] = None,
    results: Annotated[
        Path | None, typer.Option(help="Folder of tables that nodecopy reproduce wrote.")
    ] = None,
    samples: Annotated[int, typer.Option(help="Sampled graphs behind the statistics.")] = 20,
    without: Annotated[
        list[Part] | None, typer.Option(help="Leave a part out that trains networks; may be repeated.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of all that is drawn.")] = 0,
    out: Annotated[Path, typer.Option(help="The page.")] = Path("report.html"),
) -> None:
    """Write an HTML page with a graph, its samples and what can be learnt from them.

    Labels and features bring classification with uncertainty and, where the graph is undirected and
    binary, a node that is attacked and repaired; one of five labels is hidden to judge by. The page
    needs no network and no server.
    """
    check_outputs([], out=(out, (".html",)))
    check_integer(samples, "--samples", low=1)
    if source is None and interactions is None and results is None:
        raise InputError("give a graph, --interactions or --results: there is nothing to report.")
    log = None if interactions is None else sources.load_interactions(interactions)
    tables = [] if results is None else [of_results(results)]  # what may be wrong, before networks learn
    found: list[Section] = []
    if source is not None:
        graph = sources.load_graph(source, labels, features, directed, largest_component)
        found += _of_graph(graph, source, samples, seed, largest_component, set(without or ()))
    if log is not None:
        found.append(_of_log(log, seed))
    names = [Path(name).name for name in (source, interactions, results) if name is not None]
    write_page(out, f"Node copying: {names[0]}", [*found, *tables], origin=f"{', '.join(names)}; seed {seed}")
    print_note(f"written to {out}: open it in a browser")


def _of_graph(
    graph: Graph, source: str, n_samples: int, seed: int, largest_component: bool, without: set[Part]
) -> list[Section]:
    reason = _why_not(graph)
    trained, extra, like = [], {}, graph
    if reason is None:
        split, root = node_splits.split_for_report(graph, source, seed)
        if Part.CLASSIFICATION not in without:
            with error_console.status("networks learn"):
                classifier, section = _classification(graph, split, child(root, 1))
            trained.append(section)
            extra = {"predicted": classifier.predict(), "uncertainty": classifier.uncertainty().total}
            like = _filled(graph, split, classifier.predict_proba())
        if Part.ATTACK not in without and not graph.directed and not graph.is_weighted:
            with error_console.status("one node is attacked"):
                trained += _attack(graph, split, seed)
    else:
        print_note(f"no classification: {reason}")
    law = choose_law(like)
    donor_law, _ = create_law(law, like, n_neighbours=min(10, graph.n_nodes), max_donors=50)
    model = NodeCopying(donor_law).fit(like)
    drawn = copied_samples(model, min(N_DRAWN, n_samples), seed)
    titled = {f"sample {number}": sample for number, sample in enumerate(drawn, 1)}
    compared = compare(graph, (graph.with_rows(one.rows) for one in model.sample_many(n_samples, rng=seed)))
    text = (
        f"{graph.n_nodes:,} nodes, {graph.n_edges:,} edges. In a sample, each node takes the neighbours of a "
        f"donor, drawn by the law {law.value}."
    )
    return [
        sections.graphs_section(GRAPH, graph, titled, text=text, rng=seed, **extra),
        sections.statistics_section(
            {"samples": compared}, text=f"Observed, and in each of {n_samples} samples."
        ),
        *trained,
    ]


def _why_not(graph: Graph) -> str | None:
    """Why networks cannot learn from a graph."""
    if graph.labels is None or graph.features is None:
        return "it needs labels and features (--labels FILE --features FILE)."
    if len(np.unique(graph.labels[graph.labels != UNLABELLED])) < 2:
        return "it needs labels of at least two classes."
    try:
        import_optional("torch", "classification")
    except MissingExtraError as error:
        return str(error)
    return None


def _classification(graph: Graph, split: Split[NDArray[np.int64]], seed: Any) -> tuple[BayesianGCN, Section]:
    from nodecopy.classify import BayesianGCN

    classifier = BayesianGCN(n_graphs=N_GRAPHS).fit(graph, split.train, validation=split.validation, rng=seed)
    assert graph.labels is not None
    truth, p = class_codes(graph.labels)[1], classifier.predict_proba()
    unknown = np.flatnonzero(truth == UNLABELLED)
    test = split.test
    evaluations = {"Bayesian GCN": Evaluation(p[test], truth[test], classifier.uncertainty().total[test])}
    return classifier, sections.classification_section(
        graph.node_ids,
        classifier.classes_,
        classifier.prediction_,
        np.union1d(test, unknown),
        truth=truth,
        evaluations=evaluations if len(test) else None,
        graph=GRAPH,
        text=f"A Bayesian GCN on {N_GRAPHS} sampled graphs learnt from {len(split.train)} labels. It is "
        f"judged by {len(test)} whose labels were hidden; {len(unknown)} nodes have none.",
    )


def _filled(graph: Graph, split: Split[NDArray[np.int64]], probabilities: NDArray[np.float32]) -> Graph:
    """The graph with predicted labels where they were not learnt from: who is alike, as the paper has it."""
    assert graph.labels is not None
    codes = probabilities.argmax(axis=1)
    codes[split.train] = class_codes(graph.labels)[1][split.train]
    return graph.replace(labels=codes)


def _attack(graph: Graph, split: Split[NDArray[np.int64]], seed: int) -> list[Section]:
    from nodecopy.report.attacked_node import attack_and_correct

    candidates = split.test if len(split.test) else split.train
    try:
        attacked = attack_and_correct(graph, split.train, candidates, rng=seed)
    except InputError as error:
        print_note(f"no attack: {error}")
        return []
    text = (
        f"What a GCN says of {graph.node_ids[attacked.node]} before and after FGA flipped {attacked.n_flips} "
        "edges and it learnt from that, and with the neighbourhoods of similar nodes in their place."
    )
    return [sections.attack_section(attacked, graph.node_ids, text=text)]


def _of_log(log: Interactions, seed: int) -> Section:
    from nodecopy.recommend import CopyEASE
    from nodecopy.recommend.copy_ease import default_donor_law, donor_matrix

    with error_console.status("CopyEASE learns"):
        return of_interactions(log, CopyEASE().fit(log), donor_matrix(default_donor_law(), log), seed=seed)


def of_interactions(
    log: Interactions, fitted: Any, donors: Any, *, seed: int, first: int | None = None
) -> Section:
    """What a fitted CopyEASE recommends to some users, one of them perhaps chosen to come first."""
    users = np.arange(log.n_users)
    if log.n_users > MOST_USERS:
        users = np.sort(generator(child(seed_sequence(seed), 2)).choice(users, MOST_USERS, replace=False))
    if first is not None:
        users = np.concatenate([[first], users[users != first][: MOST_USERS - 1]])
    text = (
        "CopyEASE learns from rows in which entries were copied from similar users and items. Beside each "
        "user: the likeliest donors, and which of them have what is recommended."
    )
    return sections.recommendations_section(log, fitted, donors, users, text=text)


def of_results(folder: Path) -> Section:
    """The tables of a folder, with the titles that the experiments have."""
    from nodecopy.experiments import toml

    titles = {}
    for name in toml.names():
        experiment = toml.load(name)
        named: tuple[Any, ...] = (*experiment.methods, *getattr(experiment.task, "attacks", ()))
        titles[name] = {"": experiment.title} | {one.name: one.title for one in named}
    text = (
        "Ours, and beneath it what the paper has, with the verdict at two standard errors. Bold: the best of "
        "ours. The notes beside the results say where they differ, and why."
    )
    return result_tables_section(folder, titles=titles, text=text)
