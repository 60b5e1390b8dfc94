"""Stored trials: complete or missing, whatever happens to a file."""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nodecopy.errors import InputError
from nodecopy.experiments.store import Record, Store, check_score
from tests.experiments.fakes import make_experiment

CELL = make_experiment().cells(seed=3)[0]
SCORES = {"accuracy": 0.1 + 0.2, "nll": 1 / 3, "brier": 0.5, "ece": 0.0}
RECORD = Record(7, SCORES, 0.25, {"rounds": 2}, {"commit": "abc"})


def test_what_is_written_is_read(store: Store) -> None:
    assert store.read(CELL, 7) is None
    store.write(CELL, RECORD)
    assert store.read(CELL, 7) == RECORD
    assert store.find_missing(CELL, range(6, 9)) == [6, 8]
    assert store.read_finished(CELL, range(10)) == [RECORD]
    assert store.path(CELL, 7).relative_to(store.folder).parts[:4] == ("fake", "karate", "1", "weak")
    store.remove(CELL, range(10))
    assert store.find_missing(CELL, [7]) == [7]


def test_numbers_of_numpy_become_plain(store: Store) -> None:
    store.write(CELL, replace(RECORD, details={"rounds": np.int64(3), "losses": np.array([0.5, 1.0])}))
    record = store.read(CELL, 7)
    assert record is not None
    assert record.details == {"rounds": 3, "losses": [0.5, 1.0]}


def test_other_settings_and_seeds_are_other_results(store: Store) -> None:
    store.write(CELL, RECORD)
    for other in (
        replace(CELL, settings={"skill": 9}),
        replace(CELL, seed=4),
        replace(CELL, conditions={"labels": 3}),
        replace(CELL, method="strong"),
        replace(CELL, experiment="fake2"),
        replace(CELL, task=replace(CELL.task, without_test_edges=True)),
    ):
        assert store.read(other, 7) is None


def test_a_flipped_bit_is_damage(store: Store) -> None:
    store.write(CELL, RECORD)
    path = store.path(CELL, 7)
    content = path.read_bytes()
    n_same = 0
    for position, byte in enumerate(content):
        for bit in range(8):
            path.write_bytes(content[:position] + bytes([byte ^ (1 << bit)]) + content[position + 1 :])
            record = store.read(CELL, 7)
            assert record in (None, RECORD), (position, bit)
            n_same += record is not None
    assert n_same < len(content) / 10  # blanks, and last digits that a float does not have


def test_records_without_a_checksum_are_valid(store: Store) -> None:
    store.write(CELL, RECORD)
    path = store.path(CELL, 7)
    content = json.loads(path.read_text())
    del content["checksum"]
    path.write_text(json.dumps(content))
    assert store.read(CELL, 7) == RECORD


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("scores", [0.5]),
        ("scores", {"accuracy": "0.5"}),
        ("scores", {"accuracy": True}),
        ("scores", {"accuracy": 10**400}),
        ("scores", {"accuracy": 1.5}),
        ("scores", {"nll": 0.5}),
        ("trial", True),
        ("seconds", -1),
        ("seconds", 10**400),
        ("details", []),
        ("details", {"samples": [1]}),
        ("details", {"samples": {"accuracy": ["x"]}}),
        ("provenance", 3),
        ("unknown", 3),
    ],
)
def test_a_record_that_is_not_what_it_should_be_is_missing(
    store: Store, caplog: pytest.LogCaptureFixture, key: str, value: object
) -> None:
    """Records without a checksum, which were written before there was one."""
    number = 1 if key == "trial" else 7
    store.write(CELL, replace(RECORD, trial=number))
    path = store.path(CELL, number)
    content = json.loads(path.read_text()) | {key: value}
    del content["checksum"]
    path.write_text(json.dumps(content))
    for _ in range(3):
        assert store.read(CELL, number) is None
    assert caplog.text.count("is damaged and counts as missing") == 1
    path.write_text("[" * 10**6)
    assert store.read(CELL, number) is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: "\x00" * len(text),
        lambda text: "[]",
        lambda text: "null",
        lambda text: text.replace('"accuracy"', '"acuracy"'),
        lambda text: text.replace('"nll": 0.3333333333333333', '"nll": NaN'),
        lambda text: text.replace('"seconds": 0.25', '"seconds": "soon"'),
        lambda text: text.replace('"trial": 7', '"trial": 8'),
        lambda text: text.replace(CELL.fingerprint, "0" * 12),
    ],
)
def test_damaged_records_are_missing(store: Store, caplog: pytest.LogCaptureFixture, damage: object) -> None:
    assert callable(damage)
    store.write(CELL, RECORD)
    path = store.path(CELL, 7)
    text = path.read_text()
    assert damage(text) != text
    path.write_text(damage(text))
    with caplog.at_level(logging.WARNING):
        assert store.find_missing(CELL, [7]) == [7]
    assert f"{path} is damaged and counts as missing" in caplog.text


def test_a_record_that_cannot_be_written_leaves_nothing(store: Store) -> None:
    with pytest.raises(ValueError, match="JSON"):
        store.write(CELL, replace(RECORD, scores=SCORES | {"nll": float("nan")}))
    assert list(store.folder.rglob("*.json")) == []


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("not a folder")
    store = Store(tmp_path / "store")
    assert store.find_missing(CELL, [1]) == [1]
    with pytest.raises(InputError, match=r"the store must be a folder"), store.claim(CELL, [1]):
        pass


@pytest.mark.parametrize("create", [os.mkfifo, os.mkdir])
def test_only_files_are_read(store: Store, create: Callable[[Path], None]) -> None:
    """A pipe was waited for."""
    store.write(CELL, RECORD)
    home = store.path(CELL, 7).parent
    for name in ("008.json", "locks"):
        create(home / name)
    with pytest.raises(InputError, match=r"008.json.* file"):
        store.find_missing(CELL, [7, 8])
    with pytest.raises(InputError, match=r"locks.* file"), store.claim(CELL, [8]):
        pass


@pytest.mark.parametrize(
    ("score", "value"),
    [
        ("accuracy", 1.1),
        ("accuracy without 0.1 by total", 90),
        ("printed recall@20", -0.1),
        ("nll", -1),
        ("brier", 2.1),
        ("assortativity", -1.5),
        ("transitivity", math.nan),
        ("of a task to come", math.inf),
        ("of a task to come", "1"),
        ("of a task to come", True),
        ("of a task to come", None),
    ],
)
def test_values_that_scores_cannot_have(score: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"{score} must be"):
        check_score(score, value)
