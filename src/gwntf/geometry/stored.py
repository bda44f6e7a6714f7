"""What a metric sees of samples that go by in blocks: rows in a temporary file.

Searches go to and fro between rows, so they are written once, block by block, and then read from the file, which the
system holds in memory as far as there is room.
"""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gwntf.core import FloatArray
from gwntf.geometry import neighbors
from gwntf.geometry.features import COMPARED, GraphMetric, block_features
from gwntf.geometry.near_far import Points
from gwntf.data import ChunkedTensor, NonnegativeTensor, pieces, temporary_rows

_BATCH, _PART_ENTRIES = 4096, 2**21


def stored_features(
    tensor: ChunkedTensor, metric: GraphMetric, dtype: Any = None
) -> tuple[np.memmap[Any, Any], str]:
    """Return one row per sample and how rows are compared, as `graph_features` does, in a temporary file.

    There is always a last coordinate for rows of zeros. Rows are in float64, or as short as the metric makes them;
    where there are so many that pynndescent searches, which takes float32, in float32.
    """
    if dtype is None and len(tensor) > neighbors.EXACT_LIMIT and find_spec("pynndescent") is not None:
        dtype = np.float32
    file: np.memmap[Any, Any] | None = None
    found = tensor.blocks.stream(partial(_block_rows, metric=str(metric), dtype=dtype))
    for part, rows in zip(tensor.blocks.slices, found, strict=True):
        if file is None:
            file = temporary_rows((len(tensor), rows.shape[1]), rows.dtype)
        file[part] = rows
    if file is None:
        raise RuntimeError("a tensor without blocks")
    return file, COMPARED.get(str(metric), "euclidean")


def _block_rows(block: NonnegativeTensor, metric: str, dtype: Any) -> FloatArray:
    """Rows of a block, found for a part of it at a time."""
    host = block.on_host
    whole: FloatArray | None = None
    for part in host.batches(_PART_ENTRIES):
        rows, width = block_features(host.of(part), metric)
        if whole is None:
            whole = np.zeros((host.shape[0], width + 1), dtype or rows.dtype)
        whole[part, : rows.shape[1]] = rows
    if whole is None:
        raise RuntimeError("a block without samples")
    return whole


def neighbor_cosines(tensor: ChunkedTensor, index: NDArray[np.intp]) -> FloatArray:
    """Cosine of every sample with its neighbours; samples of zeros have none."""
    rows = stored_features(tensor, "cosine")[0][:, :-1]
    cosines = np.empty(index.shape)
    for part in pieces(len(index), _BATCH):
        own = rows[part].astype(np.float64)
        for place in range(index.shape[1]):
            cosines[part, place] = np.einsum("ij,ij->i", own, rows[index[part, place]])
    return np.clip(cosines, 0, 1)


class StoredPoints(Points):
    """`Points` whose features lie in a file; the elements are the samples of a tensor."""

    def __init__(self, tensor: ChunkedTensor, metric: str) -> None:
        self._tensor = tensor
        self._take(stored_features(tensor, metric, tensor.dtype)[0], metric)

    def elements(self, places: NDArray[np.intp]) -> FloatArray:
        """Return some elements as the data have them."""
        return self._tensor.samples(places)
