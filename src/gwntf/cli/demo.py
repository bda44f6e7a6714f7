"""`gwntf demo`: all methods on digits, a table and a picture."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from gwntf.cli.reproduce import run_and_print
from gwntf.datasets import load_digits_tensor
from gwntf.experiments import find_table, load_table
from gwntf.io import atomic_path
from gwntf.plots import overview, require_matplotlib

_SHOWN = "GWNTF, tuned"


def demo(folder: Path) -> None:
    """Run the table of the digits, and draw the model of one of its rows to `folder`."""
    require_matplotlib()
    folder.mkdir(parents=True, exist_ok=True)
    table = load_table(find_table("digits"))
    with TemporaryDirectory() as cache:
        run_and_print(table, Path(cache))
    X, y = load_digits_tensor()
    method = next(method for method in table.methods if method.name == _SHOWN)
    model = method.build().set_params(random_state=0).fit(X)
    samples = X[[int(np.flatnonzero(y == digit)[0]) for digit in range(10)]]
    target = folder / "digits.png"
    with atomic_path(target) as path:
        overview(model, samples, title=f"{_SHOWN}: handwritten digits").savefig(path, dpi=110)
    print(f"components, reconstructions and objective: {target}")
