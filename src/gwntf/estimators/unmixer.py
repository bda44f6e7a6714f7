"""Unmixer: shares of known parts in mixtures whose peaks drift."""

from __future__ import annotations

import numbers
import os
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gwntf.backends import get_backend, is_tensor, to_host
from gwntf.core import FloatArray, InputError
from gwntf.estimators.base import check_parameters
from gwntf.estimators.constraints import POSITIVE
from gwntf.estimators.sklearn_compat import Interval, StrOptions, as_frame, unweighted
from gwntf.estimators.tensor import GWNTF
from gwntf.estimators.unmixer_input import (
    as_axis_cost,
    as_level,
    as_matrix,
    as_parts,
    as_signal,
    check_reach,
    check_same_columns,
    divided_by_sums,
    from_columns,
    increasing,
    part_names,
    place_positions,
    warn_of_dependent,
    warn_of_gaps,
)
from gwntf.geometry import AxisCost
from gwntf.io import check_target
from gwntf.unmixing import (
    KINDS,
    REG,
    Calibration,
    LineSolver,
    Unmixing,
    centres_of_mass,
    effective_counts,
    extent,
    mean_displacements,
    moved_parts,
    price_of_counts,
    share_errors,
)

_LEVEL = 0.9


class Unmixer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""Shares of known parts in mixtures whose peaks drift.

    Every sample x is explained by the references h_k with weights :math:`w \ge 0` that minimise the cost of
    transporting the model to the sample along the axis,

    .. math:: F(w) = W(x, \sum_k w_k h_k),

    where W is the entropic, KL-relaxed transport cost of `GWNTF`. The problem is convex and solved by Newton steps to a
    certified gap, about five thousand spectra of 256 channels a second on one core. Mass moves freely over the distance
    `drift`, and at a price in proportion to the distance beyond. The defaults are computed from the data alone
    (`docs/known_parts.md`).

    Parameters
    ----------
    references : array-like or DataFrame of shape (n_parts, n_places)
        One known part per row, nonnegative, in any unit. The index of a data frame names the parts.
    positions : "auto" or array-like of shape (n_places,), default="auto"
        Positions along the axis, for example in ppm, increasing or decreasing. "auto" takes the column names of
        `references` if they are numbers, else 0, 1, 2, ...
    costs : "auto" or AxisCost, default="auto"
        Cost along the axis, with power 1 and no period; a pair (None, cost), as for other classes, is also accepted.
        "auto" scales it to the length of the axis that has 99 percent of the mean reference.
    drift : "auto" or float, default="auto"
        Distance, in units of the axis, by which peaks may move freely; "auto" is 0.008 times the scale of the cost.
    reg_m : "auto" or float, default="auto"
        Price of mass that is created or removed instead of moved, in units of the cost of moving it by the scale.
        "auto" is the root of the counts over 60, between 0.2 and 2, with the counts estimated from the noise.
    calibration : {None, "shift", "stretch"}, default=None
        Form of a displacement of whole samples that is fitted first: all places by the same distance, which is a gain
        on a logarithmic axis, or in proportion to their positions. Use it if an instrument drifts as a whole. It is
        kept for samples that it explains much better.
    reach : float, optional
        Largest shift, in units of the axis, or largest stretch, as a fraction; by default what moves a place by 0.06
        times the scale at most.
    signal : array-like of shape (n_parts,), optional
        Signal of one unit of each part, such as its number of protons, by which shares are divided.
    n_free : int, default=0
        Number of unknown parts, such as a background, that `fit` finds in X.
    negative : {"error", "clip"}, default="error"
        Whether negative entries of X raise an error or are set to zero.
    tol : float, default=1e-5
        Relative distance of the objective from its minimum, bounded by the duality gap.
    random_state : int, RandomState or None, default=None
        Seed of the start of the free parts.

    Attributes
    ----------
    names_ : list of str
        Names of the parts, free parts last.
    references_ : (n_places, R) array
        All parts, in columns of sum one, along increasing positions.
    positions_ : (n_places,) array
        Increasing positions.
    scale_, drift_ : float
        Scale of the cost and distance of free movement.
    n_features_in_ : int
        Number of places.

    Examples
    --------
    Two known spectra whose peaks drift:

    >>> from gwntf import Unmixer
    >>> from gwntf.datasets import make_drifting_spectra
    >>> data = make_drifting_spectra(20, 3, drift="shift", amount=0.01, counts=None, random_state=0)
    >>> unmixer = Unmixer(data.references, positions=data.positions).fit()
    >>> shares = unmixer.transform(data.spectra)
    >>> bool(abs(shares - data.shares).mean() < 0.03)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "references": ["array-like", "sparse matrix"],
        "positions": [StrOptions({"auto"}), "array-like"],
        "costs": [StrOptions({"auto"}), AxisCost, tuple, list],
        "drift": [StrOptions({"auto"}), POSITIVE],
        "reg_m": [StrOptions({"auto"}), POSITIVE],
        "calibration": [StrOptions(set(KINDS)), None],
        "reach": [POSITIVE, None],
        "signal": ["array-like", None],
        "n_free": [Interval(numbers.Integral, 0, None, closed="left")],
        "negative": [StrOptions({"error", "clip"})],
        "tol": [POSITIVE],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        references: Any,
        *,
        positions: Any = "auto",
        costs: Any = "auto",
        drift: str | float = "auto",
        reg_m: str | float = "auto",
        calibration: str | None = None,
        reach: float | None = None,
        signal: Any = None,
        n_free: int = 0,
        negative: str = "error",
        tol: float = 1e-5,
        random_state: Any = None,
    ) -> None:
        self.references = references
        self.positions = positions
        self.costs = costs
        self.drift = drift
        self.reg_m = reg_m
        self.calibration = calibration
        self.reach = reach
        self.signal = signal
        self.n_free = n_free
        self.negative = negative
        self.tol = tol
        self.random_state = random_state

    @unweighted
    def fit(self, X: Any = None, y: Any = None) -> Self:  # noqa: ARG002
        """Check the references, and find the free parts in X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_places), optional
            Mixtures; only needed with ``n_free > 0``.
        y : None
            Ignored.

        Returns
        -------
        self
        """
        check_parameters(self)
        parts = as_parts(self.references)
        cost = as_axis_cost(self.costs)
        positions = place_positions(self.positions, cost, self.references, len(parts))
        self._columns = positions if from_columns(self.positions, cost, self.references) else None
        backwards = bool(positions[0] > positions[-1])
        if backwards:
            positions, parts = positions[::-1], parts[::-1]
        positions = increasing(positions)
        if len(positions) < 3:
            raise InputError("references", f"{len(positions)} place(s)", "at least three places")
        scale = extent(positions, parts) if cost is None else cost.scale
        length = float(positions[-1] - positions[0])
        if cost is None and np.count_nonzero(parts.any(axis=1)) < 2:
            raise InputError("references", "parts that are all at one place", "parts that differ along the axis")
        least = LineSolver.shortest(positions)
        drift = max(REG * scale, least) if isinstance(self.drift, str) else float(self.drift)
        if drift > length:
            raise InputError("drift", f"{drift:g}", f"at most the length of the axis, {length:g}")
        if self.calibration is not None and self.reach is not None:
            check_reach(float(self.reach), self.calibration, length)
        signal = np.ones(parts.shape[1]) if self.signal is None else as_signal(self.signal, parts.shape[1])
        names = part_names(self.references, parts.shape[1])
        warn_of_dependent(parts, names)
        self.n_features_in_, self._backwards = len(positions), backwards
        self.positions_, self.scale_, self.drift_ = positions, scale, drift
        self.references_, self.names_, self._signal = parts, names, signal
        if self.n_free:
            self._find_free_parts(X)
        self._prepare()
        return self

    def _prepare(self) -> None:
        """Build the solver and the calibration from the fitted attributes."""
        self._solver = LineSolver(self.positions_, self.scale_, self.drift_ / self.scale_, self.tol)
        self._calibration = None
        if self.calibration is not None:
            own = (self.calibration, self.positions_, self.references_, self.scale_, self.reach)
            self._calibration = Calibration(*own)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted unmixer to a file that `gwntf.load` reads.

        Parameters
        ----------
        path : path
            File to write, usually with the suffix ".gwntf".
        """
        from gwntf.estimators.files import write_unmixer  # imports this module

        check_is_fitted(self, "positions_")
        check_target(path)
        write_unmixer(self, path)

    def _find_free_parts(self, X: Any) -> None:
        """Fit the free parts, given the references, and append them."""
        if X is None:
            raise InputError("X", "None", f"mixtures in which to find the {self.n_free} free parts")
        rows = self._rows(X)
        price = float(np.median(self._prices(rows)))
        model = GWNTF(
            len(self.names_) + self.n_free,
            parts=self.references_.T,
            costs=(None, AxisCost(self.positions_, self.scale_)),
            reg=self.drift_ / self.scale_,
            reg_m=price,
            graph_reg=0,
            sample_norm=None,
            random_state=self.random_state,
        ).fit(rows)
        self.references_ = np.ascontiguousarray(model.components_.T)
        self.names_ = [*self.names_, *(f"free {k + 1}" for k in range(self.n_free))]
        self._signal = np.concatenate([self._signal, np.ones(self.n_free)])

    # --- samples -------------------------------------------------------------------------------------------------

    def _rows(self, X: Any) -> FloatArray:
        """Return the samples divided by their sums, along increasing positions."""
        check_is_fitted(self, "positions_")
        values = as_matrix(X, "X")
        if values.shape[1] != self.n_features_in_:
            allowed = f"{self.n_features_in_} places, as the references have"
            raise InputError("X", f"{values.shape[1]} places", allowed)
        check_same_columns(X, self._columns)
        if not np.isfinite(values).all():
            raise InputError("X", "NaN or infinite entries", "finite numbers: fill in or cut out missing places")
        below = values < 0
        if self.negative == "clip":
            values = np.where(below, 0.0, values)
        elif below.any():
            given = f"{int(below.sum())} negative entries of {below.size}, the lowest {values.min():.3g}"
            raise InputError("X", given, "nonnegative numbers: subtract the baseline, or set negative='clip'")
        empty = np.flatnonzero(~values.any(axis=1))
        if empty.size:
            raise InputError("X", f"only zeros in sample {empty[0]}", "a positive sum of every sample")
        rows = divided_by_sums(values)
        return np.ascontiguousarray(rows[:, ::-1] if self._backwards else rows)

    def _prices(self, rows: FloatArray) -> FloatArray:
        if isinstance(self.reg_m, str):
            return price_of_counts(effective_counts(rows))
        return np.full(len(rows), float(self.reg_m))

    def _groups(self, rows: FloatArray) -> list[tuple[NDArray[np.intp], FloatArray, float]]:
        """Return samples with the same displacement: their indices, the displaced parts, and the displacement."""
        if self._calibration is None:
            return [(np.arange(len(rows)), self.references_, 0.0)]
        chosen = self._calibration.choose(rows)
        moved, amounts = self._calibration.moved, self._calibration.amounts
        return [(np.flatnonzero(chosen == k), moved[k], float(amounts[k])) for k in np.unique(chosen)]

    def _proportions(self, weights: FloatArray) -> FloatArray:
        amounts = weights / self._signal
        shares: FloatArray = amounts / amounts.sum(axis=1, keepdims=True)
        return shares

    def transform(self, X: Any) -> Any:
        """Return the share of every part in every sample; rows sum to one.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_places)
            Nonnegative mixtures, in any unit.

        Returns
        -------
        array or DataFrame of shape (n_samples, n_parts)
            A data frame if X is one, a tensor on the same device if X is one.
        """
        rows = self._rows(X)
        prices, shares = self._prices(rows), np.empty((len(rows), len(self.names_)))
        gaps = np.empty(len(rows))
        for which, parts, _ in self._groups(rows):
            found = self._solver.solve(rows[which], parts, prices[which])
            shares[which], gaps[which] = self._proportions(found.shares), found.gap
        warn_of_gaps(gaps, self.tol)
        if is_tensor(X):
            backend = get_backend("torch", given=X)
            return backend.as_given(backend.asarray(shares), X)
        return as_frame(shares, X, np.array(self.names_, object), self)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the name of the part with the largest share of every sample."""
        shares = np.asarray(to_host(self.transform(X)))
        return np.array([self.names_[k] for k in shares.argmax(axis=1)], object)

    def unmix(self, X: Any, level: float = _LEVEL) -> Unmixing:
        """Return the shares with their intervals, what was moved, and what is not explained.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_places)
            Nonnegative mixtures, in any unit.
        level : float in (0, 1), default=0.9
            Confidence level of the intervals.

        Examples
        --------
        >>> from gwntf import Unmixer
        >>> from gwntf.datasets import make_drifting_spectra
        >>> data = make_drifting_spectra(3, 2, drift="shift", amount=0.01, counts=5000, random_state=0)
        >>> found = Unmixer(data.references, positions=data.positions).fit().unmix(data.spectra)
        >>> found.shares.shape, bool((found.lower <= found.shares).all())
        ((3, 2), True)
        """
        level = as_level(level)
        rows = self._rows(X)
        prices, (count, size) = self._prices(rows), rows.shape
        rank, quantile = len(self.names_), float(norm.ppf((1 + level) / 2))
        by_part = {name: np.empty((count, rank)) for name in ("shares", "lower", "upper", "displacement")}
        model = np.empty((count, size))
        by_sample = {name: np.empty(count) for name in ("calibration", "gap")}
        all_moved = np.empty((count, rank, size))
        for which, parts, amount in self._groups(rows):
            own = rows[which]
            found = self._solver.solve(own, parts, prices[which], details=True)
            centres, errors = share_errors(self._solver, own, found, self._signal)
            by_part["shares"][which] = self._proportions(found.shares)
            by_part["lower"][which] = np.clip(centres - quantile * errors, 0, by_part["shares"][which])
            by_part["upper"][which] = np.clip(centres + quantile * errors, by_part["shares"][which], 1)
            centre = centres_of_mass(self.positions_, parts) - centres_of_mass(self.positions_, self.references_)
            by_part["displacement"][which] = centre + mean_displacements(self._solver, found)
            all_moved[which] = moved_parts(self._solver, own, found)
            model[which] = found.shares @ self.references_.T
            by_sample["calibration"][which], by_sample["gap"][which] = amount, found.gap
        warn_of_gaps(by_sample["gap"], self.tol)
        missing = np.maximum(rows - all_moved.sum(axis=1), 0.0)
        return Unmixing(
            names=list(self.names_),
            positions=self.positions_,
            level=level,
            unexplained=missing.sum(axis=1),
            goodness=1 - (missing**2).sum(axis=1) / (rows**2).sum(axis=1),
            mixtures=rows,
            model=model / model.sum(axis=1, keepdims=True),
            moved_parts=all_moved,
            missing=missing,
            **by_part,
            **by_sample,
        )

    def interval(self, X: Any, level: float = _LEVEL) -> FloatArray:
        """Return the ends of the intervals of the shares, an array of shape (n_samples, n_parts, 2)."""
        found = self.unmix(X, level)
        return np.stack([found.lower, found.upper], axis=2)

    def displacement(self, X: Any) -> FloatArray:
        """Return the mean distance by which every part has moved in every sample, in units of the axis."""
        return self.unmix(X).displacement

    def unexplained(self, X: Any) -> FloatArray:
        """Return the fraction of every sample that no part explains."""
        return self.unmix(X).unexplained

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:  # noqa: ARG002
        """Return the names of the parts."""
        check_is_fitted(self, "names_")
        return np.array(self.names_, object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        tags.requires_fit = True
        return tags
