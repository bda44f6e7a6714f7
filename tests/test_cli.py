"""The command line on a user's own data: every command, what it prints, and which input it refuses."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import gwntf
from gwntf.cli import main
from gwntf.cli.output import format_duration, printable, to_json
from gwntf.cli.parser import memory_size, shape
from gwntf.data import sources
from gwntf.datasets import load_digits_tensor
from gwntf.evaluation import clustering_scores

FAST = ["--max-iter", "3", "--engine", "numpy", "-q"]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits_tensor()
    chosen = np.flatnonzero(y < 4)[:80]
    return X[chosen], y[chosen]


@pytest.fixture(scope="module")
def data_folder(tmp_path_factory, digits):
    """Digits as a folder of images, as arrays, and a factorization and a clusterer of them."""
    folder = tmp_path_factory.mktemp("data")
    X, y = digits
    for k, (image, label) in enumerate(zip(X, y, strict=True)):
        target = folder / "digits" / f"class {label}"
        target.mkdir(parents=True, exist_ok=True)
        Image.fromarray((image / 16 * 255).astype(np.uint8)).save(target / f"digit{k}.png")
    np.savez(folder / "digits.npz", X=X.reshape(len(X), 64), y=y)
    command = ["fit", str(folder / "digits"), "--rank", "4", "-o", str(folder / "m.gwntf"), *FAST]
    assert main([*command, "--graph-reg", "0.5", "--neighbors", "4"]) == 0
    command = ["cluster", str(folder / "digits"), "-o", str(folder / "c.npy"), "--model", str(folder / "c.gwntf")]
    assert main([*command, "--neighbors", "4", "--graph-reg", "100", *FAST]) == 0
    return folder


def run_json(capsys, *arguments):
    """Run a command with --json; return its document."""
    code = main([*map(str, arguments), "--json"])
    printed = capsys.readouterr().out
    document = json.loads(printed)
    assert (code == 0) != ("error" in document)
    return document


def refused(capsys, *arguments):
    """Run a command that must fail with exit code 1; return what it printed to standard error."""
    assert main([*map(str, arguments)]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("gwntf: ")
    return captured.err


# --- fit, transform, report, info --------------------------------------------------------------------------


def test_fitted_file_is_the_model_that_python_fits(data_folder, capsys):
    model = gwntf.load(data_folder / "m.gwntf")
    X = gwntf.read_data(data_folder / "digits").X
    graph = gwntf.KNNGraph(4)
    options = {"max_iter": 3, "engine": "numpy", "graph_reg": 0.5, "random_state": 0}
    ours = gwntf.GWNTF(4, graph=graph, **options)
    with pytest.warns(UserWarning, match="stopped after `max_iter`"):
        ours.fit(X)
    np.testing.assert_array_equal(model.embedding_, ours.embedding_)
    assert model.graph.n_neighbors == 4


def test_clusters_in_files_are_those_that_python_finds(data_folder, capsys):
    clusterer = gwntf.load(data_folder / "c.gwntf")
    graph = gwntf.KNNGraph(4, metric="auto", weight="self-tuning")
    options = {"graph_reg": 100, "max_iter": 3, "engine": "numpy", "random_state": 0}
    ours = gwntf.TensorClustering(4, graph=graph, **options).fit(gwntf.read_data(data_folder / "digits").X)
    np.testing.assert_array_equal(clusterer.labels_, ours.labels_)
    np.testing.assert_array_equal(np.load(data_folder / "c.npy"), ours.labels_)
    np.testing.assert_array_equal(clusterer.model_.embedding_, ours.model_.embedding_)
    assert clusterer.graph.get_params() == graph.get_params()


def test_fit_prints_its_results_as_json(data_folder, tmp_path, capsys):
    target = tmp_path / "nmf.gwntf"
    data = ["fit", data_folder / "digits.npz", "--labels", "y", "--method", "NMF", "--rank", "3"]
    document = run_json(capsys, *data, "-o", target, "--tol", "0", *FAST)
    assert document["data"]["shape"] == [80, 64]
    assert document["data"]["classes"] == 4
    assert document["model"]["method"] == "NMF"
    assert document["model"]["iterations"] == 3
    assert document["model"]["parameters"] == {
        "n_components": 3,
        "max_iter": 3,
        "tol": 0.0,
        "engine": "numpy",
        "random_state": 0,
    }
    assert gwntf.load(target).objective_ == document["model"]["objective"]


def test_the_status_of_a_fit_is_printed_once(data_folder, tmp_path, capsys):
    command = ["fit", data_folder / "digits", "--rank", "2", "-o", tmp_path / "m.gwntf", *FAST]
    assert main([*map(str, command)]) == 0
    captured = capsys.readouterr()
    assert "stopped after `max_iter`" in captured.out
    assert captured.err == ""


def test_files_beyond_memory_are_read_block_by_block(tmp_path, capsys, monkeypatch, digits):
    """The embedding is the same, and the file is never read at once."""
    monkeypatch.setattr(sources, "BLOCK_BYTES", 2**13)
    monkeypatch.setattr(sources, "MAX_IN_MEMORY_BYTES", 0)
    read, rows = sources.read, []
    monkeypatch.setattr(sources, "read", lambda X, part: rows.append(part) or read(X, part))
    np.save(tmp_path / "x.npy", digits[0])
    found = {}
    for memory in ("1M", "1k"):
        model, embedding = tmp_path / f"{memory}.gwntf", tmp_path / f"{memory}.npy"
        limit = ["--max-memory", memory]
        run_json(capsys, "fit", tmp_path / "x.npy", "--rank", 3, "--graph-reg", 0, "-o", model, *FAST, *limit)
        run_json(capsys, "transform", model, tmp_path / "x.npy", "-o", embedding, *limit)
        found[memory] = np.load(embedding)
        assert bool(rows) == (memory == "1k")
    assert max(part.stop - part.start for part in rows) == 16
    np.testing.assert_allclose(found["1k"], found["1M"], rtol=1e-9)


@pytest.mark.parametrize("ending", ["npy", "csv"])
def test_transform_writes_what_transform_returns(ending, data_folder, tmp_path, capsys):
    target = tmp_path / f"e.{ending}"
    document = run_json(capsys, "transform", data_folder / "m.gwntf", data_folder / "digits", "-o", target)
    data = gwntf.read_data(data_folder / "digits")
    with pytest.warns(UserWarning, match="far from converged"):
        expected = gwntf.load(data_folder / "m.gwntf").transform(data.X)
    assert document["shape"] == list(expected.shape)
    if ending == "npy":
        np.testing.assert_array_equal(np.load(target), expected)
        return
    rows = list(csv.reader(target.read_text().splitlines()))
    assert rows[0] == ["sample", *(f"component {k}" for k in range(4))]
    assert [row[0] for row in rows[1:]] == list(data.names)
    np.testing.assert_array_equal([[float(x) for x in row[1:]] for row in rows[1:]], expected)


def test_transform_folds_and_resizes_to_the_shape_of_the_fit(data_folder, tmp_path, capsys, digits):
    for name in ("digits", "digits.npz"):
        run_json(capsys, "transform", data_folder / "m.gwntf", data_folder / name, "-o", tmp_path / f"{name}.npy")
    by_class = np.argsort(digits[1], kind="stable")
    images, rows = (np.load(tmp_path / f"{name}.npy") for name in ("digits", "digits.npz"))
    np.testing.assert_allclose(images, rows[by_class] * 255 / 16, rtol=0.1, atol=0.02 * images.max())
    large = tmp_path / "large"
    large.mkdir()
    Image.fromarray(np.kron(digits[0][0] / 16 * 255, np.ones((3, 3))).astype(np.uint8)).save(large / "a.png")
    run_json(capsys, "transform", data_folder / "m.gwntf", large, "-o", tmp_path / "one.npy")
    one = np.load(tmp_path / "one.npy")[0]
    np.testing.assert_allclose(one / one.sum(), rows[0] / rows[0].sum(), atol=0.02)


def test_transform_predicts_clusters(data_folder, tmp_path, capsys):
    command = ["transform", data_folder / "c.gwntf", data_folder / "digits", "--predict", "-o", tmp_path / "p.npy"]
    document = run_json(capsys, *command)
    data = gwntf.read_data(data_folder / "digits")
    expected = gwntf.load(data_folder / "c.gwntf").predict(data.X)
    np.testing.assert_array_equal(np.load(tmp_path / "p.npy"), expected)
    assert document["scores"] == clustering_scores(data.labels, expected)


def test_transform_with_a_clusterer_embeds_with_its_model(data_folder, tmp_path, capsys):
    run_json(capsys, "transform", data_folder / "c.gwntf", data_folder / "digits", "-o", tmp_path / "e.npy")
    expected = gwntf.load(data_folder / "c.gwntf").model_.transform(gwntf.read_data(data_folder / "digits").X)
    np.testing.assert_array_equal(np.load(tmp_path / "e.npy"), expected)


def test_report_is_one_page_with_all_sections(data_folder, tmp_path, capsys):
    target = tmp_path / "r.html"
    run_json(capsys, "report", data_folder / "c.gwntf", "-o", target)
    bare = target.read_text()
    nmf = ["fit", data_folder / "digits", "--method", "NMF", "--rank", "6", "--max-iter", "40"]
    run_json(capsys, *nmf, "-o", tmp_path / "nmf.gwntf", "--engine", "numpy", "-q")
    run_json(capsys, "report", tmp_path / "nmf.gwntf", "--data", data_folder / "digits", "-o", target)
    full = target.read_text()
    for heading in ("Clusters", "Components", "Embedding", "Objective", "Settings"):
        assert f"<h2>{heading}</h2>" in bare
    assert "reconstructions</h2>" not in bare
    assert "<h2>Clusters</h2>" not in full
    assert "<h2>Samples and their reconstructions</h2>" in full
    assert "coloured by known class" in full
    assert "http" not in full.replace("http-equiv", "")


def test_info_on_data_and_on_models(data_folder, capsys):
    document = run_json(capsys, "info", data_folder / "digits.npz")
    X = np.load(data_folder / "digits.npz")["X"]
    assert document["data"]["zeros"] == int((X == 0).sum())
    assert (document["data"]["smallest"], document["data"]["largest"]) == (X.min(), X.max())
    assert run_json(capsys, "info", data_folder / "m.gwntf")["model"]["rank"] == 4
    assert main(["info", str(data_folder / "m.gwntf")]) == 0
    printed = capsys.readouterr().out
    assert "GWNTF of rank 4, float64" in printed
    assert "fitted to 80 samples of 8x8" in printed
    assert "graph_reg = 0.5" in printed
    assert "graph = KNNGraph(n_neighbors=4)" in printed
    assert "clusters" not in printed


def test_info_on_a_clusterer_describes_its_clusters_and_its_model(data_folder, capsys):
    clusterer = gwntf.load(data_folder / "c.gwntf")
    facts = run_json(capsys, "info", data_folder / "c.gwntf")["model"]
    assert (facts["method"], facts["clusters"], facts["rank"]) == ("TensorClustering", 4, 12)
    assert facts["reconstruction_error"] == clusterer.model_.reconstruction_err_
    assert facts["parameters"]["graph_reg"] == 100
    assert main(["info", str(data_folder / "c.gwntf")]) == 0
    printed = capsys.readouterr().out
    sizes = np.bincount(clusterer.labels_)
    metric = clusterer.graph_metric_
    assert "TensorClustering with GWNTF of rank 12, float64" in printed
    assert f"clusters   4, {sizes.min()} to {sizes.max()} samples each, graph metric {metric}" in printed


def test_info_names_entries_that_no_method_accepts(tmp_path, capsys):
    np.save(tmp_path / "x.npy", [[-1.0, np.nan], [np.inf, 2.0]])
    assert main(["info", str(tmp_path / "x.npy")]) == 0
    printed = capsys.readouterr().out
    assert "1 negative" in printed
    assert "1 infinite" in printed
    assert "--missing ignore" in printed


# --- cluster -----------------------------------------------------------------------------------------------


def test_a_folder_of_images_is_clustered_by_one_command(data_folder, tmp_path, capsys, digits):
    target = tmp_path / "clusters.csv"
    extra = ["--model", tmp_path / "c.gwntf", "--report", tmp_path / "c.html", "--engine", "numpy", "-q"]
    document = run_json(capsys, "cluster", data_folder / "digits", "-o", target, *extra)
    rows = list(csv.DictReader(target.read_text().splitlines()))
    assert [row["sample"] for row in rows] == list(gwntf.read_data(data_folder / "digits").names)
    assert document["scores"]["ACC"] > 0.9
    assert sum(document["sizes"]) == 80
    found = [int(row["cluster"]) for row in rows]
    np.testing.assert_array_equal(gwntf.load(tmp_path / "c.gwntf").labels_, found)
    assert "Compared with the known classes" in (tmp_path / "c.html").read_text()


def test_the_number_of_clusters_is_required_where_no_classes_are_known(data_folder, tmp_path, capsys):
    message = refused(capsys, "cluster", data_folder / "digits.npz", "-o", tmp_path / "c.csv")
    assert "clusters: got nothing; expected --clusters K" in message
    assert not (tmp_path / "c.csv").exists()


@pytest.fixture
def table(tmp_path, digits):
    """A CSV file with identifiers, 64 columns of numbers, and groups."""
    X, y = digits
    names = [f"a{97 - k}" for k in range(len(X))]
    lines = [",".join(["id", *(f"h{k:02d}" for k in range(64)), "group"])]
    lines += [",".join([a, *map(str, x.ravel()), f"g{b}"]) for a, x, b in zip(names, X, y, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    return tmp_path / "t.csv", names


def test_identifiers_of_a_table_are_the_first_column_of_outputs(table, tmp_path, capsys, digits):
    path, names = table
    roles = ["--id-column", "id", "--label-column", "group"]
    model, clusters, embedding = tmp_path / "m.gwntf", tmp_path / "c.csv", tmp_path / "e.csv"
    fast = ["--engine", "numpy", "-q"]
    document = run_json(capsys, "cluster", path, *roles, "-o", clusters, "--model", model, *fast)
    assert document["data"]["shape"] == [80, 64]
    assert document["data"]["classes"] == 4
    run_json(capsys, "transform", model, path, "--id-column", "0", "--columns", "h00:h63", "-o", embedding)
    for target in (clusters, embedding):
        rows = list(csv.DictReader(target.read_text().splitlines()))
        assert [row["sample"] for row in rows] == names
        assert next(iter(rows[0])) == "sample"
    expected = gwntf.load(model).labels_
    found = csv.DictReader(clusters.read_text().splitlines())
    assert [int(row["cluster"]) for row in found] == list(expected)
    message = refused(capsys, "info", path)
    assert "'a97' in column 'id', 'g0' in column 'group'" in message
    assert all(option in message for option in ("--id-column", "--label-column", "--columns"))


def test_cluster_without_a_file_prints_every_cluster(table, capsys):
    path, names = table
    command = ["cluster", path, "--id-column", "id", "--label-column", "group", "--engine", "numpy", "-q"]
    labels = np.array(run_json(capsys, *command)["labels"])
    assert main([*map(str, command)]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("cluster  ")]
    sizes = np.bincount(labels)
    order = np.argsort(-sizes, kind="stable")
    assert len(lines) == 4
    for line, k in zip(lines, order, strict=True):
        members = [names[i] for i in np.flatnonzero(labels == k)]
        assert f" {k}: {sizes[k]} samples: {', '.join(members[:6])}, ..." in line
    assert sorted(item.name for item in path.parent.iterdir()) == ["t.csv"]


# --- dry run -----------------------------------------------------------------------------------------------


DRY_RUNS = {
    "fit": (["fit", "--rank", "4"], 2000),
    "cluster": (["cluster", "-k", "4"], 10),
    "starts": (["fit", "--rank", "4", "--n-init", "3", "--max-iter", "7"], 21),
    "epochs": (["fit", "--method", "MiniBatchGWNTF", "--rank", "4"], 10),
}


@pytest.mark.parametrize(("command", "iterations"), DRY_RUNS.values(), ids=DRY_RUNS)
def test_dry_run_estimates_and_writes_nothing(command, iterations, data_folder, capsys):
    before = sorted(data_folder.rglob("*"))
    options = ["--dry-run", "--engine", "numpy", "--checkpoint", data_folder / "run.ckpt"]
    options = options[:3] if "MiniBatchGWNTF" in command else options  # which has no checkpoints
    plan = run_json(capsys, *command, data_folder / "digits", *options)["plan"]
    assert plan["most_iterations"] == iterations
    assert plan["tried_samples"] == 80
    assert plan["expected_seconds"] >= plan["seconds_per_iteration_tried"] * plan["most_iterations"] > 0
    assert plan["expected_bytes"] > 80 * 64 * 8
    assert sorted(data_folder.rglob("*")) == before


def test_dry_run_on_a_part_grows_with_the_samples(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("gwntf.cli.plan._ENTRIES", 400)
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((500, 8)))
    plan = run_json(capsys, "fit", tmp_path / "x.npy", "--method", "NMF", "--dry-run", "--engine", "numpy")["plan"]
    assert plan["tried_samples"] == 50
    assert not plan["grows_quadratically"]
    assert plan["expected_seconds"] >= 10 * plan["seconds_per_iteration_tried"] * plan["most_iterations"]
    data = ["fit", tmp_path / "x.npy", "--dry-run", "--engine", "numpy"]
    assert not run_json(capsys, *data)["plan"]["grows_quadratically"]
    assert run_json(capsys, *data, "--costs", "cosine,grid")["plan"]["grows_quadratically"]


# --- refused input ---------------------------------------------------------------------------------------


def test_bad_input_is_refused_with_advice_and_writes_nothing(data_folder, tmp_path, capsys):
    data, model = data_folder / "digits.npz", data_folder / "m.gwntf"
    np.save(tmp_path / "nan.npy", [[1.0, np.nan], [2.0, 3.0]])
    np.save(tmp_path / "negative.npy", [[1.0, -2.0], [2.0, 3.0]])
    np.save(tmp_path / "vector.npy", np.ones(4))
    np.save(tmp_path / "other.npy", np.ones((3, 5)))
    out = tmp_path / "o.gwntf"
    for command, message in [
        (["fit", data], "output: got nothing; expected -o MODEL.gwntf"),
        (["fit", data, "-o", tmp_path / "o.txt"], "a file that ends in .gwntf"),
        (["fit", data, "-o", tmp_path / "no" / "o.gwntf"], "in a folder that exists"),
        (["fit", tmp_path / "absent.npy", "-o", out], "absent.npy does not exist"),
        (["fit", tmp_path / "nan.npy", "-o", out], "1 NaN entries; expected numbers, or --missing ignore"),
        (["fit", tmp_path / "negative.npy", "-o", out], "1 negative entries (smallest -2)"),
        (["fit", tmp_path / "vector.npy", "-o", out], "an array of shape 4"),
        (
            ["fit", data, "--method", "NMF", "--graph-reg", "1", "-o", out],
            "--graph-reg: got 1.0; expected no value: NMF",
        ),
        (["fit", data, "--method", "SWIFT", "--neighbors", "3", "-o", out], "--neighbors: got 3; expected no value"),
        (["fit", data, "--method", "NMF", "--neighbors", "3", "-o", out], "--neighbors: got 3; expected no value"),
        (["fit", data, "--checkpoint", tmp_path / "no" / "c", "-o", out], "checkpoint: got "),
        (["cluster", data, "-k", "4", "--checkpoint", tmp_path], "checkpoint: got "),
        (
            ["fit", data, "--method", "MiniBatchGWNTF", "--checkpoint", tmp_path / "c", "-o", out],
            "MiniBatchGWNTF has no checkpoints",
        ),
        (["cluster", data, "-k", "81"], "n_clusters"),
        (["transform", model, data, "--predict", "-o", tmp_path / "e.npy"], "m.gwntf: got a GWNTF model, which has no"),
        (["fit", data, "--method", "NMF", "--init", "graph", "-o", out], "'init' parameter of NMF"),
        (["fit", data, "--reg", "0", "-o", out], "'reg' parameter of GWNTF"),
        (["fit", data, "--costs", "grid", "-o", out], "costs: got 1 entries"),
        (["fit", data, "--sample-shape", "7x7", "-o", out], "sample_shape: got (7, 7)"),
        (["fit", data, "--max-memory", "1k", "-o", out], "max_bytes allows 1.0 kB"),
        (["transform", model, tmp_path / "other.npy", "-o", tmp_path / "e.npy"], "sample_shape: got (8, 8)"),
        (["transform", data, data, "-o", tmp_path / "e.npy"], "digits.npz"),
        (
            ["transform", model, tmp_path / "other.npy", "-o", tmp_path / "other.npy"],
            "a file that is not one of the inputs",
        ),
        (["report", tmp_path / "absent.gwntf", "-o", tmp_path / "r.html"], "absent.gwntf"),
    ]:
        assert message in refused(capsys, *command)
    assert not out.exists()


def test_invalid_command_lines_exit_with_two(capsys):
    for arguments in (
        [],
        ["fit"],
        ["fit", "x.npy", "--rank", "0"],
        ["fit", "x.npy", "--tol", "-1"],
        ["fit", "x.npy", "--sample-shape", "3by4"],
        ["fit", "x.npy", "--max-memory", "lots"],
        ["fit", "x.npy", "--seed", "-1"],
        ["fit", "x.npy", "--clusters", "4"],
        ["fit", "x.npy", "--method", "TensorClustering"],
        ["fit", "x.npy", "--engine", "dask"],
        ["cluster", "x.npy", "--reg", "1"],
        ["transform", "m.gwntf", "x.npy"],
    ):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 2
    assert "expected a whole number of at least 1" in capsys.readouterr().err


def test_errors_are_json_for_scripts(tmp_path, capsys):
    document = run_json(capsys, "info", tmp_path / "absent.npy")
    assert document["kind"] == "DataError"
    assert "does not exist" in document["error"]


def test_interruption_leaves_no_file_and_exits_with_130(data_folder, tmp_path, capsys, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("gwntf.cli.commands.fit_estimator", interrupt)
    assert main(["fit", str(data_folder / "digits.npz"), "-o", str(tmp_path / "m.gwntf")]) == 130
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_fit_resumes_from_its_checkpoint(data_folder, tmp_path, capsys):
    def interrupt(iteration):
        if iteration.iteration == 3:
            raise KeyboardInterrupt

    X = gwntf.read_data(data_folder / "digits").X
    options = {"max_iter": 6, "tol": 0.0, "engine": "numpy", "random_state": 0}
    complete = gwntf.GWNTF(3, **options).fit(X)
    checkpoint = gwntf.Checkpoint(tmp_path / "c.ckpt", iterations=1)
    with pytest.raises(KeyboardInterrupt):
        gwntf.GWNTF(3, **options, callbacks=[checkpoint, interrupt]).fit(X)
    assert (tmp_path / "c.ckpt").exists()
    command = ["fit", str(data_folder / "digits"), "--rank", "3", "-o", str(tmp_path / "m.gwntf"), "--tol", "0"]
    more = ["--max-iter", "6", "--engine", "numpy", "--checkpoint", str(tmp_path / "c.ckpt")]
    assert main([*command, *more]) == 0
    assert "4/6" in capsys.readouterr().err  # two of six were done before
    np.testing.assert_array_equal(gwntf.load(tmp_path / "m.gwntf").embedding_, complete.embedding_)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.gwntf"]


def test_an_interrupted_clustering_resumes_from_its_checkpoint(data_folder, tmp_path, capsys):
    def interrupt(iteration):
        if iteration.iteration == 3:
            raise KeyboardInterrupt

    X, target = gwntf.read_data(data_folder / "digits").X, tmp_path / "c.ckpt"
    options = {"max_iter": 6, "engine": "numpy", "random_state": 0}
    complete = gwntf.TensorClustering(4, **options).fit(X)
    callbacks = [gwntf.Checkpoint(target, iterations=1), interrupt]
    with pytest.raises(KeyboardInterrupt):
        gwntf.TensorClustering(4, **options, callbacks=callbacks).fit(X)
    command = ["cluster", str(data_folder / "digits"), "--max-iter", "6", "--engine", "numpy"]
    assert main([*command, "--checkpoint", str(target), "-o", str(tmp_path / "c.npy")]) == 0
    assert "4/6" in capsys.readouterr().err  # two of six were done before
    np.testing.assert_array_equal(np.load(tmp_path / "c.npy"), complete.labels_)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.npy"]


# --- help, completion, output ------------------------------------------------------------------------------


def test_help_of_every_command_has_examples(capsys):
    for command in ("cluster", "fit", "transform", "report", "unmix", "info", "demo", "reproduce", "completion"):
        with pytest.raises(SystemExit) as stop:
            main([command, "--help"])
        assert stop.value.code == 0
        assert f"\n  gwntf {command} " in capsys.readouterr().out.split("examples:")[1]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_have_commands_and_options(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(word in script for word in ("cluster", "transform", "unmix", "sample-shape", "dry-run", "calibration"))


def test_completion_script_is_valid_for_bash(capsys):
    main(["completion", "bash"])
    script = capsys.readouterr().out + "\ncomplete -p gwntf\n"
    done = subprocess.run(["bash"], input=script, capture_output=True, text=True, check=True)  # noqa: S607
    assert "gwntf" in done.stdout


def test_control_characters_of_names_do_not_reach_the_terminal(tmp_path, capsys):
    name = "a\x1b]0;taken\x07\n.npy"
    np.save(tmp_path / name, np.ones((2, 3)))
    assert main(["info", str(tmp_path / name)]) == 0
    captured = capsys.readouterr()
    assert "\x1b" not in captured.out
    assert "\\x1b]0;taken\\x07\\n.npy" in captured.out
    assert "\x1b" not in refused(capsys, "info", tmp_path / "b\x1b.npy")


def test_values_from_and_to_text():
    assert shape("32x32x3") == (32, 32, 3)
    assert [memory_size(text) for text in ("7", "8G", "500MB")] == [7, 8 * 10**9, 500 * 10**6]
    assert [format_duration(seconds) for seconds in (0.5, 60, 600, 7200)] == [
        "0.5 s",
        "60 s",
        "10 min",
        "2.0 h",
    ]
    assert printable("é\x00\udc80") == "é\\x00\\udc80"
    assert to_json({"a": (np.float32(1), float("nan")), 2: np.arange(2)}) == {"a": [1.0, None], "2": [0, 1]}


def test_in_a_separate_process_standard_output_is_only_json(data_folder, tmp_path):
    command = [sys.executable, "-m", "gwntf", "fit", data_folder / "digits", "--rank", "2", "--json"]
    command += ["-o", tmp_path / "m.gwntf", "--max-iter", "2", "--engine", "numpy"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["model"]["iterations"] == 2
    assert "2/2" in done.stderr
    absent = [*map(str, command[:4]), str(tmp_path / "absent"), "-o", str(tmp_path / "x.gwntf")]
    assert subprocess.run(absent, capture_output=True, check=False).returncode == 1
