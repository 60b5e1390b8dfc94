"""Small files take little memory."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from nodecopy import load, read_graph, read_interactions
from nodecopy._core import file_limits
from nodecopy._core.file_limits import LIMIT, check_shape, open_archive
from nodecopy.errors import InputError


def test_archives_that_unpack_to_far_more_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "graph.npz"
    np.savez_compressed(path, indptr=np.zeros(10**6 + 1, int), indices=np.zeros(0, int), directed=True)
    assert read_graph(path).n_nodes == 10**6
    monkeypatch.setattr(file_limits, "MAX_UNPACKED", 10**6)
    readers: list[Any] = [read_graph, read_interactions, load]
    for read in readers:
        with pytest.raises(InputError, match=rf"must take at most 1000000 bytes .* set .* {LIMIT}"):
            read(path)
    monkeypatch.setenv(LIMIT, str(10**7))
    assert read_graph(path).n_nodes == 10**6


def test_arrays_are_as_large_as_they_say(tmp_path: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**9)}
    )
    with zipfile.ZipFile(tmp_path / "graph.npz", "w") as archive:
        archive.writestr("indptr.npy", header.getvalue() + bytes(80))
    with pytest.raises(InputError, match="must hold its arrays as a whole; one of 8000000000000000000 bytes"):
        read_graph(tmp_path / "graph.npz")


def test_shapes_are_limited_by_the_entries(tmp_path: Path) -> None:
    check_shape((10**7, 3), 0)
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


def test_files_that_are_no_archives_are_read_as_before() -> None:
    content = io.BytesIO()
    np.save(content, np.arange(3))
    with open_archive(content) as array:
        assert array.tolist() == [0, 1, 2]
