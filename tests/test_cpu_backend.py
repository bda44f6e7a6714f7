"""What is special to the compiled backend: powers to a few ulp, tiles, threads, compilation."""

from __future__ import annotations

import gc
import shutil
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from gwntf import GNCP, GNMF, NCP, NMF, SDNMF
from gwntf.backends import get_backend
from gwntf.backends import registry as registry_module
from gwntf.backends.cpu import sources
from gwntf.backends.cpu.powers import JIT, divide_by_powers, exp2_of, log2_of
from gwntf.backends.cpu.products import T, tile_width
from gwntf.backends.cpu.threads import Threads
from gwntf.core import MissingLibraryError, Relaxation
from gwntf.geometry import build_kernel, grid_cost
from tests.backends import REFERENCE, transport

CPU = get_backend("cpu")


@numba.njit(**JIT)
def logs(x, out):
    for j in range(x.size):
        out[j] = log2_of(x[j])


@numba.njit(**JIT)
def exps(x, out):
    for j in range(x.size):
        out[j] = exp2_of(x[j])


def whole_range(dtype):
    """Numbers spread over the whole positive range, the smallest and the largest among them."""
    info = np.finfo(dtype)
    low = -149 if dtype == np.float32 else -1074
    exponents = np.random.default_rng(0).uniform(low, info.maxexp, 100_000)
    numbers = np.exp2(exponents.astype(np.longdouble)).astype(dtype)
    edges = [info.smallest_subnormal, info.smallest_normal, info.max, 1, 1 + info.eps, 1 - info.epsneg]
    return np.concatenate([numbers[numbers > 0], np.array(edges, dtype)])


def ulps(found, exact):
    return np.abs(found - exact) / np.spacing(np.abs(exact).astype(found.dtype)).astype(np.longdouble)


@pytest.mark.parametrize("power", [0.0, 0.3, 0.5, 100 / 101, 0.99999, 1.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers_are_right_to_a_few_ulp_everywhere(dtype, power):
    x = whole_range(dtype)
    p = dtype(power)
    out = np.empty_like(x)
    divide_by_powers(np.ones_like(x), x, p, out)
    with np.errstate(over="ignore"):
        exact = 1 / x.astype(np.longdouble) ** np.longdouble(p)
    normal = (exact < np.finfo(dtype).max) & (exact > np.finfo(dtype).smallest_normal)
    assert ulps(out[normal], exact[normal]).max() < 4
    assert np.isinf(out[exact > 2 * np.longdouble(np.finfo(dtype).max)]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers_of_zero_and_of_huge_numerators(dtype):
    x = np.array([0.0, 1e30, 1e-30], dtype)
    out = np.empty_like(x)
    divide_by_powers(np.array([1.0, 1e30, 1e-30], dtype), x, dtype(0.99), out)
    np.testing.assert_allclose(out, [0, 1e30**0.01, 1e-30**0.01], rtol=1e-5)
    divide_by_powers(np.ones(3, dtype), np.array([np.inf, 1, 0], dtype), dtype(0.99), out)
    np.testing.assert_array_equal(out, [np.nan, 1, 0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logarithms_and_exponentials(dtype):
    x = whole_range(dtype)
    out = np.empty_like(x)
    logs(x, out)
    exact = np.log2(x.astype(np.longdouble))
    away = np.abs(exact) > 0.5
    assert ulps(out[away], exact[away]).max() < 4
    assert np.abs(out - exact).max() < 100 * np.finfo(dtype).eps * np.abs(exact).max()
    info = np.finfo(dtype)
    y = np.random.default_rng(0).uniform(info.minexp, info.maxexp - 1, 100_000).astype(dtype)
    out = np.empty_like(y)
    exps(y, out)
    assert ulps(out, np.exp2(y.astype(np.longdouble))).max() < 4
    edges = np.array([-np.inf, -1e6, 1e6, np.inf, 0], dtype)
    out = np.empty_like(edges)
    exps(edges, out)
    np.testing.assert_array_equal(out, [0, 0, np.inf, np.inf, 1])


@pytest.mark.parametrize("kind", [NMF, GNMF, SDNMF, NCP, GNCP])
@pytest.mark.parametrize(("dtype", "close"), [("float32", 1e-4), ("float64", 1e-9)])
def test_fits_of_the_compiled_engine_equal_the_reference(kind, dtype, close, rng):
    X = rng.random((37, 22, 25)) * (rng.random((37, 22, 25)) < 0.8)
    fits = [
        kind(6, max_iter=4 if kind is SDNMF else 15, tol=0, random_state=0, dtype=dtype, engine=engine).fit(X)
        for engine in ("cpu", "numpy")
    ]
    for found, wanted in zip(*(model.factors_ for model in fits), strict=True):
        assert np.linalg.norm(found - wanted) <= close * np.linalg.norm(wanted)
    np.testing.assert_allclose(fits[0].objective_curve_, fits[1].objective_curve_, rtol=close)


def test_threads_do_not_change_a_bit(rng):
    x, y = rng.random((16, 1000)), rng.random((16, 1000))
    results = []
    for threads in (1, 2):
        numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
        found = transport(CPU, grid_cost(16), x, y, Relaxation(0.05, 1, 1), max_iter=30, tol=1e-6, dtype=float)
        results.append(found[0])
    np.testing.assert_array_equal(*results)


def test_without_numba_the_backend_says_what_to_install(monkeypatch):
    monkeypatch.setattr(registry_module, "find_spec", lambda name: None)
    with pytest.raises(MissingLibraryError, match="pip install numba"):
        get_backend("cpu")


def test_long_grids_are_transported_in_narrow_tiles():
    rng = np.random.default_rng(0)
    x, y = rng.random((1500, 40)), rng.random((1500, 40))
    kernel = build_kernel(grid_cost(1500), 0.05, CPU, np.float64)
    assert tile_width(kernel.form(), 1500, 2 * T) < T
    (found, _), (expected, _) = (
        transport(backend, grid_cost(1500), x, y, Relaxation(0.05, 1, 1), max_iter=6, tol=0, dtype=np.float64)
        for backend in (CPU, REFERENCE)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_threads_obey_every_limit():
    threads = Threads()
    before = numba.get_num_threads()
    with threadpool_limits(1):
        assert threads.count() == 1
    try:
        numba.set_num_threads(1)
        assert threads.count() == 1
    finally:
        numba.set_num_threads(before)
    assert threads.map(lambda item: item * item, [3, 1, 2]) == [9, 1, 4]


def test_errors_in_threads_come_out():
    def broken(item):
        raise RuntimeError(f"item {item}")

    with pytest.raises(RuntimeError, match="item 1"):
        CPU.map(broken, [1, 2])


def test_nobody_waits_for_the_work_of_others():
    """One caller keeps the threads busy; another, who can do its items alone, does."""
    threads, begun, go_on, in_time = Threads(), threading.Event(), threading.Event(), []

    def slow(item):
        begun.set()
        in_time.append(go_on.wait(10))

    with threads.running():
        threads._workers = 2
        pool = ThreadPoolExecutor(1)
        threads._pool = pool
        other = threading.Thread(target=threads.map, args=(slow, [1, 2]))
        other.start()
        assert begun.wait(60)
        assert threads.map(lambda item: -item, [1, 2, 3]) == [-1, -2, -3]
        go_on.set()
        other.join()
        pool.shutdown()
    assert in_time == [True, True]


def test_errors_in_threads_are_let_go():
    """Neither the error nor what its frames hold stays behind."""

    class Large:
        pass

    held = []

    def broken(item):
        large = Large()
        held.append(weakref.ref(large))
        raise RuntimeError(f"item {item}")

    gc.disable()
    try:
        with pytest.raises(RuntimeError, match="item 1"):
            CPU.map(broken, [1, 2])
        assert [ref() for ref in held] == [None] * len(held)
    finally:
        gc.enable()


def test_compiled_copies_know_all_their_sources(tmp_path, monkeypatch):
    """A change in any file of the compiled backend gives another number, and so another copy on disk."""
    folder = tmp_path / "backends" / "cpu"
    shutil.copytree(Path(sources.__file__).parent, folder)
    shutil.copy(Path(sources.__file__).parent.parent / "forms.py", folder.parent / "forms.py")
    monkeypatch.setattr(sources, "__file__", str(folder / "sources.py"))
    first = sources.digest_of_sources()
    assert first == sources.digest_of_sources()
    for name in ("products.py", "../forms.py"):
        with (folder / name).open("a", encoding="utf-8") as file:
            file.write("# changed\n")
        second = sources.digest_of_sources()
        assert second != first
        first = second


def test_auto_is_the_compiled_backend_where_there_is_one(monkeypatch):
    assert get_backend("auto").name == "cpu"
    monkeypatch.setattr(registry_module, "find_spec", lambda name: None)
    assert get_backend("auto").name == "numpy"
