from __future__ import annotations

from pathlib import Path

import pytest

from nodecopy.io.columns import guess_kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("source,target\na,b\n", "edges"),
        ("id,from_account,to_account,amount\n0,a,b,1\n1,b,c,2\n", "edges"),  # features before, in reports
        ("payer,payee,amount,date\na,b,1,2020-01-01\na,c,2,2020-01-02\n", "edges"),
        ("1,2\n2,3\n", "edges"),
        ("userId,movieId,rating\n1,2,3\n", "interactions"),
        ("# comment\n\nuser;item\n1;2\n", "interactions"),
        ("user 1,item 7\nuser 2,item 7\n", "edges"),
        ("id,label\na,x\nb,x\n", "labels"),
        ("id,age\na,3\nb,4\n", "features"),
        ("id,age\na,3\na,4\n", "edges"),
        ("account,age,income,city\na,3,1,Oslo\nb,4,1,Rome\n", "features"),
        ("account,age\na,3\nb,4\n", "edges"),
    ],
)
def test_kinds_of_tables(text: str, kind: str, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(text)
    assert guess_kind(tmp_path / "table.csv") == kind
    assert guess_kind(tmp_path / "table.csv", id="account") == ("features" if "account,age" in text else kind)


def test_kinds_of_typed_tables(tmp_path: Path) -> None:
    frame = pytest.importorskip("pandas").DataFrame({"user": [1], "item": [2]})
    frame.to_parquet(tmp_path / "log.parquet")
    assert guess_kind(frame) == guess_kind(tmp_path / "log.parquet") == "interactions"
