"""``nodecopy datasets``: list, fetch and verify datasets."""

from __future__ import annotations

from typing import Annotated

import typer

from nodecopy import datasets as catalogue
from nodecopy._core.messages import format_value
from nodecopy.cli.options import AsJson, add_command
from nodecopy.cli.output import console, print_error, print_json, print_table, show_progress
from nodecopy.errors import InputError

datasets = typer.Typer(help="List, fetch and verify datasets.", no_args_is_help=True, add_completion=False)
Names = Annotated[
    list[str] | None, typer.Argument(help="Names of datasets. (default: all)", metavar="NAMES...")
]


def list_datasets(json_: AsJson = False) -> None:
    """List the datasets and where their files are.

    Examples:
        nodecopy datasets list
        nodecopy datasets list --json
    """
    descriptions = [catalogue.describe(name) for name in catalogue.names()]
    rows, entries = [], []
    for dataset in descriptions:
        entry = {key: getattr(dataset, key) for key in ("name", "kind", "summary")}
        files = {"present": dataset.present, "paths": list(map(str, dataset.paths))}
        entries.append({**entry, **dataset.counts, **files})
        size = ", ".join(f"{format_value(count)} {what}" for what, count in dataset.counts.items())
        rows.append([dataset.name, dataset.kind, size, "yes" if dataset.present else "no", dataset.summary])
    if json_:
        print_json(entries)
    else:
        print_table(["name", "kind", "size", "present", "summary"], rows)


def fetch_datasets(names: Names = None, json_: AsJson = False) -> None:
    """Fetch and verify the files of datasets that are missing.

    Examples:
        nodecopy datasets fetch karate digits
    """
    requested = names or list(catalogue.names())
    for name in requested:
        catalogue.describe(name)  # an unknown name is an error before anything is fetched
    n_files, missing = {}, []
    for name in show_progress(requested, len(requested), "fetching"):
        try:
            n_files[name] = len(catalogue.fetch(name))
        except InputError as error:
            missing.append(name)
            print_error(f"{name}: {error}")
    _print_verified(n_files, as_json=json_)
    if missing:
        raise InputError(f"all datasets must be fetched; missing are {', '.join(missing)}, see above.")


def verify_datasets(names: Names = None, json_: AsJson = False) -> None:
    """Check the SHA-256 digests of the files that are present; nothing is fetched.

    Examples:
        nodecopy datasets verify
        nodecopy datasets verify karate --json
    """
    requested = names or [name for name in catalogue.names() if catalogue.describe(name).present]
    progress = show_progress(requested, len(requested), "verifying")
    _print_verified({name: len(catalogue.verify(name)) for name in progress}, as_json=json_)


def _print_verified(n_files: dict[str, int], *, as_json: bool) -> None:
    if as_json:
        print_json({"verified": n_files})
        return
    for name, number in n_files.items():
        status = f"{number} files, all verified" if number else "embedded, no files needed"
        console.print(f"{name}: {status}")


add_command(datasets, "list", list_datasets)
add_command(datasets, "fetch", fetch_datasets)
add_command(datasets, "verify", verify_datasets)
