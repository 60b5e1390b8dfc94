"""Fitted recommenders in and out of files: one NumPy archive, never with pickles."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import nodecopy
from nodecopy._core.atomic_files import atomic_write
from nodecopy._core.formats import PathLike, format_of, reading
from nodecopy._core.lookup import check_name, import_by_name
from nodecopy.errors import InputError
from nodecopy.interactions import Interactions

if TYPE_CHECKING:
    from nodecopy.recommend.base import Recommender

PATH_OF = {
    "Jaccard": "nodecopy.copying.Jaccard",
    "Popularity": "nodecopy.recommend.simple.Popularity",
    "ItemKNN": "nodecopy.recommend.simple.ItemKNN",
    "EASE": "nodecopy.recommend.ease.EASE",
    "CopyEASE": "nodecopy.recommend.copy_ease.CopyEASE",
    "Fusion": "nodecopy.recommend.fusion.Fusion",
    "IALS": "nodecopy.recommend.ials.IALS",
    "BPRMF": "nodecopy.recommend.networks.BPRMF",
    "LightGCN": "nodecopy.recommend.networks.LightGCN",
    "MGCCF": "nodecopy.recommend.networks.MGCCF",
    "EnsembleBPR": "nodecopy.recommend.copied_graphs.EnsembleBPR",
    "SampledGraphBPR": "nodecopy.recommend.copied_graphs.SampledGraphBPR",
}
ARRAYS = {"about", "user_ids", "item_ids", "indptr", "indices"}
CSR_PARTS = ("data", "indices", "indptr", "shape")


def save(
    path: PathLike,
    model: Recommender,
    interactions: Interactions,
    seen: Interactions | None,
    state: dict[str, Any],
) -> None:
    """Write settings, ids, interactions, what else was seen and what was learnt; whole or not at all."""
    format_of(path, (".npz",))
    about = {"nodecopy": nodecopy.__version__, "recommender": _described(model)}
    arrays: dict[str, NDArray[Any]] = {
        "about": np.array(json.dumps(about, default=lambda number: number.item())),  # NumPy's numbers
        "user_ids": interactions.user_ids,
        "item_ids": interactions.item_ids,
        "indptr": interactions.rows.indptr,
        "indices": interactions.rows.indices,
    }
    if seen is not None:
        arrays |= {"seen_indptr": seen.rows.indptr, "seen_indices": seen.rows.indices}
    for name, value in state.items():
        if isinstance(value, sparse.csr_array):
            arrays |= {f"state.{name}.{part}": np.asarray(getattr(value, part)) for part in CSR_PARTS}
        else:
            arrays[f"state.{name}"] = np.asarray(value)
    # An open file, since NumPy would add .npz to a name that ends in .NPZ.
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def load(path: PathLike, *, device: str = "cpu") -> Recommender:
    """Read a recommender that :meth:`.Recommender.save` wrote; it recommends what it recommended.

    Parameters
    ----------
    path
        The ``.npz`` file.
    device
        Where networks are to be trained again; a file does not care where they were.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from nodecopy import datasets
    >>> from nodecopy.recommend import EASE, load
    >>> model = EASE().fit(datasets.load("library"))
    >>> with TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.npz")
    ...     bool((load(f"{folder}/model.npz").recommend(k=3)[0] == model.recommend(k=3)[0]).all())
    True
    """
    format_of(path, (".npz",))
    with reading(path) as name, name.open("rb") as file:
        with np.load(file, allow_pickle=False) as archive:
            if not set(archive.files) >= ARRAYS:
                found = ", ".join(sorted(archive.files)) or "nothing"
                raise InputError(f"there is no recommender in it; it holds {found}.")
            arrays = {key: archive[key] for key in archive.files}
        model: Recommender = _built(json.loads(str(arrays["about"]))["recommender"], device)
        model.interactions_ = _interactions(arrays, "")
        if "seen_indices" in arrays:
            model._seen = _interactions(arrays, "seen_")
        model._restore(_state(arrays))
        _check_fit(model)
    return model


def _described(thing: Any) -> Any:
    """A recommender or a donor law by name and settings; a device is not one of them."""
    if not is_dataclass(thing) or isinstance(thing, type):
        return thing
    name = check_name(type(thing).__name__, PATH_OF, "a part of a recommender that can be saved")
    settings = {
        one.name: _described(getattr(thing, one.name)) for one in fields(thing) if one.name != "device"
    }
    return {"name": name, "settings": settings}


def _built(described: Any, device: str) -> Any:
    if not isinstance(described, dict):
        return tuple(described) if isinstance(described, list) else described
    kind = import_by_name(described["name"], PATH_OF, "a part of a saved recommender")
    settings = {name: _built(value, device) for name, value in described["settings"].items()}
    if any(one.name == "device" for one in fields(kind)):
        settings["device"] = device
    return kind(**settings)


def _check_fit(model: Recommender) -> None:
    """What was learnt must fit the users and items beside it: the last user with a history has scores."""
    known = model.interactions_
    who = np.flatnonzero(known.rows.degrees)[-1:]
    shape = model.score(known.user_ids[who]).shape
    if shape != (len(who), known.n_items):
        raise InputError(
            f"scores of a user must be as many as there are items, {known.n_items}; got {shape}."
        )


def _interactions(arrays: dict[str, NDArray[Any]], prefix: str) -> Interactions:
    shape = len(arrays["user_ids"]), len(arrays["item_ids"])
    indptr, indices = arrays[f"{prefix}indptr"], arrays[f"{prefix}indices"]
    matrix = sparse.csr_array((np.ones(len(indices), np.float32), indices, indptr), shape=shape)
    matrix.check_format(full_check=True)
    return Interactions(matrix, arrays["user_ids"], arrays["item_ids"])


def _state(arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    found = {key.removeprefix("state."): one for key, one in arrays.items() if key.startswith("state.")}
    state: dict[str, Any] = {}
    for name, array in found.items():
        matrix, _, part = name.rpartition(".")
        if part not in CSR_PARTS:
            state[name] = array
        elif part == "data":
            data, indices, indptr, shape = (found[f"{matrix}.{one}"] for one in CSR_PARTS)
            state[matrix] = sparse.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
            state[matrix].check_format(full_check=True)
    return state
