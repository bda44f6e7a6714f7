"""The backend whose arrays are torch tensors, all on one device."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

from gwntf.backends.forms import KernelForm
from gwntf.backends.interchange import is_foreign, is_tensor
from gwntf.backends.protocol import Backend, Result, StackTransport
from gwntf.backends.torch import namespace
from gwntf.backends.torch.arrays import as_tensor, check_device, torch_dtype
from gwntf.backends.torch.memory import Halving, is_out_of_memory, memory_error
from gwntf.backends.torch.sparse import SparseRows
from gwntf.core import Array, FloatArray

_HAS_TRITON = find_spec("triton") is not None
_CPU_ENTRIES, _CUDA_ENTRIES = 2**20, 2**26
_SMALL = 2**24
_CPU_LONG, _CUDA_LONG = 1000, 2**14
_BYTES_PER_ENTRY = 2**9
"""Bytes of device memory per entry of a block, so that devices with little memory get small blocks."""


class TorchBackend(Backend):
    """torch tensors on one device; float32 unless float64 is requested.

    The size of a block of work depends only on the device and the shape; a block that does not fit in memory is halved.
    Results are bitwise reproducible on one device with one version of torch. Float32 products on a GPU use TF32 where
    torch's own settings allow it.
    """

    name = "torch"
    xp: Any = namespace
    default_dtype = "float32"

    def __init__(self, device: str = "cpu") -> None:
        self.device = check_device(device)
        self.block_entries = _block_entries(self.device)
        self._halving = Halving()

    def __reduce__(self) -> tuple[type[TorchBackend], tuple[str]]:
        """Pickle the device only."""
        return TorchBackend, (str(self.device),)

    @property
    def long_fibers(self) -> int:
        """Length above which structured kernels are faster than dense ones; GPUs multiply matrices quickly."""
        return _CPU_LONG if self.device.type == "cpu" else _CUDA_LONG

    def asarray(self, values: Any, dtype: Any = None) -> Array:
        return as_tensor(values).to(self.device, None if dtype is None else torch_dtype(dtype)).contiguous()

    def to_numpy(self, values: Array) -> FloatArray:
        """Copy an array to the host; on the CPU it shares memory."""
        array: FloatArray = values.detach().cpu().numpy()
        return array

    def as_given(self, values: Array, given: Any) -> Any:
        """Return a tensor on the device of a given tensor, an array of the library of other data, or a NumPy array."""
        if is_tensor(given):
            return values.to(given.device)
        if not is_foreign(given):
            return self.to_numpy(values)
        if hasattr(given, "__array_namespace__"):
            library = given.__array_namespace__()
        else:
            library = sys.modules[type(given).__module__.partition(".")[0]]
        return library.from_dlpack(values.to(as_tensor(given).device).contiguous())

    def dtype(self, values: Array) -> Any:
        return np.dtype(str(values.dtype).removeprefix("torch."))

    def sparse(self, matrix: Any, dtype: Any) -> SparseRows:
        return SparseRows(matrix.tocsr(), torch_dtype(dtype), self.device)

    @contextmanager
    def session(self, given: Any) -> Iterator[None]:
        """Select the device, and turn out-of-memory errors into `DeviceMemoryError`."""
        try:
            device = nullcontext() if self.device.type == "cpu" else torch.cuda.device(self.device)
            with torch.no_grad(), device:
                yield
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            raise memory_error(error, self.device, given, self._halving.depth) from error

    def stack_transport(
        self,
        form: Callable[[], KernelForm | None],
        length: int,
        columns: int,  # noqa: ARG002
    ) -> StackTransport | None:
        """Return a fused transport on a GPU, or None to process tiles."""
        if self.device.type != "cuda" or not _HAS_TRITON:
            return None
        from gwntf.backends.torch.fused import fused_transport

        return fused_transport(form(), length, exact=not _tf32_allowed(), recording=self.recording)

    def numbers(self, values: Sequence[Any]) -> Array:
        """Return a float64 tensor without host synchronisation."""
        wide = {"dtype": torch.float64, "device": self.device}
        return torch.stack([v.to(torch.float64) if is_tensor(v) else torch.full((), float(v), **wide) for v in values])

    def recorded(
        self,
        function: Callable[..., tuple[Any, ...]],
        kernels: Sequence[tuple[Callable[[], KernelForm | None], int]],
        entries: int,
    ) -> Callable[..., tuple[Any, ...]] | None:
        """Return a CUDA graph of the function for small problems, which spend most of their time launching kernels."""
        if self.device.type != "cuda" or entries > _SMALL or (kernels and not _HAS_TRITON):
            return None
        if kernels:
            from gwntf.backends.torch.fused import can_be_recorded

            if not all(can_be_recorded(form(), length) for form, length in kernels):
                return None
        from gwntf.backends.torch.recording import Recording

        return Recording(function, self._recording_mode)

    @contextmanager
    def _recording_mode(self) -> Iterator[None]:
        """Use transports without host synchronisation."""
        self.recording = True
        try:
            yield
        finally:
            self.recording = False

    def zeros(self, shape: Sequence[int], like: Array) -> Array:
        return like.new_zeros(tuple(shape))

    def sum_by(self, rows: Array, index: Array, size: int, weights: Array | None = None) -> Array:
        """Sum rows in order: on a GPU by sorting, because the order of atomic additions varies."""
        weighted = rows if weights is None else rows * weights[:, None]
        sums = rows.new_zeros((size, rows.shape[1]))
        if rows.is_cuda:
            return sums.index_put_((index,), weighted, accumulate=True)
        return sums.index_add_(0, index, weighted)

    def map(self, function: Callable[[slice], Result], blocks: Iterable[slice]) -> list[Result]:
        """Process the blocks in order, split in halves if memory runs out."""
        return self._halving.map(function, blocks)

    def tile_columns(self, length: int) -> int:
        return max(1, self.block_entries // length)


def _block_entries(device: Any) -> int:
    """Return the entries of a block, a power of two that depends only on the type and the memory of the device."""
    if device.type == "cpu":
        return _CPU_ENTRIES
    memory = torch.cuda.get_device_properties(device).total_memory
    return int(min(_CUDA_ENTRIES, 2 ** ((memory // _BYTES_PER_ENTRY).bit_length() - 1)))


def _tf32_allowed() -> bool:
    """Whether torch may round the inputs of float32 products on a GPU to TF32, which has three digits."""
    flags: Any = torch.backends.cuda.matmul
    if hasattr(flags, "fp32_precision"):  # since torch 2.9
        return bool(flags.fp32_precision == "tf32")
    return bool(flags.allow_tf32)
