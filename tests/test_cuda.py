"""The torch backend on a GPU, skipped where there is none; ``python tests/test_cuda.py`` runs it without pytest."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.base import clone

from gwntf import GNCP, GWNTF, SDNMF, SWIFT, Checkpoint, DeviceMemoryError, KNNGraph, TensorClustering
from gwntf.backends import get_backend
from gwntf.data import sources
from gwntf.datasets import load_digits_tensor
from gwntf.geometry import Points, build_kernel, near_far_parts, near_pairs

if __name__ == "__main__":
    import torch
else:
    import pytest

    torch = pytest.importorskip("torch", reason="torch is not installed")
    pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")

MODELS = (
    GWNTF(6, graph_reg=10.0),
    GWNTF(6, costs=(None, None, None), missing="ignore"),
    SDNMF(6),
    SWIFT(6, costs=(None, "cosine", "grid")),
    GNCP(6),
)


def digits(missing=False):
    X = load_digits_tensor()[0][:300]
    if missing:
        X[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    return X


def test_whole_fits_equal_the_reference():
    for model in MODELS:
        X = digits(model.missing == "ignore")
        for dtype, rtol in (("float64", 1e-9), ("float32", 2e-4)):
            model.set_params(max_iter=12, tol=0, random_state=0, dtype=dtype)
            expected = model.set_params(engine="numpy", device=None).fit(X)
            arrays = [*expected.factors_, expected.transform(X[:20]), expected.impute(X[:20])]
            curve = expected.objective_curve_
            found = model.set_params(engine="torch", device="cuda").fit(X)
            others = [*found.factors_, found.transform(X[:20]), found.impute(X[:20])]
            for a, b in zip(others, arrays, strict=True):
                assert np.linalg.norm(a - b) <= rtol * np.linalg.norm(b), (model, dtype)
            np.testing.assert_allclose(found.objective_curve_, curve, rtol=rtol)


def test_a_fit_on_a_gpu_resumes_from_its_checkpoint():
    """With steps that are recorded and replayed, and with a data set too large for that."""

    def cut(news):
        if news.iteration == 7:
            raise InterruptedError

    large = np.random.default_rng(0).random((3000, 40, 40)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        kept = Checkpoint(Path(folder) / "run.ckpt", iterations=1)
        for X, model in (
            (digits(), GWNTF(6)),
            (digits(), GNCP(6)),
            (large, SWIFT(4, costs=(None, "grid", "grid"))),
        ):
            model.set_params(max_iter=12, tol=0, random_state=0, engine="torch", device="cuda")
            whole = clone(model).fit(X)
            try:
                clone(model).set_params(callbacks=[kept, cut]).fit(X)
            except InterruptedError:
                found = clone(model).set_params(callbacks=[kept]).fit(X)
            for a, b in zip(found.factors_, whole.factors_, strict=True):
                np.testing.assert_array_equal(a, b)
            np.testing.assert_array_equal(found.objective_curve_, whole.objective_curve_)


@pytest.mark.filterwarnings("ignore::gwntf.core.GraphNotExtendedWarning")
def test_blocks_of_a_file_go_to_the_device_and_the_fit_is_that_of_the_whole():
    before = sources.BLOCK_BYTES, sources.MAX_IN_MEMORY_BYTES
    sources.BLOCK_BYTES, sources.MAX_IN_MEMORY_BYTES = 16 * 64 * 8, 0
    try:
        for model in (GWNTF(6, graph_reg=10.0), GWNTF(6, costs=(None,) * 3), GNCP(6, init="nndsvd")):
            X = digits()
            graph = KNNGraph().build(X)  # like that of a file, it is not extended to new samples
            model.set_params(graph=graph, max_iter=6, tol=0, random_state=0, dtype="float64")
            expected = model.set_params(engine="numpy", device=None).fit(X)
            arrays = [*expected.factors_, expected.transform(X)]
            with tempfile.TemporaryFile() as file:
                given = np.memmap(file, dtype=X.dtype, mode="w+", shape=X.shape)
            given[:] = X
            found = model.set_params(engine="torch", device="cuda").fit(given)
            for a, b in zip([*found.factors_, found.transform(given)], arrays, strict=True):
                assert np.linalg.norm(a - b) <= 1e-9 * np.linalg.norm(b), model
    finally:
        sources.BLOCK_BYTES, sources.MAX_IN_MEMORY_BYTES = before


def test_the_same_seed_gives_the_same_bits():
    X = torch.from_numpy(digits()).cuda()
    for weight in ("binary", "self-tuning"):
        model = GWNTF(8, max_iter=8, tol=0, random_state=3, graph=KNNGraph(weight=weight))
        first = model.fit(X).embedding_.clone()
        assert all(torch.equal(model.fit(X).embedding_, first) for _ in range(3))


def test_tensors_stay_on_the_device():
    X = torch.from_numpy(digits()).cuda()
    model = GWNTF(6, max_iter=3, tol=0, random_state=0).fit(X)
    methods = (model.transform, model.reconstruct, model.impute)
    given_back = (*model.factors_, model.components_, *(method(X[:5]) for method in methods))
    assert all(array.device == X.device for array in given_back)
    assert isinstance(model.transform(X[:5].cpu().numpy()), np.ndarray)
    clusterer = TensorClustering(5, max_iter=3, random_state=0)
    assert isinstance(clusterer.fit_predict(X), np.ndarray)
    assert isinstance(clusterer.predict(X[:5]), np.ndarray)


def test_near_far_kernels_equal_the_reference():
    rows = np.random.default_rng(0).gamma(0.5, size=(300, 20))
    points = Points.of_rows(rows, "cosine")
    cost = near_far_parts(points, near_pairs(points, 10), 8)
    v = np.random.default_rng(1).random((300, 7))
    found, expected = (
        backend.to_numpy(build_kernel(cost, 0.05, backend, np.float64).matmul(backend.asarray(v)))
        for backend in (get_backend("torch", device="cuda"), get_backend("numpy"))
    )
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_products_follow_the_precision_of_torch():
    a = torch.rand(512, 512, device="cuda", generator=torch.Generator("cuda").manual_seed(0))
    exact = (a.double() @ a.double()).float()
    errors, before = {}, torch.get_float32_matmul_precision()
    try:
        for precision in ("highest", "high"):
            torch.set_float32_matmul_precision(precision)
            with get_backend("torch", device="cuda").session(a):
                errors[precision] = float(((a @ a) / exact - 1).abs().max())
    finally:
        torch.set_float32_matmul_precision(before)
    assert errors["highest"] < 1e-5 < errors["high"]


def test_a_fit_in_little_memory_uses_smaller_blocks_and_one_in_too_little_raises():
    X = torch.rand(20_000, 32, 32, device="cuda", generator=torch.Generator("cuda").manual_seed(0))
    model = GWNTF(4, costs=(None, "grid", "grid"), graph_reg=0, max_iter=2, tol=0, random_state=0)
    torch.cuda.reset_peak_memory_stats()
    held = torch.cuda.memory_allocated()
    expected = model.fit(X).embedding_.clone()
    needed, total = torch.cuda.max_memory_allocated() - held, torch.cuda.mem_get_info()[1]
    try:
        for part, enough in ((0.5, True), (0.02, False)):
            torch.cuda.empty_cache()
            room = torch.cuda.memory_allocated() + part * needed
            torch.cuda.set_per_process_memory_fraction(room / total)
            found, told = None, ""
            try:
                found = model.fit(X).embedding_
            except DeviceMemoryError as error:
                told = str(error)
            assert torch.allclose(found, expected, rtol=1e-4) if enough else "(20000, 32, 32)" in told, told
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


if __name__ == "__main__":
    for name, check in list(globals().items()):
        if name.startswith("test_"):
            check()
            sys.stdout.write(f"{name}: passed\n")
