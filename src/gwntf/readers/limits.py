"""Size limits and the choice of an array: checks that every reader applies before it allocates memory.

Imports only the standard library, because the child process that runs `isolated` imports it too.
"""

import math
from collections.abc import Mapping, Sequence

MAX_EXPANSION = 1000  # maximum ratio of bytes in memory to stored bytes; deflate reaches 1032 for zeros
ALWAYS_ALLOWED = 2**26  # bytes that an array may always take in memory
NUMERIC_KINDS = "fiub"  # NumPy dtype kinds that are accepted as data


class RefusedError(Exception):
    """A file that cannot be read; the message continues a sentence that begins with the path of the file."""


def check_size(needed: int, stored: int, max_bytes: int) -> None:
    """Raise an error for an array larger than `max_bytes`, or implausibly large for its stored bytes."""
    if needed > max_bytes:
        raise RefusedError(
            f"declares an array of {format_bytes(needed)}, but max_bytes allows {format_bytes(max_bytes)}: raise "
            "max_bytes (--max-memory), or save the array, folded and samples first, as .npy, which is read block by "
            "block (in Python also as .zarr, with lazy=True)"
        )
    if needed > max(ALWAYS_ALLOWED, MAX_EXPANSION * stored):
        raise RefusedError(
            f"declares an array of {format_bytes(needed)} but stores {format_bytes(stored)}: it is damaged or "
            "malicious; otherwise save the array again without compression"
        )


def array_bytes(shape: Sequence[int], itemsize: int) -> int:
    """Return the size of an array in bytes, without integer overflow."""
    if any(length < 0 for length in shape):
        raise RefusedError(f"declares the invalid shape {tuple(shape)}")
    return math.prod(map(int, shape)) * max(1, int(itemsize))


def choose_array(shapes: Mapping[str, Sequence[int]], key: str | None, labels: str | None) -> str:
    """Return the name of the data array: `key`, else the only array besides the labels that is not a vector."""
    listed = ", ".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in sorted(shapes.items())[:20])
    listed = listed or "no array of numbers"
    for name in (key, labels):
        if name is not None and name not in shapes:
            raise RefusedError(f"has no array {name!r}; it contains {listed}")
    if key is not None:
        return key
    tables = [name for name, shape in shapes.items() if name != labels and sum(n != 1 for n in shape) > 1]
    if not tables:
        raise RefusedError(f"contains no array of two or more axes; it contains {listed}")
    if len(tables) > 1:
        raise RefusedError(f"contains several arrays ({listed}): choose one with key= (--key)")
    return tables[0]


def format_bytes(count: float) -> str:
    """Return a number of bytes as text, for example "1.5 GB"."""
    if count < 1000:
        return f"{count:.0f} bytes"
    for unit in ("kB", "MB", "GB", "TB"):
        count /= 1000
        if count < 1000:
            return f"{count:.1f} {unit}"
    return f"{count / 1000:.3g} PB"
