"""The factor step: what to do with the factors once the transports are known.

May import `geometry`, `problem`, `engines` and `core`, and speaks to arrays only through the engine. Start
with `kl` (the KL-CP problem that the transports leave) and `graph_term` (the penalty on the samples).
"""

from gwntf.updates.graph_term import RULES, SampleRule, penalty
from gwntf.updates.kl import numerators, printed_factor, ratio_to_model, step

__all__ = ["RULES", "SampleRule", "numerators", "penalty", "printed_factor", "ratio_to_model", "step"]
