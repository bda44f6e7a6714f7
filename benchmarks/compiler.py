"""What the details of the compiled engine are worth: each fails silently, in speed alone, so each is undone here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from functools import partial

import numba
import numpy as np

from benchmarks.harness import Claim, Outcome, Timing, race
from gwntf.backends.cpu.powers import E32, F32, FLAGS, I32, JIT, L32, ROOT32, divide_by_powers, over_power
from gwntf.backends.cpu.products import LOOSE

FIRST_FIT = """
import json, logging, time, warnings
import numpy as np
from gwntf import GWNTF

warnings.simplefilter("ignore")
logging.disable()
X = np.random.default_rng(0).random((40, 16, 16), dtype=np.float32)
start = time.perf_counter()
GWNTF(3, max_iter=2, tol=0, graph_reg=0, random_state=0, costs=(None, "grid", "grid")).fit(X)
first = time.perf_counter() - start
start = time.perf_counter()
GWNTF(3, max_iter=2, tol=0, graph_reg=0, random_state=0, costs=(None, "grid", "grid")).fit(X)
print(json.dumps(first - (time.perf_counter() - start)))
"""


def compiler_details() -> Outcome:
    """Undo one detail of the compiled loops at a time."""
    rng = np.random.default_rng(0)
    x, numerator = rng.random(2**18, np.float32) + 0.01, rng.random(2**18, np.float32)
    out, power, width = np.empty_like(x), np.float32(100 / 101), 128
    ours = numba.njit(**JIT)(divide_by_powers.py_func)
    python_errors = numba.njit(fastmath=FLAGS, error_model="python")(_divide_checked)
    plain_powers = numba.njit(**JIT)(_divide_by_library_powers)
    wide = numba.njit(**JIT)(_divide_wide)
    sliced, indexed = (numba.njit(**LOOSE)(function) for function in (_add_sliced, _add_indexed))
    timings = race(
        {
            "powers": partial(ours, numerator, x, power, out),
            "powers, output over input": partial(ours, numerator, out, power, out),
            "powers of the library": partial(plain_powers, numerator, x, power, out),
            "powers with error_model='python'": partial(python_errors, numerator, x, power, out),
            "powers, NumPy": lambda: numerator / x**power,
            "powers with 64-bit integers": partial(wide, numerator, x, power, out),
            "rows by slices": partial(sliced, x, numerator, width, out),
            "rows by computed indices": partial(indexed, x, numerator, width, out),
        },
        turns=15,
    )

    def times(slow: str, fast: str = "powers") -> float:
        return timings[slow].median / timings[fast].median

    return Outcome(
        "The compiled loops with one detail undone: 262,144 float32 numbers, one thread",
        timings,
        [
            Claim("nanoseconds a power", timings["powers"].median / x.size * 1e9, 1.5, at_least=False),
            Claim("powers, times faster than NumPy", times("powers, NumPy"), 1.5),
            Claim("powers, times faster than the library's", times("powers of the library"), 3),
            Claim("powers, times faster than with Python's errors", times("powers with error_model='python'"), 2),
            Claim("powers, times faster than in place", times("powers, output over input"), 2),
            Claim("powers, times faster than with 64-bit integers", times("powers with 64-bit integers"), 1.2),
            Claim("slices, times faster than indices", times("rows by computed indices", "rows by slices"), 1.2),
        ],
    )


def compile_time() -> Outcome:
    """Time the first fit of a machine and the first one of a later process, beyond what a fit takes."""
    with tempfile.TemporaryDirectory() as folder:
        seconds = [_first_fit(folder) for _ in range(6)]
    cold, cached = seconds[0], sorted(seconds[1:])
    timings = {
        "compiled": Timing(cold, cold, cold),
        "read from disk": Timing(cached[2], cached[0], cached[-1]),
    }
    return Outcome(
        "What the first fit of a process takes longer than the second",
        timings,
        [
            Claim("seconds, where nothing has been compiled yet", cold),
            Claim("seconds, where the result is on disk", cached[2], 1, at_least=False),
            Claim("times quicker from disk", cold / cached[2], 5),
        ],
    )


def _first_fit(folder: str) -> float:
    environment = os.environ | {"NUMBA_CACHE_DIR": folder}
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", FIRST_FIT], env=environment, check=True, capture_output=True, text=True
    )
    return float(json.loads(done.stdout))


def _divide_checked(numerator, x, p, out):  # type: ignore[no-untyped-def]
    short = np.float32(np.floor(p * 65536) / 65536)
    for j in range(x.size):
        out[j] = over_power(numerator[j], x[j], p, short) / (x[j] + numerator[j])


def _divide_by_library_powers(numerator, x, p, out):  # type: ignore[no-untyped-def]
    for j in range(x.size):
        out[j] = numerator[j] / x[j] ** p


@numba.njit(**JIT)
def _polynomial(coefficients, z):  # type: ignore[no-untyped-def]
    total = coefficients[-1]
    for c in coefficients[-2::-1]:
        total = c + z * total
    return total


def _divide_wide(numerator, x, p, out):  # type: ignore[no-untyped-def]
    """`divide_by_powers` with integers as numba makes them: 64 bits wide."""
    short = np.float32(np.floor(p * 65536) / 65536)
    for j in range(x.size):
        bits = F32(x[j]).view(I32)
        k = (bits - ROOT32) >> 23
        z = F32(I32(bits - (k << 23)).view(F32)) - F32(1)
        log = z * _polynomial(L32, z)
        high = -F32(k) * short
        whole = np.floor(high + F32(0.5))
        g = (high - whole) - (F32(k) * (p - short) + log * p)
        r = np.floor(g + F32(0.5))
        n = int(whole + r)
        half = n >> 1
        first = F32(I32((half + 127) << 23).view(F32))
        second = F32(I32((n - half + 127) << 23).view(F32))
        out[j] = ((numerator[j] * _polynomial(E32, g - r)) * first) * second


def _add_sliced(x, y, width, out):  # type: ignore[no-untyped-def]
    """Products of every second pair of rows, and their sum."""
    for i in range(0, x.size // width, 2):
        x0, x1 = x[i * width : (i + 1) * width], x[(i + 1) * width : (i + 2) * width]
        y0, y1 = y[i * width : (i + 1) * width], y[(i + 1) * width : (i + 2) * width]
        z0, z1 = out[i * width : (i + 1) * width], out[(i + 1) * width : (i + 2) * width]
        for t in range(width):
            a, b = x0[t] * y0[t], x1[t] * y1[t]
            z0[t], z1[t] = a, a + b


def _add_indexed(x, y, width, out):  # type: ignore[no-untyped-def]
    """Do the same without slices."""
    for i in range(0, x.size // width, 2):
        for t in range(width):
            a, b = x[i * width + t] * y[i * width + t], x[(i + 1) * width + t] * y[(i + 1) * width + t]
            out[i * width + t], out[(i + 1) * width + t] = a, a + b


CASES = (compiler_details, compile_time)
