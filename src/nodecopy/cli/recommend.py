"""``nodecopy recommend``: recommend items to users."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from nodecopy import datasets
from nodecopy._core.arrays import Array, Ints
from nodecopy._core.checks import check_real
from nodecopy._core.files import TABLES
from nodecopy._core.imports import from_name, import_optional
from nodecopy._core.messages import escape_controls, log_decision
from nodecopy._core.random import child, seed_sequence
from nodecopy.cli import files, output
from nodecopy.cli import options as opt
from nodecopy.cli.output import print_json, print_note, print_table, show_progress, show_training
from nodecopy.errors import InputError
from nodecopy.experiments.spec import TrialSeeds
from nodecopy.interactions import Interactions
from nodecopy.io.tables import write_table
from nodecopy.recommend import RECOMMENDERS

if TYPE_CHECKING:
    from nodecopy.recommend import Recommender


VALIDATION_SHARE = 0.1  # interactions by which networks choose their number of epochs
NETWORKS = ("bprmf", "lightgcn", "mgccf")
MODELS_OF = {"tune": ("ease", "copy-ease", "ials"), "explain": ("ease", "copy-ease", "item-knn")}


def make_recommender(model: str, device: str) -> Any:
    """Return a recommender that is not fitted."""
    if model in NETWORKS:
        import_optional("torch", f"the model {model}")
    recommender = from_name(model, RECOMMENDERS, "--model", device)
    if device != "cpu" and not hasattr(recommender, "device"):
        opt.check_applicable("models that use torch", f"--model {model}, which does not", device=device)
    return recommender


def fit_recommender(
    recommender: Any,
    positive: Interactions,
    seed: int,
    *,
    seen: Interactions | None = None,
    validation: Interactions | None = None,
) -> Recommender:
    """Fit a recommender; networks choose the number of epochs by held-out interactions."""
    root = seed_sequence(seed)
    rng = child(root, TrialSeeds.METHOD)
    if hasattr(recommender, "n_epochs"):
        if validation is None:
            shares = (1 - VALIDATION_SHARE, VALIDATION_SHARE, 0.0)
            split = datasets.interaction_split(positive, shares, rng=child(root, TrialSeeds.VALIDATION))
            rest, validation = split.train, split.validation
        else:
            rest = positive.difference(validation)
        if rest.n_interactions and validation.n_interactions:
            trial = replace(recommender).fit(rest, validation=validation, rng=rng)
            recommender = replace(recommender, n_epochs=max(1, trial.n_epochs_))
    fitted: Recommender = recommender.fit(positive, seen=seen, rng=rng)
    return fitted


def select_positive(seen: Interactions, min_rating: float | None) -> Interactions:
    """Return the interactions with at least that rating, or all without one."""
    if min_rating is None:
        if seen.is_weighted:
            low, high = seen.matrix.data.min(), seen.matrix.data.max()
            log_decision(f"all ratings, {low:g} to {high:g}, count as positive interactions.", "min_rating")
        return seen
    check_real(min_rating, "--min-rating")
    if not seen.is_weighted:
        raise InputError("--min-rating needs ratings; the source has none. Name their column by --rating.")
    positive = seen.at_least(rating=min_rating, per_user=0, per_item=0)
    if not positive.n_interactions:
        highest = seen.matrix.data.max()
        raise InputError(f"--min-rating must be at most {highest:g}, the highest rating; got {min_rating:g}.")
    return positive


MAX_USERS_SHOWN, N_USERS_SHOWN = 20, 3  # all users are printed up to 20, otherwise 3
USERS_PER_BLOCK = 1024  # a step of the progress bar


def recommend(
    source: opt.LogSource | None = None,
    user: list[str] | None = opt.reads("Id of a user, as in the file. May be repeated."),
    users: str | None = opt.more("Ids of users, separated by commas, or a file with one id per line."),
    all_users: bool = opt.reads("Recommend to all users of the file.", False),
    k: opt.Count = opt.common("Number of items for each user.", 10),
    items: str | None = opt.more("Ids of items that may be recommended, as for --users. (default: all)"),
    exclude: str | None = opt.more("Ids of items that are not recommended, given as for --users."),
    explain: opt.Natural = opt.common("Items of the history and donors to name with each recommendation.", 0),
    model: Annotated[str | None, RECOMMENDERS] = opt.common("The recommender. (default: copy-ease)"),
    min_rating: float | None = opt.more("Lowest rating that is a positive interaction and fitted."),
    tune: bool = opt.more("First tune EASE, CopyEASE or IALS on held-out interactions.", False),
    device: opt.Device = "cpu",
    seed: opt.Seed = 0,
    out: Path | None = opt.writes("File for the recommendations: .csv, .tsv, .txt or .parquet."),
    save: Path | None = opt.writes("File for the fitted recommender: .npz."),
    model_file: Path | None = opt.more("A fitted recommender that --save wrote, in place of a source."),
    spreadsheet: opt.Spreadsheet = False,
    json_: opt.AsJson = False,
    log: opt.InteractionOptions = opt.InteractionOptions(),
) -> None:
    """Recommend items that a user has not interacted with, best first.

    The last of repeated interactions of a user with an item counts. A rating of zero is no interaction.
    Users without positive interactions (cold start) get the most popular items. A user who has interacted
    with nearly all items gets fewer than k. Items rated below --min-rating are not recommended, also by a
    recommender that --save wrote.

    Examples:
        nodecopy recommend library --user "reader 001" --k 5 --explain 2
        nodecopy recommend ratings.csv --all-users --min-rating 4 --out recommendations.csv
    """
    from nodecopy.recommend import Recommender
    from nodecopy.recommend.base import list_best, select_candidates

    opt.check_outputs([source, model_file], out=(out, TABLES), save=(save, (".npz",)))
    if not (user or users or all_users or save):
        raise InputError("the users must be given; got none. Give --user ID, --users FILE or --all-users.")
    if all_users:
        opt.check_applicable("some users", "--all-users", user=user or None, users=users)

    def find_users_and_items(log: Interactions) -> tuple[Ints, Array | None]:
        """Return the positions of the users, each once, and the ids of the items, ``None`` for all."""
        positions = np.arange(log.n_users)
        if not all_users:
            positions = files.find_ids(user or [], log.user_ids, "--user")
            if users is not None:
                others = files.parse_ids(users, log.user_ids, "--users")
                positions = np.concatenate([positions, others])
            positions = np.array(list(dict.fromkeys(positions.tolist())), np.int64)
        ids, names = log.item_ids, ("--items", "--exclude")
        included, excluded = (
            None if text is None else files.parse_ids(text, ids, name)
            for name, text in zip(names, (items, exclude), strict=True)
        )
        columns = select_candidates(included, excluded, len(ids), names)
        return positions, None if columns is None else np.asarray(ids[columns])

    chosen = model or "copy-ease"
    opt.select_given("model", chosen, MODELS_OF, {"tune": tune or None, "explain": explain or None})
    if model_file is not None:
        of_source = {"model": model, "min_rating": min_rating, "tune": tune} | log.given()
        opt.check_applicable("a source", "--model-file, which is fitted already", **of_source)
        if source is not None:
            raise InputError(f"--model-file takes the place of a source; got {source} too. Leave one out.")
        recommender = Recommender.load(model_file, device=device)
    else:
        if source is None:
            raise InputError("the source must be a file of interactions or a dataset; got none.")
        recommender = make_recommender(chosen, device)
        seen = files.load_interactions(source, log)
        positive = select_positive(seen, min_rating)
        find_users_and_items(seen)  # an unknown id is an error before the fit
        if tune:
            with show_training(f"tuning {chosen}"):
                recommender.tune(positive, rng=child(seed_sequence(seed), TrialSeeds.VALIDATION))
        with show_training(f"fitting {chosen}"):
            others = None if positive is seen else seen  # items that were rated low are excluded, too
            recommender = fit_recommender(recommender, positive, seed, seen=others)
    seen = recommender.seen_
    positions, candidates = find_users_and_items(seen)
    user_ids = seen.user_ids[positions]
    k = min(k, seen.n_items if candidates is None else len(candidates))
    blocks = np.split(user_ids, range(USERS_PER_BLOCK, len(user_ids), USERS_PER_BLOCK))
    parts = [
        recommender.recommend(block, k, items=candidates)
        for block in show_progress(blocks, len(blocks), "recommending")
    ]
    best, scores = map(np.concatenate, zip(*parts, strict=True))
    rounded = np.round(scores.astype(np.float64), 7)
    if explain and out is not None and not json_:
        print_note("--explain: the table of --out has no explanations; --json prints those of all users")
    if out is not None:
        write_table(out, list_best(user_ids, best, rounded), spreadsheet=spreadsheet)
    if save is not None:
        recommender.save(save)
    rows = _describe_users(recommender, positions, best, rounded)
    n_printed = len(rows) if len(rows) <= MAX_USERS_SHOWN else N_USERS_SHOWN
    if explain:
        _explain(recommender, rows if json_ else rows[:n_printed], explain)
    if json_:
        run = files.describe_run(
            source or str(model_file),
            model=type(recommender).__name__,
            seed=seed,
            users=seen.n_users,
            items=seen.n_items,
            interactions=recommender.interactions_.n_interactions,
        )
        tuning = {"tuning": recommender.tuning_} if tune else {}
        print_json(run | tuning | {"recommendations": rows})
        return
    print_note(f"{recommender.interactions_!r}, model {type(recommender).__name__}, seed {seed}")
    _print_recommendations(rows[:n_printed])
    if n_printed < len(rows):
        print_note(f"and {len(rows) - n_printed:,} more users: give --out FILE for a table of all")
    output.print_written(out, "table of recommendations")
    output.print_written(save, "recommender")


def _describe_users(
    recommender: Recommender, positions: Ints, items: Array, scores: Array
) -> list[dict[str, Any]]:
    train, model = recommender.interactions_, type(recommender).__name__
    columns = train.user_ids[positions], train.rows.degrees[positions], items, scores
    rows = []
    for user, size, *best in zip(*(part.tolist() for part in columns), strict=True):
        pairs = [
            {"item": item, "score": score} for item, score in zip(*best, strict=True) if np.isfinite(score)
        ]
        rows.append({"user": user, "history": size, "by": model if size else "Popularity", "items": pairs})
    return rows


def _explain(recommender: Recommender, rows: list[dict[str, Any]], k: int) -> None:
    k = min(k, max(recommender.seen_.n_users, recommender.seen_.n_items))
    for row in show_progress(rows, len(rows), "explaining"):
        for entry in row["items"] if row["history"] else ():
            reasons = recommender.explain(row["user"], entry["item"], k).to_dict()
            entry["because_of"] = reasons.pop("items")
            entry |= {name: value for name, value in reasons.items() if name != "score"}


def _print_recommendations(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        size, note = row["history"], "no history: the most popular items"
        if size:
            note = f"{size:,} item{'s' * (size != 1)} in the history"
        end = "" if row["items"] else "; no unseen item is left"
        print_note(f"{escape_controls(str(row['user']))}, {note}{end}")
        user = [str(row["user"])] if len(rows) > 1 else []  # notes may be printed elsewhere
        cells = [
            [*user, str(rank), str(entry["item"]), entry["score"], *_name_reasons(entry)]
            for rank, entry in enumerate(row["items"], 1)
        ]
        if cells:
            names = ["user", "rank", "item", "score", "because of", "donors"]
            print_table(names[not user : len(cells[0]) + (not user)], cells)


def _name_reasons(entry: dict[str, Any]) -> list[str]:
    return [
        ", ".join(str(reason[name]) for reason in entry[key] if reason["contribution"] > 0)
        for key, name in (("because_of", "item"), ("donors", "user"))
        if key in entry
    ]
