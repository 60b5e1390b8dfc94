"""Everything that is fitted has scikit-learn's ``get_params``, ``set_params`` and ``clone``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodecopy import Balanced, Jaccard, NearestNeighbours, NodeCopying, SameLabel, Weighted, datasets
from nodecopy._core.estimator import Configurable
from nodecopy.edge_tables import JaccardTable
from nodecopy.errors import InputError
from nodecopy.recommend import CopyEASE, ItemKNN, Popularity, WeightedHybrid

base = pytest.importorskip("sklearn.base")
pytest.importorskip("torch")

from nodecopy.attacks import DICE, FGA, AdaptiveCopyingAttack  # noqa: E402
from nodecopy.classify import APPNP, GCN, BayesianGCN, DFNet  # noqa: E402
from nodecopy.defend import GCNSVD, CopyingDefence, SuspectCorrection  # noqa: E402
from nodecopy.generators import CELL, VGAE, NetGAN  # noqa: E402
from nodecopy.recommend import EnsembleBPR, LightGCN  # noqa: E402

MADE: list[Configurable] = [
    SameLabel(np.array([0, 1])),
    NearestNeighbours(3, ties="all"),
    Jaccard(max_donors=4),
    Weighted(np.eye(2)),
    NodeCopying(Jaccard(max_donors=7), keep=0.25),
    GCN(n_hidden=5),
    APPNP(preset="gnn-benchmark"),
    BayesianGCN(NodeCopying(SameLabel()), n_graphs=2, base=GCN(n_hidden=7)),
    CopyingDefence(GCN(n_hidden=3), n_donors=4),
    SuspectCorrection(share=0.1),
    GCNSVD(7, classifier=GCN(n_hidden=9)),
    DICE(delete="any"),
    FGA(flips_per_step=2, together=False),
    AdaptiveCopyingAttack("features", n_donors=3, at_target=True),
    VGAE(n_latent=3),
    CELL(overlap=0.25),
    NetGAN(walk_length=4),
    Popularity(),
    ItemKNN(),
    CopyEASE(user_donors=Jaccard(max_donors=3), item_share=0.1),
    LightGCN(n_layers=1),
    EnsembleBPR(LightGCN(n_factors=4), n_graphs=2),
    WeightedHybrid(Popularity(), CopyEASE(), weight=0.25),
]


def plain(model: Configurable) -> dict[str, Any]:
    """Configurable that can be compared; parts are told by their own settings."""
    told = model.get_params().items()
    return {
        name: np.asarray(value).tolist() if isinstance(value, np.ndarray) else value
        for name, value in told
        if not isinstance(value, Configurable)
    }


@pytest.mark.parametrize("model", MADE, ids=lambda model: type(model).__name__)
def test_a_clone_has_the_same_settings_and_nothing_else(model: Configurable) -> None:
    other = base.clone(model)
    assert type(other) is type(model)
    assert other is not model
    assert plain(other) == plain(model)
    again = type(model)(**model.get_params(deep=False))
    assert plain(again) == plain(model)


def test_what_was_fitted_is_left_behind() -> None:
    fitted = NodeCopying(SameLabel()).fit(datasets.load("karate"))
    assert not hasattr(base.clone(fitted), "graph_")


def test_parameters_of_parts_are_read_and_changed() -> None:
    model = BayesianGCN(n_graphs=2, base=GCN(n_hidden=7))
    assert model.get_params()["base__n_hidden"] == 7
    copy = base.clone(model).set_params(base__n_hidden=8, base__n_epochs=3, n_graphs=4)
    assert isinstance(copy.base, GCN)
    assert (copy.base.n_hidden, copy.base.n_epochs, copy.n_graphs) == (8, 3, 4)
    wrong = r"a parameter of GCN must be one of .*; got 'n_hiden'\. Did you mean n_hidden"
    with pytest.raises(InputError, match=wrong):
        model.set_params(base__n_hiden=8)
    assert model.get_params()["base__n_hidden"] == 7


def test_networks_of_filters_have_parameters_of_their_own() -> None:
    assert repr(DFNet().set_params(widths=(8,), attention=False)) == "DFNet(attention=False, widths=(8,))"
    with pytest.raises(InputError, match="a parameter of DFNet must be one of attention, "):
        DFNet().set_params(n_hidden=8)


def test_settings_of_parts() -> None:
    model = CopyEASE()
    rule = model.user_donors
    assert model.set_params(user_law__max_donors=3, item_share=0.2) is model
    assert (rule.max_donors, rule.exponent, model.item_share) == (3, 4.0, 0.2)
    assert model.user_donors is rule
    assert (model.item_donors.max_donors, CopyEASE().user_donors.max_donors) == (
        50,
        50,
    )  # defaults are not shared
    assert model.set_params(user_donors=Jaccard(), user_law__max_donors=9).user_donors.exponent == 1.0
    assert (model.user_donors.max_donors, rule.max_donors) == (9, 3)


def test_set_params_changes_laws_in_place() -> None:
    inner = NearestNeighbours(3)
    rule = Balanced(inner)
    assert rule.set_params(donors__n_neighbours=5, law__ties="all") is rule
    assert (inner.n_neighbours, inner.ties, rule.donors) == (5, "all", inner)
    table = JaccardTable(max_donors=3)
    assert table.set_params(max_item_degree=8) is table
    assert (table.max_item_degree, table.max_donors) == (8, 3)


def test_errors_name_what_there_is() -> None:
    with pytest.raises(
        InputError, match="a parameter of NodeCopying must be one of keep, donors, symmetrise"
    ):
        NodeCopying(SameLabel()).set_params(kep=0.1)
    with pytest.raises(InputError, match="keep of NodeCopying must have parameters to set k; got 0"):
        NodeCopying(SameLabel()).set_params(keep__k=0.1)
    with pytest.raises(InputError, match="a parameter of NearestNeighbours"):
        NodeCopying(NearestNeighbours()).set_params(law__kk=3)


def test_set_params_changes_nothing_if_a_name_is_wrong() -> None:
    model = NodeCopying(NearestNeighbours(n_neighbours=5), keep=0.1)
    before = model.get_params()
    for changes in (
        {"keep": 0.5, "kep": 1},
        {"keep": 0.5, "donors__n_neighbors": 7},
        {"donors__n_neighbours": 7, "x": 1},
    ):
        with pytest.raises(InputError, match="must be one of"):
            model.set_params(**changes)
        assert model.get_params() == before
    with pytest.raises(InputError, match="a parameter of NearestNeighbours must be one of"):
        model.set_params(law__=1)
