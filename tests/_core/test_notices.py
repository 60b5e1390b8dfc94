from __future__ import annotations

import logging
import threading

import pytest

from nodecopy._core.messages import (
    LOGGER,
    Hint,
    log_decision,
    log_decisions_once,
    mute_decisions,
    warn_about_data,
)
from nodecopy.errors import DataWarning


def test_decisions_are_logged_at_level_info(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "nodecopy"):
        log_decision("features are standardised")
    assert caplog.record_tuples == [("nodecopy", logging.INFO, "features are standardised")]


def test_records_have_the_hints(caplog: pytest.LogCaptureFixture) -> None:
    hint = Hint(header=False)
    with caplog.at_level(logging.INFO, "nodecopy"):
        log_decision("the first row is a header.", hint)
    assert caplog.messages == ["the first row is a header. Use header=False otherwise."]
    assert vars(caplog.records[0])["decision"] == "the first row is a header."
    assert vars(caplog.records[0])["hints"] == (hint,)


def test_warnings_have_the_hints() -> None:
    with pytest.warns(DataWarning, match="^few labels. Use donors=NAME otherwise.$"):
        warn_about_data("few labels.", Hint(donors=str))


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


def test_the_same_decision_is_logged_once_for_a_while(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "nodecopy"):
        with log_decisions_once():
            for decision in ("rows are scaled", "weights are ignored", "rows are scaled"):
                log_decision(decision)
            LOGGER.warning("rows are scaled")
        log_decision("rows are scaled")
    decisions = [record.getMessage() for record in caplog.records if record.levelno == logging.INFO]
    assert decisions == ["rows are scaled", "weights are ignored", "rows are scaled"]
    assert len(caplog.records) == 4  # warnings are never dropped


def test_a_thread_mutes_its_own_decisions_only(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "nodecopy"), mute_decisions(), log_decisions_once():
        for _ in range(2):
            other = threading.Thread(target=log_decision, args=["of another thread"])
            other.start()
            other.join()
    assert caplog.messages == ["of another thread"] * 2
