"""The rules of read_interactions."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from nodecopy import Interactions
from nodecopy.errors import InputError
from nodecopy.io import read_interactions, write_interactions

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def to_file(text: str) -> Path:
        path = tmp_path / "log.csv"
        path.write_text(text)
        return path

    return to_file


@pytest.mark.parametrize(
    "text",
    [
        "user,item,rating\nann,tea,5\nbob,jam,2\n",
        "userId,movieId,rating,timestamp\nann,tea,5,1\nbob,jam,2,2\n",
        "item,user,rating\ntea,ann,5\njam,bob,2\n",
        "ann,tea,5\nbob,jam,2\n",
        "ann,tea,5,100\nbob,jam,2,90\n",
    ],
)
def test_headers_and_columns(text: str, write: Write) -> None:
    assert read_interactions(write(text)) == Interactions.from_table(["ann", "bob"], ["tea", "jam"], [5, 2])


def test_ids_of_users_and_items_have_their_own_types(write: Write) -> None:
    log = read_interactions(write("7,a\n10,b\n"))
    assert log.user_ids.tolist() == [7, 10]
    assert log.item_ids.tolist() == ["a", "b"]
    assert not log.is_weighted


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a,x,1\na,x,2\n", 2),
        ("user,item,rating,time\na,x,1,20\na,x,2,10\n", 1),
        ("user,item,rating,time\na,x,1,2020-02-01\na,x,2,2020-01-31T23:00:00\n", 1),
        ("user,item,rating,time\na,x,1,2020-01-01T00:30:00+01:00\na,x,2,2020-01-01T00:00:00Z\n", 2),
    ],
)
def test_the_latest_row_counts(text: str, kept: int, write: Write) -> None:
    assert read_interactions(write(text)).matrix.toarray().tolist() == [[kept]]


def test_the_caller_names_columns(write: Write) -> None:
    path = write("when,who,what,stars\n5,ann,tea,4\n6,ann,tea,3\n")
    log = read_interactions(path, user="who", item="what", rating="stars", time="when")
    assert log == Interactions.from_table(["ann"], ["tea"], [3])
    with pytest.raises(InputError, match="no column 'nobody'"):
        read_interactions(path, user="nobody", item="what")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,x,1\na,y,good\n", "line 2 has rating 'good'"),
        ("a,x,1\na,y,-1\n", "line 2 has rating -1"),
        (
            "user,item,time\na,x,2020-01-01\na,y,soon\n",
            "line 3 has time 'soon'; it must be a number or a date",
        ),
        ("user,item,time\na,x,1\na,y,inf\n", "line 3 has time inf"),
        ("a,x\n,x\n", "line 2 has no user"),
        ("a,x\nb\n", "line 2 has 1 columns"),
        ("a\n", "must have a column for user and item"),
    ],
)
def test_bad_text(text: str, message: str, write: Write) -> None:
    with pytest.raises(InputError, match=f"log.csv: .*{message}"):
        read_interactions(write(text))


def test_parquet_with_dates(tmp_path: Path) -> None:
    times = pa.array(np.array(["2021-01-02", "2021-01-01"], "datetime64[us]"))
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"user": [1, 1], "item": [3, 3], "rating": [1, 2], "time": times}), path)
    assert read_interactions(path).matrix.toarray().tolist() == [[1]]


def test_scipy_files(tmp_path: Path) -> None:
    sparse.save_npz(tmp_path / "log.npz", sparse.csr_array([[0, 2, 0]]))
    assert read_interactions(tmp_path / "log.npz") == Interactions([[0, 2, 0]])
    with pytest.raises(InputError, match="no columns to name"):
        read_interactions(tmp_path / "log.npz", user="u")


def test_a_header_alone_is_an_empty_log(write: Write) -> None:
    assert read_interactions(write("user,item\n")).n_users == 0


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("user_id,movie_id,stars,ts\na,x,4,1\n", []),
        (
            "user_id,movie_id,mark,genre\na,x,4,drama\n",
            [
                "log.csv: mark holds the rating of each row. rating=NAME reads another column. rating='' "
                "reads none.",
                "log.csv: not read: genre. time=NAME reads one of them.",
            ],
        ),
        ("user,item\na,x\na,x\n", ["log.csv: repeated user-item pairs: 1; the latest row counts."]),
        (
            "a,x,1260759144\nb,x,1260759145\n",
            [
                "log.csv: column 3 holds the time of each row. time=NAME reads another column. time='' reads "
                "none."
            ],
        ),
    ],
)
def test_columns_are_logged(
    text: str, messages: list[str], write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    """Before, one usual name switched off the search for ratings, and nothing was said."""
    with caplog.at_level(logging.INFO, "nodecopy"):
        read_interactions(write(text))
    assert [message for message in caplog.messages if "first row" not in message] == messages


def test_columns_are_left_out(write: Write) -> None:
    path = write("user,item,rating,time\na,x,5,20\na,x,3,10\n")
    assert read_interactions(path).matrix.toarray().tolist() == [[5]]
    assert read_interactions(path, time="").matrix.toarray().tolist() == [[3]]
    assert not read_interactions(path, rating="").is_weighted


def test_the_caller_decides_on_the_header(write: Write) -> None:
    path = write("ann,tea\nbob,tea\n")
    assert read_interactions(path).n_users == 2
    assert read_interactions(path, header=True).n_users == 1
    assert read_interactions(write("user,item\nbob,tea\n"), header=False).n_users == 2


@pytest.mark.parametrize("suffix", ["csv", "tsv", "txt", "npz"])
def test_times_are_written_and_read(suffix: str, tmp_path: Path) -> None:
    log = Interactions.from_table(["ann", "ann", "bob"], ["tea", "jam", "tea"], times=[30, 10, 20])
    write_interactions(log, tmp_path / f"log.{suffix}")
    again = read_interactions(tmp_path / f"log.{suffix}")
    assert again == log
    assert again.times is not None
    assert again.times.tolist() == [10, 30, 20]


def test_atomic_files_of_recbole(tmp_path: Path) -> None:
    def write(text: str, name: str) -> Path:
        (tmp_path / name).write_text(text)
        return tmp_path / name

    text = "user_id:token\titem_id:token\trating:float\ttimestamp:float\ttags:token_seq\n"
    path = write(text + "u1\ti 1\t5\t30.0\ta b\nu2\ti 2\t3\t10.0\tc\n", "ml.train.inter")
    log = read_interactions(path)
    assert log == Interactions.from_table(["u1", "u2"], ["i 1", "i 2"], [5, 3])
    assert log.times is not None
    assert log.times.tolist() == [30, 10]
    with pytest.raises(InputError, match=r"must have a type behind each name.*; got 'item'"):
        read_interactions(write("user:token\titem\n1\t2\n", "bad.inter"))
    with pytest.raises(InputError, match="must have a column for user and item"):
        read_interactions(write("user_id:token\titem_id_list:token_seq\n1\t2 3\n", "seq.inter"))
    with pytest.raises(InputError, match="must end in one of"):
        write_interactions(log, path)
