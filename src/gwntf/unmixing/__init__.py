"""Shares of given parts in mixtures whose peaks drift: rules, calibration, the solver, and what its plans say.

May import `geometry`, `data`, `backends` and `core`. Start with `line`, the solver; `rules` has the automatic choices,
`calibration` the displacement of whole samples, `moves` and `intervals` what is computed from a solution.
"""

from gwntf.unmixing.calibration import KINDS, Calibration
from gwntf.unmixing.intervals import share_errors
from gwntf.unmixing.line import LineSolver, Solution
from gwntf.unmixing.moves import FAR, centres_of_mass, mean_displacements, moved_parts
from gwntf.unmixing.result import Unmixing
from gwntf.unmixing.rules import REG, cell_edges, effective_counts, extent, price_of_counts

__all__ = [
    "FAR",
    "KINDS",
    "REG",
    "Calibration",
    "LineSolver",
    "Solution",
    "Unmixing",
    "cell_edges",
    "centres_of_mass",
    "effective_counts",
    "extent",
    "mean_displacements",
    "moved_parts",
    "price_of_counts",
    "share_errors",
]
