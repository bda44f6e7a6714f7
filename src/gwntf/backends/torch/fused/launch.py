"""From a stack of fibers to the launch of a fused transport."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
import triton

from gwntf.backends.forms import DenseForm, ExponentialForm, KernelForm
from gwntf.backends.protocol import StackTask
from gwntf.backends.torch.fused import dense, exponential, long_exponential

_LONGEST, _LONGEST_DENSE = 256, 128
"""Longest fibers that a block holds; longer ones go through it in chunks under an exponential kernel."""

_THREADS = 128
_BITS, _WIDE_BITS = 4, 3
_PROGRAMS = 1024
_SCRATCH = 2**29
"""Bytes of scratch memory for long fibers, unless a single program needs more."""


def fused_transport(form: KernelForm, length: int, *, exact: bool, alone: bool) -> FusedTransport | None:
    """Return the fused transport for a kernel, or None where there is none: other forms, long dense ones, float64."""
    if isinstance(form, ExponentialForm):
        fits = form.scale.dtype == "float32"
    else:
        fits = isinstance(form, DenseForm) and length <= _LONGEST_DENSE and form.matrix.dtype == torch.float32
    return FusedTransport(form, exact, alone) if fits else None  # type: ignore[arg-type]


def needs_no_help(form: KernelForm, length: int) -> bool:
    """Whether a transport under this kernel can go on without the host.

    The fused one solves fibers that float32 does not hold by itself; so does `transport.scaling` with a long matrix.
    """
    if isinstance(form, ExponentialForm):
        return bool(form.scale.dtype == "float32")
    return isinstance(form, DenseForm) and length > _LONGEST_DENSE


class FusedTransport:
    """A `StackTransport` of float32 fibers that lie on one device.

    Nothing that it does waits for the device. Under an exponential kernel whose entries float32 holds, columns that it
    does not hold are solved again in float64 at once.

    Parameters
    ----------
    form : ExponentialForm or DenseForm
        The kernel.
    exact : bool
        Whether powers and products keep all digits of float32; otherwise about three are lost on the way.
    alone : bool
        Whether nobody will look at the fibers that were not held: their terms are then not numbers.
    """

    def __init__(self, form: ExponentialForm | DenseForm, exact: bool, alone: bool) -> None:
        self._form, self._exact, self._alone = form, exact, alone

    def __call__(self, stacks: tuple[Any, ...], task: StackTask) -> tuple[Any, Any]:
        """Transport every fiber: see `backends.protocol`."""
        data, model, log_u, marginal = stacks
        before, length, after = data.shape
        columns = before * after
        terms = torch.empty((3, columns), dtype=torch.float64, device=data.device)
        sound = torch.empty(columns, dtype=torch.bool, device=data.device)
        arrays = (data.contiguous(), model.contiguous(), log_u, marginal, terms, sound, columns, after)
        if isinstance(self._form, DenseForm):
            self._dense(self._form, arrays, task, length)
        elif length <= _LONGEST:
            self._exponential(self._form, arrays, task, length)
        else:
            self._long(self._form, arrays, task, length)
        if self._alone:
            return torch.where(sound, terms, math.nan), None
        return terms, sound

    def _dense(self, form: DenseForm, arrays: tuple[Any, ...], task: StackTask, length: int) -> None:
        block = 64 if length <= 32 else 32
        dense.transport[_grid(arrays, block)](
            *arrays, form.matrix, form.transposed, *_numbers(task, length), **_switches(task), SIZE=length,
            BITS=max(4, (length - 1).bit_length()), BLOCK=block, EXACT=self._exact, NATIVE=arrays[0].is_cuda,
            PRECISION="tf32x3" if self._exact else "tf32", num_warps=_THREADS // 32, num_stages=1,
        )  # fmt: skip

    def _exponential(
        self, form: ExponentialForm, arrays: tuple[Any, ...], task: StackTask, length: int
    ) -> None:
        numbers, switches = _numbers(task, length), {**_switches(task), "SIZE": length}
        own, block, layout = _spread(form, length, _BITS)
        exponential.transport[_grid(arrays, block)](
            *arrays, *own, *numbers, **switches, **layout, EXACT=self._exact, NATIVE=arrays[0].is_cuda
        )
        if not task.whole:  # the numbers of this kernel are not those of the one in float64
            return
        own, block, layout = _spread(form, length, _WIDE_BITS)
        chosen, count = _places(~arrays[5])
        exponential.transport_some[(min(_PROGRAMS, *_grid(arrays, block)),)](
            chosen, count, *arrays, *own, *numbers, **switches, **layout
        )

    def _long(self, form: ExponentialForm, arrays: tuple[Any, ...], task: StackTask, length: int) -> None:
        run = partial(_run_long, form, arrays, task, length)
        run((None, None), wide=False, EXACT=self._exact, NATIVE=arrays[0].is_cuda)
        if task.whole:
            run(_places(~arrays[5]), wide=True, EXACT=True, NATIVE=False)


def _run_long(
    form: ExponentialForm,
    arrays: tuple[Any, ...],
    task: StackTask,
    length: int,
    some: tuple[Any, Any],
    *,
    wide: bool,
    **switches: bool,
) -> None:
    """Launch as many programs as scratch memory allows, for all fibers or some."""
    (ratio, _, scale), block, layout = _spread(form, _LONGEST, _WIDE_BITS if wide else _BITS)
    kind = torch.float64 if wide else torch.float32
    chunks = triton.cdiv(length, layout["PARTS"] << layout["BITS"])
    room = (5 if task.tol > 0 else 4) * chunks * block * layout["PARTS"] * (2 ** layout["BITS"] + 1)
    programs = max(1, min(_PROGRAMS, *_grid(arrays, block), _SCRATCH // (room * kind.itemsize)))
    scratch = torch.empty(programs * room, dtype=kind, device=arrays[0].device)
    long_exponential.transport[(programs,)](
        *some, scratch, room, *arrays, ratio, scale, length, *_numbers(task, length),
        **_switches(task), **layout, **switches, WIDE=wide,
    )  # fmt: skip


def _spread(
    form: ExponentialForm, length: int, bits: int
) -> tuple[tuple[float, float, float], int, dict[str, int]]:
    """Return ratio, leap and scale, the fibers of a block, and how they lie on its threads."""
    parts = max(1, triton.next_power_of_2(length) >> bits)
    block, ratio = max(1, _THREADS // parts), float(form.ratio)
    layout = {"BITS": bits, "PARTS": parts, "BLOCK": block, "num_warps": _THREADS // 32}
    return (ratio, ratio**2**bits, float(form.scale)), block, layout


def _grid(arrays: tuple[Any, ...], block: int) -> tuple[int]:
    return (triton.cdiv(arrays[6], block),)


def _places(flags: Any) -> tuple[Any, Any]:
    """Where the flags are set, in front of a list of their length, and how many: without waiting for the device."""
    order = torch.cumsum(flags, 0, dtype=torch.int32)
    chosen = order.new_zeros(len(flags) + 1)
    places = torch.where(flags, order - 1, len(flags)).long()
    chosen.scatter_(0, places, torch.arange(len(flags), dtype=torch.int32, device=flags.device))
    return chosen, order[-1:]


def _numbers(task: StackTask, length: int) -> tuple[float | int, ...]:
    """Offsets, exponents, weights and limits, in the order in which the kernels take them."""
    phi, psi = task.relaxation.phi, task.relaxation.psi
    offset_u, offset_v = task.offsets
    return (
        offset_u, offset_v, 0.0 if task.whole else 1.0, phi, psi, 1 - phi, 1 - psi,
        math.exp(offset_u * (phi - 1)), math.exp(offset_v * (psi - 1)), math.exp(-offset_v) / length,
        task.share, task.relaxation.reg, task.relaxation.reg_m_data, task.relaxation.reg_m_model,
        task.max_iter, task.tol, task.check_every,
    )  # fmt: skip


def _switches(task: StackTask) -> dict[str, Any]:
    """Return what is decided when compiling."""
    return {
        "WARM": task.warm, "KEEP": task.keep,
        "CHECKS": task.tol > 0, "BALANCED": math.isinf(task.relaxation.reg_m_data),
    }  # fmt: skip
