"""A donor rule: donors are the nodes of the same degree."""

from __future__ import annotations

import numpy as np

from nodecopy import Graph, Interactions
from nodecopy.copying import DonorLists


class SameDegree:
    """Draw donors uniformly from the nodes of the same degree."""

    def fit(self, data: Graph | Interactions) -> DonorLists:
        _, group_of = np.unique(data.rows.degrees, return_inverse=True)
        return DonorLists.from_groups(group_of)
