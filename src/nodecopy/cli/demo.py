"""``nodecopy demo``: the model at work on data that ship with the package."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from nodecopy import datasets
from nodecopy._core.atomic_files import atomic_write
from nodecopy._core.optional_imports import import_optional
from nodecopy.cli import report
from nodecopy.cli.terminal import console, format_value, print_table
from nodecopy.copying import NodeCopying, SameLabel
from nodecopy.errors import MissingExtraError
from nodecopy.graph import Graph
from nodecopy.metrics import compare
from nodecopy.metrics.classification import scores
from nodecopy.metrics.comparison import Row
from nodecopy.report import sections
from nodecopy.report.page import write_page
from nodecopy.report.sections import CopiedSample, Evaluation, Section, copied_samples

N_SPLITS, N_LABELS, N_GRAPHS = 6, 1, 5
N_DEALS = 10
N_DRAWN = 3
DIGITS = "Handwritten digits"


def demo(
    out_folder: Annotated[Path, typer.Option("--out", help="Folder for the page and the pictures.")] = Path(
        "demo"
    ),
    seed: Annotated[int, typer.Option(help="Seed of samples and splits.")] = 3,
    results: Annotated[
        Path | None, typer.Option(help="Folder of tables that nodecopy reproduce wrote, for the page.")
    ] = None,
) -> None:
    """Run node copying on the datasets that ship with the package.

    The demo samples the karate club graph, recommends books, classifies digits from few labels, and attacks
    and corrects one digit. The results are printed and shown on one page, report.html.
    """
    tables = [] if results is None else [report.results_section(results)]  # before anything is computed
    found = _sampling(out_folder, seed)
    console.print()
    books = _recommendation(seed)
    console.print()
    try:
        import_optional("torch", "classification")
        digits = datasets.load("digits")
    except MissingExtraError as error:
        console.print(f"No classification: {error}", markup=False)
    else:
        found += _classification(digits, out_folder, seed)
        console.print()
        found.append(_attack(digits, out_folder, seed))
    origin = f"Written by nodecopy demo with seed {seed}, on data that come with the package."
    write_page(out_folder / "report.html", "Node copying at work", [*found, books, *tables], origin=origin)
    console.print(f"\nPage: {out_folder / 'report.html'} (open it in a browser)")


def _sampling(out_folder: Path, seed: int) -> list[Section]:
    graph = datasets.load("karate")
    console.print(f"Zachary's karate club: {graph!r}")
    console.print("Each node takes the neighbours of a random member of its faction.\n")
    models = {
        "maximum": NodeCopying(SameLabel()).fit(graph),
        "one endpoint": NodeCopying(SameLabel(), symmetrise="one-endpoint").fit(graph),
    }
    found = {name: compare(graph, model.sample_many(100, rng=seed)) for name, model in models.items()}
    rows = [
        [
            row.name,
            format_value(row.observed),
            *(_spread(comparison[row.name]) for comparison in found.values()),
        ]
        for row in found["maximum"]
    ]
    print_table(["100 samples", "observed", *found], rows)
    samples = {f"sample, {name}": model.sample(rng=seed) for name, model in models.items()}

    def picture() -> Any:
        from nodecopy.report import draw_graphs

        return draw_graphs({"observed": graph, **samples})

    _draw(picture, out_folder / "samples.png")
    drawn = {
        f"sample {number}, {name}": sample
        for name, model in models.items()
        for number, sample in enumerate(copied_samples(model, N_DRAWN, seed), 1)
    }
    text = (
        "Zachary's karate club. Each node takes the neighbours of a random member of its faction; an edge is "
        "then there if either end has it (maximum), or if the end that a coin picks has it (one endpoint)."
    )
    return [
        sections.graphs_section("The karate club", graph, drawn, text=text, rng=seed),
        sections.statistics_section(found, text="Of the karate club, and of 100 samples by either rule."),
    ]


def _recommendation(seed: int) -> Section:
    from nodecopy.recommend import EASE, CopyEASE, Popularity
    from nodecopy.recommend.copy_ease import default_donor_law, donor_matrix

    library = datasets.load("library")
    console.print(f"A library of invented readers with planted tastes: {library!r}", soft_wrap=True)
    console.print("CopyEASE learns from rows in which entries were copied from similar readers.\n")
    reader = int(np.random.default_rng(seed).integers(library.n_users))
    name, history = library.user_ids[reader], library.matrix[[reader]].indices
    fitted = CopyEASE().fit(library)
    books, _ = fitted.recommend([name], 5)
    donors: Any = donor_matrix(default_donor_law(), library)
    lent = donors[[reader]].toarray()[0]
    console.print(f"{name} has     {', '.join(library.item_ids[history])}", soft_wrap=True)
    console.print(f"may like           {', '.join(books[0])}", soft_wrap=True)
    for donor in np.argsort(-lent, kind="stable")[:3]:
        common = np.intersect1d(history, library.matrix[[donor]].indices)
        which = f"{len(common)} of {library.rows.degrees[donor]} books are the same"
        console.print(f"donor {library.user_ids[donor]}   with probability {lent[donor]:.2f}: {which}")
    console.print()
    keys = ("recall@10", "ndcg@10", "coverage@10")
    found: dict[str, list[dict[str, float]]] = {"Popularity": [], "EASE": [], "CopyEASE": []}
    for number in range(N_DEALS):
        split = datasets.interaction_split(library, (0.7, 0.0, 0.3), rng=seed + number)
        for model in (Popularity(), EASE(regularisation=150.0), CopyEASE()):
            found[type(model).__name__].append(model.fit(split.train).evaluate(split.test, metrics=keys))
    rows = [[name, *(_mean([one[key] for one in each]) for key in keys)] for name, each in found.items()]
    print_table([f"3 of 10 books hidden, {N_DEALS} times", "recall@10", "NDCG@10", "books ever shown"], rows)
    return report.interactions_section(library, fitted, donors, seed=seed, first=reader)


def _classification(graph: Graph, out_folder: Path, seed: int) -> list[Section]:
    from nodecopy.classify import GCN, BayesianGCN, Trial

    console.print(f"Handwritten digits, each joined with its nearest: {graph!r}", soft_wrap=True)
    console.print(f"One label of each class, {N_SPLITS} splits; the Bayesian GCN averages over networks")
    console.print(
        f"trained on {N_GRAPHS} graphs that copy neighbours between nodes of the same predicted label.\n"
    )
    splits = [
        datasets.label_split(graph.labels, N_LABELS, validation=0, test=1000, rng=seed + number)
        for number in range(N_SPLITS)
    ]
    trials = [Trial(graph, split.train, None, seed + number) for number, split in enumerate(splits)]
    labels: Any = graph.labels
    rows, curves, judged = [], {}, {}
    for name, classifier in {"GCN": GCN(), "Bayesian GCN": BayesianGCN(n_graphs=N_GRAPHS)}.items():
        found = list(zip(classifier.fit_trials(trials), (split.test for split in splits), strict=True))
        each = [scores(prediction.probabilities, labels, test) for prediction, test in found]
        rows.append([name, *(_mean([one[key] for one in each]) for key in ("accuracy", "nll", "ece"))])
        curves[name] = (
            np.concatenate([(p.probabilities.argmax(axis=1) == labels)[test] for p, test in found]),
            np.concatenate([p.uncertainty().total[test] for p, test in found]),
        )
        probabilities = np.concatenate([p.probabilities[test] for p, test in found])
        codes = np.concatenate([labels[test] for _, test in found])
        judged[name] = Evaluation(probabilities, codes, curves[name][1])
    print_table(["digits", "accuracy", "negative log-likelihood", "calibration error"], rows)

    def picture() -> Any:
        from nodecopy.report import draw_accuracy_by_certainty

        return draw_accuracy_by_certainty(curves)

    _draw(picture, out_folder / "uncertainty.png")
    prediction, test = found[0]
    predicted = prediction.probabilities.argmax(axis=1)
    model = NodeCopying(SameLabel(predicted)).fit(graph)
    return [
        sections.graphs_section(
            DIGITS,
            graph,
            {"sample": CopiedSample(model.sample(rng=seed), model.draw_donors(rng=seed))},
            predicted=predicted,
            uncertainty=prediction.uncertainty().total,
            text=f"{graph.n_nodes:,} digits, each joined with those that look most alike. Where only one of "
            "each class has a label, donors are digits of the same predicted class.",
            rng=seed,
        ),
        sections.classification_section(
            graph.node_ids,
            np.unique(labels),
            prediction,
            test,
            truth=labels,
            evaluations=judged,
            graph=DIGITS,
            text=f"One label of each class. The Bayesian GCN averages networks trained on {N_GRAPHS} sampled "
            f"graphs. Curves and scores pool {N_SPLITS} splits; the nodes are those of the first.",
        ),
    ]


def _attack(graph: Graph, out_folder: Path, seed: int) -> Section:
    from nodecopy.report.attacked_node import attack_and_correct

    split = datasets.label_split(graph.labels, 5, validation=0, test=1000, rng=seed)
    labels: Any = graph.labels
    repair = attack_and_correct(graph, split.train, split.test, rng=seed)
    victim, names = repair.node, [str(name) for name in repair.classes]
    stages = {stage.name: stage.probabilities for stage in repair.stages}
    console.print(
        f"Digit {victim}, a {labels[victim]}: {repair.n_flips} flipped edges (FGA) change what a GCN"
    )
    console.print("that is trained on the attacked graph says of it; copied neighbourhoods repair that.\n")
    rows = [
        [stage, names[int(p.argmax())], f"{p.max():.2f}", f"{p[labels[victim]]:.2f}"]
        for stage, p in stages.items()
    ]
    print_table(["stage", "predicted", "probability", "of the truth"], rows)
    features: Any = graph.features
    images = np.asarray(features).reshape(-1, 8, 8)

    def picture() -> Any:
        from nodecopy.report import draw_attacked_node

        around = {stage.name: stage.neighbours for stage in repair.stages}
        return draw_attacked_node(victim, around, stages, labels, names, images=images)

    _draw(picture, out_folder / "attack.png")
    text = (
        f"What a GCN says of digit {victim}: before, after {repair.n_flips} flipped edges (FGA) from which "
        "it learnt, and with the neighbourhoods of similar digits copied in place of the tampered ones."
    )
    return sections.attack_section(
        repair, graph.node_ids, images=images, title="One attacked digit", text=text
    )


def _draw(picture: Callable[[], Any], path: Path) -> None:
    try:
        figure = np.ravel(picture())[0].figure
    except MissingExtraError as error:
        console.print(f"\nNo picture: {error}", markup=False)
        return
    with atomic_write(path) as temporary:
        figure.savefig(temporary, dpi=150)
    console.print(f"\nPicture: {path}")


def _spread(row: Row) -> str:
    return f"{row.mean:.3g} ± {row.deviation:.2g}"


def _mean(values: list[float]) -> str:
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=1):.2g}"
