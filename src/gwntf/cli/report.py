"""`gwntf report`: one page on a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gwntf.cli.arguments import Commands, add_command, add_data, add_json, add_output, check_output
from gwntf.cli.inputs import check_values, read_like
from gwntf.cli.results import write_report
from gwntf.cli.voice import speaking
from gwntf.estimators import load
from gwntf.plots import require_matplotlib
from gwntf.readers import summarise

_EXAMPLES = """\
  gwntf report faces.gwntf -o faces.html
  gwntf report faces.gwntf --data faces/ -o faces.html
  gwntf report coil.gwntf --data COIL20.mat --labels gnd -o coil.html"""


def add_report(commands: Commands) -> None:
    """Add the command."""
    command = add_command(
        commands,
        "report",
        run,
        "write a page on a fitted model",
        takes="MODEL -o PAGE.html [options]",
        examples=_EXAMPLES,
        more="Components, objective and embedding; with the data of the fit also samples, what the model makes of "
        "them, and the members of every cluster. One HTML file that needs no network.",
    )
    command.add_argument("model", type=Path, metavar="MODEL", help="model file, .gwntf")
    add_output(command, "page to write, .html", required=True)
    add_data(command, optional=True)
    add_json(command)


def run(options: Any) -> None:
    """Load, draw, write."""
    with speaking(options) as voice:
        require_matplotlib()
        check_output(options.output, ".html", apart_from=(options.model, options.data))
        model = load(options.model)
        samples = None if options.data is None else read_like(options.data, options, model)
        if samples is not None:
            check_values(options.data, summarise(samples.X), model.missing)
        title = options.model.name if options.data is None else options.data.name
        write_report(options.output, model, title, samples)
        voice.say("written", str(options.output), output=str(options.output))
