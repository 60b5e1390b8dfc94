"""``nodecopy demo``: the model at work on a graph that ships with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nodecopy import datasets
from nodecopy.cli.terminal import out, shown, table
from nodecopy.copying import NodeCopying, SameLabel
from nodecopy.errors import MissingExtraError
from nodecopy.files import whole_file
from nodecopy.metrics import compare
from nodecopy.metrics.comparison import Row


def demo(
    out_folder: Annotated[Path, typer.Option("--out", help="Folder for the picture.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Seed of the samples.")] = 0,
) -> None:
    """Sample Zachary's karate club, compare the samples with it, and draw three of the graphs."""
    graph = datasets.load("karate")
    out.print(f"Zachary's karate club: {graph!r}")
    out.print("Each node takes the neighbours of a random member of its faction.\n")
    models = {
        "maximum": NodeCopying(SameLabel()).fit(graph),
        "one endpoint": NodeCopying(SameLabel(), symmetrise="one-endpoint").fit(graph),
    }
    found = {name: compare(graph, model.sample_many(100, rng=seed)) for name, model in models.items()}
    rows = [
        [row.name, shown(row.observed), *(_spread(comparison[row.name]) for comparison in found.values())]
        for row in found["maximum"]
    ]
    table(["100 samples", "observed", *found], rows)
    picture = out_folder / "samples.png"
    try:
        from nodecopy.report.pictures import side_by_side

        figure = side_by_side(
            {
                "observed": graph,
                **{f"sample, {name}": model.sample(rng=seed) for name, model in models.items()},
            }
        )
    except MissingExtraError as error:
        out.print(f"\nNo picture: {error}", markup=False)
        return
    with whole_file(picture) as temporary:
        figure.savefig(temporary, dpi=150)
    out.print(f"\nPicture: {picture}")


def _spread(row: Row) -> str:
    return f"{row.mean:.3g} ± {row.deviation:.2g}"
