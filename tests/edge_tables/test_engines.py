"""What engines read and write, how columns are found, and the external sort of pairs."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodecopy.edge_tables import EdgeTableCopying, JaccardTable
from nodecopy.edge_tables.engines import DuckDB, Spark, TableEngine, check_ids, check_weights, select_columns
from nodecopy.edge_tables.external_sort import HALF, PairSorter
from nodecopy.errors import InputError
from nodecopy.io.columns import EDGE_COLUMNS
from tests.edge_tables.twins import table

ibis = pytest.importorskip("ibis")
pyarrow = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def engine() -> Iterator[TableEngine]:
    with DuckDB(memory="500MB", threads=1) as opened:
        yield opened


def save(path: Path, *values: Any) -> Path:
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pyarrow.table({"value": list(values)}), path)
    return path


def values(path: Path) -> list[Any]:
    return list(pq.read_table(path)["value"].to_pylist())


def test_a_failed_write_leaves_the_earlier_file(engine: TableEngine, tmp_path: Path) -> None:
    target = save(tmp_path / "out.parquet", 9)
    words = engine.scan(save(tmp_path / "in.parquet", "1", "x"))
    with pytest.raises(InputError, match=r"out\.parquet cannot be written"):
        engine.write(words.cast({"value": "int64"}), target)
    assert values(target) == [9]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet", "out.parquet"]


def test_a_table_is_not_written_over_a_file_it_depends_on(engine: TableEngine, tmp_path: Path) -> None:
    source = save(tmp_path / "folder" / "in.parquet", 1)
    for read, target in [(source, source), (source.parent, source.parent / "more.parquet")]:
        table = engine.scan(read)
        for derived in (table, engine.materialise(engine.materialise(table.distinct()).alias("other"))):
            with pytest.raises(InputError, match="that the table depends on"):
                engine.write(derived, target)
    assert [path.name for path in source.parent.iterdir()] == ["in.parquet"]


@pytest.mark.parametrize("name", ["e[1]", "e*", "e?", "it's", "e=1"])
def test_names_are_no_patterns(engine: TableEngine, tmp_path: Path, name: str) -> None:
    save(tmp_path / "e1.parquet", 9)
    save(tmp_path / "e1" / "a.parquet", 9)
    file = save(tmp_path / f"{name}.parquet", 1)
    folder = save(tmp_path / name / "b.parquet", 1).parent
    for path in (file, folder, folder / "b.parquet"):
        assert engine.rows(engine.scan(path)) == [{"value": 1}]


# Ibis with DuckDB
@pytest.mark.filterwarnings(r"ignore:fetch_record_batch\(\) is deprecated:DeprecationWarning")
def test_data_in_memory_become_a_table_of_the_engine(engine: TableEngine, tmp_path: Path) -> None:
    given = ibis.memtable(pyarrow.table({"value": [1, 2, 2]}))
    both = given.join(engine.scan(save(tmp_path / "in.parquet", 2, 3)), "value")
    distinct = engine.materialise(engine.scan(given).distinct().order_by("value"))
    assert engine.rows(distinct) == [{"value": 1}, {"value": 2}]
    assert engine.rows(engine.scan(both)) == [{"value": 2}] * 2
    edges = ibis.memtable(pyarrow.table({"source": [1, 2], "target": [2, 3]}))
    model = EdgeTableCopying(JaccardTable(), keep=1.0).fit(edges, engine=engine)
    model.write(tmp_path / "sample.parquet", rng=0)
    assert pq.read_table(tmp_path / "sample.parquet").num_rows == 2


def test_the_largest_weight_of_each_pair(engine: TableEngine, tmp_path: Path) -> None:
    given = {"source": [-5, 2, -5, 2], "target": [7, -1, 7, 3], "weight": [1, 2, 3, 4]}
    pq.write_table(pyarrow.table(given), tmp_path / "rows.parquet")
    for kind in ("int32", "int64"):  # sorted outside of DuckDB, grouped inside
        rows = engine.scan(tmp_path / "rows.parquet").cast({"source": kind, "target": kind})
        found = [tuple(row.values()) for row in engine.rows(engine.distinct(rows))]
        assert sorted(found) == [(-5, 7, 3), (2, -1, 2), (2, 3, 4)]
        assert len(engine.rows(engine.distinct(rows.drop("weight")))) == 3


def test_folders_of_spark_are_written_as_a_whole(tmp_path: Path) -> None:
    """What needs no Java: names, and the folder that is renamed when it is complete."""
    spark = object.__new__(Spark)
    target, mine = tmp_path / "out.parquet", save(tmp_path / "mine.parquet", 9)
    with pytest.raises(AttributeError), spark.atomic_target(target) as temporary:
        save(temporary / "part.parquet", 1).no_such_method()  # type: ignore[attr-defined]
    assert [path.name for path in tmp_path.iterdir()] == ["mine.parquet"]
    with pytest.raises(InputError, match="must be a new name"), spark.atomic_target(mine):
        pass
    with spark.atomic_target(target) as temporary:
        save(temporary / "part.parquet", 1)
    assert (values(target / "part.parquet"), values(mine)) == ([1], [9])
    with pytest.raises(InputError, match=r"must not have '\['"):
        spark.scan(save(tmp_path / "e[1].parquet", 1))


KILLED = """
import os, signal
from pathlib import Path
from nodecopy.edge_tables.engines import Spark
with object.__new__(Spark).atomic_target(Path("out.parquet")) as temporary:
    temporary.mkdir()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_write_of_spark_is_removed_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What needs no Java: the folder that another process was killed before it renamed."""
    monkeypatch.chdir(tmp_path)
    mine = tmp_path / ".out.parquet-mine"  # the name of a file does not make it ours
    mine.touch()
    assert subprocess.run([sys.executable, "-c", KILLED]).returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 2
    with object.__new__(Spark).atomic_target(Path("out.parquet")) as temporary:
        save(temporary / "part.parquet", 1)
    assert sorted(tmp_path.iterdir()) == [mine, tmp_path / "out.parquet"]
    assert values(tmp_path / "out.parquet/part.parquet") == [1]


def test_an_engine_belongs_to_its_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path / "in.parquet", 1)
    with DuckDB(memory="500MB", threads=1) as opened:
        with monkeypatch.context() as child:
            child.setattr("os.getpid", lambda: -1)
            with pytest.raises(InputError, match="this engine belongs to another process"):
                opened.scan(path)
            opened.close()  # removes nothing of the parent
        opened._closed = False
        assert opened.rows(opened.scan(path)) == [{"value": 1}]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"source": [1], "target": [2]}, {"source": 1, "target": 2}),
        ({"To": [2], "FROM": [1], "w": [0.5]}, {"source": 1, "target": 2, "weight": 0.5}),
        ({"a": [1], "b": [2], "c": [0.5]}, {"source": 1, "target": 2, "weight": 0.5}),
        ({"a": [1], "b": [2], "c": ["x"]}, {"source": 1, "target": 2}),
        ({"source": [1], "target": [2], "year": [1999]}, {"source": 1, "target": 2}),
    ],
)
def test_choice_of_columns(engine: TableEngine, columns: dict[str, Any], expected: dict[str, Any]) -> None:
    selected = select_columns(table(engine, **columns), EDGE_COLUMNS, "edges", n_required=2)
    assert engine.row(selected) == expected


NUMBERS = st.integers(0, 3) | st.integers(-HALF, HALF - 1) | st.sampled_from([-HALF, HALF - 1, -1])
PIECES = st.lists(st.lists(st.tuples(NUMBERS, NUMBERS, st.integers(0, 5)), max_size=30), max_size=4)


def spread(folder: str, pieces: list[list[tuple[int, int, int]]], weight: Any) -> PairSorter:
    pairs = PairSorter(Path(folder) / "scratch", weight)
    for piece in pieces:
        first, second, weights = np.array(piece, np.int64).reshape(-1, 3).T
        more = () if weight is None else (weights.astype(weight),)
        pairs.add(first.astype(np.int32), second.astype(np.int32), *more)
    return pairs


@given(PIECES, st.sampled_from([None, np.float64, np.int8]))
def test_each_pair_once_with_its_largest_weight(pieces: Any, weight: Any) -> None:
    wanted: dict[tuple[int, int], int] = {}
    for first, second, each in sorted(chain(*pieces), key=itemgetter(2)):
        wanted[first, second] = 0 if weight is None else each
    with tempfile.TemporaryDirectory() as folder:
        pairs = spread(folder, pieces, weight)
        for _ in range(2):  # whoever reads it makes it anew
            found = [row for part in pairs.parts() for row in zip(*(c.tolist() for c in part), strict=True)]
            assert {(row[0], row[1]): sum(row[2:]) for row in found} == wanted
            assert len(found) == len(wanted)


@pytest.mark.parametrize("weight", [None, np.float64])
def test_large_parts_come_in_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, weight: Any) -> None:
    monkeypatch.setattr("nodecopy.edge_tables.external_sort.MAX_SORTED_PAIRS", 100)
    star = [(7, leaf, leaf % 5) for leaf in range(1000)]
    often = [(3, 4, 1)] * 1000
    pieces = [star, often, [(7, 1, 9)], often]
    found = [
        row
        for part in spread(str(tmp_path), pieces, weight).parts()
        for row in zip(*(column.tolist() for column in part), strict=True)
    ]
    assert {row[:2] for row in found} == {row[:2] for row in star} | {(3, 4)}
    assert len(found) == 1001
    if weight is not None:
        assert {(a, b): w for a, b, w in found}[7, 1] == 9


@pytest.mark.parametrize(
    ("call", "fragment"),
    [
        (lambda e: DuckDB(memory="much"), "memory must be a size"),
        (lambda e: check_ids(table(e, id=[0.5]), ["id"], "nodes", e), "id of nodes must hold integers"),
        (lambda e: check_ids(table(e, id=["a", None]), ["id"], "nodes", e), "must not be missing"),
        (lambda e: check_weights(table(e, weight=["a"]), "edges", e), "weight of edges must hold numbers"),
        (lambda e: check_weights(table(e, weight=[1.0, -1.0, np.inf, np.nan]), "edges", e), "3 rows are not"),
        (lambda e: select_columns(table(e, source=[1]), EDGE_COLUMNS, "edges", n_required=2), "for target"),
    ],
)
def test_errors(engine: TableEngine, call: Any, fragment: str) -> None:
    with pytest.raises(InputError, match=fragment):
        call(engine)
