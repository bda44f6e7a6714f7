"""Tables: description, runs, cache, summary, command and report."""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.cluster import SpectralClustering

from gwntf import GNMF, DataError, GwntfError, InputError, KNNGraph, TensorClustering
from gwntf.cli import main
from gwntf.datasets import load_digits_tensor
from gwntf.evaluation import SCORES, clustering_scores
from gwntf.experiments import Run, find_table, load_table, run_table, summarise
from gwntf.experiments import runner as runner_module
from gwntf.experiments import runs as runs_module
from gwntf.experiments.runner import first_pictures
from gwntf.experiments.runs import do_run, load_setting

TOML = """
title = "small"
dataset = "digits"
runs = 2
kmeans_starts = 2
score_at = [1, 3]

[defaults]
max_iter = 3
tol = 0
dtype = "float32"

[[method]]
name = "k-means"
estimator = "KMeans"
expected = { ACC = 50.0, NMI = 60.0, MI = 61.0, Purity = 62.0 }

[[method]]
name = "spectral"
estimator = "SpectralClustering"

[[method]]
name = "NMF"

[[method]]
name = "GWNTF"
params = { costs = ["none", "grid", "grid"], graph_reg = 5, graph = { weight = "self-tuning" } }
assign_labels = "discretize"
"""


@pytest.fixture
def few_digits(monkeypatch):
    X, y = load_digits_tensor()
    monkeypatch.setattr(runs_module, "load_digits_tensor", lambda: (X[:150], y[:150]))


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(TOML)
    return load_table(path)


def test_the_papers_tables_are_complete():
    printed = {}
    for name in ("coil20", "pie_pose27"):
        table = load_table(find_table(name))
        assert [method.name for method in table.methods] == [
            "k-means",
            "spectral clustering",
            "NMF",
            "GNMF",
            "SDNMF",
            "NCP",
            "GNCP",
            "GWNTF",
        ]
        assert table.runs == 50
        ours = [method for method in table.methods if method.name != "spectral clustering"]
        assert all(set(method.expected) == set(SCORES) for method in ours)
        iterations = {method.params["max_iter"] for method in table.methods if method.params}
        assert iterations == {100}
        printed[name] = {method.name: tuple(method.expected.values()) for method in ours}
    assert printed["coil20"] == {
        "k-means": (54.03, 72.54, 70.48, 57.99),
        "NMF": (57.92, 70.93, 69.42, 61.53),
        "GNMF": (73.89, 87.47, 85.84, 78.68),
        "SDNMF": (78.82, 87.34, 86.62, 81.18),
        "NCP": (64.30, 74.60, 73.92, 67.26),
        "GNCP": (78.14, 88.97, 87.84, 81.90),
        "GWNTF": (78.23, 90.52, 88.90, 82.67),
    }
    assert printed["pie_pose27"] == {
        "k-means": (24.58, 49.33, 48.34, 26.75),
        "NMF": (29.20, 56.21, 55.38, 31.34),
        "GNMF": (77.38, 92.49, 91.25, 81.90),
        "SDNMF": (74.23, 91.30, 89.73, 79.94),
        "NCP": (34.26, 59.42, 58.41, 36.90),
        "GNCP": (76.01, 92.25, 90.98, 81.42),
        "GWNTF": (78.26, 92.97, 91.69, 82.78),
    }


def test_runs_are_cached_one_file_each_and_resumed(table, tmp_path, few_digits, monkeypatch):
    cache = tmp_path / "cache"
    first = run_table(table, cache=cache, jobs=1)
    assert len(list(cache.glob("*.json"))) == len(first) == 8
    done = []
    original = do_run
    monkeypatch.setattr(runner_module, "do_run", lambda run, *rest: done.append(run) or original(run, *rest))
    lost = sorted(cache.glob("*NMF*001.json"))[0]
    lost.unlink()
    seen = []
    second = run_table(table, cache=cache, jobs=1, on_result=seen.append)
    assert [(run.method.name, run.seed) for run in done] == [("NMF", 1)]
    assert lost.exists()
    assert len(seen) == 8
    for a, b in zip(first, second, strict=True):
        assert a.scores == b.scores


def test_on_a_device_all_seeds_of_a_method_are_fitted_together_with_the_same_result(
    table, tmp_path, few_digits, monkeypatch
):
    pytest.importorskip("torch", reason="torch is not installed")
    fitted = []
    original = runner_module.fit_many
    monkeypatch.setattr(runner_module, "fit_many", lambda *work: fitted.append(work[2]) or original(*work))
    table = replace(table, score_at=())
    together = run_table(table, cache=tmp_path / "a", engine="torch", device="cpu", jobs=1)
    alone = run_table(table, cache=tmp_path / "b", engine="torch", jobs=1)
    assert all(len(seeds) == 2 for seeds in fitted)
    assert len(fitted) == len({run.method for run in together} - {"k-means", "spectral"})
    for a, b in zip(together, alone, strict=True):
        assert (a.method, a.seed, a.scores, a.objective) == (b.method, b.seed, b.scores, b.objective)
    assert {run.environment.get("device") for run in together} <= {"cpu", None}


def test_more_runs_only_add_to_the_cache(table, tmp_path, few_digits):
    cache = tmp_path / "cache"
    run_table(table, runs=1, cache=cache, jobs=1)
    before = {path: path.stat().st_mtime_ns for path in cache.glob("*.json")}
    run_table(table, runs=2, cache=cache, jobs=1)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert len(list(cache.glob("*.json"))) == 8


def test_processes_give_the_results_of_one(table, tmp_path, few_digits):
    alone = run_table(table, cache=tmp_path / "one", jobs=1)
    together = run_table(table, cache=tmp_path / "two", jobs=2)
    for a, b in zip(alone, together, strict=True):
        assert (a.method, a.seed) == (b.method, b.seed)
        assert a.scores == pytest.approx(b.scores)


def test_every_setting_has_a_file_of_its_own(table):
    method = table.methods[3]
    keys = {
        Run("digits", method, 2, (1,), 0).key,
        Run("digits", method, 2, (1,), 1).key,
        Run("digits", method, 3, (1,), 0).key,
        Run("coil20", method, 2, (1,), 0).key,
        Run("digits", type(method)(method.name, "GWNTF", {"graph_reg": 1}, {}), 2, (1,), 0).key,
        Run("digits", replace(method, assign_labels="kmeans"), 2, (1,), 0).key,
        Run("digits", replace(method, refine_labels=True), 2, (1,), 0).key,
        Run("digits", replace(method, params={**method.params, "graph": {"n_neighbors": 6}}), 2, (1,), 0).key,
        Run("digits", replace(method, params={**method.params, "transport": {"max_iter": 3}}), 2, (1,), 0).key,
        Run("digits", table.methods[1], 2, (1,), 0).key,
        Run("digits", replace(table.methods[1], params={"graph": {"n_neighbors": 6}}), 2, (1,), 0).key,
    }
    assert len(keys) == 11
    spelled = replace(method, params={**method.params, "transport": {"max_iter": "auto"}})  # the default
    assert Run("digits", spelled, 2, (1,), 0).key == Run("digits", method, 2, (1,), 0).key


def test_a_corrupt_cache_file_is_named(table, tmp_path, few_digits):
    cache = tmp_path / "cache"
    run_table(table, runs=1, cache=cache, jobs=1)
    spoilt = next(cache.glob("*KMeans*.json"))
    spoilt.write_text("{")
    with pytest.raises(DataError, match=f"{spoilt.name}.*remove it and run again"):
        run_table(table, runs=1, cache=cache, jobs=1)


def test_runs_share_graphs_and_costs(table, few_digits):
    setting = load_setting("digits", table.methods)
    assert set(setting.graphs) == {(5, "binary", "cosine", "l2"), (5, "self-tuning", "cosine", "l2")}
    assert setting.sample_cost.shape == (150, 150)


def test_spectral_clustering_is_scikit_learns_on_the_shared_graph(table, tmp_path, few_digits):
    result = run_table(table.only(["spectral"]), runs=1, cache=tmp_path, jobs=1)[0]
    setting = load_setting("digits", table.methods)
    graph = setting.graphs[(5, "binary", "cosine", "l2")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels = SpectralClustering(10, affinity="precomputed", assign_labels="discretize", random_state=0).fit_predict(
            graph
        )
    assert result.scores == clustering_scores(setting.y, labels)


def test_scores_on_the_way_end_in_the_final_score(table, tmp_path, few_digits):
    results = run_table(table.only(["GWNTF"]), runs=1, cache=tmp_path, jobs=1)
    assert list(results[0].on_the_way) == ["1", "3"]
    assert results[0].on_the_way["3"] == results[0].scores


def test_summary_is_mean_deviation_and_difference(table, tmp_path, few_digits):
    results = run_table(table, cache=tmp_path, jobs=1)
    summary = summarise(table, results)
    scores = [100 * result.scores["NMI"] for result in results if result.method == "k-means"]
    cell = summary.rows["k-means"]["NMI"]
    assert math.isclose(cell.mean, np.mean(scores))
    assert math.isclose(cell.deviation, np.std(scores, ddof=1))
    assert math.isclose(cell.difference, np.mean(scores) - 60.0)
    assert summary.rows["NMF"]["NMI"].difference is None
    means = {method: row["ACC"].mean for method, row in summary.rows.items()}
    assert summary.best("ACC") == max(means, key=means.get)
    assert f"**{max(means.values()):.1f}**" in summary.to_markdown()
    content = json.loads(json.dumps(summary.to_json()))
    assert content["methods"]["GWNTF"]["params"]["graph_reg"] == 5
    assert content["methods"]["GWNTF"]["on_the_way"]["ACC"][0][0] == 1
    assert {"gwntf", "numpy", "python"} <= set(content["environment"])


def test_pictures_are_kept_of_the_first_run(table, tmp_path, few_digits):
    run_table(table, runs=2, cache=tmp_path, jobs=1)
    pictures = first_pictures(table, tmp_path)
    assert set(pictures) == {"NMF", "GWNTF"}
    assert pictures["NMF"]["components"].shape == (10, 64)
    assert pictures["NMF"]["reconstructions"].shape == (10, 64)
    assert len(list(tmp_path.glob("*.npz"))) == 2


def test_command_writes_json_markdown_and_html(table, tmp_path, few_digits, capsys):
    output = tmp_path / "out"
    path = str(tmp_path / "small.toml")
    assert main(["reproduce", path, "--runs", "1", "--jobs", "1", "--methods", "NMF", "GWNTF", "-o", str(output)]) == 0
    printed = capsys.readouterr()
    assert "GWNTF" in printed.out
    assert "k-means" not in printed.out
    assert "100%" in printed.err
    content = json.loads((output / "small-selected.json").read_text())
    assert set(content["methods"]) == {"NMF", "GWNTF"}
    assert (output / "small-selected.md").read_text().startswith("# small")
    html = (output / "small-selected.html").read_text()
    assert html.count("data:image/png;base64,") == 5
    assert (output / "small-selected.png").stat().st_size > 10_000
    assert not (output / "small.json").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dataset = ", "is not TOML"),
        ("title = 'x'", "no \\['dataset', 'method'\\]"),
        ("dataset = 'mnist'\n[[method]]\nname = 'NMF'", "dataset: got 'mnist'"),
        ("dataset = 'digits'\ncolour = 1\n[[method]]\nname = 'NMF'", "unknown \\['colour'\\]"),
        ("dataset = 'digits'\n[[method]]\nname = 'SVD'", "estimator: got 'SVD'"),
        ("dataset = 'digits'\n[[method]]\nname = 'NMF'\nexpected = { F1 = 3 }", "unknown \\['F1'\\]"),
        ("dataset = 'digits'\nruns = '3'\n[[method]]\nname = 'NMF'", "runs: got '3'"),
        ("dataset = 'digits'\nruns = 0\n[[method]]\nname = 'NMF'", "runs: got 0"),
        ("dataset = 'digits'\nscore_at = 3\n[[method]]\nname = 'NMF'", "score_at: got 3"),
        ("dataset = 'digits'\n[method]\nname = 'NMF'", r"one or more \[\[method\]\] tables"),
        ("dataset = 'digits'\nmethod = []", r"one or more \[\[method\]\] tables"),
        ("dataset = 'digits'\n[[method]]\nname = 'NMF'\n[[method]]\nname = 'NMF'", "the name 'NMF' 2 times"),
        (
            "dataset = 'digits'\n[[method]]\nname = 'NMF'\nparams = { grap_reg = 3 }",
            "method NMF: params.*grap_reg",
        ),
        (
            "dataset = 'digits'\n[[method]]\nname = 'NMF'\nparams = { max_iter = 0 }",
            "method NMF: params.*max_iter",
        ),
        (
            "dataset = 'digits'\n[[method]]\nname = 'NMF'\nparams = { random_state = 3 }",
            "random_state: got a value",
        ),
        (
            "dataset = 'digits'\n[[method]]\nname = 'GNMF'\nparams = { graph = { neighbours = 3 } }",
            "method GNMF: params.*neighbours",
        ),
        (
            "dataset = 'digits'\n[[method]]\nname = 'GNMF'\nparams = { graph = { n_neighbors = 0 } }",
            "method GNMF: params.*n_neighbors: got 0",
        ),
        (
            "dataset = 'digits'\n[[method]]\nname = 'SDNMF'\nparams = { transport = { tol = -1 } }",
            "method SDNMF: params.*transport.tol: got -1",
        ),
        (
            "dataset = 'digits'\n[[method]]\nname = 'GNMF'\nparams = { graph = [[0, 1], [1, 0]] }",
            "graph: got .*; expected an inline table",
        ),
        (
            "dataset = 'digits'\n[[method]]\nname = 'SpectralClustering'\nparams = { graph = 'none' }",
            "graph: got None; expected an inline table",
        ),
        (
            "dataset = 'digits'\n[[method]]\nname = 'NMF'\nassign_labels = 'median'",
            "assign_labels: got 'median'; expected one of kmeans",
        ),
        (
            "dataset = 'digits'\n[[method]]\nname = 'GNMF'\nrefine_labels = 1",
            "refine_labels: got 1; expected true or false",
        ),
        (
            "dataset = 'digits'\n[[method]]\nname = 'NMF'\nrefine_labels = true",
            "refine_labels: got true without a graph",
        ),
        (
            "dataset = 'digits'\n[[method]]\nname = 'KMeans'\nassign_labels = 'discretize'",
            "got assign_labels for KMeans",
        ),
        (
            "dataset = 'digits'\n[[method]]\nname = 'KMeans'\nparams = { bananas = 1 }",
            "unknown \\['bananas'\\]",
        ),
        (
            "dataset = 'digits'\nscore_at = [1]\n[[method]]\nname = 'NMF'\nparams = { n_init = 2 }",
            "n_init: got 2; expected 1 where score_at",
        ),
    ],
)
def test_bad_tables_are_refused(text, message, tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises((DataError, InputError), match=message):
        load_table(path)


def test_equal_settings_under_two_names_are_two_rows(tmp_path, few_digits):
    path = tmp_path / "twins.toml"
    rows = "".join(f"[[method]]\nname = '{name}'\nestimator = 'KMeans'\n" for name in "AB")
    path.write_text(f"dataset = 'digits'\nruns = 2\n{rows}")
    table = load_table(path)
    results = run_table(table, cache=tmp_path / "cache", jobs=1)
    assert [(result.method, result.seed) for result in results] == [("A", 0), ("A", 1), ("B", 0), ("B", 1)]
    summary = summarise(table, results)
    assert summary.rows["A"] == summary.rows["B"]
    assert len(list((tmp_path / "cache").glob("*.json"))) == 2


def test_scores_on_the_way_of_fits_that_stop_early(tmp_path, few_digits):
    """Seeds that stop at different iterations keep their last score from there on."""
    path = tmp_path / "early.toml"
    path.write_text(
        "dataset = 'digits'\nruns = 3\nscore_at = [1, 10, 400]\n[[method]]\nname = 'NMF'\nparams = { tol = 1e-3 }"
    )
    table = load_table(path)
    results = run_table(table, cache=tmp_path / "cache", jobs=1)
    assert all(result.n_iter < 400 for result in results)
    assert all(result.on_the_way["400"] == result.scores for result in results)
    assert [place for place, _ in summarise(table, results).on_the_way["NMF"]["ACC"]] == [1, 10, 400]


def test_another_protocol_is_another_file(table, monkeypatch):
    run = Run("digits", table.methods[2], 2, (1,), 0)
    before = run.key
    monkeypatch.setattr(runs_module, "PROTOCOL", runs_module.PROTOCOL + 1)
    assert run.key != before


def test_errors_inside_a_run_name_it(table, tmp_path, few_digits, monkeypatch):
    monkeypatch.setattr(runs_module, "assign", lambda *rest: 1 / 0)
    with pytest.raises(GwntfError, match="run 0 of NMF failed: ZeroDivisionError"):
        run_table(table.only(["NMF"]), runs=1, cache=tmp_path, jobs=1)


def test_too_few_components_for_the_labelling_are_refused_before_work(tmp_path, few_digits):
    path = tmp_path / "few.toml"
    path.write_text(
        "dataset = 'digits'\n[[method]]\nname = 'NMF'\nparams = { n_components = 4 }\nassign_labels = 'discretize'"
    )
    with pytest.raises(InputError, match="n_clusters: got 10; expected at most n_components=4"):
        run_table(load_table(path), runs=1, cache=tmp_path / "cache", jobs=1)


def test_runs_use_the_graph_that_the_estimator_would_build(tmp_path, few_digits):
    path = tmp_path / "graph.toml"
    path.write_text(
        "dataset = 'digits'\n[[method]]\nname = 'GNMF'\n"
        "params = { graph = { metric = 'euclidean', n_neighbors = 3 } }\n[defaults]\nmax_iter = 1\ntol = 0\n"
    )
    table = load_table(path)
    setting = load_setting("digits", table.methods)
    own = GNMF(10, graph=KNNGraph(3, metric="euclidean"), max_iter=1, tol=0).fit(setting.X).graph_
    assert abs(setting.graphs[(3, "binary", "euclidean", "l2")] - own).sum() == 0


def test_the_row_of_the_clusterer_gives_its_labels(tmp_path, few_digits):
    """The shared graph, start, fit and labels of a run are those of TensorClustering."""
    table = load_table(find_table("clustering_digits")).only(["TensorClustering"])
    result = run_table(table, runs=1, cache=tmp_path, jobs=1)[0]
    X, y = runs_module.load_digits_tensor()
    clusterer = TensorClustering(10, dtype="float32", random_state=0).fit(X)
    assert result.scores == clustering_scores(y, clusterer.labels_)
    # Graphs in float64 and float32: F may pass the threshold of the adaptive scalings one iteration sooner or later
    assert result.objective == pytest.approx(clusterer.model_.objective_, rel=1e-2)


def test_a_method_may_have_no_graph(tmp_path, few_digits):
    path = tmp_path / "none.toml"
    path.write_text(
        "dataset = 'digits'\n[[method]]\nname = 'GNMF'\nparams = { graph = 'none', max_iter = 2, tol = 0 }\n"
    )
    table = load_table(path)
    setting = load_setting("digits", table.methods)
    assert not setting.graphs
    result = run_table(table, runs=1, cache=tmp_path / "cache", jobs=1)[0]
    assert result.objective == GNMF(10, graph=None, max_iter=2, tol=0, random_state=0).fit(setting.X).objective_


def test_lost_pictures_are_made_again(table, tmp_path, few_digits):
    run_table(table, runs=1, cache=tmp_path, jobs=1)
    lost = next(tmp_path.glob("*NMF*.npz"))
    lost.unlink()
    run_table(table, runs=1, cache=tmp_path, jobs=1)
    assert lost.exists()
    lost.write_bytes(b"PK")
    with pytest.raises(DataError, match="cannot be read"):
        first_pictures(table, tmp_path)


def test_two_tables_of_one_name_are_refused(tmp_path, capsys):
    paths = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.toml").write_text(TOML)
        paths.append(str(tmp_path / folder / "same.toml"))
    assert main(["reproduce", *paths, "-o", str(tmp_path / "out")]) == 1
    assert "tables of different names" in capsys.readouterr().err


def test_unknown_tables_methods_and_numbers_are_refused(capsys, table):
    assert main(["reproduce", "imagenet"]) == 1
    assert "table: got 'imagenet'; expected a path to a TOML file, or one of" in capsys.readouterr().err
    assert main(["reproduce", "nowhere.toml"]) == 1
    assert "there is no table nowhere.toml" in capsys.readouterr().err
    with pytest.raises(InputError, match="methods: got SVD; expected some of k-means, spectral, NMF, GWNTF"):
        table.only(["SVD"])
    with pytest.raises(SystemExit):
        main(["reproduce", "coil20", "--runs", "0"])
    assert "expected a whole number of at least 1" in capsys.readouterr().err
