"""Fixtures of all tests."""

from __future__ import annotations

import logging

import pytest


@pytest.fixture
def caplog(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Record the decisions that the package logs."""
    caplog.set_level(logging.INFO, "nodecopy")
    return caplog
