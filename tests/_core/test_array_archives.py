"""Archives of arrays: what is mapped, what is read, and damaged files."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nodecopy
from nodecopy import datasets
from nodecopy._core import estimator as array_archives
from nodecopy._core.estimator import read_arrays, write_arrays
from nodecopy.errors import InputError
from nodecopy.recommend import EASE

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


def test_archives_of_numpy_are_read_whether_aligned_or_not(tmp_path: Path) -> None:
    for length in range(1, 9):  # the length of the name moves the data
        name = "n" * length
        arrays: dict[str, Any] = {name: LARGE}
        np.savez(tmp_path / "plain.npz", **arrays)
        loaded = read_arrays(tmp_path / "plain.npz", mmap=True)[name]
        assert loaded.flags.aligned
        np.testing.assert_array_equal(loaded, LARGE)


def saved_model(folder: Path) -> Path:
    EASE(1.0).fit(datasets.load("library")).save(folder / "model.npz")
    return folder / "model.npz"


@pytest.mark.parametrize("n_neighbours", [None, 20])
def test_a_mapped_recommender_gives_the_same_lists_and_learns(
    n_neighbours: int | None, tmp_path: Path
) -> None:
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


def test_networks_of_a_mapped_file_take_read_only_weights(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from nodecopy.classify import GCN
    from nodecopy.recommend import LightGCN

    club = datasets.load("karate").replace(features=np.eye(34))
    GCN(n_epochs=60).fit(club, [0, 33], rng=0).save(tmp_path / "classifier.npz")
    LightGCN(n_factors=8, n_epochs=1).fit(datasets.load("library"), rng=0).save(tmp_path / "network.npz")
    torch.set_warn_always(True)  # torch warns of read-only arrays once, and warnings are errors here
    try:
        assert nodecopy.load(tmp_path / "classifier.npz", mmap=True).predict(club).shape == (34,)
        network = nodecopy.load(tmp_path / "network.npz", mmap=True)
        assert is_mapped(network.weights_["free"])
        np.testing.assert_allclose(network.embed()[1], network.item_embeddings_, atol=1e-6)
    finally:
        torch.set_warn_always(False)


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.9, 0.999])
def test_truncated_files_are_errors(mmap: bool, share: float, tmp_path: Path) -> None:
    path = saved_model(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(InputError, match=r"model\.npz: "):
        nodecopy.load(path, mmap=mmap)


@pytest.mark.parametrize("mmap", [False, True])
def test_a_file_whose_middle_is_missing_is_an_error(mmap: bool, tmp_path: Path) -> None:
    path = saved_model(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 3] + content[len(content) // 2 :])
    with pytest.raises(InputError, match="damaged or of another format"):
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


def test_a_wrong_offset_of_a_member_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "arrays.npz")
    content = bytearray(path.read_bytes())
    entry = content.rindex(b"PK\x01\x02", 0, content.rindex(b"strided.npy"))
    content[entry + 42 : entry + 46] = struct.pack("<I", 2**31)
    path.write_bytes(content)
    with pytest.raises((zipfile.BadZipFile, OSError, ValueError)):
        read_arrays(path, mmap=True)
