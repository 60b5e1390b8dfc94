"""Flips as tables: written and read again, or written by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodecopy import Graph
from nodecopy.attacks import DICE, GlobalDICE, Nettack, Perturbation, RandomFlips
from nodecopy.errors import InputError
from tests.contracts.classifiers import planted_graph

GRAPH = planted_graph()
PATH = Graph.from_edges(["007", "b", "c"], ["b", "c", "d"])


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
@pytest.mark.parametrize("together", [True, False])
def test_written_and_read_again(suffix: str, together: bool, tmp_path: Path) -> None:
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    flips = DICE(together=together).attack(GRAPH, [4, 50, 21], rng=0)
    flips.save(tmp_path / f"flips{suffix}")
    again = Perturbation.load(tmp_path / f"flips{suffix}", GRAPH)
    assert again.apply(GRAPH) == flips.apply(GRAPH)
    for name in ("targets", "flips", "is_added", "owners", "spent"):
        assert np.array_equal(getattr(again, name), getattr(flips, name))


def test_a_pair_that_is_flipped_for_two_targets_each_alone(tmp_path: Path) -> None:
    """Both flips add the edge; in one graph the second would be wrong."""
    flips = RandomFlips(together=False).attack(PATH, ["007", "d"], budget=3, rng=0)
    flips.save(tmp_path / "flips.csv")
    again = Perturbation.load(tmp_path / "flips.csv", PATH)
    assert not again.together
    assert again.apply(PATH) == flips.apply(PATH)


def test_a_pair_that_is_flipped_twice_in_one_graph(tmp_path: Path) -> None:
    flips = RandomFlips().attack(PATH, ["007", "d"], budget=3, rng=0)
    flips.save(tmp_path / "flips.csv")
    again = Perturbation.load(tmp_path / "flips.csv", PATH)
    assert again.together
    assert again.apply(PATH) == flips.apply(PATH)


def test_the_whole_graph_and_nothing(tmp_path: Path) -> None:
    for number, flips in enumerate(
        [GlobalDICE().attack(GRAPH, budget=6, rng=0), Nettack().attack(GRAPH, [4], budget=0, rng=0)]
    ):
        flips.save(tmp_path / f"{number}.csv")
        again = Perturbation.load(tmp_path / f"{number}.csv", GRAPH)
        assert again.targets.tolist() == []
        assert again.apply(GRAPH) == flips.apply(GRAPH)


def test_a_table_by_hand(tmp_path: Path) -> None:
    """Without a column change, what is there is removed and what is not is added; zeros in ids are kept."""
    file = tmp_path / "flips.csv"
    file.write_text("second,first,note\nb,007,x\n007,d,y\n")
    flips = Perturbation.load(file, PATH)
    assert flips.is_added.tolist() == [False, True]
    assert flips.apply(PATH) == Graph.from_edges(["b", "c", "007"], ["c", "d", "d"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("source,target\nb,c\n", "must have the columns first and second; got source, target"),
        ("first,second\nb,x\n", "second in line 2 must be the id of a node; got 'x'"),
        ("first,second,change\nb,c,toggle\n", "change in line 2 must be 'add' or 'remove'; got 'toggle'"),
        ("first,second,change\nb,c,add\n", "change in line 2 must be 'remove', since the edge is present"),
        ("first,second\nb,b\n", "two different nodes"),
    ],
)
def test_wrong_tables(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "flips.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        Perturbation.load(file, PATH)


def test_what_a_table_cannot_hold(tmp_path: Path) -> None:
    flips: Any = Nettack(features=True, structure=False).attack(GRAPH, [4], budget=1, rng=0)
    with pytest.raises(InputError, match=r"must be an \.npz file, since a table holds no flips of features"):
        flips.save(tmp_path / "flips.csv")
    DICE().attack(GRAPH, [4], rng=0).save(tmp_path / "flips.csv")
    with pytest.raises(InputError, match="graph must be given to read a table of flips"):
        Perturbation.load(tmp_path / "flips.csv")
