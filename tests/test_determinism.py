"""The same seed gives the same bits: in every run, and with any number of threads on the compiled engine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gwntf import GNCP, GNMF, GWNTF, NCP, NMF, SDNMF, SWIFT, TensorClustering
from gwntf.datasets import load_digits_tensor
from tests.backends import OTHERS

ALL = {kind.__name__: kind for kind in (GWNTF, NMF, GNMF, SDNMF, NCP, GNCP, SWIFT)}

SCRIPT = """
import hashlib, json, sys, warnings
import numpy as np
import gwntf.geometry.neighbors as neighbors
from gwntf import GWNTF, NMF, NCP, SDNMF, KNNGraph, TensorClustering
from gwntf.datasets import load_digits_tensor

digits = load_digits_tensor()[0]

def bits(*arrays):
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()

def used(model, X):
    model.fit(X)
    return bits(*model.factors_, model.objective_curve_, model.transform(X[:40]))

def clustered(clusterer, X):
    clusterer.fit(X)
    return bits(clusterer.labels_, clusterer.model_.embedding_, clusterer.predict(X[:40]))

wide = np.random.default_rng(0).random((700, 900))
holed = np.where(np.random.default_rng(1).random((100, 8, 8)) < 0.1, np.nan, digits[:100])
options = {"max_iter": 2, "tol": 0, "random_state": 0, "engine": "cpu"}
graph = KNNGraph().build(digits[:600] > 8)  # many samples are equally near
few = {"max_iter": 2, "random_state": 0, "engine": "cpu"}
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    found = {
        "few components": used(NMF(30, **options), wide),
        "many components": used(NMF(40, **options), wide),
        "float32": used(NCP(20, dtype="float32", **options), digits),
        "near-far kernel": used(GWNTF(10, costs=("cosine", "grid", "grid"), **options), digits[:1050]),
        "nndsvd": used(SDNMF(10, init="nndsvd", **options), digits[:300]),
        "clusters": clustered(TensorClustering(10, **few), digits[:300]),
        "imputation": bits(GWNTF(5, missing="ignore", **options).fit_impute(holed)),
        "ties of a graph": bits(graph.indices, graph.data),
    }
json.dump(found, sys.stdout)
"""


def bits_with(threads):
    """What a fresh process with so many threads finds."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    path = os.pathsep.join([str(Path(__file__).parents[1] / "src"), os.environ.get("PYTHONPATH", "")])
    extra = dict.fromkeys(names, str(threads)) | {"OMP_WAIT_POLICY": "passive", "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=os.environ | extra, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_no_bit_depends_on_the_number_of_threads_of_the_compiled_engine():
    assert bits_with(1) == bits_with(3)


@pytest.fixture(scope="module")
def digits():
    return load_digits_tensor()[0][:60]


def everything(model, X):
    """All that a model returns for X."""
    holed = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    model.fit(X)
    return [
        *model.factors_,
        model.objective_curve_,
        model.transform(X[:9]),
        model.reconstruct(X[:9]),
        model.set_params(missing="ignore").impute(holed[:9]),
        model.fit_impute(holed),
    ]


@pytest.mark.parametrize("engine", ["numpy", *OTHERS])
@pytest.mark.parametrize("name", ALL)
def test_the_same_seed_gives_the_same_bits_on_every_engine(name, engine, digits):
    first, second = (
        everything(ALL[name](4, max_iter=3, tol=0, random_state=7, engine=engine), digits) for _ in range(2)
    )
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("engine", ["numpy", *OTHERS])
def test_the_same_seed_gives_the_same_clusters_on_every_engine(engine, digits):
    first, second = (TensorClustering(4, max_iter=3, random_state=7, engine=engine).fit(digits) for _ in range(2))
    np.testing.assert_array_equal(first.labels_, second.labels_)
    np.testing.assert_array_equal(first.model_.embedding_, second.model_.embedding_)
    np.testing.assert_array_equal(first.predict(digits[:9]), second.predict(digits[:9]))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("engine", OTHERS)
def test_engines_agree_to_rounding(name, engine, digits):
    options = {"max_iter": 3, "tol": 0, "random_state": 7, "dtype": "float64"}
    wanted, found = (everything(ALL[name](4, engine=e, **options), digits) for e in ("numpy", engine))
    for a, b in zip(wanted, found, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-7, atol=1e-9)
