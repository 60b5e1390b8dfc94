"""``nodecopy demo``: node copying on the datasets that ship with the package."""

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
from nodecopy.cli.options import at_least
from nodecopy.cli.terminal import console, format_value, print_table
from nodecopy.copying import NodeCopying, SameLabel
from nodecopy.errors import MissingExtraError
from nodecopy.graph import Graph
from nodecopy.metrics import compare
from nodecopy.metrics.classification import scores
from nodecopy.metrics.comparison import Row
from nodecopy.report import sections
from nodecopy.report.page import write_page
from nodecopy.report.sections import Evaluation, Section, copied_samples

N_SAMPLES, N_DRAWN = 100, 3
N_INTERACTION_SPLITS = 10
N_SPLITS, LABELS_PER_CLASS, N_GRAPHS = 6, 1, 5
ATTACK_LABELS_PER_CLASS = 5
DIGITS = "Handwritten digits"


def demo(
    out_folder: Annotated[Path, typer.Option("--out", help="Folder for the page and the figures.")] = Path(
        "demo"
    ),
    seed: Annotated[int, typer.Option(help="Seed of samples and splits.", callback=at_least(0))] = 3,
    results: Annotated[
        Path | None,
        typer.Option(help="Folder of results tables that nodecopy reproduce wrote, for the page."),
    ] = None,
) -> None:
    """Run node copying on the datasets that ship with the package.

    The demo samples the karate club graph, recommends books, classifies digits from few labels, and attacks
    and corrects one digit. The results are printed and shown on one page, report.html.
    """
    tables = [] if results is None else [report.results_section(results)]  # before anything is computed
    page = _sample_karate(out_folder, seed)
    console.print()
    books = _recommend_books(seed)
    console.print()
    try:
        import_optional("torch", "classification")
        digits = datasets.load("digits")
    except MissingExtraError as error:
        console.print(f"No classification: {error}", markup=False)
    else:
        page += _classify_digits(digits, out_folder, seed)
        console.print()
        page.append(_attack_digit(digits, out_folder, seed))
    origin = f"Written by nodecopy demo with seed {seed}, on the datasets that ship with the package."
    path = out_folder / "report.html"
    write_page(path, "Node copying: demonstration", [*page, books, *tables], origin=origin)
    console.print(f"\nPage: {path} (open it in a browser)")


def _sample_karate(out_folder: Path, seed: int) -> list[Section]:
    graph = datasets.load("karate")
    console.print(f"Zachary's karate club: {graph!r}")
    console.print("In a sample, each node gets the neighbours of a random node of its faction.\n")
    models = {
        "maximum": NodeCopying(SameLabel()).fit(graph),
        "one endpoint": NodeCopying(SameLabel(), symmetrise="one-endpoint").fit(graph),
    }
    comparisons = {
        name: compare(graph, model.sample_many(N_SAMPLES, rng=seed)) for name, model in models.items()
    }
    rows = []
    for row in comparisons["maximum"]:
        spreads = (_format_spread(comparison[row.name]) for comparison in comparisons.values())
        rows.append([row.name, format_value(row.observed), *spreads])
    print_table([f"{N_SAMPLES} samples", "observed", *comparisons], rows)

    def draw() -> Any:
        from nodecopy.report import draw_graphs

        samples = {f"sample, {name}": model.sample(rng=seed) for name, model in models.items()}
        return draw_graphs({"observed": graph, **samples})

    _save_figure(draw, out_folder / "samples.png")
    drawn = {
        f"sample {number}, {name}": sample
        for name, model in models.items()
        for number, sample in enumerate(copied_samples(model, N_DRAWN, seed), 1)
    }
    text = (
        "Zachary's karate club. In a sample, each node gets the neighbours of a random node of its faction. "
        "An edge then exists if either endpoint has it (maximum), or if a random one has it (one endpoint)."
    )
    return [
        sections.graphs_section("The karate club", graph, drawn, text=text, rng=seed),
        sections.statistics_section(
            comparisons,
            text=f"Statistics of the karate club and of {N_SAMPLES} samples for each rule of symmetrisation.",
        ),
    ]


def _recommend_books(seed: int) -> Section:
    from nodecopy.recommend import EASE, CopyEASE, Popularity
    from nodecopy.recommend.copy_ease import default_donor_law, donor_matrix

    library = datasets.load("library")
    console.print(f"A synthetic library with groups of similar readers: {library!r}", soft_wrap=True)
    console.print("CopyEASE is fitted to interactions of which some are copied from similar readers.\n")
    reader = int(np.random.default_rng(seed).integers(library.n_users))
    name, history = library.user_ids[reader], library.matrix[[reader]].indices
    recommender = CopyEASE().fit(library)
    books, _ = recommender.recommend([name], 5)
    donors: Any = donor_matrix(default_donor_law(), library)
    probabilities = donors[[reader]].toarray()[0]
    console.print(f"history of {name}: {', '.join(library.item_ids[history])}", soft_wrap=True)
    console.print(f"recommended: {', '.join(books[0])}", soft_wrap=True)
    for donor in np.argsort(-probabilities, kind="stable")[:3]:
        n_common = len(np.intersect1d(history, library.matrix[[donor]].indices))
        overlap = f"{n_common} of {library.rows.degrees[donor]} books in common"
        donor_name = library.user_ids[donor]
        console.print(f"donor {donor_name} with probability {probabilities[donor]:.2f}: {overlap}")
    console.print()
    metrics = ("recall@10", "ndcg@10", "coverage@10")
    results: dict[str, list[dict[str, float]]] = {"Popularity": [], "EASE": [], "CopyEASE": []}
    for number in range(N_INTERACTION_SPLITS):
        split = datasets.interaction_split(library, (0.7, 0.0, 0.3), rng=seed + number)
        for model in (Popularity(), EASE(regularisation=150.0), CopyEASE()):
            evaluation = model.fit(split.train).evaluate(split.test, metrics=metrics)
            results[type(model).__name__].append(evaluation)
    rows = [[name, *_format_means(evaluations, metrics)] for name, evaluations in results.items()]
    title = f"30 % of interactions held out, {N_INTERACTION_SPLITS} splits"
    print_table([title, "recall@10", "NDCG@10", "coverage@10"], rows)
    return report.interactions_section(library, recommender, donors, seed=seed, first=reader)


def _classify_digits(graph: Graph, out_folder: Path, seed: int) -> list[Section]:
    from nodecopy.classify import GCN, BayesianGCN, Trial

    console.print(f"Handwritten digits, a nearest-neighbour graph: {graph!r}", soft_wrap=True)
    console.print(f"One label per class, {N_SPLITS} splits. The Bayesian GCN averages networks trained")
    console.print(f"on {N_GRAPHS} sampled graphs, whose donors have the same predicted label.\n")
    labels: Any = graph.labels
    numbers = range(seed, seed + N_SPLITS)
    splits = [
        datasets.label_split(labels, LABELS_PER_CLASS, validation=0, test=1000, rng=number)
        for number in numbers
    ]
    tests = [split.test for split in splits]
    trials = [Trial(graph, split.train, None, number) for split, number in zip(splits, numbers, strict=True)]
    rows, evaluations = [], {}
    for name, classifier in {"GCN": GCN(), "Bayesian GCN": BayesianGCN(n_graphs=N_GRAPHS)}.items():
        predictions = classifier.fit_trials(trials)
        pairs = list(zip(predictions, tests, strict=True))
        means = [scores(prediction.probabilities, labels, test) for prediction, test in pairs]
        rows.append([name, *_format_means(means, ("accuracy", "nll", "ece"))])
        evaluations[name] = Evaluation(
            np.concatenate([prediction.probabilities[test] for prediction, test in pairs]),
            np.concatenate([labels[test] for test in tests]),
            np.concatenate([prediction.uncertainty().total[test] for prediction, test in pairs]),
        )
    print_table(["digits", "accuracy", "negative log-likelihood", "calibration error"], rows)

    def draw() -> Any:
        from nodecopy.report import draw_accuracy_by_certainty

        return draw_accuracy_by_certainty(
            {
                name: (p.argmax(axis=1) == codes, uncertainty)
                for name, (p, codes, uncertainty) in evaluations.items()
            }
        )

    _save_figure(draw, out_folder / "uncertainty.png")
    prediction = predictions[0]
    predicted = prediction.probabilities.argmax(axis=1)
    model = NodeCopying(SameLabel(predicted)).fit(graph)
    return [
        sections.graphs_section(
            DIGITS,
            graph,
            {"sample": next(copied_samples(model, 1, seed))},
            predicted=predicted,
            uncertainty=prediction.uncertainty().total,
            text=f"{graph.n_nodes:,} handwritten digits, each connected with the most similar ones. Only one "
            "digit of each class has a label; donors are digits of the same predicted class.",
            rng=seed,
        ),
        sections.classification_section(
            graph.node_ids,
            np.unique(labels),
            prediction,
            tests[0],
            truth=labels,
            evaluations=evaluations,
            graph=DIGITS,
            text=f"One label per class. The Bayesian GCN averages networks trained on {N_GRAPHS} sampled "
            f"graphs. Curves and scores are over {N_SPLITS} splits; the table shows the first.",
        ),
    ]


def _attack_digit(graph: Graph, out_folder: Path, seed: int) -> Section:
    from nodecopy.report.attacked_node import attack_and_correct

    labels: Any = graph.labels
    split = datasets.label_split(labels, ATTACK_LABELS_PER_CLASS, validation=0, test=1000, rng=seed)
    attacked = attack_and_correct(graph, split.train, split.test, rng=seed)
    node, names = attacked.node, [str(name) for name in attacked.classes]
    probabilities = {stage.name: stage.probabilities for stage in attacked.stages}
    console.print(f"Digit {node}, a {labels[node]}: FGA flips {attacked.n_flips} edges, and a GCN is trained")
    console.print("on the attacked graph. Copied neighbourhoods correct its prediction.\n")
    rows = [
        [stage, names[int(p.argmax())], f"{p.max():.2f}", f"{p[labels[node]]:.2f}"]
        for stage, p in probabilities.items()
    ]
    print_table(["stage", "predicted", "probability", "of the true class"], rows)
    features: Any = graph.features
    images = np.asarray(features).reshape(-1, 8, 8)

    def draw() -> Any:
        from nodecopy.report import draw_attacked_node

        neighbours = {stage.name: stage.neighbours for stage in attacked.stages}
        return draw_attacked_node(node, neighbours, probabilities, labels, names, images=images)

    _save_figure(draw, out_folder / "attack.png")
    text = (
        f"Predictions of a GCN for digit {node}: on the clean graph, after FGA flipped {attacked.n_flips} "
        "edges and the GCN was trained on the attacked graph, and with the neighbourhoods of similar digits "
        "in place of its own."
    )
    return sections.attack_section(
        attacked, graph.node_ids, images=images, title="One attacked digit", text=text
    )


def _save_figure(draw: Callable[[], Any], path: Path) -> None:
    try:
        figure = np.ravel(draw())[0].figure
    except MissingExtraError as error:
        console.print(f"\nNo figure: {error}", markup=False)
        return
    with atomic_write(path) as temporary:
        figure.savefig(temporary, dpi=150)
    console.print(f"\nFigure: {path}")


def _format_spread(row: Row) -> str:
    return f"{row.mean:.3g} ± {row.deviation:.2g}"


def _format_means(results: list[dict[str, float]], keys: tuple[str, ...]) -> list[str]:
    """Format the mean and the standard deviation of some results."""
    values = [[result[key] for result in results] for key in keys]
    return [f"{np.mean(column):.3f} ± {np.std(column, ddof=1):.2g}" for column in values]
