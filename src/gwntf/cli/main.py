"""Entry point of the `gwntf` command."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from gwntf._version import __version__
from gwntf.backends import BACKENDS
from gwntf.cli.arguments import positive
from gwntf.cli.cluster import add_cluster
from gwntf.cli.completion import add_completion
from gwntf.cli.demo import demo
from gwntf.cli.fit import add_fit
from gwntf.cli.info import add_info
from gwntf.cli.report import add_report
from gwntf.cli.reproduce import reproduce
from gwntf.cli.transform import add_transform
from gwntf.cli.voice import complain
from gwntf.core import DataError, GwntfError
from gwntf.experiments import known_tables

_EPILOG = """\
examples:
  gwntf info photos/                                       what is there
  gwntf cluster photos/ --clusters 10 -o clusters.csv      which images belong together
  gwntf fit photos/ --rank 20 -o photos.gwntf              a model in a file
  gwntf transform photos.gwntf new/ -o embedding.csv       new samples in its embedding
  gwntf report photos.gwntf -o photos.html                 a page on it

`gwntf COMMAND --help` has the options. Exit codes: 0 done, 1 an error that is told on standard error, 2 a wrong
command line, 130 interrupted."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code: 0 done, 1 an error that is told, 130 interrupted."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except (GwntfError, OSError) as error:
        return _failed(options, error)
    except MemoryError:
        return _failed(options, DataError("the memory is too small for this: see --dry-run"))
    except KeyboardInterrupt:
        complain("interrupted; files are whole, and --checkpoint or a cache goes on from where it was")
        return 130
    return 0


def _failed(options: argparse.Namespace, error: Exception) -> int:
    """Tell the error, to scripts as JSON."""
    complain(str(error))
    if getattr(options, "json", False):
        print(json.dumps({"command": options.command, "error": str(error), "kind": type(error).__name__}))
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gwntf",
        description="Nonnegative tensor factorization under optimal-transport losses.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"gwntf {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for add in (add_cluster, add_fit, add_transform, add_report, add_info):
        add(commands)
    _add_demo(commands)
    _add_reproduce(commands)
    add_completion(commands, parser)
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
    command.add_argument("--runs", type=positive, help="runs per method (default: the table's own number)")
    command.add_argument("--methods", nargs="+", metavar="METHOD", help="only these methods of the table")
    command.add_argument("--engine", choices=BACKENDS, help="where the arithmetic runs")
    command.add_argument("--device", help='device of the engine "torch": cpu, cuda or cuda:N')
    command.add_argument("--jobs", type=positive, help="parallel runs (default: one per core)")
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
