"""``nodecopy evaluate``: evaluate recommenders on held-out interactions."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from nodecopy import datasets
from nodecopy._core.files import TABLES
from nodecopy._core.messages import log_decision, warn_about_data
from nodecopy._core.random import child, seed_sequence
from nodecopy.cli import files
from nodecopy.cli import options as opt
from nodecopy.cli.output import print_json, print_note, print_table, print_written, show_training
from nodecopy.cli.recommend import NETWORKS, fit_recommender, make_recommender, select_positive
from nodecopy.errors import InputError
from nodecopy.experiments.spec import TrialSeeds
from nodecopy.interactions import Interactions
from nodecopy.io.tables import write_table
from nodecopy.metrics.ranking import PER_USER_METRICS, Evaluation, parse_metrics
from nodecopy.recommend import RECOMMENDERS

SplitName = Literal["published", "random", "time", "last-item", "user"]
DEFAULT_MODELS = ("popularity", "copy-ease")
DEFAULT_METRICS = ("recall", "ndcg", "precision", "hit_rate", "coverage", "novelty")
DEFAULT_K = 20
MAX_RANDOM_RECALL = 0.5  # lists are too long if a random order has this recall


class Parts(NamedTuple):
    """What recommenders are fitted to and evaluated on."""

    name: str
    train: Interactions
    test: Interactions
    validation: Interactions | None = None
    history: Interactions | None = None


def evaluate(
    source: opt.LogSource,
    test: Path | None = opt.reads("File of the test part; the source is then the training part."),
    validation: Path | None = opt.reads("File of the validation part, which is inside the training part."),
    split: SplitName | None = opt.reads(
        "How the source is split. (default: published if there is such a split, else random)\n\nlast-item "
        "tests the last item of each user. user tests users outside training."
    ),
    test_share: opt.Share | None = opt.more("Share of interactions or users to test. (default: 0.2)"),
    model: list[str] | None = opt.common(
        f"A recommender: {', '.join(RECOMMENDERS)}. May be repeated. (default: popularity, copy-ease)",
        metavar="NAME",
    ),
    metric: list[str] | None = opt.common(
        "A metric and the length of the list, such as recall@20. May be repeated. (default: six of them at "
        "20, or at a quarter of fewer than 60 items)\n\nMetrics: recall, ndcg, precision, hit_rate, map, "
        "mrr, popularity, diversity, coverage, novelty.",
        metavar="NAME",
    ),
    tune: bool = opt.more("First tune EASE, CopyEASE and IALS on the validation part.", False),
    min_rating: float | None = opt.more("Lowest rating that is a positive interaction; others are left out."),
    device: opt.Device = "cpu",
    seed: opt.Seed = 0,
    per_user: Path | None = opt.more("File for the metrics of every user: .csv, .tsv, .txt or .parquet."),
    spreadsheet: opt.Spreadsheet = False,
    json_: opt.AsJson = False,
    log: opt.InteractionOptions = opt.InteractionOptions(),
) -> None:
    """Evaluate recommenders on held-out interactions.

    All items are ranked except those that a user has in the training part. Test interactions with users and
    items that are not in it count as misses. Metrics are means over users with
    test items. Without a validation part, --tune and networks hold out a tenth of the training part. In the
    end every recommender is fitted to the whole training part.

    Examples:
        nodecopy evaluate library --model popularity --model copy-ease
        nodecopy evaluate ratings.csv --split time --metric recall@5 --json
    """
    opt.check_outputs([source, test, validation], **{"per-user": (per_user, TABLES)})
    recommenders = _make_recommenders(model or DEFAULT_MODELS, split, tune, device)
    if test is not None:
        given = {"split": split, "test_share": test_share, "min_rating": min_rating}
        opt.check_applicable("a source that is split here", "--test", **given)
        if files.is_dataset(source):
            raise InputError(f"--test takes a file as the source; got the dataset {source!r}.")
        read = datasets.read_split(source, test, validation, **log.parameters())
        parts = Parts("files", read.train, read.test, read.validation if validation else None)
    else:
        opt.check_applicable("--test FILE", "no test part", validation=validation)
        parts = _split(source, split, test_share, min_rating, seed, log)
    for part, interactions in (("training", parts.train), ("test", parts.test)):
        if not interactions.n_interactions:
            raise InputError(f"the {part} part must hold at least one interaction; got none.")
    names = _choose_metrics(metric, parts, per_user=per_user is not None)
    results: dict[str, Evaluation] = {}
    seconds = {}
    for name, recommender in recommenders.items():
        start = time.perf_counter()
        with show_training(f"fitting {name}"):
            if tune and recommender.coordinates():
                tuning_seed = child(seed_sequence(seed), TrialSeeds.VALIDATION)
                recommender.tune(parts.train, parts.validation, rng=tuning_seed)
            fitted = fit_recommender(recommender, parts.train, seed, validation=parts.validation)
            results[name] = fitted.evaluate(parts.test, history=parts.history, metrics=names)
        seconds[name] = round(time.perf_counter() - start, 3)
    if per_user is not None:
        first = next(iter(results.values()))
        columns: dict[str, Any] = {"model": np.repeat(list(results), len(first.users))}
        columns["user"] = np.tile(first.users, len(results))
        for name in first.per_user:
            columns[name] = np.concatenate([result.per_user[name] for result in results.values()])
        write_table(per_user, columns, spreadsheet=spreadsheet)
    counts = {"train": parts.train.n_interactions, "test": parts.test.n_interactions}
    counts["test_users"] = int((parts.test.rows.degrees > 0).sum())
    if json_:
        run = files.describe_run(source, split=parts.name, seed=seed, **counts)
        rows = []
        for name, values in results.items():
            rows.append({"model": name, **values, "seconds": seconds[name]})
            if hasattr(recommenders[name], "tuning_"):
                rows[-1]["tuning"] = recommenders[name].tuning_
        print_json(run | {"results": rows})
        return
    print_note(
        f"training part {parts.train!r}, split {parts.name}, {counts['test']:,} test interactions of "
        f"{counts['test_users']:,} users, seed {seed}"
    )
    print_table(["model", *names], [[name, *values.values()] for name, values in results.items()])
    print_written(per_user, "table of the metrics of users")


def _make_recommenders(
    names: Iterable[str], split: SplitName | None, tune: bool, device: str
) -> dict[str, Any]:
    """Return the recommenders by name; each must suit the split, and one of them ``--tune``."""
    recommenders = {name: make_recommender(name, device) for name in names}
    if split == "user" and (networks := [name for name in recommenders if name in NETWORKS]):
        raise InputError(f"--split user needs models that score users outside training; got {networks[0]}.")
    if tune and not any(recommender.coordinates() for recommender in recommenders.values()):
        raise InputError(f"--tune needs --model ease, copy-ease or ials; got {', '.join(recommenders)}.")
    return recommenders


def _choose_metrics(metric: list[str] | None, parts: Parts, *, per_user: bool) -> list[str]:
    n_items = parts.train.n_items
    k = DEFAULT_K if n_items >= 3 * DEFAULT_K else max(1, n_items // 4)
    if metric is None and k < DEFAULT_K:
        log_decision(f"metrics: at {k}, a quarter of the {n_items} items.", "metric")
    parsed = parse_metrics(metric or [f"{name}@{k}" for name in DEFAULT_METRICS], n_items)
    if per_user and not any(name in PER_USER_METRICS for name, _ in parsed.values()):
        raise InputError("--per-user needs a metric of users, such as recall@20; got none.")
    seen = parts.train if parts.history is None else parts.history
    n_candidates = np.maximum(n_items - seen.rows.degrees[parts.test.rows.degrees > 0], 1)
    k = max(k for _, k in parsed.values())
    recall, median = float(np.minimum(k / n_candidates, 1).mean()), float(np.median(n_candidates))
    if recall >= MAX_RANDOM_RECALL:
        warn_about_data(
            f"metrics: lists of {k} items are long where {median:g} can be recommended to the median user. A "
            f"random order has a recall@{k} of {recall:.2f}, so that all models score high.",
            "metric",
        )
    return list(parsed)


def _split(
    source: str,
    split: SplitName | None,
    test_share: float | None,
    min_rating: float | None,
    seed: int,
    log: opt.InteractionOptions,
) -> Parts:
    has_split = files.is_dataset(source) and datasets.describe(source).has_split
    if split is None:
        split = "published" if has_split and test_share is min_rating is None else "random"
    if split in ("published", "last-item"):
        opt.check_applicable("--split random, time and user", f"--split {split}", test_share=test_share)
    if split == "published":
        opt.check_applicable("other splits", "--split published", min_rating=min_rating)
        if not has_split:
            allowed = ", ".join(name for name in datasets.names() if datasets.describe(name).has_split)
            raise InputError(f"--split published needs one of the datasets {allowed}; got {source}.")
        opt.check_applicable("files", f"the dataset {source!r}", **log.given(*log.reader_parameters))
        parts = datasets.load_split(source)
        return Parts("published", parts.train, parts.test, parts.validation)
    interactions = select_positive(files.load_interactions(source, log), min_rating)
    if split in ("time", "last-item") and interactions.times is None:
        raise InputError(f"--split {split} needs the time of each interaction; {source} has none.")
    share = 0.2 if test_share is None else test_share
    if share in (0, 1):
        raise InputError(f"--test-share must be above 0 and below 1; got {share:g}.")
    fractions, rng = (1 - share, 0.0, share), child(seed_sequence(seed), TrialSeeds.SPLIT)
    if split == "user":
        train, _, users = datasets.user_split(interactions, fractions, rng=rng)
        return Parts("user", train, users.test, history=users.history)
    if split == "random":
        train, _, test = datasets.interaction_split(interactions, fractions, rng=rng)
    elif split == "time":
        train, _, test = datasets.time_split(interactions, fractions)
    else:
        train, _, test = datasets.last_item_split(interactions, n_validation=0)
    return Parts(split, train, test)
