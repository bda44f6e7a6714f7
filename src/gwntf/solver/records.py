"""What the solver puts into files."""

from typing import Any

import numpy as np

from gwntf.core import InputError, Status
from gwntf.io import Record, Records
from gwntf.losses import ObjectiveTerms, PlanTerms
from gwntf.solver.result import Result

_WORDS = 624
"""Of the state of the Mersenne Twister."""


def _random_state(key: Any, pos: int, has_gauss: int, gauss: float) -> np.random.RandomState:
    if key.shape != (_WORDS,) or key.dtype != np.uint32 or not 0 <= pos <= _WORDS or has_gauss not in (0, 1):
        raise ValueError("invalid RandomState")
    found = np.random.RandomState()
    found.set_state(("MT19937", key, pos, has_gauss, float(gauss)))
    return found


def _taken(rng: np.random.RandomState) -> dict[str, Any]:
    state: Any = rng.get_state(legacy=False)
    if state["bit_generator"] != "MT19937":
        given = f"a RandomState over {state['bit_generator']}"
        raise InputError("random_state", given, "an int, None, or a RandomState over MT19937")
    return {**state["state"], "has_gauss": state["has_gauss"], "gauss": state["gauss"]}


def _terms(modes: tuple[PlanTerms | None, ...], misfit: float, graph: float) -> ObjectiveTerms:
    if not all(mode is None or isinstance(mode, PlanTerms) for mode in modes):
        raise ValueError("invalid ObjectiveTerms")
    return ObjectiveTerms(tuple(modes), float(misfit), float(graph))


def _plan_terms(transport: float, data: float, model: float) -> PlanTerms:
    return PlanTerms(float(transport), float(data), float(model))


RECORDS: Records = {
    "ObjectiveTerms": Record(ObjectiveTerms, lambda terms: dict(vars(terms)), _terms),
    "PlanTerms": Record(PlanTerms, lambda terms: dict(vars(terms)), _plan_terms),
    "RandomState": Record(np.random.RandomState, _taken, _random_state),
    "Result": Record(Result, lambda result: dict(vars(result)), Result),
    "Status": Record(Status, lambda status: {"value": status.value}, Status),
}
"""By their names in files."""
