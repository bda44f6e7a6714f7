"""Compiled functions cached on disk; after a damaged file or a full disk they are only compiled again."""

from __future__ import annotations

import logging
import pickle
import zlib
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile

_log = logging.getLogger(__name__)

_SEAL = sha256().digest_size


class CheckedFiles(IndexDataCacheFile):  # type: ignore[misc]
    """One file per signature, which begins with a digest of its key and its content.

    The files of numba have an index; if it is damaged, or written by two processes at once, numba may load code for
    other types.
    """

    def load(self, key: Any) -> Any:
        """Return the saved code, or None if it is missing, damaged, or was compiled from other sources."""
        try:
            stored = self._path(key).read_bytes()
        except OSError:
            return None
        seal, content = stored[:_SEAL], stored[_SEAL:]
        return pickle.loads(content) if seal == self._seal(key, content) else None  # noqa: S301

    def save(self, key: Any, data: Any) -> None:
        content = self._dump(data)
        with self._open_for_write(str(self._path(key))) as file:
            file.write(self._seal(key, content) + content)

    def _path(self, key: Any) -> Path:
        signature, machine, _ = key
        return Path(self._data_path(self._data_name(zlib.crc32(repr((self._version, signature, machine)).encode()))))

    def _seal(self, key: Any, content: bytes) -> bytes:
        return sha256(repr((self._version, self._source_stamp, key)).encode() + content).digest()


class CodeCache(FunctionCache):  # type: ignore[misc]
    """The compiled versions of one function on disk."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        where = self._impl.locator
        self._cache_file = CheckedFiles(self._cache_path, self._impl.filename_base, where.get_source_stamp())

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save a compiled version, or log why it was not."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            message = "compiled code was not saved in %s (%s), and the next process will compile it again: %s"
            advice = "free space on the disk, or set NUMBA_CACHE_DIR to a writable folder"
            _log.warning(message, self._cache_path, error.strerror, advice)


def cached_njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles like `numba.njit` and caches the result on disk.

    Without a writable folder, functions are compiled in every process.
    """

    def compile_function(function: Callable[..., Any]) -> Any:
        compiled = njit(**options)(function)
        try:
            compiled._cache = CodeCache(function)
        except (OSError, RuntimeError) as error:  # numba found no writable folder
            _log.info("compiled code is not cached on disk: %s", error)
        return compiled

    return compile_function
