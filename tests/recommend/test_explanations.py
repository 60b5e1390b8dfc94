from __future__ import annotations

import numpy as np

from nodecopy.recommend import Contributions, Explanation
from nodecopy.recommend.base import largest_contributions

IDS, VALUES = np.array(["a", "b", "c", "d"]), np.array([0.5, 0.0, -1.0, 0.5])


def test_the_largest_come_first_and_zeros_are_left_out() -> None:
    assert largest_contributions(IDS, VALUES, None).ids.tolist() == ["a", "d", "c"]
    ids, values = largest_contributions(IDS, VALUES, 2)
    assert (ids.tolist(), values.tolist()) == (["a", "d"], [0.5, 0.5])


def test_plain_values() -> None:
    part = Contributions(IDS[:1], VALUES[:1])
    reason = [{"item": "a", "contribution": 0.5}]
    assert Explanation(1.0, part).to_dict() == {"score": 1.0, "items": reason}
    assert Explanation(1.0, part, part, part, 0.25).to_dict() == {
        "score": 1.0,
        "items": reason,
        "donors": [{"user": "a", "contribution": 0.5}],
        "donor_items": reason,
        "remainder": 0.25,
    }
