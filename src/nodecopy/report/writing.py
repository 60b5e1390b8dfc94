"""The page of a graph or of interactions: what is computed for it, and in which order."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.random import SeedSequence

from nodecopy._core.arrays import Array, Ints
from nodecopy._core.checks import check_choice, check_integer, check_path, check_sequence, check_text
from nodecopy._core.files import PathLike
from nodecopy._core.imports import import_optional
from nodecopy._core.messages import log_decision, mute_data_warnings
from nodecopy._core.random import child, generator, seed_sequence
from nodecopy.copying import NodeCopying, choose_donors
from nodecopy.copying.donors import RULES, Jaccard
from nodecopy.datasets import Split, interaction_split
from nodecopy.datasets.splits import cross_validation_folds, hold_out
from nodecopy.errors import InputError, MissingExtraError
from nodecopy.graph import UNLABELLED, Graph, class_codes
from nodecopy.inference import BootstrapResult
from nodecopy.interactions import Interactions
from nodecopy.io import GraphLike, convert_data
from nodecopy.metrics import compare
from nodecopy.metrics.ranking import Evaluation as ListEvaluation
from nodecopy.metrics.structure import Comparison
from nodecopy.report import page as pages
from nodecopy.report import sections
from nodecopy.report.page import Section

if TYPE_CHECKING:
    from nodecopy.classify import Prediction

N_FOLDS = 5
TEST_SHARE = 0.2  # of the labels, held out to evaluate the predictions
N_PLOTTED = 3  # samples that are plotted
MAX_DONORS = 50
N_SAMPLES = 40, 20  # for the statistics of small and large graphs; 39 allow a p-value of 0.05
N_BOOTSTRAP, MAX_BOOTSTRAP_EDGES = 100, 20_000
MAX_USERS = 100  # users with recommendations on the page
GRAPH = "The graph"
METHOD_SEED, USERS_SEED, SPLIT_SEED = 1, 2, 3  # children of the seed sequence of a report
MAX_LINK_EDGES = 100_000  # of graphs whose edges are judged
PARTS = ("links", "classification", "attack")  # that take time
Show = Callable[[str], AbstractContextManager[object]]


def write_report(
    data: GraphLike,
    path: PathLike,
    *,
    title: str = "Node copying",
    without: Collection[str] = (),
    n_samples: int | None = None,
    colours: Sequence[str] = (),
    seed: int = 0,
) -> None:
    """Write an HTML page with a graph, its samples and what can be learnt from them, or with recommendations.

    With labels and features, it has predictions, for which one label in five is held out.

    Parameters
    ----------
    data
        A graph or interactions, or what :func:`.as_graph` converts.
    path
        File for the page.
    title
        Its title.
    without
        Parts to leave out: ``"links"``, ``"classification"`` or ``"attack"``.
    n_samples
        Number of samples behind the statistics; by default 40, or 20 for more than 20,000 edges.
    colours
        Colours of the first classes, such as ``"#d08770"``; by default those of the page.
    seed
        Seed of all random draws.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from nodecopy import datasets
    >>> from nodecopy.report import write_report
    >>> write_report(datasets.load("karate"), Path(mkdtemp()) / "club.html", without=["links"], n_samples=5)
    """
    read = convert_data(data, "data")
    check_path(path, "path")
    check_text(title, "title")
    style = pages.colour_style(colours)
    for part in check_sequence(without, "without", "a list of parts"):
        check_choice(part, "without", PARTS)
    check_integer(seed, "seed", low=0, high=math.inf)
    if isinstance(read, Interactions):
        page = [recommendations(read, seed)]
    else:
        if n_samples is not None:
            check_integer(n_samples, "n_samples", low=1)
        page = graph_sections(read, seed, without=without, n_samples=n_samples)
    pages.write_page(path, title, page, origin=f"{read!r}; seed {seed}", style=style)


def graph_sections(
    graph: Graph,
    seed: int,
    *,
    split: tuple[Split[Ints], SeedSequence] | None = None,
    n_samples: int | None = None,
    without: Collection[str] = (),
    scalings: tuple[str, str] = ("auto", "auto"),
    show: Show = nullcontext,
) -> list[Section]:
    """Return the sections of a graph; ``show`` shows what is being done."""
    trained: list[Section] = []
    result = None
    if (reason := _reason_against_training(graph)) is not None:
        log_decision(f"no classification: {reason}")
    else:
        parts, root = split or split_for_report(graph, seed_sequence(seed))
        if "classification" not in without:
            with show("training networks"):
                result = classify_for_report(graph, parts, child(root, METHOD_SEED), scalings)
            trained.append(_classification_section(graph, result))
        if "attack" not in without and not graph.directed and not graph.is_weighted:
            with show("attacking one node"):
                trained += _attack_sections(graph, parts, seed)
    if "links" not in without and graph.n_edges <= MAX_LINK_EDGES:
        with show("judging edges"):
            trained[:0] = links_sections(graph, seed)
    with show("sampling"):
        return [*_sample_sections(graph, result, n_samples, seed), *trained]


def split_for_report(graph: Graph, root: SeedSequence) -> tuple[Split[Ints], SeedSequence]:
    """Return training and test nodes."""
    codes: Any = graph.label_codes
    test = hold_out(codes, TEST_SHARE, generator(child(root, 0)))
    train = np.setdiff1d(np.flatnonzero(codes != UNLABELLED), test)
    return Split(train, np.zeros(0, np.int64), test), root


def links_sections(graph: Graph, seed: int, title: str = GRAPH) -> list[Section]:
    """Return the section of doubtful and missing edges, if edges of the graph can be judged."""
    from nodecopy.links import LinkPredictor

    text = (
        "Probabilities are those of an edge between nodes with such signals, if it were not known whether "
        "there is one. Edges with the lowest are doubtful, absent ones with the highest are missing."
    )
    try:
        return [sections.links_section(LinkPredictor().fit(graph, rng=seed), graph=title, text=text)]
    except InputError as error:
        log_decision(f"no doubtful or missing edges: {error}")
        return []


def _sample_sections(
    graph: Graph, result: Classification | None, n_samples: int | None, seed: int
) -> list[Section]:
    model, reason = _fit_model(graph, result)
    n_samples = n_samples or N_SAMPLES[graph.n_edges > MAX_BOOTSTRAP_EDGES]
    samples = pages.copied_samples(model, min(N_PLOTTED, n_samples), seed)
    plotted = {f"sample {number}": sample for number, sample in enumerate(samples, 1)}
    sampled = (graph.with_rows(sample.rows) for sample in model.sample_many(n_samples, rng=seed))
    comparison = compare(graph, sampled)
    text = (
        f"The graph has {graph.n_nodes:,} nodes and {graph.n_edges:,} edges. In a sample, each node gets the "
        f"neighbours of a donor, drawn by the {reason}"
    )
    if not graph.directed:
        text += " An edge then exists if a random endpoint has it, so that samples have about as many edges."
    colours = {}
    if result is not None:
        colours["predicted"] = result.classes[result.prediction.probabilities.argmax(axis=1)]
        colours["uncertainty"] = result.prediction.uncertainty().total
    return [
        pages.graphs_section(GRAPH, graph, plotted, text=text, rng=seed, **colours),
        pages.statistics_section(
            {"samples": comparison},
            estimates=bootstrap_statistics(graph, comparison, seed),
            text=f"Statistics of the observed graph and of {n_samples} samples.",
        ),
    ]


def _fit_model(graph: Graph, result: Classification | None) -> tuple[NodeCopying[Graph], str]:
    if result is not None:
        codes = result.prediction.probabilities.argmax(axis=1)
        codes[result.train] = result.codes[result.train]
        graph = graph.replace(labels=codes)
    chosen, because = choose_donors(graph)
    if result is not None:
        because = "the classifier predicts the labels of all nodes but the training nodes"
    rule = next(name for name, kind in RULES.items() if isinstance(chosen, kind))
    reason = f"donor rule {rule}, since {because}."
    log_decision(reason)
    if isinstance(chosen, Jaccard):
        chosen.set_params(max_donors=MAX_DONORS)
    return NodeCopying(chosen).fit(graph), reason


def bootstrap_statistics(graph: Graph, comparison: Comparison, seed: int) -> BootstrapResult | None:
    """Return intervals, ``None`` if the graph has too many or too few edges."""
    from nodecopy.inference import bootstrap, statistic_names

    if graph.n_edges > MAX_BOOTSTRAP_EDGES:
        return None
    candidates = set(statistic_names()) - {"n_nodes", "path_length"}
    names = [row.name for row in comparison if row.name in candidates and math.isfinite(row.observed)]
    try:
        with mute_data_warnings():  # the page leaves out what they are about
            return bootstrap(graph, names, n=N_BOOTSTRAP, method="normal", rng=seed)
    except InputError:
        return None


class Classification(NamedTuple):
    """Predictions for all nodes, and their evaluation on held-out labels."""

    classes: Array
    codes: Ints
    prediction: Prediction
    train: Ints
    tested: Ints
    nodes: Ints
    evaluations: dict[str, sections.HeldOutPredictions] | None
    n_folds: int
    n_pseudo_labels: int


def classify_for_report(
    graph: Graph, split: Split[Ints], rng: SeedSequence, scalings: tuple[str, str]
) -> Classification:
    """Train and evaluate the recommended classifier and a plain GCN."""
    from nodecopy.classify import GCN, Prediction, SelfTraining, Trial

    codes = class_codes(cast(Any, graph.label_codes))[1]
    tests, train = [split.test], split.train
    if len(split.test) < sections.MIN_CURVE_NODES:
        tests = cross_validation_folds(codes, N_FOLDS, generator(child(rng, 0)))
        train = np.flatnonzero(codes != UNLABELLED)
        reason = f"only {len(split.test)} of {len(train)} labels would be held out"
        log_decision(f"cross-validation with {len(tests)} folds, since {reason}.")
    scaling: Any = dict(zip(("features", "weights"), scalings, strict=True))
    main = SelfTraining(**scaling).fit(graph, train, validation=split.validation, rng=rng)
    gcn = GCN(**scaling)
    trials = [Trial(graph, np.setdiff1d(train, test), split.validation, rng) for test in tests]
    others = [] if not tests else main.fit_trials(trials) if len(tests) > 1 else [main.prediction_]
    p, entropy = main.prediction_.probabilities.copy(), main.prediction_.mean_entropy.copy()
    for test, prediction in zip(tests, others, strict=True):
        p[test], entropy[test] = prediction.probabilities[test], prediction.mean_entropy[test]
    tested = np.concatenate([np.zeros(0, np.int64), *tests])
    evaluations = None
    if len(tested):
        predictions = {"GCN": gcn.fit_trials(trials), "self-training": others}
        evaluations = {name: sections.join_trials(part, tests, codes) for name, part in predictions.items()}
    return Classification(
        main.classes_,
        codes,
        Prediction(p, entropy),
        train,
        tested,
        np.union1d(tested, np.flatnonzero(codes == UNLABELLED)),
        evaluations,
        len(tests),
        sum(main.prediction_.details["pseudo_labels"]),
    )


def _reason_against_training(graph: Graph) -> str | None:
    if graph.label_codes is None or graph.features is None:
        return "it needs labels and features; give --labels FILE and --features FILE."
    if len(np.unique(graph.label_codes[graph.label_codes != UNLABELLED])) < 2:
        return "it needs labels of at least two classes."
    try:
        import_optional("torch", "classification")
    except MissingExtraError as error:
        return str(error)
    return None


def _classification_section(graph: Graph, result: Classification) -> Section:
    n_unlabelled = len(result.nodes) - len(result.tested)
    way = f"on {len(result.tested)} nodes with held-out labels"
    if result.n_folds > 1:
        way = f"by {result.n_folds}-fold cross-validation over the labelled nodes, since they are few"
    return sections.classification_section(
        graph.node_ids,
        result.classes,
        result.prediction,
        result.nodes,
        truth=result.codes,
        evaluations=result.evaluations,
        graph=GRAPH,
        text=f"Self-training learned from {len(result.train)} labelled nodes "
        f"and from {result.n_pseudo_labels} pseudo-labels, its own confident predictions. It is evaluated "
        f"{way}; {n_unlabelled} nodes have no label. A plain GCN is trained on the same nodes.",
    )


def _attack_sections(graph: Graph, split: Split[Ints], seed: int) -> list[Section]:
    candidates = split.test if len(split.test) else split.train
    try:
        attacked = sections.attack_and_correct(graph, split.train, candidates, rng=seed)
        return [sections.attack_section(attacked, graph.node_ids)]
    except InputError as error:
        log_decision(f"no attack: {error}")
        return []


def recommendations(log: Interactions, seed: int) -> Section:
    """Return the section of recommendations by CopyEASE."""
    from nodecopy.recommend import CopyEASE
    from nodecopy.recommend.ease import default_donors, donor_matrix

    donors = donor_matrix(default_donors(), log)
    evaluations = _evaluate_recommenders(log, seed)
    return interactions_section(log, CopyEASE().fit(log), donors, seed=seed, evaluations=evaluations)


def _evaluate_recommenders(log: Interactions, seed: int) -> dict[str, list[ListEvaluation]]:
    from nodecopy.recommend import CopyEASE, Popularity

    if not sections.EVALUATED_LENGTH < log.n_items <= sections.MAX_ITEMS:
        return {}
    rng = generator(child(seed_sequence(seed), SPLIT_SEED))
    train, _, test = interaction_split(log, (0.8, 0.0, 0.2), rng=rng)
    if not test.n_interactions or not train.n_interactions:
        return {}
    metrics = ("recall@10", "ndcg@10")
    models = (Popularity(), CopyEASE())
    return {type(model).__name__: [model.fit(train).evaluate(test, metrics=metrics)] for model in models}


def interactions_section(
    log: Interactions,
    recommender: Any,
    donors: Any,
    *,
    seed: int,
    first: int | None = None,
    evaluations: Mapping[str, Sequence[ListEvaluation]] | None = None,
) -> Section:
    """Return the section of recommendations, optionally with one user first."""
    users = np.arange(log.n_users)
    if log.n_users > MAX_USERS:
        rng = generator(child(seed_sequence(seed), USERS_SEED))
        users = np.sort(rng.choice(users, MAX_USERS, replace=False))
    if first is not None:
        users = np.concatenate([[first], users[users != first][: MAX_USERS - 1]])
    text = (
        "CopyEASE is fitted to interactions of which some are copied from similar users and items. Select a "
        "recommendation to see the items of the history and the donors that add most to its score."
    )
    return sections.recommendations_section(
        log, recommender, donors, users, evaluations=evaluations, text=text
    )
