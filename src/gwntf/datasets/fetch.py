"""Files of research data: found on disk, or downloaded and checked against a digest."""

import hashlib
import os
import shutil
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple

from gwntf.core import DataError
from gwntf.io import atomic_path

_TIMEOUT = 30.0


class RemoteFile(NamedTuple):
    """A file with its public URL and its expected digest."""

    name: str
    url: str
    sha256: str


def find_data_home(data_home: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of the data sets: the argument, else GWNTF_DATA, else ``gwntf_data`` in the user's home."""
    chosen = data_home or os.environ.get("GWNTF_DATA") or Path.home() / "gwntf_data"
    return Path(chosen).expanduser()


def fetch(
    remote: RemoteFile, data_home: str | os.PathLike[str] | None = None, *, download: bool = True, progress: bool = True
) -> Path:
    """Return the path of a file whose digest matches, after downloading it if it does not exist.

    Raises
    ------
    DataError
        If the file does not exist and `download` is false, the download fails, or the digest differs.
        The message says where to put the file by hand.
    """
    path = find_data_home(data_home) / remote.name
    by_hand = f"put the file from {remote.url} (SHA-256 {remote.sha256}) at {path}"
    if path.exists():
        if not path.is_file() or _digest(path) != remote.sha256:
            raise DataError(f"{path} is not the expected {remote.name} (its SHA-256 differs): remove it and {by_hand}")
        return path
    if not download:
        raise DataError(f"{remote.name} is not in {path.parent}: {by_hand}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(path) as temporary:
            _download(remote, temporary, progress)
    except (urllib.error.URLError, HTTPException, OSError) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        raise DataError(f"{remote.name} could not be downloaded ({error}): {by_hand}") from error
    return path


def _download(remote: RemoteFile, target: Path, progress: bool) -> None:
    """Download to `target`; raise unless the file is complete and its digest matches."""
    from tqdm.auto import tqdm

    request = urllib.request.Request(remote.url, headers={"User-Agent": "gwntf"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as response, target.open("wb") as file:  # noqa: S310
        length = response.headers.get("Content-Length")
        total = int(length) if length and length.isdecimal() else None
        with tqdm.wrapattr(file, "write", total, desc=remote.name, disable=not progress) as output:
            shutil.copyfileobj(response, output)
    received = target.stat().st_size
    if total is not None and received != total:
        raise OSError(f"the connection ended after {received} of {total} bytes")
    if _digest(target) != remote.sha256:
        raise OSError(f"the file at {remote.url} has another SHA-256 than {remote.sha256}")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
