"""`Unmixer` as a scikit-learn estimator, data frames, and what it says of bad input."""

from __future__ import annotations

import inspect
import pickle
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from gwntf import AxisCost, InputError, Unmixer
from gwntf.core import DependentPartsWarning
from gwntf.datasets import make_drifting_spectra
from gwntf.unmixing import LineSolver
from tests.test_surface import default_of, described

DATA = make_drifting_spectra(6, 3, 64, drift="shift", amount=0.01, counts=3000, random_state=3)
H, X, S = DATA.references, DATA.spectra, 2.0 + 0.1 * DATA.positions


def shares(**options):
    return Unmixer(H, positions=S, **options).fit().transform(X)


# --- scikit-learn -------------------------------------------------------------------------------------------


def test_a_clone_has_the_parameters_and_gives_the_same():
    model = Unmixer(H, positions=S, drift=0.1, reg_m=1.0, signal=[1, 2, 3], negative="clip", tol=1e-6)
    params = model.get_params()
    assert set(params) == {
        "references", "positions", "costs", "drift", "reg_m", "calibration", "reach", "signal", "n_free", "negative",
        "tol", "random_state",
    }  # fmt: skip
    copy = clone(model.fit())
    assert not hasattr(copy, "positions_")
    np.testing.assert_array_equal(copy.fit().transform(X), model.transform(X))
    assert copy.set_params(drift=0.2).fit().drift_ == 0.2


def test_the_docstring_lists_the_parameters_in_order_with_their_defaults():
    entries, own = described(Unmixer), inspect.signature(Unmixer).parameters
    assert list(entries) == list(own)
    for name, (kind, text) in entries.items():
        assert text.endswith("."), name
        if name != "references":
            assert default_of(kind) == own[name].default, name


def test_a_pipeline_fits_and_transforms():
    pipe = make_pipeline(FunctionTransformer(lambda x: 2 * x), Unmixer(H, positions=S))
    np.testing.assert_allclose(pipe.fit_transform(X), shares(), atol=1e-9)
    assert pipe.get_feature_names_out is not None


@pytest.mark.parametrize("calibration", [None, "shift"])
def test_a_pickled_estimator_gives_the_same(calibration):
    model = Unmixer(H, positions=S, calibration=calibration).fit()
    model.transform(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).transform(X), model.transform(X))  # noqa: S301


def test_an_estimator_that_is_not_fitted_says_so():
    for method in ("transform", "unmix", "predict", "displacement", "unexplained", "interval"):
        with pytest.raises(NotFittedError):
            getattr(Unmixer(H), method)(X)
    with pytest.raises(NotFittedError):
        Unmixer(H).get_feature_names_out()


def test_weights_of_samples_are_refused():
    with pytest.raises(InputError, match="sample_weight: got weights, which Unmixer does not support"):
        Unmixer(H).fit(X, sample_weight=np.ones(6))


# --- kinds of data ------------------------------------------------------------------------------------------


def test_sparse_lists_float32_integers_and_one_sample_give_the_same():
    wanted = shares()
    model = Unmixer(csr_array(H), positions=list(S)).fit()
    for given in (csr_array(X), X.tolist(), X.astype(int), np.asfortranarray(X)):
        np.testing.assert_allclose(model.transform(given), wanted, rtol=1e-9)
    np.testing.assert_allclose(model.transform(X.astype(np.float32)), wanted, atol=1e-6)
    np.testing.assert_allclose(model.transform(X[2:3]), wanted[2:3], rtol=1e-12)
    assert model.unmix(X[2:3]).moved_parts.shape == (1, 3, 64)


def test_clipped_entries_are_as_zeros():
    below = np.where(X == 0, -0.5, X)
    assert (below < 0).any()
    np.testing.assert_array_equal(Unmixer(H, positions=S, negative="clip").fit().transform(below), shares())


def test_arguments_are_not_changed():
    given = [a.copy() for a in (H, X, S)]
    model = Unmixer(H, positions=S, calibration="shift", negative="clip").fit()
    model.unmix(X)
    for before, after in zip(given, (H, X, S), strict=True):
        np.testing.assert_array_equal(before, after)


def test_a_cost_sets_positions_and_scale():
    wanted = shares(costs=AxisCost("columns", 3.0), drift=0.05)
    for cost in (AxisCost(S, 3.0), (None, AxisCost(S, 3.0))):
        model = Unmixer(H, costs=cost, drift=0.05).fit()
        assert model.scale_ == 3.0
        np.testing.assert_array_equal(model.transform(X), wanted)


def test_data_frames_give_names_positions_and_data_frames():
    pd = pytest.importorskip("pandas")
    names = ["glucose", "lactate", "citrate"]
    references = pd.DataFrame(H, index=names, columns=S)
    mixtures = pd.DataFrame(X, index=[f"sample {k}" for k in range(6)], columns=[str(s) for s in S])
    model = Unmixer(references).fit()
    found = model.transform(mixtures)
    assert list(found.columns) == list(model.get_feature_names_out()) == model.names_ == names
    assert list(found.index) == list(mixtures.index)
    np.testing.assert_array_equal(found.to_numpy(), shares())
    np.testing.assert_array_equal(model.positions_, S)
    assert isinstance(model.transform(X), np.ndarray)
    assert set(model.predict(mixtures)) <= set(names)
    assert model.unmix(mixtures).names == names
    turned = Unmixer(references.iloc[:, ::-1]).fit().transform(mixtures.iloc[:, ::-1])
    np.testing.assert_allclose(turned.to_numpy(), shares(), rtol=1e-9, atol=1e-12)
    model.set_output(transform="pandas")
    assert list(model.transform(X).columns) == names
    plain = Unmixer(pd.DataFrame(H), positions=S).fit()
    assert plain.names_ == ["part 1", "part 2", "part 3"]


def test_data_frames_of_other_positions_are_refused():
    pd = pytest.importorskip("pandas")
    model = Unmixer(pd.DataFrame(H, columns=S)).fit()
    with pytest.raises(InputError, match=r"X: got the position 2\.01 in column 0; expected 2, as in the references"):
        model.transform(pd.DataFrame(X, columns=S + 0.01))


def test_column_names_do_not_matter_if_the_positions_are_given():
    pd = pytest.importorskip("pandas")
    for model in (Unmixer(pd.DataFrame(H), positions=S), Unmixer(pd.DataFrame(H), costs=AxisCost(S, 3.0))):
        wanted = model.fit().transform(X)
        for columns in (S, [f"channel {k}" for k in range(64)]):
            np.testing.assert_array_equal(model.transform(pd.DataFrame(X, columns=columns)), wanted)


# --- bad input ----------------------------------------------------------------------------------------------


def changed(values, index, value):
    copy = np.array(values, dtype=float)
    copy[index] = value
    return copy


BAD_FIT = [
    ({"references": H[0]}, r"references: got shape \(64,\); expected one row per spectrum"),
    ({"references": H[:0]}, r"references: got shape \(0, 64\)"),
    ({"references": changed(H, (1, 5), np.nan)}, "references: got NaN or infinite entries in 'part 2'"),
    ({"references": changed(H, (2, 5), -0.5)}, "references: got negative entries in 'part 3', the lowest -0.5"),
    ({"references": changed(H, 0, 0.0)}, "references: got only zeros in 'part 1'"),
    ({"references": H[:, :2], "positions": S[:2]}, r"references: got 2 place\(s\); expected at least three places"),
    ({"references": np.eye(64)[[5, 5]]}, "references: got parts that are all at one place"),
    ({"positions": S[:5]}, r"positions: got shape \(5,\); expected 64 positions, one per place"),
    ({"positions": changed(S, 5, 0.0)}, r"positions: got 2\.4 next to 0; expected positions that only increase or"),
    ({"positions": changed(S, 5, S[4])}, r"positions: got 2\.4 next to 2\.4"),
    ({"positions": changed(S, 5, np.inf)}, "positions: got NaN or infinite positions"),
    ({"positions": "ppm"}, "positions"),
    ({"costs": "grid"}, "costs"),
    ({"costs": AxisCost(S, 1.0, power=2)}, "costs: got .*expected an AxisCost of power 1 without a period"),
    ({"costs": AxisCost(S, 1.0, period=30.0)}, "costs: got .*expected an AxisCost of power 1 without a period"),
    ({"costs": (AxisCost(S, 1.0), None)}, r"costs: got .*expected 'auto', an AxisCost, or a pair"),
    ({"costs": AxisCost(S, 1.0), "positions": S}, "positions: got positions beside those of the cost"),
    ({"costs": AxisCost("columns", 1.0), "positions": "auto"}, "costs: got .*references whose column names are num"),
    ({"drift": 0.0}, "drift"),
    ({"drift": -1.0}, "drift"),
    ({"drift": np.nan}, "drift"),
    ({"drift": "much"}, "drift"),
    ({"drift": 100.0}, r"drift: got 100; expected at most the length of the axis, 6\.3"),
    ({"drift": 0.001}, r"drift: got 0\.001; expected at least 0\.0126, a 500th of the axis, or fewer places"),
    ({"reg_m": 0.0}, "reg_m"),
    ({"calibration": "gain"}, "calibration"),
    ({"reach": -1.0}, "reach"),
    ({"reach": 4.0, "calibration": "shift"}, r"reach: got 4; expected at most 3\.15, half the length of the axis"),
    ({"reach": 1.0, "calibration": "stretch"}, r"reach: got 1; expected at most 0\.5, a stretch by half"),
    ({"signal": [1.0, 2.0]}, r"signal: got \[1.0, 2.0\]; expected 3 positive numbers, one per reference"),
    ({"signal": [1.0, 2.0, 0.0]}, "signal"),
    ({"n_free": -1}, "n_free"),
    ({"n_free": 1}, "X: got None; expected mixtures in which to find the 1 free parts"),
    ({"negative": "zero"}, "negative"),
    ({"tol": 0.0}, "tol"),
]


@pytest.fixture
def no_work(monkeypatch):
    """A solver that must not be called."""

    def fail(*arguments, **options):
        raise AssertionError("solved before the input was checked")

    monkeypatch.setattr(LineSolver, "solve", fail)


@pytest.mark.parametrize(("options", "message"), BAD_FIT, ids=[f"{k}-{min(b[0])}" for k, b in enumerate(BAD_FIT)])
@pytest.mark.usefixtures("no_work")
def test_bad_references_and_parameters(options, message):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DependentPartsWarning)
        with pytest.raises(ValueError, match=message):
            Unmixer(
                **{"references": H, "positions": S, **({"positions": "auto"} if "costs" in options else {}), **options}
            ).fit()


BAD_X = [
    (X[:, :60], "X: got 60 places; expected 64 places, as the references have"),
    (X[0], r"X: got shape \(64,\); expected one row per spectrum"),
    (X[:0], r"X: got shape \(0, 64\)"),
    (changed(X, (1, 2), np.nan), "X: got NaN or infinite entries; expected finite numbers: fill in or cut out"),
    (changed(X, (1, 2), np.inf), "X: got NaN or infinite entries"),
    (changed(X, (1, 2), -3.0), "X: got 1 negative entries of 384, the lowest -3; expected nonnegative numbers: subtr"),
    (changed(X, 4, 0.0), "X: got only zeros in sample 4; expected a positive sum of every sample"),
    (X.astype(str), "X"),
    (X + 1j, "X"),
]


@pytest.mark.parametrize(("given", "message"), BAD_X, ids=range(len(BAD_X)))
@pytest.mark.parametrize("method", ["transform", "unmix"])
@pytest.mark.usefixtures("no_work")
def test_bad_mixtures(method, given, message):
    with pytest.raises(ValueError, match=message):
        getattr(Unmixer(H, positions=S).fit(), method)(given)


@pytest.mark.parametrize("level", [0, 1, -0.1, 1.5, np.nan, True, "0.9", None])
@pytest.mark.usefixtures("no_work")
def test_bad_levels(level):
    with pytest.raises(ValueError, match=r"level: got .*; expected a number between 0 and 1"):
        Unmixer(H, positions=S).fit().unmix(X, level)


def test_linearly_dependent_references_are_named_in_a_warning():
    pd = pytest.importorskip("pandas")
    mixed = np.vstack([H, 0.3 * H[0] + 0.7 * H[2]])
    references = pd.DataFrame(mixed, index=["a", "b", "c", "d"])
    with pytest.warns(DependentPartsWarning, match="linearly dependent.*'a', 'c', 'd'. Leave one of them out") as found:
        model = Unmixer(references, positions=S).fit()
    assert len(found) == 1
    assert np.isfinite(model.transform(X)).all()
    assert np.isfinite(model.unmix(X).upper).all()


def test_samples_that_do_not_converge_are_counted_in_a_warning():
    model = Unmixer(H, positions=S, tol=1e-30).fit()
    for method in (model.transform, model.unmix):
        with pytest.warns(ConvergenceWarning, match=r"\d of 6 samples did not converge to the relative gap tol=1e-30"):
            method(X)


@pytest.mark.parametrize("factor", [1e-305, 1e-100, 1e100, 1e304])
def test_very_small_and_very_large_numbers(factor):
    np.testing.assert_allclose(Unmixer(factor * H, positions=S).fit().transform(factor * X), shares(), rtol=1e-6)


def test_references_that_are_similar_give_no_warning():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Unmixer(np.vstack([H, H[0] + 0.01 * np.roll(H[0], 3)]), positions=S).fit()
        Unmixer(H[:1], positions=S).fit()
    assert not caught
