"""What others need to pick the project up: the citation, the workflow, the templates and one version."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
YAML_FILES = ["CITATION.cff", *(str(path.relative_to(ROOT)) for path in (ROOT / ".github").rglob("*.yml"))]


def read_yaml(name: str) -> Any:
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_the_version_is_stated_once() -> None:
    files = ["CITATION.cff", "README.md", "docs/conf.py", "Makefile", "src/nodecopy/__init__.py"]
    for name in files:
        assert PROJECT["version"] not in (ROOT / name).read_text(encoding="utf-8"), name


@pytest.mark.parametrize("name", YAML_FILES)
def test_files_are_valid(name: str) -> None:
    assert isinstance(read_yaml(name), dict)


def test_the_citation_names_the_paper_and_its_authors() -> None:
    citation = read_yaml("CITATION.cff")
    assert citation["title"] == PROJECT["name"]
    authors = [author["family-names"] for author in citation["preferred-citation"]["authors"]]
    assert authors == ["Regol", "Pal", "Sun", "Zhang", "Geng", "Coates"]


def test_the_workflow_runs_make_test_on_three_systems_and_all_supported_versions() -> None:
    jobs = read_yaml(".github/workflows/test.yml")["jobs"]
    matrix = jobs["test"]["strategy"]["matrix"]
    assert [name.partition("-")[0] for name in matrix["system"]] == ["ubuntu", "macos", "windows"]
    supported = [re.search(r":: (3\.\d+)$", text) for text in PROJECT["classifiers"]]
    assert matrix["python"] == [match[1] for match in supported if match]
    commands = [step.get("run", "") for job in jobs.values() for step in job["steps"]]
    targets = {match[1] for text in commands if (match := re.match(r"make (\w+)", text))}
    assert {"test", "docs", "dist"} <= targets


def test_every_target_of_the_makefile_that_is_documented_exists() -> None:
    text = "".join((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CONTRIBUTING.md"))
    targets = set(re.findall(r"^make ([\w-]+)", text, re.MULTILINE))
    assert {"test", "demo", "docs", "dist"} <= targets
    for target in targets:
        done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
