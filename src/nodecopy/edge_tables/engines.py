"""Engines for edge tables larger than memory, used through Ibis: DuckDB in this process, Spark on a cluster.

An engine reads and writes Parquet, and stores results in a scratch folder: no table has to fit into memory.
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
from uuid import uuid4

from nodecopy._core.checks import check_integer, check_mapping, check_path, check_type, show, type_name
from nodecopy._core.files import (
    PathLike,
    ScratchFolder,
    atomic_write,
    check_writable_parent,
    list_parts,
    remove_path,
    resolve,
)
from nodecopy._core.imports import OptionalModule, import_optional
from nodecopy._core.messages import log_decision
from nodecopy.errors import InputError
from nodecopy.io.columns import (
    EDGE_COLUMNS,
    KINDS,
    N_INSPECTED,
    NODE_COLUMNS,
    ColumnNames,
    Kind,
    Roles,
    choose_columns,
    describe,
    match_columns,
    match_names,
)
from nodecopy.io.tables import from_arrow

PURPOSE = "an engine of edge tables"
ibis: Any = OptionalModule("ibis", PURPOSE)
operations: Any = OptionalModule("ibis.expr.operations", PURPOSE)

DISK_ERRORS = re.compile(
    r"no space left|file too large|quota|failed to offload|max_temp_directory_size", re.I
)
MEMORY_ERRORS = re.compile(r"out ?of ?memory|java heap space|GC overhead limit", re.I)
ROLES_OF_EDGES = {"source": "user", "target": "item", "weight": "rating"}  # of interactions
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

    @abstractmethod
    def _read(self, paths: list[Path]) -> Any:
        """Return the table in Parquet files, or in folders of them."""

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
        """Return an Ibis table: the given one, or that of Parquet files (a file, a folder or a pattern)."""
        self._check_open()
        if not isinstance(source, (str, os.PathLike)):
            return self._as_given_table(source)
        paths = list_parts(source)
        for path in paths:
            if not path.exists():
                allowed = "Parquet files, folders of them, or patterns such as 'edges/*.parquet'"
                raise InputError(f"{path} does not exist; engines read {allowed}.")
            if path.is_file() and path.suffix.lower() != ".parquet":
                raise InputError(f"{path} must be Parquet for an engine of edge tables; got {path.suffix!r}.")
        with _engine_errors(f"{source} cannot be read as Parquet"):
            table = self._read(paths)
        self._origins[table.get_name()] = set(map(resolve, (source, *paths)))
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

    def arrow(self, table: Any) -> Any:
        self._check_open()
        with _engine_errors("a table cannot be computed"):
            return table.to_pyarrow()

    def rows(self, table: Any) -> list[dict[str, Any]]:
        return list(self.arrow(table).to_pylist())

    def row(self, table: Any) -> dict[str, Any]:
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
        """Return distinct pairs; 32-bit numbers are sorted outside of DuckDB."""
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

    def _read(self, paths: list[Path]) -> Any:
        # DuckDB would read names as patterns and parts of a path such as k=3 as columns.
        patterns = [glob.escape(str(path)) + ("/*.parquet" if path.is_dir() else "") for path in paths]
        return self.backend.read_parquet(patterns, hive_partitioning=False)

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

    def _read(self, paths: list[Path]) -> Any:
        for path in paths:
            if match := GLOB_CHARACTERS.search(str(path)):
                problem = f"must not have {match[0]!r} in its name: Spark reads it as a pattern"
                raise InputError(f"{path} {problem}.")
        frame = self.session.read.parquet(*map(str, paths))
        frame.createOrReplaceTempView(name := f"parquet_{uuid4().hex}")
        return self.backend.table(name)

    def _write(self, table: Any, path: Path) -> None:
        self.session.sql(self.backend.compile(table)).write.parquet(str(path))


@contextmanager
def _engine_errors(what: str) -> Iterator[None]:
    """Turn errors into one line, an ``OSError`` if a limit or the disk is the reason."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if isinstance(error, OSError) or _limit(error):
            raise OSError(f"{what}: {_limit(error) or _first_line(error)}.") from error
        raise InputError(f"{what}, its input may be damaged ({_first_line(error)}).") from error


def _limit(error: Exception) -> str | None:
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
        found = " and ".join(unusual)
        log_decision(f"{name}: {found} of each row. Rename columns that hold something else.")
    return table.select(**chosen)


def scan_kind(source: Any, kind: Kind, name: str, engine: TableEngine, columns: ColumnNames) -> Any:
    """Return the columns of edges, labels or interactions, chosen by the first rows as in memory."""
    table = engine.scan(source)
    for role, column in check_mapping(columns, "columns", "names of columns by role").items():
        if role not in KINDS[kind]:
            raise InputError("columns", f"must name columns of {', '.join(KINDS[kind])}; got {show(role)}.")
        check_type(column, (str, type(None)), role, "the name of a column")
    try:
        head = from_arrow(engine.arrow(table.limit(N_INSPECTED)))
        file = describe(source) if isinstance(source, (str, os.PathLike)) else name
        head, positions = choose_columns(head, kind, columns, file)
    except InputError as error:
        raise InputError(name, f"must be a table of {kind}: {error}") from error
    names = head.names or []
    return table.select(**{role: names[position] for role, position in positions.items()})


def read_edges(
    edges: Any,
    engine: TableEngine,
    *,
    directed: bool,
    interactions: bool = False,
    columns: ColumnNames | None = None,
    others: Sequence[Any] = (),
) -> tuple[Any, list[Any], Any]:
    """Return the entries of the adjacency, tables of the ids of all nodes, and the type of ids in the input.

    Entries are distinct, undirected edges in both directions. ``others`` are the last of the tables.
    """
    for name, value in (("directed", directed), ("interactions", interactions)):
        check_type(value, bool, name, "True or False")
    kind: Kind = "interactions" if interactions else "edges"
    table = scan_kind(edges, kind, "edges", engine, {} if columns is None else columns)
    table = table.rename({new: old for new, old in ROLES_OF_EDGES.items() if old in table.columns})
    table = table.select(*(role for role in EDGE_COLUMNS if role in table.columns))
    check_ids(table, ["source", "target"], "edges", engine)
    if "weight" in table.columns and table.weight.type().is_numeric():  # as read_columns does in memory
        weighted = table.filter(~(table.weight.isnull() | table.weight.cast("float64").isnan()))
        n_rows, n_weighted = count_rows(table, engine), count_rows(weighted, engine)
        if n_weighted < n_rows:
            result = "they are left out" if n_weighted else "the column is not read"
            log_decision(f"edges: rows without a weight: {n_rows - n_weighted:,}; {result}.", "weight")
            table = weighted if n_weighted else table.drop("weight")
    check_weights(table, "edges", engine)
    ends = ["source"] if interactions else ["source", "target"]
    listed = [*(table.select(id=end) for end in ends), *others]
    id_type = _narrowest_type(listed, engine)
    rows = table.cast(dict.fromkeys(ends, id_type))
    is_edge = rows.weight > 0 if "weight" in rows.columns else ibis.literal(True)
    if directed or interactions:
        rows = engine.materialise_distinct(rows.filter(is_edge))
    else:
        is_edge &= rows.source != rows.target
        all_rows, rows = rows, rows.filter(is_edge)
        rows = rows.union(rows.rename(source="target", target="source").select(rows.columns))
        rows = engine.materialise_distinct(rows)
        # Sources of sorted edges need little memory; nodes of dropped rows are added.
        dropped = all_rows.filter(~is_edge)
        listed[:2] = [rows.select(id="source"), dropped.select(id="source"), dropped.select(id="target")]
    return rows, [ids.cast({"id": id_type}) for ids in listed], table.source.type()


def _narrowest_type(tables: list[Any], engine: TableEngine) -> Any:
    """Return the smallest type of all ids, by which joins and unions are faster."""
    kinds = {table.id.type().is_string() for table in tables}
    if len(kinds) > 1:
        raise InputError("ids", "must be integers in all tables or strings in all tables; got both.")
    if kinds == {True}:
        return "string"
    limits = [engine.row(ids.aggregate(low=ids.id.min(), high=ids.id.max())) for ids in tables]
    values = [value for row in limits for value in row.values() if value is not None]
    for bits in (32, 64):
        if all(-(2 ** (bits - 1)) <= value < 2 ** (bits - 1) for value in values):
            return f"int{bits}"
    return "uint64"


def read_ids(nodes: Any, engine: TableEngine) -> Any:
    """Return ids, and labels if a column has a usual name of labels."""
    table = engine.scan(nodes)
    names = match_names(list(table.columns), NODE_COLUMNS)
    roles = {role: words for role, words in NODE_COLUMNS.items() if role == "id" or role in names}
    table = select_columns(table, roles, "nodes", n_required=1)
    check_ids(table, ["id"], "nodes", engine, is_unique="label" in roles)
    return table


def count_rows(table: Any, engine: TableEngine) -> int:
    """Count rows."""
    return int(engine.row(table.aggregate(n=table.count()))["n"])


def check_ids(
    table: Any, roles: Sequence[str], name: str, engine: TableEngine, *, is_unique: bool = False
) -> None:
    """Raise an error unless columns hold integers or strings, none missing, perhaps unique ones."""
    for role in roles:
        kind = table[role].type()
        if not (kind.is_integer() or kind.is_string()):
            raise InputError(f"{role} of {name}", f"must hold integers or strings; it holds {kind}.")
    n_missing = engine.row(table.aggregate([table[role].isnull().sum().name(role) for role in roles]))
    for role in roles:
        if n_missing[role]:
            raise InputError(f"{role} of {name}", f"must not be missing; it is in {n_missing[role]} rows.")
    if is_unique:
        counts = engine.row(table.aggregate(rows=table.count(), ids=table[roles[0]].nunique()))
        if counts["rows"] != counts["ids"]:
            raise InputError(name, "must list every id once; got {rows} rows, {ids} ids.".format(**counts))


def check_weights(table: Any, name: str, engine: TableEngine) -> None:
    """Raise an error for weights that are missing, infinite or negative."""
    if "weight" not in table.columns:
        return
    if not table.weight.type().is_numeric():
        raise InputError(f"weight of {name}", f"must hold numbers; it holds {table.weight.type()}.")
    value = table.weight.cast("float64")
    is_wrong = value.isnull() | value.isnan() | value.isinf() | (value < 0)
    if n_wrong := count_rows(table.filter(is_wrong), engine):
        raise InputError(f"weight of {name}", f"must be finite and not negative; {n_wrong} rows are not.")
