"""Entry point of the `gwntf` command."""

from collections.abc import Sequence

from gwntf.cli.output import Output, print_error
from gwntf.cli.parser import build_parser
from gwntf.core import DataError, GwntfError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code: 0 success, 1 an error that was printed, 130 interrupted."""
    options = build_parser().parse_args(arguments)
    output = Output(options.command, as_json=getattr(options, "json", False))
    error: Exception | None = None
    try:
        options.run(options, output)
    except (GwntfError, OSError) as failure:
        error = failure
    except MemoryError:
        error = DataError("there is not enough memory: see --dry-run")
    except KeyboardInterrupt:
        print_error(
            "interrupted; no file is incomplete, and --checkpoint or a cache resumes from where it was"
        )
        return 130
    output.close(error)
    return int(error is not None)
