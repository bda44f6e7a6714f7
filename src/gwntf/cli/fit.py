"""`gwntf fit` and `gwntf cluster`: fitting a model to a user's data."""

import time
from typing import Any

import numpy as np

from gwntf.cli.inputs import build, check_parameters, given_parameters, load_samples
from gwntf.cli.models import model_facts, print_scores, write_report
from gwntf.cli.output import Output, check_output, format_duration, printed_warnings, write_table
from gwntf.cli.plan import print_plan
from gwntf.core import InputError, Status
from gwntf.estimators import GWNTF
from gwntf.readers import Samples
from gwntf.reports import ending


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
    text = f"{model.n_clusters}, {sizes.min()} to {sizes.max()} samples each{metric}"
    output.line("clusters", text, sizes=sizes)
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
