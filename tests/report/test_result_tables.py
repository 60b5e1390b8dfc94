from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nodecopy.errors import DataWarning, InputError
from nodecopy.report.page import DATASETS, result_tables_section
from tests.report import examples


def test_ours_beside_the_published(tmp_path: Path) -> None:
    titles = {"table9": {"": "A table", "gcn": "GCN"}}
    section = result_tables_section(examples.write_results(tmp_path / "results"), titles=titles)
    (experiment,) = section["experiments"]
    assert experiment["title"] == "Table 9: A table"
    (group,) = experiment["groups"]
    assert group["dataset"] == "Cora"
    assert group["columns"] == ["5 labels", "10 labels"]
    assert group["methods"] == ["GCN", examples.CRAFTED[0]]
    assert group["cells"] == [
        [[69.2, 4.2, 70, 3.7, "level", 1], [74.9, 2.9, 76, 2.2, "behind", 1]],
        [[None, None, 74.6, 2.8], None],
    ]
    assert experiment["origin"]["commit"] == ["abc", "def"]


def test_a_table_with_one_column_is_called_after_its_score(tmp_path: Path) -> None:
    file = examples.write_results(tmp_path) / "table9.csv"
    head, first, *_ = file.read_text(encoding="utf-8").splitlines()
    file.write_text(f"{head}\n{first}\n", encoding="utf-8")
    (experiment,) = result_tables_section(tmp_path)["experiments"]
    assert experiment["title"] == "Table 9"
    assert experiment["groups"][0]["columns"] == ["accuracy"]


def test_other_files_are_left_out_and_alone_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="folder must hold CSV files of results tables"):
        result_tables_section(tmp_path)
    (tmp_path / "other.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(InputError, match="folder must hold CSV files of results tables"):
        result_tables_section(tmp_path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"\xff" + content,
        lambda content: content[: len(content) * 2 // 3],
        lambda content: content.replace(b"69.2", b"much"),
        lambda content: content.replace(b"69.2", b"inf"),
        lambda content: content.replace(b"69.2", b"69.2," * 3),
        lambda content: content.replace(b"69.2", b"6" * 200_000),
    ],
)
def test_tables_that_cannot_be_read_are_left_out(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    content = (examples.write_results(tmp_path) / "table9.csv").read_bytes()
    (tmp_path / "damaged.csv").write_bytes(damage(content))
    (tmp_path / "folder.csv").mkdir()
    with (
        pytest.warns(DataWarning, match=r"damaged\.csv is left out, since it cannot be read"),
        pytest.warns(DataWarning, match=r"folder\.csv is left out, since it cannot be read"),
    ):
        section = result_tables_section(tmp_path)
    assert [experiment["name"] for experiment in section["experiments"]] == ["table9"]


def test_the_tables_of_this_repository_are_read() -> None:
    folder = Path(__file__).parents[2] / "results"
    section = result_tables_section(folder)
    names = [experiment["name"] for experiment in section["experiments"]]
    assert sorted(names) == sorted(path.stem for path in folder.glob("*.csv"))
    assert names[section["open"]] == "table2"
    assert section["experiments"][section["open"]]["title"] == "Table 2"
    datasets = {group["dataset"] for entry in section["experiments"] for group in entry["groups"]}
    assert datasets <= set(DATASETS.values())
