"""Fixtures of all tests."""

from __future__ import annotations

import logging

import pytest
from hypothesis import settings

settings.register_profile(
    "nodecopy", deadline=None
)  # an example may wait for the compiler or other processes
settings.load_profile("nodecopy")


@pytest.fixture
def caplog(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Record the decisions that the package logs."""
    caplog.set_level(logging.INFO, "nodecopy")
    return caplog
