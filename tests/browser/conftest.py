"""A real browser for the report page; without one, tests are skipped (``make browser-test`` gets it)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nodecopy.report import page
from tests.browser.chromium import Watched, opened
from tests.report import examples


@pytest.fixture(scope="session")
def html(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with every kind of section and crafted ids."""
    folder = tmp_path_factory.mktemp("page")
    sections = examples.every_section(folder)
    page.write_page(folder / "page.html", "A report", sections, origin=examples.CRAFTED[0])
    return folder / "page.html"


@pytest.fixture
def watched(html: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Watched]:
    """The page, opened; settings of the browser come by ``pytest.mark.parametrize(..., indirect=True)``."""
    pytest.importorskip("playwright", reason="needs a browser: make browser-test")
    settings: dict[str, Any] = getattr(request, "param", {})
    with opened(html, tmp_path / "profile", **settings) as watched_page:
        yield watched_page
        assert watched_page.complaints == []
        assert watched_page.requests == []
