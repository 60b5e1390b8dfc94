"""Reports of corrected nodes."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from nodecopy.defend import EdgeReport, NodeReport


def test_reasons_agree_with_the_numbers() -> None:
    reasons = {
        (odds, credibility): EdgeReport(1, "a", odds, credibility).reason
        for odds in (-1.0, 1.0)
        for credibility in (0.1, 0.9)
    }
    assert reasons[-1.0, 0.1] == "its ends do not resemble those of other edges"
    assert reasons[1.0, 0.9] == "its ends resemble those of other edges"
    assert reasons[1.0, 0.1].endswith("contradicts the other evidence")
    assert reasons[-1.0, 0.9].endswith("agrees with the other evidence")


def test_distrusted_edges_and_plain_types() -> None:
    edges = EdgeReport("a", 1, -2.0, 0.2), EdgeReport("b", 0, 1.0, 0.7)
    report = NodeReport("c", 0, 1, {0: 0.1, 1: 0.9}, {0: 0.5, 1: 0.5}, {}, {0: -1.0, 1: 0.0}, edges)
    assert report.distrusted == edges[:1]
    plain = report.to_dict()
    assert [(edge["neighbour"], edge["distrusted"], edge["reason"]) for edge in plain["edges"]] == [
        ("a", True, edges[0].reason),
        ("b", False, edges[1].reason),
    ]
    assert plain["probabilities"] == report.probabilities
