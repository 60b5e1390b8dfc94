"""Engines for edge tables larger than memory: DuckDB in this process, Spark on a cluster.

Both are used through Ibis, so that a query is written once. An engine reads and writes Parquet, and stores
results in a scratch folder: no table has to fit into memory.
"""

from __future__ import annotations

import glob
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Self

from nodecopy._core.checks import check_integer, check_path, show, type_name
from nodecopy._core.files import (
    PathLike,
    ScratchFolder,
    atomic_write,
    check_writable_parent,
    remove_path,
    resolve,
)
from nodecopy._core.imports import OptionalModule, import_optional
from nodecopy._core.messages import log_decision
from nodecopy.errors import InputError
from nodecopy.io.columns import Roles, match_columns, match_names

PURPOSE = "an engine of edge tables"
ibis: Any = OptionalModule("ibis", PURPOSE)
operations: Any = OptionalModule("ibis.expr.operations", PURPOSE)

DISK_ERRORS = re.compile(
    r"no space left|file too large|quota|failed to offload|max_temp_directory_size", re.I
)
MEMORY_ERRORS = re.compile(r"out ?of ?memory|java heap space|GC overhead limit", re.I)
GLOB_CHARACTERS = re.compile(r"[][*?{}\\]")
# DuckDB returns free memory to the system earlier than by default:
EARLY_RELEASE = {"allocator_flush_threshold": "16MB", "allocator_bulk_deallocation_flush_threshold": "64MB"}
ROWS_PER_BATCH = 2**20
QUIET_SETTINGS = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}


class TableEngine(ABC):
    """The contract of engines on an Ibis ``backend``; a ``with`` block removes scratch files."""

    backend: Any
    _scratch: ScratchFolder
    _closed = False
    _process: int | None = None

    def _read(self, path: Path) -> Any:
        return self.backend.read_parquet(str(path))

    @abstractmethod
    def _write(self, table: Any, path: Path) -> None:
        """Write a table as Parquet to a temporary path."""

    def atomic_target(self, target: Path) -> AbstractContextManager[Path]:
        """Yield a temporary path that becomes the target unless the block fails."""
        return atomic_write(target)

    def _open_scratch(self, folder: PathLike | None) -> Path:
        self._process = os.getpid()
        self._scratch_files: list[Path] = []
        self._origins: dict[str, set[Path]] = {}  # the files that each table depends on
        try:
            self._scratch = ScratchFolder(None if folder is None else check_path(folder, "scratch"))
        except OSError as error:
            raise InputError("scratch", f"must be a folder; {folder!r} cannot be made: {error}.") from error
        return self._scratch.path

    def scan(self, source: Any) -> Any:
        """Return an Ibis table: the given one, or that of a Parquet file or a folder of them."""
        self._check_open()
        if not isinstance(source, (str, os.PathLike)):
            return self._as_given_table(source)
        path = Path(source)
        if not path.exists():
            raise InputError(f"{path} does not exist; engines read Parquet files, or folders of them.")
        if path.is_file() and path.suffix.lower() != ".parquet":
            raise InputError(f"{path} must be Parquet for an engine of edge tables; got {path.suffix!r}.")
        with _engine_errors(f"{path} cannot be read as Parquet"):
            table = self._read(path)
        self._origins[table.get_name()] = {resolve(path)}
        return table

    def _as_given_table(self, table: Any) -> Any:
        if not isinstance(table, ibis.Table):
            raise InputError(f"a table must be a Parquet file or an Ibis table; got {type_name(table)}.")
        if not table.op().find(operations.InMemoryTable):
            return table
        path = self._new_scratch()
        with _engine_errors("a table cannot be computed"):
            batches = self.backend.to_pyarrow_batches(table)
            parquet = import_optional("pyarrow.parquet", PURPOSE)
            with parquet.ParquetWriter(path, batches.schema) as writer:
                for batch in batches:
                    writer.write_batch(batch)
        return self._reread(path, table)

    def _new_scratch(self, suffix: str = ".parquet") -> Path:
        self._scratch_files.append(self._scratch.path / f"{len(self._scratch_files)}{suffix}")
        return self._scratch_files[-1]

    def _reread(self, path: Path, table: Any) -> Any:
        """Return the table in a scratch file, with the origins of the one that was written there."""
        stored = self.scan(path)
        self._origins[stored.get_name()] = self._origins_of(table)
        return stored

    def _check_open(self) -> None:
        if self._closed:
            raise InputError("this engine is closed; use it and its tables inside its with block.")
        if self._process not in (None, os.getpid()):
            raise InputError("this engine belongs to another process; open one in every process.")

    def write(self, table: Any, path: PathLike) -> None:
        """Write an Ibis table as Parquet, whole or not at all, but not over a file it depends on."""
        self._check_open()
        target = Path(check_path(path, "path"))
        if target.is_dir():
            raise InputError(f"{target} must be a new name or a file; there is a folder of that name.")
        if self._origins_of(table) & {(real := resolve(target)), real.parent}:
            raise InputError(f"{target} must not be a file, or in a folder, that the table depends on.")
        with self.atomic_target(target) as temporary, _engine_errors(f"{target} cannot be written"):
            self._write(table, temporary)

    def _origins_of(self, table: Any) -> set[Path]:
        tables = table.op().find(operations.DatabaseTable)
        return set().union(*(self._origins.get(part.name, set()) for part in tables))

    def rows(self, table: Any) -> list[dict[str, Any]]:
        """Return the rows of a small table as dictionaries."""
        self._check_open()
        with _engine_errors("a table cannot be computed"):
            return list(table.to_pyarrow().to_pylist())

    def row(self, table: Any) -> dict[str, Any]:
        """Return the only row of a table."""
        (row,) = self.rows(table)
        return row

    def materialise(self, table: Any) -> Any:
        """Compute a table and return it from a scratch file."""
        path = self._new_scratch()
        self.write(table, path)
        return self._reread(path, table)

    def stage(self, table: Any) -> Any:
        """Return a table with columns that some optimisers would compute repeatedly."""
        return self.materialise(table)

    def distinct(self, rows: Any) -> Any:
        """Return each pair of source and target once, with its largest weight."""
        if "weight" not in rows.columns:
            return rows.distinct()
        return rows.group_by("source", "target").agg(weight=rows.weight.max())

    def materialise_distinct(self, rows: Any) -> Any:
        """Compute :meth:`distinct` and return it from a scratch file."""
        with self.temporary_tables(slice(-1)):
            return self.materialise(self.distinct(rows))

    @contextmanager
    def temporary_tables(self, which: slice = slice(None)) -> Iterator[None]:
        """Remove the scratch files that the block wrote, or ``which`` of them, at its end."""
        before = len(self._scratch_files)
        try:
            yield
        finally:
            for path in self._scratch_files[before:][which]:
                self._remove(path)

    def _remove(self, path: Path) -> None:
        remove_path(path)

    def close(self) -> None:
        """Disconnect and remove scratch files."""
        self._closed = True
        if self._process != os.getpid():
            return  # the process that opened it still uses the connection and the files
        self.backend.disconnect()
        self._scratch.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class DuckDB(TableEngine):
    """DuckDB in this process.

    Parameters
    ----------
    memory
        Memory limit, such as ``"1GB"``, beyond which data are spilled to disk.
    threads
        Number of threads; by default one per core.
    scratch
        Folder for scratch files, of about five times the size of the edges.

    Examples
    --------
    >>> with DuckDB(memory="1GB", threads=2) as engine:
    ...     engine.backend.name
    'duckdb'
    """

    def __init__(
        self, memory: str | None = None, threads: int | None = None, scratch: PathLike | None = None
    ) -> None:
        import_optional("ibis", PURPOSE)
        import_optional("duckdb", "DuckDB")
        settings: dict[str, Any] = {"preserve_insertion_order": False}
        if memory is not None:
            if not isinstance(memory, str) or not re.fullmatch(r"\d+(\.\d+)?\s*[KMGT]i?B", memory):
                raise InputError("memory", f"must be a size such as '1GB' or '512MiB'; got {show(memory)}.")
            settings |= {"memory_limit": memory, **EARLY_RELEASE}
        if threads is not None:
            settings["threads"] = check_integer(threads, "threads", low=1)
        settings["temp_directory"] = str(self._open_scratch(scratch) / "spilled")
        self.backend = ibis.duckdb.connect(**settings)

    def stage(self, table: Any) -> Any:
        return table  # DuckDB does not repeat definitions

    def distinct(self, rows: Any) -> Any:
        """Return distinct pairs; pairs of 32-bit numbers are sorted outside of DuckDB."""
        weight = ["weight"] if "weight" in rows.columns else []
        kinds = [rows[name].type() for name in ("source", "target", *weight)]
        if not (all(kind.is_int32() for kind in kinds[:2]) and all(kind.is_primitive() for kind in kinds)):
            return super().distinct(rows)
        from nodecopy.edge_tables.external_sort import PairSorter  # imports numba, which is slow

        path = self._new_scratch(".pairs")
        pairs = PairSorter(path, *(kind.to_numpy() for kind in kinds[2:]))
        with _engine_errors("a table cannot be computed"), ThreadPoolExecutor(1) as pool:
            pending = pool.submit(lambda: None)
            for batch in self.backend.con.sql(self.backend.compile(rows)).to_arrow_reader(ROWS_PER_BATCH):
                pending.result()  # one batch is added while DuckDB computes the next one
                columns = {name: batch[name].to_numpy() for name in batch.schema.names}
                pending = pool.submit(pairs.add, **columns)
            pending.result()
        self.backend.con.register(path.name, pairs)
        self._origins[path.name] = self._origins_of(rows)
        return self.backend.table(path.name)

    def _remove(self, path: Path) -> None:
        super()._remove(path)
        if not self._closed:
            self.backend.con.unregister(path.name)  # a sorted table has the name of its file

    def _read(self, path: Path) -> Any:
        # DuckDB would read names as patterns and parts of a path such as k=3 as columns.
        pattern = glob.escape(str(path)) + ("/*.parquet" if path.is_dir() else "")
        return self.backend.read_parquet(pattern, hive_partitioning=False)

    def _write(self, table: Any, path: Path) -> None:
        path.unlink(missing_ok=True)  # DuckDB would write another temporary file
        # The path is passed as a value; to_parquet of Ibis would make it part of the statement.
        self.backend.con.sql(self.backend.compile(table)).write_parquet(str(path))


class Spark(TableEngine):
    """Spark, on this machine or on a cluster.

    Parameters
    ----------
    master
        Address of the cluster, such as ``"local[2]"`` or ``"spark://host:7077"``; all local cores by default.
    scratch
        Folder for scratch files; on a cluster one that all machines share.
    settings
        Settings of Spark, such as ``{"spark.sql.shuffle.partitions": "400"}``.

    Examples
    --------
    >>> with Spark("spark://host:7077", scratch="/shared/scratch") as engine:  # doctest: +SKIP
    ...     EdgeTableCopying(JaccardTable()).fit("edges.parquet", engine=engine).write("sample", rng=7)
    """

    def __init__(
        self,
        master: str = "local[*]",
        scratch: PathLike | None = None,
        settings: dict[str, str] | None = None,
    ) -> None:
        import_optional("ibis", PURPOSE)
        spark = import_optional("pyspark.sql", "Spark")
        builder = spark.SparkSession.builder.master(master).appName("nodecopy")
        for name, value in (QUIET_SETTINGS | (settings or {})).items():
            builder = builder.config(name, value)
        self.session = builder.getOrCreate()
        self.session.sparkContext.setLogLevel("ERROR")
        self._open_scratch(scratch)
        self.backend = ibis.pyspark.connect(self.session)

    @contextmanager
    def atomic_target(self, target: Path) -> Iterator[Path]:
        if target.exists():
            raise InputError(f"{target} must be a new name for Spark; there is a file of that name.")
        check_writable_parent(target)
        with ScratchFolder(target.absolute().parent) as folder:
            yield (temporary := folder / "table")  # Spark creates it itself
            temporary.rename(target)

    def _read(self, path: Path) -> Any:
        if match := GLOB_CHARACTERS.search(str(path)):
            raise InputError(f"{path} must not have {match[0]!r} in its name: Spark reads it as a pattern.")
        return super()._read(path)

    def _write(self, table: Any, path: Path) -> None:
        self.session.sql(self.backend.compile(table)).write.parquet(str(path))


@contextmanager
def _engine_errors(what: str) -> Iterator[None]:
    """Turn errors of an engine into one line, an ``OSError`` if a limit or the disk is the reason."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if isinstance(error, OSError) or _limit(error):
            raise OSError(f"{what}: {_limit(error) or _first_line(error)}.") from error
        raise InputError(f"{what}, its input may be damaged ({_first_line(error)}).") from error


def _limit(error: Exception) -> str | None:
    """Return the limit that an engine reached, if any."""
    if match := DISK_ERRORS.search(str(error)):
        return f"the disk is full or a limit is reached ({match[0]})"
    if MEMORY_ERRORS.search(str(error)):
        limits = "memory of DuckDB, --memory on the command line; settings of Spark"
        return f"memory is too small, raise the limit ({limits}): {_first_line(error)}"
    return None


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__


def select_columns(table: Any, roles: Roles, name: str, *, n_required: int) -> Any:
    """Return the columns of some roles, named after them (:func:`match_columns`)."""
    names = list(table.columns)

    def is_numeric(position: int) -> bool:
        return bool(table[names[position]].type().is_numeric())

    positions = match_columns(names, roles, n_required=n_required, is_numeric=is_numeric, owner=name)
    chosen = {role: names[position] for role, position in positions.items()}
    usual = match_names(names, roles)
    if unusual := [f"{column} is the {role}" for role, column in chosen.items() if role not in usual]:
        parts = " and ".join(unusual)
        log_decision(f"{name}: {parts} of each row. Rename columns that hold something else.")
    return table.select(**chosen)


def count_rows(table: Any, engine: TableEngine) -> int:
    """Return the number of rows of a table."""
    return int(engine.row(table.aggregate(n=table.count()))["n"])


def check_ids(table: Any, roles: Sequence[str], name: str, engine: TableEngine) -> None:
    """Raise an error unless columns hold integers or strings without missing values."""
    for role in roles:
        kind = table[role].type()
        if not (kind.is_integer() or kind.is_string()):
            raise InputError(f"{role} of {name}", f"must hold integers or strings; it holds {kind}.")
    n_missing = engine.row(table.aggregate([table[role].isnull().sum().name(role) for role in roles]))
    for role in roles:
        if n_missing[role]:
            raise InputError(f"{role} of {name}", f"must not be missing; it is in {n_missing[role]} rows.")


def check_weights(table: Any, name: str, engine: TableEngine) -> None:
    """Raise an error if a weight is missing, infinite or negative."""
    if "weight" not in table.columns:
        return
    if not table.weight.type().is_numeric():
        raise InputError(f"weight of {name}", f"must hold numbers; it holds {table.weight.type()}.")
    value = table.weight.cast("float64")
    is_wrong = value.isnull() | value.isnan() | value.isinf() | (value < 0)
    if n_wrong := count_rows(table.filter(is_wrong), engine):
        raise InputError(f"weight of {name}", f"must be finite and not negative; {n_wrong} rows are not.")
