"""`gwntf completion`: scripts that let a shell complete commands, options and paths."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from typing import Any

from gwntf.cli.arguments import Commands, add_command
from gwntf.core import MissingLibraryError

SHELLS = ("bash", "zsh", "fish")

_EXAMPLES = """\
  gwntf completion bash > ~/.local/share/bash-completion/completions/gwntf
  gwntf completion zsh > ~/.zfunc/_gwntf
  gwntf completion fish > ~/.config/fish/completions/gwntf.fish"""


def add_completion(commands: Commands, parser: argparse.ArgumentParser) -> None:
    """Add the command."""

    def run(options: Any) -> None:
        if find_spec("shtab") is None:
            raise MissingLibraryError("completion scripts need shtab: pip install 'gwntf[completion]'")
        import shtab

        print(shtab.complete(parser, shell=options.shell))

    command = add_command(
        commands,
        "completion",
        run,
        "print a script that completes commands in a shell",
        takes="SHELL",
        examples=_EXAMPLES,
    )
    command.add_argument("shell", choices=SHELLS)
