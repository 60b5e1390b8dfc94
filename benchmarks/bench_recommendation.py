"""Time of recommenders, also compared with PyG's LightGCN, and the scaling of donors and rankings.

Run from the repository: ``python -m benchmarks.bench_recommendation``, with the names of parts
(ml-100k, amazon-cds, lightgcn, donors, rankings) to run only those. The first three need data (see
``nodecopy datasets fetch ml-100k``).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.nn.models import LightGCN as PygLightGCN

from benchmarks.measurement import Measurement, measure_interleaved
from nodecopy import Interactions, Jaccard, datasets
from nodecopy.recommend import BPRMF, EASE, CopyEASE, ItemKNN, LightGCN
from nodecopy.recommend.bpr import NegativeSampler

TIMES_PATH = Path(__file__).parents[1] / "docs" / "copy_ease.md"
SIZE, LAYERS, BATCH, EPOCHS = 64, 2, 2048, 3


def main() -> None:
    parts: dict[str, Callable[[], None]] = {
        "ml-100k": lambda: compare_closed_forms("ml-100k", rounds=15),
        "amazon-cds": lambda: compare_closed_forms("amazon-cds", rounds=5),
        "lightgcn": lambda: compare_with_pyg("ml-100k"),
        "donors": lambda: measure_scaling(_donor_tasks),
        "rankings": lambda: measure_scaling(_ranking_tasks),
    }
    for part in sys.argv[1:] or parts:
        parts[part]()


def compare_closed_forms(name: str, rounds: int) -> None:
    """Compare CopyEASE with EASE: fits, whose times are written to the documentation, and rankings."""
    train = datasets.interaction_split(datasets.load(name), rng=0).train
    ease, ours, knn = EASE().fit(train), CopyEASE().fit(train), ItemKNN().fit(train)
    fits: dict[str, Callable[[], object]] = {
        "EASE, fit": lambda: EASE().fit(train),
        "CopyEASE, fit": lambda: CopyEASE().fit(train),
    }
    others: dict[str, Callable[[], object]] = {
        "EASE, fit": fits["EASE, fit"],
        "ItemKNN, fit": lambda: ItemKNN().fit(train),
        "EASE, 10 items for all users": lambda: ease.recommend(k=10),
        "CopyEASE, 10 items for all users": lambda: ours.recommend(k=10),
        "ItemKNN, 10 items for all users": lambda: knn.recommend(k=10),
    }
    fit_times = measure_interleaved(fits, rounds=rounds)
    write_times(name, train, *fit_times.values())
    print(f"\n{name}, {train!r}; threads: {torch.get_num_threads()}")
    for measurements in (fit_times, measure_interleaved(others, rounds=2)):
        first = measurements["EASE, fit"]
        for label, measurement in measurements.items():
            if measurements is fit_times or measurement is not first:
                ratio = measurement.ratio_to(first)
                columns = f"{measurement.milliseconds:>8.0f} ms   {ratio:>6.2f} times EASE's fit"
                print(f"{label:<36}{columns}   {measurement.megabytes:>6.0f} MB")


def write_times(name: str, train: Interactions, ease: Measurement, ours: Measurement) -> None:
    """Replace the row of a dataset in the documentation by the given times of fits."""
    times = f"{ease.milliseconds:.0f} ms | {ours.milliseconds:.0f} ms | {ours.ratio_to(ease):.1f}"
    size = f"{train.n_users:,} x {train.n_items:,}"
    row = f"| {name} | {size} | {times} | {torch.get_num_threads()} |"
    lines = TIMES_PATH.read_text(encoding="utf-8").splitlines(keepends=True)
    changed = [row + "\n" if line.startswith(f"| {name} |") else line for line in lines]
    TIMES_PATH.write_text("".join(changed), encoding="utf-8")


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
        log = _build_interactions(n_users)
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


def _build_interactions(size: int, per_user: int = 20) -> Interactions:
    """Return interactions of as many users as items, with a power law of item popularity."""
    rng = np.random.default_rng(0)
    users = np.repeat(np.arange(size), per_user)
    items = (size * rng.random(len(users)) ** 2.0).astype(np.int64)
    every: Any = np.arange(size)
    return Interactions.from_table(users, items, user_ids=every, item_ids=every)


if __name__ == "__main__":
    main()
