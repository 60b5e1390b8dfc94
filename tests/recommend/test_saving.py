from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nodecopy import write_interactions
from nodecopy.copying import Weighted
from nodecopy.errors import InputError
from nodecopy.recommend import CopyEASE, Popularity, load
from tests.contracts.recommenders import tastes


def test_files_that_hold_no_recommender(tmp_path: Path) -> None:
    path = tmp_path / "other.npz"
    write_interactions(tastes(), path)
    with pytest.raises(InputError, match=r"other.npz: there is no recommender in it; it holds indices"):
        load(path)
    path.write_bytes(b"PK no archive")
    with pytest.raises(InputError, match="cannot be read"):
        load(path)
    with pytest.raises(InputError, match="does not exist"):
        load(tmp_path / "none.npz")
    with pytest.raises(InputError, match=r"must end in one of .npz"):
        load(tmp_path / "model.pkl")


def test_column_numbers_are_not_trusted(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    Popularity().fit(tastes()).save(path)
    with np.load(path) as archive:
        arrays = dict(archive)
    arrays["indices"] = arrays["indices"].copy()
    arrays["indices"][0] = 10**6
    np.savez(path, **arrays)
    with pytest.raises(InputError, match="cannot be read"):
        load(path)


def test_networks_can_be_evaluated_on_other_graphs_after_loading(tmp_path: Path) -> None:
    networks = pytest.importorskip("nodecopy.recommend.networks")
    log = tastes()
    other = log.matrix[::-1]
    for kind in (networks.BPRMF, networks.LightGCN, networks.MGCCF):
        fitted = kind(size=4, epochs=1).fit(log, rng=0)
        fitted.save(tmp_path / "model.npz")
        loaded = load(tmp_path / "model.npz")
        assert np.array_equal(loaded.embed(other)[0], fitted.embed(other)[0])  # type: ignore[attr-defined]


def test_a_law_without_a_name_in_files(tmp_path: Path) -> None:
    log = tastes()
    model = CopyEASE(user_law=Weighted(np.ones((log.n_users, log.n_users)))).fit(log)
    with pytest.raises(
        InputError, match=r"a part of a recommender that can be saved must be one of .* 'Weighted'"
    ):
        model.save(tmp_path / "model.npz")
    assert not list(tmp_path.iterdir())
