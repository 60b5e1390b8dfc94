"""The report page at desktop and phone size, light and dark: what comes first, downloads, links, paper."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from benchmarks import bench_report
from nodecopy import Graph, compare
from nodecopy.report import page as page_sections
from nodecopy.report import page as pages
from nodecopy.report.page import result_tables_section
from nodecopy.report.sections import HeldOutPredictions, Stage, attack_section, classification_section
from tests.browser.chromium import READY, Watched, axe_source, opened
from tests.report import examples

pytestmark = pytest.mark.browser
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 800, "touch": True}
LOOKS = [{**size, "scheme": scheme} for size in (DESKTOP, PHONE) for scheme in ("light", "dark")]
EVERY_LOOK = pytest.mark.parametrize(
    "watched", LOOKS, indirect=True, ids=lambda look: f"{look['width']}-{look['scheme']}"
)
RESULTS = Path(__file__).parents[2] / "results"
VIEW = "graphViews.get('The graph')"


@pytest.fixture
def show(tmp_path: Path) -> Iterator[Any]:
    """Opens a page of some sections."""
    pytest.importorskip("playwright", reason="needs a browser: make browser-test")
    managers: list[Any] = []

    def show_sections(*sections: page_sections.Section, **settings: Any) -> Watched:
        html = tmp_path / f"page-{len(managers)}.html"
        pages.write_page(html, "A page", sections)
        managers.append(opened(html, tmp_path / f"profile-{len(managers)}", **settings))
        watched: Watched = managers[-1].__enter__()
        return watched

    yield show_sections
    for manager in reversed(managers):
        manager.__exit__(None, None, None)


@EVERY_LOOK
def test_nothing_is_wider_than_the_window_or_too_small_to_press(watched: Watched) -> None:
    page = watched.page
    assert watched.ask("document.documentElement.scrollWidth - innerWidth") <= 0
    for summary in page.locator("summary").all():
        if not summary.evaluate("(element) => element.parentElement.open"):
            summary.click()
    watched.ask(f"{VIEW}.select(12)")
    small = watched.ask(
        "[...document.querySelectorAll('button, select, input, summary, nav a')].filter((element) => {"
        "  const box = element.getBoundingClientRect();"
        "  return box.width && (box.width < 43.9 || box.height < 43.9);"
        "}).map((element) => element.outerHTML.slice(0, 120))"
    )
    assert small == []
    assert watched.ask("document.documentElement.scrollWidth - innerWidth") <= 0


@EVERY_LOOK
def test_axe_has_no_serious_findings(watched: Watched) -> None:
    axe = axe_source()
    watched.ask("document.querySelectorAll('details').forEach((element) => { element.open = true; })")
    watched.ask(f"{VIEW}.select(12)")
    watched.page.evaluate(axe)
    findings = watched.ask(
        "axe.run(document, {resultTypes: ['violations']}).then((found) => found.violations"
        ".filter((rule) => ['serious', 'critical'].includes(rule.impact))"
        ".map((rule) => [rule.id, rule.nodes.slice(0, 3).map((node) => node.html + node.failureSummary)]))"
    )
    assert findings == []


@EVERY_LOOK
def test_headlines_come_first(watched: Watched, html: Path) -> None:
    spaces = str.maketrans({"\u00a0": " "})
    for number, section in enumerate(examples.sections_of(html)):
        shown = watched.page.locator(f"#section-{number} .headline")
        texts = [text.translate(spaces) for text in shown.all_text_contents()]
        assert texts == ([section["headline"]] if section["headline"] else [])


@EVERY_LOOK
def test_the_navigation_stays_and_follows(watched: Watched) -> None:
    page = watched.page
    for number in (3, 5, 1):
        page.locator("nav a").nth(number).dispatch_event("click")
        link = f"document.querySelectorAll('nav a')[{number}]"
        page.wait_for_selector(f"nav a:nth-child({number + 1})[aria-current]")
        page.wait_for_timeout(200)
        assert page.locator("nav a[aria-current]").count() == 1
        assert watched.ask("document.querySelector('.bar').getBoundingClientRect().top") == pytest.approx(0)
        top = watched.ask(f"document.querySelector('#section-{number}').getBoundingClientRect().top")
        assert 40 < top < 100 or number == 5  # below the bar, or at the end of the page
        left, right = watched.ask(f"[{link}, {link}.parentElement].map((one) => one.getBoundingClientRect())")
        assert right["left"] - 1 <= left["left"] < right["right"]  # the link has scrolled into sight
        assert f"at=section-{number}" in page.url


def test_statistics_outside_of_the_range_come_first(show: Any) -> None:
    path = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4])
    circle = Graph.from_edges([0, 1, 2, 3, 4], [1, 2, 3, 4, 0])
    watched = show(page_sections.statistics_section({"samples": compare(path, [circle] * 50)}))
    page = watched.page
    cards = page.locator("section > div > .cards .card")
    assert cards.count() > 2
    assert cards.count() == page.locator(".card.outside").count()
    assert "their model does not explain it" in cards.first.inner_text()
    assert not page.locator("details .card").first.is_visible()
    page.locator("summary").click()
    assert page.locator("details .card").first.is_visible()
    assert page.locator("details .outside").count() == 0
    marked = page.locator(".card.outside svg line[stroke='var(--highlight)']").count()
    assert marked == cards.count()


@pytest.mark.parametrize("n", [12, 40])
def test_small_numbers_have_intervals_and_no_curves(show: Any, n: int) -> None:
    truth = np.arange(n) % 2
    p = np.where(np.arange(n) % 4 < 2, 0.8, 0.3)
    evaluation = HeldOutPredictions(np.column_stack([p, 1 - p]), truth, 1 - p)
    names = {"GCN": evaluation, "self-training": evaluation}
    predicted = examples.predicted(n)
    watched = show(
        classification_section(np.arange(n), ["a", "b"], predicted, np.arange(n), evaluations=names)
    )
    text = watched.page.locator("section").inner_text()
    assert ("No curves: 12 held-out nodes are too few" in text) == (n == 12)
    assert watched.page.locator("figure svg").count() == (0 if n == 12 else 2)
    assert "The model did not learn" in text
    assert re.search(r"50\.0 %\s+\d\d\.\d to \d\d\.\d %", text)
    assert watched.page.locator("tbody").first.locator("tr").count() == 2
    assert "did not learn" in watched.page.locator("tbody").first.inner_text()


@pytest.mark.parametrize("look", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_results_open_table_2_with_a_picture_and_a_fixed_column(show: Any, look: dict[str, Any]) -> None:
    section = result_tables_section(RESULTS)
    watched = show(section, **look)
    page = watched.page
    first = page.locator("section > div > details[open]")
    assert first.locator("summary").first.inner_text() == "Table 2"
    assert page.locator("section > div > details").count() == len(section["experiments"])
    assert page.locator("table").count() == first.locator("table").count()  # others are not even built
    cells = [
        cell
        for group in section["experiments"][section["open"]]["groups"]
        for row in group["cells"]
        for cell in row
        if cell and len(cell) > 2 and cell[0] is not None and cell[2] is not None
    ]
    assert first.locator("path.cell").count() == len(cells) > 40
    order = "document.querySelector('figure').compareDocumentPosition(document.querySelector('table'))"
    assert watched.ask(order) & 4  # the picture precedes the table
    page.locator("summary", has_text="Table 6").click()
    page.wait_for_timeout(100)
    scrolled = watched.ask(
        "(() => { const holder = [...document.querySelectorAll('.scroll')].at(-1); holder.scrollLeft = 5000;"
        "  const cells = ['thead', 'tbody'].map((part) => holder.querySelector(`${part} th`));"
        "  const left = holder.getBoundingClientRect().left;"
        "  return [holder.scrollLeft, ...cells.map((cell) => cell.getBoundingClientRect().left - left),"
        "    cells[1].getBoundingClientRect().width / holder.clientWidth]; })()"
    )
    assert scrolled[0] > 50
    assert scrolled[1:3] == pytest.approx([1, 1], abs=1)
    assert scrolled[3] < 0.6  # and leaves room for the numbers
    assert "tables=table2%2Ctable6" in page.url


def test_every_download_has_its_kind(watched: Watched, tmp_path: Path) -> None:
    page = watched.page
    page.locator("details").evaluate_all("(all) => all.forEach((one) => { one.open = true; })")
    page.wait_for_timeout(100)
    buttons = page.get_by_role("button", name=re.compile("^Download "))
    assert buttons.count() >= 16
    kinds = {"CSV": 0, "SVG": 0, "PNG": 0}
    for button in buttons.all():
        kind = button.inner_text()
        kinds[kind] += 1
        with page.expect_download() as event:
            button.click()
        file = tmp_path / event.value.suggested_filename
        event.value.save_as(file)
        assert file.suffix == f".{kind.lower()}"
        if kind == "CSV":
            rows = list(csv.reader(file.read_text(encoding="utf-8").splitlines()))
            assert len(rows) > 1
        elif kind == "SVG":
            root = ElementTree.fromstring(file.read_text(encoding="utf-8"))
            assert len(list(root.iter())) > 20
            styles = "".join(element.get("style", "") for element in root.iter())
            assert "var(--" not in styles
        else:
            assert file.read_bytes().startswith(b"\x89PNG")
            assert file.stat().st_size > 3000
    assert kinds["CSV"] >= 6
    assert kinds["SVG"] == kinds["PNG"] >= 5


def test_downloads_hold_the_numbers_and_no_formulas(watched: Watched, html: Path) -> None:
    page = watched.page
    with page.expect_download() as event:
        page.get_by_role("button", name="Download predictions as CSV").click()
    rows = list(csv.reader(Path(event.value.path()).read_text(encoding="utf-8").split("\n")[:-1]))
    section = next(one for one in examples.sections_of(html) if one["kind"] == "classification")
    assert rows[0] == ["node", "predicted", "truth", "probability", "total", "aleatoric", "epistemic"]
    assert [row[0] for row in rows[1:]] == section["ids"]
    assert [float(row[4]) for row in rows[1:]] == section["total"]
    assert watched.ask("csvLine(['=1+1', -5, '@x', 'a,\"b\"', null])") == '\'=1+1,-5,\'@x,"a,""b""",\r\n'


def test_a_link_reopens_the_view(watched: Watched) -> None:
    page = watched.page
    watched.ask(f"{VIEW}.select(0)")  # a crafted id
    page.get_by_label("sample").first.select_option("sample 1")
    page.get_by_label("colour by").first.select_option("predicted class")
    page.locator(".legend button").nth(1).click()
    page.get_by_label("zoom in").first.click()
    page.locator("table.nodes").get_by_role("button", name="epistemic").click()
    page.get_by_label("find", exact=True).fill("node 3")
    page.locator("section[data-kind=recommendations]").get_by_label("user").select_option("user 7")
    page.locator("section[data-kind=recommendations] tbody th button").nth(1).click()
    page.locator("#theme").click()
    page.locator("nav a").nth(4).dispatch_event("click")
    page.wait_for_timeout(400)
    state = (
        f"[{VIEW}.selected, {VIEW}.sample, {VIEW}.colouring, {VIEW}.onlyClass, {VIEW}.view.k.toFixed(3),"
        f" {VIEW}.view.x.toFixed(0), document.documentElement.dataset.theme,"
        " document.querySelector('table.nodes').innerText,"
        " document.querySelector('[data-kind=recommendations]').innerText,"
        " document.querySelector('nav a[aria-current]').textContent]"
    )
    expected = watched.ask(state)
    assert expected[:5] == [0, 2, 1, 1, "1.500"]
    assert expected[6] == "dark"
    second = page.context.new_page()
    second.goto(page.url)
    second.wait_for_selector(READY)
    second.wait_for_timeout(400)
    assert second.evaluate(state) == expected
    assert second.evaluate("scrollY") == pytest.approx(watched.ask("scrollY"), abs=5)


def test_another_address_opens_another_user_and_item(watched: Watched) -> None:
    page = watched.page
    section = page.locator("section[data-kind=recommendations]")
    users = section.locator("select")
    users.select_option("user 7")
    section.locator("tbody th button").nth(1).click()
    item = section.locator(".explanation b").text_content()
    address = watched.ask("location.hash")
    users.select_option("user 8")
    section.locator("tbody th button").nth(1).click()
    watched.ask(f"location.hash = {address!r}")
    page.wait_for_timeout(100)
    assert section.locator("h3").first.text_content().startswith("History of user 7")
    assert section.locator(".explanation b").text_content() == item
    assert watched.ask("location.hash") == address


def test_addresses_of_other_pages_do_no_harm(html: Path, tmp_path: Path) -> None:
    pytest.importorskip("playwright", reason="needs a browser: make browser-test")
    addresses = ("%E0%A4%A&=&at=nowhere&g0.node=%", "g0.view=a,b&g0.sample=99&g0.colour=-1&sort=x&tables=x")
    for number, address in enumerate(addresses):
        with opened(html, tmp_path / f"profile-{number}", address=address) as other:
            assert other.complaints == []
            assert other.ask(f"{VIEW}.selected") == -1


@EVERY_LOOK
def test_paper_has_no_controls_and_is_light(watched: Watched, tmp_path: Path) -> None:
    page = watched.page
    theme = watched.ask("document.documentElement.dataset.theme")
    page.emulate_media(media="print")
    watched.ask("window.dispatchEvent(new Event('beforeprint'))")
    assert watched.ask("document.documentElement.dataset.theme") == "light"
    assert not any(element.is_visible() for element in page.locator(".bar, .tools, .downloads").all())
    assert page.locator("[data-kind=statistics] details").evaluate("(element) => element.open")
    assert page.pdf().startswith(b"%PDF")
    watched.ask("window.dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    assert watched.ask("document.documentElement.dataset.theme") == theme


def test_dense_graphs_have_fainter_edges(show: Any) -> None:
    draws = np.random.default_rng(0)
    sections = []
    for title, n_edges in (("Sparse", 60), ("Dense", 6000)):
        source = draws.integers(200, size=n_edges)
        target = (source + draws.integers(1, 200, size=n_edges)) % 200
        graph = Graph.from_edges(source, target, node_ids=np.arange(200))
        sections.append(page_sections.graphs_section(title, graph, {}))
    watched = show(*sections)
    opacities = watched.ask("[...graphViews.values()].map((view) => view.alphas[0].alphas)")
    (_, _, sparse), (short, _, dense) = opacities
    assert dense < 0.3 * sparse
    assert dense <= short
    # Edges that cross are darker than one alone, so that structure shows.
    levels = watched.ask(
        "(() => { const canvas = document.querySelectorAll('canvas')[1], data = canvas.getContext('2d')"
        ".getImageData(0, 0, canvas.width, canvas.height).data, seen = new Set();"
        "for (let i = 3; i < data.length; i += 4) seen.add(data[i]); return seen.size; })()"
    )
    assert levels > 30


def test_a_class_can_be_shown_alone(watched: Watched) -> None:
    entry = watched.page.locator(".legend button").nth(1)
    before = watched.ask("document.querySelector('canvas').toDataURL()")
    entry.click()
    watched.page.wait_for_timeout(100)
    assert watched.page.locator(".legend button").nth(1).get_attribute("aria-pressed") == "true"
    assert watched.ask(f"{VIEW}.onlyClass") == 1
    assert watched.ask("document.querySelector('canvas').toDataURL()") != before
    watched.page.locator(".legend button").nth(1).click()
    assert watched.ask(f"{VIEW}.onlyClass") == -1


def test_evidence_and_distrusted_edges_of_the_attacked_node(show: Any) -> None:
    page = show(attack_section(examples.attacked(), examples.graph().node_ids)).page
    by_class, edges = page.locator("table").all()
    assert [row.split("\t")[0] for row in by_class.locator("tbody").inner_text().splitlines()] == [
        "features",
        "edges, in nats",
        "all evidence",
    ]
    heads = by_class.locator("thead th").all_inner_texts()
    evidence = examples.attacked().evidence
    assert evidence is not None
    likeliest = sorted(evidence.probabilities.items(), key=lambda item: -item[1])
    assert [head.split(" (")[0] for head in heads[1:]] == [name for name, _ in likeliest]
    first = edges.locator("tbody tr").first.inner_text()
    assert "distrusted" in first
    assert "its ends do not resemble those of other edges" in first
    assert "1 of 2 edges is distrusted" in page.locator("main, body").first.inner_text()


@pytest.mark.parametrize("watched", [{"width": 390, "height": 800, "touch": True}], indirect=True)
def test_the_first_results_fit_on_a_phone(watched: Watched) -> None:
    """The method and the whole of the first column, verdicts included, are visible without scrolling."""
    cells = watched.page.locator("details[open] table.results tbody tr > :nth-child(2)")
    right = watched.ask("document.querySelector('details[open] .scroll').getBoundingClientRect().right")
    boxes = [cell.bounding_box() for cell in cells.all()]
    assert boxes
    assert all(box["x"] + box["width"] <= right for box in boxes)


def test_attacked_neighbours_stay_where_they_are(show: Any) -> None:
    attacked = examples.attacked()
    before, after, corrected = attacked.stages
    stages = (before, Stage("attacked", [(20, "added"), (1, "own")], after.probabilities), corrected)
    section = attack_section(replace(attacked, stages=stages), np.arange(examples.N_NODES))
    page = show(section).page
    lines = [figure.locator("svg").first.locator("line").all() for figure in page.locator("figure").all()]
    ends = [[tuple(line.get_attribute(key) for key in ("x2", "y2")) for line in part] for part in lines]
    assert ends[1][: len(ends[0])] == ends[0]  # own edge, removed edge, then the added one
    dashes = [line.get_attribute("stroke-dasharray") for line in lines[1]]
    assert [dash is not None for dash in dashes] == [False, True, False]
    colours = [[line.get_attribute("stroke") for line in part] for part in lines]
    assert colours == [["var(--ink)"] * 2, ["var(--ink)", "var(--error)", "var(--error)"], ["var(--copied)"]]
    texts = page.locator("figure").all_inner_texts()
    assert "1 own edge, all of class" in texts[1]
    assert "✗ 80 %" in texts[1]
    assert "✓ 70 %" in texts[2]


def test_a_recommendation_is_explained(watched: Watched, html: Path) -> None:
    section = watched.page.locator("section[data-kind=recommendations]")
    data = next(one for one in examples.sections_of(html) if one["kind"] == "recommendations")
    user = next(i for i, one in enumerate(data["users"]) if len(one["items"]) > 1)
    section.get_by_label("user").select_option(str(user))
    item, _, because, donors = data["users"][user]["items"][1]
    section.locator("tbody th button").nth(1).click()
    assert section.locator(".explanation b").text_content() == data["item_names"][item]
    shares = section.locator(".explanation .shares").all()
    assert shares[0].locator("li").count() == len(because) // 2
    assert shares[1].locator("li").count() == len(donors) // 2
    marked = section.locator("svg path[stroke='var(--highlight)']").count()
    assert marked == len(because) // 2
    assert section.locator("tbody th button").nth(1).get_attribute("aria-pressed") == "true"


@pytest.mark.slow
def test_a_hundred_thousand_nodes_open_in_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("playwright", reason="needs a browser: make browser-test")
    monkeypatch.setattr(bench_report, "N_SAMPLES", 1)
    bench_report.write(tmp_path / "page.html", 100_000)
    seconds: list[float] = []
    while len(seconds) < 10 and min(seconds, default=1) >= 1:  # other processes can only add to the time
        with opened(tmp_path / "page.html", tmp_path / f"profile-{len(seconds)}") as watched:
            seconds.append(watched.seconds)
            assert "of 100,000 nodes" in watched.page.locator("main").inner_text()
            assert watched.complaints == []
    assert min(seconds) < 1
