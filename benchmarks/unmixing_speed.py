"""Speed of unmixing: spectra a second, and seconds for an NMR mixture."""

from __future__ import annotations

import numba
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.harness import Claim, Outcome, Timing, race
from benchmarks.unmixing_data import gamma, gamma_case, mixtures, with_gain
from benchmarks.unmixing_magnetstein import PUBLISHED, VARIABLE, run_magnetstein
from benchmarks.unmixing_methods import kullback_leibler, least_squares, our_method, pot_unmix, problem
from gwntf.core import FloatArray
from gwntf.unmixing import Unmixing

_POT_SPECTRA = 12
_GAIN = 1.06
_ON_ONE = "one thread"
_ON_ALL = "all threads"


def unmixing_speed() -> Outcome:
    """Gamma spectra of 256 channels with five references."""
    case = gamma_case(gamma(), step=2)
    rows = with_gain(case.spectra, _GAIN)
    rows /= rows.sum(axis=1, keepdims=True)
    known = problem(case.positions, case.references)
    plain, calibrated = our_method(known, None), our_method(known, "shift")
    few = rows[:: len(rows) // _POT_SPECTRA][:_POT_SPECTRA]
    all_threads = numba.get_num_threads()

    def limited(rows: FloatArray) -> FloatArray:
        numba.set_num_threads(1)
        try:
            with threadpool_limits(1):
                found: FloatArray = plain.transform(rows)
        finally:
            numba.set_num_threads(all_threads)
        return found

    found: Unmixing = plain.unmix(rows[::20])
    raced = race(
        {
            f"Unmixer, {_ON_ALL}": lambda: plain.transform(rows),
            f"Unmixer, {_ON_ONE}": lambda: limited(rows),
            f"Unmixer, calibration, {_ON_ALL}": lambda: calibrated.transform(rows),
            "nonnegative least squares, SciPy": lambda: least_squares(rows, known.references),
            "KL, EM": lambda: kullback_leibler(rows, known.references),
            "POT, ot.bregman.unmix": lambda: pot_unmix(few, known, plain.scale_),
        },
        turns=5,
    )
    pot = "POT, ot.bregman.unmix"
    timings = {
        f"a spectrum, {name}": _divided(timing, len(few) if name == pot else len(rows))
        for name, timing in raced.items()
    }
    each = {name: timing.median / (len(few) if name == pot else len(rows)) for name, timing in raced.items()}
    return Outcome(
        "Spectra of 256 channels with five references, a spectrum",
        timings,
        [
            Claim(f"spectra a second, {_ON_ALL}", 1 / each[f"Unmixer, {_ON_ALL}"], 3000),
            Claim(f"spectra a second, {_ON_ONE}", 1 / each[f"Unmixer, {_ON_ONE}"]),
            Claim(f"spectra a second with calibration, {_ON_ALL}", 1 / each[f"Unmixer, calibration, {_ON_ALL}"]),
            Claim("times faster than POT's unmix", each[pot] / each[f"Unmixer, {_ON_ALL}"], 10),
            Claim("largest relative gap to the minimum", float(found.gap.max()), 1e-5, at_least=False),
        ],
        [
            f"{len(rows):,} gamma spectra at a gain of {_GAIN}, to a relative gap of 1e-5; {all_threads} threads.",
            "POT with its regularization as low as ours.",
        ],
    )


def _divided(timing: Timing, count: int) -> Timing:
    return Timing(timing.median / count, timing.low / count, timing.high / count)


def unmixing_speed_nmr() -> Outcome:
    """NMR mixtures at full resolution."""
    cases = mixtures()
    models = [our_method(problem(case.ppm, case.references), None) for case in cases]
    raced = race(
        {
            f"Unmixer, experiment {case.experiment}": lambda model=model, case=case: model.transform(case.mixture[None])  # type: ignore[misc]
            for case, model in zip(cases, models, strict=True)
        },
        turns=5,
    )
    ours = [timing.median for timing in raced.values()]
    peer = run_magnetstein()
    notes = ["Fitting the references is not counted for either program; 12,449, 27,129 and 27,129 places."]
    claims = [Claim("seconds a mixture, largest", max(ours), None, at_least=False)]
    if isinstance(peer, str):
        notes.append(f"Magnetstein was not run: {peer}; {PUBLISHED}.")
    else:
        for case, run in zip(cases, peer, strict=True):
            raced[f"Magnetstein, experiment {case.experiment}"] = Timing(run.seconds, run.seconds, run.seconds)
        slowest = float(np.min([run.seconds / mine for run, mine in zip(peer, ours, strict=True)]))
        claims.append(Claim("times faster than Magnetstein, smallest of the mixtures", slowest, 100))
        notes.append(f"Magnetstein {peer[0].version}, solver CBC, default settings, one run each ({VARIABLE}).")
    return Outcome("An NMR mixture at full resolution", raced, claims, notes)


CASES = (unmixing_speed, unmixing_speed_nmr)
