"""`gwntf fit`: a model of a user's data, in a file."""

from __future__ import annotations

import time
from typing import Any

from gwntf.cli.arguments import (
    Commands,
    add_command,
    add_data,
    add_json,
    add_method,
    add_output,
    add_parameters,
    check_output,
    positive,
)
from gwntf.cli.inputs import build, check_values, given_parameters, read_samples, tell_data, warnings_told
from gwntf.cli.plan import tell_plan
from gwntf.cli.voice import Voice, duration, speaking
from gwntf.core import InputError, Status
from gwntf.readers import summarise
from gwntf.reports import ending, set_parameters

_EXAMPLES = """\
  gwntf fit faces/ --size 32x32 --rank 40 -o faces.gwntf
  gwntf fit counts.csv --labels kind --method NMF --rank 8 -o counts.gwntf
  gwntf fit scans.mat --key scans --sample-axis -1 --rank 12 --dry-run
  gwntf fit spectra.npy --rank 6 --costs none,grid2 --graph-reg 0 -o spectra.gwntf --json"""


def add_fit(commands: Commands) -> None:
    """Add the command."""
    command = add_command(
        commands,
        "fit",
        run,
        "factorise data and keep the model in a file",
        takes="DATA -o MODEL.gwntf [options]",
        examples=_EXAMPLES,
        more="Samples come first; the first axis of the data, the rows of a table or the images of a folder.",
    )
    add_data(command)
    add_output(command, "model file to write, .gwntf")
    add_method(command)
    command.add_argument(
        "--clusters", dest="n_clusters", type=positive, metavar="K", help="also find so many clusters"
    )
    add_parameters(command)
    add_json(command)


def run(options: Any) -> None:
    """Read, fit, save."""
    with speaking(options) as voice:
        check_output(options.output, ".gwntf", apart_from=(options.data,))
        if options.output is None and not options.dry_run:
            raise InputError("output", "nothing", "-o MODEL.gwntf, or --dry-run")
        model = build(options.method, given_parameters(options))
        samples = read_samples(options.data, options)
        found = summarise(samples.X)
        tell_data(voice, options.data, samples, found)
        check_values(options.data, found, options.missing)
        if options.dry_run:
            tell_plan(voice, model, samples.X, labelled=options.n_clusters is not None)
            return
        seconds = fit(model, samples.X, options, labelled=options.n_clusters is not None)
        tell_fit(voice, model, seconds)
        model.save(options.output)
        voice.say("written", str(options.output), output=str(options.output))


def fit(model: Any, X: Any, options: Any, *, labelled: bool) -> float:
    """Fit with a progress bar; return the seconds it took."""
    model.set_params(progress=not options.quiet)
    start = time.perf_counter()
    with warnings_told(*(status.message for status in Status)):  # `ending` tells how it ended
        model.fit_predict(X) if labelled else model.fit(X)
    return time.perf_counter() - start


def tell_fit(voice: Voice, model: Any, seconds: float) -> None:
    """Say what came out."""
    name, rank = type(model).__name__, model.embedding_.shape[1]
    voice.say(
        "model", f"{name} of rank {rank}, relative reconstruction error {model.reconstruction_err_:.3f}"
    )
    voice.say("fit", f"{model.n_iter_} iterations in {duration(seconds)}. {ending(model)}")
    voice.keep(model=model_facts(model), seconds=seconds)


def model_facts(model: Any) -> dict[str, Any]:
    """Return what a script may want to know about a fitted model."""
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
