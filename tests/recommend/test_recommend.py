"""Saved recommenders: files that are damaged, of another kind, or do not fit their users and items."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nodecopy
from nodecopy import NodeCopying, SameLabel, datasets, write_interactions
from nodecopy.copying import Weighted
from nodecopy.errors import InputError
from nodecopy.recommend import EASE, CopyEASE, ItemKNN, Popularity, Recommender, WeightedHybrid
from tests.contracts.recommenders import tastes


def read_arrays(path: Path) -> dict[str, Any]:
    with np.load(path) as archive:
        return dict(archive)


def test_files_without_a_recommender(tmp_path: Path) -> None:
    path = tmp_path / "other.npz"
    write_interactions(tastes(), path)
    with pytest.raises(InputError, match=r"other.npz: the file must hold a fitted object"):
        nodecopy.load(path)
    path.write_bytes(b"PK no archive")
    with pytest.raises(InputError, match="cannot be read"):
        nodecopy.load(path)
    with pytest.raises(InputError, match="does not exist"):
        nodecopy.load(tmp_path / "none.npz")
    with pytest.raises(InputError, match=r"must end in one of .npz"):
        nodecopy.load(tmp_path / "model.pkl")


def test_other_fitted_objects_are_not_recommenders(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    NodeCopying(SameLabel()).fit(datasets.load("karate")).save(path)
    with pytest.raises(InputError, match="must hold a Recommender; it holds a NodeCopying"):
        Recommender.load(path)


def test_column_numbers_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    Popularity().fit(tastes()).save(path)
    arrays = read_arrays(path)
    (indices,) = (
        name
        for name, array in arrays.items()
        if array.dtype.kind == "i" and len(array) == tastes().n_interactions
    )
    arrays[indices] = arrays[indices].copy()
    arrays[indices][0] = 10**6
    np.savez(path, **arrays)
    with pytest.raises(InputError, match="must be a valid sparse matrix with indices between 0 and"):
        nodecopy.load(path)


@pytest.mark.parametrize("cut", [np.s_[:-1], np.s_[:, :-1]])
def test_weights_of_other_items_are_refused(cut: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    EASE().fit(tastes()).save(path)
    arrays = read_arrays(path)
    (weights,) = (name for name, array in arrays.items() if array.ndim == 2)
    np.savez(path, **arrays | {weights: arrays[weights][cut]})
    with pytest.raises(InputError, match=r"model.npz: (cannot be read|score_rows of EASE must return)"):
        nodecopy.load(path)


def test_truncated_files_and_other_trees(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    CopyEASE().fit(tastes()).save(path)
    whole = path.read_bytes()
    for size in (1, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(InputError, match=r"model.npz: cannot be read"):
            nodecopy.load(path)
    path.write_bytes(whole)
    arrays = read_arrays(path)
    tree = json.loads(str(arrays["tree"]))
    others: list[Any] = [
        tree | {"class": "nodecopy.recommend.Nothing"},
        tree | {"class": "os.system"},
        {name: part for name, part in tree.items() if name != "params"},
        {name: part for name, part in tree.items() if name != "state"},
        tree | {"params": {"nonsense": 1}},
        tree | {"state": {"weights_": tree["state"]["weights_"]}},
        tree | {"csr": 1},
    ]
    for other in others:
        np.savez(path, **arrays | {"tree": np.array(json.dumps(other))})
        with pytest.raises(InputError, match=r"model.npz: "):
            nodecopy.load(path)


def test_seen_is_saved(tmp_path: Path) -> None:
    split = datasets.interaction_split(tastes(), rng=0)
    fitted = EASE().fit(split.train, seen=split.test)
    fitted.save(tmp_path / "model.npz")
    loaded = nodecopy.load(tmp_path / "model.npz")
    assert loaded.seen_ == fitted.seen_ != fitted.interactions_
    assert np.array_equal(loaded.recommend(k=5)[0], fitted.recommend(k=5)[0])


def test_laws_with_arrays_are_saved(tmp_path: Path) -> None:
    log = tastes()
    model = CopyEASE(user_donors=Weighted(np.ones((log.n_users, log.n_users)))).fit(log)
    model.save(tmp_path / "model.npz")
    loaded = nodecopy.load(tmp_path / "model.npz")
    assert np.array_equal(loaded.score(), model.score())
    assert np.array_equal(loaded.fit(log).score(), model.score())


def test_fitted_parts_are_saved(tmp_path: Path) -> None:
    """A fitted part of a fusion stays fitted: it is used as it is in the next fit."""
    log = tastes()
    fused = WeightedHybrid(EASE().fit(log), ItemKNN()).fit(log)
    fused.save(tmp_path / "model.npz")
    loaded = nodecopy.load(tmp_path / "model.npz")
    assert np.array_equal(loaded.first.score(), fused.first.score())
    assert not hasattr(loaded.second, "interactions_")
    assert np.array_equal(loaded.score(), fused.score())


def test_loaded_networks_embed_other_graphs(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from nodecopy.recommend import BPRMF, MGCCF, LightGCN

    log = tastes()
    other = log.matrix[::-1]
    for kind in (BPRMF, LightGCN, MGCCF):
        fitted = kind(n_factors=4, n_epochs=1).fit(log, rng=0)
        fitted.save(tmp_path / "model.npz")
        loaded = nodecopy.load(tmp_path / "model.npz")
        for part, same in zip(loaded.embed(other), fitted.embed(other), strict=True):
            assert np.array_equal(part, same)
