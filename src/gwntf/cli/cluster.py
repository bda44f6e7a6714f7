"""`gwntf cluster`: which samples belong together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gwntf.cli.arguments import (
    Commands,
    add_command,
    add_data,
    add_json,
    add_output,
    add_parameters,
    check_output,
    positive,
)
from gwntf.cli.fit import fit, tell_fit
from gwntf.cli.inputs import check_values, checked, given_parameters, read_samples, tell_data
from gwntf.cli.plan import tell_plan
from gwntf.cli.results import check_table, write_report, write_table
from gwntf.cli.voice import Voice, speaking
from gwntf.core import InputError
from gwntf.estimators import GWNTF
from gwntf.evaluation import clustering_scores
from gwntf.readers import Samples, summarise

_EXAMPLES = """\
  gwntf cluster photos/ --clusters 10 -o clusters.csv --report clusters.html
  gwntf cluster COIL20.mat --labels gnd --sample-shape 32x32 -o clusters.csv
  gwntf cluster table.csv --labels species --clusters 3 -o clusters.csv --json"""


def add_cluster(commands: Commands) -> None:
    """Add the command."""
    command = add_command(
        commands,
        "cluster",
        run,
        "find clusters of samples",
        takes="DATA -o CLUSTERS.csv [options]",
        examples=_EXAMPLES,
        more="GWNTF with its preset for clustering, whose graph is chosen without labels. Where the classes are known "
        "they score the clusters and are used for nothing else.",
    )
    add_data(command)
    add_output(command, "cluster of every sample, .csv or .npy")
    command.add_argument(
        "-k",
        "--clusters",
        dest="n_clusters",
        type=positive,
        metavar="K",
        help="default: as many as known classes",
    )
    command.add_argument("--model", type=Path, metavar="FILE", help="also keep the model, .gwntf")
    command.add_argument(
        "--report", type=Path, metavar="FILE", help="also write a page on the clusters, .html"
    )
    command.add_argument(
        "--rank",
        dest="n_components",
        type=positive,
        metavar="R",
        help="components (default: three a cluster)",
    )
    add_parameters(command)
    add_json(command)


def run(options: Any) -> None:
    """Read, cluster, score, write."""
    with speaking(options) as voice:
        _check(options)
        samples = read_samples(options.data, options)
        found = summarise(samples.X)
        tell_data(voice, options.data, samples, found)
        check_values(options.data, found, options.missing)
        given = given_parameters(options)
        count = given.pop("n_clusters", None) or _classes(samples)
        model = checked(GWNTF.for_clustering(count, **given))
        if options.dry_run:
            tell_plan(voice, model, samples.X, labelled=True)
            return
        seconds = fit(model, samples.X, options, labelled=True)
        tell_fit(voice, model, seconds)
        _tell_clusters(voice, model, samples)
        _write(voice, model, samples, options)


def _check(options: Any) -> None:
    check_table(options.output, options.data)
    check_output(options.model, ".gwntf", apart_from=(options.data, options.output))
    check_output(options.report, ".html", apart_from=(options.data, options.output))
    if options.output is None and not options.dry_run:
        raise InputError("output", "nothing", "-o CLUSTERS.csv, or --dry-run")


def _classes(samples: Samples) -> int:
    if samples.labels is None:
        raise InputError("clusters", "nothing", "--clusters K: the classes are not known, so K is not either")
    return len(np.unique(samples.labels))


def _tell_clusters(voice: Voice, model: Any, samples: Samples) -> None:
    sizes = np.bincount(model.labels_, minlength=model.n_clusters)
    spread = f"{sizes.min()} to {sizes.max()} samples each"
    metric = f", graph metric {model.graph_metric_}" if hasattr(model, "graph_metric_") else ""
    voice.say("clusters", f"{model.n_clusters}, {spread}{metric}", sizes=sizes)
    if samples.labels is not None:
        tell_scores(voice, samples.labels, model.labels_)


def tell_scores(voice: Voice, known: Any, found: Any) -> None:
    """Score clusters against known classes."""
    scores = clustering_scores(known, found)
    text = ", ".join(f"{name} {100 * score:.1f}" for name, score in scores.items())
    voice.say("scores", f"{text} (percent, against the known classes)", scores=scores)


def _write(voice: Voice, model: Any, samples: Samples, options: Any) -> None:
    write_table(options.output, {"cluster": model.labels_}, samples.names)
    voice.say("written", str(options.output), output=str(options.output))
    if options.model is not None:
        model.save(options.model)
        voice.say("written", str(options.model), model_file=str(options.model))
    if options.report is not None:
        write_report(options.report, model, options.data.name, samples)
        voice.say("written", str(options.report), report=str(options.report))
