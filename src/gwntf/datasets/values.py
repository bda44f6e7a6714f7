"""SHA-256 of the values of arrays, which does not depend on how a file stores them."""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def values_digest(arrays: Mapping[str, NDArray[Any]], dtypes: Mapping[str, str]) -> str:
    """Return the SHA-256 of the shapes and values of arrays, in the order and with the types of `dtypes`.

    The type ``"text"`` stands for strings, encoded as UTF-8 and separated by line feeds.
    """
    digest = hashlib.sha256()
    for name, dtype in dtypes.items():
        array = np.asarray(arrays[name])
        digest.update(f"{name} {dtype} {array.shape}\n".encode())
        if dtype == "text":
            digest.update("\n".join(map(str, array.ravel())).encode())
        else:
            digest.update(np.ascontiguousarray(array, dtype=dtype).tobytes())
    return digest.hexdigest()
