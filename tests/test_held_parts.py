"""Held parts: components that are given and kept by a fit."""

import numpy as np
import pytest
import sparse
from scipy.optimize import nnls
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from gwntf import GNCP, GNMF, GWNTF, NCP, NMF, SDNMF, SWIFT, KNNGraph, MiniBatchGWNTF, load
from gwntf.core import marginal_weights
from gwntf.data import khatri_rao
from tests.backends import OTHERS

RNG = np.random.default_rng(0)
PARTS = RNG.random((3, 12)) * (RNG.random((3, 12)) < 0.7) + 0.01
X = RNG.random((25, 3)) @ PARTS + 0.05 * RNG.random((25, 12))
FACTORS = [RNG.random((6, 2)) + 0.1, RNG.random((5, 2)) + 0.1]
TENSORS = RNG.random((3, 6, 5))
X3 = RNG.random((20, 6, 5))

MATRIX = {
    "NMF": NMF(),
    "GNMF": GNMF(graph_reg=0.5),
    "SDNMF": SDNMF(cost="grid"),
    "transport": GWNTF(graph_reg=0),
    "KL": GWNTF(costs=[None, None], graph_reg=0),
}
TENSOR = {
    "NCP": NCP(),
    "GNCP": GNCP(),
    "SWIFT": SWIFT(),
    "transport": GWNTF(),
    "with the samples": GWNTF(costs=["grid"] * 3),
    "KL": GWNTF(costs=[None] * 3),
    "batches": MiniBatchGWNTF(max_epochs=3, tol=0),
}


def with_parts(model, n_components, parts, **params):
    own = {"random_state": 0, "max_iter": 200, **params}
    return clone(model).set_params(n_components=n_components, parts=parts, **own)


def unit_rows(parts):
    flat = parts.reshape(len(parts), -1)
    return flat / flat.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("model", MATRIX.values(), ids=MATRIX)
@pytest.mark.parametrize("n_components", [3, 5])
def test_the_first_components_are_the_parts_up_to_scale_and_the_others_are_fitted(model, n_components):
    fitted = with_parts(model, n_components, PARTS).fit(X)
    np.testing.assert_allclose(fitted.components_[:3], unit_rows(PARTS), rtol=1e-13, atol=1e-16)
    if n_components == 3:
        scaled = with_parts(model, n_components, PARTS * [[2.0], [3.0], [1e3]]).fit(X)
        np.testing.assert_allclose(scaled.embedding_, fitted.embedding_, rtol=1e-6, atol=1e-6)
    else:
        start = with_parts(model, 5, PARTS, max_iter=1, tol=0).fit(X)
        assert fitted.objective_ < start.objective_
        assert abs(fitted.components_[3:] - start.components_[3:]).max() > 1e-3


@pytest.mark.parametrize("model", TENSOR.values(), ids=TENSOR)
@pytest.mark.parametrize("given", ["factors", "rank one", "any tensors"])
def test_parts_of_tensors(model, given):
    """A list of factors, the same as an array, or tensors that are not of rank one."""
    stack = khatri_rao(FACTORS).T.reshape(2, 6, 5)
    parts, n_components = {"factors": (FACTORS, 4), "rank one": (stack, 4), "any tensors": (TENSORS, 3)}[given]
    fitted = with_parts(model, n_components, parts).fit(X3)
    wanted = unit_rows(stack if given != "any tensors" else TENSORS)
    np.testing.assert_allclose(fitted.components_[: len(wanted)], wanted, rtol=1e-10, atol=1e-14)
    assert fitted.transform(X3[:3]).shape == (3, n_components)
    assert fitted.inverse_transform(fitted.embedding_).shape == X3.shape
    assert -1 < fitted.score(X3) < 0


@pytest.mark.parametrize("model", [NMF(), NCP()], ids=["matrix", "tensor"])
def test_least_squares_with_all_parts_held_is_nonnegative_least_squares(model):
    data, parts = (X, PARTS) if isinstance(model, NMF) else (X3, TENSORS)
    fitted = with_parts(model, 3, parts, max_iter=2000, tol=1e-10, sample_norm=None).fit(data)
    flat = parts.reshape(3, -1)
    wanted = np.array([nnls(flat.T, x)[0] for x in data.reshape(len(data), -1)]) * flat.sum(axis=1)
    np.testing.assert_allclose(fitted.embedding_, wanted, atol=1e-5 * wanted.max())
    np.testing.assert_allclose(fitted.transform(data), wanted, atol=1e-5 * wanted.max())


def test_kl_with_all_parts_held_is_the_maximum_likelihood_of_poisson_counts():
    """Against many steps of the EM algorithm."""
    fitted = with_parts(MATRIX["KL"], 3, PARTS, max_iter=2000, tol=1e-10, sample_norm=None).fit(X)
    parts, wanted = unit_rows(PARTS), np.ones((len(X), 3))
    for _ in range(20000):
        wanted = wanted * ((X / (wanted @ parts)) @ parts.T)
    np.testing.assert_allclose(fitted.embedding_, wanted, atol=1e-4 * wanted.max())


def test_transport_with_all_parts_held_solves_the_convex_problem():
    """Against a literal loop: one scaling and one update of the samples at a time."""
    model = with_parts(MATRIX["transport"], 3, PARTS, max_iter=3000, tol=1e-10, reg=0.1, sample_norm=None)
    fitted = model.fit(X)
    alpha, beta = marginal_weights(model.reg_m)
    position = np.linspace(0, 1, 12)
    kernel = np.exp(-abs(position[:, None] - position) / model.reg - 1)
    phi, psi = alpha / (alpha + model.reg), beta / (beta + model.reg)
    parts, rows, u = unit_rows(PARTS), np.ones((len(X), 3)), np.ones_like(X)
    for _ in range(20000):
        y = rows @ parts
        v = (y / (u @ kernel)) ** psi
        u = (X / (v @ kernel)) ** phi
        rows = rows * ((v * (u @ kernel) / y) @ parts.T)
    np.testing.assert_allclose(fitted.embedding_, rows, atol=1e-3 * rows.max())


def test_least_squares_with_some_parts_held_equals_alternating_exact_solutions():
    start = [RNG.random((25, 4)), RNG.random((12, 4))]
    fitted = NMF(4, parts=PARTS, init=start, max_iter=5000, tol=1e-10, sample_norm=None).fit(X)
    others = np.hstack([PARTS.T, start[1][:, 3:]])
    for _ in range(3000):
        rows = np.array([nnls(others, x)[0] for x in X])
        free, rest = rows[:, 3], X - rows[:, :3] @ PARTS
        others[:, 3] = np.maximum(rest.T @ free, 0) / (free @ free)
    wanted = 0.5 * np.sum((X - rows @ others.T) ** 2)
    assert fitted.objective_ == pytest.approx(wanted, rel=1e-3)


@pytest.mark.parametrize("name", ["NMF", "transport", "KL"])
def test_objective_never_rises(name):
    model = with_parts(MATRIX[name], 4, PARTS, tol=0, alpha=(0.01, 0.01))
    if name != "NMF":
        model.set_params(costs=[None, "grid" if name == "transport" else None], reg=0.1)
    curve = model.fit(X).objective_curve_
    assert np.diff(curve).max() <= 1e-9 * abs(curve).max()


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("model", [NMF(), GWNTF(), GWNTF(costs=[None] * 3)], ids=["LS", "transport", "KL"])
def test_every_backend_keeps_the_parts(name, model):
    data, parts = (X, PARTS) if isinstance(model, NMF) else (X3, FACTORS)
    rank = 5 if isinstance(model, NMF) else 3
    wanted, found = (
        with_parts(model, rank, parts, max_iter=4, tol=0, engine=engine, dtype="float64").fit(data)
        for engine in ("numpy", name)
    )
    for one, other in zip(found.factors_, wanted.factors_, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9)


def test_sparse_missing_and_penalised_data():
    thin = X3 * (X3 > 0.6)
    for parts in (FACTORS, TENSORS):
        rank = 3 if parts is FACTORS else len(TENSORS)
        fits = [with_parts(NCP(), rank, parts).fit(data) for data in (thin, sparse.COO(thin))]
        np.testing.assert_allclose(fits[0].embedding_, fits[1].embedding_, atol=1e-5)
        assert fits[0].score(thin) == pytest.approx(fits[1].score(sparse.COO(thin)))
    fits = [with_parts(GWNTF(graph_reg=0), 3, FACTORS).fit(data) for data in (thin, sparse.COO(thin))]
    assert fits[0].objective_ == pytest.approx(fits[1].objective_, rel=1e-3)
    holes = np.where(RNG.random(X3.shape) < 0.1, np.nan, X3)
    for model in (NCP(missing="ignore"), GWNTF(missing="ignore", graph_reg=0)):
        for parts in (FACTORS, TENSORS):
            filled = with_parts(model, 3, parts).fit_impute(holes)
            assert np.isfinite(filled).all()
            assert filled.shape == X3.shape


def test_a_saved_model_with_tensors_as_parts_gives_the_same_result(tmp_path):
    model = with_parts(GWNTF(graph=KNNGraph(3)), 3, TENSORS).fit(X3)
    model.save(tmp_path / "model.gwntf")
    found = load(tmp_path / "model.gwntf")
    assert (found.transform(X3) == model.transform(X3)).all()
    assert (found.parts == TENSORS).all()


def test_a_pipeline_and_a_clone_keep_the_parts():
    fitted = make_pipeline(MinMaxScaler(), NMF(3, parts=PARTS)).fit(X)
    np.testing.assert_allclose(fitted[-1].components_, unit_rows(PARTS))
    assert clone(fitted[-1]).parts is not None


def test_references_of_which_none_covers_an_entry():
    """Transport explains it from neighbouring entries; for KL the objective would be infinite."""
    holed = PARTS.copy()
    holed[:, 4] = 0
    assert np.isfinite(with_parts(MATRIX["transport"], 3, holed).fit(X).objective_)
    with pytest.raises(ValueError, match="parts: got a start at which the objective is inf"):
        with_parts(MATRIX["KL"], 3, holed).fit(X)


BAD = [
    (GWNTF(4, parts=TENSORS), "parts: got 3 tensors that are not of rank one, with n_components=4"),
    (GWNTF(2, parts=TENSORS), "parts: got 3 parts; expected at most n_components=2"),
    (GWNTF(3, parts=TENSORS[:, :5]), r"parts: got shape \(3, 5, 5\); expected shape \(n_parts, 6, 5\)"),
    (GWNTF(3, parts=FACTORS[:1]), "parts: got 1 factors; expected a list of 2"),
    (GWNTF(3, parts=FACTORS[::-1]), r"parts\[0\]: got shape \(5, 2\); expected shape \(6, 2\)"),
    (GWNTF(3, parts=-TENSORS), "parts: got negative entries"),
    (GWNTF(3, parts=0 * TENSORS), "parts: got only zeros in part 0"),
    (GWNTF(3, parts=TENSORS * np.nan), "parts: got NaN or infinite entries"),
    (GWNTF(3, parts=TENSORS[0, 0]), r"parts: got shape \(5,\)"),
]


@pytest.mark.parametrize(("model", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_bad_parts(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X3)


def test_tensors_as_parts_of_sparse_samples_with_transport():
    with pytest.raises(ValueError, match="parts: got tensors that are not of rank one, with sparse samples"):
        GWNTF(3, parts=TENSORS).fit(sparse.COO(X3))
