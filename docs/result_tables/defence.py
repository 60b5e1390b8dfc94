"""The tables of the pages on defences, from the stored results of their experiments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product

from docs.result_tables.cells import format_table, not_computed
from nodecopy.experiments.config import load

Row = Mapping[str, str]
ATTACKS = ("none", "dice-50", "dice-75", "nettack", "fga")
BY_DEGREE = ("hubs-none", *(f"hubs-nettack-{n}" for n in (1, 3, 5)), "highest-none", "highest-nettack-5")
CONTROLS = ("self-training", "average-self-training", "distilled", "distilled-mlp")
BUDGETS = ("0", "1", "2", "5", "10", "20", "degree")
WORST_BUDGETS = ("5", "20")
"""Flips with which every method is attacked in several ways."""
OWN_ATTACKS = {
    "gcn": "fga",
    "gnnguard": "gnnguard",
    "soft-median": "soft-median",
    "evidence": "evidence",
    "evidence-all": "evidence",
    "distilled": "features",
    "average-self-training": "expected",
}
"""The attack that knows each method, by the beginning of its name in the experiment on robustness."""
Cells = dict[tuple[str, str, str, str], Row]
"""By dataset, attack, method and score."""


def read_cells(rows: Iterable[Row]) -> Cells:
    """Return the cells that were computed."""
    keys = ("dataset", "attack", "method", "score")
    return {tuple(row[key] for key in keys): row for row in rows if row["mean"]}  # type: ignore[misc]


def describe_trials(cells: Cells) -> str:
    """Return the numbers of trials behind the cells."""
    counts = sorted({int(row["n"]) for row in cells.values()})
    number = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"{number} trial{'s' * (counts[-1] > 1)}"


def accuracy_table(
    rows: Sequence[Row],
    experiment: str,
    dataset: str,
    methods: Sequence[str],
    score: str = "accuracy",
    attacks: Sequence[str] = ATTACKS,
) -> str:
    """Return means of a score by method and attack, the best bold, and how many trials there are."""
    computed = read_cells(rows)
    cells = {
        place: row
        for place, row in computed.items()
        if (place[0], place[3]) == (dataset, score) and place[1] in attacks
    }
    shown = [name for name in methods if any(method == name for _, _, method, _ in cells)]
    if not shown:
        return not_computed(experiment)
    titles = {method.name: method.title for method in load(experiment).methods}
    lines = []
    for method in shown:
        line = [titles[method]]
        for attack in attacks:
            row = cells.get((dataset, attack, method, score))
            text = "-" if row is None else f"{float(row['mean']):.1f}"
            line.append(f"**{text}**" if row is not None and row["best"] == "True" else text)
        lines.append(line)
    headings = [f"{dataset.title()}, {describe_trials(cells)}", *name_attacks(experiment, attacks)]
    return format_table(headings, lines)


def name_attacks(experiment: str, attacks: Sequence[str] = ATTACKS) -> list[str]:
    """Return the headings of the attacks."""
    specs = {attack.name: attack for attack in load(experiment).task.attacks}  # type: ignore[attr-defined]
    kinds = {"degree above 10": ", above 10", "highest degrees": ", highest"}
    return [specs[name].title + kinds.get(specs[name].targets, "") for name in attacks]


def gains_table(rows: Sequence[Row], experiment: str, over: Sequence[str], score: str = "accuracy") -> str:
    """Return the gains of the evidence defence over other methods, by dataset and attack."""
    cells = read_cells(rows)
    titles = {method.name: method.title for method in load(experiment).methods}
    lines = []
    for dataset in ("cora", "citeseer", "pubmed"):
        for other in over:
            line = [f"{dataset.title()}, over {titles[other]}"]
            for attack in ATTACKS:
                row = cells.get((dataset, attack, "evidence", score), {})
                gain, p = row.get(f"gain_over_{other}"), row.get(f"p_over_{other}")
                line.append(f"{float(gain):+.1f}, p = {float(p):.2g}" if gain and p else "-")
            if any(text != "-" for text in line[1:]):
                lines.append(line)
    return format_table(["gain", *name_attacks(experiment)], lines) if lines else not_computed(experiment)


def find_curves(rows: Sequence[Row], dataset: str) -> dict[str, dict[str, float]]:
    """Return the accuracy of each method under the attack that knows it, by budget.

    Nobody who flips no edge changes anything, so the budget 0 is the accuracy without an attack.
    """
    cells = read_cells(rows)
    curves: dict[str, dict[str, float]] = {}
    for method, attack in OWN_ATTACKS.items():
        for budget in BUDGETS:
            name = "none" if budget == "0" else f"{attack}-{budget}"
            row = cells.get((dataset, name, method, "accuracy"))
            if row is not None:
                curves.setdefault(method, {})[budget] = float(row["mean"])
    return curves


def robustness_table(rows: Sequence[Row], dataset: str) -> str:
    """Return the accuracy of each method under the attack that knows it, by budget."""
    curves = find_curves(rows, dataset)
    if not curves:
        return not_computed("robustness")
    titles = {method.name: method.title for method in load("robustness").methods}
    lines = [
        [titles[method], *(f"{curve[budget]:.1f}" if budget in curve else "-" for budget in BUDGETS)]
        for method, curve in curves.items()
    ]
    trials = describe_trials({place: row for place, row in read_cells(rows).items() if place[0] == dataset})
    return format_table([f"{dataset.title()}, {trials}; flips for each target", *BUDGETS], lines)


def find_lowest(cells: Cells, dataset: str, method: str, budget: str) -> tuple[float, str] | None:
    """Return the lowest accuracy of a method over all attacks with a budget, and the attack.

    There is none before the method was run under the attack that knows it.
    """
    by_attack = {
        attack: float(row["mean"])
        for (of_dataset, attack, of_method, score), row in cells.items()
        if (of_dataset, of_method, score) == (dataset, method, "accuracy") and attack.endswith(f"-{budget}")
    }
    if f"{OWN_ATTACKS[method]}-{budget}" not in by_attack:
        return None
    return min((mean, attack) for attack, mean in by_attack.items())


def worst_table(rows: Sequence[Row]) -> str:
    """Return the lowest accuracy of each method over all attacks with a budget, and which attack it is."""
    experiment = load("robustness")
    titles = {attack.name: attack.title for attack in experiment.task.attacks}  # type: ignore[attr-defined]
    cells, places = read_cells(rows), list(product(("cora", "citeseer"), WORST_BUDGETS))
    lines = []
    for method in experiment.methods:
        lowest = [find_lowest(cells, dataset, method.name, budget) for dataset, budget in places]
        texts = [f"{each[0]:.1f}, {titles[each[1]].split(',')[0]}" if each else "-" for each in lowest]
        if any(lowest):
            lines.append([method.title, *texts])
    headings = [f"{dataset.title()}, {budget} flips" for dataset, budget in places]
    return format_table(["lowest accuracy", *headings], lines) if lines else not_computed("robustness")


def defence_tables(read_results: Callable[[str], Sequence[Row]]) -> dict[str, str]:
    """Return every table of the page of results by the name of its markers."""
    known, unknown = read_results("defence"), read_results("defence-unknown-targets")
    pubmed, robustness = read_results("defence-pubmed"), read_results("robustness")
    methods = [method.name for method in load("defence").methods]
    whole = [method.name for method in load("defence-unknown-targets").methods]
    tables = {
        "gains": gains_table([*known, *pubmed], "defence", CONTROLS),
        "worst": worst_table(robustness),
        "known pubmed": accuracy_table(pubmed, "defence-pubmed", "pubmed", methods),
    }
    for dataset in ("cora", "citeseer"):
        tables[f"known {dataset}"] = accuracy_table(known, "defence", dataset, methods)
        tables[f"degree {dataset}"] = accuracy_table(known, "defence", dataset, methods, attacks=BY_DEGREE)
        tables[f"unknown degree {dataset}"] = accuracy_table(
            unknown, "defence-unknown-targets", dataset, whole, attacks=BY_DEGREE
        )
        tables[f"robustness {dataset}"] = robustness_table(robustness, dataset)
        for score in ("accuracy", "others", "auc"):
            tables[f"unknown {dataset} {score}"] = accuracy_table(
                unknown, "defence-unknown-targets", dataset, whole, score
            )
    return tables
