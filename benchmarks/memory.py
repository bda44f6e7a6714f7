"""How much memory a fit takes at its peak, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys

from benchmarks.harness import Claim, Outcome, Timing

SCRIPT = """
import json, time
import numpy as np
from gwntf import GWNTF

def status(name):  # of this process alone; getrusage may count the one that started it
    lines = open("/proc/self/status").read().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(name)).split()[1])

rng = np.random.default_rng(0)
shape = (70_000, 32, 32)
options = dict(costs=(None, "grid", "grid"), graph_reg=0, tol=0, random_state=0)
GWNTF(5, max_iter=1, **options).fit(rng.random((200, 32, 32), dtype=np.float32))
base = status("VmRSS")
X = rng.random(shape, dtype=np.float32)
start = time.perf_counter()
GWNTF(10, max_iter=3, **options).fit(X)
seconds = time.perf_counter() - start
peak = status("VmHWM")
print(json.dumps([(peak - base) / X.nbytes, seconds]))
"""


def memory_of_a_fit() -> Outcome:
    """32 x 32 x 70,000, float32, both image modes transported; the data themselves count."""
    for _ in range(2):  # the first run compiles, which takes memory of its own
        run = subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True)  # noqa: S603
    ratio, seconds = json.loads(run.stdout)
    return Outcome(
        "Memory of a fit: 70,000 samples of 32 x 32 float32 (287 MB), two modes transported, 3 iterations",
        {"fit": Timing(seconds, seconds, seconds)},
        [Claim("peak memory over size of the data, data included", ratio, 3.2, at_least=False)],
        ["Scalings are kept between transports only while they fit into `TransportOptions.max_memory`."],
    )


CASES = (memory_of_a_fit,)
