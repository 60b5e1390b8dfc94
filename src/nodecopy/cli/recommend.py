"""``nodecopy recommend``: what users may like, from who took what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

import nodecopy
from nodecopy import datasets
from nodecopy._core.formats import TABLES
from nodecopy._core.optional_imports import import_optional
from nodecopy._core.random import child, seed_sequence
from nodecopy._core.validation import check_integer, check_real
from nodecopy.cli import options, sources
from nodecopy.cli.output_files import check_outputs
from nodecopy.cli.terminal import (
    error_console,
    format_value,
    print_json,
    print_note,
    print_table,
    show_progress,
)
from nodecopy.errors import InputError
from nodecopy.interactions import Interactions
from nodecopy.io.table_files import write_table
from nodecopy.metrics.ranking import top_items

if TYPE_CHECKING:
    from nodecopy.recommend import Recommender

N_SHOWN, MANY = 3, 20
"""Of many users only a few are shown."""
HELD_OUT = 0.1
AT_ONCE = 2**25
"""Scores held at once, 128 MiB, and as much again while the best are found."""


class Model(StrEnum):
    """The recommenders."""

    POPULARITY = "popularity"
    ITEM_KNN = "item-knn"
    EASE = "ease"
    COPY_EASE = "copy-ease"
    IALS = "ials"
    BPRMF = "bprmf"
    LIGHTGCN = "lightgcn"
    MGCCF = "mgccf"


CLASS_OF = {
    Model.POPULARITY: "Popularity",
    Model.ITEM_KNN: "ItemKNN",
    Model.EASE: "EASE",
    Model.COPY_EASE: "CopyEASE",
    Model.IALS: "IALS",
    Model.BPRMF: "BPRMF",
    Model.LIGHTGCN: "LightGCN",
    Model.MGCCF: "MGCCF",
}


def recommend(
    source: Annotated[
        str | None,
        typer.Argument(
            help="A dataset of interactions, or a file with a row for each: .csv .tsv .txt .parquet .npz. "
            "Left out with --model-file."
        ),
    ] = None,
    user: Annotated[
        list[str] | None, typer.Option(help="Id of a user, as the file has it; may be given many times.")
    ] = None,
    all_users: Annotated[bool, typer.Option("--all-users", help="All users of the file.")] = False,
    k: Annotated[int, typer.Option(help="Items for each user, best first.")] = 10,
    model: Annotated[Model | None, typer.Option(help="The recommender. (default: copy-ease)")] = None,
    min_rating: Annotated[
        float | None, typer.Option(help="Ratings that mean liking; what was rated lower is not learnt from.")
    ] = None,
    device: Annotated[str, typer.Option(help="Networks: cpu or cuda.")] = "cpu",
    seed: Annotated[int, typer.Option(help="Seed of recommenders that draw something.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Table of recommendations: .csv, .tsv, .txt or .parquet.")
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Keep the fitted recommender as .npz.")] = None,
    model_file: Annotated[
        Path | None, typer.Option(help="A recommender that --save kept; nothing is learnt.")
    ] = None,
    json_: options.AsJson = False,
) -> None:
    """Recommend items that a user has not interacted with, best first.

    Where a user met an item more than once the latest row counts; a rating that is no number is an error
    that names its line, and a rating of zero is no interaction. Users of whom nothing is left to learn from
    get the most popular items. Who has met nearly everything gets fewer than k. What was rated below
    --min-rating is met all the same, and a recommender that --save kept knows it.
    """
    check_outputs([source, model_file], out=(out, TABLES), save=(save, (".npz",)))
    check_integer(k, "--k", low=1)
    if not (user or all_users or save):
        raise InputError("name users with --user, or give --all-users.")
    if user and all_users:
        raise InputError("--user and --all-users exclude each other.")
    named = list(dict.fromkeys(user or []))  # each once
    fitted = _learnt(source, model, model_file, min_rating, named, device, seed)
    met = fitted.seen_
    numbers = np.arange(met.n_users) if all_users else sources.find_ids(named, met.user_ids, "--user")
    columns = _recommended(fitted, numbers, k)
    found: dict[str, Any] = {
        "nodecopy": nodecopy.__version__,
        "source": Path(source or str(model_file)).name,
        "model": type(fitted).__name__,
        "seed": seed,
        "users": met.n_users,
        "items": met.n_items,
        "interactions": fitted.interactions_.n_interactions,
    }
    if out is not None:
        write_table(out, columns)
    if save is not None:
        fitted.save(save)
    if json_:
        print_json(found | {"recommendations": _as_lists(columns, fitted, numbers)})
        return
    print_note(f"{fitted.interactions_!r}, model {found['model']}, seed {seed}")
    _tell(columns, fitted, numbers)
    if out is not None:
        print_note(f"written to {out}")
    if save is not None:
        print_note(f"recommender kept in {save}")


def _learnt(
    source: str | None,
    model: Model | None,
    model_file: Path | None,
    min_rating: float | None,
    named: list[str],
    device: str,
    seed: int,
) -> Recommender:
    """A fitted recommender, which knows all that users have met, liked or not."""
    import nodecopy.recommend

    if model_file is not None:
        if source is not None or model is not None or min_rating is not None:
            raise InputError("--model-file goes without a source, --model and --min-rating: it has learnt.")
        return nodecopy.recommend.Recommender.load(model_file, device=device)
    if source is None:
        raise InputError("give a file of interactions, the name of a dataset, or --model-file.")
    chosen = model or Model.COPY_EASE
    if chosen in (Model.BPRMF, Model.LIGHTGCN, Model.MGCCF):
        import_optional("torch", f"the model {chosen.value}")
    recommender = getattr(nodecopy.recommend, CLASS_OF[chosen])()
    if hasattr(recommender, "device"):
        recommender.device = device
    elif device != "cpu":
        raise InputError(f"--device goes with networks; {chosen.value} is a closed form.")
    met = sources.load_interactions(source)
    liked = met if min_rating is None else _liked(met, min_rating)
    sources.find_ids(named, met.user_ids, "--user")  # who is not there is told before anything is learnt
    with error_console.status(f"{chosen.value} learns"):
        return _fitted(recommender, liked, None if liked is met else met, seed)


def _liked(met: Interactions, min_rating: float) -> Interactions:
    """Interactions of that rating or more; all users and items stay."""
    check_real(min_rating, "--min-rating")
    if not met.is_weighted:
        raise InputError("--min-rating needs ratings; the source has none, or all of them are one.")
    liked = met.at_least(rating=min_rating, per_user=0, per_item=0)
    if not liked.n_interactions:
        highest = met.matrix.data.max()
        raise InputError(f"--min-rating must be at most {highest:g}, the highest rating; got {min_rating:g}.")
    return liked


def _fitted(recommender: Any, liked: Interactions, met: Interactions | None, seed: int) -> Recommender:
    """Closed forms are fitted at once; networks learn from nine tenths when to stop, then from all."""
    root = seed_sequence(seed)
    if hasattr(recommender, "n_epochs"):
        split = datasets.interaction_split(liked, (1 - HELD_OUT, HELD_OUT, 0.0), rng=child(root, 0))
        if split.train.n_interactions and split.validation.n_interactions:
            trial = replace(recommender).fit(split.train, validation=split.validation, rng=child(root, 1))
            recommender = replace(recommender, n_epochs=max(1, trial.n_epochs_))
    fitted: Recommender = recommender.fit(liked, seen=met, rng=child(root, 1))
    return fitted


def _recommended(fitted: Recommender, numbers: NDArray[np.int64], k: int) -> dict[str, NDArray[Any]]:
    """The table: for every user the best items that were not met, with rank and score."""
    met = fitted.seen_
    parts = list(_parts(numbers, max(1, AT_ONCE // met.n_items)))
    columns: dict[str, list[Any]] = {"user": [], "rank": [], "item": [], "score": []}
    for some in show_progress(parts, len(parts), "recommending"):
        scores = fitted.score(met.user_ids[some])
        seen = met.matrix[some]
        scores[np.repeat(np.arange(len(some)), np.diff(seen.indptr)), seen.indices] = -np.inf
        items = top_items(scores, min(k, met.n_items))
        best = np.take_along_axis(scores, items, axis=1)
        who, rank = np.nonzero(np.isfinite(best))
        columns["user"].append(met.user_ids[some[who]])
        columns["rank"].append(rank + 1)
        columns["item"].append(met.item_ids[items[who, rank]])
        columns["score"].append(np.round(best[who, rank].astype(np.float64), 7))
    nothing = {"user": met.user_ids[:0], "rank": np.zeros(0, np.int64), "item": met.item_ids[:0]}
    return {name: np.concatenate([nothing.get(name, np.zeros(0)), *some]) for name, some in columns.items()}


def _parts(numbers: NDArray[np.int64], size: int) -> Iterator[NDArray[np.int64]]:
    return (numbers[start : start + size] for start in range(0, len(numbers), size))


def _as_lists(
    columns: dict[str, NDArray[Any]], fitted: Recommender, numbers: NDArray[np.int64]
) -> list[dict[str, Any]]:
    """A user a dictionary, ready for JSON."""
    known = fitted.interactions_
    lists: dict[Any, list[dict[str, Any]]] = {name: [] for name in known.user_ids[numbers].tolist()}
    rows = zip(*(columns[name].tolist() for name in ("user", "item", "score")), strict=True)
    for name, item, score in rows:
        lists[name].append({"item": item, "score": score})
    sizes = known.rows.degrees[numbers].tolist()
    return [
        {"user": name, "history": size, "by": type(fitted).__name__ if size else "Popularity", "items": items}
        for (name, items), size in zip(lists.items(), sizes, strict=True)
    ]


def _tell(columns: dict[str, NDArray[Any]], fitted: Recommender, numbers: NDArray[np.int64]) -> None:
    """Every user that was named; of all users the first few."""
    lists = _as_lists(columns, fitted, numbers)
    told = lists if len(lists) <= MANY else lists[:N_SHOWN]
    for one in told:
        size = one["history"]
        learnt = (
            f"{format_value(size)} item{'s' * (size != 1)} learnt from"
            if size
            else "no history: what is popular"
        )
        print_note(f"{one['user']}, {learnt}" + ("" if one["items"] else "; has met every item"))
        who = [str(one["user"])] if len(told) > 1 else []  # remarks may go elsewhere
        rows = [
            [*who, str(rank), str(row["item"]), format_value(row["score"])]
            for rank, row in enumerate(one["items"], 1)
        ]
        if rows:
            print_table([*(["user"] if who else []), "rank", "item", "score"], rows)
    if len(told) < len(lists):
        print_note(
            f"and {format_value(len(lists) - len(told))} users more: give --out FILE for a table of all"
        )
