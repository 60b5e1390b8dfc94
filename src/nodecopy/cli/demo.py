"""``nodecopy demo``: the model at work on data that ship with the package."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from nodecopy import datasets
from nodecopy.cli.terminal import out, shown, table
from nodecopy.copying import NodeCopying, SameLabel
from nodecopy.errors import MissingExtraError
from nodecopy.extras import optional
from nodecopy.files import whole_file
from nodecopy.graph import Graph
from nodecopy.metrics import compare
from nodecopy.metrics.classification import scores
from nodecopy.metrics.comparison import Row

N_SPLITS, N_LABELS, N_GRAPHS = 6, 1, 5
MOST_NEIGHBOURS = 8
"""Of the attacked digit, so that a picture can show them."""
N_DEALS = 10


def demo(
    out_folder: Annotated[Path, typer.Option("--out", help="Folder for the pictures.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Seed of samples and splits.")] = 3,
) -> None:
    """Sample the karate club; recommend books; classify digits with few labels, attack one, repair it."""
    _sampling(out_folder, seed)
    out.print()
    _recommendation(seed)
    out.print()
    try:
        optional("torch", "classification")
        digits = datasets.load("digits")
    except MissingExtraError as error:
        out.print(f"No classification: {error}", markup=False)
        return
    _classification(digits, out_folder, seed)
    out.print()
    _attack(digits, out_folder, seed)


def _sampling(out_folder: Path, seed: int) -> None:
    graph = datasets.load("karate")
    out.print(f"Zachary's karate club: {graph!r}")
    out.print("Each node takes the neighbours of a random member of its faction.\n")
    models = {
        "maximum": NodeCopying(SameLabel()).fit(graph),
        "one endpoint": NodeCopying(SameLabel(), symmetrise="one-endpoint").fit(graph),
    }
    found = {name: compare(graph, model.sample_many(100, rng=seed)) for name, model in models.items()}
    rows = [
        [row.name, shown(row.observed), *(_spread(comparison[row.name]) for comparison in found.values())]
        for row in found["maximum"]
    ]
    table(["100 samples", "observed", *found], rows)

    def picture() -> Any:
        from nodecopy.report.pictures import side_by_side

        samples = {f"sample, {name}": model.sample(rng=seed) for name, model in models.items()}
        return side_by_side({"observed": graph, **samples})

    _draw(picture, out_folder / "samples.png")


def _recommendation(seed: int) -> None:
    from nodecopy.recommend import EASE, CopyEASE, Popularity
    from nodecopy.recommend.copy_ease import SHARP, donor_matrix

    library = datasets.load("library")
    out.print(f"A library of invented readers with planted tastes: {library!r}", soft_wrap=True)
    out.print("CopyEASE learns from rows in which entries were copied from similar readers.\n")
    reader = int(np.random.default_rng(seed).integers(library.n_users))
    name, history = library.user_ids[reader], library.matrix[[reader]].indices
    books, _ = CopyEASE().fit(library).recommend([name], 5)
    donors: Any = donor_matrix(SHARP, library)
    lent = donors[[reader]].toarray()[0]
    out.print(f"{name} has     {', '.join(library.item_ids[history])}", soft_wrap=True)
    out.print(f"may like           {', '.join(books[0])}", soft_wrap=True)
    for donor in np.argsort(-lent, kind="stable")[:3]:
        common = np.intersect1d(history, library.matrix[[donor]].indices)
        which = f"{len(common)} of {library.rows.degrees[donor]} books are the same"
        out.print(f"donor {library.user_ids[donor]}   with probability {lent[donor]:.2f}: {which}")
    out.print()
    found: dict[str, list[dict[str, float]]] = {"Popularity": [], "EASE": [], "CopyEASE": []}
    for number in range(N_DEALS):
        split = datasets.interaction_split(library, (0.7, 0.0, 0.3), rng=seed + number)
        for model in (Popularity(), EASE(regularisation=150.0), CopyEASE()):
            found[type(model).__name__].append(model.fit(split.train).evaluate(split.test, k=[10]))
    keys = ("recall@10", "ndcg@10", "coverage@10")
    rows = [[name, *(_mean([one[key] for one in each]) for key in keys)] for name, each in found.items()]
    table([f"3 of 10 books hidden, {N_DEALS} times", "recall@10", "NDCG@10", "books ever shown"], rows)


def _classification(graph: Graph, out_folder: Path, seed: int) -> None:
    from nodecopy.classify import GCN, BayesianGCN, Trial

    out.print(f"Handwritten digits, each joined with its nearest: {graph!r}", soft_wrap=True)
    out.print(f"One label of each class, {N_SPLITS} splits; the Bayesian GCN averages over networks")
    out.print(
        f"trained on {N_GRAPHS} graphs that copy neighbours between nodes of the same predicted label.\n"
    )
    splits = [
        datasets.label_split(graph.labels, N_LABELS, validation=0, test=1000, rng=seed + number)
        for number in range(N_SPLITS)
    ]
    trials = [Trial(graph, split.train, None, seed + number) for number, split in enumerate(splits)]
    labels: Any = graph.labels
    rows, curves = [], {}
    for name, classifier in {"GCN": GCN(), "Bayesian GCN": BayesianGCN(n_graphs=N_GRAPHS)}.items():
        found = list(zip(classifier.fit_trials(trials), (split.test for split in splits), strict=True))
        each = [scores(prediction.probabilities, labels, test) for prediction, test in found]
        rows.append([name, *(_mean([one[key] for one in each]) for key in ("accuracy", "nll", "ece"))])
        curves[name] = (
            np.concatenate([(p.probabilities.argmax(axis=1) == labels)[test] for p, test in found]),
            np.concatenate([p.uncertainty().total[test] for p, test in found]),
        )
    table(["digits", "accuracy", "negative log-likelihood", "calibration error"], rows)

    def picture() -> Any:
        from nodecopy.report.classification import accuracy_by_certainty

        return accuracy_by_certainty(curves)

    _draw(picture, out_folder / "uncertainty.png")


def _attack(graph: Graph, out_folder: Path, seed: int) -> None:
    from nodecopy.attacks import FGA
    from nodecopy.classify import GCN
    from nodecopy.defend import CopyingDefence

    split = datasets.label_split(graph.labels, 5, validation=0, test=1000, rng=seed)
    labels: Any = graph.labels
    clean = GCN().fit(graph, split.train, rng=seed).predict_proba()
    known = split.test[clean[split.test].argmax(axis=1) == labels[split.test]]
    known = known[graph.degrees[known] <= MOST_NEIGHBOURS]
    victim = int(known[np.argmax(clean[known].max(axis=1))])  # the one it is surest of
    n_flips = int(graph.degrees[victim])
    flips = FGA(n_flips).attack(graph, [victim], train=split.train, rng=seed)
    attacked = flips.apply(graph)
    defence = CopyingDefence().fit(attacked, split.train, rng=seed)
    stages = {
        "before": clean[victim],
        "attacked": defence.predict_proba()[victim],
        "with copied neighbours": defence.correct([victim])[0],
    }
    out.print(f"Digit {victim}, a {labels[victim]}: {n_flips} flipped edges (FGA) change what a GCN that is")
    out.print("trained on the attacked graph says of it; copied neighbourhoods repair that.\n")
    names = [str(name) for name in defence.classes_]
    rows = [
        [stage, names[int(p.argmax())], f"{p.max():.2f}", f"{p[labels[victim]]:.2f}"]
        for stage, p in stages.items()
    ]
    table(["stage", "predicted", "probability", "of the truth"], rows)

    def picture() -> Any:
        from nodecopy.report.defence import attacked_node

        own = set(graph.adjacency[[victim]].indices.tolist())
        now = attacked.adjacency[[victim]].indices.tolist()
        donors = defence.nearest_donors([victim])[0][:3]
        copied = np.unique(attacked.adjacency[donors].indices)
        around = [
            [(node, "own") for node in sorted(own)],
            sorted([(node, "own" if node in own else "added") for node in now], key=lambda one: one[1]),
            [(node, "copied") for node in copied[copied != victim].tolist()],
        ]
        features: Any = graph.features
        images = np.asarray(features).reshape(-1, 8, 8)
        return attacked_node(
            victim, dict(zip(stages, around, strict=True)), stages, labels, names, images=images
        )

    _draw(picture, out_folder / "attack.png")


def _draw(picture: Callable[[], Any], path: Path) -> None:
    try:
        figure = picture()
    except MissingExtraError as error:
        out.print(f"\nNo picture: {error}", markup=False)
        return
    with whole_file(path) as temporary:
        figure.savefig(temporary, dpi=150)
    out.print(f"\nPicture: {path}")


def _spread(row: Row) -> str:
    return f"{row.mean:.3g} ± {row.deviation:.2g}"


def _mean(values: list[float]) -> str:
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=1):.2g}"
