"""`gwntf info`: what is in a file."""

from __future__ import annotations

from typing import Any

from gwntf.cli.arguments import Commands, add_command, add_data, add_json
from gwntf.cli.fit import model_facts
from gwntf.cli.inputs import read_samples, tell_data
from gwntf.cli.voice import Voice, plain, speaking, times
from gwntf.estimators import load
from gwntf.readers import summarise
from gwntf.reports import ending

_EXAMPLES = """\
  gwntf info photos/
  gwntf info COIL20.mat --key fea
  gwntf info faces.gwntf --json"""


def add_info(commands: Commands) -> None:
    """Add the command."""
    command = add_command(
        commands,
        "info",
        run,
        "say what is in a data file, a folder of images or a model file",
        takes="FILE [options]",
        examples=_EXAMPLES,
    )
    add_data(command, name="file")
    add_json(command)


def run(options: Any) -> None:
    """Look and tell."""
    with speaking(options) as voice:
        if options.file.suffix.lower() == ".gwntf":
            _tell_model(voice, load(options.file))
            return
        samples = read_samples(options.file, options)
        found = summarise(samples.X)
        tell_data(voice, options.file, samples, found)
        trouble = [
            (found.negative, "negative entries: no method takes them"),
            (found.infinite, "infinite entries: no method takes them"),
            (found.missing, "missing entries: fit with --missing ignore"),
        ]
        for count, text in trouble:
            if count:
                voice.say("note", f"{count} {text}")


def _tell_model(voice: Voice, model: Any) -> None:
    facts = model_facts(model)
    voice.say("model", f"{facts['method']} of rank {facts['rank']}, {facts['dtype']}", model=facts)
    voice.say("data", f"fitted to {facts['samples']} samples of {times(facts['sample_shape'])}")
    voice.say(
        "fit",
        f"{facts['iterations']} iterations, objective {facts['objective']:.6g}. {ending(model)}",
    )
    voice.say("error", f"relative reconstruction error {facts['reconstruction_error']:.3f}")
    if facts["clusters"]:
        voice.say("clusters", str(facts["clusters"]))
    for name, value in facts["parameters"].items():
        voice.say("parameter", f"{name} = {plain(value)}")
