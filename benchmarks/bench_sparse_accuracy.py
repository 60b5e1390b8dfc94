"""What the sparse form of CopyEASE costs in accuracy: exact and sparse fits to a part of Gowalla.

Run from the repository: ``python -m benchmarks.bench_sparse_accuracy 40981 cuda``, with the data
(``nodecopy datasets fetch gowalla``). The arguments are the number of items and where the exact form is
solved, by default 8,000 and ``cpu``: the exact solution of all 40,981 items takes 31 GiB; that of the 8,000
most popular ones takes 1. Fits are to the training part without the public validation part, on which they
are scored; the test part is not used. The rows are printed and written to ``docs/copy_ease.md``.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.measurement import replace_section
from nodecopy import Interactions, datasets
from nodecopy.recommend import CopyEASE

PAGE = Path(__file__).parents[1] / "docs" / "copy_ease.md"
METRICS = ["recall@20", "ndcg@20"]


def main() -> None:
    """Fit and score the exact and the sparse forms."""
    n_items = int(sys.argv[1]) if sys.argv[1:] else 8_000
    exact_device = sys.argv[2] if sys.argv[2:] else "cpu"
    train, validation = popular_parts(n_items)
    is_whole = n_items == datasets.load_split("gowalla").train.n_items
    items = f"All {n_items:,} items" if is_whole else f"The {n_items:,} most popular items"
    lines = [
        f"{items} of Gowalla, {train.n_interactions:,} interactions:",
        "",
        "| neighbours | recall@20 | NDCG@20 | CPU time |",
        "| --- | --- | --- | --- |",
    ]
    exact = "all (exact)" if exact_device == "cpu" else "all (exact, solved on a GPU)"
    for n_neighbours in (None, 200, 100, 50, 25):
        start = time.process_time()
        device = "cpu" if n_neighbours else exact_device
        model = CopyEASE(n_neighbours=n_neighbours, device=device).fit(train)
        seconds = time.process_time() - start
        scores = model.evaluate(validation, metrics=METRICS)
        values = " | ".join(f"{100 * scores[name]:.2f} %" for name in METRICS)
        lines.append(f"| {n_neighbours or exact} | {values} | {seconds:.0f} s |")
        print(lines[-1], flush=True)
    replace_section(PAGE, "accuracy", "benchmarks/bench_sparse_accuracy.py", lines)


def popular_parts(n_items: int) -> tuple[Interactions, Interactions]:
    """Return the training part without validation, and validation, of the items with the most users."""
    split = datasets.load_split("gowalla")
    train = split.train.difference(split.validation)
    counts = np.bincount(train.rows.indices, minlength=train.n_items)
    chosen = np.sort(np.argsort(-counts, kind="stable")[:n_items])
    first, second = (
        Interactions(part.matrix[:, chosen], part.user_ids, part.item_ids[chosen])
        for part in (train, split.validation)
    )
    return first, second


if __name__ == "__main__":
    main()
