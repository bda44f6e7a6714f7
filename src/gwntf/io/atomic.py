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
"""Error numbers of the storage, as opposed to those of whatever else a block does while it writes."""

_TOKEN_BYTES = 6
"""Random bytes in the name of a temporary file."""


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside `path` to write to; rename it to `path` when the block ends without an error.

    File and folder are flushed to the disk, the file before it is renamed. If the block raises, the temporary file is
    removed and an existing file at `path` is unchanged; where the storage is the cause, the error says so.

    Raises
    ------
    FileWriteError
        If the disk is full, the file too large, the folder missing or not writable, or the path a folder.
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
    """Raise FileWriteError unless a path can be that of a file: no folder, and in one that exists."""
    target = Path(path)
    if target.is_dir() or os.fspath(path).endswith(os.sep):
        raise FileWriteError(errno.EISDIR, f"{path} is a folder, nothing was written: add the name of a file")
    if not target.parent.is_dir():
        raise FileWriteError(errno.ENOENT, f"{path} was not written: the folder {target.parent} does not exist")


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove temporary files that killed processes left beside a path; no process may be writing it."""
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
