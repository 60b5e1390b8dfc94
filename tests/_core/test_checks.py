"""Checks of arguments, and limits on the memory that small files take."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from nodecopy import load, read_graph, read_interactions
from nodecopy._core import checks as file_limits
from nodecopy._core.checks import (
    LIMIT,
    check_choice,
    check_finite,
    check_indices,
    check_integer,
    check_shape,
    check_unique,
    check_vector,
)
from nodecopy.errors import InputError


def test_other_refusals() -> None:
    assert check_integer(3, "n", low=3, high=3) == 3
    for call, message in (
        (lambda: check_choice("c", "way", ["a", "b"]), "way must be one of 'a', 'b'; got 'c'."),
        (lambda: check_vector([[1]], "x"), r"x must have one dimension; got shape \(1, 1\)."),
        (lambda: check_vector([[1], [1, 2]], "x"), "x must be a rectangular array"),
        (lambda: check_indices([0.5], "x", size=3), "x must hold integers; got float64."),
        (lambda: check_indices([-1], "x", size=3), "x must lie between 0 and 2; got -1."),
        (lambda: check_finite(np.array([1, np.inf]), "x"), "x must hold finite numbers; got inf."),
        (lambda: check_unique(np.array([4, 4]), "x"), "x must be unique; got 4 more than once."),
    ):
        with pytest.raises(InputError, match=message):
            call()


def test_archives_that_unpack_to_more_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "graph.npz"
    np.savez_compressed(path, indptr=np.zeros(10**6 + 1, int), indices=np.zeros(0, int), directed=True)
    assert read_graph(path).n_nodes == 10**6
    monkeypatch.setattr(file_limits, "MAX_UNPACKED", 10**6)
    readers: list[Any] = [read_graph, read_interactions, load]
    for read in readers:
        with pytest.raises(InputError, match=rf"must take at most 1000000 bytes .* set .* {LIMIT}"):
            read(path)
    monkeypatch.setenv(LIMIT, str(10**8))
    assert read_graph(path).n_nodes == 10**6
    monkeypatch.setenv(LIMIT, "much")
    with pytest.raises(InputError, match=f"{LIMIT} must be a number of bytes; got 'much'"):
        read_graph(path)


@pytest.mark.parametrize("dtype", ["<f8", "|V0", "<U0", "|S0"])
def test_arrays_are_as_large_as_they_say(tmp_path: Path, dtype: str) -> None:
    """Elements without bytes are counted."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": dtype, "fortran_order": False, "shape": (10**9,)})
    with zipfile.ZipFile(tmp_path / "graph.npz", "w") as archive:
        archive.writestr("indptr.npy", header.getvalue() + bytes(80 if dtype == "<f8" else 0))
    with pytest.raises(InputError, match="must hold its arrays as a whole"):
        read_graph(tmp_path / "graph.npz")


LONG_IDS = [*(f"n{number}" for number in range(3000)), "x" * 10**5]  # in an array of NumPy, 1.2 GB


def write_edges(path: Path) -> None:
    """Write a path over the long ids in the format of a suffix."""
    table = {"source": LONG_IDS[:-1], "target": LONG_IDS[1:]}
    if path.suffix == ".parquet":
        pq.write_table(pa.table(table), path)
    elif path.suffix == ".json":
        path.write_text(json.dumps(nx.node_link_data(nx.path_graph(LONG_IDS), edges="edges")))
    elif path.suffix == ".graphml":
        nx.write_graphml(nx.path_graph(LONG_IDS), path)
    else:
        path.write_text("\n".join(map(",".join, zip(*table.values(), strict=True))))


@pytest.mark.parametrize("suffix", ["csv", "parquet", "json", "graphml"])
def test_one_long_id_pads_no_other(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / f"edges.{suffix}"
    write_edges(path)
    with pytest.raises(InputError, match=rf"ids must take at most .* 100000 characters.*{LIMIT}"):
        read_graph(path)


def test_compressed_tables_that_unpack_to_far_more_are_refused(tmp_path: Path) -> None:
    (tmp_path / "edges.csv.gz").write_bytes(gzip.compress(b"1,2\n" * 10**7))
    n_rows = 5 * 10**6
    columns = dict.fromkeys(("source", "target"), np.zeros(n_rows, np.int64))
    pq.write_table(pa.table(columns), tmp_path / "edges.parquet")
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(250_000, np.int32)), ["x" * 4_000])
    texts = pa.table({"source": text, "target": text})
    pq.write_table(texts, tmp_path / "texts.parquet", store_schema=False)
    pq.write_table(texts, tmp_path / "codes.parquet")
    assert read_graph(tmp_path / "codes.parquet").n_nodes == 1
    for name in ("edges.csv.gz", "edges.parquet", "texts.parquet"):
        with pytest.raises(InputError, match="bytes when it is unpacked"):
            read_graph(tmp_path / name)


def test_shapes_are_limited_by_the_entries(tmp_path: Path) -> None:
    check_shape((10**6, 3), 0)
    check_shape((10**9, 3), 10**6)
    wide = sparse.coo_array(([1.0], ([0], [1])), shape=(3, 10**9))
    sparse.save_npz(tmp_path / "wide.npz", wide)
    sparse.save_npz(tmp_path / "high.npz", wide.T)
    for name in ("wide.npz", "high.npz"):
        for read in (read_graph, read_interactions):
            with pytest.raises(InputError, match="rows and columns for its 1 entries"):
                read(tmp_path / name)
    (tmp_path / "a.mtx").write_text(
        "%%MatrixMarket matrix coordinate real general\n1000000000 1000000000 1\n1 2 1\n"
    )
    with pytest.raises(InputError, match="rows and columns for its 1 entries"):
        read_graph(tmp_path / "a.mtx")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="measures memory as Linux does")
def test_the_largest_table_that_a_small_file_holds_takes_less_than_a_gigabyte(tmp_path: Path) -> None:
    path = tmp_path / "edges.txt.gz"
    path.write_bytes(gzip.compress(b"10 11\n" * (file_limits.MAX_TABLE_BYTES // 6)))
    code = (
        "import resource, sys, nodecopy\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "before = peak(); nodecopy.read_graph(sys.argv[1]); print((peak() - before) / 2**20)"
    )
    ran = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert float(ran.stdout) < 1
