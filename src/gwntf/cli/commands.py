"""Commands on data and models: `gwntf fit`, `cluster`, `transform`, `report`, `info`, and how they read data."""

import time
from pathlib import Path
from typing import Any

import numpy as np

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
from gwntf.core import GwntfError, InputError, Status
from gwntf.estimators import GWNTF, load
from gwntf.estimators.base import check_parameters
from gwntf.estimators.files import KNOWN
from gwntf.evaluation import clustering_scores
from gwntf.plots import require_matplotlib
from gwntf.readers import Samples, Summary, default_memory, read_data, summarise
from gwntf.reports import ending, model_report, set_parameters

_MEMBERS = 6  # members of a cluster that are printed


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
    """Read data, cluster them, print scores, write or print clusters and, if requested, write model and report."""
    check_output(options.output, ".csv", ".npy", inputs=[options.data])
    check_output(options.model, ".gwntf", inputs=[options.data, options.output])
    check_output(options.report, ".html", inputs=[options.data, options.output])
    samples = load_samples(output, options.data, options)
    given = given_parameters(options)
    if "n_clusters" not in given:
        if samples.labels is None:
            raise InputError("clusters", "nothing", "--clusters K, because the data have no known classes")
        given["n_clusters"] = len(np.unique(samples.labels))
    model: Any = GWNTF.for_clustering(**given)
    checked(model)
    if not fit_model(output, model, samples.X, options, labelled=True):
        return
    sizes = np.bincount(model.labels_, minlength=model.n_clusters)
    metric = f", graph metric {model.graph_metric_}" if hasattr(model, "graph_metric_") else ""
    output.line("clusters", f"{model.n_clusters}, {sizes.min()} to {sizes.max()} samples each{metric}", sizes=sizes)
    print_scores(output, samples.labels, model.labels_)
    if options.output is None:
        print_clusters(output, model.labels_, samples.names)
    else:
        write_table(options.output, {"cluster": model.labels_}, samples.names)
        output.written(options.output)
    if options.model is not None:
        model.save(options.model)
        output.written(options.model, key="model_file")
    if options.report is not None:
        with printed_warnings():
            write_text(options.report, model_report(model, options.data.name, samples))
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
    with printed_warnings():
        write_text(options.output, model_report(model, (options.data or options.model).name, samples))
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


def print_clusters(output: Output, labels: Any, names: Any) -> None:
    """Print the size and the first members of every cluster, the largest first."""
    found, sizes = np.unique(labels, return_counts=True)
    for k in np.argsort(-sizes, kind="stable"):
        members = np.flatnonzero(labels == found[k])
        shown = ", ".join(str(names[i] if names else i) for i in members[:_MEMBERS])
        more = ", ..." if len(members) > _MEMBERS else ""
        output.line("cluster", f"{found[k]}: {sizes[k]} samples: {shown}{more}")
    output.line("note", "-o CLUSTERS.csv writes the cluster of every sample", labels=labels)


def load_samples(output: Output, path: Path, options: Any, model: Any = None) -> Samples:
    """Read data, print a summary, and check that a fit, or the model, can use them."""
    samples = read_samples(path, options, model)
    found = summarise(samples.X)
    print_summary(output, path, samples, found)
    check_values(path, found, options.missing if model is None else model.missing)
    return samples


def read_samples(path: Path, options: Any, model: Any = None) -> Samples:
    """Read data as the options say; for a model, rows are folded and images resized to the shape of its samples."""
    layout = () if model is None else sample_layout(model)
    is_folder = path.is_dir() and path.suffix.lower() != ".zarr"
    size: Any = options.size or (layout[:2] if is_folder and len(layout) > 1 else None)
    if size is not None and len(size) != 2:
        raise InputError("size", format_shape(size), "a height and a width, as in 32x32")
    limit = default_memory() if options.max_memory is None else options.max_memory
    large = path.suffix.lower() == ".npy" and path.is_file() and path.stat().st_size > limit

    def read(sample_shape: tuple[int, ...] | None) -> Samples:
        return read_data(
            path,
            key=options.key,
            labels=options.labels,
            id_column=options.id_column,
            label_column=options.label_column,
            columns=options.columns,
            sample_shape=sample_shape,
            sample_axis=options.sample_axis,
            size=size,
            color=options.color or (is_folder and len(layout) == 3 and layout[-1] == 3),
            lazy=large and sample_shape is None and options.sample_axis == 0,
            max_bytes=options.max_memory,
        )

    samples = read(options.sample_shape)
    rows = len(samples.X.shape) == 2 and not hasattr(samples.X, "tocsr")
    if rows and not is_folder and len(layout) > 1 and options.sample_shape is None:
        return read(layout)
    return samples


def sample_layout(model: Any) -> tuple[int, ...]:
    """Return the shape of one sample as the model takes it in X."""
    return tuple(np.shape(model.inverse_transform(model.embedding_[:1]))[1:])


def check_values(path: Path, found: Summary, missing: str | None) -> None:
    """Raise if the data contain entries that no method accepts; the message names options of the command line."""
    if len(found.shape) < 2 or 0 in found.shape:
        given = f"an array of shape {format_shape(found.shape)}"
        raise InputError(str(path), given, "samples first and at least one more axis")
    if found.negative:
        given = f"{found.negative} negative entries (smallest {found.smallest:g})"
        raise InputError(str(path), given, "nonnegative numbers: shift or clip them first")
    if found.infinite:
        raise InputError(str(path), f"{found.infinite} infinite entries", "finite numbers")
    if found.missing and missing != "ignore":
        raise InputError(str(path), f"{found.missing} NaN entries", "numbers, or --missing ignore")
    if not found.largest > 0:
        raise InputError(str(path), "only zeros", "data with some positive entries")


def print_summary(output: Output, path: Path, samples: Samples, found: Summary) -> None:
    """Print shape, type and range of the data, the number of known classes, and remarks of the reader."""
    share = 100 * found.zeros / max(1, found.entries)
    kind = f"sparse {found.dtype}" if found.sparse else found.dtype
    missing = f", {found.missing} missing" if found.missing else ""
    classes = None if samples.labels is None else len(set(samples.labels.tolist()))
    text = (
        f"{path}: {found.shape[0]} samples of {format_shape(found.shape[1:])}, {kind}, "
        f"{found.smallest:g} to {found.largest:g}, {share:.1f} % zeros{missing}"
    )
    data = {"path": str(path), "classes": classes, "note": samples.note, **vars(found)}
    output.line("data", text, data=data)
    if classes is not None:
        output.line("classes", f"{classes} known; not used in the fit")
    if samples.names is not None and path.is_file():
        ends = dict.fromkeys((samples.names[0], samples.names[-1]))
        output.line("ids", " to ".join(ends))
    if samples.note:
        output.line("note", samples.note)


def given_parameters(options: Any) -> dict[str, Any]:
    """Return the parameters of the estimator that the user set."""
    names = set(GWNTF().get_params()) & set(vars(options)) - {"sample_shape"}  # the reader has folded the samples
    given = {name: value for name in names if (value := getattr(options, name)) is not None}
    return {name: None if (name, value) == ("sample_norm", "none") else value for name, value in given.items()}


def build(method: str, given: dict[str, Any]) -> Any:
    """Return an estimator of that method; raise if it does not have one of the parameters."""
    cls: Any = KNOWN[method]
    unknown = sorted(set(given) - set(cls().get_params()))
    if unknown:
        raise InputError(unknown[0], repr(given[unknown[0]]), f"nothing: {method} has no such parameter")
    return checked(cls(**given))


def checked(model: Any) -> Any:
    """Return the estimator after a check of its parameters."""
    try:
        check_parameters(model)
    except ValueError as error:
        raise GwntfError(str(error)) from error
    return model
