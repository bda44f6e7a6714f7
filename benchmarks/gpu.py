"""What a GPU does: ``python -m benchmarks.gpu`` on a machine that has one; ``make bench`` puts it on the page."""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from benchmarks.arrival import Trace, lowest, reached, thinned
from benchmarks.arrival_transport import Arrival, near
from benchmarks.data import RELAXATION, images
from benchmarks.harness import Claim, Curve, Outcome, Timing, save
from gwntf import GWNTF, TensorClustering, TransportOptions, fit_many
from gwntf.backends import StackTask
from gwntf.data import DataTensor
from gwntf.data.dense import DenseBlock
from gwntf.geometry import build_kernel, grid_cost
from gwntf.losses import Plain, transport_loss
from gwntf.solver import Problem, Steps, start_factors
from gwntf.transport import TransportLimits

SCALINGS = 10
SIZES = ((32, 8_000_000), (64, 4_000_000))
LONG = (2048, 125_000)
CHECKED = 4096
DATASETS = {"coil20": "COIL20", "pie_pose27": "PIE_pose27"}
RUNS = 50
ARRIVAL_RANK, ARRIVAL_SECONDS = 20, 60.0


def gpu_transport() -> Outcome:
    """Ten scalings of millions of columns, against the same in eager torch."""
    timings, claims = {}, []
    limits = {32: (12, 8), 64: (12, 6.5)}
    for size, columns in SIZES:
        stacks = _columns(size, columns)
        cost, what = grid_cost(size), f"{size} x {columns // 1_000_000} million"
        x, y = (stack[0, :, :CHECKED].double() for stack in stacks[:2])
        expected = _eager(x, y, _matrix(cost).double())
        run = partial(_eager, stacks[0][0], stacks[1][0], _matrix(cost))
        eager = timings[f"{what}, eager torch"] = _race(run, turns=3)
        for kind, exact in (("exponential", True), ("exponential", False), ("dense", True), ("dense", False)):
            transport = _fused(cost, stacks, kind, exact)
            stacks[3].zero_()
            transport()
            error = float((stacks[3][0, :, :CHECKED].double() - expected).norm() / expected.norm())
            name = f"{what}, {kind}, {'highest' if exact else 'high'}"
            found = timings[name] = _race(transport)
            target = limits[size][0 if exact else 1] if kind == "exponential" else None
            claims += [
                Claim(f"ms, {name}", 1e3 * found.median, target, at_least=False),
                Claim(f"relative error, {name}", error, 1e-6 if exact else 5e-4, at_least=False),
                Claim(f"times faster than eager torch, {name}", eager.median / found.median),
            ]
        del stacks
    return Outcome("Transport of short fibers on a GPU, 10 scalings", timings, claims, _floors())


def gpu_long_grids() -> Outcome:
    """Ten scalings of columns of 2048 ordered places, against dense products in eager torch."""
    size, columns = LONG
    stacks = _columns(size, columns)
    cost, what = grid_cost(size), f"{size} x {columns // 1000} thousand"
    x, y = (stack[0, :, :CHECKED].double() for stack in stacks[:2])
    expected = _eager(x, y, _matrix(cost, wide=True))
    run = partial(_eager, stacks[0][0], stacks[1][0], _matrix(cost))
    eager = _race(run, turns=3)
    transport = _fused(cost, stacks, "exponential", True)
    stacks[3].zero_()
    transport()
    error = float((stacks[3][0, :, :CHECKED].double() - expected).norm() / expected.norm())
    found = _race(transport)
    claims = [
        Claim("ms", 1e3 * found.median),
        Claim("relative error", error, 1e-6, at_least=False),
        Claim("times faster than eager torch", eager.median / found.median, 1),
    ]
    timings = {f"{what}, eager torch": eager, f"{what}, fused": found}
    return Outcome("Transport of long ordered fibers on a GPU, 10 scalings", timings, claims)


def gpu_iteration() -> Outcome:
    """One outer iteration on a million images of 32 x 32, both image modes transported, rank 64."""
    import torch

    from gwntf.backends.torch.backend import TorchBackend

    class Eager(TorchBackend):
        def stack_transport(self, form: Any, length: int, columns: int) -> None:  # noqa: ARG002
            return None

    timings, objective = {}, {}
    for name, backend in (("fused", TorchBackend("cuda")), ("eager torch", Eager("cuda"))):
        generator = torch.Generator("cuda").manual_seed(0)
        X = torch.rand((1_000_000, 32, 32), device="cuda", generator=generator)
        X *= torch.rand(X.shape, device="cuda", generator=generator) > 0.3
        costs = (None, grid_cost(32), grid_cost(32))
        loss = transport_loss(costs, RELAXATION, TransportLimits(SCALINGS, 0.0), warm_limit=2**36)
        problem = Problem(DataTensor.of_block(DenseBlock(X, None, backend)), loss)
        with backend.session(X):
            steps = Steps(problem)
            start = start_factors(problem.data, 64, "random", np.random.RandomState(0))
            at, terms = steps.first([backend.asarray(factor, "float32") for factor in start])
            for _ in range(2):
                at, terms = steps.next(at)
            timings[name] = _race(partial(steps.next, at), turns=3)
            objective[name] = terms.total
        del X, problem, steps, at
        torch.cuda.empty_cache()
    ratio = timings["eager torch"].median / timings["fused"].median
    apart = abs(objective["fused"] / objective["eager torch"] - 1)
    claims = [
        Claim("times faster than eager torch", ratio, 4),
        Claim("relative difference of F after two iterations", apart, 1e-5, at_least=False),
    ]
    return Outcome("An outer iteration on a million images, rank 64, 10 scalings, on a GPU", timings, claims)


def gpu_fits() -> Outcome:
    """Fit the preset for clustering, 50 seeds as one call, without labelling."""
    timings, claims = {}, []
    targets = {"coil20": 0.08, "pie_pose27": 0.2}
    for name, title in DATASETS.items():
        X, y = images(name)
        clusterer = TensorClustering(len(np.unique(y)), engine="torch", device="cuda", random_state=0)
        model = clusterer.factorization()
        model.set_params(graph=model.fit(X).graph_)
        for kind, costs in (("all modes", "auto"), ("images only", (None, "grid", "grid"))):
            ready = model.set_params(costs=costs)
            fit_many(ready, X, [0])
            seconds = []
            for _ in range(3):
                start = time.perf_counter()
                fit_many(ready, X, range(RUNS))
                seconds.append((time.perf_counter() - start) / RUNS)
            found = Timing(statistics.median(seconds), min(seconds), max(seconds))
            timings[f"{title}, {kind}, one of {RUNS} seeds"] = found
            target = targets[name] if kind == "all modes" else None
            claims.append(Claim(f"seconds per run, {title}, {kind}", found.median, target, at_least=False))
    note = "The graph is ready; its choice takes the host some seconds, once for all seeds."
    return Outcome("Fifty fits of the preset for clustering on a GPU", timings, claims, [note])


def gpu_arrival() -> Outcome:
    """Fit a million images until F is within one percent of the best F known, against the scheme of version 0.1."""
    X = _images(1_000_000)
    curves: dict[str, Curve] = {}
    limit, goal = ARRIVAL_SECONDS, -math.inf
    for name, plain in (("this version", None), ("0.1", Plain("mm"))):
        trace = Trace(_until(limit, goal))
        model = GWNTF(
            ARRIVAL_RANK,
            costs=(None, "grid", "grid"),
            graph_reg=0,
            max_iter=10**6,
            tol=0,
            sample_norm=None,
            engine="torch",
            device="cuda",
            random_state=0,
            transport=TransportOptions(max_memory=2**36),
            callbacks=[trace],
        )
        model._plain = plain
        clone(model).set_params(max_iter=2, callbacks=None).fit(X[:4096])  # compiles
        trace.begin()
        model.fit(X)
        curves[name] = trace.points
        goal = near(lowest(trace.points))
        limit = max(limit, 12 * reached(trace.points, goal))
    found = Arrival(curves["this version"], curves["0.1"], float("inf"))
    claims = found.claims("a million images")[:1]
    seconds, earlier = (min(found.seconds()[k], curve[-1][0]) for k, curve in enumerate(curves.values()))
    timings = {"this version": Timing(seconds, seconds, seconds), "0.1": Timing(earlier, earlier, earlier)}
    return Outcome(
        f"GWNTF on a million images of 32 x 32 on a GPU, rank {ARRIVAL_RANK}, to F within 1% of the best F known",
        timings,
        [Claim(claim.what, claim.value, 8, lower_bound=claim.lower_bound) for claim in claims],
        ["From the same random start; the start of this version includes a fit of KL."],
        curves={"GWNTF, a million images, GPU": {name: thinned(curve) for name, curve in curves.items()}},
    )


def _until(seconds: float, goal: float) -> Callable[[float, float], bool]:
    return lambda at, value: at > seconds or value <= goal


def _images(count: int) -> Any:
    """Return mixtures of smooth parts with noise, of mass one, on the device."""
    import torch

    generator = torch.Generator("cuda").manual_seed(0)
    axis = torch.arange(32, device="cuda") / 31
    places, widths = torch.rand((40, 2), device="cuda", generator=generator), 0.05
    bumps = torch.exp(-0.5 * ((axis - places[..., None]) / widths) ** 2)
    parts = (bumps[:, 0, :, None] * bumps[:, 1, None, :]).reshape(40, -1)
    X = torch.rand((count, 40), device="cuda", generator=generator) ** 6 @ parts
    X += 0.02 * X.mean() * torch.rand(X.shape, device="cuda", generator=generator)
    X /= X.sum(dim=1, keepdim=True)
    return X.reshape(count, 32, 32)


CASES = (gpu_transport, gpu_long_grids, gpu_iteration, gpu_fits, gpu_arrival)


def _columns(size: int, count: int) -> tuple[Any, ...]:
    """Random columns, 30% of the data zero, and room for log U and Psi."""
    import torch

    generator = torch.Generator("cuda").manual_seed(0)
    X = torch.rand((1, size, count), device="cuda", generator=generator)
    X *= torch.rand(X.shape, device="cuda", generator=generator) > 0.3
    Y = torch.rand(X.shape, device="cuda", generator=generator)
    return X, Y, torch.zeros_like(X), torch.zeros_like(X)


def _matrix(cost: Any, *, wide: bool = False) -> Any:
    import torch

    kind = torch.float64 if wide else torch.float32
    return torch.tensor(np.exp(-cost / RELAXATION.reg - 1), dtype=kind, device="cuda")


def _eager(x: Any, y: Any, matrix: Any) -> Any:
    """Psi by plain torch operations on whole arrays."""
    phi, psi = RELAXATION.phi, RELAXATION.psi
    x_phi, y_psi, v = x**phi, y**psi, (x * 0 + 1) / len(x)
    for _ in range(SCALINGS):
        u = x_phi / (matrix @ v).clamp_min(1e-30) ** phi
        v = y_psi / (matrix.T @ u).clamp_min(1e-30) ** psi
    u = x_phi / (matrix @ v).clamp_min(1e-30) ** phi
    return v * (matrix.T @ u)


def _fused(cost: Any, stacks: tuple[Any, ...], kind: str, exact: bool) -> Callable[[], Any]:
    from gwntf.backends.torch.backend import TorchBackend
    from gwntf.backends.torch.fused import FusedTransport

    kernel: Any = build_kernel(cost, RELAXATION.reg, TorchBackend("cuda"), "float32")
    form = kernel.form() if kind == "exponential" else kernel.dense_form()
    offsets, all_normal = kernel.offsets, kernel.all_normal
    task = StackTask(RELAXATION, offsets, all_normal, 1.0, False, False, SCALINGS, 0.0, 5)
    transport = FusedTransport(form, exact, False)
    return lambda: transport(stacks, task)


def _race(run: Callable[[], Any], turns: int = 7) -> Timing:
    """Seconds by events of the device, after two turns that are not counted."""
    import torch

    seconds = []
    for turn in range(turns + 2):
        before, behind = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before.record()
        run()
        behind.record()
        torch.cuda.synchronize()
        if turn > 1:
            seconds.append(before.elapsed_time(behind) / 1e3)
    return Timing(statistics.median(seconds), min(seconds), max(seconds))


def _floors() -> list[str]:
    """Say what the chip itself sets for the first size, by its published rates."""
    size, columns = SIZES[0]
    halves, entries = 2 * SCALINGS + 2, size * columns
    special = halves * 3 * entries / (132 * 16 * 1.755e9)
    dense = halves * 2 * size * entries / 60e12
    memory = 4 * 4 * entries / 4.2e12
    return [
        f"Floors for 32 x 8 million on an H200: {1e3 * special:.1f} ms for three special functions an entry and "
        f"half-step (two with TF32: {1e3 * special * 2 / 3:.1f}), {1e3 * dense:.1f} ms for the "
        f"multiply-adds of a dense kernel, of which the exponential one needs a tenth, {1e3 * memory:.1f} ms for "
        "memory. The special functions bind."
    ]


def main() -> None:
    """Run all cases, or those named, and save what they found."""
    from gwntf.backends.torch.arrays import device_name

    for case in CASES:
        name = case.__name__.replace("_", "-")
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        outcome = case()
        save(name, outcome, command=f"python -m benchmarks.gpu {name}", device=device_name("cuda"))
        for claim in outcome.claims:
            target = "" if claim.target is None else f"  (target {claim.target:g}, met: {claim.met})"
            sys.stderr.write(f"{name}: {claim.what}: {claim.value:.3g}{target}\n")


if __name__ == "__main__":
    main()
