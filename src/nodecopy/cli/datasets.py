"""``nodecopy datasets``: what there is, fetch it, verify it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from nodecopy import datasets
from nodecopy.cli import sources
from nodecopy.cli.terminal import as_json, complain, out, progress, shown, table
from nodecopy.errors import InputError

app = typer.Typer(help="List, fetch and verify datasets.", no_args_is_help=True)
Names = Annotated[list[str] | None, typer.Argument(help="Datasets; all by default.")]


@app.command("list")
def list_(json_: sources.AsJson = False) -> None:
    """List the datasets and where their files are."""
    found = [datasets.describe(name) for name in datasets.names()]
    if json_:
        as_json(
            [
                {
                    "name": one.name,
                    "kind": one.kind,
                    "summary": one.summary,
                    **dict(one.counts),
                    "present": one.present,
                    "paths": [str(path) for path in one.paths],
                }
                for one in found
            ]
        )
        return
    rows = [
        [one.name, one.kind, _size(one.counts), "yes" if one.present else "no", one.summary] for one in found
    ]
    table(["name", "kind", "size", "at hand", "what it is"], rows)


@app.command("fetch")
def fetch(names: Names = None) -> None:
    """Make sure the files of datasets are at hand, fetching and verifying what is missing."""
    chosen = names or list(datasets.names())
    missed = []
    for name in progress(chosen, len(chosen), "fetching"):
        try:
            _tell(name, len(datasets.fetch(name)))
        except InputError as error:
            missed.append(name)
            complain(f"{name}: {error}")
    if missed:
        raise InputError(f"not all datasets could be had; missing: {', '.join(missed)}.")


@app.command("verify")
def verify(names: Names = None) -> None:
    """Check the files at hand against their sha256; nothing is fetched."""
    chosen = names or [name for name in datasets.names() if datasets.describe(name).present]
    for name in progress(chosen, len(chosen), "verifying"):
        _tell(name, len(datasets.verify(name)))


def _tell(name: str, n_files: int) -> None:
    out.print(f"{name}: {n_files} files, all verified" if n_files else f"{name}: embedded, no files needed")


def _size(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{shown(count)} {what}" for what, count in counts.items())
