"""The literal fit of docs/algorithm.md gives what the library gives."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from gwntf import GWNTF, AxisCost, KNNGraph, TransportOptions
from tests.schemes import plain

PAGE = Path(__file__).parents[1] / "docs" / "algorithm.md"


@pytest.fixture(scope="module")
def page():
    code = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[1]
    names: dict = {}
    exec(compile(code, str(PAGE), "exec"), names)  # noqa: S102
    return names | {"lines": len([line for line in code.splitlines() if line.strip()])}


CASES = {
    "order three, every mode": ((12, 5, 4), ("cosine", "grid", "grid"), 3.0),
    "a matrix, without the samples": ((15, 8), (None, "grid2"), 0.5),
    "order four, one mode": ((9, 3, 4, 2), (None, None, "grid", None), 1.0),
}


@pytest.mark.parametrize("engine", ["numpy", "cpu"])
@pytest.mark.parametrize("name", CASES)
def test_page_and_library_agree(name, engine, page, rng):
    shape, costs, mu = CASES[name]
    X = rng.random(shape) + 0.05
    start = [rng.random((size, 3)) + 0.1 for size in shape]
    graph = KNNGraph(3).build(X)
    model = plain(
        GWNTF(
            3,
            costs=costs,
            reg=0.1,
            reg_m=(0.7, 1.3),
            graph=graph,
            graph_reg=mu,
            sample_norm=None,
            init=start,
            max_iter=12,
            tol=0,
            transport=TransportOptions(6, tol=0),
            engine=engine,
        )
    ).fit(X)
    matrices = [cost.to_matrix() if isinstance(cost, AxisCost) else cost for cost in model.costs_]
    factors, curve = page["fit"](X, start, matrices, graph.toarray(), 0.1, 0.7, 1.3, mu, 12, 6)
    np.testing.assert_allclose(model.objective_curve_, curve, rtol=1e-10)
    for found, expected in zip(model.factors_, factors, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_the_page_stays_short(page):
    assert page["lines"] <= 65
