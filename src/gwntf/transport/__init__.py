"""Entropic unbalanced optimal transport of all fibers of a mode.

May import `geometry`, `data`, `backends` and `core`, and uses arrays only through the backend. Start with `scaling`
(the loop), then `fibers` (a mode of a tensor, tile by tile) and `terms` (the cost of a plan).
"""

from gwntf.transport.fibers import TransportLimits, transport_mode
from gwntf.transport.scaling import Scaled, scale
from gwntf.transport.terms import plan_terms, positive, ratio_and_kl
