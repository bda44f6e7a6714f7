"""Arguments of the fused kernels, grouped in named tuples, which Triton can pass to kernels and functions."""

from __future__ import annotations

from typing import Any, NamedTuple


class Arrays(NamedTuple):
    """Contiguous stacks (before, length, after) and results for their columns, the fibers along the middle axis.

    `log_u` and `marginal` are written for accurate columns only; `terms` are (3, columns) in float64.
    """

    data: Any
    model: Any
    log_u: Any
    marginal: Any
    terms: Any
    accurate: Any
    columns: int
    after: int


class Side(NamedTuple):
    """One scaling equation: U = x^power / (K V)^power, or V = y^power / (K' U)^power.

    U and V are stored as exp(-offset) times themselves, so that x^power is multiplied by factor = exp(-offset rest);
    `rest` is 1 - power.
    """

    power: float
    rest: float
    factor: float
    offset: float


class Numbers(NamedTuple):
    """Scalars of a launch.

    `data` and `model` are the equations of U and V; `units` is 1 where entries of the kernel may have underflowed, else
    0 (see `transport.domains`); `initial_v` is every entry of the first V; the other fields are those of `StackTask`.
    """

    data: Side
    model: Side
    units: float
    initial_v: float
    share: float
    reg: float
    alpha: float
    beta: float
    max_iter: int
    tol: float
    check_every: int


class Config(NamedTuple):
    """Constants of a compiled kernel.

    Attributes
    ----------
    size : int
        Length of the fibers; 0 for long ones, whose length is an argument.
    bits, parts, block : int
        Layout of `block` fibers in registers: see `fibers`.
    warm, keep : bool
        Whether log U is read, and whether it is written.
    checks, balanced : bool
        Whether convergence is tested; whether alpha is infinite.
    exact, wide, native : bool
        Whether powers keep all digits; whether to compute in float64, or with the GPU's approximate instructions.
    precision : str
        Input precision of `tl.dot`.
    """

    size: int
    bits: int
    parts: int
    block: int
    warm: bool
    keep: bool
    checks: bool
    balanced: bool
    exact: bool
    wide: bool
    native: bool
    precision: str


class Location(NamedTuple):
    """Location of fibers in a stack: index of the first entry, stride, which fibers exist, and their size."""

    base: Any
    step: Any
    inside: Any
    size: Any


class Recursion(NamedTuple):
    """Coefficients for K_ij = scale ratio^|i-j|.

    `part_ratio` and `chunk_ratio` are the ratios over a part and a chunk; `from_start` and `from_end`, (1, parts), are
    those over all parts before and after each part. The last three are needed only for long fibers.
    """

    ratio: Any
    scale: Any
    part_ratio: Any
    from_start: Any = None
    from_end: Any = None
    chunk_ratio: Any = None
