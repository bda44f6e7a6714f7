"""A digest of the source of compiled code, so that cached code on disk is never outdated."""

import zlib
from pathlib import Path


def digest_of_sources() -> int:
    """Return a number that changes when any file of this folder, or `forms`, changes.

    numba checks only the file of a cached function, not those of the functions it calls. Therefore only functions that
    Python calls are cached, and each has this number in its closure, which numba includes in the cache key.
    """
    here = Path(__file__).parent
    files = [*sorted(here.glob("*.py")), here.parent / "forms.py"]
    return zlib.crc32(b"".join(path.read_bytes() for path in files))
