from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodecopy._core.files import TABLES, format_of, is_frame, is_table, reading, target_format
from nodecopy.errors import InputError, MissingExtraError


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        ("edges.csv", ".csv"),
        ("EDGES.CSV", ".csv"),
        ("a.b.tsv.gz", ".tsv"),
        ("edges.TXT.GZ", ".txt"),
        ("graph.parquet", ".parquet"),
        ("graph.npz", ".npz"),
    ],
)
def test_the_suffix_selects_the_format(name: str, suffix: str) -> None:
    assert format_of(Path("folder") / name, (*TABLES, ".npz")) == suffix
    assert is_table(name) == (suffix != ".npz")


@pytest.mark.parametrize("name", ["edges", "edges.gz", "graph.npz.gz", "edges.parquet.gz", "edges.csv.zip"])
def test_other_suffixes_are_errors(name: str) -> None:
    with pytest.raises(InputError, match=rf"{name} must end in one of \.csv, \.tsv, \.txt, \.parquet"):
        format_of(name, TABLES)


def test_a_data_frame_counts_as_parquet() -> None:
    frame = pytest.importorskip("pandas").DataFrame({"a": [1]})
    assert is_frame(frame)
    assert not is_frame(np.ones(2))
    assert format_of(frame, TABLES) == ".parquet"


def test_targets_are_checked_before_they_are_written(tmp_path: Path) -> None:
    assert target_format(tmp_path / "new" / "out.csv", TABLES) == ".csv"
    assert not (tmp_path / "new").exists()
    (tmp_path / "out.csv").mkdir()
    with pytest.raises(InputError, match="there is a folder of that name"):
        target_format(tmp_path / "out.csv", TABLES)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (InputError("line 2 is wrong."), "line 2 is wrong."),
        (ValueError("bad\nmore"), "cannot be read, it is damaged or of another format (bad)."),
        (KeyError(), "cannot be read, it is damaged or of another format (KeyError)."),
    ],
)
def test_errors_while_reading_name_the_file(error: Exception, message: str, tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text("x")
    with pytest.raises(InputError) as caught, reading(path):
        raise error
    assert str(caught.value) == f"{path}: {message}"
    assert caught.value.__cause__ is error


def test_a_missing_extra_stays_that(tmp_path: Path) -> None:
    (tmp_path / "file.parquet").write_text("x")
    with pytest.raises(MissingExtraError, match="tables"), reading(tmp_path / "file.parquet"):
        raise MissingExtraError("tables")


def read(path: Any) -> None:
    with reading(path):
        pass


def test_missing_and_empty_files_and_folders_are_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing\.csv does not exist"):
        read(tmp_path / "nothing.csv")
    with pytest.raises(InputError, match="must be a file; it is a folder"):
        read(tmp_path)
    (tmp_path / "empty.csv").touch()
    with pytest.raises(InputError, match=r"empty\.csv: the file is empty"):
        read(tmp_path / "empty.csv")


def test_files_to_be_written_get_no_advice_for_reading(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must end in one of \.npz; got '\.pt'\.$"):
        target_format(tmp_path / "model.pt", (".npz",))
    with pytest.raises(InputError, match="must be a file; there is a folder of that name"):
        target_format(tmp_path, (".npz",))


@pytest.mark.skipif(sys.platform == "win32", reason="has no named pipes")
def test_pipes_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "edges.csv")
    with pytest.raises(InputError, match="only files can be read, not devices and pipes"):
        read(tmp_path / "edges.csv")
