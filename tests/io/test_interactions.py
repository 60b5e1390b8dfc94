"""The rules of read_interactions."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from nodecopy import Interactions
from nodecopy.errors import InputError
from nodecopy.io import read_interactions, write_interactions
from nodecopy.io.graphs import holds_item_lists

pytestmark = pytest.mark.filterwarnings("ignore:ids .* differ:nodecopy.errors.DataWarning")

Write = Callable[..., Path]
LISTS = "0 5 3 5\n7 3\n2\n\n"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def to_file(text: str, name: str = "log.csv") -> Path:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return to_file


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("user,item,rating\nann,tea,5\nbob,jam,2\n", {}),
        ("userId,movieId,rating,timestamp\nann,tea,5,1\nbob,jam,2,2\n", {}),
        ("item,user,rating\ntea,ann,5\njam,bob,2\n", {}),
        ("ann,tea,5\nbob,jam,2\n", {}),
        ("ann,tea,5,100\nbob,jam,2,90\n", {}),
        ("x,who,what,stars\n5,ann,tea,5\n6,bob,jam,2\n", {"user": "who", "item": "what", "rating": "stars"}),
    ],
)
def test_headers_and_columns(text: str, options: Any, write: Write) -> None:
    expected = Interactions.from_table(["ann", "bob"], ["tea", "jam"], [5, 2])
    assert read_interactions(write(text), **options) == expected


def test_ids_of_users_and_items_have_their_own_types(write: Write) -> None:
    log = read_interactions(write("7,a\n10,b\n"))
    assert (log.user_ids.tolist(), log.item_ids.tolist(), log.is_weighted) == ([7, 10], ["a", "b"], False)
    assert read_interactions(write("user,item\n")).n_users == 0
    assert read_interactions(write("user,item\nbob,tea\n"), header=False).n_users == 2
    assert read_interactions(write("ann,tea\nbob,tea\n"), header=True).n_users == 1


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
    path = write(text)
    assert read_interactions(path).matrix.toarray().tolist() == [[kept]]
    if "time" in text:
        assert read_interactions(path, time="").matrix.toarray().tolist() == [[2]]
        assert not read_interactions(path, rating="").is_weighted


@pytest.mark.parametrize(
    ("cells", "options", "ratings", "decision"),
    [
        (["1,5", "2"], {}, [1.5, 2], "'1,5' is 1.5, since its decimal sign is ','. Set decimal"),
        (["1.000", "2,5"], {}, [1000, 2.5], "'2,5' is 2.5"),
        (["1,000,000", "2.5"], {}, [1e6, 2.5], "is 1000000, since its decimal sign is '.'"),
        (["1,500", "2,500"], {"decimal": ","}, [1.5, 2.5], ""),
        (["1,500", "2,500"], {"decimal": "."}, [1500, 2500], ""),
        (["1,500", "0,250"], {}, [1.5, 0.25], "'1,500' is 1.5"),
        (["1.500", "2"], {"decimal": ","}, [1500, 2], ""),
        (["3", "", "2"], {}, [3, 2], "rows without a rating: 1; they are left out"),
        (["3", "NA", "2"], {"rating": ""}, [1, 1, 1], ""),
        (["", ""], {}, [1, 1], "the column is not read"),
        (["3", "0", "2"], {}, [3, 2], "pairs with a rating of 0: 1; they are no interactions"),
    ],
)
def test_ratings_in_the_notation_of_spreadsheets(
    cells: list[str], options: Any, ratings: list[float], decision: str, caplog: Any, write: Write
) -> None:
    caplog.set_level(logging.INFO, "nodecopy")
    rows = "".join(f"a;{item};{cell}\n" for item, cell in enumerate(cells))
    log = read_interactions(write(f"user;item;rating\n{rows}"), **options)
    assert log.matrix.data.tolist() == ratings
    assert decision in caplog.text


@pytest.mark.parametrize(
    ("cells", "options", "order"),
    [
        (["31.05.2024 9:30", "01.06.2024 08:00"], {}, "day, month"),
        (["2.3.24", "1.4.24"], {}, "day, month"),
        (["5/31/2024", "6/1/2024"], {}, "month, day"),
        (["31-05-1999", "01-06-1999"], {}, "day, month"),
        (["2/3/2024", "1/4/2024"], {"day_first": True}, ""),
        (["1/4/2024", "2/3/2024"], {"day_first": False}, ""),
    ],
)
def test_dates_that_are_not_iso_8601(
    cells: list[str], options: Any, order: str, caplog: Any, write: Write
) -> None:
    """The second row of the pair is the later one."""
    caplog.set_level(logging.INFO, "nodecopy")
    rows = "".join(f"a,x,{rating},{cell}\n" for rating, cell in zip("54", cells, strict=True))
    assert (
        read_interactions(write(f"user,item,rating,when\n{rows}"), time="when", **options).matrix.sum() == 4
    )
    assert order in caplog.text


@pytest.mark.parametrize(
    ("when", "times"),
    [
        (pandas.to_datetime(["2024-01-02T00:00Z", "2024-01-03T01:00+01:00"], utc=True), [0, 86400]),
        ([datetime.date(2024, 1, 2), datetime.date(2024, 1, 3)], [0, 86400]),
    ],
)
def test_times_of_pandas_with_a_zone_and_dates(when: Any, times: list[float]) -> None:
    log = read_interactions(pandas.DataFrame({"user": ["a", "b"], "item": ["x", "y"], "when": when}))
    assert (np.asarray(log.times) - 1704153600).tolist() == times


@pytest.mark.parametrize(
    ("text", "options", "fragment"),
    [
        ("user,item,time\na,x,2/3/2024\n", {}, "line 2 has time '2/3/2024', whose day is .*day_first=True"),
        ("user,item,time\na,x,31.31.2024\n", {}, "line 2 has time '31.31.2024'; .*time=''"),
        ('user,item,rating\na,x,"1,500"\n', {}, "line 2 has rating '1,500', whose decimal .*decimal=','"),
        ("user;item;rating\na;x;1,5\na;y;1.5\n", {"decimal": ","}, "line 3 has rating '1.5', which is not"),
        ("a,x,1\na,y,good\n", {}, "line 2 has rating 'good'"),
        ("user,item,time\na,x,2020-01-01\na,y,soon\n", {}, "line 3 has time 'soon'"),
        ("user,item,time\na,x,1\na,y,inf\n", {}, "line 3 has time inf"),
        ("a,x\n,x\n", {}, "line 2 has no user"),
        ("a,x\nb\n", {}, "line 2 has 1 columns"),
        ("user,item\n1,2\n", {"lists": True}, r"lists of items can be read from \.txt files only"),
        ("who,what\na,x\n", {"user": "nobody"}, "user must be a column; got 'nobody', where there are who"),
    ],
)
def test_bad_text(text: str, options: Any, fragment: str, write: Write) -> None:
    with pytest.raises(InputError, match=f"log.csv: .*{fragment}"):
        read_interactions(write(text), **options)


def test_parquet_with_dates_and_files_of_scipy(tmp_path: Path) -> None:
    times = pa.array(np.array(["2021-01-02", "2021-01-01"], "datetime64[us]"))
    table = pa.table({"user": [1, 1], "item": [3, 3], "rating": [1, 2], "time": times})
    pq.write_table(table, tmp_path / "log.parquet")
    assert read_interactions(tmp_path / "log.parquet").matrix.toarray().tolist() == [[1]]
    sparse.save_npz(tmp_path / "log.npz", sparse.csr_array([[0, 2, 0]]))
    assert read_interactions(tmp_path / "log.npz") == Interactions([[0, 2, 0]])
    with pytest.raises(InputError, match="no columns to name"):
        read_interactions(tmp_path / "log.npz", user="u")


@pytest.mark.parametrize("suffix", ["csv", "tsv", "txt", "npz"])
def test_times_are_written_and_read(suffix: str, tmp_path: Path) -> None:
    log = Interactions.from_table(["ann", "ann", "bob"], ["tea", "jam", "tea"], times=[30, 10, 20])
    write_interactions(log, tmp_path / f"log.{suffix}")
    again = read_interactions(tmp_path / f"log.{suffix}")
    assert again == log
    assert again.times is not None
    assert again.times.tolist() == [10, 30, 20]


def test_atomic_files_of_recbole(write: Write) -> None:
    text = "user_id:token\titem_id:token\trating:float\ttimestamp:float\ttags:token_seq\n"
    path = write(text + "u1\ti 1\t5\t30.0\ta b\nu2\ti 2\t3\t10.0\tc\n", "ml.train.inter")
    log = read_interactions(path)
    assert log == Interactions.from_table(["u1", "u2"], ["i 1", "i 2"], [5, 3])
    assert log.times is not None
    assert log.times.tolist() == [30, 10]
    with pytest.raises(InputError, match=r"must hold names with types.*; got 'item'"):
        read_interactions(write("user:token\titem\n1\t2\n", "bad.inter"))
    with pytest.raises(InputError, match="must have columns for user and item"):
        read_interactions(write("user_id:token\titem_id_list:token_seq\n1\t2 3\n", "seq.inter"))
    with pytest.raises(InputError, match="must end in one of"):
        write_interactions(log, path)


def test_lists_of_items(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    log = read_interactions(write(LISTS, "train.txt"))
    assert log == Interactions([[1, 1], [0, 0], [1, 0]], [0, 2, 7], [3, 5])
    assert "train.txt: each line holds a user and that user's items" in caplog.text
    named = read_interactions(write("ann tea jam\nbob tea\nann ham\n", "names.txt"), lists=True)
    assert named == Interactions([[1, 1, 1], [0, 0, 1]], ["ann", "bob"], ["ham", "jam", "tea"])
    with pytest.raises(InputError, match=r"line 2 has 2 columns where the first row has 4"):
        read_interactions(write(LISTS, "train.txt"), lists=False)
    with pytest.raises(InputError, match="the file holds no rows"):
        read_interactions(write("\n", "train.txt"), lists=True)
    for text in (
        *("0 5 3\n7 3 2\n", "0 5 3\n0 3\n", "0 5 3\n1 3.5\n", "user item rating\n1 2\n"),
        *("0,5,3\n1,3\n", "1 The Matrix 5\n2 Up 4\n"),
    ):
        assert not holds_item_lists(write(text, "table.txt"))
