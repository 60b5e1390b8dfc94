from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodecopy import Interactions, write_interactions
from nodecopy.copying import Weighted
from nodecopy.errors import InputError
from nodecopy.recommend import EASE, CopyEASE, Popularity, load
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


@pytest.mark.parametrize("cut", [np.s_[:-1], np.s_[:, :-1]])
def test_weights_of_other_items_are_refused(cut: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    EASE().fit(tastes()).save(path)
    with np.load(path) as archive:
        arrays = dict(archive)
    np.savez(path, **arrays | {"state.weights": arrays["state.weights"][cut]})
    with pytest.raises(InputError, match=r"model.npz: (cannot be read|scores of a user must be as many)"):
        load(path)


def test_a_file_that_breaks_off_or_holds_another_kind(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    CopyEASE().fit(tastes()).save(path)
    whole = path.read_bytes()
    for size in (1, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(InputError, match=r"model.npz: cannot be read"):
            load(path)
    path.write_bytes(whole)
    with np.load(path) as archive:
        arrays = dict(archive)
    others: list[Any] = [{"recommender": {"name": "GCN", "settings": {}}}, {"recommender": 3}, [], {}]
    for about in others:
        np.savez(path, **arrays | {"about": np.array(json.dumps(about))})
        with pytest.raises(InputError, match=r"model.npz: "):
            load(path)


def test_what_was_seen_is_kept(tmp_path: Path) -> None:
    """Learnt from every second interaction, all of them seen."""
    met = tastes()
    half = met.matrix.copy()
    half.data = half.data * (np.arange(met.n_interactions) % 2)
    liked = Interactions(half, met.user_ids, met.item_ids)
    fitted = EASE().fit(liked, seen=met)
    plain = EASE().fit(liked)
    assert (plain.seen_, fitted.interactions_) == (liked, liked)
    assert fitted.seen_ == met
    assert np.array_equal(fitted.score(), plain.score())
    fitted.save(tmp_path / "model.npz")
    for model in (fitted, load(tmp_path / "model.npz")):
        assert model.seen_ == met
        frame = model.to_pandas(k=met.n_items)
        told = set(zip(frame["user"], frame["item"], strict=True))
        users, items, _ = met.table()
        assert not told & set(zip(users.tolist(), items.tolist(), strict=True))
        assert len(told) == met.n_users * met.n_items - met.n_interactions
    assert fitted.fit(liked).seen_ == liked  # forgotten with the next fit
    assert next(EASE().fit(liked, seen=met).fit_path(liked, [3.0])).seen_ == liked


def test_what_is_learnt_from_is_seen() -> None:
    log = tastes()
    nothing = Interactions(log.matrix * 0, log.user_ids, log.item_ids)
    assert Popularity().fit(log, seen=nothing).seen_ == log
    with pytest.raises(InputError, match="seen must be of the users and items of training"):
        Popularity().fit(log, seen=Interactions(log.matrix))
    with pytest.raises(InputError, match="seen must be Interactions; got list"):
        Popularity().fit(log, seen=[[1]])  # type: ignore[arg-type]


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
