"""What compiled code is compiled from, so that the copy on disk is never older than its source."""

import zlib
from pathlib import Path


def digest_of_sources() -> int:
    """Return a number that changes when any file of this folder, or the forms of the kernels, change.

    numba looks at the file of a cached function alone, not at the files of what it calls. So only functions that
    Python calls are cached, and each holds this number, which numba counts as a part of the function.
    """
    here = Path(__file__).parent
    files = [*sorted(here.glob("*.py")), here.parent / "forms.py"]
    return zlib.crc32(b"".join(path.read_bytes() for path in files))
