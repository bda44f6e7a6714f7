"""Downloading a file once, with its SHA-256 checked, into the folder of the data sets."""

import hashlib
import os
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from gwntf.core import DataError, InputError
from gwntf.io import atomic_path

_TIMEOUT = 30.0
_ATTEMPTS = 3
_PAUSE = 1.0  # seconds before the second attempt, twice as long before the third
_TEMPORARY_STATUS = {408, 425, 429, 500, 502, 503, 504}
_SCHEMES = ("http", "https", "file")


class RemoteFile(NamedTuple):
    """A file with its public URL and its expected digest; None if its content is checked after reading instead."""

    name: str
    url: str
    sha256: str | None


class WrongContentError(OSError):
    """A file that arrived completely but is not the expected one."""


def find_data_home(data_home: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of the data sets: the argument, else GWNTF_DATA, else ``gwntf_data`` in the user's home."""
    chosen = data_home or os.environ.get("GWNTF_DATA") or Path.home() / "gwntf_data"
    return Path(chosen).expanduser()


def check_url(argument: str, url: str) -> str:
    """Return a URL, or raise InputError unless it is of a supported kind."""
    if urlsplit(url).scheme not in _SCHEMES:
        raise InputError(argument, repr(url), f"an address that starts with {', '.join(f'{s}://' for s in _SCHEMES)}")
    return url


def fetch(
    remote: RemoteFile, data_home: str | os.PathLike[str] | None = None, *, download: bool = True, progress: bool = True
) -> Path:
    """Return the path of a file whose digest matches, downloaded if missing; errors say where to put it manually."""
    path = find_data_home(data_home) / remote.name
    advice = f"put the file from {remote.url} (SHA-256 {remote.sha256}) at {path}"
    if path.exists():
        if not path.is_file() or _digest(path) != remote.sha256:
            raise DataError(f"{path} is not the expected {remote.name} (its SHA-256 differs): remove it and {advice}")
        return path
    if not download:
        raise DataError(f"{remote.name} is not in {path.parent}: {advice}")
    create_file(path, lambda temporary: download_file(remote, temporary, progress), advice)
    return path


def create_file(path: Path, write: Callable[[Path], object], advice: str) -> None:
    """Create a file of the data sets from a download; if that fails, an existing file is unchanged.

    Raises
    ------
    DataError
        If the download fails or the file cannot be written; the message ends with the advice.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(path) as temporary:
            write(temporary)
    except DataError:
        raise
    except (HTTPException, OSError) as error:
        raise DataError(f"{path.name} could not be downloaded ({error}): {advice}") from error


def download_file(remote: RemoteFile, target: Path, progress: bool) -> None:
    """Download to `target`, up to three times; raise unless the file is complete and its digest matches.

    Failures that may be temporary are tried again: broken connections, timeouts, and answers such as "503 Service
    Unavailable". A missing page or wrong content are not.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            _download_once(remote, target, progress)
        except (HTTPException, OSError) as error:
            if isinstance(error, urllib.error.HTTPError):
                error.close()
            if attempt == _ATTEMPTS or not _may_be_temporary(remote, error):
                raise
            time.sleep(_PAUSE * 2 ** (attempt - 1))
        else:
            return


def _may_be_temporary(remote: RemoteFile, error: Exception) -> bool:
    if isinstance(error, urllib.error.HTTPError):
        return error.code in _TEMPORARY_STATUS
    return not isinstance(error, WrongContentError) and urlsplit(remote.url).scheme != "file"


def _download_once(remote: RemoteFile, target: Path, progress: bool) -> None:
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
    if remote.sha256 is not None and _digest(target) != remote.sha256:
        raise WrongContentError(f"the file at {remote.url} does not have the expected SHA-256 {remote.sha256}")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
