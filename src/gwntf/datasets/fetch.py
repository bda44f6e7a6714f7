"""Files of research data: found on disk, or downloaded, checked and put in place whole."""

from __future__ import annotations

import hashlib
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

from gwntf.core import DataError
from gwntf.io import atomic_path

_CHUNK = 2**16
_TIMEOUT = 30.0


@dataclass(frozen=True)
class RemoteFile:
    """A file with a public home and a pinned digest."""

    name: str
    url: str
    sha256: str


def find_data_home(data_home: str | os.PathLike[str] | None = None) -> Path:
    """Folder of the data sets: the argument, else GWNTF_DATA, else ``gwntf_data`` in the user's home."""
    chosen = data_home or os.environ.get("GWNTF_DATA") or Path.home() / "gwntf_data"
    return Path(chosen).expanduser()


def fetch(
    remote: RemoteFile,
    data_home: str | os.PathLike[str] | None = None,
    *,
    download: bool = True,
    progress: bool = True,
) -> Path:
    """Return the path of a file whose digest is right, downloading it if it is not there yet.

    Raises
    ------
    DataError
        If the file is absent and not to be downloaded, cannot be downloaded whole, or is not the right one.
        The message says where to put it by hand.
    """
    path = find_data_home(data_home) / remote.name
    if path.exists():
        if not path.is_file() or _digest(path) != remote.sha256:
            raise DataError(
                f"{path} is not the expected {remote.name} (its SHA-256 differs): remove it and "
                f"{_by_hand(remote, path)}"
            )
        return path
    if not download:
        raise DataError(f"{remote.name} is not in {path.parent}: {_by_hand(remote, path)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(path) as aside:
            _download(remote, aside, progress)
    except (urllib.error.URLError, HTTPException, OSError) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        raise DataError(
            f"{remote.name} could not be downloaded ({error}): {_by_hand(remote, path)}"
        ) from error
    return path


def _download(remote: RemoteFile, aside: Path, progress: bool) -> None:
    """Write the file aside; raise unless all of it came and its digest is right."""
    request = urllib.request.Request(remote.url, headers={"User-Agent": "gwntf"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as response:  # noqa: S310
        length = response.headers.get("Content-Length")
        total = int(length) if length and length.isdecimal() else None
        received = 0
        with aside.open("wb") as file, _bar(remote.name, total, progress) as update:
            while chunk := response.read(_CHUNK):
                file.write(chunk)
                received += len(chunk)
                update(len(chunk))
    if total is not None and received != total:
        raise OSError(f"the connection ended after {received} of {total} bytes")
    if _digest(aside) != remote.sha256:
        raise OSError(f"what {remote.url} sent has another SHA-256 than {remote.sha256}")


@contextmanager
def _bar(name: str, total: int | None, progress: bool) -> Iterator[Any]:
    from tqdm.auto import tqdm

    with tqdm(total=total, desc=name, unit="B", unit_scale=True, disable=not progress) as bar:
        yield bar.update


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _by_hand(remote: RemoteFile, path: Path) -> str:
    return f"put the file from {remote.url} (SHA-256 {remote.sha256}) at {path}"
