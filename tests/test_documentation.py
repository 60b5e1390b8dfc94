"""The README, the pages and the reference: code runs, links lead somewhere, generated parts are current."""

from __future__ import annotations

import csv
import importlib
import inspect
import logging
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from docs import model_pictures, result_pictures
from docs.reference_pages import (
    complete_parameters,
    list_commands,
    list_parameters,
    render_command,
    split_attributes,
)
from docs.result_tables.pages import MARKER, README, documented_tables, find_block, results_table
from nodecopy import cli

ROOT = README.parent
DOCS = ROOT / "docs"
TEXT = README.read_text(encoding="utf-8")
PAGES = sorted([*DOCS.glob("*.md"), *(DOCS / "results").glob("*.md"), *ROOT.glob("*.md")])
WITH_CODE = [
    "installation", "ten_minutes", "troubleshooting", "model", "expectations", "reproducibility", "defence",
    "few_labels", "links", "recommendation", "your_data",
]  # fmt: skip
GENERATED = {DOCS / name for name in ("api", "commands", "gallery", "pictures", "tables", "_build")}
"""Folders that a build fills."""
NAMES = re.findall(r"^   (nodecopy\.[\w.]+)$", (DOCS / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
PACKAGES = [
    "attacks", "classify", "datasets", "defend", "edge_tables", "generators", "inference", "links",
    "metrics", "recommend",
]  # fmt: skip


def test_the_readme_runs_and_prints_what_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    for snippet in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL):
        exec(compile(snippet, str(README), "exec"), names)
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    shown = "".join(re.findall(r"```text\n(.*?)```", TEXT, re.DOTALL)).splitlines()
    assert shown
    assert [line for line in shown if line.rstrip() not in printed] == []


def test_the_commands_and_options_of_the_readme_exist() -> None:
    blocks = "".join(re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL))
    command_lines = re.findall(r"^nodecopy (\w+)(.*)$", blocks, re.MULTILINE)
    assert command_lines
    for name, rest in command_lines:
        allowed = {option for parameter in cli.import_command(name).params for option in parameter.opts}
        assert set(re.findall(r"(?<!\S)(--?[a-z][\w-]*)", rest.partition("#")[0])) <= allowed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere_before_the_pages_are_built(page: Path) -> None:
    for link in re.findall(r"(?<!!)\[[^]]*\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        if "://" not in link:
            target = (page.parent / link).resolve()
            assert target.exists(), link
            assert not GENERATED & {target, *target.parents}, link


def test_pages_name_every_table_once_and_the_readme_is_current() -> None:
    named = [(page, name) for page in PAGES for name in MARKER.findall(page.read_text(encoding="utf-8"))]
    assert sorted(named) == sorted(documented_tables())
    assert find_block(TEXT)[0] == results_table(), "update it: python -m docs.result_tables.pages"


@pytest.fixture
def logger_as_before() -> Iterator[None]:
    logger, root = logging.getLogger("nodecopy"), logging.getLogger()
    level, handlers = logger.level, root.handlers.copy()
    yield
    logger.setLevel(level)
    root.handlers[:] = handlers


@pytest.mark.parametrize("page", WITH_CODE)
def test_the_blocks_of_a_page_run_and_print_what_it_shows(
    page: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    logger_as_before: None,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    names = run_blocks(page, monkeypatch)
    out, err = capsys.readouterr()
    printed = [line.rstrip() for line in out.splitlines()]
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    shown = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    for line in "".join(shown).splitlines() if page not in ("recommendation", "few_labels") else ():
        assert any(other.startswith(line) for other in printed), line
    if page == "ten_minutes":
        assert names["is_correct"].mean() > 0.85
        assert names["is_correct"][:67].mean() > 0.98
    elif page == "few_labels":
        truth, rows = names["digits"].labels, read_rows("predictions.csv")
        assert len(rows) == 130
        assert sum(int(row["predicted"]) == truth[int(row["id"])] for row in rows) > 60
        assert '"round_likelihood":' in out
    elif page == "recommendation":
        assert names["items"].shape == (1, 2)
        assert Path("users.csv").read_text(encoding="utf-8").startswith("model,user,recall@20")
    elif page == "your_data":
        rows = read_rows("predictions.csv")
        kinds = ["retail" if int(row["id"][1:]) < 60 else "business" for row in rows]
        is_correct = [kind == row["predicted"] for kind, row in zip(kinds, rows, strict=True)]
        assert sum(is_correct) > 0.85 * len(rows) > 0.85 * 95
        assert all(decision in err for decision in ("header", "one-hot", "standardise"))


def run_blocks(page: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run the Python blocks and the commands of a page in order; return the names that are defined."""
    path, names = DOCS / f"{page}.md", dict[str, Any]()
    blocks = re.findall(r"```(python|sh)\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)
    for language, block in blocks:
        if language == "python":
            exec(compile(block, str(path), "exec"), names)
            continue
        for line in block.splitlines():
            monkeypatch.setattr(sys, "argv", shlex.split(line))
            with pytest.raises(SystemExit) as stop:
                cli.main()
            assert not stop.value.code, line
    return names


def read_rows(path: str) -> list[dict[str, str]]:
    with Path(path).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_installation_page_lists_every_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (DOCS / "installation.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert listed == set(project["optional-dependencies"])


def import_object(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def public_names(package: str) -> set[str]:
    """Return the dotted names of the public objects of a package, without modules."""
    module = importlib.import_module(package)
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", "").startswith("nodecopy")
    ]
    return {f"{package}.{name}" for name in names if not isinstance(getattr(module, name), ModuleType)}


@pytest.mark.parametrize("name", NAMES)
def test_an_object_of_the_reference_has_an_example_and_describes_every_parameter(name: str) -> None:
    value = import_object(name)
    is_frozen = getattr(getattr(value, "__dataclass_params__", None), "frozen", False)
    assert is_frozen or hasattr(value, "_fields") or ">>>" in (value.__doc__ or ""), f"{name} has no example"
    if hasattr(value, "parameter_names"):  # also where the docstring refers to a base class
        described = list_parameters(value)
        assert [parameter for parameter, text in described.items() if not text] == []
        lines = (inspect.getdoc(value) or "").splitlines()
        complete_parameters(None, "class", name, value, None, lines)
        for parameter in described:
            assert any(re.fullmatch(rf"{parameter}( : default .*)?", line) for line in lines), parameter
        split_attributes(None, "class", name, value, None, lines)
        assert not re.search(r"\n\n\w+_\n +\S", "\n".join(lines)), "a blank line ends the list of attributes"


def test_every_public_object_is_in_the_reference() -> None:
    names = public_names("nodecopy").union(*(public_names(f"nodecopy.{package}") for package in PACKAGES))
    listed = {id(import_object(name)) for name in NAMES}
    assert {name for name in names if id(import_object(name)) not in listed} == set()


def test_every_command_has_a_page_with_all_of_its_options() -> None:
    commands = list_commands()
    assert {name.partition(" ")[0] for name in commands} == set(cli.COMMANDS)
    for name, command in commands.items():
        text = render_command(name, command)
        assert text.startswith(f"# nodecopy {name}\n")
        assert "nodecopy " in text.partition("## Examples")[2]
        for parameter in command.params:
            assert parameter.metavar in text
            assert parameter.opts[0] in text or parameter.param_type_name == "argument"


@pytest.mark.parametrize("pictures", [model_pictures, result_pictures])
def test_pictures_are_the_same_in_every_build(pictures: Any, tmp_path: Path) -> None:
    for folder in ("first", "second"):
        pictures.write_pictures(tmp_path / folder)
    paths = sorted((tmp_path / "first").iterdir())
    assert len(paths) >= 3
    for path in paths:
        assert path.read_bytes() == (tmp_path / "second" / path.name).read_bytes()
