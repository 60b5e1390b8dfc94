"""``nodecopy datasets``: list, fetch and verify datasets."""

from __future__ import annotations

from typing import Annotated

import typer

from nodecopy import datasets as catalogue
from nodecopy.cli.options import AsJson
from nodecopy.cli.terminal import console, format_value, print_error, print_json, print_table, show_progress
from nodecopy.errors import InputError

datasets = typer.Typer(help="List, fetch and verify datasets.", no_args_is_help=True, add_completion=False)
Names = Annotated[list[str] | None, typer.Argument(help="Names of datasets. (default: all)")]


@datasets.command("list")
def list_datasets(json_: AsJson = False) -> None:
    """List the datasets and where their files are."""
    descriptions = [catalogue.describe(name) for name in catalogue.names()]
    if json_:
        print_json(
            [
                {
                    "name": dataset.name,
                    "kind": dataset.kind,
                    "summary": dataset.summary,
                    **dict(dataset.counts),
                    "present": dataset.present,
                    "paths": [str(path) for path in dataset.paths],
                }
                for dataset in descriptions
            ]
        )
        return
    rows = []
    for dataset in descriptions:
        size = ", ".join(f"{format_value(count)} {what}" for what, count in dataset.counts.items())
        rows.append([dataset.name, dataset.kind, size, "yes" if dataset.present else "no", dataset.summary])
    print_table(["name", "kind", "size", "present", "summary"], rows)


@datasets.command("fetch")
def fetch_datasets(names: Names = None) -> None:
    """Fetch and verify the files of datasets that are missing."""
    requested = names or list(catalogue.names())
    for name in requested:
        catalogue.describe(name)  # an unknown name is an error before anything is fetched
    missing = []
    for name in show_progress(requested, len(requested), "fetching"):
        try:
            _print_verified(name, len(catalogue.fetch(name)))
        except InputError as error:
            missing.append(name)
            print_error(f"{name}: {error}")
    if missing:
        raise InputError(f"all datasets must be fetched; missing are {', '.join(missing)}, see above.")


@datasets.command("verify")
def verify_datasets(names: Names = None) -> None:
    """Check the SHA-256 digests of the files that are present; nothing is fetched."""
    requested = names or [name for name in catalogue.names() if catalogue.describe(name).present]
    for name in show_progress(requested, len(requested), "verifying"):
        _print_verified(name, len(catalogue.verify(name)))


def _print_verified(name: str, n_files: int) -> None:
    files = f"{n_files} files, all verified" if n_files else "embedded, no files needed"
    console.print(f"{name}: {files}")
