"""Writing a file so that it appears complete or not at all."""

import errno
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gwntf.core import FileWriteError

_STORAGE_ERRORS = {
    getattr(errno, name, None) for name in ("ENOSPC", "EDQUOT", "EFBIG", "EIO", "EROFS", "EACCES", "EPERM", "EBUSY")
} - {None}
"""Error numbers that storage causes; other errors in the block are raised unchanged."""

_TOKEN_BYTES = 6
"""Random bytes in the name of a temporary file."""


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path in the same folder; rename it to `path` when the block ends without an error.

    The file is flushed to disk before it is renamed, the folder afterwards. If the block raises, the temporary file is
    removed and an existing file at `path` is unchanged.

    Raises
    ------
    FileWriteError
        If the disk is full, the file is too large, the folder is missing or not writable, or the path is a folder.
    """
    check_target(path)
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(_TOKEN_BYTES)}{target.suffix}")
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        yield temporary
        _sync(temporary, os.O_RDONLY)
        temporary.replace(target)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in _STORAGE_ERRORS:
            state = "the existing file is unchanged" if target.exists() else "no file was created"
            message = f"{target} was not written ({error.strerror}): {state}"
            raise FileWriteError(error.errno, message) from error
        raise
    if hasattr(os, "O_DIRECTORY"):
        _sync(target.parent, os.O_RDONLY | os.O_DIRECTORY)


def check_target(path: str | os.PathLike[str]) -> None:
    """Raise FileWriteError if a path is a folder, or its folder does not exist."""
    target = Path(path)
    if target.is_dir() or os.fspath(path).endswith(os.sep):
        raise FileWriteError(errno.EISDIR, f"{path} is a folder: add a file name (nothing was written)")
    if not target.parent.is_dir():
        raise FileWriteError(errno.ENOENT, f"{path} was not written: the folder {target.parent} does not exist")


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove temporary files that killed processes left in the folder of `path`; no process may be writing `path`."""
    target = Path(path)
    token = f"[0-9a-f]{{{2 * _TOKEN_BYTES}}}"
    pattern = re.compile(rf"\.{re.escape(target.name)}\.{token}{re.escape(target.suffix)}")
    for found in target.absolute().parent.iterdir():
        if pattern.fullmatch(found.name):
            found.unlink(missing_ok=True)


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
