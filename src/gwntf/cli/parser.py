"""The parser of the command line: every command with its options, help and examples."""

import argparse
import math
import re
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gwntf._version import __version__
from gwntf.backends import BACKENDS
from gwntf.cli.build import METHODS
from gwntf.cli.commands import run_cluster, run_fit, run_info, run_report, run_transform
from gwntf.cli.output import Output
from gwntf.cli.tables import run_demo, run_reproduce
from gwntf.cli.unmix import run_unmix
from gwntf.core import MissingLibraryError
from gwntf.experiments import known_tables
from gwntf.geometry import GRAPH_METRICS, GRAPH_WEIGHTS
from gwntf.readers import FORMATS
from gwntf.unmixing import KINDS

_EPILOG = """\
examples:
  gwntf info photos/                                       describe the data
  gwntf cluster photos/ --clusters 10 -o clusters.csv      cluster images
  gwntf fit photos/ --rank 20 -o photos.gwntf              fit a model and save it
  gwntf transform photos.gwntf new/ -o embedding.csv       embed new samples
  gwntf report photos.gwntf -o photos.html                 write an HTML report
  gwntf unmix mixtures.csv --references known.csv          find the shares of known spectra

`gwntf COMMAND --help` lists the options. Exit codes: 0 success, 1 error (printed to standard error), 2 invalid
command line, 130 interrupted."""

_HELP = {
    "cluster": """\
DATA [-o CLUSTERS.csv] [options]

Find clusters of samples. Fits a TensorClustering, which chooses its graph without labels.
Known classes, if any, are used only to score the clusters and for their default number.
Without -o the clusters are printed. The file that --model writes also assigns new samples
to the clusters: gwntf transform --predict.

  gwntf cluster photos/ --clusters 10 -o clusters.csv --report clusters.html
  gwntf cluster COIL20.mat --labels gnd --sample-shape 32x32 -o clusters.csv
  gwntf cluster table.csv --id-column id --label-column species -o clusters.csv --json""",
    "fit": """\
DATA -o MODEL.gwntf [options]

Factorise data and save the model. Samples are the first axis of an array, the rows of a
table or the images of a folder. To find clusters, use gwntf cluster.

  gwntf fit faces/ --size 32x32 --rank 40 -o faces.gwntf
  gwntf fit counts.csv --id-column id --columns w1:w50 --method NMF --rank 8 -o counts.gwntf
  gwntf fit scans.mat --key scans --sample-axis -1 --rank 12 --dry-run
  gwntf fit spectra.npy --rank 6 --costs none,grid2 --graph-reg 0 -o spectra.gwntf --json""",
    "transform": """\
MODEL DATA -o FILE [options]

Embed new samples with a fitted model. With --predict the model file must be one of gwntf
cluster, and the clusters of the samples are written. Rows are folded and images resized to
the shape of the samples of the fit.

  gwntf transform faces.gwntf new_faces/ -o embedding.csv
  gwntf transform counts.gwntf more.csv --id-column id --columns w1:w50 -o embedding.csv
  gwntf transform clusters.gwntf new_faces/ --predict -o clusters.csv""",
    "report": """\
MODEL -o PAGE.html [options]

Write an HTML report of a fitted model. It shows components, objective, embedding and the
clusters of a model of gwntf cluster; with the data of the fit also samples, their
reconstructions and members of every cluster. The page is one file that needs no network.

  gwntf report faces.gwntf -o faces.html
  gwntf report faces.gwntf --data faces/ -o faces.html
  gwntf report coil.gwntf --data COIL20.mat --labels gnd -o coil.html""",
    "unmix": """\
MIXTURES.csv --references REFERENCES.csv [-o SHARES.csv] [options]

Find the shares of known spectra in mixtures whose peaks drift. Both files have one
spectrum per row, with the positions in the header and, in one other column, names; or,
where --axis names a column of numbers, positions in that column and one spectrum in each
other column. Without -o a table of the shares is printed.

  gwntf unmix mixtures.csv --references known.csv --axis ppm --drift 0.05 -o shares.csv
  gwntf unmix mixtures.csv --references known.csv --signal protons --report unmix.html
  gwntf unmix gamma.csv --references nuclides.csv --calibration stretch --free 1 --json""",
    "info": """\
FILE [options]

Describe a data file, a folder of images or a model file.

  gwntf info photos/
  gwntf info COIL20.mat --key fea
  gwntf info faces.gwntf --json""",
    "demo": """\
[-o FOLDER]

Run all methods on scikit-learn's digits. Prints a table and writes a figure.

  gwntf demo -o results""",
    "reproduce": """\
TABLE [TABLE ...] [options]

Reproduce the paper's tables. Prints them with the published scores, and writes JSON,
Markdown, HTML and a chart. Finished runs are cached in FOLDER/cache, so that the same
command continues an interrupted table.

  gwntf reproduce coil20 pie_pose27 --runs 50""",
    "completion": """\
SHELL

Print a completion script for a shell.

  gwntf completion bash > ~/.local/share/bash-completion/completions/gwntf
  gwntf completion zsh > ~/.zfunc/_gwntf
  gwntf completion fish > ~/.config/fish/completions/gwntf.fish""",
}
"""Usage, description and examples of every command; the first sentence of a description is shown in the list."""

_DATA = f"{', '.join(FORMATS)}, or a folder of PNG or JPEG images"
_MODEL = "model (default: the values of the method)"
_FOLDER = "folder to write to (default: %(default)s)"


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; each sets `run`, a function of the options and of an `Output`."""
    parser = argparse.ArgumentParser(
        prog="gwntf",
        description="Nonnegative tensor factorization under optimal-transport losses.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"gwntf {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    add = _add_command(commands, "cluster", run_cluster, data_options(), model_options(), run_options())
    add("data", type=Path, metavar="DATA", help=_DATA)
    add("-o", "--output", type=Path, metavar="FILE", help="cluster of every sample, .csv or .npy")
    add(
        "-k",
        "--clusters",
        dest="n_clusters",
        type=at_least(1),
        metavar="K",
        help="default: the number of known classes",
    )
    add("--model", type=Path, metavar="FILE", help="also save the fitted TensorClustering, .gwntf")
    add("--report", type=Path, metavar="FILE", help="also write a report of the clusters, .html")
    add(
        "--rank",
        dest="n_components",
        type=at_least(1),
        metavar="R",
        help="components (default: three for each cluster)",
    )

    options = (data_options(), model_options(), factorization_options(), run_options())
    add = _add_command(commands, "fit", run_fit, *options)
    add("data", type=Path, metavar="DATA", help=_DATA)
    add("-o", "--output", type=Path, metavar="FILE", help="model file to write, .gwntf")
    add("--method", choices=METHODS, default="GWNTF", help="factorization (default: %(default)s)")
    add("--rank", dest="n_components", type=at_least(1), metavar="R", help="number of components")

    add = _add_command(commands, "transform", run_transform, data_options())
    add("model", type=Path, metavar="MODEL", help="model file, .gwntf")
    add("data", type=Path, metavar="DATA", help=_DATA)
    add("-o", "--output", type=Path, metavar="FILE", required=True, help="embedding of every sample, .npy or .csv")
    add("--predict", action="store_true", help="write the cluster of every sample instead of its embedding")

    add = _add_command(commands, "report", run_report, data_options())
    add("model", type=Path, metavar="MODEL", help="model file, .gwntf")
    add("-o", "--output", type=Path, metavar="FILE", required=True, help="report to write, .html")
    add("--data", type=Path, metavar="DATA", help=_DATA)

    add = _add_command(commands, "unmix", run_unmix)
    add("mixtures", type=Path, metavar="MIXTURES", help="spectra of the mixtures, .csv, .tsv or .txt")
    add(
        "--references",
        type=Path,
        metavar="FILE",
        required=True,
        help="spectra of the known parts, at the same positions",
    )
    add("-o", "--output", type=Path, metavar="FILE", help="shares of every mixture, .csv; - prints a table (default)")
    add("--report", type=Path, metavar="FILE", help="also write a report with pictures, .html")
    add("--axis", metavar="NAME", help="name of the axis, such as ppm, and of the column of positions, if there is one")
    drift = "distance by which peaks may move freely, in units of the axis (default: from the references)"
    add("--drift", type=positive, metavar="D", help=drift)
    add("--calibration", choices=KINDS, help="first fit a shift or a stretch of the whole axis of every mixture")
    add("--reach", type=positive, metavar="D", help="largest shift, in units of the axis, or stretch of --calibration")
    add("--free", dest="n_free", type=at_least(0), default=0, metavar="N", help="unknown parts to find (default 0)")
    signals = "signal of one unit of every reference: numbers as 3,9,6, or the name of a column of the references"
    add("--signal", type=numbers_or_name, metavar="S", help=f"{signals}, such as protons")
    add("--level", type=level, default=0.9, metavar="P", help="level of the intervals of the shares (default 0.9)")
    add("--clip", action="store_true", help="set negative values to zero, in both files")
    add("--json", action="store_true", help="print one JSON document to standard output")

    add = _add_command(commands, "info", run_info, data_options())
    add("file", type=Path, metavar="FILE", help=_DATA)

    add = _add_command(commands, "demo", run_demo)
    add("-o", "--output", type=Path, metavar="FOLDER", default=Path("demo"), help=_FOLDER)

    add = _add_command(commands, "reproduce", run_reproduce)
    tables = f"one of {', '.join(known_tables())}, or a path to a TOML file; before any --methods"
    add("tables", nargs="+", metavar="TABLE", help=tables)
    add("--runs", type=at_least(1), metavar="N", help="runs per method (default: the number in the table)")
    add("--methods", nargs="+", metavar="METHOD", help="only these methods of the table")
    add("--engine", choices=BACKENDS, help="library for the computations")
    add("--device", help='device of the engine "torch": cpu, cuda or cuda:N')
    add("--jobs", type=at_least(1), metavar="N", help="parallel runs (default: one per core)")
    add("-o", "--output", type=Path, metavar="FOLDER", default=Path("reproduction"), help=_FOLDER)

    add = _add_command(commands, "completion", partial(_run_completion, parser))
    add("shell", choices=("bash", "zsh", "fish"))
    return parser


def _add_command(
    commands: Any, name: str, run: Callable[[Any, Output], None], *options: argparse.ArgumentParser
) -> Callable[..., Any]:
    """Add a command with its help; return its `add_argument`."""
    usage, description, examples = _HELP[name].split("\n\n")
    summary = description.split(".")[0]
    command: argparse.ArgumentParser = commands.add_parser(
        name,
        usage=f"gwntf {name} {usage}",
        help=summary[0].lower() + summary[1:],
        description=description,
        epilog=f"examples:\n{examples}",
        parents=options,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(run=run)
    return command.add_argument


def _run_completion(parser: argparse.ArgumentParser, options: Any, _: Output) -> None:
    """Print a completion script."""
    if find_spec("shtab") is None:
        raise MissingLibraryError("completion scripts need shtab: pip install 'gwntf[completion]'")
    import shtab

    print(shtab.complete(parser, shell=options.shell))


_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def at_least(minimum: int) -> Callable[[str], int]:
    """Return a parser of whole numbers of at least `minimum`."""

    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < minimum:
            raise argparse.ArgumentTypeError(f"got {text!r}; expected a whole number of at least {minimum}")
        return int(text)

    return parse


def nonnegative(text: str) -> float:
    """Parse a finite number of at least 0."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"got {text!r}; expected a number of at least 0")
    return value


def positive(text: str) -> float:
    """Parse a finite number above 0."""
    value = nonnegative(text)
    if not value:
        raise argparse.ArgumentTypeError(f"got {text!r}; expected a number above 0")
    return value


def level(text: str) -> float:
    """Parse a number between 0 and 1."""
    value = nonnegative(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"got {text!r}; expected a number between 0 and 1, as 0.9")
    return value


def numbers_or_name(text: str) -> list[float] | str:
    """Parse numbers separated by commas; other text is a name."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        return text


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
    add("--key", metavar="NAME", help="name of the array in .npz, .mat, .h5 or .zarr")
    add(
        "--labels",
        metavar="NAME",
        help="known classes: an array of .npz, .mat, .h5 or .zarr, or a .npy file for a .npy file; for a folder of "
        "images the names of subfolders are used without this option",
    )
    add("--id-column", metavar="C", help="column of .csv or .parquet that identifies samples, by name or position")
    add("--label-column", metavar="C", help="column of .csv or .parquet with known classes, by name or position")
    chosen = "data columns of .csv or .parquet, as h00:h31,h40 (default: all others)"
    add("--columns", type=lambda text: text.split(","), metavar="C,C:C", help=chosen)
    add("--sample-shape", type=shape, metavar="AxB", help="shape into which each row is folded, as 32x32")
    add("--sample-axis", type=int, default=0, metavar="N", help="axis of the samples, from 0 (default 0)")
    add("--size", type=shape, metavar="HxW", help="resize images")
    add("--color", action="store_true", help="keep the colours of images as an additional axis")
    limit = "limit for one array, as 8G (default: half of the memory); a larger .npy file is read in blocks"
    add("--max-memory", type=memory_size, metavar="BYTES", help=limit)
    return parser


def model_options() -> argparse.ArgumentParser:
    """Return the options for parameters of all estimators; those left out keep the defaults of the estimator."""
    parser = argparse.ArgumentParser(add_help=False)
    add = parser.add_argument_group(_MODEL).add_argument
    names = "ground cost of every axis, samples first: grid, grid2, cosine, euclidean or none"
    add("--costs", type=costs, metavar="C,C,...", help=names)
    add("--graph-reg", type=nonnegative, metavar="MU", help="weight of the graph on the samples")
    add("--neighbors", type=at_least(1), metavar="P", help="number of neighbours of every sample in the graph")
    add("--graph-metric", choices=[*GRAPH_METRICS, "auto"], help="which samples are neighbours")
    add("--graph-weight", choices=GRAPH_WEIGHTS, help="weights of the edges")
    add("--max-iter", type=at_least(1), metavar="N", help="maximum number of iterations")
    add("--missing", choices=["error", "ignore"], help="what to do with NaN (default: error)")
    return parser


def factorization_options() -> argparse.ArgumentParser:
    """Return the options for parameters that only factorizations have."""
    parser = argparse.ArgumentParser(add_help=False)
    add = parser.add_argument_group("factorization").add_argument
    add("--reg", type=nonnegative, metavar="E", help="weight of the entropy")
    add("--tol", type=nonnegative, metavar="T", help="relative decrease of the objective at which the fit stops")
    add("--n-init", type=at_least(1), metavar="N", help="number of random starts; the best one is kept")
    add("--init", choices=["random", "nndsvd", "graph"], help="initial factors")
    add("--sample-norm", choices=["l2", "l1", "none"], help="norm by which every sample is divided")
    return parser


def run_options() -> argparse.ArgumentParser:
    """Return the options for where and how a fit runs."""
    parser = argparse.ArgumentParser(add_help=False)
    description = "A Dask cluster is used from Python only: fit a Dask array while a distributed.Client is active."
    add = parser.add_argument_group("computation", description).add_argument
    engines = "library for the computations: cpu is compiled code, numpy the slow reference, torch runs on GPUs"
    add("--engine", choices=BACKENDS, help=f"{engines} (default: auto)")
    add("--device", help='device of the engine "torch": cpu, cuda or cuda:N')
    add("--dtype", choices=["float32", "float64"], help="number type of the computations")
    add("--seed", dest="random_state", type=at_least(0), default=0, metavar="N", help="random seed (default 0)")
    resume = "file for the state of the fit; the same command resumes from it after an interruption"
    add("--checkpoint", type=Path, metavar="FILE", help=resume)
    add("--dry-run", action="store_true", help="estimate memory and time; write nothing")
    add("-q", "--quiet", action="store_true", help="no progress bar")
    return parser
