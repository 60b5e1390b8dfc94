from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("before", "given", "expected"),
    [
        ("", {}, "AVX2,STRICT"),
        ("", {"MKL_CBWR": "COMPATIBLE"}, "COMPATIBLE"),
        ("import torch", {}, "None"),  # too late to have an effect
    ],
)
def test_products_have_the_same_bits_from_python(before: str, given: dict[str, str], expected: str) -> None:
    """Before, only the command line and workers set the variable."""
    code = f"""
import os
{before}
from nodecopy import experiments
experiments.load("table2")
print(os.environ.get("MKL_CBWR"))
"""
    environment = {key: value for key, value in os.environ.items() if key != "MKL_CBWR"} | given
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == expected
