"""Entry point of the `gwntf` command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from gwntf._version import __version__
from gwntf.cli.demo import demo
from gwntf.core import GwntfError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        demo(options.output)
    except (GwntfError, OSError) as error:
        print(f"gwntf: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gwntf",
        description="Nonnegative tensor factorization under optimal-transport losses.",
    )
    parser.add_argument("--version", action="version", version=f"gwntf {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    shown = commands.add_parser("demo", help="factorise scikit-learn's digits and draw the result")
    shown.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("demo"),
        help="folder for the figure (default: %(default)s)",
    )
    return parser
