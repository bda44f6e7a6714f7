"""Options that several commands share, and how their text becomes values."""

import argparse
import math
import re
from collections.abc import Callable

from gwntf.estimators.places import ENGINES
from gwntf.geometry import GRAPH_METRICS, GRAPH_WEIGHTS

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def whole(minimum: int) -> Callable[[str], int]:
    """Return a parser of whole numbers of at least `minimum`."""

    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < minimum:
            raise argparse.ArgumentTypeError(f"got {text!r}; expected a whole number of at least {minimum}")
        return int(text)

    return parse


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


def memory_size(text: str) -> int:
    """Parse a size of memory such as 8G, in bytes."""
    found = re.fullmatch(r"(\d{1,15})([kmgt]?)b?", text.lower())
    if not found or not int(found[1]):
        raise argparse.ArgumentTypeError(f"got {text!r}; expected bytes as in 500M or 8G")
    return int(found[1]) * _UNITS[found[2]]


def data_options() -> argparse.ArgumentParser:
    """Return the options of commands that read data."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--json", action="store_true", help="print one JSON document to standard output")
    add = parser.add_argument_group("reading data").add_argument
    add("--key", metavar="NAME", help="which array of .npz, .mat, .h5 or .zarr")
    add(
        "--labels",
        metavar="NAME",
        help="known classes: a column of .csv or .parquet, an array of .npz, .mat, .h5 or .zarr, a .npy file beside "
        "a .npy one; in a folder the names of subfolders are used without this option",
    )
    add("--sample-shape", type=shape, metavar="AxB", help="fold each row, as 32x32")
    add("--sample-axis", type=int, default=0, metavar="N", help="axis of the samples, from 0 (default 0)")
    add("--size", type=shape, metavar="HxW", help="resize images")
    add("--color", action="store_true", help="keep the colours of images as one more axis")
    limit = "for one array, as 8G (default: half of all); a larger .npy file is read block by block"
    add("--max-memory", type=memory_size, metavar="BYTES", help=limit)
    return parser


def estimator_options() -> argparse.ArgumentParser:
    """Return the options that are parameters of the estimators; those left out keep the defaults of the method."""
    parser = argparse.ArgumentParser(add_help=False)
    add = parser.add_argument_group("the model (default: the method's own values)").add_argument
    names = "ground cost of every axis, samples first: grid, grid2, cosine, euclidean or none"
    add("--costs", type=costs, metavar="C,C,...", help=names)
    add("--reg", type=number, metavar="E", help="weight of the entropy")
    add("--graph-reg", type=number, metavar="MU", help="weight of the graph on the samples")
    add("--neighbors", dest="n_neighbors", type=whole(1), metavar="P", help="neighbours of a sample in the graph")
    add("--inner-iter", type=whole(1), metavar="N", help="steps of the samples in each iteration")
    add("--max-iter", type=whole(1), metavar="N", help="largest number of iterations")
    add("--tol", type=number, metavar="T", help="relative decrease of the objective at which to stop")
    add("--n-init", type=whole(1), metavar="N", help="random starts, the best of which is kept")
    add("--graph-metric", choices=[*GRAPH_METRICS, "auto"])
    add("--graph-weight", choices=GRAPH_WEIGHTS)
    add("--init", choices=["random", "nndsvd", "graph"])
    add("--sample-norm", choices=["l2", "l1", "none"])
    add("--missing", choices=["error", "ignore"], help="what to do with NaN (default: error)")
    add = parser.add_argument_group("the run").add_argument
    add("--engine", choices=ENGINES, help="where the arithmetic runs")
    add("--device", help='for the engine "torch": cpu, cuda or cuda:N')
    add("--dtype", choices=["float32", "float64"])
    seed = "seed of the random start (default 0)"
    add("--seed", dest="random_state", type=whole(0), default=0, metavar="N", help=seed)
    resume = "file for the state of the fit; the same command resumes from it after an interruption"
    add("--checkpoint", metavar="FILE", help=resume)
    return parser


PARAMETERS = ("n_components", "n_clusters", *vars(estimator_options().parse_args([])))
"""Parameters of estimators that have an option."""
