"""``nodecopy demo``: node copying on the datasets that ship with the package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nodecopy import datasets
from nodecopy._core.imports import import_optional
from nodecopy.cli import options as opt
from nodecopy.cli.output import console, print_table
from nodecopy.copying import NodeCopying, SameLabel
from nodecopy.errors import MissingExtraError
from nodecopy.graph import Graph
from nodecopy.metrics import compare
from nodecopy.metrics.classification import scores
from nodecopy.metrics.ranking import Evaluation as ListEvaluation
from nodecopy.report import writing
from nodecopy.report.page import Section, copied_samples, graphs_section, statistics_section, write_page
from nodecopy.report.sections import attack_and_correct, attack_section, classification_section, join_trials

N_SAMPLES, N_PLOTTED, N_INTERACTION_SPLITS = 100, 3, 10
N_SPLITS, N_GRAPHS = 6, 3


def demo(out: Path = opt.common("Folder for the page.", Path("demo")), seed: opt.Seed = 3) -> None:
    """Run node copying on the datasets that ship with the package.

    The demo samples the karate club graph, recommends books, classifies digits from few labels, and attacks
    and corrects one digit. The results are printed and shown on one page, report.html.

    Examples:
        nodecopy demo --out demo
    """
    page = _sample_karate(seed)
    books = _recommend_books(seed)
    console.print()
    try:
        import_optional("torch", "classification")
        digits = datasets.load("digits")
    except MissingExtraError as error:
        console.print(f"No classification: {error}\n", markup=False)
    else:
        page += [*_classify_digits(digits, seed), _attack_digit(digits, seed)]
    origin = f"Written by nodecopy demo with seed {seed}, on the datasets that ship with the package."
    path = out / "report.html"
    write_page(path, "Node copying: demonstration", [*page, books], origin=origin)
    console.print(f"Page: {path} (open it in a browser)")


def _sample_karate(seed: int) -> list[Section]:
    graph = datasets.load("karate")
    rule = "In a sample, each node gets the neighbours of a random node of its faction."
    _print(f"Zachary's karate club: {graph!r}", rule, "")
    models = {
        "maximum": NodeCopying(SameLabel(), symmetrise="maximum").fit(graph),
        "one endpoint": NodeCopying(SameLabel(), symmetrise="one-endpoint").fit(graph),
    }
    comparisons = {
        name: compare(graph, model.sample_many(N_SAMPLES, rng=seed)) for name, model in models.items()
    }
    rows = []
    for name, observed, *_ in comparisons["maximum"]:
        summaries = [comparison[name] for comparison in comparisons.values()]
        rows.append([name, observed, *(f"{row.mean:.3g} ± {row.deviation:.2g}" for row in summaries)])
    print_table([f"{N_SAMPLES} samples", "observed", *comparisons], rows)
    console.print()
    plotted = {
        f"sample {number}, {name}": sample
        for name, model in models.items()
        for number, sample in enumerate(copied_samples(model, N_PLOTTED, seed), 1)
    }
    text = (
        f"Zachary's karate club. {rule} An edge then exists if either endpoint has it (maximum, adds "
        "edges), or if a random one has it (one endpoint, keeps their number)."
    )
    estimates = writing.bootstrap_statistics(graph, comparisons["maximum"], seed)
    statistics = f"Statistics of the karate club and of {N_SAMPLES} samples for each rule of symmetrisation."
    return [
        graphs_section("The karate club", graph, plotted, text=text, rng=seed),
        statistics_section(comparisons, estimates=estimates, text=statistics),
        *writing.links_sections(graph, seed, "The karate club"),
    ]


def _recommend_books(seed: int) -> Section:
    from nodecopy.recommend import EASE, CopyEASE, Popularity
    from nodecopy.recommend.ease import default_donors, donor_matrix

    library = datasets.load("library")
    origin = "CopyEASE is fitted to interactions of which some are copied from similar readers."
    _print(f"A synthetic library with groups of similar readers: {library!r}", origin, "")
    reader = int(np.random.default_rng(seed).integers(library.n_users))
    name, history = library.user_ids[reader], library.matrix[[reader]].indices
    recommender = CopyEASE().fit(library)
    books, _ = recommender.recommend([name], 5)
    donors: Any = donor_matrix(default_donors(), library)
    probabilities = donors[[reader]].toarray()[0]
    _print(
        f"history of {name}: {', '.join(library.item_ids[history])}", f"recommended: {', '.join(books[0])}"
    )
    for donor in np.argsort(-probabilities, kind="stable")[:3]:
        n_common = len(np.intersect1d(history, library.matrix[[donor]].indices))
        overlap = f"{n_common} of {library.rows.degrees[donor]} books in common"
        _print(f"donor {library.user_ids[donor]} with probability {probabilities[donor]:.2f}: {overlap}")
    console.print()
    metrics = ("recall@10", "ndcg@10", "coverage@10")
    results: dict[str, list[ListEvaluation]] = {"Popularity": [], "EASE": [], "CopyEASE": []}
    for number in range(N_INTERACTION_SPLITS):
        split = datasets.interaction_split(library, (0.7, 0.0, 0.3), rng=seed + number)
        for model in (Popularity(), EASE(regularisation=150.0), CopyEASE()):
            evaluation = model.fit(split.train).evaluate(split.test, metrics=metrics)
            results[type(model).__name__].append(evaluation)
    rows = [[name, *_format_means(evaluations, metrics)] for name, evaluations in results.items()]
    title = f"30 % of interactions held out, {N_INTERACTION_SPLITS} splits"
    print_table([title, *metrics], rows)
    return writing.interactions_section(
        library, recommender, donors, seed=seed, first=reader, evaluations=results
    )


def _classify_digits(graph: Graph, seed: int) -> list[Section]:
    from nodecopy.classify import GCN, BayesianGCN, SelfTraining, Trial

    text = (
        f"One label per class. The Bayesian GCN averages networks trained on {N_GRAPHS} sampled graphs. "
        "Self-training takes confident predictions of a vote of simpler classifiers as labels."
    )
    _print(f"Handwritten digits, a nearest-neighbour graph: {graph!r}", text, "")
    labels: Any = graph.label_codes
    tests, trials = [], []
    for number in range(seed, seed + N_SPLITS):
        split = datasets.label_split(labels, 1, validation=0, test=1000, rng=number)
        tests.append(split.test)
        trials.append(Trial(graph, split.train, None, number))
    rows, evaluations = [], {}
    classifiers = {
        "GCN": GCN(),
        "Bayesian GCN": BayesianGCN(n_graphs=N_GRAPHS),
        "self-training": SelfTraining(),
    }
    for name, classifier in classifiers.items():
        predictions = classifier.fit_trials(trials)
        results = [scores(p.probabilities, labels, test) for p, test in zip(predictions, tests, strict=True)]
        rows.append([name, *_format_means(results, ("accuracy", "nll", "ece"))])
        evaluations[name] = join_trials(predictions, tests, labels)
    title = f"digits, {N_SPLITS} splits"
    print_table([title, "accuracy", "negative log-likelihood", "calibration error"], rows)
    console.print()
    first = predictions[0]  # of self-training
    predicted = first.probabilities.argmax(axis=1)
    model = NodeCopying(SameLabel(predicted)).fit(graph)
    return [
        graphs_section(
            "Handwritten digits",
            graph,
            {"sample": next(copied_samples(model, 1, seed))},
            predicted=predicted,
            uncertainty=first.uncertainty().total,
            text=f"{graph.n_nodes:,} handwritten digits, each connected with the most similar ones. Only one "
            "digit of each class has a label; donors are digits of the same predicted class.",
            rng=seed,
        ),
        classification_section(
            graph.node_ids,
            np.unique(labels),
            first,
            tests[0],
            truth=labels,
            evaluations=evaluations,
            graph="Handwritten digits",
            text=f"{text} Curves and scores are over {N_SPLITS} splits; the table shows the first.",
        ),
    ]


def _attack_digit(graph: Graph, seed: int) -> Section:
    labels: Any = graph.label_codes
    split = datasets.label_split(labels, 5, validation=0, test=1000, rng=seed)
    attacked = attack_and_correct(graph, split.train, split.test, rng=seed)
    node, names = attacked.node, [str(name) for name in attacked.classes]
    images = np.asarray(graph.features).reshape(-1, 8, 8)
    section = attack_section(attacked, graph.node_ids, images=images, noun="digit")
    _print(section["text"], f"Digit {node} is a {labels[node]}. {section['headline']}", "")
    rows = [
        [stage, names[int(p.argmax())], f"{p.max():.2f}", f"{p[labels[node]]:.2f}"]
        for stage, _, p in attacked.stages
    ]
    print_table(["stage", "predicted", "probability", "of the true class"], rows)
    console.print()
    return section


def _print(*lines: str) -> None:
    console.print("\n".join(lines), soft_wrap=True)


def _format_means(results: Sequence[Mapping[str, float]], keys: Sequence[str]) -> list[str]:
    values = [[result[key] for result in results] for key in keys]
    return [f"{np.mean(column):.3f} ± {np.std(column, ddof=1):.2g}" for column in values]
