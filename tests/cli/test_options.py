from __future__ import annotations

import pytest

from nodecopy.cli.options import check_applicable
from nodecopy.errors import InputError
from tests.cli.conftest import Run


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
        (("-n", "-1"), "--n must be an integer of at least 0; got -1."),
        (("--keep", "nan"), "--keep must be a number between 0 and 1; got nan."),
        (("--max-donors", "0"), "--max-donors must be an integer of at least 1; got 0."),
    ],
)
def test_checked_options_are_named_by_their_long_form(
    run: Run, arguments: tuple[str, ...], message: str
) -> None:
    ran = run("sample", "karate", *arguments)
    assert (ran.code, ran.err) == (2, f"error: {message}\n")
