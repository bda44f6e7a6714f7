"""The `gwntf` command: arguments, printed output and files.

May import everything. Start with `parser`, which names the function of every command; `build` makes estimators
of its options, `data` reads data.
"""

from collections.abc import Sequence

from gwntf.cli.output import Output, print_error
from gwntf.cli.parser import build_parser
from gwntf.core import DataError, GwntfError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code: 0 success, 1 an error that was printed, 130 interrupted."""
    options = build_parser().parse_args(arguments)
    output = Output(options.command, as_json=getattr(options, "json", False))
    try:
        options.run(options, output)
        output.close()
        return 0
    except (GwntfError, OSError) as error:
        output.close(error)
    except MemoryError:
        output.close(DataError("not enough memory; --dry-run estimates what a fit needs"))
    except KeyboardInterrupt:
        print_error(
            "interrupted; no incomplete file was left, and with --checkpoint or a cache the same command resumes"
        )
        return 130
    return 1
