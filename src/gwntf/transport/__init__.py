"""The transport step: entropic unbalanced transport of every fiber of a mode at once.

May import `geometry`, `problem`, `backends` and `core`, and speaks to arrays only through the backend. Start
with `scaling` (the loop), then `fibers` (a mode of a tensor, tile by tile) and `terms` (what it costs).
"""

from gwntf.transport.fibers import ModeTransport, TransportLimits, transport_mode
from gwntf.transport.scaling import Scaled, scale
from gwntf.transport.terms import PlanTerms, kl_columns, plan_terms

__all__ = [
    "ModeTransport",
    "PlanTerms",
    "Scaled",
    "TransportLimits",
    "kl_columns",
    "plan_terms",
    "scale",
    "transport_mode",
]
