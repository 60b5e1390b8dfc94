"""``nodecopy datasets``: what there is, fetch it, verify it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from nodecopy import datasets as catalogue
from nodecopy.cli import sources
from nodecopy.cli.terminal import console, format_value, print_error, print_json, print_table, show_progress
from nodecopy.errors import InputError

datasets = typer.Typer(help="List, fetch and verify datasets.", no_args_is_help=True, add_completion=False)
Names = Annotated[list[str] | None, typer.Argument(help="Datasets; all by default.")]


@datasets.command("list")
def list_(json_: sources.AsJson = False) -> None:
    """List the datasets and where their files are."""
    found = [catalogue.describe(name) for name in catalogue.names()]
    if json_:
        print_json(
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
    print_table(["name", "kind", "size", "at hand", "what it is"], rows)


@datasets.command("fetch")
def fetch(names: Names = None) -> None:
    """Make sure the files of datasets are at hand, fetching and verifying what is missing."""
    chosen = names or list(catalogue.names())
    missed = []
    for name in show_progress(chosen, len(chosen), "fetching"):
        try:
            _tell(name, len(catalogue.fetch(name)))
        except InputError as error:
            missed.append(name)
            print_error(f"{name}: {error}")
    if missed:
        raise InputError(f"not all datasets could be had; missing: {', '.join(missed)}.")


@datasets.command("verify")
def verify(names: Names = None) -> None:
    """Check the files at hand against their sha256; nothing is fetched."""
    chosen = names or [name for name in catalogue.names() if catalogue.describe(name).present]
    for name in show_progress(chosen, len(chosen), "verifying"):
        _tell(name, len(catalogue.verify(name)))


def _tell(name: str, n_files: int) -> None:
    console.print(
        f"{name}: {n_files} files, all verified" if n_files else f"{name}: embedded, no files needed"
    )


def _size(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{format_value(count)} {what}" for what, count in counts.items())
