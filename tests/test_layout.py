"""The layout of the package, and what others need to pick the project up."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "nodecopy"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_nothing_below_names_something_above() -> None:
    """Strings, comments and docstrings included; the names that users import are no exception."""
    contracts = PROJECT["tool"]["importlinter"]["contracts"]
    (contract,) = (contract for contract in contracts if contract["type"] == "layers")
    above: list[str] = []
    for layer in (re.findall(r"\w+", layer) for layer in contract["layers"]):
        pattern = re.compile(rf"nodecopy\.({'|'.join(above)})\b") if above else None
        for name in layer:
            home = SOURCE / name
            for path in sorted(home.rglob("*.py")) if home.is_dir() else [SOURCE / f"{name}.py"]:
                if pattern is not None and path.exists():
                    match = pattern.search(path.read_text(encoding="utf-8"))
                    assert match is None, f"{path.relative_to(SOURCE)} names {match and match[0]}"
        above += layer


def test_a_class_name_occurs_once() -> None:
    names: Counter[str] = Counter()
    for path in SOURCE.rglob("*.py"):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        names.update(node.name for node in body if isinstance(node, ast.ClassDef))
    assert [name for name, count in names.items() if count > 1 and name[0] != "_"] == []


def test_modules_can_be_imported_on_windows() -> None:
    unix = {"fcntl", "grp", "pty", "pwd", "resource", "termios"}
    for path in (*SOURCE.rglob("*.py"), *(ROOT / "tests").rglob("*.py")):
        imports = [
            node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.Import)
        ]
        assert unix.isdisjoint(alias.name for node in imports for alias in node.names), path


def test_the_version_is_stated_once() -> None:
    for name in ("CITATION.cff", "README.md", "docs/conf.py", "Makefile", "src/nodecopy/__init__.py"):
        assert PROJECT["project"]["version"] not in (ROOT / name).read_text(encoding="utf-8"), name


def test_the_citation_and_the_workflow_are_valid() -> None:
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    authors = [author["family-names"] for author in citation["preferred-citation"]["authors"]]
    assert authors == ["Regol", "Pal", "Sun", "Zhang", "Geng", "Coates"]
    workflow = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8"))
    matrix = workflow["jobs"]["test"]["strategy"]["matrix"]
    supported = [re.search(r":: (3\.\d+)$", text) for text in PROJECT["project"]["classifiers"]]
    assert matrix["python"] == [match[1] for match in supported if match]


def test_every_target_of_the_makefile_that_is_documented_exists() -> None:
    text = "".join((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CONTRIBUTING.md"))
    targets = set(re.findall(r"(?:^|`)make ([\w-]+)", text, re.MULTILINE))
    assert {"test", "demo", "docs"} <= targets
    done = subprocess.run(["make", "-n", *targets], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
