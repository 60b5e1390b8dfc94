"""The first inputs of the fuzzer; ``make fuzz`` reads more."""

from __future__ import annotations

import subprocess
import sys


def test_damaged_files_give_a_result_or_an_error_of_the_package() -> None:
    command = [sys.executable, "-m", "tests.fuzzing", "0", "1000"]
    child = subprocess.run(command, capture_output=True, text=True)
    assert (child.returncode, child.stdout) == (0, "inputs 0 to 1000: nothing wrong\n"), child.stderr
