"""New samples: ties to training samples, embeddings, data frames."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.utils import shuffle

from gwntf import GNCP, GNMF, GWNTF, NMF, SDNMF, InputError, KNNGraph, fit_many
from gwntf.backends import get_backend
from gwntf.core import DisconnectedGraphWarning, GraphNotExtendedWarning, Relaxation
from gwntf.data import DataTensor
from gwntf.datasets import load_digits_tensor
from gwntf.geometry import Ties, TrainingSamples, neighbor_graph, resolve_costs
from gwntf.losses import GraphGradient, LeastSquares, transport_loss
from gwntf.losses.graph import tied_root
from gwntf.solver import Problem, Stopping, evaluate, project
from tests.problems import TIGHT
from tests.schemes import arrived_at, steps_of_new_samples

METRICS = [
    *("cosine", "euclidean", "gradient", "orientation", "wasserstein"),
    pytest.param(lambda samples: samples.mean(axis=2), id="callable"),
]
NUMPY = get_backend("numpy")


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits_tensor()
    return X / np.linalg.norm(X, axis=(1, 2), keepdims=True), y


def small(**params):
    defaults = {
        "n_components": 8,
        "max_iter": 15,
        "tol": 0,
        "graph_reg": 10.0,
        "random_state": 0,
        "costs": (None, "grid", "grid"),
    }
    return GWNTF(**{**defaults, **params})


# --- the ties -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", ["binary", "cosine", "self-tuning"])
@pytest.mark.parametrize("metric", METRICS)
def test_ties_are_the_new_samples_edges_in_the_graph_rule(digits, metric, weight):
    """The directed edges that one more sample has in the graph of all: literal features, distances and scales."""
    from gwntf.geometry.features import sample_features

    training, new = digits[0][:60], digits[0][60:70]
    found = TrainingSamples(DataTensor.of_array(training), KNNGraph(5, metric=metric, weight=weight)).ties(
        DataTensor.of_array(new)
    )
    rows, compared = sample_features(DataTensor.of_array(digits[0][:70]), metric)
    power = 1 if compared == "manhattan" else 2
    distance = (np.abs(rows[:, None] - rows[None, :60]) ** power).sum(axis=2) ** (1 / power)
    expected = np.zeros((10, 60))
    scales = [np.sort(np.delete(distance[j], j))[6] for j in range(60)]
    for i in range(10):
        own = distance[60 + i]
        for j in np.argsort(own)[:5]:
            if weight == "self-tuning":
                expected[i, j] = np.exp(-(own[j] ** 2) / (np.sort(own)[6] * scales[j]))
            else:
                expected[i, j] = (new[i] * training[j]).sum() if weight == "cosine" else 1
    np.testing.assert_allclose(found.toarray(), expected, atol=1e-7)


def test_ties_without_holes_are_those_of_shared_entries(digits):
    training, new = DataTensor.of_array(digits[0][:40]), digits[0][40:50]
    whole = DataTensor.of_array(new)
    masked = DataTensor.of_array(new, np.ones(new.shape, bool))
    for metric in ("cosine", "euclidean"):
        samples = TrainingSamples(training, KNNGraph(5, metric=metric, weight="self-tuning"))
        np.testing.assert_allclose(samples.ties(masked).toarray(), samples.ties(whole).toarray(), atol=1e-7)


def test_ties_with_holes_compare_what_both_samples_have(rng):
    """Cosines over shared entries by literal loops."""
    training, new = rng.random((12, 9)), rng.random((4, 9))
    seen, new_seen = rng.random((12, 9)) < 0.7, rng.random((4, 9)) < 0.7
    holed = DataTensor.of_array(np.where(seen, training, 0), seen)
    found = TrainingSamples(holed, KNNGraph(3, weight="cosine")).ties(
        DataTensor.of_array(np.where(new_seen, new, 0), new_seen)
    )
    for i in range(4):
        cosines = []
        for j in range(12):
            both = seen[j] & new_seen[i]
            a, b = new[i][both], training[j][both]
            cosines.append(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)) if both.any() else 0.0)
        nearest = np.argsort(cosines)[::-1][:3]
        expected = np.zeros(12)
        expected[nearest] = np.array(cosines)[nearest]
        np.testing.assert_allclose(found.toarray()[i], expected, atol=1e-9)


def test_empty_samples_are_tied_to_empty_samples_first(rng):
    training = rng.random((10, 6))
    training[4] = 0
    for training_rows in (training, rng.random((10, 6))):
        samples = TrainingSamples(DataTensor.of_array(training_rows), KNNGraph(1))
        ties = samples.ties(DataTensor.of_array(np.zeros((1, 6))))
        assert ties.sum() == 1
        assert not (training_rows[4].sum() == 0 and ties[0, 4] != 1)


# --- the step -------------------------------------------------------------------------------------------


def gradient_of(ties):
    """What ties do to new samples, as a step takes it."""
    placed = ties.of(slice(0, 5)).on(NUMPY, np.dtype(float))
    return GraphGradient(placed.weight, placed.neighbor_sum, placed.degree)


def test_root_minimises_the_majorizer_of_an_entry(rng):
    """b (m a - w log a) + (mu/2) sum_j v_j (a - a_j)^2, by a search over a."""
    from scipy.optimize import minimize_scalar

    ties = Ties(neighbor_graph(DataTensor.of_array(rng.random((9, 4))), 3)[:5], 3 * rng.random((9, 2)), 7.0)
    w, masses, b = rng.random((5, 2)), np.array([1.0, 2.5]), 2.0
    found = tied_root(np, w, b, masses, gradient_of(ties))
    weights = ties.matrix.toarray()
    for i in range(5):
        for r in range(2):

            def value(log_a, i=i, r=r):
                a = np.exp(log_a)
                apart = weights[i] @ (a - ties.embedding[:, r]) ** 2
                return b * (masses[r] * a - w[i, r] * log_a) + ties.weight / 2 * apart

            best = minimize_scalar(value, bounds=(-15, 5), method="bounded", options={"xatol": 1e-12})
            np.testing.assert_allclose(found[i, r], np.exp(best.x), rtol=1e-6)


def test_root_without_ties_is_the_plain_step(rng):
    ties = Ties(csr_array((5, 9)), rng.random((9, 2)), 7.0)
    w, masses = rng.random((5, 2)), np.array([1.0, 2.5])
    np.testing.assert_allclose(tied_root(np, w, 3.0, masses, gradient_of(ties)), w / masses)


def tied_problem(shape, transported, seed, weight, loss=None):
    """New samples with ties to random training rows, simplex components, and F of one embedding of them."""
    rng = np.random.default_rng(seed)
    new, training = DataTensor.of_array(rng.random(shape)), DataTensor.of_array(rng.random((9, *shape[1:])))
    specs = [None, *("grid" if mode in transported else None for mode in range(1, len(shape)))]
    costs = resolve_costs(specs, new)
    problem = Problem(new, loss or transport_loss(costs, Relaxation(0.1, 1.0, 0.7), TIGHT))
    components = [rng.random((size, 3)) for size in shape[1:]]
    components = [factor / factor.sum(axis=0) for factor in components]
    matrix = TrainingSamples(training, KNNGraph(4, weight="self-tuning")).ties(new)
    ties = Ties(matrix, 4 * rng.random((9, 3)), weight)

    def values(a):
        apart = ((a[:, None] - ties.embedding[None]) ** 2).sum(axis=2)
        penalty = weight / 2 * (matrix.toarray() * apart).sum(axis=1)
        data = [
            evaluate(
                Problem(DataTensor.of_array(new.dense_block.values[i : i + 1]), problem.loss),
                [a[i : i + 1], *components],
            ).total
            for i in range(shape[0])
        ]
        return np.array(data) + penalty

    return problem, components, ties, values


@pytest.mark.parametrize("weight", [0.3, 30.0, 4e4])
@pytest.mark.parametrize(
    ("shape", "transported", "loss"),
    [
        ((4, 5), (), None),
        ((4, 5), (1,), None),
        ((3, 4, 3), (1, 2), None),
        ((3, 4, 3), (2,), None),
        ((4, 5), (), LeastSquares()),
        ((3, 4, 3), (), LeastSquares()),
    ],
)
def test_no_step_raises_the_objective_of_any_tied_sample(shape, transported, loss, weight):
    problem, components, ties, values = tied_problem(shape, transported, 3, weight, loss)
    steps = steps_of_new_samples(problem.data, problem.loss, components, 12, ties)
    curve = np.array(steps[-1].curve)
    assert (np.diff(curve, axis=0) <= 0).all()
    for going, value in zip(steps, curve, strict=True):  # the result of a step is not worse than where it began
        assert (values(going.past) <= value + 1e-9 * np.abs(value)).all()
    np.testing.assert_array_equal(
        project(problem.data, problem.loss, components, Stopping(12, 0), ties)[0], steps[-1].past
    )
    assert np.min(curve[0] - curve[-1]) > 0


@pytest.mark.parametrize("loss", [None, LeastSquares()], ids=["transport", "least squares"])
def test_the_steps_lead_to_the_minimum_of_every_tied_sample(loss):
    problem, components, ties, values = tied_problem((3, 5), (1,), 1, 2.0, loss)
    a, _ = project(problem.data, problem.loss, components, Stopping(3000, 0), ties)
    best = values(a)
    for i in range(3):

        def value(log_row, i=i):
            rows = a.copy()
            rows[i] = np.exp(log_row)
            return values(rows)[i]

        found = minimize(value, np.log(a[i] + 1e-3), method="Nelder-Mead", options={"maxfev": 600})
        assert best[i] <= found.fun + 1e-6 * abs(found.fun)


def test_stopping_rule_counts_the_ties():
    problem, components, ties, values = tied_problem((4, 5), (1,), 2, 5.0)
    tol = 1e-4
    stopped, unsettled = project(problem.data, problem.loss, components, Stopping(500, tol), ties)
    assert unsettled == 0
    steps = steps_of_new_samples(problem.data, problem.loss, components, 60, ties)
    arrived = np.array([arrived_at(going, tol) for going in steps])
    for i in range(4):
        assert arrived[:, i].any()
        np.testing.assert_allclose(stopped[i], steps[np.argmax(arrived[:, i])].past[i], rtol=1e-9)
    best = values(project(problem.data, problem.loss, components, Stopping(5000, 0), ties)[0])
    sizes = problem.data.dense_block.values.sum(axis=1)
    assert (values(stopped) - best <= tol * np.maximum(np.abs(best), sizes)).all()


# --- transform ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", [*METRICS, "auto"])
def test_tied_samples_are_independent_of_each_other(digits, metric):
    model = small(graph=KNNGraph(metric=metric, weight="self-tuning")).fit(digits[0][:80])
    new = digits[0][80:100]
    together = model.transform(new)
    one_by_one = np.concatenate([model.transform(new[i : i + 1]) for i in range(20)])
    np.testing.assert_allclose(one_by_one, together, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("method", [GNMF, GNCP, SDNMF, GWNTF])
def test_a_heavy_graph_puts_new_samples_at_the_mean_of_their_neighbours(digits, method):
    X = digits[0][:80]
    model = method(4, max_iter=40, tol=0, graph_reg=1e9, random_state=0).fit(X)
    nearest = NearestNeighbors(n_neighbors=5).fit(X.reshape(80, -1))
    index = nearest.kneighbors(digits[0][80:90].reshape(10, -1), return_distance=False)
    means = model.embedding_[index].mean(axis=1)  # the samples have norm one
    np.testing.assert_allclose(model.transform(digits[0][80:90]), means, rtol=1e-4, atol=1e-6)


def ready(model, X):
    """The same model with its graph ready, which cannot be extended to new samples."""
    return small(**{**model.get_params(deep=False), "graph": model.graph_}).fit(X)


def test_a_ready_graph_is_not_extended_and_transform_says_so(digits):
    X, new = digits[0][:60], digits[0][60:70]
    tied = small().fit(X)
    plain = ready(tied, X)
    np.testing.assert_array_equal(tied.embedding_, plain.embedding_)
    with pytest.warns(GraphNotExtendedWarning, match="not comparable") as told:
        alone = plain.transform(new)
    assert len(told) == 1
    assert told[0].filename == __file__
    assert not np.allclose(tied.transform(new), alone, rtol=1e-2)
    plain.score(new)


def test_without_a_graph_transform_has_no_ties_and_keeps_no_samples(digits):
    X, new = digits[0][:60], digits[0][60:70]
    for model in (small(graph_reg=0), small(graph_reg=0, graph=small().fit(X).graph_)):
        model.fit(X).transform(new)
        assert model._training is None


def test_new_and_training_samples_are_comparable_by_default(digits):
    """A sample of the fit that comes again as a new one has nearly the embedding of the fit."""
    X = digits[0][:200]
    for method in (GWNTF, GNMF, GNCP):
        model = method(20, random_state=0)
        Z = model.fit_transform(X)
        apart = np.linalg.norm(model.transform(X) - Z, axis=1) / np.linalg.norm(Z, axis=1)
        assert np.median(apart) < 0.1


def test_the_default_embedding_classifies_new_digits():
    """400 digits to train, 200 to test: scikit-learn's NMF, also at rank 20, is right for about two thirds."""
    X, y = shuffle(*load_digits_tensor(), random_state=0)
    pipeline = make_pipeline(GWNTF(20, random_state=0), LogisticRegression(max_iter=5000))
    assert pipeline.fit(X[:400], y[:400]).score(X[400:600], y[400:600]) > 0.85


@pytest.mark.parametrize("weight", ["binary", "cosine", "self-tuning"])
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_sparse_samples_are_tied_as_dense_ones(metric, weight):
    rng = np.random.default_rng(0)
    X = rng.random((40, 12)) * (rng.random((40, 12)) < 0.6)  # few zeros: no two samples are as near as two others
    training, new = X[:30], X[30:]
    graph = KNNGraph(3, metric=metric, weight=weight)
    options = {"costs": [None, None], "graph": graph, "graph_reg": 1.0, "max_iter": 5, "tol": 0, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DisconnectedGraphWarning)
        dense = GWNTF(3, **options).fit(training)
        model = GWNTF(3, **options).fit(csr_array(training))
    expected = dense.transform(new)
    for one, given in ((model, csr_array(new)), (model, new), (dense, csr_array(new))):
        np.testing.assert_allclose(one.transform(given), expected, rtol=1e-9, atol=1e-12)


def test_samples_with_holes_are_compared_in_memory_only(digits):
    X = digits[0][:30].reshape(30, 64).copy()
    X[0, 0] = np.nan
    model = GWNTF(3, missing="ignore", costs=[None, None], max_iter=3, tol=0, random_state=0).fit(X)
    with pytest.raises(InputError, match="sparse data after a fit with missing entries"):
        model.transform(csr_array(X[1:3]))


def test_extension_survives_pickling_and_both_engines_agree(digits):
    X, new = digits[0][:60].astype(np.float32), digits[0][60:70].astype(np.float32)
    model = small(graph_reg=4e4, graph=KNNGraph(weight="self-tuning")).fit(X)
    Z = model.transform(new)
    assert Z.dtype == np.float32
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).transform(new), Z)  # noqa: S301
    np.testing.assert_allclose(model.set_params(engine="numpy").transform(new), Z, rtol=1e-3, atol=1e-5)


def test_extension_with_missing_entries(digits):
    X = digits[0][:80].copy()
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    model = small(missing="ignore").fit(X[:60])
    assert np.isfinite(model.transform(X[60:])).all()
    complete = small(missing="ignore", graph=KNNGraph(metric="gradient")).fit(digits[0][:60])
    with pytest.raises(InputError, match="metric: got"):
        complete.transform(X[60:])


def test_a_metric_must_return_rows_of_one_length(digits):
    model = small(graph=KNNGraph(metric=lambda samples: samples.reshape(len(samples), -1)[:, : len(samples)]))
    model.fit(digits[0][:40])
    with pytest.raises(InputError, match="metric: got"):
        model.transform(digits[0][40:45])


def test_fits_of_many_seeds_embed_new_samples_as_single_fits_do(digits):
    X, new = digits[0][:60], digits[0][60:80]
    for model in fit_many(small(), X, [0, 1]):
        single = small(random_state=model.random_state).fit(X)
        np.testing.assert_array_equal(model.transform(new), single.transform(new))


# --- data frames ----------------------------------------------------------------------------------------

ROWS = np.random.default_rng(0).random((9, 6))
NAMES, INDEX = list("abcdef"), [f"s{i}" for i in range(9)]
METHODS = ["reconstruct", "impute", "fit_impute"]


def on_rows(kind=NMF, **params):
    return kind(2, missing="ignore", max_iter=5, tol=0, random_state=0, **params)


def holes():
    X = ROWS.copy()
    X[2, 3] = np.nan
    return X


@pytest.mark.parametrize("kind", [NMF, GWNTF])
@pytest.mark.parametrize("method", METHODS)
def test_a_frame_comes_back_as_a_frame(kind, method):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(holes(), columns=NAMES, index=INDEX)
    found = getattr(on_rows(kind).fit(frame), method)(frame)
    expected = getattr(on_rows(kind).fit(holes()), method)(holes())
    pd.testing.assert_frame_equal(found, pd.DataFrame(expected, columns=NAMES, index=INDEX))
    numbered = frame.set_axis(range(10, 16), axis=1)
    assert list(getattr(on_rows(kind).fit(numbered), method)(numbered).columns) == list(range(10, 16))


@pytest.mark.parametrize("method", METHODS)
def test_set_output_is_followed_where_a_sample_is_a_row(method):
    pd = pytest.importorskip("pandas")
    found = getattr(on_rows().set_output(transform="pandas").fit(ROWS), method)(holes())
    expected = getattr(on_rows().fit(ROWS), method)(holes())
    assert type(expected) is np.ndarray
    pd.testing.assert_frame_equal(found, pd.DataFrame(expected))
    tensors = ROWS.reshape(9, 2, 3)
    assert getattr(on_rows().set_output(transform="pandas").fit(tensors), method)(tensors).shape == (9, 2, 3)


def test_the_inverse_of_a_frame_has_the_names_of_the_features():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(ROWS, columns=NAMES, index=INDEX)
    model = on_rows().fit(frame)
    expected = model.embedding_ @ model.components_
    assert type(model.inverse_transform(model.embedding_)) is np.ndarray
    for Z in (
        pd.DataFrame(model.embedding_, index=INDEX),
        on_rows().set_output(transform="pandas").fit_transform(frame),
    ):
        pd.testing.assert_frame_equal(model.inverse_transform(Z), pd.DataFrame(expected, columns=NAMES, index=INDEX))
    again = model.set_output(transform="pandas").inverse_transform(model.embedding_)
    pd.testing.assert_frame_equal(again, pd.DataFrame(expected, columns=NAMES))


@pytest.mark.parametrize("method", METHODS)
def test_frames_of_polars_are_made_by_scikit_learn_too(method):
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(holes(), schema=NAMES)
    expected = getattr(on_rows().fit(holes()), method)(holes())
    for model in (on_rows().fit(frame), on_rows().set_output(transform="polars").fit(frame)):
        found = getattr(model, method)(frame)
        assert found.columns == NAMES
        np.testing.assert_array_equal(found.to_numpy(), expected)
