"""The codec of ``save`` and ``nodecopy.load``: every kind of value, refused classes and damaged files."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.random import SeedSequence
from scipy import sparse

import nodecopy
from nodecopy import (
    Graph,
    GraphModel,
    Interactions,
    NearestNeighbours,
    NodeCopying,
    SameLabel,
    Weighted,
)
from nodecopy._core.estimator import Configurable, Saveable
from nodecopy._core.random import Rng
from nodecopy.errors import InputError
from tests.contracts.graph_models import community_graph

LOG = Interactions(np.arange(1, 13).reshape(4, 3) % 5, ["ann", "bob", "cleo", "dan"], ["jam", "tea", "oat"])


@dataclass(eq=False)
class Holder(Saveable):
    """An object with a parameter and a state of any kind."""

    value: Any = None
    device: str = "cpu"
    state_: Any = None

    def __init__(self, value: Any = None, device: str = "cpu") -> None:
        self.value, self.device = value, device


class Reversed(GraphModel[Graph]):
    """A user's model: the observed graph with its nodes in reverse order, the seed ignored."""

    def __init__(self, donors: Any = None) -> None:
        self.donors = donors

    def fit(self, graph: Graph, *, rng: Rng = None) -> Reversed:
        self.graph_ = graph
        return self

    def draw(self, seed: SeedSequence) -> Graph:
        return self.graph_.replace(adjacency=self.graph_.adjacency[::-1][:, ::-1])


def reload(value: Any, folder: Path, *classes: type) -> Any:
    """Return what is left of a parameter after ``save`` and ``load``."""
    Holder(value).save(folder / "holder.npz")
    return nodecopy.load(folder / "holder.npz", classes=[Holder, *classes]).value


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        0,
        -(2**70),
        0.1,
        -0.0,
        math.inf,
        5e-324,
        "",
        "é \n\x00",
        [],
        (),
        [1, (2.5, "three"), [None, ()]],
        {},
        {"a b": {"": [1]}, "array": 2, "class": "nodecopy.Graph", "dict": 3},
    ],
    ids=repr,
)
def test_plain_values_come_back_equal_and_of_the_same_type(value: Any, tmp_path: Path) -> None:
    loaded = reload(value, tmp_path)
    assert type(loaded) is type(value)
    assert loaded == value
    assert repr(loaded) == repr(value)


def test_nan_comes_back(tmp_path: Path) -> None:
    assert math.isnan(reload(math.nan, tmp_path))


@pytest.mark.parametrize(
    "value",
    [
        np.arange(6, dtype=np.int8).reshape(2, 3),
        np.array([0.1, np.nan, -np.inf], np.float32),
        np.array(["a", "bcd", "é"]),
        np.array([True, False]),
        np.zeros((0, 3), np.uint64),
        np.array(7.5),
    ],
    ids=lambda value: str(value.dtype),
)
def test_arrays_come_back_with_type_and_shape(value: Any, tmp_path: Path) -> None:
    loaded = reload([value, value], tmp_path)
    for array in loaded:
        assert (array.dtype, array.shape) == (value.dtype, value.shape)
        np.testing.assert_array_equal(array, value)


def test_numpy_scalars_come_back_as_python_numbers(tmp_path: Path) -> None:
    loaded = reload([np.int32(3), np.float64(0.5), np.bool_(True)], tmp_path)
    assert repr(loaded) == "[3, 0.5, True]"


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.coo_array, sparse.csc_matrix])
def test_sparse_matrices_come_back_as_csr(kind: Any, tmp_path: Path) -> None:
    dense = np.array([[0.0, 1.5, 0.0], [2.0, 0.0, -1.0]])
    loaded = reload(kind(dense), tmp_path)
    assert isinstance(loaded, sparse.csr_array)
    assert loaded.dtype == np.float64
    np.testing.assert_array_equal(loaded.toarray(), dense)


@pytest.mark.parametrize(
    "graph",
    [
        community_graph(weighted=True),
        community_graph(directed=True),
        Graph(np.zeros((0, 0))),
        Graph(np.eye(3, k=1), np.ones((3, 2)), ["b", "", "a"], [7, 3, 5]).with_label_names(["a", "b", "c"]),
    ],
    ids=repr,
)
def test_graphs_come_back_equal(graph: Graph, tmp_path: Path) -> None:
    loaded = reload(graph, tmp_path)
    assert loaded == graph
    assert loaded.label_names == graph.label_names
    assert not loaded.rows.indices.flags.writeable


def test_interactions_come_back_equal(tmp_path: Path) -> None:
    assert reload(LOG, tmp_path) == LOG


def test_objects_inside_objects_come_back_with_parameters_and_state(tmp_path: Path) -> None:
    inner = Holder(NearestNeighbours(7, ties="all"))
    inner.state_ = {"weights": (np.arange(3.0), None)}
    loaded = reload([inner], tmp_path)[0]
    assert type(loaded) is Holder
    assert (loaded.value.n_neighbours, loaded.value.ties) == (7, "all")
    np.testing.assert_array_equal(loaded.state_["weights"][0], [0.0, 1.0, 2.0])
    assert loaded.state_["weights"][1] is None


class Interval(NamedTuple):
    low: float
    high: Any


def test_named_tuples_come_back_as_such(tmp_path: Path) -> None:
    loaded = reload(Interval(0.5, np.arange(3)), tmp_path, Interval)
    assert type(loaded) is Interval
    assert (loaded.low, loaded.high.tolist()) == (0.5, [0, 1, 2])


def test_the_caller_of_load_chooses_the_device(tmp_path: Path) -> None:
    Holder(device="cuda:7").save(tmp_path / "holder.npz")
    with np.load(tmp_path / "holder.npz") as archive:
        assert "cuda" not in str(archive["tree"])
    assert nodecopy.load(tmp_path / "holder.npz", classes=[Holder]).device == "cpu"
    assert nodecopy.load(tmp_path / "holder.npz", classes=[Holder], device="cuda").device == "cuda"


def test_equal_models_give_equal_files(tmp_path: Path) -> None:
    for name in ("a.npz", "b.npz"):
        NodeCopying(SameLabel()).fit(community_graph()).save(tmp_path / name)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_files_name_classes_by_their_public_names(tmp_path: Path) -> None:
    NodeCopying(SameLabel()).fit(community_graph()).save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as archive:
        tree = json.loads(str(archive["tree"]))
    assert tree["class"] == "nodecopy.NodeCopying"
    assert tree["params"]["donors"]["class"] == "nodecopy.SameLabel"
    assert tree["state"]["graph_"]["class"] == "nodecopy.Graph"


def test_a_class_of_the_user_is_loaded_where_the_caller_names_it(tmp_path: Path) -> None:
    path = tmp_path / "own.npz"
    model = Reversed(SameLabel([0, 1])).fit(community_graph())
    model.save(path)
    for loaded in (nodecopy.load(path, classes=[Reversed]), Reversed.load(path)):
        assert type(loaded) is Reversed
        assert loaded.sample(rng=0) == model.sample(rng=0)
        assert loaded.donors.labels == [0, 1]
    with pytest.raises(InputError, match=r"own\.npz: classes must name .*test_saving\.Reversed, since"):
        nodecopy.load(path)


def test_a_function_is_named_by_the_file_and_given_to_load(tmp_path: Path) -> None:
    """The code is not in the file; the module may be another than where the function was saved."""
    Holder(len).save(tmp_path / "holder.npz")
    assert nodecopy.load(tmp_path / "holder.npz", classes=[Holder, len]).value is len
    with pytest.raises(InputError, match=r"classes must hold len\(\), since the file names it"):
        nodecopy.load(tmp_path / "holder.npz", classes=[Holder])
    Holder(Reversed).save(tmp_path / "class.npz")
    assert nodecopy.load(tmp_path / "class.npz", classes=[Holder, Reversed]).value is Reversed
    with pytest.raises(InputError, match="value of Holder must be a function with a name to be saved"):
        Holder(partial(len)).save(tmp_path / "partial.npz")
    with pytest.raises(InputError, match=r"function with a name to be saved; got .* Define it with def\."):
        Holder(lambda: 3).save(tmp_path / "lambda.npz")


def test_two_functions_of_a_name_are_an_error_if_the_file_names_it(tmp_path: Path) -> None:
    def build() -> int:
        return 1

    first = build

    def build() -> int:  # type: ignore[no-redef]
        return 2

    Holder(first).save(tmp_path / "holder.npz")
    with pytest.raises(InputError, match=r"classes must hold one build\(\), since .*; got 2 of that name"):
        nodecopy.load(tmp_path / "holder.npz", classes=[Holder, first, build])
    assert nodecopy.load(tmp_path / "holder.npz", classes=[Holder, first, first]).value is first
    Holder(3).save(tmp_path / "number.npz")
    assert nodecopy.load(tmp_path / "number.npz", classes=[Holder, first, build]).value == 3


def test_load_of_a_class_refuses_other_classes(tmp_path: Path) -> None:
    NodeCopying(SameLabel()).fit(community_graph()).save(tmp_path / "model.npz")
    with pytest.raises(InputError, match="must hold a Reversed; it holds a NodeCopying"):
        Reversed.load(tmp_path / "model.npz")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("os.system", "classes must name os.system"),
        ("nodecopyist.Model", "classes must name nodecopyist.Model"),
        ("nodecopy.load", "class of the file must be a class; got nodecopy.load, a function"),
        ("nodecopy.errors.InputError", "must name classes .* loaded; got nodecopy.errors.InputError"),
        ("nodecopy._core.files.Path", "must name classes that can be loaded"),
        ("nodecopy.missing.Model", "class of the file must be importable; got nodecopy.missing.Model"),
        ("nodecopy.Missing", "class of the file must be importable; got nodecopy.Missing"),
    ],
)
def test_files_cannot_name_other_classes(name: str, message: str, tmp_path: Path) -> None:
    tree = {"class": name, "params": {}, "state": {}, "parts": {}}
    np.savez(tmp_path / "model.npz", tree=np.array(json.dumps(tree)))
    with pytest.raises(InputError, match=rf"model\.npz: .*{message}"):
        nodecopy.load(tmp_path / "model.npz")


def write_damaged(path: Path, kind: str) -> None:
    """Write a saved model and damage it."""
    NodeCopying(SameLabel()).fit(community_graph()).save(path)
    content = path.read_bytes()
    with np.load(path) as archive:
        arrays = dict(archive)
    if kind == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif kind == "other bytes":
        path.write_bytes(b"not an archive" * 9)
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "no tree":
        np.savez(path, weights=np.ones(3))
    elif kind == "no JSON":
        np.savez(path, **(arrays | {"tree": np.array("{")}))
    elif kind == "missing array":
        np.savez(path, **{name: array for name, array in arrays.items() if name != "array_1"})
    elif kind in ("wrong donors", "wrong neighbours"):
        part = json.loads(str(arrays["tree"]))["state"]
        names = (
            part["distribution_"]["parts"]["members"],
            part["graph_"]["parts"]["adjacency"]["csr"]["indices"],
        )
        wrong = names[kind == "wrong neighbours"]["array"]
        np.savez(path, **(arrays | {wrong: arrays[wrong] + 99}))
    elif kind == "wrong parameter":
        text = str(arrays["tree"]).replace('"keep"', '"kept"')
        np.savez(path, **(arrays | {"tree": np.array(text)}))


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("truncated", "damaged or of another format"),
        ("other bytes", "damaged or of another format"),
        ("empty", "the file is empty"),
        ("no tree", r"must hold a fitted object; it holds weights"),
        ("no JSON", "damaged or of another format"),
        ("missing array", "damaged or of another format .'array_1'"),
        ("wrong donors", "members of DonorLists must lie between 0 and 19; got"),
        ("wrong neighbours", "must be a valid sparse matrix with indices between"),
        ("wrong parameter", "damaged or of another format .*kept"),
    ],
)
def test_errors_of_damaged_files_name_the_file(kind: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    write_damaged(path, kind)
    with pytest.raises(InputError, match=rf"model\.npz: .*{message}"):
        nodecopy.load(path)


def test_other_suffixes_and_missing_files_are_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"model\.pkl must end in one of \.npz"):
        Holder().save(tmp_path / "model.pkl")
    with pytest.raises(InputError, match=r"model\.npz does not exist"):
        nodecopy.load(tmp_path / "model.npz")


SLICE = slice(3)
"""An object that has no representation in a file."""


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (SLICE, "value of Holder"),
        ({"inner": [SLICE]}, "inner of value of Holder"),
        (np.array([SLICE]), "value of Holder"),
        ({1: 2}, "value of Holder"),
        ({1, 2}, "value of Holder"),
        (Weighted(SLICE), "similarity of Weighted, value of Holder"),
    ],
    ids=["object", "nested object", "object array", "integer keys", "set", "parameter of a part"],
)
def test_an_error_names_what_cannot_be_saved_and_no_file_is_left(
    value: Any, name: str, tmp_path: Path
) -> None:
    (tmp_path / "holder.npz").write_bytes(b"earlier")
    with pytest.raises(InputError, match=f"^{name} must be made of arrays and plain values to be saved; got"):
        Holder(value).save(tmp_path / "holder.npz")
    assert [file.name for file in tmp_path.iterdir()] == ["holder.npz"]
    assert (tmp_path / "holder.npz").read_bytes() == b"earlier"


def test_a_failed_write_leaves_the_earlier_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "holder.npz"
    Holder(1).save(path)

    def fail(file: Any, *_: Any, **__: Any) -> None:
        file.write(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr("nodecopy._core.estimator.write_arrays", fail)
    with pytest.raises(OSError, match="no space left"):
        Holder(2).save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["holder.npz"]
    assert nodecopy.load(path, classes=[Holder]).value == 1


def test_private_attributes_are_no_state() -> None:
    holder = Holder(3)
    holder.__dict__.update(_cache_=1, public=2, fitted_=4)
    assert holder.get_state() == {"fitted_": 4}
    assert isinstance(holder, Configurable)


@pytest.mark.parametrize("classes", [Graph, "own.Model", ["own.Model"], 3])
def test_classes_must_be_class_objects(classes: Any, tmp_path: Path) -> None:
    NodeCopying(SameLabel()).fit(community_graph()).save(tmp_path / "model.npz")
    with pytest.raises(InputError, match=r"must be a list of classes and functions .*\[MyModel\]; got"):
        nodecopy.load(tmp_path / "model.npz", classes=classes)


@pytest.mark.parametrize("path", [None, 3, b"model.npz"])
def test_path_must_be_a_path(path: Any) -> None:
    model = NodeCopying(SameLabel()).fit(community_graph())
    for call in (nodecopy.load, model.save):
        with pytest.raises(InputError, match=r"path must be a string or a pathlib\.Path; got"):
            call(path)


def test_the_file_must_hold_an_object(tmp_path: Path) -> None:
    np.savez(tmp_path / "list.npz", tree=np.array("[1, 2]"))
    with pytest.raises(InputError, match=r"must hold a fitted object that save\(\) wrote"):
        nodecopy.load(tmp_path / "list.npz")


def test_foreign_files_give_no_advice_to_allow_pickles(tmp_path: Path) -> None:
    np.savez(tmp_path / "pickled.npz", tree=np.array([{}], dtype=object))
    (tmp_path / "text.npz").write_text("no archive", encoding="utf-8")
    for name in ("pickled.npz", "text.npz"):
        with pytest.raises(InputError, match="damaged or of another format") as caught:
            nodecopy.load(tmp_path / name)
        assert "allow_pickle" not in str(caught.value)
