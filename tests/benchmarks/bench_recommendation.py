"""Recommenders: time beside each other and beside PyG's LightGCN, and how donors and lists grow.

Run from the repository: ``python -m tests.benchmarks.bench_recommendation``, with the names of parts
(ml-100k, amazon-cds, lightgcn, donors, lists) to run only those. The first three need data (see
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

from nodecopy import Interactions, Jaccard, datasets
from nodecopy.recommend import BPRMF, EASE, CopyEASE, ItemKNN, LightGCN
from nodecopy.recommend.negatives import NegativeSampler
from tests.benchmarks.measuring import Measured, interleaved

COST = Path(__file__).parents[2] / "docs" / "copy_ease.md"
SIZE, LAYERS, BATCH, EPOCHS = 64, 2, 2048, 3


def main() -> None:
    parts: dict[str, Callable[[], None]] = {
        "ml-100k": lambda: closed_forms("ml-100k", rounds=15),
        "amazon-cds": lambda: closed_forms("amazon-cds", rounds=5),
        "lightgcn": lambda: beside_pyg("ml-100k"),
        "donors": lambda: growth(_donors),
        "lists": lambda: growth(_lists),
    }
    for part in sys.argv[1:] or parts:
        parts[part]()


def closed_forms(name: str, rounds: int) -> None:
    """CopyEASE beside EASE: fits, whose cost goes to the documentation, and lists for everybody."""
    train = datasets.interaction_split(datasets.load(name), rng=0).train  # type: ignore[arg-type]
    ease, ours, knn = EASE().fit(train), CopyEASE().fit(train), ItemKNN().fit(train)
    fits: dict[str, Callable[[], object]] = {
        "EASE, fit": lambda: EASE().fit(train),
        "CopyEASE, fit": lambda: CopyEASE().fit(train),
    }
    others: dict[str, Callable[[], object]] = {
        "EASE, fit": fits["EASE, fit"],
        "CopyEASE, path of 10": lambda: list(CopyEASE().fit_path(train, np.geomspace(10, 500, 10).tolist())),
        "ItemKNN, fit": lambda: ItemKNN().fit(train),
        "EASE, 10 items for all users": lambda: ease.recommend(k=10),
        "CopyEASE, 10 items for all users": lambda: ours.recommend(k=10),
        "ItemKNN, 10 items for all users": lambda: knn.recommend(k=10),
    }
    found = interleaved(fits, rounds=rounds)
    write_cost(name, train, *found.values())
    print(f"\n{name}, {train!r}; threads: {torch.get_num_threads()}")
    for measured in (found, interleaved(others, rounds=2)):
        first = measured["EASE, fit"]
        for label, one in measured.items():
            if measured is found or one is not first:
                print(
                    f"{label:<36}{one.ms:>8.0f} ms   {one.times(first):>6.2f} times EASE's fit "
                    f"  {one.mb:>6.0f} MB"
                )


def write_cost(name: str, train: Interactions, ease: Measured, ours: Measured) -> None:
    """Put a row of fits into the documentation, in place of the last one of these data."""
    row = (
        f"| {name} | {train.n_users:,} x {train.n_items:,} | {ease.ms:.0f} ms | {ours.ms:.0f} ms "
        f"| {ours.times(ease):.1f} | {torch.get_num_threads()} |"
    )
    lines = COST.read_text(encoding="utf-8").splitlines(keepends=True)
    changed = [row + "\n" if line.startswith(f"| {name} |") else line for line in lines]
    COST.write_text("".join(changed), encoding="utf-8")


def beside_pyg(name: str) -> None:
    """The same epochs of LightGCN: same sizes, batches and negatives."""
    train = datasets.interaction_split(datasets.load(name), rng=0).train.binary()  # type: ignore[arg-type]
    model = LightGCN(SIZE, batch_size=BATCH, n_epochs=EPOCHS, n_layers=LAYERS)
    tasks: dict[str, Callable[[], object]] = {
        "nodecopy": lambda: model.fit(train, rng=0),
        "PyG": lambda: _pyg(train),
    }
    found = interleaved(tasks, rounds=3)
    print(f"\nLightGCN on {name}, batches of {BATCH}, {torch.get_num_threads()} threads, {EPOCHS} epochs")
    for label, one in found.items():
        print(f"{label:<36}{one.ms / EPOCHS:>8.0f} ms an epoch   {one.times(found['PyG']):.2f} of PyG's")


def _pyg(train: Interactions) -> object:
    users, items = train.rows.row_numbers.astype(np.int64), train.rows.indices.astype(np.int64)
    both = torch.from_numpy(np.stack([users, items + train.n_users]))
    edges = torch.cat([both, both.flip(0)], dim=1)
    network = PygLightGCN(train.n_users + train.n_items, SIZE, LAYERS)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.005)
    sampler, draws = NegativeSampler(train.matrix), np.random.default_rng(0)
    for _ in range(EPOCHS):
        order = draws.permutation(len(users))
        negatives = torch.from_numpy(sampler.draw(users[order], draws) + train.n_users)
        for start in range(0, len(order), BATCH):
            chosen = torch.from_numpy(order[start : start + BATCH])
            user, liked, other = both[0][chosen], both[1][chosen], negatives[start : start + BATCH]
            optimiser.zero_grad()
            pairs = torch.cat([torch.stack([user, liked]), torch.stack([user, other])], dim=1)
            positive, negative = network(edges, pairs).chunk(2)
            nodes = torch.cat([user, liked, other])
            loss = network.recommendation_loss(positive, negative, node_id=nodes, lambda_reg=0.001)
            loss.backward()
            optimiser.step()
    return network


def growth(tasks_on: Callable[[Interactions], dict[str, Callable[[], object]]]) -> None:
    """Tasks against the number of users, as many items as users."""
    print(f"\n{'users':>8}{'pairs':>10}  {'task':<34}{'seconds':>8}{'peak MB':>9}")
    for n_users in (10**4, 10**5):
        log = _log(n_users)
        for label, task in tasks_on(log).items():
            (one,) = interleaved({label: task}, rounds=1).values()
            print(f"{n_users:>8}{log.n_interactions:>10}  {label:<34}{one.ms / 1e3:>8.1f}{one.mb:>9,.0f}")


def _donors(log: Interactions) -> dict[str, Callable[[], object]]:
    """Nearest donors."""
    return {
        "Jaccard(max_donors=50), fit": lambda: Jaccard(False, 4.0, 50).fit(log),
        "ItemKNN(50), fit": lambda: ItemKNN(50).fit(log),
    }


def _lists(log: Interactions) -> dict[str, Callable[[], object]]:
    """Lists of ten items."""
    knn, bpr = ItemKNN(50).fit(log), BPRMF(n_epochs=1, batch_size=2**16).fit(log, rng=0)
    return {
        "ItemKNN, 10 items for all users": lambda: knn.recommend(k=10),
        "BPRMF, 10 items for all users": lambda: bpr.recommend(k=10),
    }


def _log(size: int, per_user: int = 20) -> Interactions:
    """Users x as many items: items by a power law of popularity."""
    draws = np.random.default_rng(0)
    users = np.repeat(np.arange(size), per_user)
    items = (size * draws.random(len(users)) ** 2.0).astype(np.int64)
    every: Any = np.arange(size)
    return Interactions.from_table(users, items, user_ids=every, item_ids=every)


if __name__ == "__main__":
    main()
