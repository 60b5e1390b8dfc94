from __future__ import annotations

import numpy as np
import pytest

from nodecopy.report import sections as classification_section
from tests.report import examples


def test_nodes_come_by_uncertainty() -> None:
    predicted = examples.predicted()
    truth = np.repeat([0, 1], 20)
    section = classification_section.classification_section(
        np.arange(40), ["a", "b"], predicted, [0, 19, 5], truth=truth
    )
    assert section["ids"] == ["19", "5", "0"]
    assert section["predicted"] == [1, 1, 1]
    assert section["truth"] == [0, 0, 0]
    assert section["n_nodes"] == 3
    assert np.allclose(np.add(section["aleatoric"], section["epistemic"]), section["total"], atol=1e-3)
    assert section["evaluations"] == []


def test_long_tables_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classification_section, "MAX_ROWS", 4)
    section = classification_section.classification_section(
        np.arange(40), ["a", "b"], examples.predicted(), np.arange(40)
    )
    assert (len(section["ids"]), section["n_nodes"]) == (4, 40)
    assert section["truth"] == [-1] * 4
