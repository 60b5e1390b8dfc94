"""Engines that work on tables larger than memory: DuckDB in this process, Spark on a cluster.

Both are reached through Ibis, so that a query is written once. An engine reads Parquet, writes Parquet,
and keeps what a query finds in a scratch folder, from where later queries read it: memory never has to
hold a table, and a task that fails on a cluster is done again from files.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import tempfile
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from nodecopy._core.atomic_files import atomic_write
from nodecopy._core.optional_imports import import_optional
from nodecopy._core.validation import check_integer
from nodecopy.errors import InputError

FULL = re.compile(r"no space left|file too large|quota|failed to offload|max_temp_directory_size", re.I)
SHORT = re.compile(r"out ?of ?memory|java heap space|GC overhead limit", re.I)

PATTERN = re.compile(r"[][*?{}\\]")

# Memory that DuckDB frees goes back to the system earlier than by default.
FLUSHED = {
    "allocator_flush_threshold": "16MB",
    "allocator_bulk_deallocation_flush_threshold": "64MB",
}
PIECE = 2**20  # rows that leave DuckDB at once

QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}


class Engine(ABC):
    """What every engine can do; use it as a context, at whose end its scratch files are removed.

    Attributes
    ----------
    backend
        The Ibis backend, for queries of your own.
    """

    backend: Any
    _scratch: Path
    _closed = False

    def _read(self, path: Path) -> Any:
        return self.backend.read_parquet(str(path))

    @abstractmethod
    def _write(self, table: Any, path: Path) -> None:
        """Write Parquet to a temporary path, which nobody else uses."""

    def _whole(self, target: Path) -> AbstractContextManager[Path]:
        """A temporary path that becomes the target only when the block ends well."""
        return atomic_write(target)

    def _open_scratch(self, folder: str | os.PathLike[str] | None) -> Path:
        self._kept: list[Path] = []
        self._origins: dict[str, set[Path]] = {}  # which files a table that was read comes from
        if folder is not None:
            Path(folder).mkdir(parents=True, exist_ok=True)
        self._scratch = Path(tempfile.mkdtemp(prefix="nodecopy-", dir=folder))
        return self._scratch

    def scan(self, source: Any) -> Any:
        """An Ibis table: the one given, or a Parquet file (or folder of such files).

        What was made of data in memory (``ibis.memtable``) is written to a scratch file first.
        """
        self._check_open()
        if not isinstance(source, (str, os.PathLike)):
            return self._given(source)
        path = Path(source)
        if not path.exists():
            raise InputError(f"{path} does not exist; engines read Parquet files, or folders of them.")
        if path.is_file() and path.suffix.lower() != ".parquet":
            raise InputError(f"{path} must be Parquet for an engine of tables; got {path.suffix!r}.")
        try:
            table = self._read(path)
        except InputError:
            raise
        except Exception as error:  # each engine has its own kinds
            reason = _line(error)
            if limit := _limit(error):
                raise OSError(f"{path} cannot be read: {limit}.") from error
            raise InputError(f"{path}: cannot be read, it is damaged or no Parquet ({reason}).") from error
        self._origins[table.get_name()] = {path.resolve()}
        return table

    def _given(self, table: Any) -> Any:
        ibis = import_optional("ibis", "an engine of tables")
        if not isinstance(table, ibis.Table):
            raise InputError(
                "a table must be a Parquet file or an Ibis table (ibis.memtable makes one of a data frame); "
                f"got {type(table).__name__}."
            )
        if not table.op().find(import_optional("ibis.expr.operations", "an engine of tables").InMemoryTable):
            return table
        path = self._new_scratch()
        with _told("a table cannot be computed"):
            batches = self.backend.to_pyarrow_batches(table)
            parquet = import_optional("pyarrow.parquet", "an engine of tables")
            with parquet.ParquetWriter(path, batches.schema) as writer:
                for batch in batches:
                    writer.write_batch(batch)
        return self._reread(path, table)

    def _new_scratch(self, suffix: str = ".parquet") -> Path:
        self._kept.append(self._scratch / f"{len(self._kept)}{suffix}")
        return self._kept[-1]

    def _reread(self, path: Path, table: Any) -> Any:
        """A scratch file, which comes from where the table in it came from."""
        kept = self.scan(path)
        self._origins[kept.get_name()] = self._origins_of(table)
        return kept

    def _check_open(self) -> None:
        if self._closed:
            raise InputError("this engine is closed; use it, and what was made with it, before it is.")

    def write(self, table: Any, path: str | os.PathLike[str]) -> None:
        """Write an Ibis table as Parquet; where that fails, everything stays as it was.

        A file is replaced, unless the table comes from it; a folder is not.
        """
        self._check_open()
        target = Path(path)
        if target.is_dir():
            raise InputError(f"{target} must be a new name or a file; there is a folder of that name.")
        if self._origins_of(table) & {target.resolve(), target.resolve().parent}:
            raise InputError(f"{target} must not be what the table comes from, or inside of it.")
        with self._whole(target) as temporary, _told(f"{target} cannot be written"):
            self._write(table, temporary)

    def _origins_of(self, table: Any) -> set[Path]:
        read = import_optional("ibis.expr.operations", "an engine of tables").DatabaseTable
        return set().union(*(self._origins.get(part.name, set()) for part in table.op().find(read)))

    def rows(self, table: Any) -> list[dict[str, Any]]:
        """The rows of a small table, as Python's values."""
        self._check_open()
        with _told("a table cannot be computed"):
            return list(table.to_pyarrow().to_pylist())

    def row(self, table: Any) -> dict[str, Any]:
        """The only row of a table."""
        (found,) = self.rows(table)
        return found

    def keep(self, table: Any) -> Any:
        """Compute a table once; later queries read it from a scratch file."""
        path = self._new_scratch()
        self.write(table, path)
        return self._reread(path, table)

    def staged(self, table: Any) -> Any:
        """A table whose columns are long computations, so that nothing is computed more than once.

        Some optimisers move filters and joins below such columns and write out their definitions, which
        refer to one another, over and over; what is kept is safe from that.
        """
        return self.keep(table)

    def distinct(self, rows: Any) -> Any:
        """Each pair of source and target once, with the largest of its weights."""
        if "weight" not in rows.columns:
            return rows.distinct()
        return rows.group_by("source", "target").agg(weight=rows.weight.max())

    def keep_distinct(self, rows: Any) -> Any:
        """The same, computed once; later queries read it from a scratch file."""
        before = len(self._kept)
        kept = self.keep(self.distinct(rows))
        for path in self._kept[before:-1]:
            self._forget(path)
        return kept

    @contextmanager
    def forgetting(self) -> Iterator[None]:
        """Remove what is kept within the block when it ends."""
        before = len(self._kept)
        try:
            yield
        finally:
            for path in self._kept[before:]:
                self._forget(path)

    def _forget(self, path: Path) -> None:
        _remove(path)

    def close(self) -> None:
        """Disconnect and remove scratch files."""
        self._closed = True
        self.backend.disconnect()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class DuckDB(Engine):
    """DuckDB inside this process.

    Parameters
    ----------
    memory
        What it may use, such as ``"1GB"``; what does not fit is spilled. By default DuckDB's own choice. The
        process takes a few hundred megabytes beside it.
    threads
        By default one a core.
    scratch
        Folder for what is spilled and kept; the system's by default. Plan for five times the edges' size,
        and for two more with each further sample that is used at the same time.
    """

    def __init__(
        self,
        memory: str | None = None,
        threads: int | None = None,
        scratch: str | os.PathLike[str] | None = None,
    ) -> None:
        ibis = import_optional("ibis", "an engine of tables")
        import_optional("duckdb", "DuckDB")
        settings: dict[str, Any] = {"preserve_insertion_order": False}
        if memory is not None:
            if not re.fullmatch(r"\d+(\.\d+)?\s*[KMGT]i?B", memory):
                raise InputError(f"memory must be a size such as '1GB' or '512MiB'; got {memory!r}.")
            settings |= {"memory_limit": memory, **FLUSHED}
        if threads is not None:
            settings["threads"] = check_integer(threads, "threads", low=1)
        settings["temp_directory"] = str(self._open_scratch(scratch) / "spilled")
        self.backend = ibis.duckdb.connect(**settings)

    def staged(self, table: Any) -> Any:
        return table  # DuckDB computes stage by stage as written

    def distinct(self, rows: Any) -> Any:
        """As other engines, but pairs of small numbers are sorted outside of DuckDB, at once."""
        weight = ["weight"] if "weight" in rows.columns else []
        kinds = [rows[name].type() for name in ("source", "target", *weight)]
        if not (all(kind.is_int32() for kind in kinds[:2]) and all(kind.is_primitive() for kind in kinds)):
            return super().distinct(rows)
        from nodecopy.edge_tables.external_sort import SpreadPairs  # loads numba, which takes its time

        path = self._new_scratch(".pairs")
        pairs = SpreadPairs(path, *(kind.to_numpy() for kind in kinds[2:]))
        with _told("a table cannot be computed"), ThreadPoolExecutor(1) as beside:
            added = beside.submit(lambda: None)
            for batch in self.backend.con.sql(self.backend.compile(rows)).to_arrow_reader(PIECE):
                added.result()  # a piece is added while DuckDB computes the next, and no more of them wait
                columns = {name: batch[name].to_numpy() for name in batch.schema.names}
                added = beside.submit(pairs.add, **columns)
            added.result()
        self.backend.con.register(path.name, pairs)
        self._origins[path.name] = self._origins_of(rows)
        return self.backend.table(path.name)

    def _forget(self, path: Path) -> None:
        super()._forget(path)
        if not self._closed:
            self.backend.con.unregister(path.name)  # where it is a table's name

    def _read(self, path: Path) -> Any:
        # Names are patterns to DuckDB, and parts of a path such as k=3 columns: neither is meant here.
        pattern = glob.escape(str(path)) + ("/*.parquet" if path.is_dir() else "")
        return self.backend.read_parquet(pattern, hive_partitioning=False)

    def _write(self, table: Any, path: Path) -> None:
        path.unlink(missing_ok=True)  # beside a file that is there, DuckDB would make one more of its own
        # The path goes in as a value; in Ibis' own to_parquet it would become part of the statement.
        self.backend.con.sql(self.backend.compile(table)).write_parquet(str(path))


class Spark(Engine):
    """Spark, on this machine or on a cluster.

    Parameters
    ----------
    master
        Where it runs, such as ``"local[2]"`` or ``"spark://host:7077"``.
    scratch
        Folder for what is kept; on a cluster one that all machines see.
    settings
        Further settings, such as ``{"spark.sql.shuffle.partitions": "400"}``.
    """

    def __init__(
        self,
        master: str = "local[*]",
        scratch: str | os.PathLike[str] | None = None,
        settings: dict[str, str] | None = None,
    ) -> None:
        ibis = import_optional("ibis", "an engine of tables")
        builder = (
            import_optional("pyspark.sql", "Spark").SparkSession.builder.master(master).appName("nodecopy")
        )
        for name, value in (QUIET | (settings or {})).items():
            builder = builder.config(name, value)
        self.session = builder.getOrCreate()
        self.session.sparkContext.setLogLevel("ERROR")
        self._open_scratch(scratch)
        self.backend = ibis.pyspark.connect(self.session)

    @contextmanager
    def _whole(self, target: Path) -> Iterator[Path]:
        if target.exists():
            raise InputError(f"{target} must be a new name for Spark; there is a file of that name.")
        temporary = target.with_name(f".{target.name}-{uuid.uuid4().hex}")
        try:
            yield temporary
            temporary.rename(target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def _read(self, path: Path) -> Any:
        if found := PATTERN.search(str(path)):
            raise InputError(f"{path} must not have {found[0]!r} in its name: Spark reads it as a pattern.")
        return super()._read(path)

    def _write(self, table: Any, path: Path) -> None:
        self.session.sql(self.backend.compile(table)).write.parquet(str(path))


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Whatever an engine fails with becomes an error of one line."""
    try:
        yield
    except Exception as error:
        raise OSError(f"{what}: {_limit(error) or _line(error)}.") from error


def _limit(error: Exception) -> str | None:
    """Which limit an engine met, if that is why it failed."""
    if found := FULL.search(str(error)):
        return f"the disk is full or a limit is reached ({found[0]})"
    if SHORT.search(str(error)):
        return f"memory is too small, raise it (--memory of DuckDB, settings of Spark): {_line(error)}"
    return None


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    path.unlink(missing_ok=True)


def _line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
