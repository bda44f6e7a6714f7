"""MiniBatchGWNTF: the step of one batch by literal loops, what batches learn, forgetting, kinds of data."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from gwntf import GWNTF, Checkpoint, InputError, MiniBatchGWNTF, Status, load
from gwntf.datasets import load_digits_tensor
from tests.schemes import literal_new_samples

quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def planted(rng, samples=240, shape=(9, 8), rank=3):
    """Exact models of nonnegative data, and their factors."""
    factors = [rng.gamma(0.4, size=(size, rank)) + 1e-3 for size in (samples, *shape)]
    return np.einsum("ar,br,cr->abc", *factors), factors


def literal_em(X, factors):
    """One EM step of the KL loss, entry by entry: numerators of every factor."""
    numerators = [np.zeros_like(factor) for factor in factors]
    for place in itertools.product(*map(range, X.shape)):
        parts = np.prod([factor[i] for factor, i in zip(factors, place, strict=True)], axis=0)
        for numerator, i in zip(numerators, place, strict=True):
            numerator[i] += X[place] * parts / parts.sum()
    return numerators


def test_one_batch_makes_the_step_of_em(rng):
    X = rng.random((6, 4, 3)) + 0.05
    start = [rng.random((size, 2)) + 0.1 for size in X.shape]
    model = MiniBatchGWNTF(2, costs=(None, None, None), init=start, sample_norm=None, batch_iter=1)
    model.partial_fit(X)
    shared = [factor / factor.sum(axis=0) for factor in start[1:]]
    embedding = np.repeat(X.sum(axis=(1, 2))[:, None] / 2, 2, axis=1)

    def step(row, x):
        model = np.einsum("ir,jr,kr->ijk", row, *shared)
        return literal_em(x, [row, *shared])[0], (x * np.log(x / model) - x + model).sum()

    rows = [(embedding[i : i + 1], partial(step, x=X[i : i + 1])) for i in range(len(X))]
    embedding = np.concatenate([literal_new_samples(own, row, 3) for row, own in rows])
    np.testing.assert_allclose(model.embedding_, embedding, rtol=1e-10)
    for found, numerator in zip(model.factors_[1:], literal_em(X, [embedding, *shared])[1:], strict=True):
        np.testing.assert_allclose(found, numerator / numerator.sum(axis=0), rtol=1e-10)


def test_second_batch_enters_the_mean_by_its_weight(rng):
    X, _ = planted(rng, 40)
    first, second = (MiniBatchGWNTF(3, costs=(None, None, None), random_state=0) for _ in range(2))
    first.partial_fit(X[:20])
    second.partial_fit(X[:20]).partial_fit(X[20:])
    kept = 1 - 2**-0.6
    changes = [b - kept * a for a, b in zip(first._means, second._means, strict=True)]
    masses = [change.sum(axis=0) for change in changes]
    np.testing.assert_allclose(masses[0], masses[1], rtol=1e-8)  # one mass a component, whatever the mode
    assert (changes[0] > -1e-12).all()
    assert second.n_batches_ == 2


@quiet
@pytest.mark.parametrize("costs", [(None, None, None), "auto"])
def test_batches_learn_what_a_whole_fit_learns(costs, rng):
    X = load_digits_tensor()[0][:600]
    options = {"reg": 0.05, "random_state": 0}
    model = MiniBatchGWNTF(8, costs=costs, batch_size=100, **options).fit(X)
    costs = (None, "grid", "grid") if costs == "auto" else costs
    whole = GWNTF(8, costs=costs, graph_reg=0, max_iter=60, tol=0, **options).fit(X)
    start, end = whole.objective_curve_[[0, -1]]
    again = GWNTF(8, costs=costs, graph_reg=0, init=model.factors_, max_iter=1, tol=0, **options).fit(X)
    assert again.objective_curve_[0] < end + 0.03 * (start - end)


@quiet
def test_exact_models_are_found_again(rng):
    X, _ = planted(rng)
    model = MiniBatchGWNTF(
        3, costs=(None, None, None), batch_size=40, max_epochs=60, tol=0, max_iter=500, random_state=1
    )
    assert model.fit(X).reconstruction_err_ < 0.03


@quiet
def test_less_memory_follows_a_change_sooner(rng):
    old, new = (planted(np.random.default_rng(seed))[0] for seed in (1, 2))
    errors = []
    for forget in (0.5, 1.0):
        model = MiniBatchGWNTF(3, costs=(None, None, None), forget_factor=forget, random_state=0)
        for X in (old, new):
            for start in range(0, 240, 24):
                model.partial_fit(X[start : start + 24])
        errors.append(-model.score(new))
    assert errors[0] < 0.8 * errors[1]


@quiet
@pytest.mark.parametrize("kind", ["list", "frame", "masked", "torch", "sparse"])
def test_kinds_of_data_give_the_same_factors(kind, rng):
    X = rng.random((30, 12)) * (rng.random((30, 12)) > 0.4) + np.eye(30, 12)
    options = {
        "sample_shape": (4, 3),
        "batch_size": 8,
        "max_epochs": 2,
        "random_state": 0,
        "dtype": "float64",
    }
    expected = MiniBatchGWNTF(3, **options).fit(X)
    if kind == "list":
        given = X.tolist()
    elif kind == "frame":
        given = pytest.importorskip("pandas").DataFrame(X)
        given.columns = given.columns.astype(str)
    elif kind == "masked":
        given = np.ma.masked_array(X, np.zeros(X.shape, bool))
    elif kind == "torch":
        given = pytest.importorskip("torch").from_numpy(X)
    else:
        given = sp.csr_array(X)
    found = MiniBatchGWNTF(3, **options).fit(given)
    for a, b in zip(found.factors_, expected.factors_, strict=True):
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-6, atol=1e-9)


def test_stops_when_settled_and_when_asked(rng):
    X, _ = planted(rng, 60)
    settled = MiniBatchGWNTF(3, batch_size=20, tol=0.5, random_state=0).fit(X)
    assert settled.status_ is Status.CONVERGED
    assert settled.n_iter_ == 2
    seen = []
    model = MiniBatchGWNTF(3, batch_size=20, max_epochs=1, callbacks=[lambda news: seen.append(news.iteration)])
    with pytest.warns(ConvergenceWarning, match="raise `max_epochs`"):
        model.fit(X)
    assert seen == [1, 2, 3]
    stopped = MiniBatchGWNTF(3, batch_size=20, callbacks=[lambda news: news.iteration == 4]).fit(X)
    assert (stopped.status_, stopped.n_batches_) == (Status.STOPPED, 4)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"costs": ("cosine", None, None)}, "costs: got a cost between samples"),
        ({"callbacks": [Checkpoint("run.ckpt")]}, "callbacks: got a Checkpoint.*save the model between calls"),
        ({"forget_factor": 0.0}, "forget_factor"),
        ({"init": [np.ones((5, 3)), np.ones((9, 3))]}, "init"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options, match, rng):
    with pytest.raises(ValueError, match=match):
        MiniBatchGWNTF(3, **options).fit(rng.random((5, 9, 8)))


def test_batches_of_another_shape_and_empty_beginnings_are_refused(rng):
    model = MiniBatchGWNTF(2).partial_fit(rng.random((5, 4, 3)))
    with pytest.raises(InputError, match="X: got samples of shape"):
        model.partial_fit(rng.random((5, 4, 2)))
    with pytest.raises(InputError, match="only zeros in the first batch"):
        MiniBatchGWNTF(2).partial_fit(np.zeros((5, 4, 3)))


def test_a_saved_model_is_taught_further_as_if_it_had_never_left(tmp_path, rng):
    X, _ = planted(rng, 60)
    whole = MiniBatchGWNTF(3, random_state=0)
    for start in (0, 20, 40):
        whole.partial_fit(X[start : start + 20])
        if start == 20:
            whole.save(tmp_path / "model.gwntf")
    again = load(tmp_path / "model.gwntf").partial_fit(X[40:])
    for a, b in zip(again.factors_, whole.factors_, strict=True):
        np.testing.assert_array_equal(a, b)
    assert (again.n_batches_, len(again.objective_curve_)) == (3, 3)
