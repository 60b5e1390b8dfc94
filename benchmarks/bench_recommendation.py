"""Time of recommenders, what they do to popularity, and the accuracy on cold items.

Run from the repository: ``python -m benchmarks.bench_recommendation``, with the names of parts (closed-forms,
popularity, cold, lightgcn, donors, rankings) to run only those. The first four need data (see ``nodecopy
datasets fetch ml-100k``); the first three write tables into the documentation.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.nn.models import LightGCN as PygLightGCN

from benchmarks.measurement import measure_interleaved, replace_section
from nodecopy import Interactions, Jaccard, datasets
from nodecopy.datasets.fetching import data_folder
from nodecopy.metrics import ranking
from nodecopy.recommend import BPRMF, EASE, ColdItems, CopyEASE, ItemKNN, LightGCN, Popularity, Recommender
from nodecopy.recommend.bpr import NegativeSampler

DOCS, WRITER = Path(__file__).parents[1] / "docs", "benchmarks/bench_recommendation.py"
SIZE, LAYERS, BATCH, EPOCHS = 64, 2, 2048, 3
N_SPLITS, N_GROUPS = 5, 50
METRICS = {
    "recall@20": "recall@20",
    "ndcg@20": "NDCG@20",
    "tail_recall@20": "recall@20 of the long tail",
    "popularity@20": "popularity of the lists",
    "coverage@20": "coverage",
}


METRICS_OF_COLD = ["recall@20", "ndcg@20"]


def main() -> None:
    parts: dict[str, Callable[[], None]] = {
        "closed-forms": compare_closed_forms,
        "popularity": compare_popularity,
        "cold": compare_cold_items,
        "lightgcn": lambda: compare_with_pyg("ml-100k"),
        "donors": lambda: measure_scaling(_donor_tasks),
        "rankings": lambda: measure_scaling(_ranking_tasks),
    }
    for part in sys.argv[1:] or parts:
        parts[part]()


def compare_closed_forms() -> None:
    """Compare the fits of CopyEASE with those of EASE."""
    logs = {
        name: datasets.interaction_split(datasets.load(name), rng=0).train
        for name in ("ml-100k", "amazon-cds")
    }
    sizes = {f"synthetic, {n:,} items": n for n in (3000, 16_000, 25_000)}
    lines = [
        f"Median times of fits over interleaved rounds, with {torch.get_num_threads()} threads. First ratio:"
        " median of the ratios within rounds; second: `partial_fit` for 100 users over a fit.",
        "",
        "| data | users x items | interactions | EASE | CopyEASE | ratio | `partial_fit` | ratio |"
        " `explain` |",
        f"| {' | '.join(['---'] * 9)} |",
    ]
    for name in (*logs, *sizes):
        log = logs[name] if name in logs else build_tastes(sizes[name])
        lines.append(_time_closed_forms(name, log, rounds=5 if log.n_items < 10_000 else 1))
        print(lines[-1], flush=True)
    replace_section(DOCS / "copy_ease.md", "cost", WRITER, lines)


def _time_closed_forms(name: str, log: Interactions, rounds: int) -> str:
    is_new = log.rows.row_numbers >= log.n_users - 100
    old, new = log.select(~is_new), log.select(is_new)
    tasks: dict[str, Callable[[], object]] = {
        "EASE": lambda: EASE(n_neighbours=None).fit(log),
        "CopyEASE": lambda: CopyEASE(n_neighbours=None).fit(log),
    }
    times = measure_interleaved(tasks, rounds)
    model = CopyEASE(n_neighbours=None).fit(old)
    partial = measure_interleaved({"partial": lambda: model.partial_fit(new)}, 1)["partial"]
    explain = measure_interleaved({"explain": lambda: model.explain(log.user_ids[0], log.item_ids[1])}, 1)[
        "explain"
    ]
    ease, ours = times["EASE"], times["CopyEASE"]
    columns = [
        name, f"{log.n_users:,} x {log.n_items:,}", f"{log.n_interactions:,}",
        _show(ease.milliseconds), _show(ours.milliseconds), f"{ours.ratio_to(ease):.1f}",
        _show(partial.milliseconds), f"{partial.milliseconds / ours.milliseconds:.1f}",
        _show(explain.milliseconds),
    ]  # fmt: skip
    return f"| {' | '.join(columns)} |"


def _show(milliseconds: float) -> str:
    return f"{milliseconds:.0f} ms" if milliseconds < 10_000 else f"{milliseconds / 1000:.0f} s"


def compare_popularity() -> None:
    """Compare recall, its part in the long tail, and the popularity of lists on random splits."""
    models: dict[str, Recommender] = {
        "popularity": Popularity(),
        "ItemKNN": ItemKNN(),
        "EASE": EASE(),
        "EASE, `popularity_penalty=0.1`": EASE(popularity_penalty=0.1),
        "CopyEASE": CopyEASE(),
        "CopyEASE, `popularity_penalty=0`": CopyEASE(popularity_penalty=0.0),
        "CopyEASE, `popularity_penalty=0.3`": CopyEASE(popularity_penalty=0.3),
        "CopyEASE, `low_pass=0`": CopyEASE(low_pass=0.0),
    }
    lines = [f"Percent, means over {N_SPLITS} random splits with a fifth of the interactions held out:", ""]
    lines += [f"| data | model | {' | '.join(METRICS.values())} |", "| --- " * (2 + len(METRICS)) + "|"]
    for name in ("ml-100k", "amazon-cds", "amazon-beauty"):
        log = datasets.load_split(name).train if name == "amazon-beauty" else datasets.load(name)
        splits = [datasets.interaction_split(log, (0.8, 0.0, 0.2), rng=seed) for seed in range(N_SPLITS)]
        for title, model in models.items():
            results = [model.fit(train).evaluate(test, metrics=list(METRICS)) for train, _, test in splits]
            means = [100 * np.mean([result[metric] for result in results]) for metric in METRICS]
            lines.append(f"| {name} | {title} | {' | '.join(f'{mean:.1f}' for mean in means)} |")
            print(lines[-1], flush=True)
    replace_section(DOCS / "copy_ease.md", "popularity", WRITER, lines)


def compare_cold_items() -> None:
    """Hold out all interactions of a fifth of the items of ml-100k, and rank these items."""
    log = datasets.load("ml-100k").binary()
    features = _film_features(log.item_ids)
    similarity = features / np.linalg.norm(features, axis=1, keepdims=True)
    scores_of: dict[str, Callable[[Interactions, Any], Any]] = {
        "popularity, by features": lambda train, cold: _cold_scores(Popularity(), train, cold, features),
        "similarity of features": lambda train, cold: train.matrix @ similarity @ similarity[cold].T,
        "the 20 items with the most similar features": lambda train, cold: (
            train.matrix @ _largest(similarity @ similarity[cold].T * (train.matrix.sum(axis=0) > 0)[:, None])
        ),
        "`ColdItems(ItemKNN())`": lambda train, cold: _cold_scores(ItemKNN(), train, cold, features),
        "`ColdItems(EASE())`": lambda train, cold: _cold_scores(EASE(), train, cold, features),
        "`ColdItems(CopyEASE())`": lambda train, cold: _cold_scores(CopyEASE(), train, cold, features),
    }
    lines = [f"ml-100k, a random fifth of the items held out, mean over {2 * N_SPLITS} draws:", ""]
    lines += ["| scores of an unseen item | recall@20 | NDCG@20 |", "| --- | --- | --- |"]
    for title, score in scores_of.items():
        results = []
        for seed in range(2 * N_SPLITS):
            cold = np.sort(np.random.default_rng(seed).permutation(log.n_items)[: log.n_items // 5])
            is_cold = np.isin(log.rows.indices, cold)
            test = Interactions(log.select(is_cold).matrix[:, cold])
            scores = np.asarray(score(log.select(~is_cold), cold))
            nothing = Interactions(0 * test.matrix)
            results.append(
                ranking.evaluate(scores.__getitem__, nothing, test, metrics=["recall@20", "ndcg@20"])
            )
        recall, ndcg = (
            100 * np.mean([result[name] for result in results]) for name in ("recall@20", "ndcg@20")
        )
        lines.append(f"| {title} | {recall:.1f} % | {ndcg:.1f} % |")
        print(lines[-1], flush=True)
    replace_section(DOCS / "recommendation.md", "cold items", WRITER, lines)


def _film_features(ids: Any) -> Any:
    """Return genres, years and the words of titles that several films share."""
    rows = {}
    folder = data_folder()
    assert folder is not None, "set NODECOPY_DATA"
    for line in (folder / "ml-100k" / "u.item").read_text(encoding="latin-1").splitlines():
        cells = line.split("|")
        words = set(re.findall("[a-z]{4,}", cells[1].lower())) | {cells[2][-4:]}
        rows[int(cells[0])] = np.array(cells[5:], float), words
    vocabulary = sorted(word for word in set().union(*(words for _, words in rows.values())))
    matrix = np.array([[*rows[i][0], *(word in rows[i][1] for word in vocabulary)] for i in ids], float)
    return matrix[:, matrix.sum(axis=0) > 1]


def _cold_scores(base: Recommender, train: Interactions, cold: Any, features: Any) -> Any:
    return ColdItems(base, train.item_ids, features).fit(train, rng=0).score()[:, cold]


def _largest(similarity: Any, k: int = 20) -> Any:
    return np.where(similarity >= np.sort(similarity, axis=0)[-k], similarity, 0.0)


def compare_with_pyg(name: str) -> None:
    """Train LightGCN with the same epochs, sizes, batches and negatives."""
    train = datasets.interaction_split(datasets.load(name), rng=0).train.binary()
    model = LightGCN(SIZE, batch_size=BATCH, n_epochs=EPOCHS, n_layers=LAYERS)
    tasks: dict[str, Callable[[], object]] = {
        "nodecopy": lambda: model.fit(train, rng=0),
        "PyG": lambda: _fit_pyg(train),
    }
    measurements = measure_interleaved(tasks, rounds=3)
    print(f"\nLightGCN on {name}, batches of {BATCH}, {torch.get_num_threads()} threads, {EPOCHS} epochs")
    for label, measurement in measurements.items():
        ratio = measurement.ratio_to(measurements["PyG"])
        print(f"{label:<36}{measurement.milliseconds / EPOCHS:>8.0f} ms per epoch   {ratio:.2f} of PyG's")


def _fit_pyg(train: Interactions) -> object:
    users, items = train.rows.row_numbers.astype(np.int64), train.rows.indices.astype(np.int64)
    both = torch.from_numpy(np.stack([users, items + train.n_users]))
    edges = torch.cat([both, both.flip(0)], dim=1)
    network = PygLightGCN(train.n_users + train.n_items, SIZE, LAYERS)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.005)
    sampler, rng = NegativeSampler(train.matrix), np.random.default_rng(0)
    for _ in range(EPOCHS):
        order = rng.permutation(len(users))
        negatives = torch.from_numpy(sampler.draw(users[order], rng) + train.n_users)
        for start in range(0, len(order), BATCH):
            chosen = torch.from_numpy(order[start : start + BATCH])
            user, positive_item, negative_item = (
                both[0][chosen],
                both[1][chosen],
                negatives[start : start + BATCH],
            )
            optimiser.zero_grad()
            pairs = torch.cat([torch.stack([user, positive_item]), torch.stack([user, negative_item])], dim=1)
            positive, negative = network(edges, pairs).chunk(2)
            nodes = torch.cat([user, positive_item, negative_item])
            loss = network.recommendation_loss(positive, negative, node_id=nodes, lambda_reg=0.001)
            loss.backward()
            optimiser.step()
    return network


def measure_scaling(tasks_on: Callable[[Interactions], dict[str, Callable[[], object]]]) -> None:
    """Measure tasks for several numbers of users, with as many items as users."""
    print(f"\n{'users':>8}{'pairs':>10}  {'task':<34}{'seconds':>8}{'peak MB':>9}")
    for n_users in (10**4, 10**5):
        log = build_tastes(n_users)
        for label, task in tasks_on(log).items():
            (measurement,) = measure_interleaved({label: task}, rounds=1).values()
            columns = f"{measurement.milliseconds / 1e3:>8.1f}{measurement.megabytes:>9,.0f}"
            print(f"{n_users:>8}{log.n_interactions:>10}  {label:<34}{columns}")


def _donor_tasks(log: Interactions) -> dict[str, Callable[[], object]]:
    """Return the searches for nearest donors."""
    return {
        "Jaccard(max_donors=50), fit": lambda: Jaccard(False, 4.0, 50).fit(log),
        "ItemKNN(50), fit": lambda: ItemKNN(50).fit(log),
    }


def _ranking_tasks(log: Interactions) -> dict[str, Callable[[], object]]:
    """Return the rankings of ten items for all users."""
    knn, bpr = ItemKNN(50).fit(log), BPRMF(n_epochs=1, batch_size=2**16).fit(log, rng=0)
    return {
        "ItemKNN, 10 items for all users": lambda: knn.recommend(k=10),
        "BPRMF, 10 items for all users": lambda: bpr.recommend(k=10),
    }


def build_tastes(n_items: int) -> Interactions:
    """Return interactions of as many users, with popular items, active users and groups of tastes."""
    rng = np.random.default_rng(0)
    popularity = rng.lognormal(0.0, 1.3, n_items)
    bounds = np.append(0.0, np.cumsum(popularity))
    counts = np.clip(rng.lognormal(3.2, 0.8, n_items), 5, n_items / 10).astype(int)
    group = np.repeat(rng.integers(N_GROUPS, size=n_items), counts)
    low = np.where(rng.random(len(group)) < 0.7, group, -1)
    edges = bounds[np.linspace(0, n_items, N_GROUPS + 1).astype(int)]
    start, stop = np.where(low < 0, 0.0, edges[low]), np.where(low < 0, bounds[-1], edges[low + 1])
    items = np.searchsorted(bounds, start + rng.random(len(group)) * (stop - start), side="right") - 1
    every: Any = np.arange(n_items)
    users = np.repeat(every, counts)
    return Interactions.from_table(users, items, user_ids=every, item_ids=every).binary()


if __name__ == "__main__":
    main()
