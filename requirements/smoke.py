"""A small program on an installed gwntf, as a stranger would write it; `try_package.py` runs it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import gwntf
from gwntf import NMF, TensorClustering, Unmixer, wasserstein_distance
from gwntf.datasets import load_digits_tensor, load_example_spectra
from gwntf.evaluation import clustering_accuracy
from gwntf.experiments import known_tables

here = Path(gwntf.__file__).resolve()
if Path(sys.prefix).resolve() not in here.parents:
    raise SystemExit(f"gwntf comes from {here}, not from the environment {sys.prefix}")

X, y = load_digits_tensor()
clusterer = TensorClustering(10, random_state=0)
accuracy = clustering_accuracy(y[:300], clusterer.fit_predict(X[:300]))
if not (accuracy > 0.6 and clusterer.predict(X[300:305]).shape == (5,)):
    raise SystemExit(f"clusters of the digits: accuracy {accuracy:.2f}")
if not np.isfinite(NMF(5, max_iter=20, tol=0, random_state=0).fit(X[:50]).objective_):
    raise SystemExit("NMF is not finite")
if abs(wasserstein_distance([1, 0, 0], [0, 0, 1]) - 1) > 1e-9:
    raise SystemExit("the distance between the ends of a grid is not one")
if not {"coil20", "pie_pose27"} <= set(known_tables()) or not (here.parent / "py.typed").exists():
    raise SystemExit("tables of the paper or py.typed are missing from the package")
spectra = load_example_spectra()
found = Unmixer(spectra.references, positions=spectra.ppm).fit().transform(spectra.mixtures)
if not np.abs(found - spectra.shares).mean() < 0.02:
    raise SystemExit("the shares of the example spectra are wrong")
print(f"gwntf {gwntf.__version__}: accuracy {accuracy:.2f}")
