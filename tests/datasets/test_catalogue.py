"""Loading by name; the real files are read where ``NODECOPY_DATA`` names their folder."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from nodecopy import datasets
from nodecopy.datasets import catalogue, fetching
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.interactions import Interactions

needs_data = pytest.mark.skipif(
    not os.environ.get("NODECOPY_DATA"), reason="NODECOPY_DATA does not name the folder of the real files"
)


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty cache; there is no data folder and no network."""

    def unreachable(location: str) -> bytes:
        raise OSError("offline")

    monkeypatch.delenv("NODECOPY_DATA", raising=False)
    monkeypatch.setenv("NODECOPY_CACHE", str(tmp_path))
    monkeypatch.setattr(fetching, "download", unreachable)
    return tmp_path


def test_the_typed_names_are_the_names() -> None:
    kinds = {name: datasets.describe(name).kind for name in datasets.names()}
    for kind, names in (("graph", catalogue.GraphName), ("interactions", catalogue.InteractionsName)):
        assert {name for name in kinds if kinds[name] == kind} == set(get_args(names))


def test_every_digest_is_used() -> None:
    files = [file for dataset in catalogue.DATASETS.values() for form in dataset.forms for file in form.files]
    assert sorted(file.path for file in files) == sorted(catalogue.SHA256)
    assert all(len(file.sha256) == 64 for file in files)
    assert all(file.sources or file.origin for file in files)


@pytest.mark.parametrize(
    ("call", "fragment"),
    [
        (lambda: datasets.load("citseer"), "Did you mean citeseer"),
        (lambda: datasets.load("ml-100k", largest_component=True), "largest_component must be False"),
        (lambda: datasets.load("cora", raw=True), "raw must be False"),
        (lambda: datasets.load_split("library"), "must be one of gowalla, yelp2018, amazon-beauty; got"),
    ],
)
def test_wrong_calls(call: Callable[[], object], fragment: str, empty: Path) -> None:
    with pytest.raises(InputError, match=fragment):
        call()


@pytest.mark.parametrize(
    "name", [name for name in datasets.names() if name not in ("karate", "digits", "library")]
)
def test_without_files(name: str, empty: Path) -> None:
    description = datasets.describe(name)
    assert not description.present
    assert description.paths == ()
    with pytest.raises(InputError, match=r"is missing\. Looked at:(.|\n)*NODECOPY_DATA"):
        datasets.load(name)
    with pytest.raises(InputError, match="not fetched yet"):
        datasets.verify(name)


def test_embedded_datasets_are_always_there(empty: Path) -> None:
    assert datasets.describe("karate").present
    assert datasets.fetch("karate") == datasets.verify("karate") == ()


def test_cora_is_read_from_text_if_need_be(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = {"cora/cora.content": b"31\t0\t1\tTheory\n7\t1\t1\tGenetic\n", "cora/cora.cites": b"7\t31\n"}
    planetoid, form = catalogue.DATASETS["cora"].forms
    small = tuple(
        fetching.DataFile(file.path, hashlib.sha256(text[file.path]).hexdigest(), file.sources)
        for file in form.files
    )
    both = (planetoid, catalogue.Form(form.reader, small))
    toy = catalogue.Dataset("toy", {"nodes": 2, "edges": 1}, both)
    monkeypatch.setitem(catalogue.DATASETS, "cora", toy)
    for path, content in text.items():
        (empty / path).parent.mkdir(exist_ok=True)
        (empty / path).write_bytes(content)
    assert datasets.load("cora").node_ids.tolist() == [31, 7]
    assert datasets.verify("cora") == tuple(empty / file.path for file in small)
    (empty / "cora" / "cora.cites").unlink()
    with pytest.raises(InputError, match=r"ind\.cora\.allx is missing(.|\n)*Or: cora/cora\.cites is missing"):
        datasets.load("cora")


@needs_data
@pytest.mark.parametrize("name", [name for name in datasets.names() if name != "digits"])
def test_real_counts(name: str) -> None:
    description = datasets.describe(name)
    data = datasets.load(name)
    if isinstance(data, Graph):
        assert description.counts == {"nodes": data.n_nodes, "edges": data.n_edges}
        assert not data.directed
    else:
        sizes = {"users": data.n_users, "items": data.n_items, "interactions": data.n_interactions}
        assert description.counts == sizes
        assert data.rows.degrees.min() >= 1
    assert data.rows.weights is None
    assert description.present
    assert datasets.verify(name) == datasets.fetch(name) == description.paths


@needs_data
@pytest.mark.parametrize(
    ("name", "n_nodes", "n_edges", "mean", "maximum", "n_features", "n_classes"),
    [
        ("cora", 2485, 5069, 4.08, 168, 1433, 7),
        ("polblogs", 1222, 16714, 27.36, 351, None, 2),
        ("bitcoin", None, 491, 2.081, 53, None, 2),
        ("amazon-photo", 7487, 119043, 31.80, 1434, 745, 8),
        ("citeseer", None, 4552, 2.74, 99, 3703, 6),
        ("pubmed", None, 44324, 4.50, 171, 500, 3),
        ("coauthor-cs", None, 81894, 8.93, 136, 6805, 15),
    ],
)
def test_real_graphs(
    name: str, n_nodes: Any, n_edges: int, mean: float, maximum: int, n_features: Any, n_classes: int
) -> None:
    """The statistics of Table 1, of the largest component where it names a number of nodes."""
    graph: Any = datasets.load(name, largest_component=n_nodes is not None)
    assert graph.n_nodes == (n_nodes or datasets.describe(name).counts["nodes"])
    assert (graph.n_edges, graph.degrees.max()) == (n_edges, maximum)
    assert graph.degrees.mean() == pytest.approx(mean, abs=0.006)
    assert np.unique(graph.label_codes[graph.label_codes >= 0]).tolist() == list(range(n_classes))
    unknown = np.flatnonzero(graph.label_codes < 0)
    assert len(unknown) == (15 if name == "citeseer" else 0)
    if n_features is None:
        assert graph.features is None
        return
    assert graph.features.shape == (graph.n_nodes, n_features)
    assert graph.features.dtype == np.float32
    assert graph.features[unknown].sum() == 0
    assert name != "coauthor-cs" or graph.features.max() == 105  # counts
    split = datasets.label_split(graph.label_codes, rng=0)
    assert [len(part) for part in split] == [20 * n_classes, 500, 1000]


@needs_data
def test_raw_interactions_and_the_papers_split() -> None:
    raw = datasets.load("ml-100k", raw=True)
    assert (raw.n_users, raw.n_items, raw.n_interactions) == (943, 1682, 100_000)
    assert raw.is_weighted
    whole = datasets.load("ml-100k")
    assert isinstance(whole, Interactions)
    split = datasets.interaction_split(whole, rng=0)
    assert [part.n_interactions for part in split] == [36_999, 5_286, 10_572]
    cds = datasets.load("amazon-cds", raw=True)
    assert (cds.n_users, cds.n_items, cds.n_interactions) == (43_169, 35_648, 777_426)


@needs_data
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("gowalla", (810128, 91047, 217242)),
        ("yelp2018", (1237259, 143751, 324147)),
        ("amazon-beauty", (60818, 6082, 18688)),
    ],
)
def test_published_splits(name: str, sizes: tuple[int, ...]) -> None:
    split = datasets.load_split(name)
    assert tuple(part.n_interactions for part in split) == sizes
    counts = datasets.describe(name).counts
    assert (split.train.n_users, split.train.n_items) == (counts["users"], counts["items"])


# Data without files, against the libraries that also carry them.


def test_karate_against_networkx() -> None:
    networkx = pytest.importorskip("networkx")
    club = datasets.load("karate")
    reference = networkx.karate_club_graph()
    source, target, _ = club.edges()
    assert club.node_ids.tolist() == list(range(1, 35))
    expected = {(a + 1, b + 1) for a, b in reference.edges}
    assert set(zip(source.tolist(), target.tolist(), strict=True)) == expected
    named = club.labels
    assert named is not None
    assert named.tolist() == [reference.nodes[node]["club"] for node in reference]


def test_digits() -> None:
    graph = datasets.load("digits")
    assert (graph.n_nodes, graph.n_edges) == (1797, 6309)
    assert graph.features is not None
    assert graph.features.shape == (1797, 64)
    assert graph.label_codes is not None
    assert np.unique(graph.label_codes).tolist() == list(range(10))
    source, target, _ = graph.edges()
    assert (graph.label_codes[source] == graph.label_codes[target]).mean() > 0.95
    assert graph.degrees.min() >= 5
