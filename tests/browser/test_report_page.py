"""The report page as people use it: with a mouse, a keyboard, a phone, in the dark."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nodecopy import Graph
from nodecopy.report import page as page_sections
from nodecopy.report import page as pages
from tests.browser.chromium import Watched, opened
from tests.report import examples

pytestmark = pytest.mark.browser
VIEW = "graphViews.get('The graph')"


def at_node(watched: Watched, node: int, panel: int = 0) -> tuple[float, float]:
    """Where a node is on the screen."""
    canvas = watched.page.locator("canvas").nth(panel)
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    x, y = watched.ask(f"{VIEW}.view.apply([{VIEW}.px[{node}], {VIEW}.py[{node}]])")
    return box["x"] + x, box["y"] + y


def test_all_sections_are_there(watched: Watched) -> None:
    kinds = watched.ask("[...document.querySelectorAll('section')].map((element) => element.dataset.kind)")
    of_graphs = ["graphs", "statistics", "links", "classification", "attack"]
    assert kinds == [*of_graphs, "recommendations", "tables"]
    assert watched.page.locator("nav a").count() == len(kinds)
    assert watched.page.locator(".card").count() > 10
    assert watched.page.locator("#footer").inner_text().startswith("Written by nodecopy")


def test_ids_stay_text(watched: Watched) -> None:
    assert watched.ask("window.broken") is None
    assert watched.page.locator("main img, main script, main iframe").count() == 0
    assert watched.page.locator("#origin").inner_text() == examples.CRAFTED[0]
    shown = watched.ask(f"{VIEW}.data.ids")
    assert shown == examples.graph().node_ids.tolist()
    for node in range(len(examples.CRAFTED)):
        watched.ask(f"{VIEW}.select({node})")
        assert watched.page.locator(".detail b").text_content() == examples.CRAFTED[node]
    assert watched.ask("window.broken") is None


def test_pointing_at_a_node_names_it_and_choosing_it_shows_its_donor(watched: Watched) -> None:
    page = watched.page
    page.mouse.move(*at_node(watched, 9))
    assert page.locator(".detail b").inner_text() == "node 9"
    assert page.locator("canvas").first.get_attribute("title") == "node 9"
    page.mouse.click(*at_node(watched, 12, panel=1))
    page.mouse.move(5, 5)
    assert page.locator(".detail b").inner_text() == "node 12"
    donor = examples.samples(examples.graph())["sample 0"].donors[12]
    assert examples.graph().node_ids[donor] in page.locator(".detail").text_content()
    own, new = page.locator(".detail .chips").all()
    observed = examples.graph().adjacency[[12]].indices
    assert own.locator("button").all_text_contents() == examples.graph().node_ids[observed].tolist()
    sampled = examples.samples(examples.graph())["sample 0"].graph.adjacency[[12]].indices
    names = examples.graph().node_ids[sampled].tolist()
    assert sorted(new.locator("button").all_text_contents()) == sorted(names)
    copied = new.locator("button.copied").all_text_contents()
    row = examples.graph().adjacency[[donor]].indices
    assert sorted(copied) == sorted(examples.graph().node_ids[np.intersect1d(row, sampled)].tolist())
    new.locator("button").first.click()
    assert page.locator(".detail b").text_content() != "node 12"


def test_both_graphs_move_together(watched: Watched) -> None:
    page = watched.page
    x, y = at_node(watched, 30)
    page.get_by_label("zoom in").first.click()
    assert watched.ask(f"{VIEW}.view.k") == pytest.approx(1.5)
    page.mouse.move(x, y)
    page.mouse.wheel(0, 200)  # not yet touched: the page scrolls
    page.wait_for_timeout(200)
    assert watched.ask(f"{VIEW}.view.k") == pytest.approx(1.5)
    before = watched.ask(f"{VIEW}.view.x")
    x, y = at_node(watched, 30)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 80, y + 10, steps=4)
    page.mouse.up()
    assert watched.ask(f"{VIEW}.view.x") == pytest.approx(before + 80)
    page.mouse.wheel(0, -200)  # touched: it zooms
    page.wait_for_timeout(200)
    assert watched.ask(f"{VIEW}.view.k") > 1.6
    assert watched.ask(f"{VIEW}.panels.map((panel) => d3.zoomTransform(panel.canvas) === {VIEW}.view)") == [
        True,
        True,
    ]
    page.get_by_label("show the whole graph").first.click()
    assert watched.ask(f"{VIEW}.view.k") == 1


def test_keys_do_what_a_mouse_does(watched: Watched) -> None:
    page = watched.page
    page.keyboard.press("Tab")
    assert watched.ask("document.activeElement.className") == "skip"
    page.locator("canvas").first.focus()
    for key in ("+", "ArrowLeft", "n", "n"):
        page.keyboard.press(key)
    assert watched.ask(f"[{VIEW}.view.k, {VIEW}.selected]") == [pytest.approx(1.4), 1]
    page.keyboard.press("p")
    assert page.locator(".detail b").text_content() == examples.CRAFTED[0]
    page.keyboard.press("Escape")
    page.keyboard.press("0")
    assert watched.ask(f"[{VIEW}.view.k, {VIEW}.selected]") == [1, -1]
    reached = watched.ask(
        "[...document.querySelectorAll('button, select, input, a, canvas, summary')]"
        ".every((element) => element.tabIndex >= 0)"
    )
    assert reached
    unnamed = watched.ask(
        "[...document.querySelectorAll('button, select, input, canvas')].filter((element) => "
        "!(element.textContent.trim() || element.ariaLabel || element.labels?.length)).length"
    )
    assert unnamed == 0


def test_samples_and_colours_can_be_chosen(watched: Watched) -> None:
    page = watched.page
    page.get_by_label("sample").first.select_option("sample 1")
    assert "sample 1" in page.locator("figcaption").nth(1).inner_text()
    page.get_by_label("colour by").select_option("uncertainty")
    assert page.locator(".legend .ramp").count() == 1
    page.get_by_label("find a node").fill("node 25")
    assert page.locator(".detail b").inner_text() == "node 25"


def test_nodes_are_sorted_found_and_shown_in_the_graph(watched: Watched) -> None:
    page = watched.page
    table = page.locator("table.nodes")
    column = "[...document.querySelectorAll('table.nodes tbody tr')].map((row) => +row.cells[4].textContent)"
    values = watched.ask(column)
    assert values == sorted(values, reverse=True)
    table.get_by_role("button", name="total").click()
    values = watched.ask(column)
    assert values == sorted(values)
    assert table.locator("th[aria-sort]").inner_text().startswith("total")
    page.get_by_role("button", name="Show 28 more").click()
    assert table.locator("tbody tr").count() == 40
    page.get_by_label("find", exact=True).fill("NODE 3")
    assert table.locator("tbody tr").count() == 10  # 30 to 39; the crafted six have numbers 0 to 5
    table.get_by_role("button", name="node 33").click()
    assert watched.ask(f"{VIEW}.selected") == 33


@pytest.mark.parametrize("watched", [{"scheme": "dark"}], indirect=True)
def test_dark_where_the_reader_wants_it(watched: Watched) -> None:
    brightness = (
        "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).reduce((a, b) => a + +b, 0) / 3"
    )
    assert watched.ask(brightness) < 60
    watched.page.locator("#theme").click()
    assert watched.ask(brightness) > 200
    assert watched.page.locator("#theme").get_attribute("aria-label") == "Switch to dark"


@pytest.mark.parametrize(
    "watched", [{"width": 360, "height": 740, "density": 2, "touch": True}], indirect=True
)
def test_a_phone_is_wide_enough(watched: Watched) -> None:
    assert watched.ask("document.documentElement.scrollWidth - innerWidth") <= 0
    left, right = watched.page.locator("canvas").all()
    assert left.bounding_box()["y"] < right.bounding_box()["y"]  # one below the other
    sharpness = "[...document.querySelectorAll('canvas')].map((canvas) => canvas.width / canvas.clientWidth)"
    assert watched.ask(sharpness) == pytest.approx([2, 2], rel=0.01)
    watched.page.touchscreen.tap(*at_node(watched, 21))
    assert watched.page.locator(".detail b").inner_text() == "node 21"


def test_something_is_drawn(watched: Watched) -> None:
    inked = (
        "[...document.querySelectorAll('canvas')].map((element) => element.getContext('2d')"
        ".getImageData(0, 0, element.width, element.height).data.filter((v, i) => i % 4 === 3 && v).length)"
    )
    assert min(watched.ask(inked)) > 1000
    before = watched.ask("document.querySelector('canvas').toDataURL()")
    watched.ask(f"{VIEW}.select(3)")
    watched.page.wait_for_timeout(100)
    assert watched.ask("document.querySelector('canvas').toDataURL()") != before


def test_a_part_of_a_large_graph_is_said_to_be_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("playwright", reason="needs a browser: make browser-test")
    monkeypatch.setattr(page_sections, "MAX_NODES", 10)
    graph = examples.graph()
    pages.write_page(
        tmp_path / "part.html",
        "Part",
        [page_sections.graphs_section("The graph", graph, examples.samples(graph))],
    )
    with opened(tmp_path / "part.html", tmp_path / "profile") as watched:
        assert "10 of 40 nodes" in watched.page.locator("section").inner_text()
        for node in range(10):
            watched.ask(f"{VIEW}.select({node})")
        assert watched.complaints == []


def test_directed_graphs_and_graphs_without_edges_or_labels(tmp_path: Path) -> None:
    pytest.importorskip("playwright", reason="needs a browser: make browser-test")
    directed, empty = (
        examples.graph(directed=True),
        examples.graph().replace(adjacency=0 * examples.graph().adjacency, labels=None),
    )
    shown = [
        page_sections.graphs_section("The graph", directed, examples.samples(directed)),
        page_sections.graphs_section("Nothing", empty, {}),
        page_sections.graphs_section("Nobody", Graph(np.zeros((0, 0))), {}),
    ]
    pages.write_page(tmp_path / "two.html", "Two", shown)
    with opened(tmp_path / "two.html", tmp_path / "profile") as watched:
        rows = directed.adjacency
        for node, donor in enumerate(examples.samples(directed)["sample 0"].donors.tolist()):
            watched.ask(f"{VIEW}.select({node})")
            shown = watched.page.locator(".detail").first.locator(".chips").nth(1).locator(".copied")
            copied = directed.node_ids[rows[[donor]].indices].tolist()
            assert sorted(shown.all_text_contents()) == sorted(copied)
        watched.ask("graphViews.get('Nothing').select(2)")
        watched.page.locator("canvas").last.focus()
        for key in ("n", "p", "+", "ArrowUp", "0"):
            watched.page.keyboard.press(key)
        watched.page.wait_for_timeout(100)
        assert watched.complaints == []
