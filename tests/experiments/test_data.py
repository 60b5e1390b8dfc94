"""Datasets in files of the user, and networks of known models."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence

from nodecopy import Interactions, datasets, write_graph
from nodecopy.errors import InputError
from nodecopy.experiments import config as toml
from nodecopy.experiments.data import (
    KNOWN_NETWORKS,
    KnownNetwork,
    StubMatching,
    change_graph,
    draw_null_network,
    factored_odds,
)
from nodecopy.experiments.rendering import summarise
from nodecopy.experiments.runner import run
from nodecopy.experiments.store import Store
from nodecopy.metrics.structure import select_statistics
from tests.experiments.fakes import TOML
from tests.experiments.test_attacks import TOML as ATTACKS
from tests.experiments.test_generation import TOML as SAMPLES
from tests.experiments.test_recommendation import TOML as BOOKS

CLUB = datasets.load("karate")
ENTRY = '{ name = "mine", edges = "data/edges.csv", labels = "data/labels.csv" }'
LOG = '{ name = "mine", interactions = "data/log.csv", rating = "stars" }'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the karate club and the library in files."""
    data = tmp_path / "data"
    data.mkdir()
    write_graph(CLUB, data / "edges.csv")
    labels: Any = CLUB.labels
    rows = [f"{node},{label}" for node, label in zip(CLUB.node_ids, labels, strict=True)]
    (data / "labels.csv").write_text("\n".join(["id,label", *rows, ""]))
    users, items, _ = datasets.load("library").table()
    log = [f"{pair[0]},{pair[1]},{n % 5 + 1}" for n, pair in enumerate(zip(users, items, strict=True))]
    (data / "log.csv").write_text("\n".join(["user,item,stars", *log, ""]))
    return tmp_path


def load(folder: Path, text: str, entry: str = ENTRY) -> Any:
    """Write and load an experiment whose only dataset is the entry."""
    text = re.sub(r'datasets = \["[a-z]+"\]', f"datasets = [{entry}]", text)
    text = re.sub(r"\[published.*", "", text, flags=re.DOTALL)
    (folder / "own.toml").write_text(text)
    return toml.load(folder / "own.toml", trust=True)


def fingerprints(experiment: Any) -> list[str]:
    return [cell.fingerprint for cell in experiment.cells(0)]


@pytest.mark.parametrize(
    ("text", "entry"),
    [(TOML.format(pause=0, log=""), ENTRY), (ATTACKS, ENTRY), (SAMPLES, ENTRY), (BOOKS, LOG)],
    ids=["classify", "attack", "generate", "recommend"],
)
def test_every_task_runs_on_files(folder: Path, text: str, entry: str) -> None:
    experiment, store = load(folder, text, entry).narrow(trials=1), Store(folder / "store")
    run(experiment, store)
    results = summarise(experiment, store)
    assert {dataset for dataset, *_ in results.cells} == {"mine"}
    assert all(summary.n for summary in results.cells.values())


def test_the_graph_is_that_of_the_files(folder: Path) -> None:
    cell = load(folder, SAMPLES).cells(0)[0]
    assert cell.task.load(cell).rows == CLUB.rows
    log = load(folder, BOOKS, LOG).cells(0)[0]
    read = log.task.load(log)
    assert isinstance(read, Interactions)
    assert set(np.unique(read.matrix.data)) == {1, 2, 3, 4, 5}  # the option rating is used
    directed = load(folder, SAMPLES, ENTRY.replace(" }", ", directed = true }")).cells(0)[0]
    assert directed.task.load(directed).directed
    rows = [f"{node},1.5,text {node}" for node in CLUB.node_ids]
    (folder / "data" / "features.csv").write_text("\n".join(["id,x,note", *rows, ""]))
    entry = ENTRY.replace(" }", ', features = "data/features.csv", ignore_columns = ["note"] }')
    measured = load(folder, SAMPLES, entry).cells(0)[0]
    assert measured.task.load(measured).features.shape == (34, 1)


def test_fingerprints_follow_contents_and_options_but_not_paths(folder: Path) -> None:
    before = fingerprints(load(folder, SAMPLES))
    (folder / "data").rename(folder / "elsewhere")
    moved = ENTRY.replace("data/", "elsewhere/")
    assert fingerprints(load(folder, SAMPLES, moved)) == before
    assert fingerprints(load(folder, SAMPLES, moved.replace(" }", ", directed = true }"))) != before
    with (folder / "elsewhere/edges.csv").open("a") as file:
        file.write("1,34\n")
    assert not set(fingerprints(load(folder, SAMPLES, moved))) & set(before)


def test_flips_of_attacks_follow_the_contents(folder: Path) -> None:
    """Flips are shared by methods: those of another graph under the same name must not be used."""
    first = load(folder, ATTACKS).cells(0)[-1]
    (folder / "data/labels.csv").write_text((folder / "data/labels.csv").read_text().replace("Hi", "Ho"))
    second = load(folder, ATTACKS).cells(0)[-1]
    assert first.task.shared_files(first, 0) != second.task.shared_files(second, 0)


def test_files_that_change_while_an_experiment_runs(folder: Path) -> None:
    cell = load(folder, SAMPLES).cells(0)[0]
    with (folder / "data/edges.csv").open("a") as file:
        file.write("1,34\n")
    with pytest.raises(InputError, match="files of the dataset mine must not change"):
        cell.task.load(cell)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("edges.csv", "edgse.csv", "edges of mine must be a file; .*edgse.csv is none"),
        ("edges =", "egdes =", r"key of an entry of datasets of \[protocol\] .*Did you mean edges"),
        ('edges = "data/edges.csv", ', "", "an entry of datasets of .* must have edges; it has name, labels"),
        ('"mine"', '"karate"', "must not be the name of a dataset of the package; got 'karate'"),
        ('"mine"', '"My graph"', "name of an entry of datasets .* must be of lower-case letters"),
        (" }", ", directed = [1] }", "directed of mine must be a text, a number, true or false; got"),
        (ENTRY, f"{ENTRY}, {ENTRY}", "datasets of .* must be a list of different entries"),
        (ENTRY, LOG, "mine of datasets of .* must have edges; it has interactions"),
    ],
)
def test_mistakes_are_named(folder: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load(folder, SAMPLES, ENTRY.replace(old, new))


def write_measurements(folder: Path) -> None:
    """Write the club with calls as weights and two measurements per member."""
    source, target, _ = CLUB.edges()
    calls = [f"{a},{b},{1 + (a + b) % 3}" for a, b in zip(source, target, strict=True)]
    (folder / "edges.csv").write_text("\n".join(["source,target,calls", *calls, ""]))
    (folder / "labels.csv").write_text((folder / "data/labels.csv").read_text())
    numbers = [f"{node},{node % 3},{node % 5}" for node in CLUB.node_ids]
    (folder / "features.csv").write_text("\n".join(["id,a,b", *numbers, ""]))


def test_the_documented_experiment_runs(folder: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/experiments.md").read_text(encoding="utf-8")
    text = re.findall(r"```toml\n(.*?)```", page.partition("## Your own data")[2], re.DOTALL)[0]
    (folder / "club.toml").write_text(text)
    write_measurements(folder)
    experiment, store = toml.load(folder / "club.toml"), Store(folder / "store")
    run(experiment, store)
    assert [(cell.dataset, cell.method) for cell in experiment.cells(0)] == [
        (dataset, method) for dataset in ("karate", "mine") for method in ("gcn", "mlp")
    ]
    assert all(summary.n == 4 for summary in summarise(experiment, store).cells.values())
    cell = experiment.cells(0)[-1]
    assert experiment.task.load(cell).is_weighted


@pytest.mark.parametrize("name", KNOWN_NETWORKS)
def test_networks_depend_on_their_seeds_alone(name: str) -> None:
    first, again = (KnownNetwork.by_name(name, 60, 10, SeedSequence(0)) for _ in range(2))
    assert np.array_equal(first.probabilities, again.probabilities)
    assert first.draw(SeedSequence(1)) == again.draw(SeedSequence(1))
    assert first.draw(SeedSequence(1)) != first.draw(SeedSequence(2))
    assert first.draw(SeedSequence(1)).directed == (name == "directed")


@pytest.mark.parametrize("name", KNOWN_NETWORKS)
def test_edges_occur_with_their_probabilities(name: str) -> None:
    """The number of edges of 200 networks; five standard errors of its mean."""
    network = KnownNetwork.by_name(name, 100, 10, SeedSequence(0))
    pairs = ~np.eye(100, dtype=bool) if network.directed else np.triu(np.ones((100, 100), bool), 1)
    p = network.probabilities[pairs]
    assert 0 <= p.min() <= p.max() <= 1
    share = {"absent": 0.9**2, "busy": 0.8}.get(name, 1.0)  # of the edges, whose nodes are there or active
    numbers = [network.draw(SeedSequence(seed)).n_edges for seed in range(200)]
    assert np.mean(numbers) == pytest.approx(share * p.sum(), abs=5 * np.std(numbers) / 200**0.5)
    assert np.var(numbers) / (p * (1 - p)).sum() == pytest.approx(1, abs=0.5) or share < 1


def test_odds_factor_within_pairs_of_blocks() -> None:
    network = factored_odds(200, 15, SeedSequence(1))
    p, blocks = network.probabilities, network.blocks
    odds = p / (1 - p)
    assert odds.max() > 1  # a limit of probabilities would be seen
    for first, second in ((0, 0), (0, 1), (1, 1)):
        part = odds[np.ix_(blocks == first, blocks == second)]
        assert part == pytest.approx(np.outer(part[:, 0], part[0]) / part[0, 0])


def test_planted_triangles_are_there() -> None:
    plain, planted = (
        select_statistics(draw_null_network(name, 200, 6, SeedSequence(3)), ["triangles"])["triangles"]
        for name in ("configuration", "planted-triangles")
    )
    assert planted > plain + 50


def test_stub_matching_is_that_of_networkx() -> None:
    """The means of edges and triangles of 300 samples each; five standard errors of the difference."""
    nx = pytest.importorskip("networkx")
    graph = draw_null_network("configuration", 60, 10, SeedSequence(0))
    model, names = StubMatching().fit(graph), ["n_edges", "triangles"]
    samples = model.sample_many(300, rng=0)
    ours = np.array([list(select_statistics(sample, names).values()) for sample in samples])
    theirs = []
    for seed in range(300):
        network = nx.Graph(nx.configuration_model(graph.degrees.tolist(), seed=seed))
        network.remove_edges_from(list(nx.selfloop_edges(network)))
        theirs.append([network.number_of_edges(), sum(nx.triangles(network).values()) // 3])
    difference = ours.mean(axis=0) - np.mean(theirs, axis=0)
    assert (np.abs(difference) < 5 * ours.std(axis=0) * np.sqrt(2 / 300)).all()


def test_changed_graphs_have_the_homophily_features_and_sizes_they_state() -> None:
    graph, seed = datasets.load("digits").subgraph(range(800)), SeedSequence(0)
    codes: Any = graph.label_codes
    edges, dense = (change_graph(graph, name, seed) for name in ("edges", "dense"))
    shares = []
    for changed in (graph, edges, dense):
        source, target, _ = changed.edges()
        shares.append(float((codes[source] == codes[target]).mean()))
    assert shares[1] == pytest.approx(0.4, abs=0.03)  # five standard deviations
    assert shares[2] == pytest.approx(shares[0], abs=0.03)
    assert 1.7 < dense.n_edges / graph.n_edges < 2.01
    features: Any = change_graph(graph, "features", seed).features
    assert features.shape == (800, 6)
    thin: Any = change_graph(graph, "thin", seed).label_codes
    assert np.bincount(thin)[1::2].tolist() == [40] * 5
    assert np.bincount(thin)[::2].tolist() == np.bincount(codes)[::2].tolist()
