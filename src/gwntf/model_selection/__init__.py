"""Choosing the rank: how well fits from different starts agree.

May import `estimators`, `evaluation`, `datasets` and everything below. Start with its one file, `stability`.
"""

from gwntf.model_selection.stability import StabilityCurve, stability_curve

__all__ = ["StabilityCurve", "stability_curve"]
