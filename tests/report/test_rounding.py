from __future__ import annotations

import json
import math

import numpy as np

from nodecopy.report.headlines import round_all, round_number, to_texts


def test_numbers_are_short_in_json() -> None:
    assert (
        json.dumps(round_all([2.0, 1 / 3, math.nan, -math.inf, 1234567.8], 3))
        == "[2, 0.333, null, null, 1230000]"
    )
    assert round_number(np.float32(0.1), 4) == 0.1


def test_ids_are_text() -> None:
    assert to_texts([7, 8]) == ["7", "8"]
    assert to_texts(np.array(["a"])) == ["a"]
