"""What an engine reads and writes, and what it says when it cannot."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nodecopy.edge_tables import EdgeTableCopying, JaccardTable
from nodecopy.edge_tables.engines import DuckDB, Engine, Spark
from nodecopy.errors import InputError

ibis = pytest.importorskip("ibis")
pytest.importorskip("duckdb")
pyarrow = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with DuckDB(memory="500MB", threads=1) as opened:
        yield opened


def save(path: Path, *values: Any) -> Path:
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pyarrow.table({"value": list(values)}), path)
    return path


def values(path: Path) -> list[Any]:
    return list(pq.read_table(path)["value"].to_pylist())


def test_a_write_replaces_a_file(engine: Engine, tmp_path: Path) -> None:
    target = save(tmp_path / "out.parquet", 9)
    engine.write(engine.scan(save(tmp_path / "in.parquet", 1)), target)
    assert values(target) == [1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet", "out.parquet"]


def test_a_failed_write_leaves_the_earlier_file(engine: Engine, tmp_path: Path) -> None:
    target = save(tmp_path / "out.parquet", 9)
    words = engine.scan(save(tmp_path / "in.parquet", "1", "x"))
    with pytest.raises(InputError, match=r"out\.parquet cannot be written"):
        engine.write(words.cast({"value": "int64"}), target)
    assert values(target) == [9]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet", "out.parquet"]


def test_a_folder_is_never_replaced(engine: Engine, tmp_path: Path) -> None:
    mine = save(tmp_path / "mine" / "thesis.parquet", 9)
    with pytest.raises(InputError, match="there is a folder of that name"):
        engine.write(engine.scan(save(tmp_path / "in.parquet", 1)), mine.parent)
    assert values(mine) == [9]


def test_a_table_is_not_written_over_a_file_it_depends_on(engine: Engine, tmp_path: Path) -> None:
    source = save(tmp_path / "folder" / "in.parquet", 1)
    for read, target in [(source, source), (source.parent, source.parent / "more.parquet")]:
        table = engine.scan(read)
        for derived in (table, engine.materialise(engine.materialise(table.distinct()).alias("other"))):
            with pytest.raises(InputError, match="must not be a file that the table depends on"):
                engine.write(derived, target)
    assert [path.name for path in source.parent.iterdir()] == ["in.parquet"]


@pytest.mark.parametrize("name", ["e[1]", "e*", "e?", "it's", "e=1"])
def test_names_are_no_patterns(engine: Engine, tmp_path: Path, name: str) -> None:
    save(tmp_path / "e1.parquet", 9)
    save(tmp_path / "e1" / "a.parquet", 9)
    file = save(tmp_path / f"{name}.parquet", 1)
    folder = save(tmp_path / name / "b.parquet", 1).parent
    for path in (file, folder, folder / "b.parquet"):
        assert engine.rows(engine.scan(path)) == [{"value": 1}]


# Ibis with DuckDB
@pytest.mark.filterwarnings(r"ignore:fetch_record_batch\(\) is deprecated:DeprecationWarning")
def test_data_in_memory_become_a_table_of_the_engine(engine: Engine, tmp_path: Path) -> None:
    given = ibis.memtable(pyarrow.table({"value": [1, 2, 2]}))
    both = given.join(engine.scan(save(tmp_path / "in.parquet", 2, 3)), "value")
    assert engine.rows(engine.materialise(engine.scan(given).distinct().order_by("value"))) == [
        {"value": 1},
        {"value": 2},
    ]
    assert engine.rows(engine.scan(both)) == [{"value": 2}] * 2
    edges = ibis.memtable(pyarrow.table({"source": [1, 2], "target": [2, 3]}))
    model = EdgeTableCopying(JaccardTable(), keep=1.0).fit(edges, engine=engine)
    model.write(tmp_path / "sample.parquet", rng=0)
    assert pq.read_table(tmp_path / "sample.parquet").num_rows == 2


def test_other_arguments_are_no_tables(engine: Engine) -> None:
    with pytest.raises(InputError, match=r"ibis\.memtable makes one of a data frame\); got pyarrow.Table"):
        engine.scan(pyarrow.table({"value": [1]}))


def test_the_memory_limit_must_be_a_size() -> None:
    with DuckDB("1000MiB", threads=1) as opened:
        assert opened.backend.con.sql("SELECT current_setting('memory_limit')").fetchone() == ("1000.0 MiB",)


def test_the_largest_weight_of_each_pair(engine: Engine, tmp_path: Path) -> None:
    given = {"source": [-5, 2, -5, 2], "target": [7, -1, 7, 3], "weight": [1, 2, 3, 4]}
    pq.write_table(pyarrow.table(given), tmp_path / "rows.parquet")
    for kind in ("int32", "int64"):  # sorted outside of DuckDB, grouped inside
        rows = engine.scan(tmp_path / "rows.parquet").cast({"source": kind, "target": kind})
        found = [tuple(row.values()) for row in engine.rows(engine.distinct(rows))]
        assert sorted(found) == [(-5, 7, 3), (2, -1, 2), (2, 3, 4)]
        assert len(engine.rows(engine.distinct(rows.drop("weight")))) == 3


def test_temporary_tables_are_removed(engine: Engine, tmp_path: Path) -> None:
    pq.write_table(pyarrow.table({"source": [1, 1], "target": [2, 2]}), tmp_path / "rows.parquet")
    rows = engine.scan(tmp_path / "rows.parquet").cast({"source": "int32", "target": "int32"})
    with engine.temporary_tables():
        name = engine.distinct(rows).get_name()
        assert name in engine.backend.list_tables()
    assert name not in engine.backend.list_tables()


def test_a_closed_engine_is_an_error(tmp_path: Path) -> None:
    path = save(tmp_path / "in.parquet", 1)
    with DuckDB(threads=1) as opened:
        table = opened.scan(path)
    opened.close()
    uses: list[Any] = [
        lambda: opened.rows(table),
        lambda: opened.scan(path),
        lambda: opened.materialise(table),
        lambda: opened.write(table, tmp_path / "out.parquet"),
    ]
    for use in uses:
        with pytest.raises(InputError, match="engine is closed"):
            use()
    assert values(path) == [1]


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


def test_a_killed_write_of_spark_is_removed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_an_engine_belongs_to_the_process_that_opened_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(tmp_path / "in.parquet", 1)
    with DuckDB(memory="500MB", threads=1) as opened:
        with monkeypatch.context() as child:
            child.setattr("os.getpid", lambda: -1)
            with pytest.raises(InputError, match="this engine belongs to another process"):
                opened.scan(path)
            opened.close()  # removes nothing of the parent
        opened._closed = False
        assert opened.rows(opened.scan(path)) == [{"value": 1}]
