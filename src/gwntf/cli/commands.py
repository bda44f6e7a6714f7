"""Commands on data and models: `gwntf fit`, `cluster`, `transform`, `report`, `info`."""

import time
from typing import Any

import numpy as np

from gwntf.cli.build import build_clusterer, build_factorization
from gwntf.cli.data import check_values, load_samples, print_summary, read_samples, sample_layout
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
from gwntf.estimators import TensorClustering, load
from gwntf.evaluation import clustering_scores
from gwntf.plots import require_matplotlib
from gwntf.readers import summarise
from gwntf.reports import describe, ending, factorization_of, model_report, set_parameters

_MEMBERS = 6  # members of a cluster that are printed


def run_fit(options: Any, output: Output) -> None:
    """Read data, fit a factorization, save it."""
    if options.output is None and not options.dry_run:
        raise InputError("output", "nothing", "-o MODEL.gwntf, or --dry-run")
    check_output(options.output, ".gwntf", inputs=[options.data])
    model = build_factorization(options)
    samples = load_samples(output, options.data, options)
    if fit_estimator(output, model, samples.X, options):
        model.save(options.output)
        output.written(options.output)


def run_cluster(options: Any, output: Output) -> None:
    """Read data, cluster them, print scores, write or print clusters and, if requested, write model and report."""
    check_output(options.output, ".csv", ".npy", inputs=[options.data])
    check_output(options.model, ".gwntf", inputs=[options.data, options.output])
    check_output(options.report, ".html", inputs=[options.data, options.output])
    clusterer = build_clusterer(options)
    samples = load_samples(output, options.data, options)
    if options.n_clusters is None:
        if samples.labels is None:
            raise InputError("clusters", "nothing", "--clusters K, because the data have no known classes")
        clusterer.set_params(n_clusters=len(np.unique(samples.labels)))
    if not fit_estimator(output, clusterer, samples.X, options):
        return
    sizes = np.bincount(clusterer.labels_, minlength=clusterer.n_clusters)
    output.line("clusters", describe_clusters(clusterer), sizes=sizes)
    print_scores(output, samples.labels, clusterer.labels_)
    if options.output is None:
        print_clusters(output, clusterer.labels_, samples.names)
    else:
        write_table(options.output, {"cluster": clusterer.labels_}, samples.names)
        output.written(options.output)
    if options.model is not None:
        clusterer.save(options.model)
        output.written(options.model, key="model_file")
    if options.report is not None:
        with printed_warnings():
            write_text(options.report, model_report(clusterer, options.data.name, samples))
        output.written(options.report, key="report")


def fit_estimator(output: Output, estimator: Any, X: Any, options: Any) -> bool:
    """Fit and print the result; with --dry-run only print a plan, and return False."""
    if options.dry_run:
        print_plan(output, estimator, X)
        return False
    start = time.perf_counter()
    with printed_warnings(*(status.message for status in Status)):  # the line "fit" has the status
        estimator.fit(X)
    seconds = time.perf_counter() - start
    model = factorization_of(estimator)
    output.line("model", f"{describe(estimator)}, relative reconstruction error {model.reconstruction_err_:.3f}")
    output.line("fit", f"{model.n_iter_} iterations in {format_duration(seconds)}. {ending(model)}")
    output.record(model=model_facts(estimator), seconds=seconds)
    return True


def run_transform(options: Any, output: Output) -> None:
    """Load a model, read samples, write their embedding or clusters."""
    check_output(options.output, ".csv", ".npy", inputs=[options.data, options.model])
    estimator = load(options.model)
    if options.predict and not isinstance(estimator, TensorClustering):
        given = f"a {type(estimator).__name__} model, which has no clusters"
        raise InputError(str(options.model), given, "with --predict a file that `gwntf cluster --model` has written")
    model = factorization_of(estimator)
    samples = load_samples(output, options.data, options, model)
    shape, expected = tuple(samples.X.shape[1:]), sample_layout(model)
    if shape != expected:
        given = f"samples of {format_shape(shape)}"
        raise InputError(str(options.data), given, f"{format_shape(expected)}, as in the fit")
    with printed_warnings():
        values = estimator.predict(samples.X) if options.predict else model.transform(samples.X)
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
    estimator = load(options.model)
    samples = None if options.data is None else read_samples(options.data, options, factorization_of(estimator))
    if samples is not None:
        check_values(options.data, summarise(samples.X), estimator.missing)
    with printed_warnings():
        write_text(options.output, model_report(estimator, (options.data or options.model).name, samples))
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
        (found.negative, "negative entries, which no method accepts"),
        (found.infinite, "infinite entries, which no method accepts"),
        (found.missing, "missing entries: use --missing ignore"),
    ):
        if count:
            output.line("note", f"{count} {text}")


def _print_model(output: Output, estimator: Any) -> None:
    facts, model = model_facts(estimator), factorization_of(estimator)
    output.line("model", f"{describe(estimator)}, {facts['dtype']}", model=facts)
    output.line("data", f"fitted to {facts['samples']} samples of {format_shape(facts['sample_shape'])}")
    objective = f"objective {facts['objective']:.6g}"
    output.line("fit", f"{facts['iterations']} iterations, {objective}. {ending(model)}")
    output.line("error", f"relative reconstruction error {facts['reconstruction_error']:.3f}")
    if model is not estimator:
        output.line("clusters", describe_clusters(estimator))
    for name, value in facts["parameters"].items():
        output.line("parameter", f"{name} = {to_json(value)}")


def model_facts(estimator: Any) -> dict[str, Any]:
    """Return what the JSON document says about a fitted factorization or clusterer."""
    model = factorization_of(estimator)
    return {
        "method": type(estimator).__name__,
        "rank": model.embedding_.shape[1],
        "samples": model.embedding_.shape[0],
        "sample_shape": model.sample_shape_,
        "dtype": str(model.embedding_.dtype),
        "iterations": model.n_iter_,
        "status": model.status_.value,
        "objective": model.objective_,
        "reconstruction_error": model.reconstruction_err_,
        "clusters": None if model is estimator else estimator.n_clusters,
        "parameters": set_parameters(estimator),
    }


def describe_clusters(clusterer: TensorClustering) -> str:
    """Return the number of clusters, their sizes and the metric that was chosen."""
    sizes = np.bincount(clusterer.labels_, minlength=clusterer.n_clusters)
    metric = f", graph metric {clusterer.graph_metric_}" if hasattr(clusterer, "graph_metric_") else ""
    return f"{clusterer.n_clusters}, {sizes.min()} to {sizes.max()} samples each{metric}"


def print_scores(output: Output, known: Any, found: Any) -> None:
    """Print scores of clusters against known classes, if there are any."""
    if known is not None:
        scores = clustering_scores(known, found)
        text = ", ".join(f"{name} {100 * score:.1f}" for name, score in scores.items())
        output.line("scores", f"{text} (percent, against the known classes)", scores=scores)


def print_clusters(output: Output, labels: Any, names: Any) -> None:
    """Print the size and the first members of every cluster, the largest first."""
    found, sizes = np.unique(labels, return_counts=True)
    for k in np.argsort(-sizes, kind="stable"):
        members = np.flatnonzero(labels == found[k])
        shown = ", ".join(str(names[i] if names else i) for i in members[:_MEMBERS])
        more = ", ..." if len(members) > _MEMBERS else ""
        output.line("cluster", f"{found[k]}: {sizes[k]} samples: {shown}{more}")
    output.line("note", "-o CLUSTERS.csv writes the cluster of every sample", labels=labels)
