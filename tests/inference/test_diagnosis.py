from __future__ import annotations

import numpy as np
import pytest
from numpy.random import SeedSequence

from nodecopy import Jaccard, NodeCopying, SameLabel, datasets
from nodecopy.errors import DataWarning
from nodecopy.experiments.known_networks import KnownNetwork
from nodecopy.inference import bootstrap
from nodecopy.inference.diagnosis import poor_share

CLUB = datasets.load("karate")


def test_the_share_of_edge_ends_at_nodes_with_few_donors() -> None:
    alone = np.arange(34)
    alone[2:] = 2
    model = NodeCopying(SameLabel(alone)).fit(CLUB)  # the first two nodes keep their 16 and 9 neighbours
    assert poor_share(model) == pytest.approx(25 / 156)
    assert poor_share(model, power=2) == pytest.approx((16**2 + 9**2) / (CLUB.degrees**2).sum())
    assert poor_share(NodeCopying(SameLabel()).fit(CLUB)) == 0
    assert 0 <= poor_share(NodeCopying(Jaccard(max_donors=2)).fit(CLUB)) <= 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("dc-sbm", "nodes with large degrees have fewer than 3 donors"),
        ("sbm", "degrees vary more in samples"),
    ],
)
def test_the_variance_of_degrees_has_a_warning_of_its_own(name: str, message: str) -> None:
    graph = KnownNetwork.by_name(name, 200, 15, SeedSequence(1)).draw(SeedSequence(2))
    with pytest.warns(DataWarning, match=message) as caught:
        result = bootstrap(graph, ["density", "degree_variance"], n=60, rng=0)
    assert len(caught) == len(result.problems) == 1


def test_a_block_model_has_no_warning_for_density() -> None:
    graph = KnownNetwork.by_name("sbm", 200, 15, SeedSequence(1)).draw(SeedSequence(2))
    assert not bootstrap(graph, ["density", "transitivity"], n=60, rng=0).problems
