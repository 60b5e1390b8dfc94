"""Matrix Market files; damaged ones ended the interpreter."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from nodecopy.errors import InputError
from nodecopy.io.matrix_market import read_matrix_market

HEADER = "%%MatrixMarket matrix coordinate pattern general\n% a comment\n"


def test_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.mtx.gz"
    path.write_bytes(gzip.compress(f"{HEADER}2 3 2\n1 2\n\n2 3\n".encode()))
    assert read_matrix_market(path).toarray().tolist() == [[0, 1, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    "body", ["2 3 1\n1 2\n2 3\n", "2 3 3\n1 2\n2 3\n", "2 3 1\n1 2 x\n", "2 3 1\n1 \0\n"]
)
def test_damaged_files_are_errors(body: str, tmp_path: Path) -> None:
    (tmp_path / "a.mtx").write_text(HEADER + body)
    with pytest.raises(InputError, match=r"lines of entries|must hold numbers"):
        read_matrix_market(tmp_path / "a.mtx")
