"""`python -m sgc.compat.sglang [OPTIONS] SCRIPT [ARGS]…`: a script for SGLang, run on sgc.

Exit codes are the script's own; an error of sgc prints one message and exits with 1, or with 2 for
wrong usage.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from sgc.compat.sglang.runner import run_script
from sgc.errors import SgcError, UsageError

EXIT_ERROR, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130  # those of `sgc`
_OURS = (str(Path(__file__).parent), "<frozen runpy>")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command line; returns its exit code, or raises the script's SystemExit."""
    given = _parser().parse_args(argv)
    is_debug = given.traceback or bool(os.environ.get("SGC_TRACEBACK"))
    try:
        run_script(given.script, given.arguments, given.engine, given.model)
    except KeyboardInterrupt:
        print("sgc: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has closed it: exit silently.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_ERROR
    except SgcError as error:
        if is_debug:
            traceback.print_exception(error)
        place = _place(error)
        print(f"sgc: error: {place}{error}", file=sys.stderr)
        # A usage error with a line is in the script, not in the command.
        is_usage = isinstance(error, UsageError) and not (error.where or place)
        return EXIT_USAGE if is_usage else EXIT_ERROR
    except Exception as error:
        # An error of the script: shown as Python does, from the script's first line on.
        traceback.print_exception(error if is_debug else error.with_traceback(_inner(error)))
        return EXIT_ERROR
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m sgc.compat.sglang", description=__doc__.splitlines()[0] if __doc__ else None
    )
    parser.add_argument("--engine", help="address of a running engine for the default backend")
    parser.add_argument("--model", help="model of an engine to start for the default backend")
    parser.add_argument("--traceback", action="store_true", help="show tracebacks of sgc's errors")
    parser.add_argument("script", help="the Python file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its own command line")
    return parser


def _place(error: SgcError) -> str:
    """The user's line, if the error does not name it itself."""
    from sgc.core.places import innermost_user_line

    where = innermost_user_line(error.with_traceback(_inner(error)))
    return f"{where}: " if where and not error.where else ""


def _inner(error: BaseException) -> TracebackType | None:
    """The traceback from the first frame that is not ours."""
    found = error.__traceback__
    while found is not None and found.tb_frame.f_code.co_filename.startswith(_OURS):
        found = found.tb_next
    return found


if __name__ == "__main__":
    sys.exit(main())
