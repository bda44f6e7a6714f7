"""Functions that run on workers: passes over one block, and small steps between passes.

Data and states stay on the backend of the worker; NumPy arrays are sent. Large values report their size
(`__sizeof__`), so that the scheduler does not move them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from sys import getsizeof
from typing import Any

import numpy as np

from gwntf.backends import Backend, get_backend
from gwntf.core import FloatArray
from gwntf.data.block import Block, Sums
from gwntf.data.blocks import BlockState
from gwntf.data.sources import as_block, read


@dataclass(frozen=True)
class WorkerBackend:
    """The backend of the workers, created on each worker at first use."""

    device: str | None = None
    name: str = "auto"

    @cached_property
    def backend(self) -> Backend:
        """The backend of this worker."""
        return get_backend(self.name, device=self.device)

    def to_device(self, block: Block) -> Block:
        """Move a block to the backend of this worker."""
        with self.backend.session(None):
            return block.on(self.backend)

    def __reduce__(self) -> Any:
        return WorkerBackend, (self.device, self.name)


@dataclass(frozen=True)
class Result:
    """Result of a pass: the new state of a block, and its contribution to the sums over all blocks."""

    kept: Any
    sums: Sums | None
    product: FloatArray | None = None  # Contribution of a block of columns to an array with one row per sample

    def __sizeof__(self) -> int:
        return sum(_bytes(part) for part in (self.kept, self.sums, self.product))


def _bytes(value: Any) -> int:
    """Return the size of a value, or of all items of a tuple, in bytes."""
    if isinstance(value, tuple):
        return sum(_bytes(part) for part in value)
    return int(getattr(value, "nbytes", 0)) or getsizeof(value)


def run_block(
    function: Callable[..., Any], block: Block, rest: Sequence[FloatArray], options: Mapping[str, Any], *parts: Any
) -> Result:
    """Run one pass over a block of samples or columns; see `Blocks.run` and `Blocks.run_columns`."""
    backend = block.backend
    with backend.session(None), backend.quiet():
        shared = [backend.asarray(factor) for factor in rest]
        own = [_on_backend(part, backend) for part in parts]
        kept, sums, *product = function(block, shared, *own, **options)
        return Result(kept, sums.map(backend.to_numpy), *(backend.to_numpy(rows) for rows in product))


def run_rows(function: Callable[..., Any], worker: WorkerBackend, options: Mapping[str, Any], *parts: Any) -> Result:
    """Run a function that needs no data; see `Blocks.apply`."""
    backend = worker.backend
    with backend.session(None), backend.quiet():
        kept, sums = function(backend, *(_on_backend(part, backend, read_only=True) for part in parts), **options)
        return Result(kept, sums and sums.map(backend.to_numpy))


def call(function: Callable[..., Any], block: Block, *arguments: Any) -> Any:
    """Call a function of a block in the session of its backend."""
    with block.backend.session(None):
        return function(block, *arguments)


def _on_backend(part: Any, backend: Backend, *, read_only: bool = False) -> Any:
    """Move a value of a block to a backend; states that a pass updates in place are copied, so that tasks stay pure."""
    value = part.kept if isinstance(part, Result) else part
    if read_only and isinstance(value, BlockState):
        return value._replace(state=None).on(backend)._replace(state=value.state)
    return value.on(backend) if hasattr(value, "on") else value


def on_host(part: Any) -> Any:
    """Return a value of a block in NumPy arrays."""
    return _on_backend(part, get_backend("numpy"))


def add_up(parts: Sequence[Any]) -> Any:
    """Add up sums or rows."""
    return reduce(add, parts)


def join_sums(parts: Sequence[Sums]) -> Sums:
    """Add up the sums of blocks of columns; products with one row per column are concatenated."""
    joined = Sums()
    for name in parts[0]:
        values = [part[name] for part in parts]
        if isinstance(values[0], Sums) and 0 in values[0]:
            joined[name] = Sums({0: np.concatenate([value[0] for value in values])})
        else:
            joined[name] = reduce(add, values)
    return joined


def host_rows(part: Any) -> FloatArray:
    """Return A(1) of a block as a NumPy array, without copying its state."""
    kept: BlockState = part.kept if isinstance(part, Result) else part
    rows: FloatArray = get_backend("numpy").asarray(kept.rows)
    return rows


def take_rows(part: Any, which: Any) -> FloatArray:
    """Return some rows of A(1) of a block."""
    return np.ascontiguousarray(host_rows(part)[which])


def read_block(worker: WorkerBackend, chunk: Any, dtype: np.dtype[Any]) -> Block:
    """Convert a chunk of a Dask array to a block; entries are not checked."""
    return as_block(read(chunk, slice(None)), worker.backend, dtype)


def make_columns(worker: WorkerBackend, first: int, slices: Sequence[slice], parts: Sequence[Block]) -> Any:
    """Join some columns of all blocks of samples to a `ColumnBlock`."""
    with worker.backend.session(None):
        return parts[0].join_columns(parts, slices, first, worker.backend)
