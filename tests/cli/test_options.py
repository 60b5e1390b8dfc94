from __future__ import annotations

from pathlib import Path

import pytest

from nodecopy import Interactions
from nodecopy.cli.options import check_applicable, check_outputs
from nodecopy.errors import InputError
from nodecopy.io import write_interactions
from tests.cli.conftest import Run

FORMATS = (".csv", ".npz")


def test_options_that_were_not_given_are_accepted() -> None:
    check_applicable("files", "a dataset", labels=None, directed=False)


def test_zero_counts_as_given() -> None:
    with pytest.raises(InputError, match=r"^--n-graphs applies to --method bgcn-copy only; got --method gcn"):
        check_applicable("--method bgcn-copy", "--method gcn", n_graphs=0, n_rounds=None)


def test_all_options_that_were_given_are_named() -> None:
    with pytest.raises(InputError) as raised:
        check_applicable("files", "the dataset 'cora'", labels="labels.csv", features=None, directed=True)
    assert str(raised.value) == (
        "--labels and --directed apply to files only; got the dataset 'cora'. Leave them out."
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-n", "0"), "--n must be an integer of at least 1; got 0."),
        (("--keep", "nan"), "--keep must be a number between 0 and 1; got nan."),
        (("--max-donors", "0"), "--max-donors must be an integer of at least 1; got 0."),
    ],
)
def test_checked_options_are_named_by_their_long_form(
    run: Run, arguments: tuple[str, ...], message: str
) -> None:
    ran = run("sample", "karate", *arguments)
    assert (ran.code, ran.err) == (2, f"error: {message}\n")


def test_other_files_are_no_error(tmp_path: Path) -> None:
    paths = {"out": tmp_path / "out.csv", "save": None}
    check_outputs(
        ["cora", None, tmp_path / "in.csv"], **{name: (path, FORMATS) for name, path in paths.items()}
    )


@pytest.mark.parametrize("name", ["in.csv", "folder/../in.csv"])
def test_what_is_read_is_not_replaced(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="--out must be a file that is neither an input nor another output"):
        check_outputs([str(tmp_path / "in.csv")], out=(tmp_path / name, FORMATS))


def test_two_outputs_are_two_files(tmp_path: Path) -> None:
    both = tmp_path / "both.npz"
    with pytest.raises(InputError, match=r"--flips must be a file that .*; got .*both\.npz\. Choose"):
        check_outputs([], out=(both, FORMATS), flips=(both, FORMATS))


def test_no_text_is_a_formula_with_spreadsheet(run: Run) -> None:
    Path("log.csv").write_text("user,item\n=HYPERLINK(1),+a\n=HYPERLINK(1),b\n-c,b\n-c,d\n@e,d\n@e,+a\n")
    command = ("recommend", "log.csv", "--model", "popularity", "--all-users", "--out", "out.csv")
    run(*command, "--spreadsheet")
    cells = [cell for line in Path("out.csv").read_text().splitlines() for cell in line.split(",")]
    assert "'=HYPERLINK(1)" in cells
    assert not any(cell.startswith(("=", "+", "@")) for cell in cells)
    run(*command)
    assert "=HYPERLINK(1)" in Path("out.csv").read_text().replace(",", "\n").splitlines()
    run("sample", "log.csv", "--spreadsheet", "--out", "samples")
    assert "'-c" in Path("samples/sample-0.csv").read_text()
    write_interactions(Interactions.from_table(["=a"], ["b"]), "after.csv")
    assert Path("after.csv").read_text() == "user,item\n=a,b\n"
