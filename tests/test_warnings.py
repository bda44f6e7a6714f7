"""Warnings say what was seen, in numbers, and what to change: once in their situation, never in the ordinary one."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.sparse import block_diag, csr_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import gwntf.estimators.parts as parts
import gwntf.geometry.costs as costs_module
import gwntf.solver.long_costs as long_costs
from gwntf import (
    GNCP,
    GNMF,
    GWNTF,
    NCP,
    NMF,
    SDNMF,
    SWIFT,
    GwntfWarning,
    MiniBatchGWNTF,
    TensorClustering,
    TransportOptions,
    fit_many,
)
from gwntf.backends.numpy_backend import NumpyBackend
from gwntf.core import (
    CoarseKernelWarning,
    DisconnectedGraphWarning,
    EmptyComponentWarning,
    SamplesLastWarning,
    UnevenSamplesWarning,
)
from gwntf.data import as_data
from gwntf.datasets import load_digits_tensor
from tests.schemes import remaining_of, steps_of_new_samples

X = np.random.default_rng(0).random((20, 5, 4))
ALL = (GWNTF, NMF, GNMF, SDNMF, NCP, GNCP, SWIFT)


def told(model, data=X):
    """What a fit warns of, as (category, text)."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(data)
    assert {entry.filename for entry in caught} <= {__file__}
    return [(entry.category, str(entry.message)) for entry in caught]


@pytest.mark.parametrize("kind", ALL)
def test_ordinary_data_and_settings_are_met_with_silence(kind):
    digits = load_digits_tensor()[0][:200]
    assert told(kind(10, max_iter=5, tol=0, random_state=0), digits) == []


def test_a_fit_that_has_not_converged_says_so_in_the_same_words():
    model = NCP(3, max_iter=2, random_state=0)
    ((category, text),) = told(model)
    assert category is ConvergenceWarning
    assert model.status_.message in text
    assert "`objective_curve_`" in text
    assert told(model, X[:15]) == [(category, text)]  # Python shows the same words once
    assert told(model.set_params(tol=0)) == []


def test_a_search_over_many_fits_warns_once():
    search = GridSearchCV(NCP(max_iter=3, random_state=0), {"n_components": [2, 3, 4]}, cv=3)
    ((category, text),) = told(search)  # of the fit of the best settings
    assert category is ConvergenceWarning
    assert search.best_estimator_.status_.message in text
    batches = MiniBatchGWNTF(batch_size=8, max_epochs=1, max_iter=2, tol=1e-12, random_state=0)
    assert len(told(GridSearchCV(make_pipeline(batches), {"minibatchgwntf__n_components": [2, 3]}, cv=2))) == 1


def test_new_samples_warn_where_many_are_far_from_converged_and_not_for_a_last_digit():
    model = GWNTF(3, costs=(None, None, None), graph_reg=0, max_iter=300, random_state=0).fit(X)
    data, components = as_data(X).normalised("l2")[0], model.factors_[1:]
    going = steps_of_new_samples(data, model._loss_of_new_samples(), components, 21)[-1]
    third = np.sort(remaining_of(going) / np.maximum(going.curve[-1], going.size))[-3]  # a tenth of them have more
    for tol, count in [(third / 10 * 1.01, 0), (third / 10 * 0.99, 1)]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.set_params(tol=tol, max_iter=21).transform(X)
        assert [entry.category for entry in caught] == [ConvergenceWarning] * count
        assert {entry.filename for entry in caught} <= {__file__}
    assert str(caught[0].message).startswith("More than 10% of the new samples were far from converged after 21 iter")


@pytest.mark.parametrize("shape", [(8, 8, 80), (8, 10, 100), (8, 8, 3, 90)])
def test_samples_that_seem_to_be_last_are_told(shape):
    data = np.random.default_rng(0).random(shape)
    for model in (NCP(2, max_iter=2, tol=0), MiniBatchGWNTF(2, max_epochs=1, tol=0)):
        ((category, text),) = told(model, data)
        assert category is SamplesLastWarning
        assert text.startswith(
            f"X has 8 samples of shape {shape[1:]}. If the {shape[-1]} entries of the last axis are the samples"
        )
        assert "np.moveaxis(X, -1, 0)" in text
        assert told(model, np.moveaxis(data, -1, 0)) == []


@pytest.mark.parametrize("shape", [(8, 8, 79), (8, 11, 300), (20, 400), (20, 64, 1000), (300, 8, 8), (3, 20, 300)])
def test_shapes_that_samples_often_have_are_ordinary(shape):
    assert told(NCP(2, max_iter=2, tol=0), np.random.default_rng(0).random(shape)) == []


def test_a_small_batch_of_long_samples_is_ordinary():
    data = np.random.default_rng(0).random((16, 8, 300))
    model = MiniBatchGWNTF(2, batch_size=8, max_epochs=1, tol=0)
    assert told(model, data) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(data[:8])


def start(rank, empty):
    """Factors whose component `empty` has all its mass where the data have none."""
    factors = [np.ones((20, rank)), np.random.default_rng(1).random((5, rank)) + 0.1, np.ones((4, rank))]
    factors[1][:, empty] = np.eye(5)[4]
    factors[1][4, np.arange(rank) != empty] = 0
    return factors


@pytest.mark.parametrize("kind", [NCP, SWIFT])
def test_components_without_mass_are_counted_and_named(kind):
    data = X.copy()
    data[:, 4] = 0
    extra = {} if kind is NCP else {"costs": (None, None, None)}
    model = kind(3, init=start(3, 1), max_iter=200, tol=0, **extra)
    ((category, text),) = told(model, data)
    assert category is EmptyComponentWarning
    assert text.startswith("1 of 3 components have almost no mass (1): lower `n_components`")


def test_samples_without_an_edge_are_counted_and_named():
    graph = csr_array(block_diag([np.ones((17, 17)), np.zeros((3, 3))]))
    ((category, text),) = told(GNCP(3, graph=graph, max_iter=3, tol=0, random_state=0))
    assert category is DisconnectedGraphWarning
    assert text.startswith("3 of 20 samples have no edge in the graph (17, 18, 19)")
    assert told(GNCP(3, graph=graph, graph_reg=0, max_iter=3, tol=0, random_state=0)) == []


def test_clusters_fewer_than_the_parts_of_the_graph_are_told_and_as_many_are_not():
    graph = csr_array(block_diag([np.ones((5, 5))] * 4))
    assert told(GNCP(3, graph=graph, max_iter=3, tol=0, random_state=0)) == []  # a factorization has no clusters
    clusterer = TensorClustering(3, graph=graph, max_iter=3, random_state=0)
    ((category, text),) = told(clusterer)
    assert category is DisconnectedGraphWarning
    assert text.startswith("The graph has 4 connected components, more than the 3 clusters")
    assert told(clusterer.set_params(n_clusters=4)) == []
    assert told(clusterer.set_params(n_clusters=3, graph_reg=0)) == []


def test_light_samples_are_told_where_samples_are_not_scaled():
    uneven = X * np.logspace(-8, 0, 20).reshape(-1, 1, 1)
    model = SWIFT(3, max_iter=3, tol=0, random_state=0)
    ((category, text),) = told(model, uneven)
    sums = uneven.sum(axis=(1, 2))
    assert category is UnevenSamplesWarning
    assert text.startswith(f"Half of the samples have {np.sort(sums)[:10].sum() / sums.sum():.2g} of the total mass")
    assert f"(sums from {sums.min():.3g} to {sums.max():.3g})" in text
    assert told(model.set_params(sample_norm="l2"), uneven) == []


def test_counts_with_a_heavy_tail_are_ordinary():
    sizes = 10 ** np.random.default_rng(0).uniform(0, 3, (60, 1, 1))
    counts = np.random.default_rng(1).poisson(sizes * np.ones((60, 5, 4)))
    assert told(SWIFT(3, max_iter=3, tol=0, random_state=0), counts) == []


def test_a_long_mode_of_all_pairs_is_told_with_its_size(monkeypatch):
    """No near-far kernel is ever coarser than its tolerance: where none is fine enough all pairs are held."""
    monkeypatch.setattr(NumpyBackend, "long_fibers", 15)
    for module in (parts, long_costs, costs_module):
        monkeypatch.setattr(module, "PAIRS_LIMIT", 15)
    model = GWNTF(3, costs=("cosine", None, None), max_iter=3, tol=0, engine="numpy")
    model.set_params(transport=TransportOptions(kernel_tol=1e-9))
    ((category, text),) = told(model)
    assert category is CoarseKernelWarning
    assert text.startswith("No near-far kernel along axis 0 reaches kernel_tol=1e-09, so all 20 x 20 pairs")
    assert told(model.set_params(transport__kernel_tol=0)) == []


def test_every_warning_can_be_silenced_by_one_class():
    kinds = (
        *(CoarseKernelWarning, DisconnectedGraphWarning, EmptyComponentWarning),
        *(SamplesLastWarning, UnevenSamplesWarning),
    )
    assert all(issubclass(kind, GwntfWarning) and issubclass(kind, UserWarning) for kind in kinds)


def test_what_many_fits_have_in_common_is_told_once():
    graph = csr_array(block_diag([np.ones((17, 17)), np.zeros((3, 3))]))
    with pytest.warns(DisconnectedGraphWarning) as caught:
        fit_many(GNCP(3, graph=graph, max_iter=3, tol=0), X, range(3))
    assert len(caught) == 1
