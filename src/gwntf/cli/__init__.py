"""The `gwntf` command: argument parsing, nothing else.

May import everything. Start with `main`, the entry point; each subcommand has a file of its own.
"""

from gwntf.cli.main import main

__all__ = ["main"]
