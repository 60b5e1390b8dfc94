"""Kills of one command; `make kills` has all."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("cc"), reason="needs Linux and a C compiler")
def test_a_kill_at_any_call_loses_nothing() -> None:
    ran = subprocess.run([sys.executable, "-m", "tests.kills", "datasets"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "0 lost, 0 partial, 0 left behind" in ran.stdout
    assert not ran.stdout.startswith("datasets: 0 kills")
