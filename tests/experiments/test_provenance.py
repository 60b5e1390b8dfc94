from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import pytest

from nodecopy.experiments.runner import _describe_machine, _find_commit, collect_provenance


@pytest.fixture(autouse=True)
def forget_commit() -> Iterator[None]:
    _find_commit.cache_clear()
    yield
    _find_commit.cache_clear()


def test_a_result_knows_versions_machine_and_time() -> None:
    origin = collect_provenance("cpu")
    assert set(origin) == {"commit", "versions", "machine", "finished"}
    assert set(origin["versions"]) == {"python", "nodecopy", "numpy", "scipy", "torch"}
    assert origin["machine"]["device"] == "cpu"
    assert _describe_machine("cpu")["cores"] >= 1
    assert datetime.fromisoformat(origin["finished"]).tzinfo is not None


def test_the_environment_names_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODECOPY_COMMIT", "v9-3-gabc")
    assert collect_provenance("cpu")["commit"] == "v9-3-gabc"


def test_without_git_the_version_stands_for_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NODECOPY_COMMIT", raising=False)
    monkeypatch.setenv("PATH", "")
    assert collect_provenance("cpu")["commit"].startswith("version ")
