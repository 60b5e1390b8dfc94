from __future__ import annotations

import logging

import pytest

from nodecopy._core.notices import log_decision, mute_decisions, warn_about_data
from nodecopy.errors import DataWarning


def test_decisions_are_logged_at_level_info(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "nodecopy"):
        log_decision("features are standardised")
    assert caplog.record_tuples == [("nodecopy", logging.INFO, "features are standardised")]


def test_warnings_name_the_first_caller_outside_the_package() -> None:
    with pytest.warns(DataWarning, match="few labels") as caught:
        warn_about_data("few labels")
    assert caught[0].filename == __file__


def test_decisions_are_muted_for_a_while(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "nodecopy"):
        with mute_decisions():
            log_decision("muted")
        log_decision("logged")
    assert caplog.messages == ["logged"]
