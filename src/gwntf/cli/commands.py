"""Commands on data and models: `gwntf fit`, `cluster`, `transform`, `report` and `info`."""

import time
from pathlib import Path
from typing import Any

import numpy as np

from gwntf.cli.inputs import (
    build,
    check_parameters,
    check_values,
    given_parameters,
    load_samples,
    print_summary,
    read_samples,
    sample_layout,
)
from gwntf.cli.output import (
    Output,
    check_output,
    format_duration,
    format_shape,
    printed_warnings,
    to_json,
    write_table,
    write_text,
)
from gwntf.cli.plan import print_plan
from gwntf.core import InputError, Status
from gwntf.estimators import GWNTF, load
from gwntf.evaluation import clustering_scores
from gwntf.plots import require_matplotlib
from gwntf.readers import Samples, summarise
from gwntf.reports import ending, model_report, set_parameters


def run_fit(options: Any, output: Output) -> None:
    """Read data, fit a model, save it."""
    if options.output is None and not options.dry_run:
        raise InputError("output", "nothing", "-o MODEL.gwntf, or --dry-run")
    check_output(options.output, ".gwntf", inputs=[options.data])
    model = build(options.method, given_parameters(options))
    samples = load_samples(output, options.data, options)
    if fit_model(output, model, samples.X, options, labelled=options.n_clusters is not None):
        model.save(options.output)
        output.written(options.output)


def run_cluster(options: Any, output: Output) -> None:
    """Read data, cluster them, print scores, write clusters and, if asked for, model and report."""
    if options.output is None and not options.dry_run:
        raise InputError("output", "nothing", "-o CLUSTERS.csv, or --dry-run")
    check_output(options.output, ".csv", ".npy", inputs=[options.data])
    check_output(options.model, ".gwntf", inputs=[options.data, options.output])
    check_output(options.report, ".html", inputs=[options.data, options.output])
    samples = load_samples(output, options.data, options)
    given = given_parameters(options)
    model: Any = GWNTF.for_clustering(given.pop("n_clusters", None) or _count_classes(samples), **given)
    check_parameters(model)
    if not fit_model(output, model, samples.X, options, labelled=True):
        return
    sizes = np.bincount(model.labels_, minlength=model.n_clusters)
    metric = f", graph metric {model.graph_metric_}" if hasattr(model, "graph_metric_") else ""
    output.line("clusters", f"{model.n_clusters}, {sizes.min()} to {sizes.max()} samples each{metric}", sizes=sizes)
    print_scores(output, samples.labels, model.labels_)
    write_table(options.output, {"cluster": model.labels_}, samples.names)
    output.written(options.output)
    if options.model is not None:
        model.save(options.model)
        output.written(options.model, key="model_file")
    if options.report is not None:
        write_report(options.report, model, options.data.name, samples)
        output.written(options.report, key="report")


def fit_model(output: Output, model: Any, X: Any, options: Any, *, labelled: bool) -> bool:
    """Fit with a progress bar and print the result; with --dry-run only print a plan, and return False."""
    if options.dry_run:
        print_plan(output, model, X, labelled=labelled)
        return False
    model.set_params(progress=not options.quiet)
    start = time.perf_counter()
    with printed_warnings(*(status.message for status in Status)):  # the line "fit" has the status
        model.fit_predict(X) if labelled else model.fit(X)
    seconds = time.perf_counter() - start
    name, rank = type(model).__name__, model.embedding_.shape[1]
    error = f"relative reconstruction error {model.reconstruction_err_:.3f}"
    output.line("model", f"{name} of rank {rank}, {error}")
    output.line("fit", f"{model.n_iter_} iterations in {format_duration(seconds)}. {ending(model)}")
    output.record(model=model_facts(model), seconds=seconds)
    return True


def _count_classes(samples: Samples) -> int:
    if samples.labels is None:
        raise InputError("clusters", "nothing", "--clusters K, because the data have no known classes")
    return len(np.unique(samples.labels))


def run_transform(options: Any, output: Output) -> None:
    """Load a model, read samples, write their embedding or clusters."""
    check_output(options.output, ".csv", ".npy", inputs=[options.data, options.model])
    model = load(options.model)
    samples = load_samples(output, options.data, options, model)
    shape, expected = tuple(samples.X.shape[1:]), sample_layout(model)
    if shape != expected:
        given = f"samples of {format_shape(shape)}"
        raise InputError(str(options.data), given, f"{format_shape(expected)}, as in the fit")
    with printed_warnings():
        values = model.predict(samples.X) if options.predict else model.transform(samples.X)
    if options.predict:
        print_scores(output, samples.labels, values)
        columns = {"cluster": values}
    else:
        columns = {f"component {k}": column for k, column in enumerate(values.T)}
    write_table(options.output, columns, samples.names)
    output.written(options.output, f" ({format_shape(values.shape)})", shape=list(values.shape))


def run_report(options: Any, output: Output) -> None:
    """Load a model, write a page on it."""
    require_matplotlib()
    check_output(options.output, ".html", inputs=[options.model, options.data])
    model = load(options.model)
    samples = None if options.data is None else read_samples(options.data, options, model)
    if samples is not None:
        check_values(options.data, summarise(samples.X), model.missing)
    write_report(options.output, model, (options.data or options.model).name, samples)
    output.written(options.output)


def run_info(options: Any, output: Output) -> None:
    """Print what a file contains."""
    if options.file.suffix.lower() == ".gwntf":
        _print_model(output, load(options.file))
        return
    samples = read_samples(options.file, options)
    found = summarise(samples.X)
    print_summary(output, options.file, samples, found)
    for count, text in (
        (found.negative, "negative entries: no method accepts them"),
        (found.infinite, "infinite entries: no method accepts them"),
        (found.missing, "missing entries: fit with --missing ignore"),
    ):
        if count:
            output.line("note", f"{count} {text}")


def _print_model(output: Output, model: Any) -> None:
    facts = model_facts(model)
    output.line("model", f"{facts['method']} of rank {facts['rank']}, {facts['dtype']}", model=facts)
    output.line("data", f"fitted to {facts['samples']} samples of {format_shape(facts['sample_shape'])}")
    objective = f"objective {facts['objective']:.6g}"
    output.line("fit", f"{facts['iterations']} iterations, {objective}. {ending(model)}")
    output.line("error", f"relative reconstruction error {facts['reconstruction_error']:.3f}")
    if facts["clusters"]:
        output.line("clusters", str(facts["clusters"]))
    for name, value in facts["parameters"].items():
        output.line("parameter", f"{name} = {to_json(value)}")


def model_facts(model: Any) -> dict[str, Any]:
    """Return what the JSON document says about a fitted model."""
    return {
        "method": type(model).__name__,
        "rank": model.embedding_.shape[1],
        "samples": model.embedding_.shape[0],
        "sample_shape": model.sample_shape_,
        "dtype": str(model.embedding_.dtype),
        "iterations": model.n_iter_,
        "status": model.status_.value,
        "objective": model.objective_,
        "reconstruction_error": model.reconstruction_err_,
        "clusters": model.n_clusters if hasattr(model, "labels_") else None,
        "parameters": set_parameters(model),
    }


def print_scores(output: Output, known: Any, found: Any) -> None:
    """Print scores of clusters against known classes, if there are any."""
    if known is not None:
        scores = clustering_scores(known, found)
        text = ", ".join(f"{name} {100 * score:.1f}" for name, score in scores.items())
        output.line("scores", f"{text} (percent, against the known classes)", scores=scores)


def write_report(path: Path, model: Any, title: str, samples: Samples | None) -> None:
    """Write the page on a model."""
    with printed_warnings():
        page = model_report(model, title, samples)
    write_text(path, page)
