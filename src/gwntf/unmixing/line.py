"""The solver: Newton steps in shares and potentials, whose system is block tridiagonal on a line.

See `docs/mathematics.md`, "Unmixing". Samples are solved one by one by the compiled code of `backends.cpu.newton`, on
all threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gwntf.backends import get_backend
from gwntf.core import FloatArray, InputError

_LONGEST = 500.0
"""Largest length of the axis over scale times reg: beyond, exponentials of the potentials could overflow."""

_FLOOR = 1e-9
"""Mass that is spread over every part, so that every place can be explained."""

_MOST = 60
"""Newton steps of a sample; it is solved again from larger values of reg downwards if it needs more than twenty."""


class Details(NamedTuple):
    """What is known of every sample at the solution; see `backends.cpu.newton`."""

    u: FloatArray  # (n, I) array: exp(f / reg)
    v: FloatArray  # (n, I) array: exp(g / reg)
    ku: FloatArray  # (n, I) array: K u
    kv: FloatArray  # (n, I) array: K v
    slopes: FloatArray  # (n, R, I) array: derivatives of f in the shares
    curvature: FloatArray  # (n, R, R) array: Hessian of F in the shares
    gradient: FloatArray  # (n, R) array: derivative of F in the shares


@dataclass(frozen=True, eq=False)
class Solution:
    """Shares of samples of sum one.

    Attributes
    ----------
    shares : (n, R) array
        Masses of the parts; they do not sum to one.
    objective, bound : (n,) arrays
        F at the shares, and a lower bound of its minimum.
    n_iter : (n,) array
        Newton steps.
    parts : (I, R) array
        The parts that were fitted.
    details : Details or None
        Potentials and derivatives.
    """

    shares: FloatArray
    objective: FloatArray
    bound: FloatArray
    n_iter: NDArray[np.int_]
    parts: FloatArray
    details: Details | None

    @property
    def gap(self) -> FloatArray:
        """Return the relative gap between F and its lower bound."""
        gap: FloatArray = (self.objective - self.bound) / np.abs(self.objective)
        return gap


@dataclass(frozen=True, eq=False)
class LineSolver:
    """Unmixing of samples on one axis.

    Attributes
    ----------
    positions : (I,) array
        Strictly increasing.
    scale : float
        Distance with a cost of one.
    reg : float
        Weight of the entropy.
    gap : float
        Relative gap between F and its lower bound at which a sample has arrived.
    """

    positions: FloatArray
    scale: float
    reg: float
    gap: float = 1e-5

    def __post_init__(self) -> None:
        least = self.shortest(self.positions)
        if self.reg * self.scale < least * (1 - 1e-9):
            allowed = f"at least {least:.3g}, a {_LONGEST:.0f}th of the axis, or fewer places"
            raise InputError("drift", f"{self.reg * self.scale:.3g}", allowed)

    @staticmethod
    def shortest(positions: FloatArray) -> float:
        """Return the smallest scale times reg on an axis."""
        return float(positions[-1] - positions[0]) / _LONGEST

    @cached_property
    def _line(self) -> Any:
        from gwntf.backends.cpu import newton

        steps = np.concatenate([[np.inf], np.diff(self.positions) / (self.scale * self.reg)])
        line = newton.Line(steps, *(np.zeros_like(steps) for _ in range(3)))
        newton.fill_line(line)
        return line

    def solve(self, rows: FloatArray, parts: FloatArray, prices: FloatArray, *, details: bool = False) -> Solution:
        """Return the shares of parts, the columns of an (I, R) array of sum one, in rows of sum one."""
        from gwntf.backends.cpu import newton

        (count, size), rank = rows.shape, parts.shape[1]
        raised = np.ascontiguousarray(parts + _FLOOR / size, np.float64)
        masses, shares, found = raised.sum(axis=0), np.empty((count, rank)), np.empty((count, 3))
        kept = count if details else 0
        shapes = ((size,), (size,), (size,), (size,), (rank, size), (rank, rank), (rank,))
        all_details = newton.Details(*(np.empty((kept, *shape)) for shape in shapes))
        backend: Any = get_backend("cpu")
        limits = (_MOST, float(self.gap))

        def solve(part: slice) -> None:
            own = newton.Details(*(array[part] for array in all_details))
            newton.unmix_rows(
                np.ascontiguousarray(rows[part]),
                raised,
                masses,
                self._line,
                self.reg,
                prices[part],
                limits,
                shares[part],
                found[part],
                own,
            )

        backend.run_rows("the Newton steps of unmixing", newton.unmix_rows, solve, count)
        steps = found[:, 0].astype(int)
        return Solution(shares, found[:, 1], found[:, 2], steps, raised, Details(*all_details) if details else None)
