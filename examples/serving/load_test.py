"""A load test of the service: ``python -m nodecopy.examples.serving.load_test URL MODEL``.

URL is that of the service, such as http://127.0.0.1:8000, and MODEL its file. It needs ``httpx``. Of the
requests, 80 % ask for a list, 15 % for an explanation of the first item of the user's history, and 5 % add a
row.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from urllib.parse import quote

import httpx
import numpy as np

import nodecopy
from nodecopy import Interactions

SHARES = {"recommend": 0.8, "explain": 0.15, "add": 0.05}


async def run(url: str, log: Interactions, n_requests: int, n_concurrent: int) -> None:
    """Send the requests, so many at a time, and print their latencies."""
    rng = np.random.default_rng(0)
    kinds = rng.choice(list(SHARES), n_requests, p=list(SHARES.values())).tolist()
    users = rng.choice(np.flatnonzero(log.rows.degrees), n_requests).tolist()
    seconds: dict[str, list[float]] = {kind: [] for kind in SHARES}
    n_failed, waiting = 0, iter(zip(kinds, users, strict=True))

    async def work(client: httpx.AsyncClient) -> None:
        nonlocal n_failed
        for kind, row in waiting:  # one iterator for all, so that each request is sent once
            user, item = (
                quote(str(ids), safe="")
                for ids in (log.user_ids[row], log.item_ids[log.rows.indices[log.rows.indptr[row]]])
            )
            start = time.perf_counter()
            if kind == "recommend":
                response = await client.get(f"/users/{user}/recommendations")
            elif kind == "explain":
                response = await client.get(f"/users/{user}/explanations/{item}")
            else:
                response = await client.post(f"/users/{user}/items", json=[log.item_ids[row % 9].item()])
            seconds[kind].append(time.perf_counter() - start)
            n_failed += response.status_code >= 400

    start = time.perf_counter()
    limits = httpx.Limits(max_connections=n_concurrent)
    async with httpx.AsyncClient(base_url=url, limits=limits, timeout=60.0) as client:
        await asyncio.gather(*(work(client) for _ in range(n_concurrent)))
    total = time.perf_counter() - start
    print(f"{n_requests} requests, {n_concurrent} at a time: {n_requests / total:.0f} per second")
    for kind, times in seconds.items():
        middle, high, highest = 1000 * np.quantile(times, [0.5, 0.95, 0.99])
        print(f"{kind:>10}: median {middle:.1f} ms, 95 % {high:.1f} ms, 99 % {highest:.1f} ms")
    print(f"failed: {n_failed}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("model")
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--concurrent", type=int, default=200)
    arguments = parser.parse_args()
    interactions = nodecopy.load(arguments.model, mmap=True).interactions_
    asyncio.run(run(arguments.url, interactions, arguments.requests, arguments.concurrent))
