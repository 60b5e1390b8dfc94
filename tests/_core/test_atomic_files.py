"""Output that is there whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodecopy._core.atomic_files import atomic_folder, atomic_write, check_writable
from nodecopy.errors import InputError


def test_a_file_appears_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "new" / "out.csv"
    with atomic_write(target) as temporary:
        temporary.write_text("done")
        assert temporary.suffix == ".csv"
        assert not target.exists()
    assert target.read_text() == "done"
    assert list(target.parent.iterdir()) == [target]
    plain = tmp_path / "plain"
    plain.touch()
    assert target.stat().st_mode == plain.stat().st_mode


def test_a_failure_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    target.write_text("old")
    with pytest.raises(TypeError), atomic_write(target) as temporary:
        temporary.write_text(None)  # type: ignore[arg-type]
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_folder_in_the_way(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must be a file"), atomic_write(tmp_path):
        pass


def test_places_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    for inner in ("out.csv", "deep/out.csv"):
        with pytest.raises(InputError, match=r"must lie in a folder; .*file is a file"):
            check_writable(tmp_path / "file" / inner)
    check_writable(tmp_path / "new" / "deep" / "out.csv")
    assert not (tmp_path / "new").exists()
    monkeypatch.setattr("os.access", lambda folder, mode: folder != tmp_path)
    with pytest.raises(InputError, match=r"must lie in a folder that may be written to; .* may not"):
        check_writable(tmp_path / "new" / "out.csv")


def test_folders(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with atomic_folder(target, mark="made") as temporary:
        (temporary / "made").touch()
        assert not target.exists()
    assert [file.name for file in target.iterdir()] == ["made"]
    with pytest.raises(InputError, match="must be empty or new"), atomic_folder(target, mark="made"):
        pass
    with atomic_folder(target, mark="made", overwrite=True) as temporary:
        (temporary / "made").write_text("again")
    assert (target / "made").read_text() == "again"
    with pytest.raises(RuntimeError), atomic_folder(target, mark="made", overwrite=True):
        raise RuntimeError
    assert (target / "made").read_text() == "again"
    with pytest.raises(InputError, match="must be a folder"), atomic_folder(target / "made", mark="made"):
        pass
    assert [file.name for file in tmp_path.iterdir()] == ["out"]


def test_somebody_elses_folder_is_never_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    monkeypatch.chdir(tmp_path)
    for target in (tmp_path, Path()):
        replaced = atomic_folder(target, mark="made", overwrite=True)
        with pytest.raises(InputError, match="that an earlier run wrote"), replaced:
            pass
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_link_to_an_empty_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with atomic_folder(tmp_path / "link", mark="made") as temporary:
        (temporary / "made").touch()
    assert (tmp_path / "real" / "made").exists()
