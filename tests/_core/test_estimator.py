"""Parameters as in scikit-learn, and the codec of ``save`` and ``nodecopy.load``."""

from __future__ import annotations

import json
import math
import zipfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import GenericAlias
from typing import Any, TypeVar

import numpy as np
import pytest
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import sparse

import nodecopy
from nodecopy import (
    Graph,
    GraphModel,
    Jaccard,
    KeepByDegree,
    NearestNeighbours,
    NodeCopying,
    SameLabel,
    Weighted,
    datasets,
)
from nodecopy._core import estimator as array_archives
from nodecopy._core.estimator import Configurable, Saveable, check_annotated, read_arrays, write_arrays
from nodecopy._core.random import Rng
from nodecopy.attacks import DICE
from nodecopy.classify import GCN, SBMGCN, BayesianGCN
from nodecopy.defend import CopyingDefence, EvidenceDefence
from nodecopy.errors import InputError
from nodecopy.generators import VGAE
from nodecopy.recommend import EASE, CopyEASE, EnsembleBPR, LightGCN, Popularity, WeightedHybrid
from tests.contracts.graph_models import community_graph

base = pytest.importorskip("sklearn.base")
MADE: list[Configurable] = [
    SameLabel(np.array([0, 1])), NearestNeighbours(3, scale="unit"), NodeCopying(Jaccard(max_donors=7), 0.25),
    BayesianGCN(NodeCopying(SameLabel()), n_graphs=2, base=GCN(n_hidden=7)), DICE(delete="any"),
    CopyingDefence(GCN(n_hidden=3), n_donors=4), VGAE(n_latent=3), CopyEASE(user_donors=Jaccard()),
    EnsembleBPR(LightGCN(n_factors=4), n_graphs=2), WeightedHybrid(Popularity(), CopyEASE(), weight=0.25),
]  # fmt: skip


@pytest.mark.parametrize("model", MADE, ids=lambda model: type(model).__name__)
def test_a_clone_has_the_same_settings_and_nothing_else(model: Configurable) -> None:
    other = base.clone(model)
    assert type(other) is type(model)
    assert other is not model
    assert repr(other) == repr(model)


def test_parameters_of_parts_are_read_and_changed() -> None:
    model = BayesianGCN(n_graphs=2, base=GCN(n_hidden=7))
    assert model.get_params()["base__n_hidden"] == 7
    copy = base.clone(model).set_params(base__n_hidden=8, base__n_epochs=3, n_graphs=4)
    assert isinstance(copy.base, GCN)
    assert (copy.base.n_hidden, copy.base.n_epochs, copy.n_graphs) == (8, 3, 4)
    wrong = r"a parameter of GCN must be one of .*; got 'n_hiden'\. Did you mean n_hidden"
    with pytest.raises(InputError, match=wrong):
        model.set_params(base__n_hiden=8)
    with pytest.raises(InputError, match="keep of NodeCopying must have parameters to set k; got 0"):
        NodeCopying(SameLabel()).set_params(keep__k=0.1)
    assert model.get_params()["base__n_hidden"] == 7


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


PLAIN_VALUES: list[Any] = [
    None, True, False, 0, -(2**70), 0.1, -0.0, math.inf, 5e-324, "", "é \n\x00", [], (), {},
    [1, (2.5, "three"), [None, ()]], {"a b": {"": [1]}, "array": 2, "class": "nodecopy.Graph", "dict": 3},
]  # fmt: skip


@pytest.mark.parametrize("value", PLAIN_VALUES, ids=repr)
def test_plain_values_come_back_equal_and_of_the_same_type(value: Any, tmp_path: Path) -> None:
    loaded = reload(value, tmp_path)
    assert type(loaded) is type(value)
    assert loaded == value
    assert repr(loaded) == repr(value)


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


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.coo_array, sparse.csc_matrix])
def test_sparse_matrices_come_back_as_csr(kind: Any, tmp_path: Path) -> None:
    dense = np.array([[0.0, 1.5, 0.0], [2.0, 0.0, -1.0]])
    loaded = reload(kind(dense), tmp_path)
    assert isinstance(loaded, sparse.csr_array)
    assert loaded.dtype == np.float64
    np.testing.assert_array_equal(loaded.toarray(), dense)


def test_the_caller_of_load_chooses_the_device(tmp_path: Path) -> None:
    Holder(device="cuda:7").save(tmp_path / "holder.npz")
    with np.load(tmp_path / "holder.npz") as archive:
        assert "cuda" not in str(archive["tree"])
    assert nodecopy.load(tmp_path / "holder.npz", classes=[Holder]).device == "cpu"
    assert nodecopy.load(tmp_path / "holder.npz", classes=[Holder], device="cuda").device == "cuda"


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
    with pytest.raises(InputError, match=r"own\.npz: classes must name .*test_estimator\.Reversed, which"):
        nodecopy.load(path)


def test_a_function_is_named_by_the_file_and_given_to_load(tmp_path: Path) -> None:
    """The code is not in the file; the module may be another than where the function was saved."""
    Holder(len).save(tmp_path / "holder.npz")
    assert nodecopy.load(tmp_path / "holder.npz", classes=[Holder, len]).value is len
    with pytest.raises(InputError, match=r"classes must hold len\(\)"):
        nodecopy.load(tmp_path / "holder.npz", classes=[Holder])
    Holder(Reversed).save(tmp_path / "class.npz")
    assert nodecopy.load(tmp_path / "class.npz", classes=[Holder, Reversed]).value is Reversed
    with pytest.raises(InputError, match="value of Holder must be a function with a name to be saved"):
        Holder(partial(len)).save(tmp_path / "partial.npz")
    with pytest.raises(InputError, match=r"function with a name to be saved; got"):
        Holder(lambda: 3).save(tmp_path / "lambda.npz")


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


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (None, "damaged or of another format"),
        ({"weights": np.ones(3)}, "must hold a fitted object; it holds weights"),
        ({"tree": "{"}, "damaged or of another format"),
        (
            {"tree": json.dumps({"class": "nodecopy.Weighted", "params": {"similarity": {"array": "x"}}})},
            "'x'",
        ),
    ],
)
def test_errors_of_damaged_files_name_the_file(arrays: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    path.write_bytes(b"not an archive" * 9)
    if arrays is not None:
        np.savez(path, **arrays)
    with pytest.raises(InputError, match=rf"model\.npz: .*{message}"):
        nodecopy.load(path)


KEEP, ROWS = NodeCopying(KeepByDegree(SameLabel())), NodeCopying(Jaccard())
VOTES = SBMGCN(base=GCN(n_epochs=1))
DAMAGED: list[tuple[Any, str, Any, str]] = [
    (KEEP, "distribution_/other/members", 99.0, "members of DonorLists must lie between 0 and 19"),
    (KEEP, "graph_/adjacency/csr/indices", 99.0, "must be a valid sparse matrix: indices must be"),
    (KEEP, "params/kept", 3, "damaged or of another format .*kept"),
    (KEEP, "distribution_/keep_probabilities", math.nan, "must be finite"),
    (KEEP, "distribution_/keep_probabilities", 2.0, "between 0 and 1; got 2"),
    (KEEP, "distribution_/other", 3, "other of KeepingDistribution must be"),
    (KEEP, "keep_", "x", "keep_ of NodeCopying must be"),
    (KEEP, "keep_", math.nan, "keep_ of NodeCopying must be finite"),
    (ROWS, "distribution_/cumulative", math.nan, "cumulative of DonorRows must be finite"),
    (ROWS, "distribution_/cumulative", 0.0, "must rise to 1 in every row"),
    (ROWS, "distribution_/P/csr/data", math.nan, "P of DonorRows must be finite"),
    (ROWS, "distribution_/P/csr/data", -1.0, "must rise to 1 in every row, by the"),
    (VOTES, "params/base", True, "base of SBMGCN must be"),
    (VOTES, "params/base/params/n_epochs", True, "n_epochs of GCN must be finite and of the type int"),
    (VOTES, "prediction_/networks", 5, "networks of Prediction must be"),
    (VOTES, "prediction_/networks/weights/tuple/0", math.inf, "weights of Ensemble must be finite"),
    (VOTES, "prediction_/networks/config", {"dict": {}}, "config of Ensemble must be"),
    (EvidenceDefence(GCN(n_epochs=1)), "targets_", None, "state of EvidenceDefence must hold targets_"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("model", "place", "value", "message"), DAMAGED)
def test_what_a_file_holds_has_the_types_of_its_class(
    model: Any, place: str, value: Any, message: str, tmp_path: Path
) -> None:
    """A float fills an array, ``None`` removes a value, and anything else replaces it."""
    path = tmp_path / "model.npz"
    graph = community_graph()
    nodes = () if isinstance(model, NodeCopying) else (range(graph.n_nodes),)
    model.fit(graph.replace(features=np.eye(graph.n_nodes) + 1), *nodes, rng=0).save(path)
    arrays: Any = read_arrays(path)
    part: Any = json.loads(str(arrays["tree"]))
    tree = part
    *parents, last = place.split("/") if place.startswith("params") else ["state", *place.split("/")]
    for key in parents:
        part = part[int(key)] if isinstance(part, list) else part.get("parts", part)[key]
    part = part if isinstance(part, list) else part.get("parts", part)
    final: Any = int(last) if isinstance(part, list) else last
    if isinstance(value, float) and isinstance(part[final], dict):
        arrays[part[final]["array"]][...] = value
    elif value is None:
        del part[final]
    else:
        part[final] = value
    np.savez(path, **(arrays | {"tree": np.array(json.dumps(tree))}))
    with pytest.raises(InputError, match=message):
        nodecopy.load(path)


def test_a_small_file_cannot_hold_a_large_tree(tmp_path: Path) -> None:
    names = {"data": "no", "indices": "no", "indptr": "zeros"}
    matrix = {"csr": {part: {"array": name} for part, name in names.items()}, "shape": [10**5, 1]}
    tree = {"class": "nodecopy.Weighted", "params": {"similarity": {"list": [matrix] * 10**3}}}
    np.savez_compressed(tmp_path / "x.npz", tree=np.array(json.dumps(tree)), no=[], zeros=[0] * 100_001)
    with pytest.raises(InputError, match=r"must take at most .* bytes when it is unpacked"):
        nodecopy.load(tmp_path / "x.npz")


SLICE = slice(3)  # has no representation in a file


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
def test_an_error_names_what_cannot_be_saved(value: Any, name: str, tmp_path: Path) -> None:
    (tmp_path / "holder.npz").write_bytes(b"earlier")
    with pytest.raises(InputError, match=f"^{name} must be made of arrays and plain values to be saved; got"):
        Holder(value).save(tmp_path / "holder.npz")
    assert [file.name for file in tmp_path.iterdir()] == ["holder.npz"]
    assert (tmp_path / "holder.npz").read_bytes() == b"earlier"


MIN_BYTES = 512
RNG = np.random.default_rng(0)
LARGE = RNG.random((16, 16), np.float32)

ARRAYS: dict[str, Any] = {
    "tree": np.array("é"),
    "C": LARGE,
    "F": np.asfortranarray(RNG.random((9, 8))),
    "strided": RNG.random((40, 40))[::2, ::4],
    "small": LARGE[:2],
    "positions": np.arange(1000),
    "ids": np.array([f"item {number}" for number in range(100)]),
    "big-endian": RNG.random(200).astype(">f8"),
}

MAPPED = {"C", "F", "strided"}


@pytest.fixture(autouse=True)
def _map_small_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_archives, "MIN_MAPPED_BYTES", MIN_BYTES)


def write(path: Path, arrays: dict[str, Any] = ARRAYS) -> Path:
    with path.open("wb") as file:
        write_arrays(file, arrays)
    return path


def is_mapped(array: Any) -> bool:
    while array is not None and not isinstance(array, np.memmap):
        array = getattr(array, "base", None)
    return array is not None


@pytest.mark.parametrize("mmap", [False, True])
def test_arrays_come_back_and_large_ones_of_floats_are_mapped(mmap: bool, tmp_path: Path) -> None:
    loaded = read_arrays(write(tmp_path / "arrays.npz"), mmap=mmap)
    assert list(loaded) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert (type(loaded[name]), loaded[name].dtype) == (np.ndarray, array.dtype)
        np.testing.assert_array_equal(loaded[name], array)
    assert {name for name, array in loaded.items() if is_mapped(array)} == (MAPPED if mmap else set())
    for name in MAPPED if mmap else ():
        assert loaded[name].ctypes.data % array_archives.ALIGNMENT == 0
        assert not loaded[name].flags.writeable


def test_numpy_reads_the_archive_and_every_checksum_is_right(tmp_path: Path) -> None:
    path = write(tmp_path / "arrays.npz")
    with np.load(path, allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["strided"], ARRAYS["strided"])
    with zipfile.ZipFile(path) as members:
        assert members.testzip() is None
        stored = {info.filename for info in members.infolist() if info.compress_type == zipfile.ZIP_STORED}
    assert stored == {f"{name}.npy" for name in (*MAPPED, "big-endian")}


def saved_model(folder: Path) -> Path:
    EASE(1.0).fit(datasets.load("library")).save(folder / "model.npz")
    return folder / "model.npz"


@pytest.mark.parametrize("n_neighbours", [None, 20])
def test_a_mapped_recommender_recommends_and_learns(n_neighbours: int | None, tmp_path: Path) -> None:
    library = datasets.load("library")
    model = EASE(1.0, n_neighbours=n_neighbours).fit(library)
    model.save(tmp_path / "model.npz")
    mapped = EASE.load(tmp_path / "model.npz", mmap=True)
    weights = mapped.weights_
    assert is_mapped(weights if n_neighbours is None else weights.data)
    if n_neighbours is not None:  # positions are checked once and must not change afterwards
        assert not is_mapped(weights.indices)
    np.testing.assert_array_equal(mapped.recommend(k=3)[0], model.recommend(k=3)[0])
    model.save(tmp_path / "model.npz")  # replaces the file that is in use
    np.testing.assert_array_equal(mapped.score(), model.score())
    new = nodecopy.Interactions.from_table(["new"] * 2, library.item_ids[:2])
    np.testing.assert_array_equal(
        mapped.partial_fit(new).recommend(["new"], 3)[0], model.partial_fit(new).recommend(["new"], 3)[0]
    )


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.9, 0.999])
def test_truncated_files_are_errors(mmap: bool, share: float, tmp_path: Path) -> None:
    path = saved_model(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(InputError, match=r"model\.npz: "):
        nodecopy.load(path, mmap=mmap)


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("shape", ["( 1,   1)", "(99, 999)", "(-9, -9)", "(9e9, 9)", "         "])
def test_a_shape_that_does_not_fit_the_file_is_an_error(mmap: bool, shape: str, tmp_path: Path) -> None:
    path = saved_model(tmp_path)
    with zipfile.ZipFile(path) as members:
        weights = max(members.infolist(), key=lambda info: info.file_size * (info.compress_type == 0))
    size = len(datasets.load("library").item_ids)
    old = f"({size}, {size})".encode()
    content = path.read_bytes()
    assert content.count(old, weights.header_offset) == 1
    path.write_bytes(content.replace(old, shape[: len(old)].ljust(len(old)).encode()))
    with pytest.raises(InputError, match=r"model\.npz: "):
        nodecopy.load(path, mmap=mmap)


def test_no_changed_byte_ends_the_interpreter(tmp_path: Path) -> None:
    """Bytes outside the mapped numbers are changed at random; those inside are numbers whatever they are."""
    path = saved_model(tmp_path)
    content, n_errors = bytearray(path.read_bytes()), 0
    for position in np.random.default_rng(1).choice(len(content), 150, replace=False):
        changed = content.copy()
        changed[position] ^= 0xFF
        path.write_bytes(changed)
        try:
            nodecopy.load(path, mmap=True).recommend(k=1)
        except InputError:
            n_errors += 1
    assert n_errors > 10


def test_annotations_may_be_aliases() -> None:
    """They are for arrays of NumPy from 2.5 on, in Python from 3.12 on."""
    scalar = TypeVar("scalar", bound=np.generic)

    class Alias:
        __value__ = NDArray[scalar]
        __class_getitem__: Any = classmethod(GenericAlias)

    class Held:
        __annotations__ = {"numbers": GenericAlias(Alias, (np.int64,))}

    assert check_annotated({"numbers": np.arange(3)}, Held)
    with pytest.raises(InputError, match="numbers of Held"):
        check_annotated({"numbers": np.array(["a"])}, Held)
