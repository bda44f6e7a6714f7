"""The factor step: what to do with the factors once the target of the model is known.

May import `geometry`, `problem`, `backends` and `core`, and speaks to arrays only through the backend. Start
with `kl`; one file per loss: `kl` (the KL-CP problem that the transports leave) and `frobenius`; `graph_term`
is the penalty on the samples.
"""

from gwntf.updates.frobenius import (
    Pull,
    gram_of,
    least_squares_factor,
    other_grams,
    ratio_parts,
    ratio_step,
    unit_columns,
)
from gwntf.updates.graph_term import RULES, SampleRule, penalty, tie_penalty, tied_root
from gwntf.updates.kl import other_masses, printed_factor, ratio_to_model, simplex_step

__all__ = [
    "RULES",
    "Pull",
    "SampleRule",
    "gram_of",
    "least_squares_factor",
    "other_grams",
    "other_masses",
    "penalty",
    "printed_factor",
    "ratio_parts",
    "ratio_step",
    "ratio_to_model",
    "simplex_step",
    "tie_penalty",
    "tied_root",
    "unit_columns",
]
