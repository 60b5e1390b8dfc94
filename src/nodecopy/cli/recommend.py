"""``nodecopy recommend``: recommend items to users."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import typer
from numpy.typing import NDArray

from nodecopy import datasets
from nodecopy._core.formats import TABLES
from nodecopy._core.optional_imports import import_optional
from nodecopy._core.random import child, seed_sequence
from nodecopy._core.validation import check_real
from nodecopy.cli import options, sources, terminal
from nodecopy.cli.options import at_least, check_applicable, check_outputs, flag, option
from nodecopy.cli.reading_options import ReadingOptions, reads
from nodecopy.cli.terminal import (
    format_value,
    print_json,
    print_note,
    print_table,
    print_written,
    show_progress,
)
from nodecopy.errors import InputError
from nodecopy.experiments.trials import TrialSeeds
from nodecopy.interactions import Interactions
from nodecopy.io.table_files import write_table

if TYPE_CHECKING:
    from nodecopy.recommend import Recommender

MAX_USERS_SHOWN, N_USERS_SHOWN = 20, 3
"""Of more users than the first number, the second number is printed."""
USERS_PER_BLOCK = 1024
"""Users for whom items are chosen between two steps of the progress bar."""
VALIDATION_SHARE = 0.1
"""Share of the interactions by which networks choose their number of epochs."""


Model = Literal["popularity", "item-knn", "ease", "copy-ease", "ials", "bprmf", "lightgcn", "mgccf"]
"""The recommenders."""


@reads("interactions")
def recommend(
    source: str | None = typer.Argument(
        None,
        help="The name of a dataset of interactions, or a file with one interaction per row: .csv .tsv .txt "
        ".parquet .npz. Not with --model-file.",
    ),
    user: list[str] | None = option("Id of a user, as in the file. May be repeated."),
    all_users: bool = flag("--all-users", "Recommend to all users of the file."),
    k: int = option("Number of items for each user.", 10, at_least(1)),
    model: Model | None = option("The recommender. (default: copy-ease)"),
    min_rating: float | None = option(
        "Lowest rating that is a positive interaction; lower ones are not fitted."
    ),
    device: options.Device = "cpu",
    seed: int = option("Seed of recommenders with random draws.", 0, at_least(0)),
    out: Path | None = option("File for the table of recommendations: .csv, .tsv, .txt or .parquet."),
    save: Path | None = option("File for the fitted recommender: .npz."),
    model_file: Path | None = option("A fitted recommender that --save wrote, in place of a source."),
    json_: options.AsJson = False,
    reading: ReadingOptions = sources.DEFAULT,
) -> None:
    """Recommend items that a user has not interacted with, best first.

    The last of repeated interactions of a user with an item counts. A rating of zero is no interaction, and
    a rating that is not a number is an error that names its line. Users without positive interactions (cold
    start) get the most popular items. A user who has interacted with nearly all items gets fewer than k.
    Items rated below --min-rating are not recommended, also by a recommender that --save wrote.
    """
    from nodecopy.recommend.best_items import list_best

    check_outputs([source, model_file], out=(out, TABLES), save=(save, (".npz",)))
    if not (user or all_users or save):
        raise InputError("the users must be given; got none. Give --user ID or --all-users.")
    if all_users:
        check_applicable("some users", "--all-users", user=user or None)
    ids = list(dict.fromkeys(user or []))  # without repetitions
    if model_file is not None:
        recommender = _load_recommender(model_file, source, model, min_rating, device, reading)
    else:
        recommender = _fit_recommender(source, model or "copy-ease", min_rating, ids, device, seed, reading)
    seen = recommender.seen_
    positions = np.arange(seen.n_users) if all_users else sources.find_ids(ids, seen.user_ids, "--user")
    users = seen.user_ids[positions]
    items, scores = _recommend(recommender, users, min(k, seen.n_items))
    rounded = np.round(scores.astype(np.float64), 7)
    if out is not None:
        write_table(out, list_best(users, items, rounded))
    if save is not None:
        recommender.save(save)
    rows = _describe_users(recommender, positions, items, rounded)
    if json_:
        run = sources.describe_run(
            source or str(model_file),
            model=type(recommender).__name__,
            seed=seed,
            users=seen.n_users,
            items=seen.n_items,
            interactions=recommender.interactions_.n_interactions,
        )
        print_json(run | {"recommendations": rows})
        return
    print_note(f"{recommender.interactions_!r}, model {type(recommender).__name__}, seed {seed}")
    _print_recommendations(rows)
    print_written(out, "table of recommendations")
    print_written(save, "recommender")


def _load_recommender(
    model_file: Path,
    source: str | None,
    model: Model | None,
    min_rating: float | None,
    device: str,
    reading: ReadingOptions,
) -> Recommender:
    from nodecopy.recommend import Recommender

    got = "--model-file, which is fitted already"
    check_applicable("a source", got, model=model, min_rating=min_rating, **reading.given())
    if source is not None:
        raise InputError(f"--model-file takes the place of a source; got {source} too. Leave one out.")
    return Recommender.load(model_file, device=device)


def _fit_recommender(
    source: str | None,
    model: Model,
    min_rating: float | None,
    ids: list[str],
    device: str,
    seed: int,
    reading: ReadingOptions,
) -> Recommender:
    """Fit a recommender to the positive interactions; it excludes all items that a user has seen."""
    if source is None:
        raise InputError("the source must be a file of interactions or a dataset; got none.")
    if model in ("bprmf", "lightgcn", "mgccf"):
        import_optional("torch", f"the model {model}")
    import nodecopy.recommend

    class_names = {name.lower(): name for name in nodecopy.recommend.__all__}
    recommender = getattr(nodecopy.recommend, class_names[model.replace("-", "")])()
    if hasattr(recommender, "device"):
        recommender.device = device
    elif device != "cpu":
        check_applicable("networks", f"--model {model}, which has a closed form", device=device)
    seen = sources.load_interactions(source, reading)
    positive = seen if min_rating is None else _select_positive(seen, min_rating)
    sources.find_ids(ids, seen.user_ids, "--user")  # an unknown user is an error before the fit
    with terminal.error_console.status(f"fitting {model}"):
        return _fit(recommender, positive, None if positive is seen else seen, seed)


def _select_positive(seen: Interactions, min_rating: float) -> Interactions:
    """Return the interactions with at least that rating, on all users and items."""
    check_real(min_rating, "--min-rating")
    if not seen.is_weighted:
        raise InputError(
            "--min-rating needs ratings; the source has none, or all of them are one. Name their column with "
            "--rating NAME."
        )
    positive = seen.at_least(rating=min_rating, per_user=0, per_item=0)
    if not positive.n_interactions:
        highest = seen.matrix.data.max()
        raise InputError(f"--min-rating must be at most {highest:g}, the highest rating; got {min_rating:g}.")
    return positive


def _fit(recommender: Any, positive: Interactions, seen: Interactions | None, seed: int) -> Recommender:
    """Fit a recommender; networks first choose the number of epochs by held-out interactions."""
    root = seed_sequence(seed)
    rng = child(root, TrialSeeds.METHOD)
    if hasattr(recommender, "n_epochs"):
        shares = (1 - VALIDATION_SHARE, VALIDATION_SHARE, 0.0)
        split = datasets.interaction_split(positive, shares, rng=child(root, TrialSeeds.SPLIT))
        if split.train.n_interactions and split.validation.n_interactions:
            trial = replace(recommender).fit(split.train, validation=split.validation, rng=rng)
            recommender = replace(recommender, n_epochs=max(1, trial.n_epochs_))
    fitted: Recommender = recommender.fit(positive, seen=seen, rng=rng)
    return fitted


def _recommend(recommender: Recommender, users: NDArray[Any], k: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the best items of each user and their scores, under a progress bar over blocks of users."""
    blocks = np.split(users, range(USERS_PER_BLOCK, len(users), USERS_PER_BLOCK))
    parts = [recommender.recommend(part, k) for part in show_progress(blocks, len(blocks), "recommending")]
    items, scores = zip(*parts, strict=True)
    return np.concatenate(items), np.concatenate(scores)


def _describe_users(
    recommender: Recommender, positions: NDArray[np.int64], items: NDArray[Any], scores: NDArray[Any]
) -> list[dict[str, Any]]:
    """Return one dictionary for each user, for JSON; seen items, which fill short rows, are left out."""
    train, model = recommender.interactions_, type(recommender).__name__
    columns = train.user_ids[positions], train.rows.degrees[positions], items, scores
    return [
        {
            "user": user,
            "history": size,
            "by": model if size else "Popularity",
            "items": [
                {"item": item, "score": score}
                for item, score in zip(best, best_scores, strict=True)
                if np.isfinite(score)
            ],
        }
        for user, size, best, best_scores in zip(*(part.tolist() for part in columns), strict=True)
    ]


def _print_recommendations(rows: list[dict[str, Any]]) -> None:
    """Print a table for each user; of many users for the first few."""
    shown = rows if len(rows) <= MAX_USERS_SHOWN else rows[:N_USERS_SHOWN]
    for row in shown:
        size = row["history"]
        history = f"{format_value(size)} item{'s' * (size != 1)} in the history"
        note = history if size else "no history: the most popular items"
        print_note(f"{row['user']}, {note}" + ("" if row["items"] else "; no unseen item is left"))
        user = [str(row["user"])] if len(shown) > 1 else []  # notes may be printed elsewhere
        cells = [
            [*user, str(rank), str(entry["item"]), entry["score"]]
            for rank, entry in enumerate(row["items"], 1)
        ]
        if cells:
            print_table([*(["user"] if user else []), "rank", "item", "score"], cells)
    if len(shown) < len(rows):
        n_others = format_value(len(rows) - len(shown))
        print_note(f"and {n_others} more users: give --out FILE for a table of all")
