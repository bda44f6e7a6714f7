"""Choosing the rank by stability, and the graph weight and the entropy by grid search."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline

from gwntf import GWNTF, NCP, NMF, InputError
from gwntf.datasets import make_kruskal_tensor
from gwntf.model_selection import StabilityCurve, matched_cosine, stability_curve
from gwntf.plots import plot_stability

mpl.use("Agg")

KL = {"graph_reg": 0, "costs": (None, None, None), "max_iter": 300, "tol": 1e-6, "n_init": 3}


def curve_of(means, ranks=None):
    """A curve with these mean agreements of components."""
    agreement = np.array(means)[:, None] + np.array([-0.01, 0.01])
    other = np.zeros_like(agreement)
    return StabilityCurve(np.array(ranks or range(1, len(means) + 1)), agreement, other, other, other)


def test_matched_cosine_is_the_best_of_all_matchings(rng):
    first, second = rng.random((4, 7)), rng.random((4, 7))
    best = max(
        np.mean(
            [a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in zip(first, second[list(order)], strict=True)]
        )
        for order in permutations(range(4))
    )
    np.testing.assert_allclose(matched_cosine(first, second), best)


def test_matched_cosine_sees_neither_order_nor_scale_and_counts_empty_components_as_zero(rng):
    components = rng.random((4, 7))
    np.testing.assert_allclose(matched_cosine(components, 3 * components[[2, 0, 3, 1]]), 1)
    emptied = components * np.array([1, 1, 1, 0])[:, None]
    assert matched_cosine(components, emptied) == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("means", "ranks", "best"),
    [
        ([1, 0.8, 0.99, 0.975, 0.7, 0.98], None, 4),
        ([1, 0.5, 0.4], None, 2),
        ([0.9, 0.9, 0.9], None, 3),
        ([1.0], [1], 1),
        ([0.9, 0.84], [3, 7], 3),
    ],
)
def test_best_rank_is_the_last_before_the_agreement_falls(means, ranks, best):
    assert curve_of(means, ranks).best_rank == best


@pytest.mark.parametrize("method", [NCP(max_iter=300, tol=1e-6, n_init=3), GWNTF(**KL)], ids=["NCP", "KL"])
@pytest.mark.parametrize("true_rank", [3, 4])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_agreement_falls_above_the_rank_of_the_data(method, true_rank):
    X, _ = make_kruskal_tensor((60, 10, 8), true_rank, noise=0.1, random_state=1)
    ranks = [true_rank - 1, true_rank, true_rank + 1, true_rank + 2]
    curve = stability_curve(method, X, ranks, n_seeds=5, random_state=0)
    agreement = curve.component_agreement.mean(axis=1)
    assert curve.best_rank == true_rank
    assert agreement[1] > 0.999
    assert agreement[2:].max() < 0.96
    errors = curve.reconstruction_err.mean(axis=1)
    assert errors[0] > 1.5 * errors[1]


@pytest.mark.parametrize("clusters", [2, None])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_curve_has_the_fits_of_its_seeds(clusters):
    """Every figure again from fits made here, with the seeds drawn from random_state."""
    X, _ = make_kruskal_tensor((30, 6, 5), 3, noise=0.2, random_state=0)
    model = NCP(max_iter=30, tol=0)
    curve = stability_curve(model, X, [3, 2], n_clusters=clusters, n_seeds=3, random_state=5)
    seeds = np.random.RandomState(5).randint(np.iinfo(np.int32).max, size=3)
    np.testing.assert_array_equal(curve.ranks, [2, 3])
    for place, rank in enumerate((2, 3)):
        fits = [NCP(rank, max_iter=30, tol=0, random_state=int(seed)).fit(X) for seed in seeds]
        labels = [
            KMeans(clusters or rank, n_init=20, random_state=int(seed)).fit_predict(fit.factors_[0])
            for seed, fit in zip(seeds, fits, strict=True)
        ]
        np.testing.assert_array_equal(curve.objective[place], [fit.objective_ for fit in fits])
        np.testing.assert_array_equal(curve.reconstruction_err[place], [fit.reconstruction_err_ for fit in fits])
        for pair, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):
            rand = adjusted_rand_score(labels[i], labels[j])
            assert curve.label_agreement[place, pair] == pytest.approx(rand)
            cosine = matched_cosine(fits[i].components_, fits[j].components_)
            assert curve.component_agreement[place, pair] == pytest.approx(cosine)
    assert model.n_components == 10
    assert not hasattr(model, "factors_")


def test_number_of_jobs_changes_nothing():
    X, _ = make_kruskal_tensor((20, 5, 4), 2, random_state=0)
    one, two = (
        stability_curve(NMF(max_iter=20, tol=0), X, [2, 3], n_seeds=2, n_jobs=jobs, random_state=1)
        for jobs in (None, 2)
    )
    np.testing.assert_array_equal(one.component_agreement, two.component_agreement)
    np.testing.assert_array_equal(one.objective, two.objective)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"ranks": []}, "ranks"),
        ({"ranks": [2, 2]}, "ranks"),
        ({"ranks": [0, 2]}, "ranks"),
        ({"ranks": [1.5]}, "ranks"),
        ({"ranks": 3}, "ranks"),
        ({"n_seeds": 1}, "n_seeds"),
        ({"n_clusters": 0}, "n_clusters"),
        ({"n_clusters": 2.5}, "n_clusters"),
        ({"estimator": KMeans()}, "estimator"),
        ({"estimator": make_pipeline(NMF())}, "estimator"),
        ({"estimator": NMF(init="nndsvd")}, "estimator"),
    ],
)
def test_bad_input_is_named_before_any_fit(change, named):
    given = {"estimator": NMF(), "X": None, "ranks": [2], **change}
    with pytest.raises(InputError, match=named):
        stability_curve(**given)


def test_plot_shows_both_agreements_the_error_and_the_best_rank():
    rng = np.random.default_rng(0)
    curve = StabilityCurve(
        np.array([2, 3, 5]), rng.random((3, 3)), rng.random((3, 3)), rng.random((3, 3)), rng.random((3, 3))
    )
    ax = Figure().subplots()
    assert plot_stability(curve, ax=ax) is ax
    components, labels, best = ax.get_lines()
    np.testing.assert_allclose(components.get_ydata(), curve.component_agreement.mean(axis=1))
    np.testing.assert_allclose(labels.get_ydata(), curve.label_agreement.mean(axis=1))
    assert best.get_xdata()[0] == curve.best_rank
    (error,) = ax.figure.axes[1].get_lines()
    np.testing.assert_allclose(error.get_ydata(), curve.reconstruction_err.mean(axis=1))
    assert "rank" in ax.get_xlabel()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_examples_of_the_page_print_what_it_says(capsys):
    text = (Path(__file__).parents[1] / "docs" / "model_selection.md").read_text()
    blocks = [part.split("```")[0] for part in text.split("```python\n")[1:]]
    assert len(blocks) == 3
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "model_selection.md", "exec"), names)  # noqa: S102
    said = [line.split("# ")[1].strip() for line in "".join(blocks).splitlines() if line.startswith("print(")]
    assert len(said) == 3
    assert capsys.readouterr().out.splitlines() == said
