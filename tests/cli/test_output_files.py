"""Files that commands write never replace what they read, or one another."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodecopy.cli.output_files import check_outputs
from nodecopy.errors import InputError

ANY = (".csv", ".npz")


def test_other_files_are_no_error(tmp_path: Path) -> None:
    check_outputs(["cora", None, tmp_path / "in.csv"], out=(tmp_path / "out.csv", ANY), save=(None, ANY))


@pytest.mark.parametrize("name", ["in.csv", "folder/../in.csv"])
def test_what_is_read_is_not_replaced(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="--out must be a file that is neither an input nor another output"):
        check_outputs([str(tmp_path / "in.csv")], out=(tmp_path / name, ANY))


def test_two_outputs_are_two_files(tmp_path: Path) -> None:
    both = tmp_path / "both.npz"
    with pytest.raises(InputError, match=r"--flips must be a file that .*; got .*both\.npz\. Choose"):
        check_outputs([], out=(both, ANY), flips=(both, ANY))
