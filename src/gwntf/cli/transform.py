"""`gwntf transform`: new samples in the embedding of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gwntf.cli.arguments import Commands, add_command, add_data, add_json, add_output
from gwntf.cli.cluster import tell_scores
from gwntf.cli.inputs import check_values, read_like, tell_data, warnings_told
from gwntf.cli.results import check_table, write_table
from gwntf.cli.voice import speaking, times
from gwntf.core import InputError
from gwntf.estimators import load
from gwntf.readers import summarise

_EXAMPLES = """\
  gwntf transform faces.gwntf new_faces/ -o embedding.csv
  gwntf transform counts.gwntf more.csv --labels kind -o embedding.npy
  gwntf transform faces.gwntf new_faces/ --predict -o clusters.csv"""


def add_transform(commands: Commands) -> None:
    """Add the command."""
    command = add_command(
        commands,
        "transform",
        run,
        "embed new samples with a fitted model",
        takes="MODEL DATA -o FILE [options]",
        examples=_EXAMPLES,
        more="Rows are folded and images resized to what the model was fitted to.",
    )
    command.add_argument("model", type=Path, metavar="MODEL", help="model file, .gwntf")
    add_data(command)
    add_output(command, "embedding of every sample, .npy or .csv", required=True)
    command.add_argument(
        "--predict", action="store_true", help="write the cluster of every sample instead of its embedding"
    )
    add_json(command)


def run(options: Any) -> None:
    """Load, read, embed, write."""
    with speaking(options) as voice:
        check_table(options.output, options.data, options.model)
        model = load(options.model)
        samples = read_like(options.data, options, model)
        found = summarise(samples.X)
        tell_data(voice, options.data, samples, found)
        check_values(options.data, found, model.missing)
        layout = tuple(model._layout)
        if found.shape[1:] != layout:
            raise InputError(
                str(options.data), f"samples of {times(found.shape[1:])}", f"{times(layout)}, as in the fit"
            )
        with warnings_told():
            values = model.predict(samples.X) if options.predict else model.transform(samples.X)
        columns = {"cluster": values} if options.predict else _components(values)
        if options.predict and samples.labels is not None:
            tell_scores(voice, samples.labels, values)
        write_table(options.output, columns, samples.names)
        shape = list(np.shape(values))
        voice.say("written", f"{options.output} ({times(shape)})", output=str(options.output), shape=shape)


def _components(embedding: Any) -> dict[str, Any]:
    return {f"component {k}": embedding[:, k] for k in range(embedding.shape[1])}
