from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodecopy.cli.sample import create_sample_folder, find_samples
from nodecopy.errors import InputError


def test_samples_are_numbered_and_found_in_order(tmp_path: Path) -> None:
    out = tmp_path / "samples"
    with create_sample_folder(out, {"n": 12, "seed": 3}, "csv", overwrite=False) as sample_path:
        for number in (11, 2):
            sample_path(number).touch()
        assert not out.exists()
    files = ["sample-02.csv", "sample-11.csv"]
    assert [path.name for path in find_samples(out)] == files
    assert json.loads((out / "samples.json").read_text()) == {"n": 12, "seed": 3, "files": files}


def test_a_failure_leaves_no_folder(tmp_path: Path) -> None:
    with (
        pytest.raises(IsADirectoryError),
        create_sample_folder(tmp_path / "out", {"n": 1}, "csv", overwrite=False) as sample_path,
    ):
        sample_path(0).parent.write_text("a folder is no file")
    assert list(tmp_path.iterdir()) == []


def test_what_holds_no_samples_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "graph.csv"
    file.touch()
    assert find_samples(file) == [file]
    with pytest.raises(InputError, match=r"folder with sample-\* files; .* has none\. Write some"):
        find_samples(tmp_path)
    with pytest.raises(InputError, match=r"missing\.csv does not exist"):
        find_samples(tmp_path / "missing.csv")
