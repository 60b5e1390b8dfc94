"""Pictures of a report page for the documentation.

Run from the repository: ``python -m tests.browser.screenshots demo/report.html docs``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.browser.chromium import opened


def main(html: Path, folder: Path) -> None:
    """A wide light picture of the first graph, and a narrow dark one of the digits."""
    with TemporaryDirectory() as profiles:
        with opened(html, Path(profiles, "wide"), width=1200, height=850) as watched:
            watched.page.get_by_label("find a node").first.fill("5")
            watched.page.mouse.click(2, 2)
            watched.page.wait_for_timeout(300)
            watched.page.screenshot(path=folder / "report.png")
        with opened(html, Path(profiles, "narrow"), width=390, height=760, scheme="dark") as watched:
            watched.page.locator("section").nth(3).scroll_into_view_if_needed()
            watched.ask("document.querySelectorAll('section')[3].scrollIntoView({behavior: 'instant'})")
            watched.page.wait_for_timeout(300)
            watched.page.screenshot(path=folder / "report-phone.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
