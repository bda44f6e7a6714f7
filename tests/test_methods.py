"""The methods of the paper's comparison against literal updates, TensorLy and scikit-learn."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import tensorly as tl
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import non_negative_factorization
from tensorly.decomposition import non_negative_parafac

from gwntf import GNCP, GNMF, GWNTF, NCP, NMF, SDNMF, SWIFT, TransportOptions
from gwntf.data import reconstruct
from gwntf.geometry import SeparableCost
from tests.problems import random_graph
from tests.schemes import plain

METHODS = [NMF, GNMF, SDNMF, NCP, GNCP, GWNTF, SWIFT]
RUN = {"tol": 0, "sample_norm": None}


def unit(factors):
    """Columns of all but the first factor scaled to length one."""
    first, *rest = factors
    norms = [np.linalg.norm(factor, axis=0) for factor in rest]
    return [
        first * np.prod(norms, axis=0),
        *(factor / norm for factor, norm in zip(rest, norms, strict=True)),
    ]


def start(shape, rank, rng, X):
    """Given factors, scaled as the library scales them: columns of all but the first sum to one."""
    factors = [rng.random((size, rank)) + 0.1 for size in shape]
    for factor in factors[1:]:
        factors[0] = factors[0] * factor.sum(axis=0)
    return [factors[0], *(factor / factor.sum(axis=0) for factor in factors[1:])]


def test_nmf_follows_the_classic_updates(rng):
    X = rng.random((8, 6))
    W, H = start((8, 6), 3, rng, X)
    model = plain(NMF(3, init=[W, H], max_iter=7, **RUN)).fit(X)
    for _ in range(7):
        H = H * (X.T @ W) / (H @ W.T @ W)
        W = W * (X @ H) / (W @ H.T @ H)
    for found, expected in zip(model.factors_, unit([W, H]), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10)
    np.testing.assert_allclose(model.objective_, 0.5 * np.linalg.norm(X - W @ H.T) ** 2, rtol=1e-10)


def test_nmf_ends_where_scikit_learn_ends(rng):
    """The same fixed point: after many steps from one start both reach the same error."""
    X = rng.random((12, 4)) @ rng.random((4, 9)) + 0.1 * rng.random((12, 9))
    W, H = start((12, 9), 4, rng, X)
    ours = NMF(4, init=[W, H], max_iter=3000, **RUN).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = non_negative_factorization(
            X, W.copy(), H.T.copy(), n_components=4, init="custom", solver="mu", max_iter=3000, tol=0
        )
    expected = 0.5 * np.linalg.norm(X - theirs[0] @ theirs[1]) ** 2
    np.testing.assert_allclose(ours.objective_, expected, rtol=0.02)


def test_gnmf_follows_its_authors_updates(rng):
    X, graph = rng.random((8, 6)), random_graph(8, rng)
    W, H = start((8, 6), 3, rng, X)
    model = plain(GNMF(3, init=[W, H], graph=graph, graph_reg=0.7, max_iter=7, **RUN)).fit(X)
    degree = graph.sum(axis=1, keepdims=True)
    for _ in range(7):
        H = H * (X.T @ W) / (H @ W.T @ W)
        W = W * (X @ H + 0.7 * graph @ W) / (W @ H.T @ H + 0.7 * degree * W)
    for found, expected in zip(model.factors_, unit([W, H]), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_ncp_follows_the_classic_updates(rng):
    """Literal steps in TensorLy's algebra."""
    X = rng.random((7, 5, 4))
    factors = start(X.shape, 3, rng, X)
    model = plain(NCP(3, init=factors, max_iter=5, **RUN)).fit(X)
    literal = [factor.copy() for factor in factors]
    for _ in range(5):
        for mode in (1, 2, 0):
            others = [factor for n, factor in enumerate(literal) if n != mode]
            product = tl.unfold(X, mode) @ tl.tenalg.khatri_rao(others)
            gram = np.prod([other.T @ other for other in others], axis=0)
            literal[mode] = literal[mode] * product / (literal[mode] @ gram)
    for found, expected in zip(model.factors_, unit(literal), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_ncp_reaches_the_error_of_tensorly(rng):
    X = reconstruct([rng.random((size, 3)) for size in (10, 6, 5)]) + 0.05 * rng.random((10, 6, 5))
    ours = min(NCP(3, max_iter=800, random_state=seed, **RUN).fit(X).reconstruction_err_ for seed in range(3))
    fits = []
    for seed in range(3):
        theirs = non_negative_parafac(tl.tensor(X), 3, n_iter_max=800, tol=0, init="random", random_state=seed)
        fits.append(np.linalg.norm(X - tl.cp_to_tensor(theirs)) / np.linalg.norm(X))
    assert ours < 1.05 * min(fits)


@settings(max_examples=25)
@given(
    shape=st.sampled_from([(7, 5), (6, 4, 3), (5, 3, 2, 3)]),
    graph_reg=st.sampled_from([0.0, 1.0, 1e4]),
    hole=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_least_squares_never_rises(shape, graph_reg, hole, seed):
    rng = np.random.default_rng(seed)
    X = rng.random(shape)
    if hole:
        X[rng.random(shape) < 0.2] = np.nan
        X.reshape(len(X), -1)[:, 0] = 0.5
    model = GNCP(3, graph_reg=graph_reg, max_iter=15, missing="ignore", random_state=seed, **RUN).fit(X)
    assert np.diff(model.objective_curve_).max() <= 1e-12 * model.objective_curve_[0]


def test_least_squares_with_holes_fills_them_in(rng):
    X = reconstruct([rng.random((40, 2)), rng.random((8, 2)), rng.random((7, 2))])
    hidden = rng.random(X.shape) < 0.3
    model = NCP(2, max_iter=2000, missing="ignore", random_state=0, **RUN).fit(np.where(hidden, np.nan, X))
    filled = model.reconstruct(np.where(hidden, np.nan, X))
    assert np.linalg.norm((filled - X)[hidden]) < 0.02 * np.linalg.norm(X[hidden])


def test_sdnmf_is_gwntf_on_pixels_with_a_city_block_cost(rng):
    """One transport per image over all pixels: the same as a matrix GWNTF with the dense cost, samples left out."""
    X = rng.random((12, 3, 4))
    cost = SeparableCost.on_grid((3, 4))
    settings = {"n_components": 3, "graph_reg": 5.0, "max_iter": 6, "tol": 0, "random_state": 0}
    settings["transport"] = TransportOptions(9)
    pixels = SDNMF(**settings).fit(X)
    matrix = GWNTF(**settings, costs=(None, cost.to_matrix())).fit(X.reshape(12, 12))
    np.testing.assert_allclose(pixels.embedding_, matrix.embedding_, rtol=1e-9)
    assert isinstance(pixels.costs_[1], SeparableCost)
    folded = SDNMF(**settings, sample_shape=(3, 4)).fit(X.reshape(12, 12))
    np.testing.assert_array_equal(folded.embedding_, pixels.embedding_)
    given_cost = SDNMF(**settings, cost=cost.to_matrix()).fit(X)
    np.testing.assert_allclose(given_cost.embedding_, pixels.embedding_, rtol=1e-9)


def test_swift_is_gwntf_without_graph_on_counts(rng):
    counts = rng.poisson(2.0, (15, 4, 3))
    settings = {"n_components": 3, "max_iter": 6, "tol": 0, "random_state": 0}
    swift = SWIFT(**settings).fit(counts)
    same = GWNTF(**settings, costs=[None, "cosine", "cosine"], graph_reg=0, sample_norm=None).fit(counts)
    np.testing.assert_array_equal(swift.embedding_, same.embedding_)
    np.testing.assert_array_equal(swift.sample_scale_, np.ones(15))


@pytest.mark.parametrize("method", METHODS)
def test_every_method_takes_images_and_embeds_new_ones(method, rng):
    X = rng.random((20, 5, 4))
    model = method(3, max_iter=10, tol=0, random_state=0).fit(X)
    assert model.embedding_.shape == (20, 3)
    assert model.components_.shape == (3, 20)
    assert model.sample_shape_ == (5, 4)
    Z = model.transform(X[:4])
    assert Z.shape == (4, 3)
    assert model.inverse_transform(Z).shape == (4, 5, 4)
    assert model.reconstruct(X[:4]).shape == (4, 5, 4)
    assert -1.5 < model.score(X) < 0


@pytest.mark.parametrize("method", [NMF, NCP])
def test_new_samples_under_least_squares_solve_the_nonnegative_problem(method, rng):
    from scipy.optimize import nnls

    X = rng.random((30, 4, 3))
    model = method(3, max_iter=50, random_state=0, **RUN).fit(X).set_params(max_iter=5000)
    expected = [nnls(model.components_.T, sample.ravel())[0] for sample in X[:6]]
    np.testing.assert_allclose(model.transform(X[:6]), expected, atol=2e-3)


@pytest.mark.parametrize("method", [NMF, GNMF, NCP])
@pytest.mark.parametrize("scale", [1e-6, 1e3])
def test_the_stop_of_least_squares_does_not_depend_on_units(method, scale, rng):
    X = rng.random((30, 5, 4))
    settings = {"max_iter": 300, "random_state": 0, "sample_norm": None}
    weight = {"graph_reg": 0} if method is GNMF else {}
    usual = method(3, **settings, **weight).fit(X)
    assert 5 < usual.n_iter_ < 300
    scaled = method(3, **settings, **weight).fit(scale * X)
    assert scaled.n_iter_ == usual.n_iter_
    np.testing.assert_allclose(scaled.transform(scale * X[:3]), scale * usual.transform(X[:3]), rtol=1e-6)


def test_default_stop_of_nmf_leaves_little_to_gain(coil20):
    X = coil20[0][:360]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        default = NMF(5, random_state=0).fit(X)
    long = NMF(5, random_state=0, tol=0, max_iter=200).fit(X)
    assert default.reconstruction_err_ < 1.1 * long.reconstruction_err_


@pytest.mark.parametrize(("dtype", "rtol"), [("float32", 1e-4), ("float64", 1e-10)])
def test_the_value_of_least_squares_without_forming_the_model(dtype, rtol, rng):
    X = reconstruct([rng.random((60, 3)), rng.random((7, 3)), rng.random((6, 3))]) + 0.1 * rng.random((60, 7, 6))
    model = NCP(3, max_iter=60, random_state=0, dtype=dtype, **RUN).fit(X)
    residual = X - reconstruct([factor.astype(float) for factor in model.factors_])
    np.testing.assert_allclose(model.objective_, 0.5 * (residual**2).sum(), rtol=rtol)


def test_a_zero_row_of_the_start_stays_zero(rng):
    X = 50 * rng.random((8, 6))
    W, H = rng.random((8, 3)), rng.random((6, 3))
    W[4] = 0
    model = plain(NMF(3, init=[W, H], max_iter=20, **RUN)).fit(X)
    assert model.n_iter_ == 20
    np.testing.assert_array_equal(model.embedding_[4], 0)


def test_refused_input_does_not_change_a_fitted_model(rng):
    X = rng.random((20, 4, 4))
    for method in (NMF, NCP, SDNMF):
        model = method(2, max_iter=2, tol=0).fit(X)
        with pytest.raises(ValueError, match="samples of shape"):
            model.transform(X[:, :, :2])
        assert model.sample_shape_ == (4, 4)


def test_sdnmf_costs(rng):
    X = rng.random((10, 3, 4))
    squared = SDNMF(2, cost="grid2", max_iter=1, tol=0).fit(X).costs_[1].to_matrix()
    i, j = np.divmod(np.arange(12), 4)
    np.testing.assert_allclose(squared, ((i[:, None] - i) ** 2 + (j[:, None] - j) ** 2) / 13)
    with pytest.raises(ValueError, match="cost: got 'grit'"):
        SDNMF(2, cost="grit").fit(X)


def test_no_default_transports_the_samples_or_makes_the_graph_heavy():
    assert SWIFT()._check_loss((7, 4, 3)) == (None, "cosine", "cosine")
    assert GWNTF()._check_loss((7, 4, 3)) == (None, "grid", "grid")
    assert {method().graph_reg for method in (GNMF, GNCP, SDNMF, GWNTF)} == {0.1}
    assert "graph_reg" not in {**NMF().get_params(), **NCP().get_params(), **SWIFT().get_params()}
    assert SWIFT().sample_norm is None


def test_constructors_are_keyword_only_after_the_rank():
    for method in METHODS:
        assert method(4).n_components == 4
        with pytest.raises(TypeError):
            method(4, "l1")
