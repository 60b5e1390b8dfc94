"""Runs that are stopped and continue in a folder."""

from __future__ import annotations

import os
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodecopy import Graph, SameLabel, datasets, inference
from nodecopy._core.messages import mute_data_warnings
from nodecopy.errors import InputError
from nodecopy.inference import bootstrap
from nodecopy.inference import results as intervals

CLUB = datasets.load("karate")
SETTINGS: dict[str, Any] = {"model": SameLabel(), "rng": 5}
NAMES = ["density", "degrees"]


class StopRunError(Exception):
    """What ends a run."""


def test_a_run_that_was_stopped_continues_with_the_same_samples(tmp_path: Path) -> None:
    calls = []

    def edges(graph: Graph) -> float:
        calls.append(graph)
        if len(calls) == 12:  # the observed graph and ten samples are finished
            raise StopRunError
        return float(graph.n_edges)

    store = tmp_path / "run"
    with pytest.raises(StopRunError):
        bootstrap(CLUB, edges, n=30, store=store, **SETTINGS)
    again = bootstrap(CLUB, edges, n=30, store=store, **SETTINGS)
    assert len(calls) == 12 + 1 + 20
    whole = bootstrap(CLUB, edges, n=30, **SETTINGS)
    np.testing.assert_array_equal(again.values["edges"], whole.values["edges"])
    assert again.estimates == whole.estimates


def test_a_row_that_was_written_in_part_is_dropped(tmp_path: Path) -> None:
    bootstrap(CLUB, NAMES, n=10, store=tmp_path / "run", **SETTINGS)
    file = tmp_path / "run" / "001.f64"
    file.write_bytes(file.read_bytes()[:-5])
    again = bootstrap(CLUB, NAMES, n=15, store=tmp_path / "run", **SETTINGS)
    whole = bootstrap(CLUB, NAMES, n=15, **SETTINGS)
    for name in NAMES:
        np.testing.assert_array_equal(again.values[name], whole.values[name])
        np.testing.assert_array_equal(np.asarray(again[name].low), np.asarray(whole[name].low))


def test_a_run_that_is_complete_writes_nothing(tmp_path: Path) -> None:
    """Its folder may be one that can be read only."""
    first = bootstrap(CLUB, NAMES, n=10, store=tmp_path / "run", **SETTINGS)
    files = sorted((tmp_path / "run").iterdir())
    for file in files:
        os.utime(file, (0, 0))
    again = bootstrap(CLUB, NAMES, n=10, store=tmp_path / "run", **SETTINGS)
    np.testing.assert_array_equal(again.values["degrees"], first.values["degrees"])
    assert [file.stat().st_mtime for file in files] == [0, 0, 0]
    assert sorted((tmp_path / "run").iterdir()) == files


@pytest.mark.parametrize("position", [0, 3 * 8 * 35 + 5, -1])
def test_damaged_rows_are_drawn_again(tmp_path: Path, position: int) -> None:
    whole = bootstrap(CLUB, NAMES, n=10, store=tmp_path / "run", **SETTINGS)
    expected = {name: np.array(whole.values[name]) for name in NAMES}
    file = tmp_path / "run" / "001.f64"
    content = bytearray(file.read_bytes())
    content[position] ^= 16
    file.write_bytes(content)
    again = bootstrap(CLUB, NAMES, n=10, store=tmp_path / "run", **SETTINGS)
    for name in NAMES:
        np.testing.assert_array_equal(again.values[name], expected[name])


@pytest.mark.skipif(sys.platform == "win32", reason="has no pipes in folders")
def test_a_pipe_in_place_of_rows_is_refused(tmp_path: Path) -> None:
    bootstrap(CLUB, NAMES, n=5, store=tmp_path / "run", **SETTINGS)
    file = tmp_path / "run" / "001.f64"
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(InputError, match=r"001\.f64 must be a file"):
        bootstrap(CLUB, NAMES, n=5, store=tmp_path / "run", **SETTINGS)


@pytest.mark.skipif(sys.platform == "win32", reason="has no such locks")
def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    def start_another(graph: Graph) -> float:
        if graph is not CLUB:
            bootstrap(CLUB, start_another, n=3, store=tmp_path / "run", **SETTINGS)
        return 1.0

    with pytest.raises(InputError, match="no other run uses"):
        bootstrap(CLUB, start_another, n=3, store=tmp_path / "run", **SETTINGS)


def test_without_a_seed_the_stored_one_is_used(tmp_path: Path) -> None:
    with mute_data_warnings():  # of values that are the same in five samples of some seeds
        first = bootstrap(CLUB, "degrees", n=5, model=SameLabel(), store=tmp_path / "run")
        second = bootstrap(CLUB, "degrees", n=8, model=SameLabel(), store=tmp_path / "run")
    np.testing.assert_array_equal(second.values["degrees"][:5], first.values["degrees"])


@pytest.mark.parametrize("change", [{"rng": 6}, {"model": None}, {"statistic": "density"}, {"graph": None}])
def test_samples_of_another_run_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    bootstrap(CLUB, NAMES, n=5, store=tmp_path / "run", **SETTINGS)
    call = {"graph": CLUB, "statistic": NAMES, **SETTINGS} | change
    call["graph"] = call["graph"] or CLUB.subgraph(range(33))
    with pytest.raises(InputError, match="Choose another folder"):
        bootstrap(**call, n=5, store=tmp_path / "run")


def test_a_run_that_was_killed_while_it_wrote_its_settings_starts_again(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / ".nodecopy-e9e1aabe-5bce98f7-7341-ty1us4ic.json").write_text("{")
    assert len(bootstrap(CLUB, "density", n=5, store=folder, **SETTINGS).values["density"]) == 5


def test_other_folders_are_not_touched(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear")
    with pytest.raises(InputError, match="store must be a new folder"):
        bootstrap(CLUB, "density", n=5, store=tmp_path, **SETTINGS)
    with pytest.raises(InputError, match="store must be a folder that can be created"):
        bootstrap(CLUB, "density", n=5, store=tmp_path / "letter.txt" / "run", **SETTINGS)
    (tmp_path / "letter.txt").unlink()
    (tmp_path / "settings.json").write_text("{")
    with pytest.raises(InputError, match="is damaged"):
        bootstrap(CLUB, "density", n=5, store=tmp_path, **SETTINGS)


def test_memory_does_not_grow_with_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "BLOCK_SIZE", 2**14)
    graph = Graph.from_edges(range(2000), [*range(1, 2000), 0], labels=np.zeros(2000, int))
    peaks = []
    for n in (20, 200):
        tracemalloc.start()
        bootstrap(graph, "degrees", n=n, store=tmp_path / str(n), **SETTINGS)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < 8 * 2000 * 180 / 4  # a quarter of the values of the additional samples


def test_tests_continue_too(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"null": "erdos-renyi", "rng": 0, "stop_after": None}
    whole = inference.null_test(CLUB, "transitivity", n=40, **settings)
    inference.null_test(CLUB, "transitivity", n=15, store=tmp_path / "run", **settings)
    again = inference.null_test(CLUB, "transitivity", n=40, store=tmp_path / "run", **settings)
    assert again["transitivity"].to_dict() == whole["transitivity"].to_dict()


def test_functions_of_one_name_are_told_apart(tmp_path: Path) -> None:
    bootstrap(CLUB, lambda graph: graph.n_edges, n=5, store=tmp_path / "run", **SETTINGS)
    bootstrap(CLUB, lambda graph: graph.n_edges, n=6, store=tmp_path / "run", **SETTINGS)  # the same
    with pytest.raises(InputError, match="the functions of"):
        bootstrap(CLUB, lambda graph: graph.degrees.max(), n=5, store=tmp_path / "run", **SETTINGS)


def test_a_test_does_not_continue_a_bootstrap(tmp_path: Path) -> None:
    bootstrap(CLUB, "modularity", n=5, store=tmp_path / "run", **SETTINGS)
    with pytest.raises(InputError, match="the call of"):
        inference.null_test(CLUB, "modularity", null="erdos-renyi", n=5, store=tmp_path / "run", rng=5)


@pytest.mark.parametrize("text", ["[1]", "{", "{}"])
def test_damaged_settings_are_refused(tmp_path: Path, text: str) -> None:
    bootstrap(CLUB, "density", n=5, store=tmp_path / "run", **SETTINGS)
    (tmp_path / "run" / "settings.json").write_text(text)
    with pytest.raises(InputError, match="is damaged"):
        bootstrap(CLUB, "density", n=5, store=tmp_path / "run", **SETTINGS)
