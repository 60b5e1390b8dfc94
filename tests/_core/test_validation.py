"""Checks: what passes, and how a refusal is worded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from nodecopy._core.checks import (
    check_choice,
    check_finite,
    check_indices,
    check_integer,
    check_mapping,
    check_real,
    check_unique,
    check_vector,
)
from nodecopy.errors import InputError


@pytest.mark.parametrize(
    ("value", "limits", "message"),
    [
        (0, {"low": 1}, "k must be an integer of at least 1; got 0."),
        (np.int64(50), {"low": 1, "high": 9}, "k must be an integer between 1 and 9; got 50."),
        (
            9,
            {"low": 1, "high": 3, "high_name": "n - 1"},
            "k must be an integer between 1 and n - 1 = 3; got 9.",
        ),
        (True, {"low": 0}, "k must be an integer of at least 0; got True."),
        (2.0, {"low": 0}, "k must be an integer of at least 0; got 2.0."),
        ("2", {"low": 0}, "k must be an integer of at least 0; got '2'."),
    ],
)
def test_bad_integers(value: Any, limits: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        check_integer(value, "k", **limits)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("value", "limits", "message"),
    [
        (-1, {"low": 0}, "p must be a number of at least 0; got -1."),
        (2, {"low": 0, "high": 1}, "p must be a number between 0 and 1; got 2."),
        (float("nan"), {}, "p must be a finite number; got nan."),
        (float("inf"), {"low": 0}, "p must be a number of at least 0; got inf."),
        (True, {}, "p must be a finite number; got True."),
        ("1", {}, "p must be a finite number; got '1'."),
    ],
)
def test_bad_reals(value: Any, limits: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        check_real(value, "p", **limits)
    assert str(error.value) == message


def test_what_passes() -> None:
    assert type(check_integer(np.int32(3), "k", low=1)) is int
    assert type(check_real(np.float32(0.5), "p")) is float
    assert check_real(1, "p", low=0, high=1) == 1
    assert check_choice("a", "way", ["a", "b"]) == "a"
    assert check_indices([2, 0], "nodes", size=3).tolist() == [2, 0]
    assert check_indices([], "nodes", size=0).tolist() == []
    check_finite(np.array([1, 2]), "x")
    check_unique(np.array(["a", "b"]), "x")


def test_other_refusals() -> None:
    for call, message in (
        (lambda: check_choice("c", "way", ["a", "b"]), "way must be one of 'a', 'b'; got 'c'."),
        (lambda: check_vector([[1]], "x"), r"x must have one dimension; got shape \(1, 1\)."),
        (lambda: check_vector([[1], [1, 2]], "x"), "x must be a rectangular array"),
        (lambda: check_indices([0.5], "x", size=3), "x must hold integers; got float64."),
        (lambda: check_indices([-1], "x", size=3), "x must lie between 0 and 2; got -1."),
        (lambda: check_finite(np.array([1, np.inf]), "x"), "x must hold finite numbers; got inf."),
        (lambda: check_unique(np.array([4, 4]), "x"), "x must be unique; got 4 more than once."),
    ):
        with pytest.raises(InputError, match=message):
            call()


@pytest.mark.parametrize("digits", [400, 5000])
def test_integers_that_no_float_holds(digits: int) -> None:
    with pytest.raises(InputError, match="x must be a finite number; got int"):
        check_real(10**digits, "x")


def test_a_sparse_matrix_of_keys_is_no_dictionary() -> None:
    with pytest.raises(InputError, match=r"^stages must be a dictionary; got scipy.dok_array\.$"):
        check_mapping(sparse.dok_array((2, 2)), "stages", "a dictionary")
