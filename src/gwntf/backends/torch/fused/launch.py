"""From a stack of fibers to the launch of a fused transport."""

from __future__ import annotations

import math
from typing import Any

import torch
import triton

from gwntf.backends.forms import DenseForm, ExponentialForm, KernelForm
from gwntf.backends.protocol import StackTask
from gwntf.backends.torch.fused import dense, exponential, long_exponential
from gwntf.backends.torch.fused.arguments import Arrays, Config, Numbers, Recursion, Side

_LONGEST, _LONGEST_DENSE = 256, 128
"""Longest fibers that fit in registers; longer ones are processed in chunks under an exponential kernel."""

_THREADS = 128
_BITS, _WIDE_BITS = 4, 3
_PROGRAMS = 1024
_SCRATCH = 2**29
"""Limit in bytes of scratch memory for long fibers, unless a single program needs more."""


def fused_transport(form: KernelForm | None, length: int, *, exact: bool, recording: bool) -> FusedTransport | None:
    """Return the fused transport for a kernel; None for other forms, for long dense kernels and for float64."""
    if isinstance(form, ExponentialForm):
        fits = form.scale.dtype == "float32"
    else:
        fits = isinstance(form, DenseForm) and length <= _LONGEST_DENSE and form.matrix.dtype == torch.float32
    return FusedTransport(form, exact, recording) if fits else None  # type: ignore[arg-type]


def can_be_recorded(form: KernelForm | None, length: int) -> bool:
    """Whether a transport under this kernel works without host synchronisation.

    The fused one solves inaccurate columns again on the device; so does `transport.scaling` with a long dense kernel.
    """
    if isinstance(form, ExponentialForm):
        return bool(form.scale.dtype == "float32")
    return isinstance(form, DenseForm) and length > _LONGEST_DENSE


class FusedTransport:
    """A `StackTransport` of float32 fibers on one device, without host synchronisation.

    Under an exponential kernel of which float32 represents all entries, inaccurate columns are solved again in float64.

    Parameters
    ----------
    form : ExponentialForm or DenseForm
        The kernel.
    exact : bool
        Whether powers and products keep all digits of float32; otherwise about three are lost.
    recording : bool
        Whether the caller cannot read which columns are inaccurate: the terms of these are then NaN.
    """

    def __init__(self, form: ExponentialForm | DenseForm, exact: bool, recording: bool) -> None:
        self._form, self._exact, self._recording = form, exact, recording

    def __call__(self, stacks: tuple[Any, ...], task: StackTask) -> tuple[Any, Any]:
        """Transport every fiber: see `backends.protocol`."""
        data, model, log_u, marginal = stacks
        before, length, after = data.shape
        columns = before * after
        terms = torch.empty((3, columns), dtype=torch.float64, device=data.device)
        accurate = torch.empty(columns, dtype=torch.bool, device=data.device)
        arrays = Arrays(data.contiguous(), model.contiguous(), log_u, marginal, terms, accurate, columns, after)
        numbers = _numbers(task, length)
        config = Config(
            size=length, bits=0, parts=1, block=1, warm=task.warm, keep=task.keep, checks=task.tol > 0,
            balanced=math.isinf(task.relaxation.reg_m_data), exact=self._exact, wide=False, native=data.is_cuda,
            precision="tf32x3" if self._exact else "tf32",
        )  # fmt: skip
        if isinstance(self._form, DenseForm):
            _launch_dense(self._form, arrays, numbers, config)
        else:
            _launch_exponential(self._form, arrays, numbers, config)
            if task.all_normal:  # otherwise the kernel in float64 has other entries
                config = config._replace(exact=True, wide=True, native=False)
                _launch_exponential(self._form, arrays, numbers, config)
        if self._recording:
            return torch.where(accurate, terms, math.nan), None
        return terms, accurate


def _launch_dense(form: DenseForm, arrays: Arrays, numbers: Numbers, config: Config) -> None:
    block = 64 if config.size <= 32 else 32
    config = config._replace(parts=max(16, triton.next_power_of_2(config.size)), block=block)
    grid = (triton.cdiv(arrays.columns, block),)
    options = {"num_warps": _THREADS // 32, "num_stages": 1}
    if config.native and config.size > 64:  # otherwise ptxas may use 32 registers only and spill
        options["maxnreg"] = 255
    dense.transport[grid](arrays, form.matrix, form.transposed, numbers, config, **options)


def _launch_exponential(form: ExponentialForm, arrays: Arrays, numbers: Numbers, config: Config) -> None:
    """Transport all columns or, in float64 (`config.wide`), the inaccurate ones."""
    indices, count = _true_indices(~arrays.accurate) if config.wide else (None, None)
    ratio, scale, size = float(form.ratio), float(form.scale), config.size
    bits = _WIDE_BITS if config.wide else _BITS
    parts = max(1, triton.next_power_of_2(min(size, _LONGEST)) >> bits)
    block = max(1, _THREADS // parts)
    config = config._replace(bits=bits, parts=parts, block=block, size=size if size <= _LONGEST else 0)
    blocks, options = triton.cdiv(arrays.columns, block), {"num_warps": _THREADS // 32}
    if size <= _LONGEST:
        kernel = Recursion(ratio, scale, ratio**2**bits)
        grid = (min(_PROGRAMS, blocks) if config.wide else blocks,)
        exponential.transport[grid](indices, count, arrays, kernel, numbers, config, **options)
        return
    kind = torch.float64 if config.wide else torch.float32
    room = (5 if config.checks else 4) * triton.cdiv(size, parts << bits) * block * parts * (2**bits + 1)
    grid = (max(1, min(_PROGRAMS, blocks, _SCRATCH // (room * kind.itemsize))),)
    scratch = torch.empty(grid[0] * room, dtype=kind, device=arrays.data.device)
    long_exponential.transport[grid](
        indices, count, scratch, room, arrays, size, ratio, scale, numbers, config, **options
    )


def _true_indices(flags: Any) -> tuple[Any, Any]:
    """Return the indices of the true flags, padded to the number of flags, and their count, both on the device."""
    order = torch.cumsum(flags, 0, dtype=torch.int32)
    indices = order.new_zeros(len(flags) + 1)
    targets = torch.where(flags, order - 1, len(flags)).long()
    indices.scatter_(0, targets, torch.arange(len(flags), dtype=torch.int32, device=flags.device))
    return indices, order[-1:]


def _numbers(task: StackTask, length: int) -> Numbers:
    relaxation = task.relaxation
    data, model = (
        Side(power, 1 - power, math.exp(offset * (power - 1)), offset)
        for power, offset in zip((relaxation.phi, relaxation.psi), task.offsets, strict=True)
    )
    return Numbers(
        data, model, units=0.0 if task.all_normal else 1.0, initial_v=math.exp(-model.offset) / length,
        share=task.share, reg=relaxation.reg, alpha=relaxation.reg_m_data, beta=relaxation.reg_m_model,
        max_iter=task.max_iter, tol=task.tol, check_every=task.check_every,
    )  # fmt: skip
