"""Entry point of the `gwntf` command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from gwntf._version import __version__
from gwntf.cli.demo import demo
from gwntf.cli.reproduce import reproduce
from gwntf.core import GwntfError
from gwntf.engines import LOCAL_ENGINES
from gwntf.experiments import known_tables


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except (GwntfError, OSError) as error:
        print(f"gwntf: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("gwntf: interrupted; what is finished is kept", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gwntf",
        description="Nonnegative tensor factorization under optimal-transport losses.",
    )
    parser.add_argument("--version", action="version", version=f"gwntf {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    _add_demo(commands)
    _add_reproduce(commands)
    return parser


def _add_demo(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("demo", help="all methods on scikit-learn's digits: a table and a figure")
    _add_output(command, Path("demo"))
    command.set_defaults(run=lambda options: demo(options.output))


def _add_reproduce(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "reproduce",
        help="the paper's tables beside the printed figures",
        description="Run tables of methods, print them beside the printed figures, and write JSON, Markdown "
        "and HTML. Finished runs are kept in OUTPUT/cache: a table that was stopped goes on from there.",
        epilog="example: gwntf reproduce coil20 pie_pose27 --runs 50",
    )
    tables = f"one of {', '.join(known_tables())}, or a path to a TOML file; before any --methods"
    command.add_argument("tables", nargs="+", metavar="TABLE", help=tables)
    command.add_argument("--runs", type=_positive, help="runs per method (default: the table's own number)")
    command.add_argument("--methods", nargs="+", metavar="METHOD", help="only these methods of the table")
    command.add_argument("--engine", choices=LOCAL_ENGINES, help="where the arithmetic runs")
    command.add_argument("--device", help='device of the engine "torch": cpu, cuda or cuda:N')
    command.add_argument("--jobs", type=_positive, help="parallel runs (default: one per core)")
    _add_output(command, Path("reproduction"))
    command.set_defaults(
        run=lambda options: reproduce(
            options.tables,
            options.output,
            runs=options.runs,
            methods=options.methods,
            engine=options.engine,
            device=options.device,
            jobs=options.jobs,
        )
    )


def _add_output(command: argparse.ArgumentParser, default: Path) -> None:
    text = "folder to write to (default: %(default)s)"
    command.add_argument("-o", "--output", type=Path, default=default, help=text)


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"got {text!r}; expected a whole number of at least 1")
    return number
