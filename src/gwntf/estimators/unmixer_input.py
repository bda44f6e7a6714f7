"""Checks of the references and samples of `Unmixer`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gwntf.backends import to_host
from gwntf.core import DependentPartsWarning, FloatArray, InputError
from gwntf.data import as_real_array
from gwntf.estimators.notices import warn
from gwntf.geometry import AxisCost

_DEPENDENT = 1e-6
"""Relative distance of a part from the span of the others at or below which it is a combination of them."""


def as_matrix(values: Any, name: str) -> FloatArray:
    """Return values as a float64 matrix; sparse ones are made dense, tensors are copied to the host."""
    given = values.toarray() if hasattr(values, "toarray") else to_host(values)
    matrix = as_real_array(given, name)
    if matrix.ndim != 2 or not matrix.size:
        raise InputError(name, f"shape {matrix.shape}", "one row per spectrum: a matrix with at least one entry")
    return np.ascontiguousarray(matrix, np.float64)


def as_parts(references: Any) -> FloatArray:
    """Return the references as columns of sum one."""
    parts = as_matrix(references, "references")
    names = part_names(references, len(parts))
    wrong = np.flatnonzero(~np.isfinite(parts).all(axis=1))
    if wrong.size:
        raise InputError("references", f"NaN or infinite entries in {names[wrong[0]]!r}", "finite nonnegative numbers")
    wrong = np.flatnonzero((parts < 0).any(axis=1))
    if wrong.size:
        given = f"negative entries in {names[wrong[0]]!r}, the lowest {parts[wrong[0]].min():.3g}"
        raise InputError("references", given, "nonnegative numbers: set negative noise to zero")
    wrong = np.flatnonzero(~parts.any(axis=1))
    if wrong.size:
        raise InputError("references", f"only zeros in {names[wrong[0]]!r}", "a positive sum of every reference")
    return np.ascontiguousarray(divided_by_sums(parts).T)


def divided_by_sums(rows: FloatArray) -> FloatArray:
    """Return nonnegative rows divided by their sums, which may be larger than the largest number."""
    scaled = rows / rows.max(axis=1, keepdims=True)
    divided: FloatArray = scaled / scaled.sum(axis=1, keepdims=True)
    return divided


def part_names(references: Any, count: int) -> list[str]:
    """Return the names of the references: the index of a data frame that is not just numbers from zero."""
    index = getattr(references, "index", None)
    if index is not None and not callable(index):
        names = [str(name) for name in index]
        if names != [str(k) for k in range(count)]:
            return names
    return [f"part {k + 1}" for k in range(count)]


def as_axis_cost(costs: Any) -> AxisCost | None:
    """Return the cost along the axis, or None for "auto"."""
    if isinstance(costs, str):
        return None
    *first, cost = [costs] if isinstance(costs, AxisCost) else list(costs) or [None]
    if first not in ([], [None]) or not isinstance(cost, AxisCost):
        raise InputError("costs", repr(costs), "'auto', an AxisCost, or a pair (None, AxisCost)")
    if cost.power != 1 or cost.period is not None:
        allowed = "an AxisCost of power 1 without a period; for other costs use GWNTF(parts=..., costs=...)"
        raise InputError("costs", repr(cost), allowed)
    return cost


def place_positions(positions: Any, cost: AxisCost | None, references: Any, size: int) -> FloatArray:
    """Return the positions of all places, in the given order."""
    if cost is not None and not cost.named:
        if not isinstance(positions, str):
            raise InputError("positions", "positions beside those of the cost", "'auto' with an AxisCost of positions")
        positions = cost.positions
    found = column_numbers(references) if isinstance(positions, str) else as_real_array(positions, "positions")
    if found is None:
        if cost is not None:
            raise InputError("costs", repr(cost), "references whose column names are numbers")
        return np.arange(size, dtype=np.float64)
    if found.shape != (size,):
        raise InputError("positions", f"shape {found.shape}", f"{size} positions, one per place of the references")
    return found.astype(np.float64)


def column_numbers(values: Any) -> FloatArray | None:
    """Return the column names of a data frame as numbers, or None if they are not."""
    columns = getattr(values, "columns", None)
    if columns is None:
        return None
    try:
        return np.array([float(name) for name in columns])
    except (TypeError, ValueError):
        return None


def increasing(positions: FloatArray) -> FloatArray:
    """Check positions, which must increase."""
    if not np.isfinite(positions).all():
        raise InputError("positions", "NaN or infinite positions", "finite numbers")
    wrong = np.flatnonzero(np.diff(positions) <= 0)
    if wrong.size:
        given = f"{positions[wrong[0]]:g} next to {positions[wrong[0] + 1]:g}"
        allowed = "positions that only increase or only decrease: sort the places, and add up those at one position"
        raise InputError("positions", given, allowed)
    return np.ascontiguousarray(positions)


def as_signal(signal: Any, count: int) -> FloatArray:
    """Check the signals of the parts."""
    found = as_real_array(signal, "signal").astype(np.float64)
    if found.shape != (count,) or not np.isfinite(found).all() or found.min() <= 0:
        raise InputError("signal", f"{found.tolist()}", f"{count} positive numbers, one per reference")
    return found


def as_level(level: Any) -> float:
    """Check a confidence level."""
    if isinstance(level, bool) or not isinstance(level, int | float | np.floating) or not 0 < level < 1:
        raise InputError("level", repr(level), "a number between 0 and 1")
    return float(level)


def from_columns(positions: Any, cost: AxisCost | None, references: Any) -> bool:
    """Whether the positions are the column names of the references."""
    given = not isinstance(positions, str) or (cost is not None and not cost.named)
    return not given and column_numbers(references) is not None


def check_same_columns(X: Any, positions: FloatArray | None) -> None:
    """Check that the column names of X, if they are numbers, are those of the references."""
    own = column_numbers(X)
    if own is None or positions is None or np.array_equal(own, positions):
        return
    place = int(np.flatnonzero(own != positions)[0])
    given = f"the position {own[place]:g} in column {place}"
    raise InputError("X", given, f"{positions[place]:g}, as in the references: interpolate to the same positions")


def check_reach(reach: float, kind: str, length: float) -> None:
    """Check the largest displacement of the calibration."""
    most = length / 2 if kind == "shift" else 0.5
    if reach > most:
        meaning = "half the length of the axis" if kind == "shift" else "a stretch by half"
        raise InputError("reach", f"{reach:g}", f"at most {most:g}, {meaning}")


def warn_of_gaps(gaps: FloatArray, tol: float) -> None:
    """Warn of samples that are not known to be as near to the minimum as `tol` requests."""
    far = ~(gaps <= tol)
    if far.any():
        warn(
            f"{int(far.sum())} of {gaps.size} samples did not converge to the relative gap tol={tol:g}; the largest "
            f"gap is {gaps[far].max():.2g}. Lower `reg_m`, or raise `drift` or `tol`.",
            ConvergenceWarning,
        )


def warn_of_dependent(parts: FloatArray, names: Sequence[str]) -> None:
    """Warn of parts that are combinations of the others: their shares are not determined."""
    unit = parts / np.linalg.norm(parts, axis=0)
    dependent = []
    for k in range(parts.shape[1]):
        others = np.delete(unit, k, axis=1)
        nearest = others @ np.linalg.lstsq(others, unit[:, k], rcond=None)[0] if others.shape[1] else 0 * unit[:, k]
        if np.linalg.norm(unit[:, k] - nearest) <= _DEPENDENT:
            dependent.append(names[k])
    if dependent:
        warn(
            f"References are linearly dependent, so their shares are not unique: {', '.join(map(repr, dependent))}. "
            "Leave one of them out.",
            DependentPartsWarning,
        )
