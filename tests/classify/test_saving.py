from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodecopy import NodeCopying, SameLabel
from nodecopy.classify import GCN, BayesianGCN, load
from nodecopy.errors import InputError
from tests.contracts.classifiers import planted_graph

GRAPH = planted_graph()


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "model.npz"
    GCN(epochs=3, hidden=np.int64(4)).fit(GRAPH, [0, 1, 2], rng=0).save(path)
    return path


def test_the_file_needs_no_pickles_and_tells_what_it_is(saved: Path) -> None:
    with np.load(saved, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    assert all(array.dtype.kind in "fiU" for array in arrays.values())
    about = json.loads(str(arrays["about"]))
    assert about["classifier"] == "GCN"
    assert about["arguments"] == {"preset": "kipf", "epochs": 3, "hidden": 4}


@pytest.mark.parametrize("size", [0, 10, 500, -1])
def test_a_truncated_file(saved: Path, size: int) -> None:
    saved.write_bytes(saved.read_bytes()[:size])
    with pytest.raises(InputError, match=r"model.npz: (cannot be read|the file is empty)"):
        load(saved)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"keys": None}, "there is no classifier in it; it holds about"),
        ({"about": np.array("{")}, "cannot be read"),
        ({"about": np.array(json.dumps({"classifier": "os:system"}))}, "a saved classifier must be one of"),
        ({"keys": np.array([{}])}, "cannot be read"),
    ],
)
def test_another_file(saved: Path, changes: dict[str, Any], message: str) -> None:
    with np.load(saved) as archive:
        arrays = {name: archive[name] for name in archive.files} | changes
    np.savez(saved, **{name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(InputError, match=message):
        load(saved)


def test_a_file_that_is_not_there_or_not_ours(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        load(tmp_path / "none.npz")
    with pytest.raises(InputError, match=r"must end in one of .npz"):
        load(tmp_path / "model.pt")
    with pytest.raises(InputError, match=r"must end in one of .npz"):
        GCN(epochs=1).fit(GRAPH, [0, 1, 2], rng=0).save(tmp_path / "model.pkl")


def test_a_failed_save_leaves_the_old_file(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved.read_bytes()

    def full(file: object, **_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(OSError, match="disk full"):
        GCN(epochs=1).fit(GRAPH, [0, 1, 2], rng=0).save(saved)
    assert saved.read_bytes() == before
    assert [entry.name for entry in saved.parent.iterdir()] == ["model.npz"]


def test_a_custom_graph_model_is_not_saved(tmp_path: Path) -> None:
    model = NodeCopying(SameLabel(), keep=0.5)
    fitted = BayesianGCN(model, n_graphs=1, n_weight_samples=1, epochs=2).fit(GRAPH, [0, 1, 2], rng=0)
    fitted.save(tmp_path / "model.npz")
    loaded = load(tmp_path / "model.npz")
    assert isinstance(loaded, BayesianGCN)
    assert loaded.graph_model is None
    assert np.array_equal(loaded.predict_proba(GRAPH), fitted.predict_proba(GRAPH))
