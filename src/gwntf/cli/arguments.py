"""Arguments that several commands share, and how their text becomes values."""

from __future__ import annotations

import argparse
import math
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gwntf.core import InputError
from gwntf.estimators.files import KNOWN
from gwntf.estimators.places import ENGINES
from gwntf.geometry import GRAPH_METRICS, GRAPH_WEIGHTS
from gwntf.readers import FORMATS

Commands = Any
"""What `ArgumentParser.add_subparsers` returns."""

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def add_command(
    commands: Commands,
    name: str,
    run: Callable[[Any], None],
    summary: str,
    *,
    takes: str,
    examples: str,
    more: str = "",
) -> argparse.ArgumentParser:
    """Add a command with its help: what it takes, one sentence, more of them, examples."""
    command: argparse.ArgumentParser = commands.add_parser(
        name,
        usage=f"gwntf {name} {takes}",
        help=summary,
        description=textwrap.fill(f"{summary[0].upper()}{summary[1:]}. {more}", 88),
        epilog="examples:\n" + examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(run=run)
    return command


def add_data(command: argparse.ArgumentParser, *, name: str = "data", optional: bool = False) -> None:
    """Add the data and everything that says how to read them."""
    what = f"{', '.join(FORMATS)}, or a folder of PNG or JPEG images"
    if optional:
        command.add_argument(f"--{name}", type=Path, metavar="DATA", help=what)
    else:
        command.add_argument(name, type=Path, metavar=name.upper(), help=what)
    group = command.add_argument_group("reading data")
    group.add_argument("--key", metavar="NAME", help="which array of .npz, .mat, .h5 or .zarr")
    group.add_argument(
        "--labels",
        metavar="NAME",
        help="known classes: a column of .csv or .parquet, an array of .npz, .mat, .h5 or .zarr, a .npy file beside "
        "a .npy one; of a folder, the names of its subfolders without being asked",
    )
    group.add_argument("--sample-shape", type=shape, metavar="AxB", help="fold each row, as 32x32")
    group.add_argument(
        "--sample-axis", type=int, default=0, metavar="N", help="axis of the samples, from 0 (default 0)"
    )
    group.add_argument("--size", type=shape, metavar="HxW", help="resize images")
    group.add_argument("--color", action="store_true", help="keep the colours of images as one more axis")
    group.add_argument(
        "--max-memory",
        type=count_bytes,
        metavar="BYTES",
        help="for one array, as 8G (default: half of all); a larger .npy file is read block by block",
    )


def add_method(command: argparse.ArgumentParser) -> None:
    """Add the choice of a method."""
    command.add_argument("--method", choices=sorted(KNOWN), default="GWNTF", help="default: %(default)s")
    command.add_argument(
        "--rank", dest="n_components", type=positive, metavar="R", help="number of components"
    )


def add_parameters(command: argparse.ArgumentParser) -> None:
    """Add parameters of the estimators; without them each method keeps its own defaults."""
    group = command.add_argument_group("the model (without them: what the method has)")
    group.add_argument(
        "--costs",
        type=costs,
        metavar="C,C,...",
        help="ground cost of every axis, samples first: grid, grid2, cosine, euclidean or none",
    )
    for flag, what in _NUMBERS.items():
        group.add_argument(flag, **what)
    group.add_argument("--graph-metric", choices=[*GRAPH_METRICS, "auto"])
    group.add_argument("--graph-weight", choices=GRAPH_WEIGHTS)
    group.add_argument("--init", choices=["random", "nndsvd", "graph"])
    group.add_argument("--sample-norm", choices=["l2", "l1", "none"])
    group.add_argument("--missing", choices=["error", "ignore"], help="what NaN is (default: error)")
    group = command.add_argument_group("the run")
    group.add_argument("--engine", choices=ENGINES, help="where the arithmetic runs")
    group.add_argument("--device", help='for the engine "torch": cpu, cuda or cuda:N')
    group.add_argument("--dtype", choices=["float32", "float64"])
    group.add_argument(
        "--seed",
        dest="random_state",
        type=whole,
        default=0,
        metavar="N",
        help="of the random start (default 0)",
    )
    group.add_argument(
        "--checkpoint",
        metavar="FILE",
        help="keep there how far the fit is; the same command goes on from it after an interruption",
    )
    group.add_argument("--dry-run", action="store_true", help="say sizes, memory and time; write nothing")
    group.add_argument("-q", "--quiet", action="store_true", help="no progress bar")


def add_json(command: argparse.ArgumentParser) -> None:
    """Add the switch for scripts."""
    command.add_argument("--json", action="store_true", help="one JSON document on standard output")


def add_output(command: argparse.ArgumentParser, what: str, **options: Any) -> None:
    """Add the file to write."""
    command.add_argument("-o", "--output", type=Path, metavar="FILE", help=what, **options)


def check_output(path: Path | None, *endings: str, apart_from: tuple[Path | None, ...] = ()) -> None:
    """Refuse, before any work, a file that could not be written or would replace what is read."""
    if path is None:
        return
    if path.suffix.lower() not in endings:
        raise InputError("output", str(path), f"a file that ends in {' or '.join(endings)}")
    if not path.parent.is_dir():
        raise InputError("output", str(path), f"a file in a folder that exists, not in {path.parent}")
    if path.is_dir():
        raise InputError("output", str(path), "a file, not a folder")
    for other in apart_from:
        if other is not None and path.resolve() == other.resolve():
            raise InputError("output", str(path), "another file than the one that is read")


# --- from text to values -----------------------------------------------------------------------------------


def whole(text: str) -> int:
    """Parse a whole number of at least 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"got {text!r}; expected a whole number of at least 0")
    return int(text)


def positive(text: str) -> int:
    """Parse a whole number of at least 1."""
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"got {text!r}; expected a whole number of at least 1")
    return number


def number(text: str) -> float:
    """Parse a finite number of at least 0."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"got {text!r}; expected a number of at least 0")
    return value


def shape(text: str) -> tuple[int, ...]:
    """Parse sizes such as 32x32."""
    if not re.fullmatch(r"[1-9]\d{0,8}(x[1-9]\d{0,8})*", text):
        raise argparse.ArgumentTypeError(f"got {text!r}; expected sizes as in 32x32")
    return tuple(int(part) for part in text.split("x"))


def costs(text: str) -> tuple[str | None, ...]:
    """Parse one name of a cost for each axis."""
    return tuple(None if name == "none" else name for name in text.split(","))


def count_bytes(text: str) -> int:
    """Parse a size of memory such as 8G."""
    found = re.fullmatch(r"(\d{1,15})([kmgt]?)b?", text.lower())
    if not found or not int(found[1]):
        raise argparse.ArgumentTypeError(f"got {text!r}; expected bytes as in 500M or 8G")
    return int(found[1]) * _UNITS[found[2]]


_NUMBERS: dict[str, dict[str, Any]] = {
    "--reg": {"type": number, "metavar": "E", "help": "weight of the entropy"},
    "--graph-reg": {"type": number, "metavar": "MU", "help": "weight of the graph on the samples"},
    "--neighbors": {
        "type": positive,
        "metavar": "P",
        "dest": "n_neighbors",
        "help": "of a sample in the graph",
    },
    "--inner-iter": {"type": positive, "metavar": "N", "help": "steps of the samples in each iteration"},
    "--max-iter": {"type": positive, "metavar": "N", "help": "iterations at most"},
    "--tol": {"type": number, "metavar": "T", "help": "relative fall of the objective at which to stop"},
    "--n-init": {"type": positive, "metavar": "N", "help": "random starts, of which the best is kept"},
}
