"""The `gwntf` command: arguments, printed output and files.

May import everything. Start with `main`, the entry point, and `parser`, which names the function of every command.
"""

from gwntf.cli.main import main

__all__ = ["main"]
