"""Writing a file so that it appears whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gwntf.core import FileWriteError

_STORAGE = {
    getattr(errno, name)
    for name in ("ENOSPC", "EDQUOT", "EFBIG", "EIO", "EROFS", "EACCES", "EPERM", "EBUSY")
    if hasattr(errno, name)
}
"""Errors of the storage, as opposed to those of whatever else a block does while it writes."""


_TOKEN = 6
"""Random bytes in the name of a file that is being written."""


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a path beside `path` to write to; rename it there when the block ends well.

    File and folder are forced to the disk, the file before it gets its name. If the block raises, what was written is
    removed and an existing file at `path` stays as it was; where the storage is the cause, the error says so.

    Raises
    ------
    FileWriteError
        If the disk is full, the file too large, or the place not writable.
    """
    target = Path(path)
    aside = target.with_name(f".{target.name}.{secrets.token_hex(_TOKEN)}{target.suffix}")
    try:
        os.close(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        yield aside
        _sync(aside, os.O_RDONLY)
        aside.replace(target)
    except BaseException as error:
        aside.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in _STORAGE:
            raise _refused(target, error) from error
        raise
    if hasattr(os, "O_DIRECTORY"):
        _sync(target.parent, os.O_RDONLY | os.O_DIRECTORY)


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove what killed processes had written beside a path; nobody may be writing it at the time."""
    target = Path(path)
    pattern = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{{2 * _TOKEN}}}{re.escape(target.suffix)}")
    for found in target.absolute().parent.iterdir():
        if pattern.fullmatch(found.name):
            found.unlink(missing_ok=True)


def _refused(target: Path, error: OSError) -> FileWriteError:
    left = (
        "the file that was there is as it was"
        if target.exists()
        else "there was no file before, and there is none"
    )
    return FileWriteError(error.errno, f"{target} was not written ({error.strerror}): {left}")


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
