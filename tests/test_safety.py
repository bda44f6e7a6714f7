"""Finite results or an error that names the argument, whatever the data; `benchmarks.safety` looks further."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from benchmarks.safety import (
    ESTIMATORS,
    Case,
    draw,
    look,
    promised_alike,
    promised_to_fall,
    rise,
    rounding,
    scaled_alike,
)
from scipy.sparse import csr_array

from gwntf import GWNTF, NCP, NMF, SWIFT, InputError, KNNGraph
from gwntf.data import DataTensor, sources
from gwntf.geometry import resolve_costs
from tests.backends import needs_torch

X = np.random.default_rng(0).random((12, 5, 4))


def covering(pool=1500, seed=3):
    """A few combinations in which every level meets every estimator and every engine, as far as the pool has them."""
    cases, met, chosen = list(draw(pool, seed)), set(), []
    pairs = [
        {
            (getattr(case, who), part.name, str(getattr(case, part.name)))
            for who in ("estimator", "engine")
            for part in fields(Case)
        }
        for case in cases
    ]
    while True:
        best = max(range(pool), key=lambda place: len(pairs[place] - met))
        if not pairs[best] - met:
            return chosen
        met |= pairs[best]
        chosen.append(cases[best])


CASES = covering()
SOME = list(draw(40, seed=8))


def name(case):
    parts = (f"{p.name}={getattr(case, p.name)}" for p in fields(Case) if getattr(case, p.name) != p.default)
    return ",".join(parts) or "default"


@needs_torch
@pytest.mark.parametrize("case", CASES, ids=name)
def test_results_are_finite_or_the_data_are_refused_by_name(case):
    found = look(case)
    assert found.end in ("finite", "refused"), found.why


@needs_torch
@pytest.mark.parametrize("case", [case for case in SOME if promised_to_fall(case)], ids=name)
def test_the_objective_never_rises(case):
    case = replace(case, scale=1.0, dtype="float64")
    assert rise(case) <= rounding(case)


@needs_torch
@pytest.mark.parametrize("case", [case for case in SOME if promised_alike(case)], ids=name)
def test_scaled_data_give_the_same_bits_where_samples_are_normalised(case):
    assert scaled_alike(case, 60)


@pytest.mark.parametrize("kind", ESTIMATORS.values(), ids=ESTIMATORS)
def test_any_scale_gives_the_same_answer_where_samples_are_normalised(kind):
    models = [kind(3, sample_norm="l1", tol=0, max_iter=5, random_state=0).fit(X * s) for s in (1, 1e-290, 1e290)]
    for other in models[1:]:
        np.testing.assert_allclose(other.objective_curve_, models[0].objective_curve_, rtol=1e-7)
        np.testing.assert_allclose(other.factors_[0], models[0].factors_[0], rtol=1e-6, atol=1e-12)


REFUSED = [
    (
        NMF(2, dtype="float32"),
        X * 1e40,
        "X: got numbers up to .*e\\+39; expected at most 3.4e\\+38 for float32",
    ),
    (
        NMF(2, dtype="float32"),
        X * 1e-42,
        "X: got a sample whose largest entry is .*e-43; .* or dtype='float64'",
    ),
    (NMF(2), X.astype(np.float32) * np.float32(1e-42), "a sample whose largest entry is"),
    (SWIFT(2, dtype="float32"), X * 1e-300, "X: got no entry larger than .*e-301"),
    (NMF(2), X * 1e-320, "a sample whose largest entry is .* or other units"),
    (NCP(2, sample_norm=None), X * 1e-200, "X: got no entry larger than .*, without sample_norm"),
    (NCP(2, sample_norm=None), X * 1e200, "X: got entries whose sum is .*, without sample_norm"),
    (
        GWNTF(2, sample_norm=None),
        X * 1e200,
        "X: got entries whose sum is .*; expected a sum of at most 1e\\+154",
    ),
    (NMF(2, dtype="float32"), csr_array(X.reshape(12, -1) * 1e40), "X: got numbers up to"),
    (NMF(2, dtype="float32"), csr_array(X.reshape(12, -1) * 1e-42), "a sample whose largest entry is"),
]


@pytest.mark.parametrize(("model", "data", "message"), REFUSED, ids=range(len(REFUSED)))
def test_data_beyond_the_number_type_are_refused_with_what_to_change(model, data, message):
    with pytest.raises(InputError, match=message):
        model.fit(data)


@pytest.mark.parametrize(("scale", "message"), [(1e40, "numbers up to"), (1e-42, "a sample whose largest")])
def test_data_read_in_blocks_are_held_to_the_same_range(scale, message, tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "BLOCK_BYTES", X[:5].nbytes)
    monkeypatch.setattr(sources, "MAX_IN_MEMORY_BYTES", 0)
    far = X.copy()
    far[-1] *= scale
    np.save(tmp_path / "x.npy", far)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    with pytest.raises(InputError, match=message):
        NMF(2, dtype="float32").fit(mapped)
    NMF(2, max_iter=2, tol=0).fit(mapped)


def test_new_samples_beyond_the_number_type_are_refused():
    model = NMF(2, sample_norm=None, max_iter=5, tol=0).fit(X)
    with pytest.raises(InputError, match="X: got entries whose sum is"):
        model.transform(X * 1e200)
    with pytest.raises(InputError, match="X: got numbers up to"):
        model.set_params(dtype="float32").transform(X * 1e40)
    assert not model.transform(np.zeros_like(X[:2])).any()


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e200, 1e300])
def test_cosines_do_not_depend_on_the_length_of_the_rows(scale):
    lengths = np.logspace(-4, 4, 12).reshape(-1, 1, 1)
    cost, far = (
        resolve_costs(("cosine", None, None), DataTensor.of_array(data))[0] for data in (X, X * lengths * scale)
    )
    np.testing.assert_allclose(far, cost, atol=1e-12)
    for weight in ("binary", "cosine"):
        graphs = [KNNGraph(3, weight=weight).build(data) for data in (X, X * lengths * scale)]
        np.testing.assert_allclose(graphs[1].toarray(), graphs[0].toarray(), rtol=1e-12)
    rows = csr_array(X.reshape(12, -1) * scale)
    np.testing.assert_array_equal(KNNGraph(3).build(rows).toarray(), KNNGraph(3).build(X).toarray())


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.uint64, bool])
def test_other_number_types_are_taken_as_their_values(dtype):
    data = (X * 4).astype(dtype)
    found, wanted = (NCP(2, max_iter=5, tol=0, random_state=0).fit(d) for d in (data, data.astype(np.float64)))
    np.testing.assert_array_equal(found.embedding_, wanted.embedding_)
