"""The table and the sentences on the level of tests, from the stored results of the experiment."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from docs.result_tables.cells import Row, format_table, not_computed
from nodecopy.experiments.config import load

SCORES = ("transitivity", "assortativity", "modularity")
TRUE_NULLS = {
    ("erdos-renyi", "erdos-renyi"): SCORES,
    ("erdos-renyi", "configuration"): SCORES,
    ("configuration", "configuration"): SCORES,
    ("sbm", "blocks"): SCORES[:2],
    ("dc-sbm", "blocks"): SCORES[:2],
}
"""Networks and null models that are true, with the statistics that they do not fix."""


def read_shares(rows: Iterable[Row]) -> dict[tuple[str, str, str], float]:
    """Return the percentages of rejections by network, null model and statistic."""
    return {
        (row["dataset"], row["method"], row["score"].partition(" ")[0]): float(row["mean"])
        for row in rows
        if row["mean"]
    }


def level_table(rows: Iterable[Row], name: str = "level") -> str:
    """Return the percentages of rejections, by network and null model."""
    shares, experiment = read_shares(rows), load(name)
    if not shares:
        return not_computed(name)
    task: Any = experiment.task
    lines = [
        [dataset, method.title, *(_show(shares.get((dataset, method.name, score))) for score in task.scores)]
        for dataset in task.datasets
        for method in experiment.methods
        if (dataset, method.name, task.scores[0]) in shares
    ]
    return format_table(["network", "null model", *(score.replace("_", " ") for score in task.scores)], lines)


def _show(share: float | None) -> str:
    return "-" if share is None else f"{share:.1f}"


def describe_levels(rows: Iterable[Row]) -> str:
    """Return level and power in sentences."""
    shares = read_shares(rows)
    if not shares:
        return not_computed("level")

    def describe(places: Iterable[tuple[str, str, str]]) -> str:
        values = [shares[place] for place in places]
        return f"{min(values):.1f} to {max(values):.1f} %"

    true = [(*place, score) for place, scores in TRUE_NULLS.items() for score in scores]
    fitted = [(network, "dc-sbm", score) for network in ("sbm", "dc-sbm") for score in SCORES[:2]]
    copied = [
        (network, "copying", score) for network in ("erdos-renyi", "sbm", "dc-sbm") for score in SCORES[:2]
    ]
    stubs = max(
        shares[network, "stub-matching", score]
        for network in ("erdos-renyi", "configuration")
        for score in SCORES
    )
    planted = [place for place in shares if place[0] == "planted-communities" and place[2] == "modularity"]
    triangles, stub_triangles = (
        shares["planted-triangles", null, "transitivity"] for null in ("configuration", "stub-matching")
    )
    return (
        "- **Level.** The null model is true in the rows of Erdős-Rényi networks with `erdos-renyi` and "
        "`configuration`, of `configuration` with the configuration model, and of both block models with the "
        "configuration model within blocks. There "
        f"the tests reject in {describe(true)}. (The configuration model within blocks keeps the modularity "
        "of its labels, so that its test of modularity never rejects.) Stub matching, as users of NetworkX "
        f"do it, loses edges and rejects true null models in up to {stubs:.0f} % of the networks. The fitted "
        f"degree-corrected block model rejects in {describe(fitted)}: it can be conservative.\n"
        "- **Power.** 100 planted triangles in networks with about 1,500 edges and heavy-tailed degrees are "
        f"detected by the transitivity in {triangles:.0f} % of the networks. Stub matching rejects in "
        f"{stub_triangles:.0f} %, but has no valid level. Communities across which edges have 85 % of the "
        f"probability are detected by the modularity of the labels in {describe(planted)}, by all null "
        "models.\n"
        "- **Node copying as a null model** does not keep the level: it mostly rejects too rarely "
        f"({describe(copied)} of transitivity and assortativity), but the modularity of degree-corrected "
        f"networks in {shares['dc-sbm', 'copying', 'modularity']:.0f} %."
    )
