"""Matrix Market files; damaged ones ended the interpreter."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodecopy.errors import InputError
from nodecopy.io.edge_lists import read_matrix_market

HEADER = "%%MatrixMarket matrix coordinate pattern general\n% a comment\n"


def test_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.mtx"
    path.write_text(f"{HEADER}2 3 2\n1 2\n\n2 3\n")
    assert read_matrix_market(path).toarray().tolist() == [[0, 1, 0], [0, 0, 1]]
    path.write_text("%%MatrixMarket matrix array integer symmetric\n2 2\n0\n1\n0\n")
    assert read_matrix_market(path).toarray().tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    "body", ["2 3 1\n1 2\n2 3\n", "2 3 3\n1 2\n2 3\n", "2 3 1\n1 2 x\n", "2 3 1\n1 \0\n"]
)
def test_damaged_files_are_errors(body: str, tmp_path: Path) -> None:
    (tmp_path / "a.mtx").write_text(HEADER + body)
    with pytest.raises(InputError, match=r"lines of entries|must hold numbers"):
        read_matrix_market(tmp_path / "a.mtx")


def test_a_dense_matrix_has_all_its_entries(tmp_path: Path) -> None:
    (tmp_path / "a.mtx").write_text("%%MatrixMarket matrix array real general\n100000 100000\n1\n")
    with pytest.raises(InputError, match="an entry for each place; there are 10000000000"):
        read_matrix_market(tmp_path / "a.mtx")
