"""Opens a page in headless Chromium and watches what it says and asks for."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

import pytest

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
READY = "html[data-ready=yes]"
AXE = Path(__file__).parents[2] / ".venv" / "npm" / "node_modules" / "axe-core" / "axe.min.js"


@dataclass
class Watched:
    """An open page, what its console complained of, and what it asked the network for."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def ask(self, script: str) -> Any:
        return self.page.evaluate(script)


@contextmanager
def opened(
    html: Path,
    profile: Path,
    *,
    width: int = 1280,
    height: int = 900,
    scheme: Literal["light", "dark"] = "light",
    density: float = 1,
    touch: bool = False,
    address: str = "",
) -> Iterator[Watched]:
    """Open a file in a browser with a fresh profile, and wait until it has drawn itself."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = shutil.which("chromium") or playwright.chromium.executable_path
        if not Path(chromium).exists():
            pytest.skip("needs Chromium: make browser-test")
        context = playwright.chromium.launch_persistent_context(
            str(profile),
            executable_path=chromium,
            args=list(FLAGS),
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            device_scale_factor=density,
            has_touch=touch,
        )
        watched = Watched(context.pages[0])
        page = watched.page
        page.on("console", lambda said: watched.complaints.append(said.text))
        page.on("pageerror", lambda error: watched.complaints.append(str(error)))
        page.on("dialog", lambda dialog: watched.complaints.append(dialog.message))
        page.on("request", lambda asked: _note(watched, asked.url))
        start = perf_counter()
        page.goto(html.resolve().as_uri() + (f"#{address}" if address else ""))
        page.wait_for_selector(READY)
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        watched.seconds = perf_counter() - start
        yield watched
        context.close()


def axe_source() -> str:
    """The script of axe-core, or skip."""
    if not AXE.is_file():
        pytest.skip("needs axe-core: make browser-test")
    return AXE.read_text(encoding="utf-8")


def _note(watched: Watched, url: str) -> None:
    if not url.startswith(("file:", "data:")):
        watched.requests.append(url)
